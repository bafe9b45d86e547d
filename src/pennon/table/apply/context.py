"""Inputs of a new manifest from outside of the table and the transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.errors import UnsupportedError
from pennon.schema.version import FileVersion
from pennon.table.fragment import Fragment, Sequence
from pennon.table.fragments import Fragments
from pennon.table.manifest import Manifest

Complete = Callable[[Fragment], Fragment]


def _read_inline(sequence: Sequence) -> bytes:
    if isinstance(sequence, bytes):
        return sequence
    message = f"the sequence in {sequence.path} is needed, but not read"
    raise UnsupportedError(message)


@dataclass(frozen=True, slots=True)
class ApplyContext:
    """Inputs of a new manifest from outside of the table and the transaction.

    ``stable_row_ids`` counts for new tables only, ``file_version`` for new and overwritten ones
    that get no data files.  ``complete`` fills in the row counts of a fragment whose writer left
    them out or wrong (Lance before 0.8.15).  ``dictionaries`` are those that files of version 0.1
    bring.  ``past`` is the version that a restore or a clone names.  ``read_sequence`` returns
    the bytes of row ids or row versions that lie in a file.  ``keeps_rows``: the new files of an
    overwrite, or of a merge, hold rows of this table, and bring their ids and versions along.  ``repaired``: an
    overwrite makes the version of this value, which a repair made of the head.
    """

    now_ns: int
    stable_row_ids: bool = False
    file_version: FileVersion | None = None
    complete: Complete | None = None
    dictionaries: Mapping[FieldId, pa.Array[Any]] = field(default_factory=dict)
    past: Manifest | None = None
    read_sequence: Callable[[Sequence], bytes] = _read_inline
    keeps_rows: bool = False
    repaired: Manifest | None = None

    def completed(self, head: Manifest) -> Fragments:
        """Return the head's fragments, with row counts that the new manifest can vouch for."""
        if head.writer is not None or not head.fragments:
            return Fragments.of(head.fragments)
        if self.complete is None:
            message = "this table was written by Lance before 0.8.15; its row counts must be redone"
            raise UnsupportedError(message)
        return Fragments.of(map(self.complete, head.fragments))
