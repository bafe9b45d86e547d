"""Functions that put the items of lists in another order, leave some out, or join lists.

Whatever the items are, it is enough to say which of them go where: all items are numbered, equal
ones are known by a code (NULL is equal to NULL), and each row of the result is a list of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.rowwise import Run, as_arrays, check_bytes, check_types, count_of, nulls_like
from pennon.expr.types import common_type, is_text
from pennon.ranges import Int64Array

Entry: TypeAlias = tuple[Run, int, int | None]
Places: TypeAlias = Sequence[int]
"""Numbers of items; -1 stands for NULL."""
_NO_ITEM: Final = -1


def is_list(kind: pa.DataType) -> bool:
    """Tell whether values are lists."""
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


@dataclass(frozen=True, slots=True)
class Items:
    """The items of several columns of lists, or of single values, in one array."""

    values: pa.Array
    rows: Sequence[Sequence[range | None]]
    """For each row, the numbers of the items of each argument; None for a list that is NULL."""

    def codes(self) -> list[int]:
        """Return a number for each item; equal items have equal ones."""
        found = pc.dictionary_encode(self.values, null_encoding="encode")
        return [int(each) for each in found.indices.to_pylist()]

    def pick(self, places: Iterable[Places | None]) -> pa.Array:
        """Return lists of the items of these numbers."""
        kept = list(places)
        sizes = [0 if each is None else len(each) for each in kept]
        each_bytes = self.values.get_total_buffer_size() // max(len(self.values), 1) + 1
        check_bytes(sum(sizes) * each_bytes)
        numbers = np.fromiter(chain.from_iterable(x for x in kept if x is not None), np.int64)
        indices = pa.array(np.maximum(numbers, 0), mask=numbers == _NO_ITEM)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        mask = pa.array([each is None for each in kept], pa.bool_())
        flat = self.values.take(indices) if len(self.values) else _nulls(indices, self.values.type)
        return pa.ListArray.from_arrays(offsets, flat, mask=mask)


def _nulls(indices: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(indices), kind)


def items_of(arguments: Sequence[Datum], item_type: pa.DataType) -> Items:
    """Return the items of lists, and single values as items, as values of one type."""
    flat, rows, first = [], [], 0
    for each in as_arrays(arguments):
        if is_list(each.type):
            values = pc.list_flatten(each)
            sizes = pc.fill_null(pc.list_value_length(each), 0).to_pylist()
            ends = np.cumsum(sizes) + first if sizes else np.empty(0, np.int64)
            valid = each.is_valid().to_pylist()
            spans = zip(ends.tolist(), sizes, valid, strict=True)
            rows.append([range(end - size, end) if ok else None for end, size, ok in spans])
        else:
            values = each
            rows.append([range(first + at, first + at + 1) for at in range(len(each))])
        flat.append(cast(values, item_type))
        first += len(values)
    return Items(pa.concat_arrays(flat), list(zip(*rows, strict=True)))


def in_order(items: pa.Array) -> Int64Array:
    """Return the numbers of items from the least to the greatest: NaN last, behind it NULL."""
    return np.asarray(pc.sort_indices(items)).astype(np.int64)


def item_type_of(arguments: Sequence[Datum]) -> pa.DataType:
    """Return the type that the items of lists and single values have in common."""
    kinds = [each.type.value_type if is_list(each.type) else each.type for each in arguments]
    kinds = [kind for kind in kinds if not t.is_null(kind)] or [pa.null()]
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(is_text(kind) for kind in kinds):
        return pa.string()
    return reduce(common_type, kinds)


def _lists_first(arguments: Sequence[Datum], lists: int) -> None:
    """Raise ArrowInvalid unless the first arguments are lists, and no others."""
    for number, each in enumerate(arguments):
        if is_list(each.type) != (number < lists):
            message = f"argument {number + 1} cannot be {each.type}"
            raise pa.ArrowInvalid(message)


def rearranged(run: Callable[..., Places | None], lists: int = 1) -> Run:
    """Return a function that picks the items of each row.

    ``run`` takes for each argument the numbers of its items (a list that is NULL: None), and then
    the codes of all items.  The first ``lists`` arguments are lists.
    """

    def compute(*arguments: Datum) -> Datum:
        item_type = item_type_of(arguments)
        missing = [t.is_null(each.type) for each in arguments[:lists]]
        if any(missing) and not all(missing):
            empty = pa.list_(item_type)
            typed = (cast(x, empty) if t.is_null(x.type) else x for x in arguments[:lists])
            arguments = (*typed, *arguments[lists:])
        _lists_first(arguments, lists)
        items = items_of(arguments, item_type)
        codes = items.codes()
        found = items.pick(run(*row, codes) for row in items.rows)
        return found if count_of(arguments) is not None else found[0]

    return compute


def _with_numbers(run: Callable[..., Places | None], items: int = 1) -> Run:
    """Return such a function whose arguments behind the first ``items`` are whole numbers."""

    def compute(*arguments: Datum) -> Datum:
        numbers = arguments[items:]
        _lists_first(arguments, 1)
        if not all(t.is_integer(each.type) or t.is_null(each.type) for each in numbers):
            message = "places and counts are whole numbers"
            raise pa.ArrowInvalid(message)
        rows = count_of(arguments)
        whole = as_arrays(arguments)
        held = items_of(whole[:items], item_type_of(whole[:items]))
        codes = held.codes()
        columns = zip(*(each.to_pylist() for each in whole[items:]), strict=True)
        found = held.pick(
            None if row[0] is None or None in given_numbers else run(*row, *given_numbers, codes)
            for row, given_numbers in zip(held.rows, columns, strict=True)
        )
        return found if rows is not None else found[0]

    return compute


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
    return _with_numbers(_slice)(lists, first, last, pa.scalar(1) if step is None else step)


def _resized(items: range, *rest: Any) -> Places:
    filling, count = (rest[0][0], rest[1]) if len(rest) == 3 else (_NO_ITEM, rest[0])
    if count < 0:
        message = "lists have no negative length"
        raise pa.ArrowInvalid(message)
    check_bytes(count)
    return [*items[:count], *[filling] * (count - len(items))]


def _resize(lists: Datum, count: Datum, filling: Datum | None = None) -> Datum:
    if filling is None:
        return _with_numbers(_resized)(lists, count)
    return _with_numbers(_resized, 2)(lists, filling, count)


def _sorted(lists: Datum, *words: Datum) -> Datum:
    """Sort the items of each list; NULL comes first unless it is said otherwise."""
    _lists_first([lists], 1)
    said = [str(each.as_py()).upper() for each in words if isinstance(each, pa.Scalar)]
    order, nulls = [*said, *("ASC", "NULLS FIRST")[len(said) :]]
    if (
        len(said) != len(words)
        or order not in ("ASC", "DESC")
        or nulls not in ("NULLS FIRST", "NULLS LAST")
    ):
        message = "lists are sorted 'ASC' or 'DESC', 'NULLS FIRST' or 'NULLS LAST'"
        raise pa.ArrowInvalid(message)
    items = items_of([lists], lists.type.value_type)
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
        found = _with_numbers(_removed, 2)(lists, item, number)
        if isinstance(item, pa.Scalar) and item.is_valid:
            return found
        known = pc.is_valid(item)
        return pc.if_else(known, found, pa.scalar(None, found.type))

    return compute


def _replacing(most: int | None) -> Run:
    def compute(lists: Datum, item: Datum, by: Datum, count: Datum | None = None) -> Datum:
        number = pa.scalar(most or 0) if count is None else count
        return _with_numbers(_replaced, 3)(lists, item, by, number)

    return compute


# --- places ---------------------------------------------------------------------------------------


def _found(lists: Datum, item: Datum) -> tuple[list[list[int] | None], bool]:
    """Return the places of an item in each list, from 1; and whether these are of one scalar."""
    _lists_first([lists, item], 1)
    items = items_of([lists, item], item_type_of([lists, item]))
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


# --- new lists ------------------------------------------------------------------------------------


def make_list(*values: Datum) -> Datum:
    """Return lists of one item from each argument."""
    if not values:
        return pa.scalar([], pa.list_(pa.null()))
    _lists_first(values, 0)
    items = items_of(values, item_type_of(values))
    found = items.pick(list(chain.from_iterable(row)) for row in items.rows)  # type: ignore[arg-type]
    return found if count_of(values) is not None else found[0]


def _repeated(value: Datum, count: Datum) -> Datum:
    check_types([count], [t.is_integer])
    whole, counts = as_arrays([value, count])
    each_bytes = whole.get_total_buffer_size() // max(len(whole), 1) + 1
    times = [None if each is None else max(each, 0) for each in counts.to_pylist()]
    check_bytes(sum(each or 0 for each in times) * each_bytes)
    items = Items(whole, [])
    found = items.pick(None if n is None else [at] * n for at, n in enumerate(times))
    return found if count_of([value, count]) is not None else found[0]


def _series(*numbers: Datum, reaches_end: bool) -> Datum:
    """Return lists of numbers from a start to an end."""
    if not all(t.is_integer(each.type) or t.is_null(each.type) for each in numbers):
        message = "series are of whole numbers"
        raise pa.ArrowInvalid(message)
    kind = pa.list_(pa.int64())
    if any(isinstance(each, pa.Scalar) and not each.is_valid for each in numbers):
        return nulls_like(numbers, kind)
    first = [] if len(numbers) > 1 else [pa.scalar(0)]
    columns = [each.to_pylist() for each in as_arrays([*first, *numbers])]
    spans = [
        None if None in row else _span(*row, reaches_end=reaches_end)
        for row in zip(*columns, strict=True)
    ]
    check_bytes(8 * sum(_size(each) for each in spans if each is not None))
    found = pa.array(spans, kind)
    return found if count_of(numbers) is not None else found[0]


def _size(span: range) -> int:
    return max((span.stop - span.start) // span.step, 0) + 1  # len() fails beyond 63 bits


def _span(start: int, stop: int, step: int = 1, *, reaches_end: bool) -> range:
    if not step:
        message = "the step of a series cannot be 0"
        raise pa.ArrowInvalid(message)
    return range(start, stop + (1 if step > 0 else -1) * reaches_end, step)


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
    "repeat": (_repeated, 2, 2),
}
_MAKE: Entry = (make_list, 0, None)
_PREPEND: Entry = (_prepend, 2, 2)

ITEMS: Final[Mapping[str, Entry]] = {
    **{f"array_{name}": entry for name, entry in _ITEMS.items()},
    **{f"list_{name}": entry for name, entry in _ITEMS.items()},
    **dict.fromkeys(
        ["array_prepend", "list_prepend", "array_push_front", "list_push_front"], _PREPEND
    ),
    "make_array": _MAKE,
    "make_list": _MAKE,
    "range": (partial(_series, reaches_end=False), 1, 3),
    "generate_series": (partial(_series, reaches_end=True), 1, 3),
}
