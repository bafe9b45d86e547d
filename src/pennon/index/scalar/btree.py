"""BTREE: all rows sorted by value, in pages, and the bounds of each page.

``page_data.lance`` has the columns ``values`` and ``ids``, which releases up to 0.30 call ``row_ids`` where they
have compacted the table; page k are its rows from ``k * batch_size`` on.
``page_lookup.lance`` has a row for each page: ``min``, ``max``, ``null_count``, ``page_idx``.  NULLs come first.

A condition is asked of the bounds as of any page of data; then it is evaluated over the values of the pages
that are left, so the answer is a scan's answer whatever the condition.

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
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, UnsupportedError
from pennon.expr.evaluate import evaluate
from pennon.expr.prune import Bounds, Pruner
from pennon.expr.tree import Call, Column, Expression, Literal
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
from pennon.index.order import merged, numbers_of, order_of, rows_of
from pennon.index.row_set import NONE, UNKNOWN, RowSet, Selection

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
            self._files.side_by_side(
                self._page, range(start, min(start + _AT_ONCE, len(self._bounds)))
            )

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        most = max(len(self._bounds) // _MOST_SHARE, _ALWAYS)
        wanted = _wanted(condition)
        if wanted is None or not self._bounds.are_of(wanted.type):
            pages = list(islice(self._bounds.matching(Pruner(condition)), most + 1))
        else:
            pages = self._bounds.holding(wanted).tolist()
        if len(pages) > most:
            return UNKNOWN
        if not pages:
            return Selection.exact(NONE)
        values, ids = zip(*self._files.side_by_side(self._page, pages), strict=True)
        batch = pa.RecordBatch.from_arrays([pa.concat_arrays(values)], [VALUE])
        passing = true_places(evaluate(condition, batch))
        return Selection.exact(RowSet.of(np.concatenate(ids)[passing]))

    def _page(self, page: int) -> tuple[pa.Array[Any], npt.NDArray[np.uint64]]:
        key = "page", self._files.folder, page
        return self._files.remember(key, lambda: self._read_page(page), _page_bytes)

    def _read_page(self, page: int) -> tuple[pa.Array[Any], npt.NDArray[np.uint64]]:
        start = page * self._rows
        rows = Rows.between(start, min(start + self._rows, self._data.rows))
        values, ids = self._data.read(self._data.names[:2], rows)
        self._bounds.check(page, values)
        return values, whole_numbers(ids, "row ids of an index")

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


def _wanted(condition: Expression) -> pa.Array[Any] | None:
    """Return the values one of which a condition wants, where these are whole numbers; None for any other one.

    Many of them are looked for in the bounds of all pages at once.
    """
    if not isinstance(condition, Call) or condition.function not in {"=", "IN"}:
        return None
    column, literal = condition.arguments
    if not isinstance(column, Column) or not isinstance(literal, Literal):
        return None
    value = literal.value
    items = value.values if condition.function == "IN" else pa.repeat(value, 1)
    kind = column.type
    is_whole = t.is_integer(kind) or (t.is_temporal(kind) and not t.is_interval(kind))
    return items.drop_null() if is_whole and items.type == kind else None


def _page_bytes(page: tuple[pa.Array[Any], npt.NDArray[np.uint64]]) -> int:
    return int(page[0].nbytes) + page[1].nbytes


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

    def are_of(self, kind: pa.DataType) -> bool:
        """Return whether the bounds have a type."""
        return bool(self._low.type == kind == self._high.type)

    def holding(self, wanted: pa.Array[Any]) -> Int64Array:
        """Return the pages in which one of some whole numbers may be, in order."""
        numbers = np.sort(_numbers(wanted))
        low, high = self._ends
        there = np.searchsorted(numbers, low, "left") < np.searchsorted(numbers, high, "right")
        return np.flatnonzero(there & ~self._is_null_only)

    @lazy
    def _ends(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the bounds as numbers: the least there is where a page begins with NULLs."""
        return _numbers(self._low), _numbers(self._high)

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


def _numbers(values: pa.Array[Any]) -> npt.NDArray[Any]:
    """Return whole numbers, and the least one in place of NULLs."""
    numbers = numbers_of(values.drop_null())
    if numbers is None:
        raise TypeError(values.type)
    found = np.full(len(values), np.iinfo(numbers.dtype).min, numbers.dtype)
    found[np.asarray(values.is_valid())] = numbers
    return found


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
