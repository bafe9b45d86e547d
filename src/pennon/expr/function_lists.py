"""Functions of lists.  Items count from 1, and from the end with negative numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast

Run = Callable[..., Datum]
Entry = tuple[Run, int, int | None]


def element(lists: pa.Array, number: Datum) -> Datum:
    """Return an item of each list; NULL where the list is shorter."""
    position = _literal(number)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0))
    at = position - 1 if position > 0 else lengths + position
    inside = (position != 0) & (at >= 0) & (at < lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) if len(lengths) else lengths
    places = pa.array(np.where(inside, starts + at, 0), pa.int64(), mask=~inside)
    return pc.list_flatten(lists).take(places)


def _literal(value: Datum) -> int:
    if isinstance(value, pa.Array) or not isinstance(value.as_py(), int):
        message = "the number of an item must be a whole number"
        raise pa.ArrowInvalid(message)
    return int(value.as_py())


def _where_any(lists: pa.Array, test: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Tell which lists have an item that passes a test."""
    passed = pc.fill_null(test(pc.list_flatten(lists)), False)  # noqa: FBT003 - Arrow's order
    owners = pc.list_parent_indices(lists).filter(passed)
    found = np.zeros(len(lists), np.bool_)
    found[np.asarray(owners)] = True
    nulls = np.asarray(pc.is_null(lists))
    return pa.array(found, pa.bool_(), mask=nulls)


def _has(lists: Datum, item: Datum) -> Datum:
    whole = _check(lists)
    if isinstance(item, pa.Array):
        message = "array_has looks for a literal"
        raise pa.ArrowInvalid(message)
    if not item.is_valid:
        return pa.nulls(len(whole), pa.bool_())
    wanted = cast(item, whole.type.value_type)
    return _where_any(whole, lambda items: pc.equal(items, wanted))


def _wanted(lists: pa.Array, items: Datum) -> pa.Array:
    if isinstance(items, pa.Array) or not t.is_list(items.type):
        message = "the second argument must be a list of literals"
        raise pa.ArrowInvalid(message)
    return cast(items.values.drop_null(), lists.type.value_type)


def _has_any(lists: Datum, items: Datum) -> Datum:
    whole = _check(lists)
    wanted = _wanted(whole, items)
    return _where_any(whole, lambda found: pc.is_in(found, value_set=wanted))


def _has_all(lists: Datum, items: Datum) -> Datum:
    whole = _check(lists)
    each = [_where_any(whole, partial(pc.equal, item)) for item in _wanted(whole, items)]
    every = pa.array(np.ones(len(whole), np.bool_), mask=np.asarray(pc.is_null(whole)))
    return reduce(pc.and_, each, every)


def _check(lists: Datum) -> pa.Array:
    if isinstance(lists, pa.Scalar):
        message = "the first argument must be a column of lists"
        raise pa.ArrowInvalid(message)
    return lists


def _length(lists: Datum) -> Datum:
    return pc.cast(pc.list_value_length(lists), pa.uint64())


def _is_empty(lists: Datum) -> Datum:
    return pc.equal(pc.list_value_length(lists), 0)


def _to_string(lists: Datum, separator: Datum) -> Datum:
    whole = _check(lists)
    texts = pc.cast(whole, pa.list_(pa.string()))
    kept = pa.array([_without_nulls(each) for each in texts], pa.list_(pa.string()))
    return pc.binary_join(kept, separator)


def _without_nulls(row: pa.Scalar) -> list[object] | None:
    return None if not row.is_valid else [each for each in row.as_py() if each is not None]


_HAS: Entry = (_has, 2, 2)
_ANY: Entry = (_has_any, 2, 2)
_ALL: Entry = (_has_all, 2, 2)
_LENGTH: Entry = (_length, 1, 1)

LISTS: Final[Mapping[str, Entry]] = {
    "array_has": _HAS,
    "array_contains": _HAS,
    "list_has": _HAS,
    "list_contains": _HAS,
    "array_has_any": _ANY,
    "list_has_any": _ANY,
    "array_has_all": _ALL,
    "list_has_all": _ALL,
    "array_length": _LENGTH,
    "list_length": _LENGTH,
    "cardinality": _LENGTH,
    "empty": (_is_empty, 1, 1),
    "array_element": (element, 2, 2),
    "list_element": (element, 2, 2),
    "array_to_string": (_to_string, 2, 2),
    "list_to_string": (_to_string, 2, 2),
}
