"""The order of values in indices: NULLs first, then ascending; bytes by bytes, floats by IEEE's total order.

So -0.0 comes before 0.0, and a NaN, by its sign, before all numbers or after them.  Source: reference
index-scalar, 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.index.base import Values, joined

_SIGNED: Final[Mapping[int, tuple[pa.DataType, Any]]] = {
    16: (pa.int16(), np.int16),
    32: (pa.int32(), np.int32),
    64: (pa.int64(), np.int64),
}


def order_of(values: pa.Array[Any]) -> Int64Array:
    """Return the places of values in ascending order; equal ones keep theirs."""
    keys = _keys(values)
    if _is_word(keys.type):
        nulls = (
            np.asarray(keys.is_null().to_numpy(zero_copy_only=False)) if keys.null_count else None
        )
        words = _words(keys)
        if nulls is None:
            return np.argsort(words, kind="stable")
        there = np.flatnonzero(~nulls)
        return np.concatenate(
            [np.flatnonzero(nulls), there[np.argsort(words[there], kind="stable")]]
        )
    order = pc.array_sort_indices(keys, null_placement="at_start")
    return np.asarray(order.to_numpy(), np.int64)


def starts_of_equal(values: pa.Array[Any]) -> Int64Array:
    """Return where runs of equal values begin in an array that is in order; NULLs are one run."""
    if not len(values):
        return np.empty(0, np.int64)
    keys = _keys(values)
    nulls = keys.null_count
    rest = keys[nulls:]
    differs = pc.not_equal(rest[1:], rest[:-1]).to_numpy(zero_copy_only=False)
    starts = nulls + 1 + np.flatnonzero(differs)
    firsts = sorted({0, nulls} - {len(values)})
    return np.concatenate([np.array(firsts, np.int64), starts])


def _keys(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return an array that Arrow and NumPy order as indices do: of floats, signed numbers."""
    kind = values.type
    if t.is_floating(kind):
        arrow, numpy = _SIGNED[kind.bit_width]
        bits = np.asarray(values.view(arrow).fill_null(0).to_numpy(zero_copy_only=False), numpy)
        ordered = bits ^ ((bits >> (kind.bit_width - 1)) & np.iinfo(numpy).max)
        return pa.array(ordered, arrow, mask=_nulls(values))
    if t.is_temporal(kind) and kind.bit_width in _SIGNED:
        return values.view(_SIGNED[kind.bit_width][0])
    return values


def _nulls(values: pa.Array[Any]) -> Any:
    return (
        np.asarray(values.is_null().to_numpy(zero_copy_only=False)) if values.null_count else None
    )


def _is_word(kind: pa.DataType) -> bool:
    return bool(t.is_integer(kind))


def _words(keys: pa.Array[Any]) -> Any:
    return keys.fill_null(0).to_numpy(zero_copy_only=False)


def least_and_greatest(values: pa.Array[Any]) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the greatest of values without NULLs."""
    keys = _keys(values)
    if _is_word(keys.type):
        words = _words(keys)
        return values[int(words.argmin())], values[int(words.argmax())]
    try:
        found = pc.min_max(keys)
    except pa.ArrowNotImplementedError:
        order = pc.array_sort_indices(keys)
        return values[order[0].as_py()], values[order[-1].as_py()]
    return found["min"].cast(values.type), found["max"].cast(values.type)


def rows_of(values: Values, places: Int64Array) -> Values:
    """Return the values, and their rows, at some places."""
    return Values(values.values.take(pa.array(places)), values.rows[places])


def merged(runs: Sequence[Iterator[Values]]) -> Iterator[Values]:
    """Yield the values of runs, each of which is in order, in order; a block of each is held."""
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
