"""FSST: a table of up to 255 symbols of one to eight bytes, found in a sample of the strings.

A table is found in rounds.  In each, the sample is encoded with the table as it is, and symbols and
pairs of neighbours are counted; the 255 that would save most become the next table.  Equal strings
give equal tables: the sample is every n-th string, and ties are decided by the symbols themselves.

Source: Boncz, Neumann, Leis, "FSST: Fast Random Access String Compression", PVLDB 13 (2020), section
4; `pennon.encoding.symbol_table` draws the bytes of the table.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.gather import gather
from pennon.core.runs import run_starts
from pennon.core.thread_pools import both
from pennon.core.units import KIB
from pennon.encoding.arrow_buffers import Bytes
from pennon.encoding.kernels.fsst_train import count_symbols, encode_symbols
from pennon.encoding.symbol_table import IN_USE, MAGIC
from pennon.encoding.v2_1.values import StringValues

TABLE_BYTES: Final = 8 + 256 * 9
"""The one size that readers take."""

MOST_SYMBOLS: Final = 255
LONGEST_SYMBOL: Final = 8
SAMPLE_BYTES: Final = 64 * 1024
LEAST_SAMPLE_BYTES: Final = 16 * 1024
SAMPLE_STRING_BYTES: Final = 512
"""Of a longer string, only a piece is in the sample."""

NOISE_BITS: Final = 7.6
"""Bits of information in a byte from which on the bytes count as noise."""

_MOST_SHARES: Final = 16
_ROUNDS: Final = ((_MOST_SHARES, 1), (8, 2), (4, 2), (2, 3), (1, 4))
"""Which part of the sample a round looks at, as the first ones only find short symbols, and how often
a pair has to come."""

_MOST_CANDIDATES: Final = 8 * MOST_SYMBOLS
_SPLIT_BYTES: Final = 512 * KIB
"""From so many bytes on, two threads encode half of the strings each."""
_MEASURED_STRINGS: Final = 16 * 1024


class _Counters(threading.local):
    """Memory to count pairs in, 1 MiB a thread: fresh memory for each round costs more than to count."""

    def __init__(self) -> None:
        self.pairs = np.empty((512, 512), np.uint32)


_COUNTERS: Final = _Counters()


@dataclass(frozen=True, slots=True, eq=False)
class TrainedSymbols:
    """Symbol i, of ``lengths[i]`` bytes (the first one lowest), has the code i."""

    symbols: npt.NDArray[np.uint64]
    lengths: Bytes

    def serialize(self) -> bytes:
        """Return the table as readers want it."""
        count = len(self.symbols)
        header = MAGIC << 32 | IN_USE | count
        parts = header.to_bytes(8, "little") + self.symbols.tobytes() + self.lengths.tobytes()
        return parts.ljust(TABLE_BYTES, b"\0")

    def encode(self, values: StringValues) -> StringValues:
        """Return the codes of the strings."""
        if values.size_bytes < _SPLIT_BYTES:
            codes, ends = self._encode(values.data, values.offsets)
            return StringValues(ends, codes, values.width)
        half = values.count // 2
        (codes, ends), (more, more_ends) = both(
            partial(self._encode, values.data, values.offsets[: half + 1]),
            partial(self._encode, values.data, values.offsets[half:]),
        )
        ends = np.concatenate([ends, more_ends[1:] + ends[-1]])
        return StringValues(ends, np.concatenate([codes, more]), values.width)

    def _encode(self, data: Bytes, offsets: Int64Array) -> tuple[Bytes, Int64Array]:
        return encode_symbols(data, offsets, self.symbols, self.lengths)


def train(sample: StringValues) -> TrainedSymbols:
    """Return a table for strings like these, which should be a `sample_of` all of them."""
    table = TrainedSymbols(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    for share, least in _ROUNDS:
        offsets = sample.offsets[: max(sample.count // share, 1) + 1]
        found = count_symbols(
            sample.data, offsets, table.symbols, table.lengths, least, _COUNTERS.pairs
        )
        table = _best(*found)
    return table


def ratio_of(sample: StringValues, table: TrainedSymbols) -> float:
    """Return how large the codes of a sample are, where its bytes are 1."""
    if len(sample.data) == 0:
        return 1.0
    return len(table.encode(sample).data) / len(sample.data)


def sample_of(values: StringValues) -> StringValues:
    """Return pieces of every n-th string: a quarter of the bytes, but within bounds.

    Those of the first part of a sample come from all over, too.
    """
    offsets = values.offsets
    places = np.arange(0, values.count, max(1, values.count // _MEASURED_STRINGS))
    capped = np.minimum(offsets[places + 1] - offsets[places], SAMPLE_STRING_BYTES)
    wanted = min(SAMPLE_BYTES, max(LEAST_SAMPLE_BYTES, values.size_bytes // 4))
    step = max(1, int(capped.mean() * values.count) // wanted)
    # A stride would meet the same place of periodic data again and again; this one wanders.
    groups = np.arange(0, values.count, step)
    chosen = np.minimum(groups + groups // step * 7919 % step, values.count - 1)
    return _pieces(values, np.concatenate([chosen[i::_MOST_SHARES] for i in range(_MOST_SHARES)]))


def _pieces(values: StringValues, chosen: Int64Array) -> StringValues:
    """Return some of the strings, of long ones a piece."""
    lengths = values.offsets[chosen + 1] - values.offsets[chosen]
    sizes = np.minimum(lengths, SAMPLE_STRING_BYTES)
    starts = values.offsets[chosen] + (lengths - sizes) * (chosen % 7) // 7
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    data = np.empty(offsets[-1], np.uint8)
    gather(values.data, starts, starts + sizes, data)
    return StringValues(offsets, data, values.width)


def _best(
    symbols: npt.NDArray[np.uint64], lengths: Int64Array, gains: Int64Array
) -> TrainedSymbols:
    """Return the symbols that save most, the gains of equal ones added."""
    if len(symbols) == 0:
        return TrainedSymbols(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    if len(gains) > _MOST_CANDIDATES:
        kept = np.argpartition(-gains, _MOST_CANDIDATES)[:_MOST_CANDIDATES]
        symbols, lengths, gains = symbols[kept], lengths[kept], gains[kept]
    order = np.lexsort((symbols, lengths))
    symbols, lengths, gains = symbols[order], lengths[order], gains[order]
    starts = np.flatnonzero(run_starts(symbols, lengths))
    total = np.add.reduceat(gains, starts)
    best = np.lexsort((starts, -total))[: 2 * MOST_SYMBOLS]
    best = best[_first_of_alike(symbols[starts[best]], lengths[starts[best]])][:MOST_SYMBOLS]
    chosen = np.sort(starts[best])
    return TrainedSymbols(symbols[chosen], lengths[chosen].astype(np.uint8))


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


def is_noise(sample: StringValues) -> bool:
    """Tell whether the bytes of a sample are all about as frequent, so that no symbol will help."""
    counts = np.bincount(sample.data, minlength=256)
    share = counts[counts > 0] / max(len(sample.data), 1)
    return bool(-(share * np.log2(share)).sum() > NOISE_BITS)
