"""BITMAP and LABEL_LIST: for each distinct value the set of its rows.

``bitmap_page_lookup.lance`` has the columns ``keys``, in any order, and ``bitmaps``, an address set each
(`pennon.index.row_sets_wire`).  In a BITMAP the rows of NULLs are those of the key NULL.  In a LABEL_LIST
keys are the items of lists, and the rows whose list is NULL are a global buffer of the file, whose number
is told by ``lance:label_list_nulls``; indices of release 2.0.1 and before lack it.  Release 0.15 wrote files of
version 0.1, in which the key NULL is 0 or an empty text: of what such an index finds, each row is tested.

Source: reference index-scalar, 4 and 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.runs import distinct
from pennon.encoding.rows import Rows
from pennon.errors import UnsupportedError
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Call, Column, Expression, Literal, nodes_of
from pennon.file.container.writer import DataFileWriter
from pennon.index.base import VALUE, Question, Values, joined, true_places
from pennon.index.column_types import check_values
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.kind import PLAIN_TYPES, Kind, LookupCost, RowNames, is_plain
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.order import order_of, rows_of, starts_of_equal
from pennon.index.row_set import NONE, UNKNOWN, Numbers, RowSet, Selection, ascending
from pennon.index.row_sets_wire import (
    parse_address_sets,
    serialize_address_set,
    serialize_address_sets,
)

_FILE: Final = "bitmap_page_lookup.lance"
_NULL_LISTS: Final = "lance:label_list_nulls"
_KEYS_AT_ONCE: Final = 4096
_QUESTIONS_KNOWN: Final = 256
_NUMBERS_KNOWN: Final = 1024
_ITEMS_NAMED: Final = 1024
_HALF: Final = np.uint64(32)
_LOW: Final = np.uint64(0xFFFFFFFF)
_NO_ROWS: Final = np.empty(0, np.uint64)
_HAS: Final = frozenset({"array_has", "array_contains", "list_has", "list_contains"})
_HAS_ANY: Final = frozenset({"array_has_any", "list_has_any", "arrays_overlap"})
_HAS_ALL: Final = frozenset({"array_has_all", "list_has_all"})


class _Keyed:
    """An open index of keys, each with the set of rows that have it."""

    _sets: _RowSets

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return int(self._sets.keys.nbytes)

    @property
    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex.statistics`."""
        return {"num_bitmaps": len(self._sets.keys)}

    def warm(self) -> None:
        """See `ScalarIndex.warm`."""


class Bitmap(_Keyed):
    """An open BITMAP index: it answers every condition on the values alone."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the keys."""
        self._sets = _RowSets(files)
        self.column = Column((VALUE,), self._sets.keys.type)
        self._known = _KnownKeys()

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        condition = question.condition
        if not self._sets.loses_nulls:
            return Selection.exact(self._sets.of(self._passing(condition)))
        if len(self._keys_that_pass(condition, pa.nulls(1, self.column.type))):
            return UNKNOWN
        return Selection.superset(self._sets.of(self._keys_that_pass(condition, self._sets.keys)))

    def _passing(self, condition: Expression) -> Int64Array:
        def find() -> Int64Array:
            return self._keys_that_pass(condition, self._sets.keys)

        return self._known.of(condition, find) if _is_a_name(condition) else find()

    def _keys_that_pass(self, condition: Expression, keys: pa.Array[Any]) -> Int64Array:
        return true_places(evaluate(condition, pa.RecordBatch.from_arrays([keys], [VALUE])))


class LabelList(_Keyed):
    """An open LABEL_LIST index: it answers which lists have items."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the keys, and which rows have no list.  ``column``: the type of the table's column."""
        self._sets = _RowSets(files)
        self.column = Column((VALUE,), column)
        self._item = self._sets.keys.type
        self._null_lists = self._sets.null_lists()
        self._known = _KnownKeys()

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        return self._search(question.condition)

    def _search(self, condition: Expression) -> Selection:
        if isinstance(condition, Call) and condition.function == "NOT":
            found = self._search(condition.arguments[0])
            if self._null_lists is None or not found.is_exact:
                return UNKNOWN
            return Selection.exact(found.may.union(self._null_lists).complement())
        wanted = items_of(condition)
        if wanted is None or wanted[0].type != self._item:
            return UNKNOWN
        items, has_all = wanted
        answer = Selection.superset if self._sets.loses_nulls else Selection.exact
        if not has_all and len(items) > 1:
            return answer(self._sets.of(self._keys_of(items)))
        each = [self._sets.of(self._keys_of_one(items[at : at + 1])) for at in range(len(items))]
        return answer(reduce(RowSet.intersection, each))

    def _keys_of_one(self, items: pa.Array[Any]) -> Int64Array:
        """Return the numbers of the keys that are the only item; those of items asked for lately are known."""
        return self._known.of(items[0], lambda: self._keys_of(items))

    def _keys_of(self, items: pa.Array[Any]) -> Int64Array:
        """Return the numbers of the keys that are among some items."""
        listed = pa.LargeListArray.from_arrays(pa.array([0, len(items)], pa.int64()), items)[0]
        among = Call("IN", (Column((VALUE,), self._item), Literal(listed)), pa.bool_())
        return true_places(evaluate(among, pa.RecordBatch.from_arrays([self._sets.keys], [VALUE])))


def items_of(condition: Expression) -> tuple[pa.Array[Any], bool] | None:
    """Return the items that lists should have, and whether all of them; None: another condition."""
    if not isinstance(condition, Call) or len(condition.arguments) != 2:
        return None
    column, given = condition.arguments
    if not (isinstance(column, Column) and isinstance(given, Literal) and given.value.is_valid):
        return None
    if condition.function in _HAS:
        return pa.array([given.value.as_py()], given.type), False
    if condition.function not in _HAS_ANY | _HAS_ALL:
        return None
    items = given.value.values
    is_known = len(items) > 0 and items.null_count == 0
    return (items, condition.function in _HAS_ALL) if is_known else None


class _KnownKeys:
    """The numbers of the keys that were asked for lately, where these are not many."""

    def __init__(self) -> None:
        self._known: dict[object, Int64Array] = {}

    def of(self, asked: object, find: Callable[[], Int64Array]) -> Int64Array:
        """Return the numbers that a question has, found now or lately."""
        found = self._known.get(asked)
        if found is None:
            found = find()
            if len(found) <= _NUMBERS_KNOWN:
                while len(self._known) >= _QUESTIONS_KNOWN:
                    self._known.pop(next(iter(self._known)), None)
                self._known[asked] = found
        return found


def _is_a_name(condition: Expression) -> bool:
    """Return whether conditions that are equal ask the same: -0.0 and 0.0 are equal; what is long takes memory."""
    return all(_is_short(each.value) for each in nodes_of(condition) if isinstance(each, Literal))


def _is_short(value: pa.Scalar) -> bool:
    kind = value.type
    if t.is_large_list(kind) and value.is_valid and len(value.values) <= _ITEMS_NAMED:
        kind = kind.value_type
    return not (t.is_nested(kind) or t.is_floating(kind))


class _RowSets:
    """The keys of an index, and their rows when these are asked for."""

    def __init__(self, files: IndexFiles) -> None:
        self._folder, self._remember = files.folder, files.remember
        self._file: IndexFile = files.file(_FILE)
        (self.keys,) = self._file.read(["keys"])
        self.loses_nulls = self._file.loses_nulls

    def check(self, kind: pa.DataType) -> None:
        """Raise FormatError unless the keys are of a type."""
        check_values(self._file.source.path, "keys", self.keys.type, kind)

    def of(self, numbers: Int64Array) -> RowSet:
        """Return the rows of keys."""
        key = "rows of keys", self._folder, numbers.tobytes()
        return self._remember(key, lambda: self._read(numbers), _size_of)

    def each(self, numbers: Int64Array) -> list[RowSet]:
        """Return the rows of each of some keys, whose numbers ascend."""
        sets = self._bytes(numbers)
        return [parse_address_sets([] if each is None else [each]) for each in sets]

    def _read(self, numbers: Int64Array) -> RowSet:
        return parse_address_sets(each for each in self._bytes(numbers) if each is not None)

    def _bytes(self, numbers: Int64Array) -> list[bytes | None]:
        (bitmaps,) = self._file.read(["bitmaps"], Rows.at(numbers))
        found: list[bytes | None] = bitmaps.to_pylist()
        return found

    def null_lists(self) -> RowSet | None:
        """Return the rows that have no list; None where the index does not know."""
        return self._file.row_set(_NULL_LISTS)


def _size_of(rows: RowSet) -> int:
    return rows.starts.nbytes + rows.lasts.nbytes


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows that an index names: those of its keys, and those that have no list."""
    sets = _RowSets(files)
    found = sets.null_lists() or NONE
    for start in range(0, len(sets.keys), _KEYS_AT_ONCE):
        numbers = np.arange(start, min(start + _KEYS_AT_ONCE, len(sets.keys)))
        found = found.union(*sets.each(numbers))
    return found


# --- making ---------------------------------------------------------------------------------------


def write_bitmap(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write a BITMAP of values."""
    with _file(kind, new) as file:
        _write_keys(file, _grouped(joined(parts, kind)), kind)


def write_label_list(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write a LABEL_LIST of lists."""
    null_lists, items = [], []
    for part in parts:
        nulls = np.asarray(part.values.is_null().to_numpy(zero_copy_only=False))
        null_lists.append(part.rows[nulls])
        parents = pc.list_parent_indices(part.values).to_numpy()
        items.append(Values(pc.list_flatten(part.values), part.rows[parents]))
    item = kind.value_type
    with _file(item, new) as file:
        _write_keys(file, _grouped(joined(items, item)), item)
        _write_null_lists(file, np.concatenate([_NO_ROWS, *null_lists]))


def rewrite_bitmap(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Merge BITMAP segments into one, and remap or drop rows."""
    with _file(kind, new) as file:
        _write_keys(file, _united([_Moved(each, kind) for each in old], kind), kind)


def rewrite_label_list(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Write one LABEL_LIST of several; raises UnsupportedError if one does not know which lists are NULL."""
    sources = [_Moved(each, kind.value_type) for each in old]
    with _file(kind.value_type, new) as file:
        _write_keys(file, _united(sources, kind.value_type), kind.value_type)
        nulls = [each.null_lists() for each in sources]
        _write_null_lists(file, np.concatenate([_NO_ROWS, *nulls]))


class _Moved:
    """The keys of an old index, and where their rows are now."""

    def __init__(self, old: OldIndex, kind: pa.DataType) -> None:
        self._sets = _RowSets(old.files)
        self._sets.check(kind)
        self._moves = old.moves
        self.keys = self._sets.keys

    def rows(self, numbers: Int64Array) -> dict[int, Numbers]:
        """Return the rows of keys by their numbers, which ascend."""
        sets = self._sets.each(numbers)
        moved = (self._moves.rows(each).numbers() for each in sets)
        return dict(zip(numbers.tolist(), moved, strict=True))

    def null_lists(self) -> Numbers:
        """Return the rows that have no list.  Raises UnsupportedError where the index does not know."""
        found = self._sets.null_lists()
        if found is None:
            message = (
                "an index of a release up to 2.0.1 does not know which lists are NULL; make it anew: "
                "optimize_indices(retrain=True)"
            )
            raise UnsupportedError(message)
        return self._moves.rows(found).numbers()


@dataclass(frozen=True, slots=True)
class _Keys:
    """Some keys; the rows of key i lie between borders i and i + 1."""

    keys: pa.Array[Any]
    rows: Numbers
    borders: Int64Array


def _grouped(whole: Values) -> Iterator[_Keys]:
    """Yield some values at a time, each with its rows."""
    placed = rows_of(whole, order_of(whole.values))
    borders = np.append(starts_of_equal(placed.values), len(placed.rows))
    for at in range(0, len(borders) - 1, _KEYS_AT_ONCE):
        some = borders[at : at + _KEYS_AT_ONCE + 1]
        keys = placed.values.take(pa.array(some[:-1]))
        yield _Keys(keys, placed.rows[some[0] : some[-1]], some - some[0])


def _united(sources: Sequence[_Moved], kind: pa.DataType) -> Iterator[_Keys]:
    """Yield some keys of any source at a time, each with all of its rows; keys without rows are left out."""
    numbers = [
        np.arange(len(each.keys), dtype=np.uint64) | np.uint64(at << 32)
        for at, each in enumerate(sources)
    ]
    pairs = zip(sources, numbers, strict=True)
    for each in _grouped(joined([Values(s.keys, number) for s, number in pairs], kind)):
        wanted = np.sort(each.rows)
        of = (wanted >> _HALF).astype(np.int64)
        found = {
            at: source.rows((wanted[of == at] & _LOW).astype(np.int64))
            for at, source in enumerate(sources)
        }
        parts = [found[place >> 32][place & 0xFFFFFFFF] for place in each.rows.tolist()]
        counts = np.add.reduceat([len(part) for part in parts], each.borders[:-1])
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        filled = np.flatnonzero(counts)
        yield _Keys(
            each.keys.take(pa.array(filled)),
            np.concatenate([_NO_ROWS, *parts]),
            borders[np.append(filled, len(counts))],
        )


@contextmanager
def _file(kind: pa.DataType, new: NewFiles) -> Iterator[DataFileWriter]:
    columns = pa.field("keys", kind), pa.field("bitmaps", pa.binary())
    with new.file(_FILE, *columns) as file:
        yield file


def _write_keys(file: DataFileWriter, groups: Iterable[_Keys], kind: pa.DataType) -> None:
    schema = pa.schema([pa.field("keys", kind), pa.field("bitmaps", pa.binary())])
    count = 0
    for each in groups:
        sets = serialize_address_sets(*ascending(each.rows, each.borders))
        arrays = [each.keys, sets.cast(pa.binary())]
        file.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        count += len(each.keys)
    file.add_schema_metadata({"lance:index_stats": json.dumps({"num_bitmaps": count})})


def _write_null_lists(file: DataFileWriter, rows: Numbers) -> None:
    number = file.add_global_buffer(serialize_address_set(distinct(rows)))
    file.add_schema_metadata({_NULL_LISTS: str(number)})


def _is_list_of_plain(kind: pa.DataType) -> bool:
    return (t.is_list(kind) or t.is_large_list(kind)) and is_plain(kind.value_type)


def _answers_of_labels(condition: Expression, version: int) -> bool:
    """Return whether lists are asked for items; an index of version 0 does not know which lists are NULL."""
    if isinstance(condition, Call) and condition.function == "NOT":
        return version > 0 and _answers_of_labels(condition.arguments[0], version)
    return items_of(condition) is not None


KIND: Final = Kind(
    name="Bitmap",
    details="BitmapIndexDetails",
    user_names=("BITMAP",),
    names_rows_by=RowNames.ROW_IDS,
    reads=0,
    open=lambda files, _: Bitmap(files),
    answers=lambda *_: True,
    rows_named=rows_named,
    names_all=True,
    takes=is_plain,
    types=PLAIN_TYPES,
    build=write_bitmap,
    merge=rewrite_bitmap,
    may_be_json_target=True,
    lookup_cost=LookupCost.POINT,
)
LABEL_LIST_KIND: Final = Kind(
    name="LabelList",
    details="LabelListIndexDetails",
    user_names=("LABEL_LIST", "LABELLIST"),
    names_rows_by=RowNames.ROW_IDS,
    reads=1,
    open=LabelList,
    answers=_answers_of_labels,
    rows_named=rows_named,
    takes=_is_list_of_plain,
    types="a list or large list of plain values",
    build=write_label_list,
    merge=rewrite_label_list,
)
