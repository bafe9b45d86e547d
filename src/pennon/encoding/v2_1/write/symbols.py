"""FSST: a table of up to 255 symbols of one to eight bytes, found in a sample of the strings.

A table is found in rounds.  In each, the sample is encoded with the table as it is, and symbols and
pairs of neighbours are counted; the 255 that would save most become the next table.  Equal strings
give equal tables: the sample is every n-th string, and ties are decided by the symbols themselves.

Source: Boncz, Neumann, Leis, "FSST: Fast Random Access String Compression", PVLDB 13 (2020), section
4; the bytes of the table are those of `pennon.encoding.v2_0.fsst`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.encoding.kernels.fsst_train import count_symbols, encode_symbols
from pennon.encoding.v2_0.fsst import IN_USE, MAGIC
from pennon.encoding.v2_1.write.blocks import Bytes, StringValues
from pennon.ranges import Int64Array

TABLE_BYTES: Final = 8 + 256 * 9
"""The one size that readers take."""

MOST_SYMBOLS: Final = 255
SAMPLE_BYTES: Final = 128 * 1024
SAMPLE_STRING_BYTES: Final = 512
"""Of a longer string, only a piece is in the sample."""

NOISE_BITS: Final = 7.6
"""Bits of information in a byte from which on the bytes count as noise."""

_ROUNDS: Final = 5


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """Symbol i, of ``lengths[i]`` bytes (the first one lowest), has the code i."""

    symbols: npt.NDArray[np.uint64]
    lengths: Bytes

    def serialize(self) -> bytes:
        """Return the table as readers want it."""
        count = len(self.symbols)
        header = MAGIC << 32 | IN_USE | count
        parts = header.to_bytes(8, "little") + self.symbols.tobytes() + self.lengths.tobytes()
        return parts.ljust(TABLE_BYTES, b"\0")


def train(values: StringValues) -> SymbolTable:
    """Return a table for strings like these."""
    data, offsets = _sample(values)
    table = SymbolTable(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    for number in range(_ROUNDS):
        least = 1 if number == 0 else 2
        found = count_symbols(data, offsets, table.symbols, table.lengths, least)
        table = _best(*found)
    return table


def encode_with(values: StringValues, table: SymbolTable) -> StringValues:
    """Return the codes of the strings."""
    codes, ends = encode_symbols(values.data, values.offsets, table.symbols, table.lengths)
    return StringValues(ends, codes, values.width)


def sample_ratio(values: StringValues, table: SymbolTable) -> float:
    """Return how large the codes of a sample are, where its bytes are 1."""
    data, offsets = _sample(values)
    if len(data) == 0:
        return 1.0
    codes, _ = encode_symbols(data, offsets, table.symbols, table.lengths)
    return len(codes) / len(data)


def _sample(values: StringValues) -> tuple[Bytes, Int64Array]:
    """Return pieces of every n-th string, as many as make `SAMPLE_BYTES`."""
    lengths = np.diff(values.offsets)
    capped = np.minimum(lengths, SAMPLE_STRING_BYTES)
    step = max(1, int(capped.sum()) // SAMPLE_BYTES)
    # A stride would meet the same place of periodic data again and again; this one wanders.
    groups = np.arange(0, len(lengths), step)
    chosen = np.minimum(groups + groups // step * 7919 % step, len(lengths) - 1)
    starts = values.offsets[chosen] + (lengths[chosen] - capped[chosen]) * (chosen % 7) // 7
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(capped[chosen], out=offsets[1:])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], capped[chosen])
    return values.data[np.repeat(starts, capped[chosen]) + within], offsets


def _best(symbols: npt.NDArray[np.uint64], lengths: Int64Array, gains: Int64Array) -> SymbolTable:
    """Return the symbols that save most, the gains of equal ones added."""
    if len(symbols) == 0:
        return SymbolTable(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    order = np.lexsort((symbols, lengths))
    symbols, lengths, gains = symbols[order], lengths[order], gains[order]
    new = np.ones(len(symbols), np.bool_)
    new[1:] = (symbols[1:] != symbols[:-1]) | (lengths[1:] != lengths[:-1])
    starts = np.flatnonzero(new)
    total = np.add.reduceat(gains, starts)
    best = np.lexsort((starts, -total))[: 2 * MOST_SYMBOLS]
    best = best[_first_of_alike(symbols[starts[best]], lengths[starts[best]])][:MOST_SYMBOLS]
    chosen = np.sort(starts[best])
    return SymbolTable(symbols[chosen], lengths[chosen].astype(np.uint8))


def _first_of_alike(symbols: npt.NDArray[np.uint64], lengths: Int64Array) -> npt.NDArray[np.bool_]:
    """Tell which symbols have none before them that an encoder would look for in the same place.

    Symbols of 3 to 5 bytes are found by their first three, those of 6 and 7 by their first six.
    """
    middle = (lengths > 2) & (lengths < 8)
    three, six = np.uint64(0xFFFFFF), np.uint64(0xFFFFFFFFFFFF)
    keys = np.where(lengths > 5, symbols & six | np.uint64(1 << 62), symbols & three)
    first = ~middle
    _, found = np.unique(keys[middle], return_index=True)
    first[np.flatnonzero(middle)[found]] = True
    return first


def is_noise(values: StringValues) -> bool:
    """Tell whether the bytes of the strings are all about as frequent, so that no symbol will help."""
    data, _ = _sample(values)
    counts = np.bincount(data, minlength=256)
    share = counts[counts > 0] / max(len(data), 1)
    return bool(-(share * np.log2(share)).sum() > NOISE_BITS)
