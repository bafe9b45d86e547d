"""The task of a refresh: a fragment is read, and changed if it has stale rows.

::

    few stale rows, under an index    they go, and are written again behind the others, as an update does: the index
                                      goes on to cover all other rows of the fragment
    any, after a compaction that      the same: an update of columns would end what the index covers
    left an index as it was
    else                              the vector columns of the fragment are written anew, in one file more: rows stay
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import FragmentId
from pennon.errors import FormatError
from pennon.ops.columns.checkpoint import Checkpoint, CheckpointedTask
from pennon.ops.columns.finished import Notes
from pennon.ops.columns.task import ColumnsTask, read_inputs
from pennon.ops.embed.fingerprint import fingerprints, plain_values
from pennon.ops.embed.makers import Embedder, StaleRule
from pennon.ops.rows.change_rows import ChangeTask
from pennon.ops.rows.changed_wire import Changed, parse_changed, serialize_changed
from pennon.scan.projection import Projection
from pennon.scan.read.fragment_reader import FragmentReader
from pennon.table.field_ids import in_newest_file
from pennon.table.fragment import Fragment
from pennon.table.fragment_wire import parse_fragment_bytes, serialize_fragment_bytes
from pennon.table.roaring import serialize_roaring

FEW_SHARE: Final = 8
"""A refresh moves stale rows of an indexed fragment up to one row in this many; beyond that it rewrites the columns."""
_SCAN_ROWS: Final = 1 << 14
_HEAD: Final = struct.Struct("<QQQ")


@dataclass(frozen=True, slots=True)
class RefreshedFragment:
    """A fragment after a refresh: ``rows`` of it were stale.

    ``fragment`` has a new file if its columns were written anew, and then ``offsets`` are the physical offsets of the
    stale rows, as a Roaring bitmap; ``changed``: these rows were moved.
    """

    fragment: Fragment
    rows: int = 0
    offsets: bytes = b""
    changed: Changed | None = None

    def to_bytes(self) -> bytes:
        """Return the result as bytes, as executors send it."""
        changed = b"" if self.changed is None else serialize_changed(self.changed)
        head = _HEAD.pack(self.rows, len(self.offsets), len(changed))
        return head + self.offsets + changed + serialize_fragment_bytes(self.fragment)

    @classmethod
    def from_bytes(cls, message: bytes) -> RefreshedFragment:
        """Return the result in bytes of `to_bytes`; raises FormatError."""
        if len(message) < _HEAD.size:
            raise FormatError("a refreshed fragment is cut off")
        rows, first, second = _HEAD.unpack_from(message)
        offsets_end = _HEAD.size + first
        offsets, changed = message[_HEAD.size : offsets_end], message[offsets_end:][:second]
        fragment = parse_fragment_bytes(message[offsets_end + second :])
        return cls(fragment, rows, offsets, parse_changed(changed) if second else None)


@dataclass(frozen=True, slots=True)
class RefreshTask:
    """Refreshes fragments of a version; it pickles if its model does.

    ``columns`` writes columns anew, ``change`` moves rows.  ``few``: the columns that tell which rows are stale.
    ``covered``: the fragments that an index on the vectors covers; ``moves_all``: it names rows by where they were before
    a compaction.  ``notes``: where written fragments are noted;
    ``written``: those that were noted before.
    """

    to_bytes = staticmethod(RefreshedFragment.to_bytes)
    from_bytes = staticmethod(RefreshedFragment.from_bytes)

    columns: ColumnsTask
    change: ChangeTask
    embedder: Embedder
    few: Projection
    rule: StaleRule
    covered: frozenset[FragmentId]
    moves_all: bool
    checkpoint: Checkpoint | None = field(default=None, repr=False)
    notes: Notes | None = None
    written: Mapping[FragmentId, Fragment] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return how many fragments there are."""
        return self.columns.count

    def run(self, number: int) -> RefreshedFragment:
        """Return the fragment of that number, with its stale rows embedded."""
        snapshot = self.columns.snapshot
        fragment = snapshot.manifest.fragments[number]
        stale = np.concatenate(
            [np.empty(0, np.int64), *(rows for rows, _ in self._stale(fragment))]
        )
        if not len(stale):
            return RefreshedFragment(fragment)
        live = FragmentReader(snapshot, fragment).live_rows()
        is_few = fragment.id in self.covered and len(stale) * FEW_SHARE <= live.count
        if is_few or self.moves_all:
            changed = self.change.run(self._moved(fragment))
            return RefreshedFragment(fragment, len(stale), changed=changed)
        known = frozenset(each.id for each in snapshot.manifest.schema.walk())
        made = in_newest_file(self._write(fragment, number), known)
        offsets = live.to_physical(stale).astype(np.uint32)
        return RefreshedFragment(made, len(stale), serialize_roaring(offsets))

    def _write(self, fragment: Fragment, number: int) -> Fragment:
        """Return the fragment with a file more, written now or before."""
        if fragment.id in self.written:
            return self.written[fragment.id]
        if self.checkpoint is not None:
            return CheckpointedTask(self.columns, self.checkpoint).run(number)
        made = self.columns.run(number)
        if self.notes is not None:
            self.notes.note(fragment, made)
        return made

    def _stale(self, fragment: Fragment) -> Iterator[tuple[Int64Array, pa.Array]]:
        """Yield the offsets of stale rows among the live rows of a fragment, ascending, and their sources."""
        start = 0
        batches = read_inputs(
            self.columns.snapshot,
            fragment,
            self.few,
            _SCAN_ROWS,
            with_blobs=self.columns.with_blobs,
        )
        for batch in batches:
            values = plain_values(batch.column(0), self.embedder.source)
            rest = batch.columns[1:]
            old = rest.pop() if self.embedder.fingerprint is not None else None
            prints = fingerprints(values)
            stale = self.rule.stale(values, prints, old, rest[0] if rest else None)
            places = np.flatnonzero(stale)
            yield places + start, values.take(pa.array(places))
            start += batch.num_rows

    def _moved(self, fragment: Fragment) -> Iterator[pa.RecordBatch]:
        """Yield the addresses of stale rows, the number of the clause, and their new columns."""
        live = FragmentReader(self.columns.snapshot, fragment).live_rows()
        step = self.columns.batch_rows
        names = self.change.values.names
        for rows, values in self._stale(fragment):
            for start in range(0, len(rows), step):
                sources = values.slice(start, step)
                made = self.embedder.batch(
                    self.embedder.vectors(sources).array(), fingerprints(sources)
                )
                addresses = live.to_physical(rows[start : start + step]) + (fragment.id << 32)
                clause = pa.array(np.zeros(len(sources), np.int32))
                arrays = [pa.array(addresses), clause, *(made.column(name) for name in names)]
                yield pa.RecordBatch.from_arrays(arrays, names=["_rowaddr", "clause", *names])
