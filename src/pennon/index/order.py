"""The order of values in indices: NULLs first, then ascending; bytes by bytes, floats by IEEE's total order.

So -0.0 comes before 0.0, and a NaN, by its sign, before all numbers or after them.  Source: reference
index-scalar, 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.places import places
from pennon.index.base import Values, joined
from pennon.index.kernels.rows.sorting import order_strings, order_words, places_of_strings

_SIGNED: Final[Mapping[int, tuple[pa.DataType, Any]]] = {
    8: (pa.int8(), np.int8),
    16: (pa.int16(), np.int16),
    32: (pa.int32(), np.int32),
    64: (pa.int64(), np.int64),
}


Strings: TypeAlias = "tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32 | np.int64]]"
"""The bytes of strings, and their offsets."""


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Values without NULLs by what tells which of two comes first: ``numbers``, or their bytes.

    Of types that conditions compare as indices order them; floats are not: 0.0 and -0.0 are equal.
    """

    numbers: npt.NDArray[Any] | None
    strings: Strings | None = None

    @classmethod
    def of(cls, values: pa.Array[Any]) -> Keys | None:
        """Return the keys of values; None for other types."""
        kind = values.type
        if t.is_boolean(kind) or t.is_floating(kind):
            return None
        numbers = numbers_of(values)
        strings = None if numbers is not None else _strings(values)
        return None if numbers is None and strings is None else cls(numbers, strings)

    @classmethod
    def of_one(cls, value: pa.Scalar) -> Keys | None:
        """Return the key of one value; None for other types."""
        whole = _whole_dtype(value.type) if value.is_valid else None
        if whole is None:
            return cls.of(pa.repeat(value, 1))
        number = value.as_py() if t.is_integer(value.type) else value.value
        return cls(np.array([number], whole))

    def __len__(self) -> int:
        if self.strings is not None:
            return len(self.strings[1]) - 1
        return 0 if self.numbers is None else len(self.numbers)

    def part(self, start: int, end: int) -> Keys:
        """Return some keys that follow one another."""
        if self.strings is not None:
            data, offsets = self.strings
            return Keys(None, (data, offsets[start : end + 1]))
        return Keys(None if self.numbers is None else self.numbers[start:end])

    def places(self, others: Keys, *, behind: bool) -> Int64Array:
        """Return how many of these, which ascend, come before each of others of their type; ``behind``: or are equal."""
        if self.strings is not None and others.strings is not None:
            return places_of_strings(*self.strings, *others.strings, behind)
        if self.numbers is None or others.numbers is None:
            message = "keys of one type are compared"
            raise TypeError(message)
        return places(self.numbers, others.numbers, behind=behind)


def order_of(values: pa.Array[Any]) -> Int64Array:
    """Return the places of values in ascending order; equal ones keep theirs."""
    if not values.null_count:
        return _order_of(values)
    is_null = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    there = np.flatnonzero(~is_null)
    return np.concatenate([np.flatnonzero(is_null), there[_order_of(values.drop_null())]])


def starts_of_equal(values: pa.Array[Any]) -> Int64Array:
    """Return where runs of equal values begin in an array that is in order; NULLs are one run."""
    nulls = values.null_count
    rest = values[nulls:]
    numbers = numbers_of(rest)
    if numbers is None:
        differs = pc.not_equal(rest[1:], rest[:-1]).to_numpy(zero_copy_only=False)
    else:
        differs = numbers[1:] != numbers[:-1]
    firsts = sorted({0, nulls} - {len(values)})
    return np.concatenate([np.array(firsts, np.int64), nulls + 1 + np.flatnonzero(differs)])


def least_and_greatest(values: pa.Array[Any]) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the greatest of at least one value; NULLs are not allowed."""
    numbers = numbers_of(values)
    if numbers is not None:
        return values[int(numbers.argmin())], values[int(numbers.argmax())]
    order = _order_of(values)
    return values[int(order[0])], values[int(order[-1])]


def _order_of(values: pa.Array[Any]) -> Int64Array:
    """Return the order of values without NULLs."""
    numbers = numbers_of(values)
    if numbers is not None:
        if not len(numbers):
            return np.empty(0, np.int64)
        wide = np.int64 if numbers.dtype.kind == "i" else np.uint64
        words = np.ascontiguousarray(numbers, wide).view(np.uint64)
        return order_words(words, int(words[numbers.argmin()]))
    strings = _strings(values)
    if strings is not None:
        return order_strings(*strings)
    return np.asarray(pc.array_sort_indices(values).to_numpy(), np.int64)


def numbers_of(values: pa.Array[Any]) -> npt.NDArray[Any] | None:
    """Return whole numbers that are in the order of values without NULLs; None for strings and decimals."""
    kind = values.type
    if t.is_boolean(kind):
        return np.asarray(values.cast(pa.uint8()))
    if t.is_floating(kind):
        arrow, numpy = _SIGNED[kind.bit_width]
        bits: npt.NDArray[Any] = np.asarray(values.view(arrow), numpy)
        ordered: npt.NDArray[Any] = bits ^ ((bits >> (kind.bit_width - 1)) & np.iinfo(numpy).max)
        return ordered
    whole = _whole_dtype(kind)
    if whole is None:
        return None
    start, words = values.offset * whole.itemsize, values.buffers()[1]
    if not len(values):
        return np.empty(0, whole)
    return np.frombuffer(words, whole, len(values), start)


def _whole_dtype(kind: pa.DataType) -> np.dtype[Any] | None:
    """Return what values are that are whole numbers, times among them; None for others."""
    if t.is_integer(kind):
        return np.dtype(str(kind))
    if t.is_temporal(kind) and not t.is_interval(kind):
        signed: np.dtype[Any] = np.dtype(_SIGNED[kind.bit_width][1])
        return signed
    return None


def _strings(values: pa.Array[Any]) -> Strings | None:
    """Return the bytes of strings and their offsets; None for what are no strings."""
    kind = values.type
    if t.is_fixed_size_binary(kind) and not t.is_decimal(kind):
        ends = np.arange(values.offset, values.offset + len(values) + 1) * kind.byte_width
        return np.frombuffer(values.buffers()[1], np.uint8), ends
    is_large = t.is_large_string(kind) or t.is_large_binary(kind)
    if not (is_large or t.is_string(kind) or t.is_binary(kind)):
        return None
    _, offsets, data = values.buffers()
    width: Any = np.int64 if is_large else np.int32
    if not len(values) or data is None:
        return np.empty(0, np.uint8), np.zeros(len(values) + 1, width)
    words = np.frombuffer(offsets, np.uint8)
    found: npt.NDArray[Any] = words.view(width)
    return np.frombuffer(data, np.uint8), found[values.offset : values.offset + len(values) + 1]


def rows_of(values: Values, places: Int64Array) -> Values:
    """Return the values, and their rows, at some places."""
    return Values(values.values.take(pa.array(places)), values.rows[places])


def merged(runs: Sequence[Iterator[Values]]) -> Iterator[Values]:
    """Merge sorted runs: yield their values in order; a block of each run is held."""
    waiting = list(runs)
    held: list[Values] = []
    while True:
        filled = []
        for run, left in zip_longest(waiting, held):
            block = left if left is not None and len(left.rows) else _next_block(run)
            if block is not None:
                filled.append((run, block))
        if not filled:
            return
        waiting = [run for run, _ in filled]
        blocks = [block for _, block in filled]
        if len(blocks) == 1:
            yield blocks[0]
            held = []
            continue
        whole = joined(blocks, blocks[0].values.type)
        of = np.repeat(np.arange(len(blocks)), [len(block.rows) for block in blocks])
        order = order_of(whole.values)
        places = of[order]
        # rows behind the last one of any block may have to wait for rows that come after it
        end = min(np.flatnonzero(places == number)[-1] for number in range(len(blocks))) + 1
        yield rows_of(whole, order[:end])
        rest, owners = order[end:], places[end:]
        held = [rows_of(whole, rest[owners == number]) for number in range(len(blocks))]


def _next_block(run: Iterator[Values]) -> Values | None:
    """Return the next block of a run that has rows; None at its end."""
    return next((block for block in run if len(block.rows)), None)
