"""Fragments whose new columns are written, noted in a folder until all of them are committed.

Whoever writes a fragment notes it, on whatever machine::

    {folder}/{fragment id}-{digest}.fragment       the fragment with its new file, as in a manifest

The digest is of all that the new file depends on, but for what a function does: the fragment as it is,
deleted rows and all, the new columns with their ids, and what they are computed by.  So a note is
believed by nobody else, and one whose fragment changed meanwhile by nobody at all.  No version names
these files, and a clean-up takes those that are older than a week for what they are, orphans; then
their notes count no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pennon.core.units import FragmentId
from pennon.errors import FormatError, NotFoundError
from pennon.io.durability import sync_now
from pennon.io.store import Store
from pennon.ops.columns.column_file import ColumnFiles
from pennon.scan.snapshot import Snapshot
from pennon.schema.wire import serialize_schema
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment_bytes
from pennon.table.message_wire import serialize_message

_SUFFIX: Final = ".fragment"


@dataclass(frozen=True, slots=True)
class Notes:
    """The key of checkpoints: a folder (None: no checkpoints), and the computation of the columns."""

    store: Store | None
    files: ColumnFiles
    expression: str

    def name(self, fragment: Fragment) -> str:
        """Return the name of the note of a fragment, as it is without the new columns."""
        parts = (
            self.files.store.uri.encode(),
            serialize_fragment_bytes(fragment),
            serialize_message(serialize_schema(self.files.schema)),
            str(self.files.version).encode(),
            self.expression.encode(),
        )
        whole = b"".join(hashlib.sha256(part).digest() for part in parts)
        return f"{fragment.id}-{hashlib.sha256(whole).hexdigest()}{_SUFFIX}"

    def note(self, old: Fragment, new: Fragment) -> None:
        """Note a fragment that has its new file."""
        if self.store is not None:
            sync_now()  # a note that outlives its file would be believed
            self.store.put(self.name(old), serialize_fragment_bytes(new))

    def find(self, snapshot: Snapshot) -> dict[FragmentId, Fragment]:
        """Return the fragments of a version that are noted and whose new files are there."""
        if self.store is None:
            return {}
        names = {name for name, _ in self.store.list_names("")}
        noted = [f for f in snapshot.manifest.fragments if names and self.name(f) in names]
        if not noted:
            return {}
        there = {path for path, _ in snapshot.store.list_names("data")}
        found = {each.id: each for each in map(self._read, noted) if each is not None}
        return {key: each for key, each in found.items() if each.files[-1].store_path in there}

    def _read(self, fragment: Fragment) -> Fragment | None:
        """Return a note, if it is there and whole."""
        if self.store is None:
            return None
        try:
            return parse_fragment_bytes(self.store.read_whole(self.name(fragment)).to_pybytes())
        except (FormatError, NotFoundError):
            return None

    def forget(self, fragments: Iterable[Fragment]) -> None:
        """Delete the notes of fragments, as they are without the new columns: all is committed."""
        if self.store is not None:
            for fragment in fragments:
                self.store.delete(self.name(fragment))
