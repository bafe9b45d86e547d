"""Batches of rows in a shuffled order, as Arrow record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.units import MIB
from pennon.encoding.selection import in_order
from pennon.errors import ArgumentError
from pennon.training.batch_iterator import BatchIterator
from pennon.training.check_arguments import (
    check_counts,
    check_schemas,
    check_seed,
    default_block_rows,
)
from pennon.training.mixture import Mixture, parts_of
from pennon.training.order import Order, order_key
from pennon.training.share import Share
from pennon.training.state import LoaderState
from pennon.training.table_rows import Columns, TableRows, Tables, open_tables

T = TypeVar("T")
Range = tuple[int, int]
"""Positions ``start <= position < end`` of an epoch."""

_TAKE_ROWS: Final = 4096
_TAKE_BYTES: Final = 4 * MIB
_LEAST_TAKES: Final = 8
"""One take reads several small batches: at most this many rows and bytes, and an eighth of the epoch."""


class Batches:
    """The batches of tables in a shuffled order, epoch by epoch; an iterable of `pyarrow.RecordBatch`.

    ``tables``: a path, a URI or a `LanceDataset`; several are mixed by ``weights`` (by their rows without).
    ``columns``: names, or a mapping from new names to SQL expressions.  ``filter``: SQL; an index answers it, if there is one.
    ``batch_size``: rows of a *global* batch, which is divided over the ranks: so batch k holds the same rows
    whatever ``world_size`` is.  ``drop_last``: leave out the last rows, if they make no whole batch; else each rank
    gets its share of them, which may be empty.  ``block_rows``, ``window_blocks``: see `Order`; by default 1 for a local
    table, and blocks of about 64 KiB for a remote one.  ``prefetch``: batches read ahead, each by a thread; 0: none.
    ``version``: a number or tag; the newest by default.

    Raises ArgumentError for arguments that do not fit, NotFoundError if there is no such table.

    >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
    >>> batches = pennon.training.Batches(uri, batch_size=5, shuffle=False)
    >>> [batch["id"].to_pylist() for batch in batches]
    [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    """

    def __init__(
        self,
        tables: Tables,
        *,
        columns: Columns = None,
        filter: str | None = None,
        batch_size: int = 256,
        seed: int = 0,
        shuffle: bool = True,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = True,
        weights: Sequence[float] | None = None,
        block_rows: int | None = None,
        window_blocks: int = 1,
        prefetch: int = 2,
        version: int | str | None = None,
        storage_options: dict[str, str] | None = None,
    ) -> None:
        """Open the tables and pin their versions."""
        check_counts(batch_size, rank, world_size, prefetch)
        check_seed(seed)
        self._sources = tuple(
            TableRows(each, columns, filter)
            for each in open_tables(tables, version, storage_options)
        )
        check_schemas(self._sources)
        if weights is not None and len(weights) != len(self._sources):
            message = f"{len(weights)} weights are given for {len(self._sources)} tables"
            raise ArgumentError(message)
        given = weights if weights is not None else [source.count for source in self._sources]
        many = len(self._sources) > 1
        if block_rows is None:
            block_rows = default_block_rows(self._sources, batch_size)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.prefetch = prefetch
        self.share = Share(rank, world_size)
        parts = parts_of(given) if many else (1,)
        self._mixture = _mixture(self._sources, parts, seed, shuffle, block_rows, window_blocks)
        self._epoch = 0
        self._position = 0
        self._is_own_position = False
        self._progress: int | None = None

    # the order

    @property
    def rows(self) -> int:
        """Return the rows of an epoch, all ranks together.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri, filter="id > 5").rows
        4
        """
        return self._mixture.rows

    @property
    def versions(self) -> tuple[int, ...]:
        """Return the version of each table that is read; later commits do not change it.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri).versions
        (1,)
        """
        return tuple(source.dataset.version for source in self._sources)

    @property
    def schema(self) -> pa.Schema:
        """Return the schema of the batches.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri).schema.names
        ['id']
        """
        return self._sources[0].schema

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch: the same for every rank."""
        return self._batches_from(0)

    def _batches_from(self, position: int) -> int:
        rows = max(self.rows - position, 0)
        return rows // self.batch_size if self.drop_last else -(-rows // self.batch_size)

    # epochs and state

    @property
    def epoch(self) -> int:
        """Return the epoch that the next iteration reads.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri).epoch
        0
        """
        return self._epoch

    @property
    def position(self) -> int:
        """Return the rows of the epoch that the next iteration leaves out, all ranks together.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri).position
        0
        """
        return self._position

    def set_epoch(self, epoch: int) -> None:
        """Turn to an epoch: each has an order of its own.  The epoch that `load_state_dict` set goes on at its place.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> batches = pennon.training.Batches(uri)
        >>> batches.set_epoch(3)
        >>> batches.epoch
        3
        """
        if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < 0:
            message = f"an epoch is a whole number from 0 on, not {epoch!r}"
            raise ArgumentError(message)
        if epoch != self._epoch:
            self.move_to(epoch, 0)

    def move_to(self, epoch: int, position: int) -> None:
        """Let the next iteration begin at a position, in rows, of an epoch.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> batches = pennon.training.Batches(uri, batch_size=5)
        >>> batches.move_to(epoch=0, position=5)
        >>> len(list(batches))
        1
        """
        self._epoch, self._position, self._progress = epoch, position, None
        self._is_own_position = False

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the place in the epoch, as a dict of numbers that JSON can hold.

        ``batches``: how many batches of this iteration are done.  Without it, the batches that the newest iterator
        of this object has returned; give it where other processes iterate (workers of a DataLoader).

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> pennon.training.Batches(uri, batch_size=4).state_dict(batches=2)["position"]
        8
        """
        if batches is None:
            position = self._position if self._progress is None else self._progress
        else:
            if not isinstance(batches, int) or not 0 <= batches <= self._batches_from(
                self._position
            ):
                message = f"{batches!r} batches cannot be done: {self._batches_from(self._position)} remain in the epoch"
                raise ArgumentError(message)
            position = self._position + batches * self.batch_size
        first = self._mixture.orders[0]
        return LoaderState(
            self.versions,
            tuple(source.count for source in self._sources),
            self._mixture.parts,
            first.seed,
            first.shuffle,
            first.block_rows,
            first.window_blocks,
            self._epoch,
            min(position, self.rows) if self.share.workers == 1 else position,
            self.share.worker if self.share.workers > 1 else -1,
            self.share.workers if self.share.workers > 1 else 0,
        ).as_json()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on at the place of a state, with its versions, seed and order; other ranks and batch sizes are welcome.

        A table whose version differs is opened at the version of the state.  Raises ArgumentError if the state is
        of other tables or another filter, NotFoundError if its version was cleaned up.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> state = pennon.training.Batches(uri, batch_size=4).state_dict(batches=1)
        >>> resumed = pennon.training.Batches(uri, batch_size=3)
        >>> resumed.load_state_dict(state)
        >>> [len(batch) for batch in resumed]
        [3, 3]
        """
        loaded = LoaderState.of_json(state)
        if len(loaded.versions) != len(self._sources) or len(loaded.parts) != len(self._sources):
            message = f"the state is of {len(loaded.versions)} tables, the loader reads {len(self._sources)}"
            raise ArgumentError(message)
        if min(loaded.epoch, loaded.position) < 0 or min(loaded.parts) < 1:
            message = "the state's epoch and position must not be negative, nor its parts below 1"
            raise ArgumentError(message)
        if loaded.workers and (loaded.worker, loaded.workers) != (
            self.share.worker,
            self.share.workers,
        ):
            message = (
                f"the state is that of worker {loaded.worker} of {loaded.workers}; load it with as many workers, "
                "or use state_dict(batches=...) of the main process, which any number of workers can load"
            )
            raise ArgumentError(message)
        sources = tuple(
            source.at_version(version)
            for source, version in zip(self._sources, loaded.versions, strict=True)
        )
        counts = tuple(source.count for source in sources)
        if counts != loaded.rows:
            message = f"the state counts {list(loaded.rows)} rows, the tables have {list(counts)}; is the filter another?"
            raise ArgumentError(message)
        self._sources = sources
        self._mixture = _mixture(
            sources,
            loaded.parts,
            loaded.seed,
            loaded.shuffle,
            loaded.block_rows,
            loaded.window_blocks,
        )
        self.move_to(loaded.epoch, loaded.position)
        self._is_own_position = loaded.workers > 1

    # reading

    def __iter__(self) -> BatchIterator[pa.RecordBatch]:
        """Return an iterator from the position on to the end of the epoch."""
        return self.iterate(_unchanged)

    def iterate(self, convert: Callable[[pa.RecordBatch], T]) -> BatchIterator[T]:
        """Return an iterator of what ``convert`` makes of each batch; threads that read ahead call it.

        >>> _ = pennon.write_dataset(pa.table({"id": range(10)}), uri)
        >>> list(pennon.training.Batches(uri, batch_size=5).iterate(len))
        [5, 5]
        """
        make: Callable[[Sequence[Range]], list[T]] = partial(self._read, self._epoch, convert)
        starts, size, rows = self.starts(), self.batch_size, self.rows
        ranges = ((start, min(start + size, rows)) for start in starts)
        groups = iter(partial(_next_of, ranges, self._batches_of_a_take()), ())
        return BatchIterator(starts, groups, make, self.prefetch, self.note_progress)

    def take_share(self, share: Share) -> None:
        """Yield another share of the batches from now on.

        >>> _ = pennon.write_dataset(pa.table({"id": range(8)}), uri)
        >>> batches = pennon.training.Batches(uri, batch_size=4, shuffle=False)
        >>> batches.take_share(pennon.training.Share(rank=1, world_size=2))
        >>> [batch["id"].to_pylist() for batch in batches]
        [[2, 3], [6, 7]]
        """
        self.share = share

    def read(self, epoch: int, start: int, end: int) -> pa.RecordBatch:
        """Return the rows at positions ``start <= position < end`` of an epoch.

        >>> _ = pennon.write_dataset(pa.table({"id": range(8)}), uri)
        >>> pennon.training.Batches(uri, shuffle=False).read(0, 2, 4)["id"].to_pylist()
        [2, 3]
        """
        return self._read_parts(epoch, [(start, end)])[0]

    def _read_parts(self, epoch: int, parts: Sequence[Range]) -> list[pa.RecordBatch]:
        """Return a batch for each range of positions; the rows of all are taken together."""
        found = [self._mixture.rows_at(epoch, *part) for part in parts]
        if len(self._sources) == 1:
            return self._sources[0].take_parts([rows for _, rows in found])
        taken = [
            source.take_parts([rows[tables == number] for tables, rows in found])
            for number, source in enumerate(self._sources)
        ]
        return [
            _mixed(tables, [batches[at] for batches in taken])
            for at, (tables, _) in enumerate(found)
        ]

    def _read(
        self, epoch: int, convert: Callable[[pa.RecordBatch], T], group: Sequence[Range]
    ) -> list[T]:
        """Return what is made of each batch of a group, whose rows are taken together."""
        shares = [self.share.of(*batch) for batch in group]
        return [convert(batch) for batch in self._read_parts(epoch, shares)]

    def _batches_of_a_take(self) -> int:
        """Return how many batches are read by one take: more than one if they are small."""
        row_bytes = max(1, *(each.about_row_bytes for each in self._sources))
        rows = -(-self.batch_size // self.share.world_size)
        few = min(_TAKE_ROWS // rows, _TAKE_BYTES // (rows * row_bytes))
        return max(min(few, len(self.starts()) // _LEAST_TAKES), 1)

    def starts(self) -> range:
        """Return the position of each batch that this worker yields from now on."""
        first = self._position
        if not self._is_own_position:
            first += self.share.worker * self.batch_size
        end = self.rows - self.batch_size + 1 if self.drop_last else self.rows
        return range(first, max(end, first), self.batch_size * self.share.workers)

    def note_progress(self, position: int) -> None:
        """Note the position of the next batch of the newest iterator."""
        self._progress = position


def _next_of(ranges: Iterator[Range], count: int) -> tuple[Range, ...]:
    return tuple(islice(ranges, count))


def _unchanged(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def _mixture(
    sources: Sequence[TableRows],
    parts: tuple[int, ...],
    seed: int,
    shuffle: bool,
    block_rows: int,
    window_blocks: int,
) -> Mixture:
    """Return the mixture of the tables; the seed of the second and later ones is derived from the first's."""
    orders = [
        Order(
            source.count,
            order_key(seed, number) if number else seed,
            shuffle,
            block_rows,
            window_blocks,
        )
        for number, source in enumerate(sources)
    ]
    return Mixture(tuple(orders), parts)


def _mixed(tables: Int64Array, taken: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return rows of several tables as one batch; ``tables`` says from which table each row comes."""
    places = np.empty(len(tables), np.int64)
    places[np.argsort(tables, kind="stable")] = np.arange(len(tables))
    columns = zip(*(batch.columns for batch in taken), strict=True)
    arrays = [in_order(chunks, places) for chunks in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=taken[0].schema)
