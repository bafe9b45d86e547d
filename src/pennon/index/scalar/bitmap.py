"""BITMAP and LABEL_LIST: for each distinct value the set of its rows.

``bitmap_page_lookup.lance`` has the columns ``keys``, in any order, and ``bitmaps``, an address set each
(`pennon.index.row_sets_wire`).  In a BITMAP the rows of NULLs are those of the key NULL.  In a LABEL_LIST
keys are the items of lists, and the rows whose list is NULL are a global buffer of the file, whose number
is told by ``lance:label_list_nulls``; indices of release 2.0.1 and before lack it.  Release 0.15 wrote files of
version 0.1, in which the key NULL is 0 or an empty text: of what such an index finds, each row is tested.

Source: reference index-scalar, 4 and 5.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.encoding.rows import Rows
from pennon.errors import FormatError
from pennon.expr.evaluate import evaluate
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.index.base import VALUE, true_places
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.row_set import UNKNOWN, RowSet, Selection
from pennon.index.row_sets_wire import parse_address_sets

_FILE: Final = "bitmap_page_lookup.lance"
_NULL_LISTS: Final = "lance:label_list_nulls"
_HAS: Final = frozenset({"array_has", "array_contains", "list_has", "list_contains"})
_HAS_ANY: Final = frozenset({"array_has_any", "list_has_any", "arrays_overlap"})
_HAS_ALL: Final = frozenset({"array_has_all", "list_has_all"})


class Bitmap:
    """An open BITMAP index: it answers whatever can be asked of the values alone."""

    def __init__(self, files: IndexFiles) -> None:
        """Read the keys."""
        self._sets = _RowSets(files)
        self.column = Column((VALUE,), self._sets.keys.type)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return int(self._sets.keys.nbytes)

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        if not self._sets.loses_nulls:
            return Selection.exact(self._sets.of(self._keys_that_pass(condition, self._sets.keys)))
        if len(self._keys_that_pass(condition, pa.nulls(1, self.column.type))):
            return UNKNOWN
        return Selection.superset(self._sets.of(self._keys_that_pass(condition, self._sets.keys)))

    def _keys_that_pass(self, condition: Expression, keys: pa.Array[Any]) -> Int64Array:
        return true_places(evaluate(condition, pa.RecordBatch.from_arrays([keys], [VALUE])))


class LabelList:
    """An open LABEL_LIST index: it answers which lists have items."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the keys, and which rows have no list.  ``column``: the type of the table's column."""
        self._sets = _RowSets(files)
        self.column = Column((VALUE,), column)
        self._item = self._sets.keys.type
        self._null_lists = self._sets.null_lists()

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return int(self._sets.keys.nbytes)

    def search(self, condition: Expression) -> Selection:
        """See `ScalarIndex.search`."""
        if isinstance(condition, Call) and condition.function == "NOT":
            found = self.search(condition.arguments[0])
            if self._null_lists is None or not found.is_exact:
                return UNKNOWN
            return Selection.exact(found.may.union(self._null_lists).complement())
        wanted = items_of(condition)
        if wanted is None or wanted[0].type != self._item:
            return UNKNOWN
        items, has_all = wanted
        answer = Selection.superset if self._sets.loses_nulls else Selection.exact
        if not has_all:
            return answer(self._sets.of(self._keys_of(items)))
        each = [self._sets.of(self._keys_of(items[at : at + 1])) for at in range(len(items))]
        found_rows = each[0]
        for rows in each[1:]:
            found_rows = found_rows.intersection(rows)
        return answer(found_rows)

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


class _RowSets:
    """The keys of an index, and their rows when these are asked for."""

    def __init__(self, files: IndexFiles) -> None:
        self._folder, self._remember = files.folder, files.remember
        self._file: IndexFile = files.file(_FILE)
        (self.keys,) = self._file.read(["keys"])
        self.loses_nulls = self._file.loses_nulls

    def of(self, numbers: Int64Array) -> RowSet:
        """Return the rows of keys."""
        key = "rows of keys", self._folder, numbers.tobytes()
        return self._remember(key, lambda: self._read(numbers), _size_of)

    def _read(self, numbers: Int64Array) -> RowSet:
        (bitmaps,) = self._file.read(["bitmaps"], Rows.at(numbers))
        if not (pa.types.is_binary(bitmaps.type) or pa.types.is_large_binary(bitmaps.type)):
            message = f"the bitmaps of an index are {bitmaps.type}"
            raise FormatError(message)
        return parse_address_sets(each for each in bitmaps.to_pylist() if each is not None)

    def null_lists(self) -> RowSet | None:
        """Return the rows that have no list; None where the index does not know."""
        number = self._file.data.schema.metadata.get(_NULL_LISTS)
        if number is None:
            return None
        if not number.isdigit():
            message = f"{self._file.source.path}: its NULL lists are buffer {number!r}, which is not there"
            raise FormatError(message)
        return parse_address_sets([self._file.global_buffer(int(number)).to_pybytes()])


def _size_of(rows: RowSet) -> int:
    return rows.starts.nbytes + rows.lasts.nbytes
