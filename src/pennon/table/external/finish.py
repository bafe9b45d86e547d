"""Finishing a commit that is half done: what the manifest store granted comes under its final name.

::

    staged bytes  → read               gone: another one has finished it, look again
    final name    → create             there, the same bytes: another one was as far
                                       there, other bytes: refused, nothing is ever overwritten
    entry         → the final path     "flipped"
    staged bytes  → delete             only after the store has acknowledged the flip

Any number of readers and writers may do this at once, each step as often as it likes: all create
the same bytes under the same name.  Nobody reads a version that could not be finished, so that a
table whose folder is copied is whole.

Source: seeds, 002 "External Manifest Store"; ledger F-330.
"""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa

from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    FormatError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.store import Store
from pennon.table.external.manifests import Entry, ManifestStore, final_path, is_staged


def finish(store: Store, manifests: ManifestStore, entry: Entry) -> Entry:
    """Finish the commit of an entry, if it is half done; return the entry as it is then.

    Raises StoreError or FormatError if that cannot be done.
    """
    if not is_staged(entry):
        return entry
    try:
        body = store.read_whole(entry.path)
    except NotFoundError:
        return _finished_by_another(store, manifests, entry)
    if entry.size_bytes not in {None, body.size}:
        message = f"a manifest of {entry.size_bytes} bytes was committed, but it has {body.size}"
        raise FormatError(message, where=Breadcrumb(file=entry.path))
    return finish_with(store, manifests, entry, body.to_pybytes())


def finish_with(store: Store, manifests: ManifestStore, entry: Entry, body: bytes) -> Entry:
    """Finish the commit of an entry whose manifest is ``body``."""
    done = Entry(entry.version, final_path(entry), len(body))
    _create(store, done.path, body)
    manifests.put_if_exists(done)
    with suppress(StoreError):
        store.delete(entry.path)
    return done


def read_if_there(store: Store, path: str) -> pa.Buffer | None:
    """Return the bytes of an object; None if there is none."""
    try:
        return store.read_whole(path)
    except NotFoundError:
        return None


def _finished_by_another(store: Store, manifests: ManifestStore, entry: Entry) -> Entry:
    """Return the entry of a version whose staged manifest is gone."""
    now = manifests.get(entry.version)
    if now is not None and not is_staged(now):
        return now
    final = final_path(entry)
    found = read_if_there(store, final)
    if now != entry or found is None:
        message = (
            f"version {entry.version} was committed, but its manifest is neither at {entry.path} "
            f"nor at {final}; is this the bucket of the table?"
        )
        raise StoreError(message, where=Breadcrumb(file=entry.path))
    done = Entry(entry.version, final, found.size)
    manifests.put_if_exists(done)
    return done


def _create(store: Store, path: str, body: bytes) -> None:
    """Put ``body`` under a final name, unless it is there; raises FormatError if other bytes are.

    A store that can create only what is absent is asked to.  In one that cannot, all who come here
    put the same bytes, which the manifest store granted.
    """
    try:
        store.put_if_absent(path, body)
    except AlreadyExistsError:
        found = store.read_whole(path)
    except UnsupportedError:
        found = read_if_there(store, path)
        if found is None:
            store.put(path, body)
    else:
        return
    if found is not None and bytes(found) != body:
        message = (
            "the manifest store granted this version to one manifest, and another lies here: the"
            " table was also written without the manifest store, or two tables share its key"
        )
        raise FormatError(message, where=Breadcrumb(file=path))
