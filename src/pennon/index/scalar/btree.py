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

from pennon.core.byte_ranges import Int64Array
from pennon.core.counted import counted
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import places
from pennon.encoding.rows import Rows
from pennon.errors import FormatError, UnsupportedError
from pennon.expr.evaluate import evaluate
from pennon.expr.prune import Pruner, can_prune
from pennon.expr.tree import Column
from pennon.index.base import VALUE, Question, Values, joined, true_places
from pennon.index.column_types import check_values
from pennon.index.files import IndexFile, IndexFiles, whole_numbers
from pennon.index.kind import PLAIN_TYPES, Kind, LookupCost, Parameters, RowNames, is_plain
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.order import Keys, merged, order_of, rows_of
from pennon.index.row_set import NONE, UNKNOWN, Numbers, RowSet, Selection
from pennon.index.scalar.page_bounds import PageBounds
from pennon.index.scalar.wanted import Wanted, wanted_of

_PAGE_ROWS: Final = 4096
_ZONE_SIZE: Final = "zone_size"
"""What users call the rows of a page."""
_BLOCK_ROWS: Final = 1 << 16
"""Rows of an old index that are held at once."""
_MOST_SHARE: Final = 4
"""Where more than one page of so many may match, to read the column is cheaper."""
_AT_ONCE: Final = 64
"""So many pages are read side by side; so many neighbours, the first a multiple of it, are a block."""
_ALWAYS: Final = 8
"""So few pages are read always."""
_SPARSE: Final = 64
"""Where at most one value of so many rows is looked for, what each of them needs is read: a page or two."""


class BTree:
    """An open BTREE index."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the bounds of all pages.  Raises FormatError if they do not fit the pages."""
        self._files = files
        self._blocks_read: set[int] = set()  # at least once; some of them are remembered
        names = ("page_lookup.lance", "page_data.lance")
        lookup, self._data = files.side_by_side(files.file, names)
        self.column = Column((VALUE,), self._data.type_of("values"))
        self._names = _names_in(self._data)
        self._rows = lookup.number("batch_size", _PAGE_ROWS)
        low, high, nulls, numbers = lookup.read(["min", "max", "null_count", "page_idx"])
        if self._data.loses_nulls and whole_numbers(nulls, "null counts").any():
            message = f"{self._data.source.path} is a file of version 0.1, in which NULLs of an index are lost"
            raise UnsupportedError(message)
        for name, bounds in ("min", low), ("max", high):
            check_values(lookup.source.path, name, bounds.type, self.column.type)
        self._bounds = PageBounds(low, high, whole_numbers(nulls, "null counts"))
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
            self._block(start // _AT_ONCE)

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        wanted = question.once(wanted_of)
        if wanted is not None and self._bounds.keys is not None:
            return self._search_sorted(wanted)
        pages = list(islice(self._bounds.matching(question.once(Pruner)), self._most + 1))
        if len(pages) > self._most:
            return UNKNOWN
        if not pages:
            return Selection.exact(NONE)
        found = self._pages(pages)
        values = pa.concat_arrays([page.values for page in found])
        batch = pa.RecordBatch.from_arrays([values], [VALUE])
        passing = true_places(evaluate(question.condition, batch))
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
        if not len(pages):
            return Selection.exact(NONE)
        firsts = places(ends, pages, behind=True).tolist()
        behind = places(begins, pages, behind=True).tolist()
        found = [np.empty(0, np.uint64)]
        for part, start, end in self._parts(pages):
            found.append(part.rows_of(wanted.part(firsts[start], behind[end - 1])))
        return Selection.exact(RowSet.of(np.concatenate(found)))

    def _parts(self, pages: Int64Array) -> Iterator[tuple[_Page, int, int]]:
        """Yield what some pages, which ascend, hold: blocks that are remembered or wanted for the most part, and pages.

        The numbers beside each are where in ``pages`` those begin and end that it holds.
        """
        apart: list[int] = []
        for block, start, end in _blocks_of(pages):
            size = min(_AT_ONCE, len(self._bounds) - block * _AT_ONCE)
            if end - start > max(_ALWAYS, size // 2):
                yield self._swept(block), start, end
                continue
            known = (
                self._files.known(self._block_key(block)) if block in self._blocks_read else None
            )
            if known is not None:
                yield known, start, end
            else:
                apart += range(start, end)
        for begin in range(0, len(apart), _AT_ONCE):
            some = apart[begin : begin + _AT_ONCE]
            for at, page in zip(some, self._pages(pages[some].tolist()), strict=True):
                yield page, at, at + 1

    def _block(self, number: int) -> _Page:
        """Return the pages of a block as one, and remember them."""
        self._blocks_read.add(number)
        return self._files.remember(
            self._block_key(number), lambda: self._read_block(number), _page_bytes
        )

    def _swept(self, number: int) -> _Page:
        """Return the pages of a block as one, and remember them if they are wanted a second time.

        A merge wants most blocks, each once: if they are not held, all are read into the same memory.
        """
        if number in self._blocks_read:
            return self._block(number)
        self._blocks_read.add(number)
        return self._read_block(number)

    def _block_key(self, number: int) -> tuple[str, str, int]:
        return "pages", self._files.folder, number

    def _read_block(self, number: int) -> _Page:
        first = number * _AT_ONCE
        return self._read_neighbours(first, min(first + _AT_ONCE, len(self._bounds)))

    def _read_neighbours(self, first: int, end: int) -> _Page:
        """Read neighbouring pages as one."""
        rows = Rows.between(first * self._rows, min(end * self._rows, self._data.rows))
        values, ids = self._data.read(self._names, rows)
        return self._made(first, values, whole_numbers(ids, "row ids of an index"))

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
            self._key(number), lambda: self._read_neighbours(number, number + 1), _page_bytes
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
        values, ids = self._data.read(self._names, rows)
        rows_of = whole_numbers(ids, "row ids of an index")
        found, at = [], 0
        for number, size in zip(numbers, (ends - starts).tolist(), strict=True):
            # what is remembered is a copy: a part would hold all that was read with it
            mine = values.take(pa.array(np.arange(at, at + size)))
            found.append(self._made(number, mine, rows_of[at : at + size].copy()))
            at += size
        return found

    def _made(self, first: int, values: pa.Array[Any], rows: Numbers) -> _Page:
        self._bounds.check(first, values, self._rows)
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
    """A page, or neighbours: the values, the rows that have them, and the keys of those that are not NULL, if any."""

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


def _names_in(data: IndexFile) -> Sequence[str]:
    """Return the columns of the values and of their rows in the file of the pages.  Raises FormatError."""
    found = data.names
    if found not in (["values", "ids"], ["values", "row_ids"]):
        message = f"{data.source.path} has the columns {', '.join(found)}, and no values and ids"
        raise FormatError(message)
    return found


def _page_bytes(page: _Page) -> int:
    return int(page.values.nbytes) + page.rows.nbytes


def _blocks_of(pages: Int64Array) -> Iterator[tuple[int, int, int]]:
    """Yield the blocks of pages, which ascend, each with where its pages begin and end."""
    start = 0
    while start < len(pages):
        block = int(pages[start]) // _AT_ONCE
        end = int(places(pages, np.array([(block + 1) * _AT_ONCE], np.int64))[0])
        yield block, start, end
        start = end


def _within(begins: Int64Array, ends: Int64Array) -> Int64Array:
    """Return the numbers in ranges that ascend, each once; one that ends before it begins is empty."""
    if len(begins) == 1:
        found: Int64Array = counted(max(int(ends[0]) - int(begins[0]), 0)) + begins[0]
        return found
    starts = begins.copy()
    starts[1:] = np.maximum(starts[1:], ends[:-1])
    return Rows.ranges(starts, np.maximum(starts, ends)).indices()


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows that an index names."""
    data = files.file("page_data.lance")
    (rows,) = data.read(_names_in(data)[1:2])
    return RowSet.of(whole_numbers(rows, "row ids"))


# --- making ---------------------------------------------------------------------------------------


def write_btree(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write the index of values, which are sorted in memory."""
    whole = joined(parts, kind)
    order = order_of(whole.values)
    _write_pages([rows_of(whole, order)] if len(order) else [], kind, new)


def rewrite_btree(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Merge BTREE segments into one, and remap or drop rows; holds some blocks of each."""
    _write_pages(merged([_blocks(each, kind) for each in old]), kind, new)


def page_rows_of(files: IndexFiles) -> dict[str, int]:
    """Return the parameters that an index was made with."""
    return {_ZONE_SIZE: files.file("page_lookup.lance").number("batch_size", _PAGE_ROWS)}


def _blocks(old: OldIndex, kind: pa.DataType) -> Iterator[Values]:
    data = old.files.file("page_data.lance")
    names = _names_in(data)
    check_values(data.source.path, "values", data.type_of("values"), kind)
    for start in range(0, data.rows, _BLOCK_ROWS):
        rows = Rows.between(start, min(start + _BLOCK_ROWS, data.rows))
        values, ids = data.read(names, rows)
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


KIND: Final = Kind(
    name="BTree",
    details="BTreeIndexDetails",
    user_names=("BTREE",),
    names_rows_by=RowNames.BY_VERSION,
    reads=1,
    open=lambda files, _: BTree(files),
    answers=lambda condition, _: can_prune(condition),
    rows_named=rows_named,
    names_all=True,
    takes=is_plain,
    types=PLAIN_TYPES,
    build=write_btree,
    merge=rewrite_btree,
    parameters=Parameters(names=frozenset({_ZONE_SIZE}), of_files=page_rows_of),
    may_be_json_target=True,
    lookup_cost=LookupCost.POINT,
)
