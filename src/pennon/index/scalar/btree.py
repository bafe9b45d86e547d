"""BTREE: all rows sorted by value, in pages, and the bounds of each page.

``page_data.lance`` has the columns ``values`` and ``ids``, which releases up to 0.30 call ``row_ids`` where they
have compacted the table; page k are its rows from ``k * batch_size`` on.
``page_lookup.lance`` has a row for each page: ``min``, ``max``, ``null_count``, ``page_idx``.  NULLs come first.

Ranges of values, and values, are looked for by halving: among the bounds of pages, then in the pages.  Any other
condition is asked of the bounds as of any page of data; then it is evaluated over the values of the pages that are
left, so the answer is a scan's answer whatever the condition.

Source: reference index-scalar, 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import lazy
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, UnsupportedError
from pennon.expr.evaluate import evaluate
from pennon.expr.prune import Bounds, Pruner
from pennon.expr.tree import Column, Expression
from pennon.index.base import (
    VALUE,
    Values,
    bound_of,
    is_nan,
    joined,
    true_places,
)
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.order import Keys, merged, order_of, rows_of
from pennon.index.row_set import NONE, UNKNOWN, Numbers, RowSet, Selection
from pennon.index.scalar.wanted import Wanted, wanted_of

_PAGE_ROWS: Final = 4096
_ZONE_SIZE: Final = "zone_size"
"""What users call the rows of a page."""
_BLOCK_ROWS: Final = 1 << 16
"""Rows of an old index that are held at once."""
_MOST_SHARE: Final = 4
"""Where more than one page of so many may match, to read the column is cheaper."""
_KNOWN_BYTES: Final = 400
"""What the bounds of some pages take in memory, about, when they were asked for."""
_AT_ONCE: Final = 64
"""So many pages are read side by side."""
_ALWAYS: Final = 8
"""So few pages are read always."""
_SPARSE: Final = 64
"""Where at most one value of so many rows is looked for, what each of them needs is read: a page or two."""


class BTree:
    """An open BTREE index."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the bounds of all pages.  Raises FormatError if they do not fit the pages."""
        self._files = files
        names = ("page_lookup.lance", "page_data.lance")
        lookup, self._data = files.side_by_side(files.file, names)
        self.column = Column((VALUE,), self._data.type_of("values"))
        if self._data.names[1:] not in (["ids"], ["row_ids"]):
            message = f"{self._data.source.path} has the columns {', '.join(self._data.names)}, and no ids"
            raise FormatError(message)
        self._rows = lookup.number("batch_size", _PAGE_ROWS)
        low, high, nulls, numbers = lookup.read(["min", "max", "null_count", "page_idx"])
        if self._data.loses_nulls and whole_numbers(nulls, "null counts").any():
            message = f"{self._data.source.path} is a file of version 0.1, in which NULLs of an index are lost"
            raise UnsupportedError(message)
        self._bounds = _PageBounds(low, high, whole_numbers(nulls, "null counts"))
        self._check(lookup, whole_numbers(numbers, "page numbers"))

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return self._bounds.size_bytes

    @property
    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex.statistics`."""
        least, greatest = self._bounds.ends
        return {"min": least, "max": greatest, "num_pages": len(self._bounds)}

    def warm(self) -> None:
        """See `ScalarIndex.warm`."""
        for start in range(0, len(self._bounds), _AT_ONCE):
            self._pages(range(start, min(start + _AT_ONCE, len(self._bounds))))

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        wanted = wanted_of(condition, self.column.type)
        if wanted is not None and self._bounds.keys is not None:
            return self._search_sorted(wanted)
        pages = list(islice(self._bounds.matching(Pruner(condition)), self._most + 1))
        if len(pages) > self._most:
            return UNKNOWN
        if not pages:
            return Selection.exact(NONE)
        found = self._pages(pages)
        values = pa.concat_arrays([page.values for page in found])
        batch = pa.RecordBatch.from_arrays([values], [VALUE])
        passing = true_places(evaluate(condition, batch))
        rows = np.concatenate([page.rows for page in found])
        return Selection.exact(RowSet.of(rows[passing]))

    @property
    def _most(self) -> int:
        """Return how many pages may match, unless to read the column is cheaper."""
        return max(len(self._bounds) // _MOST_SHARE, _ALWAYS)

    def _search_sorted(self, wanted: Wanted) -> Selection:
        """Return the rows of ranges of values; each page is searched for those that may lie in it."""
        begins, ends = self._bounds.pages_of(wanted)
        pages = _within(begins, ends)
        is_sparse = len(pages) <= 2 * len(wanted) <= self._data.rows // _SPARSE
        if len(pages) > self._most and not is_sparse:
            return UNKNOWN
        found = [np.empty(0, np.uint64)]
        for start in range(0, len(pages), _AT_ONCE):
            some = pages[start : start + _AT_ONCE]
            firsts = ends.searchsorted(some, "right").tolist()
            behind = begins.searchsorted(some, "right").tolist()
            read = self._pages(some.tolist())
            for page, first, end in zip(read, firsts, behind, strict=True):
                found.append(page.rows_of(wanted.part(first, end)))
        return Selection.exact(RowSet.of(np.concatenate(found)))

    def _pages(self, numbers: Sequence[int]) -> Sequence[_Page]:
        """Return pages, which ascend; many that are not remembered are read in one go."""
        if len(numbers) <= _ALWAYS:
            return self._files.side_by_side(self._page, numbers)
        found: dict[int, Any] = {each: self._files.known(self._key(each)) for each in numbers}
        missing = [number for number, page in found.items() if page is None]
        for number, made in zip(missing, self._read_pages(missing), strict=True):
            found[number] = self._files.remember(
                self._key(number),
                lambda made=made: made,  # type: ignore[misc]
                _page_bytes,
            )
        return list(found.values())

    def _page(self, number: int) -> _Page:
        return self._files.remember(
            self._key(number), lambda: self._read_pages([number])[0], _page_bytes
        )

    def _key(self, number: int) -> tuple[str, str, int]:
        return "page", self._files.folder, number

    def _read_pages(self, numbers: Sequence[int]) -> list[_Page]:
        """Read pages, which ascend."""
        if not numbers:
            return []
        starts = np.array(numbers, np.int64) * self._rows
        ends = np.minimum(starts + self._rows, self._data.rows)
        breaks = np.flatnonzero(starts[1:] != ends[:-1])
        firsts = starts[np.concatenate([[0], breaks + 1])]
        rows = Rows.ranges(firsts, ends[np.append(breaks, len(ends) - 1)])
        values, ids = self._data.read(self._data.names[:2], rows)
        rows_of = whole_numbers(ids, "row ids of an index")
        if len(numbers) == 1:
            return [self._made(numbers[0], values, rows_of)]
        found, at = [], 0
        for number, size in zip(numbers, (ends - starts).tolist(), strict=True):
            # what is remembered is a copy: a part would hold all that was read with it
            mine = values.take(pa.array(np.arange(at, at + size)))
            found.append(self._made(number, mine, rows_of[at : at + size].copy()))
            at += size
        return found

    def _made(self, number: int, values: pa.Array[Any], rows: Numbers) -> _Page:
        self._bounds.check(number, values)
        return _Page(values, rows, Keys.of(values[values.null_count :]))

    def _check(self, lookup: IndexFile, numbers: npt.NDArray[np.uint64]) -> None:
        """Raise FormatError if the bounds are not those of the pages.

        Releases up to 1.0.4 shortened the pages when they compacted a table, and left the bounds.
        """
        pages, rows = len(numbers), self._data.rows
        is_whole = rows <= pages * self._rows and (not pages or rows > (pages - 1) * self._rows)
        if not is_whole or (numbers != np.arange(pages, dtype=np.uint64)).any():
            message = (
                f"{lookup.source.path} has the bounds of {pages} pages of {self._rows} rows, but the index "
                f"has {rows} rows: an old release broke it when it compacted the table"
            )
            raise FormatError(message)


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """A page: its values, the rows that have them, and the keys of those that are not NULL, if there are any."""

    values: pa.Array[Any]
    rows: Numbers
    keys: Keys | None

    def rows_of(self, wanted: Wanted) -> Numbers:
        """Return the rows whose values are wanted."""
        if self.keys is None:
            message = f"values of {self.values.type} have no keys"
            raise TypeError(message)
        nulls = len(self.rows) - len(self.keys)
        begins, ends = wanted.begins(self.keys), wanted.ends(self.keys)
        if len(wanted) == 1:
            return self.rows[nulls + begins[0] : nulls + ends[0]]
        return self.rows[nulls + _within(begins, ends)]


def _page_bytes(page: _Page) -> int:
    return int(page.values.nbytes) + page.rows.nbytes


def _within(begins: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the numbers in ranges that ascend, each once; one that ends before it begins is empty."""
    if len(begins) == 1:
        return np.arange(begins[0], ends[0])
    starts = begins.copy()
    starts[1:] = np.maximum(starts[1:], ends[:-1])
    return Rows.ranges(starts, np.maximum(starts, ends)).indices()


class _PageBounds:
    """The bounds of pages that are sorted: those of neighbours together are bounds, too."""

    def __init__(
        self,
        low: pa.Array[Any],
        high: pa.Array[Any],
        nulls: npt.NDArray[np.uint64],
    ) -> None:
        if any(_falls(bounds) for bounds in (low, high)):
            message = "the bounds of the pages of an index do not ascend"
            raise FormatError(message)
        self._low, self._high = low, high
        self._known: dict[tuple[int, int], Bounds] = {}
        self._nulls = np.concatenate([np.zeros(1, np.uint64), np.cumsum(nulls)])

    @property
    def size_bytes(self) -> int:
        """Return how much memory the bounds take: those of pages, and of halves of halves of all pages."""
        return int(
            self._low.nbytes + self._high.nbytes + self._nulls.nbytes
        ) + 2 * _KNOWN_BYTES * len(self)

    def __len__(self) -> int:
        return len(self._low)

    @property
    def ends(self) -> tuple[str, str]:
        """Return the least and the greatest value as text."""
        if not len(self):
            return "NULL", "NULL"
        found = self._low[0], self._high[-1]
        least, greatest = map(_text, found)
        return least, greatest

    @lazy
    def _is_null_only(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._high.is_null().to_numpy(zero_copy_only=False))

    def matching(self, pruner: Pruner) -> Iterator[int]:
        """Yield the pages in which a value may pass, in order."""
        waiting = [(0, len(self))] if len(self) else []
        while waiting:
            start, end = waiting.pop()
            bounds = self._known.get((start, end))
            if bounds is None:
                bounds = self._known[start, end] = self._of(start, end)
            if not pruner.can_match({(VALUE,): bounds}):
                continue
            if end - start == 1:
                yield start
                continue
            middle = (start + end) // 2
            waiting += [(middle, end), (start, middle)]

    @lazy
    def keys(self) -> tuple[Keys, Keys] | None:
        """Return the lower and the upper bounds that are not NULL, as keys; None if values of the type have none."""
        found = []
        for bounds in (self._low, self._high):
            nulls = bounds.null_count
            keys = Keys.of(bounds[nulls:]) if bounds[:nulls].null_count == nulls else None
            if keys is None:
                return None
            found.append(keys)
        return found[0], found[1]

    def pages_of(self, wanted: Wanted) -> tuple[Int64Array, Int64Array]:
        """Return for each range that is wanted the first page in which it may be, and the one behind the last.

        The first page with a value may begin with NULLs: then nothing tells its least value.
        """
        if self.keys is None:
            message = f"bounds of {self._high.type} have no keys"
            raise TypeError(message)
        low, high = self.keys
        return wanted.begins(high) + self._high.null_count, wanted.ends(low) + self._low.null_count

    def _of(self, start: int, end: int) -> Bounds:
        """Return the bounds of neighbouring pages.  The last page is the shortest, and has no NULLs alone."""
        nulls = int(self._nulls[end] - self._nulls[start])
        if self._is_null_only[end - 1]:
            return Bounds(null_count=nulls, rows=nulls)
        return Bounds(bound_of(self._low[start]), bound_of(self._high[end - 1]), nulls)

    def check(self, page: int, values: pa.Array[Any]) -> None:
        """Raise FormatError if a page does not have the values that its bounds say, or not in order."""
        first, last = values[0], values[-1]
        nulls = int(self._nulls[page + 1] - self._nulls[page])
        is_sorted = values[:nulls].null_count == nulls == values.null_count and not _falls(values)
        is_same = _same(first, self._low[page]) and _same(last, self._high[page])
        if not (is_same and is_sorted):
            message = (
                f"page {page} of an index has other values than its bounds: an old release broke it when it "
                "compacted the table"
            )
            raise FormatError(message)


def _text(value: pa.Scalar) -> str:
    """Return a value as statistics show it."""
    if not value.is_valid:
        return "NULL"
    if is_nan(value):
        return "NaN"
    return str(value.as_py()).lower() if t.is_boolean(value.type) else str(value.as_py())


def _falls(bounds: pa.Array[Any]) -> bool:
    """Return whether a value is less than the one before it; Arrow does not order all types."""
    try:
        falls = pc.less(bounds[1:], bounds[:-1])
    except pa.ArrowNotImplementedError:
        return False
    return bool(falls.true_count)


def _same(value: pa.Scalar, bound: pa.Scalar) -> bool:
    if not (value.is_valid and bound.is_valid):
        return bool(value.is_valid == bound.is_valid)
    return bool(value.equals(bound)) or is_nan(value)


# --- making ---------------------------------------------------------------------------------------


def write_btree(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write the index of values, which are sorted in memory."""
    whole = joined(parts, kind)
    order = order_of(whole.values)
    _write_pages([rows_of(whole, order)] if len(order) else [], kind, new)


def rewrite_btree(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Write one index of several, of which some rows were moved or are gone; holds some blocks of each."""
    _write_pages(merged([_blocks(each) for each in old]), kind, new)


def page_rows_of(files: IndexFiles) -> dict[str, int]:
    """Return the parameters that an index was made with."""
    return {_ZONE_SIZE: files.file("page_lookup.lance").number("batch_size", _PAGE_ROWS)}


def _blocks(old: OldIndex) -> Iterator[Values]:
    data = old.files.file("page_data.lance")
    for start in range(0, data.rows, _BLOCK_ROWS):
        rows = Rows.between(start, min(start + _BLOCK_ROWS, data.rows))
        values, ids = data.read(data.names[:2], rows)
        numbers, there = old.moves.numbers(whole_numbers(ids, "row ids of an index"))
        yield Values(values if there.all() else values.filter(pa.array(there)), numbers)


def _write_pages(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write values that come in order."""
    size = new.number(_ZONE_SIZE, _PAGE_ROWS)
    columns = pa.field("values", kind), pa.field("ids", pa.uint64(), nullable=False)
    bounds = []
    with new.file("page_data.lance", *columns) as data:
        for pages in _whole_pages(parts, size):
            arrays = [pages.values, pa.array(pages.rows)]
            data.write(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(columns)))
            bounds.append(_bounds_of(pages.values, size))
    lookup_schema = pa.schema(
        [
            pa.field("min", kind),
            pa.field("max", kind),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("page_idx", pa.uint32(), nullable=False),
        ]
    )
    low, high, nulls = ([each[at] for each in bounds] for at in range(3))
    with new.file("page_lookup.lance", *lookup_schema) as lookup:
        lookup.add_schema_metadata({"batch_size": str(size), "range_partitioned": "false"})
        if bounds:
            counts = np.concatenate(nulls)
            arrays = [
                pa.concat_arrays(low),
                pa.concat_arrays(high),
                pa.array(counts, pa.uint32()),
                pa.array(np.arange(len(counts)), pa.uint32()),
            ]
            lookup.write(pa.RecordBatch.from_arrays(arrays, schema=lookup_schema))


def _whole_pages(parts: Iterable[Values], size: int) -> Iterator[Values]:
    """Yield the same rows, as many whole pages at once as there are; the last page may be short."""
    rest: list[Values] = []
    held = 0
    for part in parts:
        rest.append(part)
        held += len(part.rows)
        if held >= size:
            whole = joined(rest, part.values.type)
            end = held // size * size
            yield Values(whole.values[:end], whole.rows[:end])
            rest, held = [Values(whole.values[end:], whole.rows[end:])], held - end
    if held:
        yield joined(rest, rest[0].values.type)


def _bounds_of(
    values: pa.Array[Any], size: int
) -> tuple[pa.Array[Any], pa.Array[Any], npt.NDArray[np.int64]]:
    """Return the first and the last value of each page, and how many NULLs it has, which come first."""
    firsts = np.arange(0, len(values), size)
    ends = np.minimum(firsts + size, len(values))
    nulls = np.clip(values.null_count - firsts, 0, ends - firsts)
    return values.take(pa.array(firsts)), values.take(pa.array(ends - 1)), nulls
