"""Functions that put the items of lists in another order, leave some out, join lists or look for items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pennon.expr.cast import Datum
from pennon.expr.functions.list_items import (
    NO_ITEM,
    Places,
    check_lists,
    in_order,
    item_type_of,
    items_of,
    rearranged,
    with_numbers,
)
from pennon.expr.rowwise import Entry, Run, check_bytes, count_of

# --- one list -------------------------------------------------------------------------------------


def _distinct(items: range | None, codes: list[int]) -> Places | None:
    return None if items is None else _unique(items, codes)


def _unique(items: Iterable[int], codes: list[int]) -> list[int]:
    """Return the first of each kind, in order."""
    seen: dict[int, int] = {}
    for at in items:
        seen.setdefault(codes[at], at)
    return list(seen.values())


def _slice(items: range, first: int, last: int, step: int, _: list[int]) -> Places:
    """Return the items from one number to another; numbers count from 1, or from the end."""
    size = len(items)
    start = max(first + size, 0) if first < 0 else max(first - 1, 0)
    stop = last + size if last < 0 else min(last - 1, size - 1)
    if not step:
        message = "the step of a slice cannot be 0"
        raise pa.ArrowInvalid(message)
    if not (0 <= start < size and 0 <= stop < size):
        return []
    if step > 0:
        return items[start : stop + 1 : step] if start <= stop else []
    return [items[at] for at in range(start, stop - 1, step)] if start >= stop else []


def _sliced(lists: Datum, first: Datum, last: Datum, step: Datum | None = None) -> Datum:
    return with_numbers(_slice)(lists, first, last, pa.scalar(1) if step is None else step)


def _resized(items: range, *rest: Any) -> Places:
    filling, count = (rest[0][0], rest[1]) if len(rest) == 3 else (NO_ITEM, rest[0])
    if count < 0:
        message = "lists have no negative length"
        raise pa.ArrowInvalid(message)
    check_bytes(count)
    return [*items[:count], *[filling] * (count - len(items))]


def _resize(lists: Datum, count: Datum, filling: Datum | None = None) -> Datum:
    if filling is None:
        return with_numbers(_resized)(lists, count)
    return with_numbers(_resized, 2)(lists, filling, count)


def _sorted(lists: Datum, *words: Datum) -> Datum:
    """Sort the items of each list; NULL comes first unless it is said otherwise."""
    check_lists([lists], 1)
    said = [str(each.as_py()).upper() for each in words if isinstance(each, pa.Scalar)]
    order, nulls = [*said, *("ASC", "NULLS FIRST")[len(said) :]]
    if (
        len(said) != len(words)
        or order not in ("ASC", "DESC")
        or nulls not in ("NULLS FIRST", "NULLS LAST")
    ):
        message = "lists are sorted 'ASC' or 'DESC', 'NULLS FIRST' or 'NULLS LAST'"
        raise pa.ArrowInvalid(message)
    items = items_of([lists], lists.type.value_type, 1)
    ranks = np.empty(len(items.values), np.int64)
    ranks[in_order(items.values)] = np.arange(len(ranks))
    if order == "DESC":
        ranks = -ranks
    ranks[np.asarray(pc.is_null(items.values))] = (
        -len(ranks) if nulls == "NULLS FIRST" else len(ranks)
    )
    by_rank = ranks.tolist()
    found = items.pick(
        None if row is None else sorted(row, key=by_rank.__getitem__) for (row,) in items.rows
    )
    return found if isinstance(lists, pa.Array) else found[0]


# --- lists and items ------------------------------------------------------------------------------


def _joined(*arguments: Any) -> Places | None:
    lists = [each for each in arguments[:-1] if each is not None]
    return list(chain.from_iterable(lists)) if lists else None


def _appended(items: range | None, item: range, _: list[int]) -> Places:
    return [*(items or ()), *item]


def _prepended(item: range, items: range | None, _: list[int]) -> Places:
    return [*item, *(items or ())]


def _prepend(item: Datum, lists: Datum) -> Datum:
    swapped = rearranged(lambda whole, one, codes: _prepended(one, whole, codes))
    return swapped(lists, item)


def _union(left: range | None, right: range | None, codes: list[int]) -> Places | None:
    if left is None or right is None:
        return None
    return _unique(chain(left, right), codes)


def _intersection(left: range | None, right: range | None, codes: list[int]) -> Places | None:
    if left is None or right is None:
        return None
    known = {codes[at] for at in left}
    return _unique((at for at in right if codes[at] in known), codes)


def _difference(left: range | None, right: range | None, codes: list[int]) -> Places | None:
    if left is None or right is None:
        return None
    gone = {codes[at] for at in right}
    return _unique((at for at in left if codes[at] not in gone), codes)


def _removed(items: range, item: range, most: int, codes: list[int]) -> Places:
    unwanted = codes[item[0]]
    found = [at for at in items if codes[at] == unwanted][: max(most, 0)]
    return [at for at in items if at not in set(found)] if found else items


def _replaced(items: range, item: range, by: range, most: int, codes: list[int]) -> Places:
    unwanted = codes[item[0]]
    found = set([at for at in items if codes[at] == unwanted][: max(most, 0)])
    return [by[0] if at in found else at for at in items]


def _removing(most: int | None) -> Run:
    def compute(lists: Datum, item: Datum, count: Datum | None = None) -> Datum:
        number = pa.scalar(most or 0) if count is None else count
        found = with_numbers(_removed, 2)(lists, item, number)
        if isinstance(item, pa.Scalar) and item.is_valid:
            return found
        known = pc.is_valid(item)
        return pc.if_else(known, found, pa.scalar(None, found.type))

    return compute


def _replacing(most: int | None) -> Run:
    def compute(lists: Datum, item: Datum, by: Datum, count: Datum | None = None) -> Datum:
        number = pa.scalar(most or 0) if count is None else count
        return with_numbers(_replaced, 3)(lists, item, by, number)

    return compute


# --- places ---------------------------------------------------------------------------------------


def _found(lists: Datum, item: Datum) -> tuple[list[list[int] | None], bool]:
    """Return the places of an item in each list, from 1; and whether these are of one scalar."""
    check_lists([lists, item], 1)
    items = items_of([lists, item], item_type_of([lists, item], 1), 1)
    codes = items.codes()
    places: list[list[int] | None] = []
    for row, wanted in items.rows:
        if row is None or wanted is None:
            places.append(None)
            continue
        places.append([at - row.start + 1 for at in row if codes[at] == codes[wanted[0]]])
    return places, count_of([lists, item]) is None


def _position(lists: Datum, item: Datum) -> Datum:
    places, is_scalar = _found(lists, item)
    found = pa.array([each[0] if each else None for each in places], pa.uint64())
    return found[0] if is_scalar else found


def _positions(lists: Datum, item: Datum) -> Datum:
    places, is_scalar = _found(lists, item)
    found = pa.array(places, pa.list_(pa.uint64()))
    return found[0] if is_scalar else found


_APPEND: Entry = (rearranged(_appended), 2, 2)
_CONCAT: Entry = (rearranged(_joined, lists=1 << 30), 1, None)
_ITEMS: Final[Mapping[str, Entry]] = {
    "append": _APPEND,
    "push_back": _APPEND,
    "cat": _CONCAT,
    "concat": _CONCAT,
    "distinct": (rearranged(_distinct), 1, 1),
    "except": (rearranged(_difference, 2), 2, 2),
    "intersect": (rearranged(_intersection, 2), 2, 2),
    "union": (rearranged(_union, 2), 2, 2),
    "pop_back": (rearranged(lambda items, _: items and items[:-1]), 1, 1),
    "pop_front": (rearranged(lambda items, _: items and items[1:]), 1, 1),
    "reverse": (rearranged(lambda items, _: items and items[::-1]), 1, 1),
    "sort": (_sorted, 1, 3),
    "slice": (_sliced, 3, 4),
    "resize": (_resize, 2, 3),
    "position": (_position, 2, 2),
    "indexof": (_position, 2, 2),
    "positions": (_positions, 2, 2),
    "remove": (_removing(1), 2, 2),
    "remove_n": (_removing(None), 3, 3),
    "remove_all": (_removing(1 << 62), 2, 2),
    "replace": (_replacing(1), 3, 3),
    "replace_n": (_replacing(None), 4, 4),
    "replace_all": (_replacing(1 << 62), 3, 3),
}
_PREPEND: Entry = (_prepend, 2, 2)

ITEMS: Final[Mapping[str, Entry]] = {
    **{f"array_{name}": entry for name, entry in _ITEMS.items()},
    **{f"list_{name}": entry for name, entry in _ITEMS.items()},
    **dict.fromkeys(
        ["array_prepend", "list_prepend", "array_push_front", "list_push_front"], _PREPEND
    ),
}
