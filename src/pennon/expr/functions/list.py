"""Functions of lists that do not make lists.  Items count from 1, from the end with negatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.expr.cast import Datum, cast
from pennon.expr.float_order import one_form
from pennon.expr.functions.list_items import Items, check_lists, in_order, item_type_of, items_of
from pennon.expr.operators import equal
from pennon.expr.rowwise import Entry, as_arrays, by_row, check_types, count_of, is_null, nulls_like
from pennon.expr.types import is_list


def element(lists: Datum, number: Datum) -> Datum:
    """Return an item of each list; NULL where the list is shorter."""
    check_types([lists, number], [is_list, t.is_integer])
    if is_null(number):
        return nulls_like([lists], lists.type.value_type)
    whole, numbers = as_arrays([lists, number])
    lengths = _lengths(whole)
    position = np.asarray(pc.fill_null(pc.cast(numbers, pa.int64()), 0))
    at = np.where(position > 0, position - 1, lengths + position)
    inside = (position != 0) & (at >= 0) & (at < lengths)
    starts = np.cumsum(lengths) - lengths
    places = pa.array(np.where(inside, starts + at, 0), pa.int64(), mask=~inside)
    found = pc.list_flatten(whole).take(places)
    return found if count_of([lists, number]) is not None else found[0]


def _lengths(lists: pa.Array) -> Int64Array:
    return np.asarray(pc.fill_null(pc.list_value_length(lists), 0), np.int64)


# --- what lists contain ---------------------------------------------------------------------------


def _where_any(lists: pa.Array, test: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Tell which lists have an item that passes a test."""
    passed = pc.fill_null(test(pc.list_flatten(lists)), False)  # noqa: FBT003 - Arrow's order
    owners = pc.list_parent_indices(lists).filter(passed)
    found = np.zeros(len(lists), np.bool_)
    found[np.asarray(owners)] = True
    return pa.array(found, pa.bool_(), mask=np.asarray(pc.is_null(lists)))


def _has(lists: Datum, item: Datum) -> Datum:
    check_types([lists], [is_list])
    if is_null(item) or is_null(lists):
        return nulls_like([lists, item], pa.bool_())
    check_lists([lists, item], 1)
    is_plain = not is_list(item.type)
    if is_plain and isinstance(lists, pa.Array) and isinstance(item, pa.Scalar):
        return _has_literal(lists, item)
    found = _by_codes([lists, item], lambda row: row[1] <= row[0], needs_item=True)
    if isinstance(lists, pa.Scalar) and lists.values.null_count:  # as IN, which the reference makes
        return pc.if_else(found, found, pa.scalar(None, pa.bool_()))
    return found


def _has_literal(lists: pa.Array, item: pa.Scalar) -> pa.Array:
    kind = item_type_of([lists, item], 1)
    wanted = cast(item, kind)
    return _where_any(lists, lambda items: equal(cast(items, kind), wanted))


def _has_any(lists: Datum, items: Datum) -> Datum:
    check_types([lists, items], [is_list])
    if t.is_null(items.type):
        return nulls_like([lists, items], pa.bool_())
    if _is_nothing(items):
        return _constant(lists, value=False)
    if isinstance(lists, pa.Array) and isinstance(items, pa.Scalar) and items.is_valid:
        kind = item_type_of([lists, items], 2)
        wanted = one_form(cast(items.values, kind))
        return _where_any(lists, lambda found: _is_in(cast(found, kind), wanted))
    return _by_codes([lists, items], lambda row: bool(row[0] & row[1]))


def _has_all(lists: Datum, items: Datum) -> Datum:
    check_types([lists, items], [is_list])
    if t.is_null(items.type):
        return nulls_like([lists, items], pa.bool_())
    if _is_nothing(items):
        return _constant(lists, value=True)
    if isinstance(lists, pa.Array) and isinstance(items, pa.Scalar) and items.is_valid:
        return _has_all_literals(lists, items)
    return _by_codes([lists, items], lambda row: row[1] <= row[0])


def _has_all_literals(lists: pa.Array, items: pa.Scalar) -> pa.Array:
    kind = item_type_of([lists, items], 2)
    every = pa.array(np.ones(len(lists), np.bool_), mask=np.asarray(pc.is_null(lists)))
    each = [
        _where_any(lists, lambda found, w=wanted: _is_in(cast(found, kind), w))  # type: ignore[misc]
        for wanted in _singles(one_form(cast(items.values, kind)))
    ]
    return reduce(pc.and_, each, every)


def _is_in(items: pa.Array, wanted: pa.Array) -> pa.Array:
    """Return which items are among those wanted, which are in one form."""
    return pc.is_in(one_form(items), value_set=wanted)


def _singles(items: pa.Array) -> list[pa.Array]:
    return [items.slice(at, 1) for at in range(len(items))]


def _is_nothing(items: Datum) -> bool:
    """Tell whether this is ``[]``, which is no list of anything."""
    return isinstance(items, pa.Scalar) and t.is_null(items.type.value_type)


def _constant(lists: Datum, *, value: bool) -> Datum:
    found = pa.scalar(value)
    return found if isinstance(lists, pa.Scalar) else pa.repeat(found, len(lists))


def _by_codes(
    arguments: Sequence[Datum], test: Callable[[list[set[int]]], bool], *, needs_item: bool = False
) -> Datum:
    """Return what a test says of the sets of codes of each row; NULL where a list is NULL."""
    lists = 1 if needs_item else 2
    items = items_of(arguments, item_type_of(arguments, lists), lists)
    codes = items.codes()
    known = items.values.is_valid().to_pylist()
    answers: list[bool | None] = []
    for row in items.rows:
        if any(each is None for each in row) or (needs_item and not known[row[1][0]]):  # type: ignore[index]
            answers.append(None)
            continue
        answers.append(test([{codes[at] for at in each or ()} for each in row]))
    found = pa.array(answers, pa.bool_())
    return found if count_of(arguments) is not None else found[0]


# --- what lists are like --------------------------------------------------------------------------


def _length(lists: Datum, dimension: Datum | None = None) -> Datum:
    check_types([lists], [is_list])
    number = 1 if dimension is None else dimension.as_py()
    if number == 1:
        return pc.cast(pc.list_value_length(lists), pa.uint64())
    if not isinstance(number, int):
        message = "a dimension is a whole number"
        raise pa.ArrowInvalid(message)
    depth = _depth(lists.type)
    if not 1 < number <= depth:
        return nulls_like([lists], pa.uint64())
    return by_row(lambda items: _dimensions(items, depth)[number - 1], pa.uint64())(lists)


def _count(lists: Datum) -> Datum:
    """Return how many items there are; of lists of lists as many as if all were like the first."""
    check_types([lists], [is_list])
    depth = _depth(lists.type)
    if depth == 1:
        return _length(lists)
    return by_row(lambda items: math.prod(_dimensions(items, depth)), pa.uint64())(lists)


def _dimensions(items: list[Any], depth: int) -> list[int]:
    """Return the length of a list, of its first item, of the first one in that, and so on."""
    found = []
    for _ in range(depth):
        found.append(len(items))
        items = (items[0] if items else None) or []
    return found


def _depth(kind: pa.DataType) -> int:
    """Return how many lists are within each other."""
    depth = 0
    while is_list(kind):
        depth, kind = depth + 1, kind.value_type
    return depth


def _is_empty(lists: Datum) -> Datum:
    check_types([lists], [is_list])
    return pc.equal(pc.list_value_length(lists), 0)


def _depths(lists: Datum) -> Datum:
    check_types([lists], [is_list])
    depth = pa.scalar(_depth(lists.type), pa.uint64())
    return pc.if_else(pc.is_valid(lists), depth, pa.scalar(None, pa.uint64()))


def _sizes(lists: Datum) -> Datum:
    """Return the length of each dimension; of nothing there are none."""
    check_types([lists], [is_list])
    depth, kind = _depth(lists.type), pa.list_(pa.uint64())
    return by_row(lambda items: _dimensions(items, depth) if items else None, kind)(lists)


def _flattened(lists: Datum) -> Datum:
    """Return the items of the lists in each list; lists of others as they are."""
    check_types([lists], [is_list])
    if not is_list(lists.type.value_type):
        return lists
    (whole,) = as_arrays([lists])
    inner = pc.list_flatten(whole)
    ends = np.concatenate([[0], np.cumsum(_lengths(inner))])
    offsets = ends[np.concatenate([[0], np.cumsum(_lengths(whole))])]
    items = pc.list_flatten(inner)
    found = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=pc.is_null(whole))
    return found if isinstance(lists, pa.Array) else found[0]


def _extreme(lists: Datum, *, largest: bool) -> Datum:
    """Return the least or the greatest item; NULL is none."""

    def known(items: pa.Array) -> Int64Array:
        order = in_order(items)[: len(items) - items.null_count]
        return order[::-1] if largest else order

    return _first(lists, known)


def _any_value(lists: Datum) -> Datum:
    """Return the first item that is not NULL."""
    return _first(
        lists, lambda items: np.flatnonzero(np.asarray(pc.is_valid(items))).astype(np.int64)
    )


def _first(lists: Datum, order: Callable[[pa.Array], Int64Array]) -> Datum:
    """Return of each list the item that comes first in an order of all items; NULL if none does."""
    check_types([lists], [is_list])
    (whole,) = as_arrays([lists])
    items = pc.list_flatten(whole)
    places = order(items)
    owners = np.asarray(pc.list_parent_indices(whole), np.int64)[places]
    rows, first = np.unique(owners, return_index=True)
    at = np.full(len(whole), -1, np.int64)
    at[rows] = places[first]
    found = items.take(pa.array(np.maximum(at, 0), mask=at < 0))
    return found if isinstance(lists, pa.Array) else found[0]


def _texts(lists: Datum) -> Datum:
    if not t.is_timestamp(lists.type.value_type):
        return pc.cast(lists, pa.list_(pa.string()))
    held = items_of([lists], lists.type.value_type, 1)
    written = Items(cast(held.values, pa.string()), held.rows)
    found = written.pick(row for (row,) in held.rows)
    return found if isinstance(lists, pa.Array) else found[0]


_NAN: Final = {"nan": "NaN", "-nan": "NaN"}


def _to_string(lists: Datum, separator: Datum, null_text: Datum | None = None) -> Datum:
    """Join the items of lists; those that are NULL are left out, or have a text."""
    check_types([lists, separator], [is_list, t.is_string])
    if is_null(separator):
        return nulls_like([lists], pa.string())
    texts = _texts(lists)
    shown = None if null_text is None else null_text.as_py()

    def join(items: list[str | None], mark: str) -> str:
        found = (shown if each is None else _NAN.get(each, each) for each in items)
        return mark.join(each for each in found if each is not None)

    return by_row(join, pa.string())(texts, separator)


def _distance(left: Datum, right: Datum) -> Datum:
    """Return the distance between points."""
    check_types([left, right], [is_list])

    def distance(one: list[float | None], other: list[float | None]) -> float | None:
        if len(one) != len(other):
            message = f"points of {len(one)} and {len(other)} numbers have no distance"
            raise pa.ArrowInvalid(message)
        if None in one or None in other:
            return None
        return math.dist(one, other)  # type: ignore[arg-type]

    return by_row(distance, pa.float64())(left, right)


_HAS: Entry = (_has, 2, 2)
_ANY: Entry = (_has_any, 2, 2)
_ALL: Entry = (_has_all, 2, 2)
_LENGTH: Entry = (_length, 1, 2)
_EMPTY: Entry = (_is_empty, 1, 1)
_FLATTEN: Entry = (_flattened, 1, 1)

_BOTH: Final[Mapping[str, Entry]] = {
    "has": _HAS,
    "contains": _HAS,
    "has_any": _ANY,
    "has_all": _ALL,
    "length": _LENGTH,
    "element": (element, 2, 2),
    "extract": (element, 2, 2),
    "empty": _EMPTY,
    "max": (partial(_extreme, largest=True), 1, 1),
    "min": (partial(_extreme, largest=False), 1, 1),
    "any_value": (_any_value, 1, 1),
    "ndims": (_depths, 1, 1),
    "dims": (_sizes, 1, 1),
    "to_string": (_to_string, 2, 3),
    "join": (_to_string, 2, 3),
    "distance": (_distance, 2, 2),
}
LISTS: Final[Mapping[str, Entry]] = {
    **{f"array_{name}": entry for name, entry in _BOTH.items()},
    **{f"list_{name}": entry for name, entry in _BOTH.items()},
    "arrays_overlap": _ANY,
    "cardinality": (_count, 1, 1),
    "empty": _EMPTY,
    "flatten": _FLATTEN,
}
