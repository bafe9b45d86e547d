"""BLOOMFILTER: of each zone a filter that knows which values do not occur there.

``bloomfilter.lance`` has a row for each zone: ``fragment_id``, ``zone_start``, ``zone_length``, ``has_null`` and
``bloom_filter_data``, a split-block Bloom filter as Parquet's: blocks of eight words of 32 bits.  A value is hashed
by xxHash64 with seed 0, as it lies in an Arrow buffer, and sets one bit in each word of one block.

Its answer is the zones in which the value may occur.  Source: reference index-scalar, 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.errors import ArgumentError, FormatError
from pennon.expr.functions.string_search import is_itself
from pennon.expr.tree import Call, Column, Expression, Literal
from pennon.file.container.writer import DataFileWriter
from pennon.index.base import VALUE, Question, Values, is_nan
from pennon.index.files import IndexFiles, whole_numbers
from pennon.index.kernels.rows.bloom import insert_fixed, insert_varied, xxhash64
from pennon.index.kind import Kind, LookupCost, Parameters, RowNames, is_text
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_set import UNKNOWN, RowSet, Selection
from pennon.index.scalar.zones import (
    FRAGMENT,
    LENGTH,
    START,
    Zones,
    cut_zones,
    null_rows,
    null_rows_of,
    places_of,
    rows_in_zones,
    write_null_rows,
    zones_there,
)

_FILE: Final = "bloomfilter.lance"
_SCHEMA: Final = pa.schema(
    [
        FRAGMENT,
        START,
        LENGTH,
        pa.field("has_null", pa.bool_(), nullable=False),
        pa.field("bloom_filter_data", pa.binary(), False, {"lance-encoding:compression": "none"}),  # noqa: FBT003
    ]
)
_ITEMS: Final = "number_of_items"
_ZONE_ROWS: Final = 8192
_PROBABILITY: Final = "probability"
_FALSE_POSITIVES: Final = 0.00057
_KEYS: Final = {_ITEMS: "bloomfilter_item", _PROBABILITY: "bloomfilter_probability"}
_ZONES_AT_ONCE: Final = 256
_BLOCK: Final = 32
_SALT: Final = np.array(
    [
        0x47B6137B,
        0x44974D91,
        0x8824AD5B,
        0xA2B7289D,
        0x705495C7,
        0x2DF1424B,
        0x9EFC4947,
        0x5C6BFB31,
    ],
    np.uint64,
)
_MOST_VALUES: Final = 1000
"""Of more values nearly every zone has one."""


class BloomFilter:
    """An open BLOOMFILTER index."""

    def __init__(self, files: IndexFiles, column: pa.DataType) -> None:
        """Read the filters.  ``column``: the type of the table's column."""
        self._files = files
        *numbers, nulls, filters = files.file(_FILE).read(_SCHEMA.names)
        self._zones = Zones.of(*(whole_numbers(each, "zones") for each in numbers))
        self._has_null = np.asarray(nulls.to_numpy(zero_copy_only=False), np.bool_)
        self._filters = list(_stacked([_words(each.as_py()) for each in filters]))
        self.column = Column((VALUE,), column)

    @property
    def size_bytes(self) -> int:
        """See `ScalarIndex.size_bytes`."""
        return sum(words.nbytes for _, words in self._filters)

    @property
    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex.statistics`."""
        return {
            "type": "BloomFilter",
            "num_blocks": len(self._has_null),
            **bloom_filter_parameters(self._files),
        }

    def warm(self) -> None:
        """See `ScalarIndex.warm`."""

    def search(self, question: Question) -> Selection:
        """See `ScalarIndex.search`."""
        hashes = question.once(_hashes_of)
        if hashes is not None:
            return Selection.superset(self._zones.rows(self._with_any(hashes)))
        if _asks_for_null(question.condition):
            return Selection.superset(self._zones.rows(np.flatnonzero(self._has_null)))
        return UNKNOWN

    def _with_any(self, hashes: list[int]) -> Int64Array:
        found = np.zeros(len(self._has_null), np.bool_)
        for zones, words in self._filters:
            for each in hashes:
                found[zones] |= _may_have(words, each)
        return found.nonzero()[0]


def answers(condition: Expression) -> bool:
    """Return whether a condition asks for values, or for NULL."""
    return _asks_for_null(condition) or values_of(condition) is not None


def values_of(condition: Expression) -> list[pa.Scalar] | None:
    """Return the values that an equality or IN condition names; None for another condition."""
    if not isinstance(condition, Call) or condition.function not in {"=", "IN", "like"}:
        return None
    column = next((each for each in condition.arguments if isinstance(each, Column)), None)
    given = next((each for each in condition.arguments if isinstance(each, Literal)), None)
    if column is None or given is None or not given.value.is_valid:
        return None
    if condition.function == "like" and not is_itself(given.value.as_py()):
        return None
    values = list(given.value.values) if condition.function == "IN" else [given.value]
    is_known = len(values) <= _MOST_VALUES and all(map(_is_plain, values))
    return values if is_known else None


def _hashes_of(condition: Expression) -> list[int] | None:
    """Return the hashes of the values that an equality or IN condition names; None for another condition."""
    values = values_of(condition)
    if values is None:
        return None
    return [xxhash64(data) for value in values for data in _stored(value)]


def _asks_for_null(condition: Expression) -> bool:
    return (
        isinstance(condition, Call)
        and condition.function == "IS NULL"
        and isinstance(condition.arguments[0], Column)
    )


def _is_plain(value: pa.Scalar) -> bool:
    """Return whether just the bytes of a value, or of both zeros, are equal to it."""
    if not value.is_valid:
        return False
    if t.is_floating(value.type):
        return value.type != pa.float16() and not is_nan(value)
    is_text = t.is_string(value.type) or t.is_large_string(value.type)
    is_bytes = t.is_binary(value.type) or t.is_large_binary(value.type)
    is_number = t.is_integer(value.type) or t.is_temporal(value.type)
    return bool(is_text or is_bytes or (is_number and not t.is_duration(value.type)))


def _stored(value: pa.Scalar) -> Iterator[bytes]:
    """Yield the bytes that a value is hashed by: those of a zero with either sign."""
    if t.is_floating(value.type) and value.as_py() == 0:
        yield from (_bytes_of(pa.scalar(zero, value.type)) for zero in (0.0, -0.0))
    else:
        yield _bytes_of(value)


def _bytes_of(value: pa.Scalar) -> bytes:
    found: Any = value.as_py()
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, bytes):
        return found
    buffer = pa.array([value]).buffers()[1]
    return bytes(buffer)[: value.type.bit_width // 8]


def _words(data: bytes | None) -> npt.NDArray[np.uint32]:
    """Return the words of a filter, a block a row; raises FormatError."""
    if not data or len(data) % _BLOCK:
        message = (
            f"a Bloom filter has {len(data or b'')} bytes, which is not a multiple of {_BLOCK}"
        )
        raise FormatError(message)
    return np.frombuffer(data, "<u4").reshape(-1, 8)


def _stacked(
    filters: Sequence[npt.NDArray[np.uint32]],
) -> Iterator[tuple[Int64Array, npt.NDArray[np.uint32]]]:
    """Yield the filters of each size, and the zones that have them."""
    sizes = np.array([len(each) for each in filters], np.int64)
    for size in np.unique(sizes).tolist():
        zones = np.flatnonzero(sizes == size)
        yield zones, np.stack([filters[zone] for zone in zones.tolist()])


def _may_have(filters: npt.NDArray[np.uint32], hashed: int) -> npt.NDArray[np.bool_]:
    """Return which filters of one size may have a value."""
    block = ((hashed >> 32) * filters.shape[1]) >> 32
    low = np.uint64(hashed & 0xFFFFFFFF)
    bits = ((low * _SALT) & np.uint64(0xFFFFFFFF)) >> np.uint64(27)
    is_set = (filters[:, block] >> bits.astype(np.uint32)) & np.uint32(1)
    found: npt.NDArray[np.bool_] = np.logical_and.reduce(is_set, axis=1)
    return found


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows of the zones."""
    return rows_in_zones(files.file(_FILE))


# --- making ---------------------------------------------------------------------------------------


def write_bloom_filter(parts: Iterable[Values], _kind: pa.DataType, new: NewFiles) -> None:
    """Write the filters of zones of values that come by ascending addresses."""
    size = new.number(_ITEMS, _ZONE_ROWS)
    probability = _checked(new.parameters.get(_PROBABILITY, _FALSE_POSITIVES))
    words = _filter_bytes(size, probability) // 4
    nulls = []
    with _file(new, size, probability) as file:
        zones = cut_zones(parts, size)
        while some := list(islice(zones, _ZONES_AT_ONCE)):
            arrays = [
                *places_of(some),
                pa.array([bool(zone.values.null_count) for zone in some]),
                pa.array([_filter_of(zone.values, words) for zone in some], pa.binary()),
            ]
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
            nulls += [null_rows(zone) for zone in some]
        write_null_rows(file, nulls)


def rewrite_bloom_filter(old: Sequence[OldIndex], _kind: pa.DataType, new: NewFiles) -> None:
    """Write the zones of several indices whose fragments are there yet; rows must not have moved."""
    parameters = bloom_filter_parameters(old[0].files) | dict(new.parameters)
    nulls = []
    with _file(new, parameters[_ITEMS], parameters[_PROBABILITY]) as file:
        for each in old:
            source = each.files.file(_FILE)
            arrays = source.read(_SCHEMA.names)
            there = zones_there(arrays[0], arrays[1], each.moves)
            file.write(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA).filter(there))
            nulls.append(null_rows_of(source, each.moves))
        if all(each is not None for each in nulls):
            write_null_rows(file, [each for each in nulls if each is not None])


def bloom_filter_parameters(files: IndexFiles) -> dict[str, Any]:
    """Return the parameters that an index was made with."""
    file = files.file(_FILE)
    text = file.data.schema_metadata.get(_KEYS[_PROBABILITY], b"")
    try:
        probability = _checked(float(text or _FALSE_POSITIVES))
    except ValueError:
        message = (
            f"{file.source.path}: {_KEYS[_PROBABILITY]} must be a probability, and is {text!r}"
        )
        raise FormatError(message) from None
    return {_ITEMS: file.number(_KEYS[_ITEMS], _ZONE_ROWS), _PROBABILITY: probability}


@contextmanager
def _file(new: NewFiles, size: int, probability: float) -> Iterator[DataFileWriter]:
    with new.file(_FILE, *_SCHEMA) as file:
        chosen = {_KEYS[_ITEMS]: str(size), _KEYS[_PROBABILITY]: str(probability)}
        file.add_schema_metadata(chosen)
        yield file


def _checked(probability: object) -> float:
    """Return a probability.  Raises ArgumentError for what is none, or is 0 or 1."""
    if isinstance(probability, (int, float)) and 0 < probability < 1:
        return float(probability)
    message = f"the probability of a Bloom filter lies between 0 and 1, got {probability!r}"
    raise ArgumentError(message)


def _filter_bytes(items: int, probability: float) -> int:
    """Return how large a filter must be: a power of two.

    Source: the Parquet format, "Bloom filter": 8 bits an item are set.
    """
    bits = -8 * items / math.log(1 - probability ** (1 / 8))
    return 1 << max(math.ceil(bits / 8) - 1, _BLOCK - 1).bit_length()


def _filter_of(values: pa.Array[Any], words: int) -> bytes:
    """Return the filter of values, of so many words."""
    found = np.zeros(words, np.uint32)
    there = values.drop_null()
    _, *buffers = there.buffers()
    if len(buffers) == 1:
        width = there.type.bit_width // 8
        start, size = there.offset * width, len(there) * width
        insert_fixed(found, np.frombuffer(buffers[0], np.uint8)[start : start + size], width)
    else:
        is_large = t.is_large_string(there.type) or t.is_large_binary(there.type)
        ends = np.frombuffer(buffers[0], np.uint8)
        offsets = ends.view(np.int64) if is_large else ends.view(np.int32)
        data = np.empty(0, np.uint8) if buffers[1] is None else np.frombuffer(buffers[1], np.uint8)
        insert_varied(found, data, offsets[there.offset : there.offset + len(there) + 1])
    return found.astype("<u4").tobytes()


def _is_hashed(kind: pa.DataType) -> bool:
    is_bytes = t.is_binary(kind) or t.is_large_binary(kind)
    is_number = t.is_integer(kind) or t.is_float32(kind) or t.is_float64(kind)
    is_time = t.is_temporal(kind) and not t.is_duration(kind)
    return bool(is_text(kind) or is_bytes or is_number or is_time)


KIND: Final = Kind(
    name="BloomFilter",
    details="BloomFilterIndexDetails",
    user_names=("BLOOMFILTER",),
    names_rows_by=RowNames.ADDRESSES,
    reads=0,
    open=BloomFilter,
    answers=lambda condition, _: answers(condition),
    rows_named=rows_named,
    takes=_is_hashed,
    types="int, float of 32 or 64 bits, string, binary, date, time or timestamp",
    build=write_bloom_filter,
    merge=rewrite_bloom_filter,
    by_zones=True,
    parameters=Parameters(
        names=frozenset({_ITEMS, _PROBABILITY}), of_files=bloom_filter_parameters
    ),
    package="lance.index.pb",
    may_be_json_target=True,
    tells_type=False,  # whole numbers have other hashes than the same as floating-point ones: F-602
    lookup_cost=LookupCost.POINT,
)
