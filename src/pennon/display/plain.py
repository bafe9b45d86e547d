"""Arrow values as plain Python values that JSON can hold, without loss where JSON allows it.

======================  ===============================================================================
Arrow                   JSON
======================  ===============================================================================
integers                numbers with all of their digits, also beyond 2**53
floats                  the shortest number that reads back as the same float of its width; ``"NaN"``,
                        ``"Infinity"`` and ``"-Infinity"`` as texts
decimals                texts with all digits
binary                  texts in Base64
timestamps              ISO 8601; with a zone: the moment in UTC, ``Z`` behind it; without: as it is
dates, times            ISO 8601
durations               ISO 8601, in seconds: ``PT1.5S``
lists, structs          arrays, objects
maps                    arrays of ``{"key": ..., "value": ...}``
dictionaries            the values themselves
extension types         their storage; UUIDs as texts, bfloat16 as numbers
======================  ===============================================================================
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyarrow import types

Plain = Any
"""None, bool, int, float, str, or a list or dict of these."""
_EXTENSION: Final = b"ARROW:extension:name"
_BFLOAT16: Final = b"lance.bfloat16"
_PER_SECOND: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def base64_text(data: bytes) -> str:
    """Return bytes as Base64.

    >>> base64_text(b"ab")
    'YWI='
    """
    return base64.b64encode(data).decode("ascii")


def plain_values(
    array: pa.Array[Any], of_bytes: Callable[[bytes], str] = base64_text
) -> list[Plain]:
    """Return the values of an array as plain values; ``of_bytes`` turns binary values into text.

    >>> plain_values(pa.array([1.5, None, float("nan")]))
    [1.5, None, 'NaN']
    >>> plain_values(pa.array([0, None], pa.timestamp("us", "Europe/Berlin")))
    ['1970-01-01T00:00:00Z', None]
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _extension_values(array, of_bytes)
    if types.is_dictionary(kind):
        return plain_values(array.dictionary_decode(), of_bytes)
    convert = _nested(kind)
    if convert is not None:
        return convert(array, of_bytes)
    return _flat_values(array, of_bytes)


def plain_rows(
    batch: pa.RecordBatch, of_bytes: Callable[[bytes], str] = base64_text
) -> Iterator[dict[str, Plain]]:
    """Yield the rows of a batch as dicts of plain values.

    >>> list(plain_rows(pa.record_batch({"a": [1], "b": [b"x"]})))
    [{'a': 1, 'b': 'eA=='}]
    """
    names = batch.schema.names
    pairs = zip(batch.schema, batch.columns, strict=True)
    columns = [plain_column(field, column, of_bytes) for field, column in pairs]
    if not columns:
        yield from ({} for _ in range(batch.num_rows))
        return
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def plain_column(
    field: pa.Field[Any], array: pa.Array[Any], of_bytes: Callable[[bytes], str] = base64_text
) -> list[Plain]:
    r"""Return the values of a column as plain values; its field may name an extension type that no module registered.

    >>> named = pa.field("b", pa.binary(2), metadata={"ARROW:extension:name": "lance.bfloat16"})
    >>> plain_column(named, pa.array([b"\xc0\x3f", None], pa.binary(2)))
    [1.5, None]
    """
    is_registered = isinstance(array, pa.ExtensionArray)
    if not is_registered and (field.metadata or {}).get(_EXTENSION) == _BFLOAT16:
        return _bfloats(array)
    return plain_values(array, of_bytes)


def _extension_values(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    name, storage = array.type.extension_name, array.storage
    if name == "arrow.uuid":
        return [None if v is None else str(UUID(bytes=v)) for v in storage.to_pylist()]
    if name.encode() == _BFLOAT16:
        return _bfloats(storage)
    return plain_values(storage, of_bytes)


def _bfloats(storage: pa.Array[Any]) -> list[Plain]:
    """Return values of 2 bytes, the upper halves of float32."""
    widened = [None if v is None else b"\0\0" + v for v in storage.to_pylist()]
    floats = [None if v is None else float(str(np.frombuffer(v, "<f4")[0])) for v in widened]
    return [v if v is None else _finite(v) for v in floats]


# --- values without parts ------------------------------------------------------------------------------


def _flat_values(array: pa.Array[Any], of_bytes: Callable[[bytes], str]) -> list[Plain]:
    kind = array.type
    if types.is_floating(kind):
        return _floats(array)
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return [None if v is None else of_bytes(v) for v in array.to_pylist()]
    if str(kind) == "binary_view":
        return plain_values(array.cast(pa.large_binary()), of_bytes)
    if types.is_timestamp(kind):
        return _moments(array, kind.unit, "Z" if kind.tz else "")
    if types.is_date(kind):
        return _dates(array)
    if types.is_time(kind):
        return [None if v is None else _time_text(v, kind.unit) for v in _numbers(array)]
    if types.is_duration(kind):
        return [None if v is None else _duration_text(v, kind.unit) for v in _numbers(array)]
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        found: list[Plain] = array.to_pylist()
        return found
    return _texts(array)


def _texts(array: pa.Array[Any]) -> list[Plain]:
    """Return texts, and all else that Python has a text for."""
    try:
        return [v if v is None or isinstance(v, str) else str(v) for v in array.to_pylist()]
    except UnicodeDecodeError:  # bytes that are no UTF-8 under the type of text
        data = array.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "backslashreplace") for v in data]


def _floats(array: pa.Array[Any]) -> list[Plain]:
    """Return floats of any width as the shortest Python floats that read back as the same."""
    values = array.to_pylist()
    if not types.is_float64(array.type):
        width = np.float16 if types.is_float16(array.type) else np.float32
        values = [None if v is None else float(str(width(v))) for v in values]
    return [v if v is None else _finite(v) for v in values]


def _finite(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _numbers(array: pa.Array[Any]) -> list[int | None]:
    """Return times as the integers that are stored."""
    width = pa.int32() if array.type.bit_width == 32 else pa.int64()
    found: list[int | None] = array.view(width).to_pylist()
    return found


def _dates(array: pa.Array[Any]) -> list[Plain]:
    per_day = 1 if types.is_date32(array.type) else 86_400_000
    return [None if v is None else str(np.datetime64(v // per_day, "D")) for v in _numbers(array)]


def _moments(array: pa.Array[Any], unit: str, zone: str) -> list[Plain]:
    digits = _PER_SECOND[unit]
    found: list[Plain] = []
    for value in _numbers(array):
        if value is None:
            found.append(None)
            continue
        seconds, rest = divmod(value, 10**digits)
        found.append(f"{np.datetime64(seconds, 's')}{_fraction(rest, digits)}{zone}")
    return found


def _fraction(rest: int, digits: int) -> str:
    """Return the part behind the seconds, without zeros at its end."""
    return f".{rest:0{digits}}".rstrip("0") if rest else ""


def _time_text(value: int, unit: str) -> str:
    digits = _PER_SECOND[unit]
    seconds, rest = divmod(value, 10**digits)
    return (
        f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_fraction(rest, digits)}"
    )


def _duration_text(value: int, unit: str) -> str:
    digits = _PER_SECOND[unit]
    seconds, rest = divmod(abs(value), 10**digits)
    return f"{'-' if value < 0 else ''}PT{seconds}{_fraction(rest, digits)}S"


# --- values with parts ---------------------------------------------------------------------------------


def _nested(kind: pa.DataType) -> Callable[..., list[Plain]] | None:
    """Return what converts arrays of a type that has parts; None for other types."""
    if types.is_struct(kind):
        return _structs
    if types.is_map(kind):
        return _maps
    if types.is_fixed_size_list(kind):
        return _vectors
    if types.is_list(kind) or types.is_large_list(kind):
        return _lists
    if str(kind).startswith(("list_view", "large_list_view")):
        return _list_views
    return None


def _structs(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    names = [field.name for field in array.type]
    if not names:
        return [{} if valid else None for valid in _valid(array)]
    parts = [plain_values(array.field(number), of_bytes) for number in range(len(names))]
    rows = zip(_valid(array), zip(*parts, strict=True), strict=True)
    return [dict(zip(names, row, strict=True)) if valid else None for valid, row in rows]


def _lists(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    return _cut(array, lambda first, end: plain_values(array.values[first:end], of_bytes))


def _maps(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    def entries(first: int, end: int) -> list[Plain]:
        keys = plain_values(array.keys[first:end], of_bytes)
        items = plain_values(array.items[first:end], of_bytes)
        return [{"key": key, "value": value} for key, value in zip(keys, items, strict=True)]

    return _cut(array, entries)


def _cut(array: Any, values_of: Callable[[int, int], list[Plain]]) -> list[Plain]:
    """Return the parts of each row, cut out of all parts by the offsets."""
    if not len(array):
        return []
    offsets = array.offsets.to_pylist()
    first = offsets[0]
    values = values_of(first, offsets[-1])
    valid = _valid(array)
    return [
        values[start - first : end - first] if is_there else None
        for start, end, is_there in zip(offsets[:-1], offsets[1:], valid, strict=True)
    ]


def _vectors(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    size = array.type.list_size
    parts = array.values[array.offset * size : (array.offset + len(array)) * size]
    values = plain_values(parts, of_bytes)
    valid = _valid(array)
    return [
        values[row * size : (row + 1) * size] if is_there else None
        for row, is_there in enumerate(valid)
    ]


def _valid(array: pa.Array[Any]) -> list[bool]:
    """Return which rows are not NULL (``Array.is_valid`` would import pyarrow's functions)."""
    bits = array.buffers()[0]
    if bits is None or not array.null_count:
        return [True] * len(array)
    every = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    found: list[bool] = every[array.offset : array.offset + len(array)].astype(bool).tolist()
    return found


def _list_views(array: Any, of_bytes: Callable[[bytes], str]) -> list[Plain]:
    item = array.type.value_field
    return plain_values(array.cast(pa.large_list(item)), of_bytes)
