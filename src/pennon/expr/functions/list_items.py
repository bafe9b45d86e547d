"""The items of lists, by their numbers.

Functions that put items in another order, leave some out or join lists need not know what the items
are.  It is enough to say which of them go where: all items are numbered, equal ones are known by a
code (NULL is equal to NULL), and each row of the result is a list of numbers.

Lists come first among the arguments of such functions; what follows are single values, which may be
lists themselves where those before them are lists of lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.expr.cast import Datum, cast
from pennon.expr.float_order import one_form, one_key
from pennon.expr.rowwise import Run, as_arrays, check_bytes, count_of
from pennon.expr.types import common_type, is_list, is_text

Places: TypeAlias = Sequence[int]
"""Numbers of items; `NO_ITEM` stands for NULL."""
NO_ITEM: Final = -1


@dataclass(frozen=True, slots=True)
class Items:
    """The items of several columns of lists, or of single values, in one array."""

    values: pa.Array
    rows: Sequence[Sequence[range | None]]
    """For each row, the numbers of the items of each argument; None for a list that is NULL."""

    def codes(self) -> list[int]:
        """Return a number for each item; equal items have equal ones, as `pennon.expr.float_order` has it."""
        if t.is_nested(self.values.type):
            known: dict[str, int] = {}
            keys = map(repr, map(one_key, self.values.to_pylist()))
            return [known.setdefault(key, len(known)) for key in keys]
        found = pc.dictionary_encode(one_form(self.values), null_encoding="encode")
        return [int(each) for each in found.indices.to_pylist()]

    def pick(self, places: Iterable[Places | None]) -> pa.Array:
        """Return lists of the items of these numbers."""
        kept = list(places)
        sizes = [0 if each is None else len(each) for each in kept]
        each_bytes = self.values.get_total_buffer_size() // max(len(self.values), 1) + 1
        check_bytes(sum(sizes) * each_bytes)
        numbers = np.fromiter(chain.from_iterable(x for x in kept if x is not None), np.int64)
        indices = pa.array(np.maximum(numbers, 0), mask=numbers == NO_ITEM)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        mask = pa.array([each is None for each in kept], pa.bool_())
        kind = self.values.type
        flat = self.values.take(indices) if len(self.values) else pa.nulls(len(indices), kind)
        return pa.ListArray.from_arrays(offsets, flat, mask=mask)


def items_of(arguments: Sequence[Datum], item_type: pa.DataType, lists: int) -> Items:
    """Return the items of lists, and the single values behind them, as values of one type."""
    flat, rows, first = [], [], 0
    for number, each in enumerate(as_arrays(arguments)):
        if number < lists:
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


def item_type_of(arguments: Sequence[Datum], lists: int) -> pa.DataType:
    """Return the type that the items of lists and the single values behind them have in common."""
    kinds = [each.type.value_type for each in arguments[:lists]]
    kinds += [each.type for each in arguments[lists:]]
    return _in_common([kind for kind in kinds if not t.is_null(kind)] or [pa.null()])


def _in_common(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(is_text(kind) for kind in kinds):
        return pa.string()
    if all(is_list(kind) for kind in kinds):
        return pa.list_(_in_common([kind.value_type for kind in kinds]))
    return reduce(common_type, kinds)


def check_lists(arguments: Sequence[Datum], lists: int) -> None:
    """Raise ArrowInvalid unless the first arguments are lists, and those behind them may be items."""
    for number, each in enumerate(arguments):
        is_odd = number >= lists and is_list(each.type)
        fits = not is_odd or (lists and is_list(arguments[0].type.value_type))
        if not fits or (number < lists and not is_list(each.type)):
            message = f"argument {number + 1} cannot be {each.type}"
            raise pa.ArrowInvalid(message)


def rearranged(run: Callable[..., Places | None], lists: int = 1) -> Run:
    """Return a function that picks the items of each row.

    ``run`` takes for each argument the numbers of its items (a list that is NULL: None), and then
    the codes of all items.  The first ``lists`` arguments are lists.
    """

    def compute(*arguments: Datum) -> Datum:
        count = min(lists, len(arguments))
        typed = _with_types(arguments, count)
        check_lists(typed, count)
        items = items_of(typed, item_type_of(typed, count), count)
        codes = items.codes()
        found = items.pick(run(*row, codes) for row in items.rows)
        return found if count_of(arguments) is not None else found[0]

    return compute


def _with_types(arguments: Sequence[Datum], lists: int) -> Sequence[Datum]:
    """Return arguments with NULL among the lists as a list like the others."""
    known = [each for each in arguments[:lists] if not t.is_null(each.type)]
    if not known or len(known) == lists or not all(is_list(each.type) for each in known):
        return arguments
    kind = pa.list_(item_type_of([*known, *arguments[lists:]], len(known)))
    typed = [cast(each, kind) if t.is_null(each.type) else each for each in arguments[:lists]]
    return [*typed, *arguments[lists:]]


def with_numbers(run: Callable[..., Places | None], items: int = 1) -> Run:
    """Return such a function whose arguments behind the first ``items`` are whole numbers."""

    def compute(*arguments: Datum) -> Datum:
        numbers = arguments[items:]
        check_lists(arguments[:items], 1)
        if not all(t.is_integer(each.type) or t.is_null(each.type) for each in numbers):
            message = "places and counts are whole numbers"
            raise pa.ArrowInvalid(message)
        rows = count_of(arguments)
        whole = as_arrays(arguments)
        held = items_of(whole[:items], item_type_of(whole[:items], 1), 1)
        codes = held.codes()
        columns = zip(*(each.to_pylist() for each in whole[items:]), strict=True)
        found = held.pick(
            None if row[0] is None or None in given else run(*row, *given, codes)
            for row, given in zip(held.rows, columns, strict=True)
        )
        return found if rows is not None else found[0]

    return compute
