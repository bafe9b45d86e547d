"""Rows that pylance keeps beside a table (MemWAL), and that no version of the table has yet.

A writer of pylance 14 may put rows into log files and small tables under ``_mem_wal/``, a folder for each
shard of writers, and merge them into the table later.  Pennon reads the table alone, as pylance's own scans
do, and leaves that folder as it is.

Source: ledger F-799.
"""

from __future__ import annotations

import warnings
from typing import Final

from pennon.errors import CannotListError, NotFoundError, UnreadRowsWarning
from pennon.io.store import Store
from pennon.table.indices import MEM_WAL

FOLDER: Final = "_mem_wal"
_NAME: Final = MEM_WAL.encode()
_warned: set[str] = set()


def warn_of_unmerged_rows(store: Store, indices: bytes) -> None:
    """Warn, once for each table, that a MemWAL may hold rows which no version has.

    ``indices`` is the serialized section of the manifest, among which stands an entry for the MemWAL.
    """
    if _NAME not in indices or store.uri in _warned:
        return
    _warned.add(store.uri)
    try:
        files = [(info.path.split("/"), info.size_bytes) for info in store.list(FOLDER)]
    except (CannotListError, NotFoundError):
        files = []
    shards = {parts[1] for parts, _ in files if len(parts) > 2}
    if not shards:
        return
    tables = {(parts[1], parts[2]) for parts, _ in files if len(parts) > 3 and "_gen_" in parts[2]}
    logs = [size for parts, size in files if len(parts) > 3 and parts[2] == "wal"]
    message = (
        f"the table {store.uri!r} has a MemWAL of {len(shards)} shard(s): rows in {len(tables)} flushed table(s) and "
        f"{len(logs)} log file(s) of {sum(logs)} bytes under {FOLDER}/ that were not merged into the table yet are "
        "not read; pylance's `ShardWriter.lsm_scanner` reads them"
    )
    warnings.warn(message, UnreadRowsWarning, stacklevel=3)
