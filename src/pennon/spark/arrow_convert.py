"""Arrow arrays turned into the Arrow type that the other side wants, without a Python value.

Spark compares the schema of a batch with its own to the last child's nullability, so nested types
are rebuilt around their converted children.  Buffers are kept where the layout is the same.

``pa.array(...)`` is avoided on purpose: its first call imports pandas, a quarter of a second in
every fresh Spark worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from pennon.errors import ArgumentError

_MAX_INT32 = 2**31 - 1
_MAX_DIGITS = 76
_ENTRY = ("key", "value")


def convert_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of ``schema``, by name, in its order and types.

    Raises ArgumentError naming the column whose values do not fit.
    """
    arrays = [convert_column(batch.column(field.name), field) for field in schema]
    if not arrays:
        return batch.select([])
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def convert_column(array: pa.Array, field: pa.Field) -> pa.Array:
    """Convert one column; see `convert`.

    Raises ArgumentError for a value that does not fit, with the dotted name of the field that holds it.
    """
    try:
        return convert(array, field.type)
    except pa.ArrowInvalid as error:
        path, kind = [field.name], field.type
        if isinstance(error, _PartError):
            path, kind = [*path, *error.path], error.kind
        message = f"column {'.'.join(path)!r} cannot become {kind}: {error}"
        raise ArgumentError(message) from error


class _PartError(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow's stubs
    """A value of a field inside a column does not fit; ``path`` leads to the field, and ``kind`` is its type."""

    def __init__(self, message: str, path: tuple[str, ...], kind: pa.DataType) -> None:
        super().__init__(message)
        self.path = path
        self.kind = kind


def _convert_part(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    """Convert the values of a field inside a column, and say in errors which field it is."""
    try:
        return convert(array, target)
    except _PartError as error:
        raise _PartError(str(error), (name, *error.path), error.kind) from error
    except pa.ArrowInvalid as error:
        raise _PartError(str(error), (name,), target) from error


def convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return ``array`` as ``target``.  Raises pa.ArrowInvalid where a value does not fit."""
    if _same(array.type, target):
        return array
    if isinstance(target, pa.BaseExtensionType):
        storage = convert(array, target.storage_type)
        return pa.ExtensionArray.from_storage(target, storage)
    if isinstance(array, pa.ExtensionArray):
        return convert(array.storage, target)
    if pat.is_dictionary(array.type):
        return convert(array.dictionary_decode(), target)
    if pat.is_struct(target):
        return _convert_struct(array, target)
    if pat.is_map(target):
        return _convert_to_map(array, target)
    if pat.is_list(target):
        return _convert_to_list(array, target)
    if pat.is_large_list(target):
        return _convert_to_list(array, pa.list_(target.value_field)).cast(target)
    if pat.is_fixed_size_list(target):
        return _convert_to_fixed_size_list(array, target)
    return _convert_leaf(array, target)


def _same(given: pa.DataType, target: pa.DataType) -> bool:
    # Arrow's equality looks at child nullability but not at the names of list items.
    return bool(given.equals(target))


def _convert_leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pat.is_dictionary(target):
        return convert(array, target.value_type).dictionary_encode().cast(target)
    if pat.is_timestamp(target) and pat.is_timestamp(array.type):
        return _convert_timestamp(array, target)
    if pat.is_duration(target) and array.type == pa.duration("ns"):
        return array.cast(target, safe=False)
    if _may_round(array.type, target):
        return _without_rounding(array, target)
    if pat.is_integer(array.type) and pat.is_decimal(target):
        return _convert_to_decimal(array, target)
    return array.cast(target)


def _convert_to_decimal(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast whole numbers by way of decimals that hold all of them, which a direct cast asks of ``target``."""
    return array.cast(pa.decimal256(_MAX_DIGITS, target.scale)).cast(target)


def _may_round(given: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a cast rounds where it should fail, as Arrow's do between these types."""
    if pat.is_floating(given) and pat.is_floating(target):
        return bool(target.bit_width < given.bit_width)
    return bool(
        (pat.is_floating(given) and pat.is_decimal(target))
        or (pat.is_decimal(given) and pat.is_floating(target))
    )


def _without_rounding(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast numbers, and check that each comes back unchanged.

    A half float has no type in Spark: floats are rounded to it, but none becomes infinite.
    """
    if pat.is_float16(target):
        narrow = array if pat.is_float32(array.type) else _without_rounding(array, pa.float32())
        made = narrow.cast(target)
        wrong = pc.and_(pc.is_inf(made.cast(pa.float32())), pc.is_finite(narrow))
    else:
        made = array.cast(target)
        wrong = pc.not_equal(made.cast(array.type), array)
        if pat.is_floating(array.type):
            wrong = pc.and_not(wrong, pc.is_nan(array))
    if pc.any(wrong).as_py():
        found = array.filter(wrong)[0].as_py()
        message = f"{found} would be rounded or lost; round or cast it in the DataFrame"
        raise pa.ArrowInvalid(message)
    return made


def _convert_timestamp(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Change the unit, rounding nanoseconds down; the zone is a label on the same instant."""
    if (array.type.tz is None) != (target.tz is None):
        message = f"{array.type} and {target} are different kinds of time"
        raise pa.ArrowInvalid(message)
    naive = array.view(pa.timestamp(array.type.unit))
    if array.type.unit == "ns" and target.unit == "us":
        naive = pc.floor_temporal(naive, unit="microsecond")
    return naive.cast(pa.timestamp(target.unit)).view(target)


def _convert_struct(array: pa.Array, target: pa.DataType) -> pa.Array:
    names = {array.type.field(i).name: i for i in range(array.type.num_fields)}
    fields = [target.field(i) for i in range(target.num_fields)]
    if not fields or pat.is_null(array.type):
        return array.cast(target)
    children = [
        pa.nulls(len(array), field.type)
        if (place := _place_of(field.name, names, fields)) is None
        else _convert_part(array.field(place), field.type, field.name)
        for field in fields
    ]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _place_of(name: str, given: Mapping[str, int], fields: Sequence[pa.Field]) -> int | None:
    """Return where a field is given: under its name, else under one that differs in case alone.

    Not under the name of another field.  None: it is not given, and NULL.
    """
    if name in given:
        return given[name]
    taken = {field.name for field in fields}
    others = (
        at for each, at in given.items() if each.lower() == name.lower() and each not in taken
    )
    return next(others, None)


def _convert_to_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pat.is_null(array.type):
        return array.cast(target)
    if pat.is_fixed_size_list(array.type):
        return _fixed_size_to_list(array, target)
    if pat.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    buffers = array.buffers()[:2]
    if pat.is_map(array.type):
        return _with_entries(array, target, target.value_field, buffers)
    return _rebuild(array, target, buffers)


def _convert_to_map(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a map of maps, or of lists of structs: the first field is the key."""
    if pat.is_null(array.type):
        return array.cast(target)
    if pat.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if not pat.is_map(array.type):
        _check_entries(array, target)
    entries = pa.field("entries", pa.struct([target.key_field, target.item_field]), nullable=False)
    return _with_entries(array, target, entries, array.buffers()[:2])


def _check_entries(array: pa.Array, target: pa.DataType) -> None:
    """Raise pa.ArrowInvalid unless the lists hold structs of two fields, and no NULL key."""
    entries = array.type.value_type if pat.is_list(array.type) else None
    if entries is None or not pat.is_struct(entries) or entries.num_fields != 2:
        message = f"{array.type} is no list of structs of two fields"
        raise pa.ArrowInvalid(message)
    if array.values.null_count or array.values.field(0).null_count:
        held = array.flatten()  # without what lies under NULL rows or outside of a slice
        if held.null_count or held.field(0).null_count:
            message = f"an entry or a key is NULL, which no {target} has"
            raise pa.ArrowInvalid(message)


def _with_entries(
    array: pa.Array, target: pa.DataType, entries: pa.Field, buffers: list[Any]
) -> pa.Array:
    """Return ``array``, a list of pairs in some form, with its pairs as ``entries`` says."""
    fields = [entries.type.field(0), entries.type.field(1)]
    parts = zip(_entries_of(array), fields, _ENTRY, strict=True)
    pairs = [_convert_part(values, field.type, name) for values, field, name in parts]
    children = [pa.StructArray.from_arrays(pairs, fields=fields)]
    return pa.Array.from_buffers(
        target, len(array), buffers, offset=array.offset, children=children
    )


def _entries_of(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return keys and values of a map, or of a list of structs."""
    return array.values.field(0), array.values.field(1)


def _fixed_size_to_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    size, slots = array.type.list_size, array.offset + len(array) + 1
    if slots * size > _MAX_INT32:
        message = f"{len(array)} rows of {size} values are too many for one batch"
        raise pa.ArrowInvalid(message)
    offsets = np.arange(slots, dtype=np.int32) * np.int32(size)
    return _rebuild(array, target, [array.buffers()[0], pa.py_buffer(offsets)])


def _rebuild(array: pa.Array, target: pa.DataType, buffers: list[Any]) -> pa.Array:
    values = _convert_part(array.values, target.value_type, target.value_field.name)
    return pa.Array.from_buffers(
        target, len(array), buffers, offset=array.offset, children=[values]
    )


def _convert_to_fixed_size_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    size = target.list_size
    if pat.is_null(array.type):
        return array.cast(target)
    if pat.is_fixed_size_list(array.type):
        return array.cast(target)
    wrong = pc.not_equal(pc.list_value_length(array), size)
    if pc.any(wrong).as_py():
        found = pc.list_value_length(array).filter(wrong)[0].as_py()
        message = f"a row holds a list of {found} values, not {size}"
        raise pa.ArrowInvalid(message)
    values = _convert_vectors(_padded_values(array, size), target)
    if array.null_count == 0:
        return pa.FixedSizeListArray.from_arrays(values, type=target)
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=array.is_null())


def _convert_vectors(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Return the items of fixed-size lists; doubles are rounded to floats, but none becomes infinite.

    Python lists are arrays of doubles in Spark, and vectors of floats are searched with that precision.
    """
    kind, item = target.value_type, target.value_field.name
    if not (pat.is_floating(kind) and pat.is_floating(values.type)):
        return _convert_part(values, kind, item)
    narrow = values
    if pat.is_float64(values.type) and kind.bit_width < values.type.bit_width:
        narrow = values.cast(pa.float32())
        wrong = pc.and_(pc.is_inf(narrow), pc.is_finite(values))
        if pc.any(wrong).as_py():
            found = values.filter(wrong)[0].as_py()
            message = f"{found} is beyond {kind}; scale the vectors in the DataFrame"
            raise _PartError(message, (item,), kind)
    return _convert_part(narrow, kind, item)


def _padded_values(array: pa.ListArray, size: int) -> pa.Array:
    """Return ``size`` values a row: the row's own, or NULLs where the row is NULL."""
    if array.null_count == 0:
        return cast("pa.Array", array.flatten())
    # flatten() drops what lies under NULL rows, so present rows follow each other.
    present = np.frombuffer(pc.cast(array.is_valid(), pa.uint8()).buffers()[1], np.uint8)
    rank = np.cumsum(present[: len(array)], dtype=np.int64) - 1
    indices = (rank[:, None] * size + np.arange(size)).reshape(-1)
    absent = np.repeat(present[: len(array)] == 0, size)
    picks = _int64_array(np.where(absent, -1, indices), absent)
    return array.flatten().take(picks)


def _int64_array(values: np.ndarray[Any, Any], null: np.ndarray[Any, Any]) -> pa.Array:
    validity = np.packbits(~null, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(values.astype(np.int64))]
    return pa.Array.from_buffers(pa.int64(), len(values), buffers)
