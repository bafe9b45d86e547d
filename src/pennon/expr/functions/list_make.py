"""Functions that make lists: of values, of numbers, of the items of several lists, of shorter numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.functions.list_items import NO_ITEM, Items, item_type_of, items_of
from pennon.expr.rowwise import Entry, as_arrays, check_bytes, check_types, count_of, nulls_like
from pennon.expr.types import is_list


def make_list(*values: Datum) -> Datum:
    """Return lists of one item from each argument."""
    if not values:
        return pa.scalar([], pa.list_(pa.null()))
    items = items_of(values, item_type_of(values, 0), 0)
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


def _zipped(*lists: Datum) -> Datum:
    """Return lists of structs: of the first items, the second ones, and so on, NULL where one lacks."""
    check_types(lists, [is_list])
    nothing = pa.list_(pa.null())
    whole = [cast(x, nothing) if t.is_null(x.type) else x for x in as_arrays(lists)]
    held = [items_of([each], each.type.value_type, 1) for each in whole]
    rows = list(zip(*([row for (row,) in each.rows] for each in held), strict=True))
    sizes = [max((len(x) for x in row if x is not None), default=None) for row in rows]
    columns = [
        items.pick(_padded(row[number], size) for row, size in zip(rows, sizes, strict=True))
        for number, items in enumerate(held)
    ]
    names = [str(number) for number in range(1, len(lists) + 1)]
    structs = pa.StructArray.from_arrays([each.values for each in columns], names)
    found = pa.ListArray.from_arrays(columns[0].offsets, structs, mask=columns[0].is_null())
    return found if count_of(lists) is not None else found[0]


def _padded(items: range | None, size: int | None) -> list[int] | None:
    if size is None:
        return None
    return [*(items or ()), *[NO_ITEM] * (size - len(items or ()))]


def _short_floats(lists: Datum) -> Datum:
    """Return lists of float32, vectors among them, with their numbers rounded to float16."""
    check_types([lists], [_is_list_of_floats])
    kind = lists.type
    if t.is_null(kind):
        return nulls_like([lists], pa.list_(pa.float16()))
    item = kind.value_field.with_type(pa.float16())
    if t.is_fixed_size_list(kind):
        return pc.cast(lists, pa.list_(item, kind.list_size))
    return pc.cast(lists, pa.large_list(item) if t.is_large_list(kind) else pa.list_(item))


def _is_list_of_floats(kind: pa.DataType) -> bool:
    return is_list(kind) and kind.value_type in (pa.float32(), pa.float16())


_MAKE: Entry = (make_list, 0, None)
_REPEAT: Entry = (_repeated, 2, 2)
_ZIP: Entry = (_zipped, 1, None)

NEW_LISTS: Final[Mapping[str, Entry]] = {
    "make_array": _MAKE,
    "make_list": _MAKE,
    "array_repeat": _REPEAT,
    "list_repeat": _REPEAT,
    "_cast_list_f16": (_short_floats, 1, 1),
    "arrays_zip": _ZIP,
    "list_zip": _ZIP,
    "range": (partial(_series, reaches_end=False), 1, 3),
    "generate_series": (partial(_series, reaches_end=True), 1, 3),
}
