"""Random arrays of a given type: extremes, NaNs, signed zeros, empty and repeated strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Rng = np.random.Generator
NULLS = ("none", "some", "all")

_DAY_UNITS = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_WORDS = ["", "a", "ab", "lance", "naïve", "日本語", "🦩", "x" * 40, "\x00", "tail\x00"]


def random_array(rng: Rng, t: pa.DataType, rows: int, nulls: str = "some") -> pa.Array:
    """Return an array of ``rows`` values; ``nulls`` is none, some or all, at every level.

    Structs are never NULL, for file version 2.0 cannot hold that.
    """
    if isinstance(t, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(t, random_array(rng, t.storage_type, rows, nulls))
    if pa.types.is_null(t) or (nulls == "all" and not pa.types.is_struct(t)):
        return pa.nulls(rows, t)
    if pa.types.is_struct(t):
        children = [random_array(rng, f.type, rows, nulls) for f in t.fields]
        validity = None
        made = pa.StructArray.from_buffers(t, rows, [validity], children=children)
        return made if children else pa.array([{}] * rows, t)
    mask = _mask(rng, rows, nulls)
    if pa.types.is_fixed_size_list(t):
        items = random_array(rng, t.value_type, rows * t.list_size, nulls)
        return pa.FixedSizeListArray.from_arrays(items, type=t, mask=_optional(mask))
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        return _random_list(rng, t, rows, mask, nulls)
    if pa.types.is_dictionary(t):
        return _random_dictionary(rng, t, rows, mask)
    return _with_nulls(_random_values(rng, t, rows), mask)


def _mask(rng: Rng, rows: int, nulls: str) -> np.ndarray:
    """Return where the NULLs are."""
    if nulls == "none" or rows == 0:
        return np.zeros(rows, bool)
    mask = rng.random(rows) < rng.choice([0.02, 0.3, 0.9])
    mask[rng.integers(rows)] = True
    return mask


def _optional(mask: np.ndarray) -> pa.Array | None:
    return pa.array(mask) if mask.any() else None


def _with_nulls(values: pa.Array, mask: np.ndarray) -> pa.Array:
    """Return the values with NULL where the mask says so, the bytes below left as they are."""
    if not mask.any():
        return values
    validity = pa.array(~mask).buffers()[1]
    buffers = [validity, *values.buffers()[1:]]
    return pa.Array.from_buffers(values.type, len(values), buffers)


def _random_list(rng: Rng, t: pa.DataType, rows: int, mask: np.ndarray, nulls: str) -> pa.Array:
    """Return lists of 0 to some items; NULL lists have none, except sometimes."""
    lengths = rng.integers(0, rng.choice([1, 2, 4, 10]), rows, endpoint=True)
    if rows and rng.random() < 0.3 and rows <= 1100:
        lengths[rng.integers(rows)] += 1500
    if rng.random() < 0.8:
        lengths[mask] = 0
    offsets = np.zeros(rows + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    items = random_array(rng, t.value_type, int(offsets[-1]), nulls)
    width = np.int64 if pa.types.is_large_list(t) else np.int32
    validity = pa.array(~mask).buffers()[1] if mask.any() else None
    buffers = [validity, pa.py_buffer(offsets.astype(width))]
    return pa.Array.from_buffers(t, rows, buffers, children=[items])


def _random_dictionary(rng: Rng, t: pa.DataType, rows: int, mask: np.ndarray) -> pa.Array:
    """Return a dictionary array with few or many values, some of them unused."""
    count = 2 if pa.types.is_boolean(t.value_type) else int(rng.choice([1, 3, 90, 120]))
    values = _random_values(rng, t.value_type, count).unique()
    raw = rng.integers(0, len(values), rows).astype(_numpy_of(t.index_type))
    indices = _with_nulls(pa.array(raw, t.index_type), mask)
    return pa.DictionaryArray.from_arrays(indices, values)


def _random_values(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return values without NULLs of a type that is not nested."""
    if pa.types.is_boolean(t):
        return pa.array(rng.random(rows) < rng.choice([0.0, 0.5, 1.0]))
    if pa.types.is_fixed_size_binary(t) or pa.types.is_decimal(t):
        return _random_wide(rng, t, rows)
    if pa.types.is_integer(t) or pa.types.is_floating(t):
        return _random_numbers(rng, t, rows)
    if pa.types.is_temporal(t):
        return _random_times(rng, t, rows)
    return _random_text(rng, t, rows)


def _numpy_of(t: pa.DataType) -> np.dtype:
    return np.dtype(t.to_pandas_dtype())


def _random_numbers(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return numbers: all bit patterns, a small range, one constant, or the extremes."""
    dtype = _numpy_of(t)
    kind = rng.choice(["bits", "small", "constant", "extremes"])
    if kind == "bits":
        raw = np.frombuffer(rng.bytes(rows * dtype.itemsize), dtype)
    elif kind == "small":
        raw = rng.integers(0, 100, rows).astype(dtype)
    elif kind == "constant":
        raw = np.full(rows, 7, dtype)
    else:
        raw = rng.choice(_extremes(dtype), rows)
    return pa.Array.from_buffers(t, rows, [None, pa.py_buffer(raw.tobytes())])


def _extremes(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "f":
        most = np.finfo(dtype)
        odd = [np.nan, 0.0, -0.0, np.inf, -np.inf, most.max, most.min, most.smallest_subnormal]
        return np.array(odd, dtype)
    limits = np.iinfo(dtype)
    return np.array([limits.min, limits.max, 0, 1], dtype)


def _random_times(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return dates and times within what Arrow allows: times within a day, whole dates."""
    if t == pa.date32():
        raw = rng.integers(-(1 << 31), (1 << 31) - 1, rows, np.int32, endpoint=True)
    elif t == pa.date64():
        raw = rng.integers(-100_000, 100_000, rows) * 86_400_000
    elif pa.types.is_time(t):
        raw = rng.integers(0, _DAY_UNITS[t.unit], rows)
    else:
        raw = rng.integers(-(1 << 63), (1 << 63) - 1, rows, np.int64, endpoint=True)
    width = np.int32 if t.bit_width == 32 else np.int64
    return pa.Array.from_buffers(t, rows, [None, pa.py_buffer(raw.astype(width).tobytes())])


def _random_wide(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return fixed-size binaries of any bytes, or decimals within their precision."""
    if pa.types.is_fixed_size_binary(t):
        return pa.Array.from_buffers(t, rows, [None, pa.py_buffer(rng.bytes(rows * t.byte_width))])
    width = t.bit_width // 8
    largest = 10**t.precision - 1
    choices = [0, 1, -1, largest, -largest, 123_456_789]
    pool = np.array([n.to_bytes(width, "little", signed=True) for n in choices], f"S{width}")
    padded = np.frombuffer(
        b"".join(n.to_bytes(width, "little", signed=True) for n in choices), np.uint8
    ).reshape(len(pool), width)
    raw = padded[rng.integers(0, len(pool), rows)]
    return pa.Array.from_buffers(t, rows, [None, pa.py_buffer(raw.tobytes())])


def _random_text(rng: Rng, t: pa.DataType, rows: int) -> pa.Array:
    """Return strings or binaries: few distinct, about as many as a dictionary takes, or all."""
    kind = rng.choice(["words", "hundred", "distinct", "empty"])
    if kind == "words":
        pool = _WORDS
    elif kind == "hundred":
        pool = [f"value {i}" * (i % 3) for i in range(int(rng.choice([95, 99, 100, 105])))]
    elif kind == "distinct":
        numbers = rng.integers(0, 1 << 40, max(rows, 1))
        pool = [f"{n:x}" for n in numbers.tolist()]
    else:
        pool = [""]
    chosen = pa.array(pool, pa.large_string()).take(pa.array(rng.integers(0, len(pool), rows)))
    if t in (pa.string_view(), pa.binary_view()):
        return chosen.cast(pa.string()).cast(t)
    return chosen.cast(t)
