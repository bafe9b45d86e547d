"""The portable serialization of a 32-bit Roaring bitmap: a set of row offsets.

The high 16 bits of a value choose a container, which holds the low 16 bits in one of three ways::

    u32 cookie      12346: no run containers, then u32 container count
                    12347 + (count - 1 << 16): some are runs, then a bit for each container
    per container   u16 key, u16 cardinality - 1           keys ascend
    offset header   u32 per container (absent in run files of fewer than 4 containers)
    containers      array: u16 values;  bitmap, if more than 4096 values: 8 KiB of bits;
                    runs: u16 count, then (u16 start, u16 length - 1) each

All numbers are little endian.  Pennon reads this itself, and not through a library's C code,
because a deletion file is untrusted: every count is compared with the bytes that are there.

Source: RoaringFormatSpec; what Lance writes has cookie 12346 (ledger F-44).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from pennon.errors import FormatError, TooLargeError
from pennon.table.kernels.roaring import read_bits, serialize_sets

Offsets = npt.NDArray[np.uint32]

_COOKIE = 12346
_COOKIE_WITH_RUNS = 12347
_OFFSETS_FROM = 4
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_PAIR = struct.Struct("<HH")
_PLAIN = _COOKIE.to_bytes(2, "little")


def parse_roaring(data: bytes, most: int = 1 << 32) -> Offsets:
    """Return the values of a serialized bitmap, ascending; raises FormatError.

    Raises TooLargeError for more than ``most`` values: a few bytes may stand for very many.
    """
    parts = [values + np.uint32(key << 16) for key, values in _Containers(data, most)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def serialize_roaring(values: Offsets, *, with_runs: bool = False) -> bytes:
    """Return the bytes of a bitmap of ``values``, which ascend without repeats.

    ``with_runs``: containers that are smaller as runs are runs.
    """
    borders = np.array([0, len(values)])
    data, _ = serialize_sets(values.astype(np.uint64), borders, form=0, with_runs=with_runs)
    return data.tobytes()


class _Containers:
    """The containers of a bitmap, one after the other: the key of each, and the low halves of its values."""

    def __init__(self, data: bytes, most: int = 1 << 32) -> None:
        """Read the headers.  Raises FormatError, TooLargeError for more than ``most`` values."""
        self._data = data
        count, self._run_flags, self.position = _parse_cookie(data)
        self._headers = _words(data, self.position, 2 * count).reshape(count, 2).astype(np.int64)
        self.position += 4 * count
        if self._run_flags is None or count >= _OFFSETS_FROM:
            self.position += 4 * count
        if np.any(np.diff(self._headers[:, 0]) <= 0):
            message = "the keys of a roaring bitmap do not ascend"
            raise FormatError(message)
        stated = int(self._headers[:, 1].sum()) + count
        if stated > most:
            message = (
                f"a roaring bitmap of {len(data)} bytes holds {stated} values, more than {most}"
            )
            raise TooLargeError(message)

    def __iter__(self) -> Iterator[tuple[int, Offsets]]:
        """Yield key and values of each; ``position`` goes along, to the end of the bitmap."""
        flags = self._run_flags
        for number, (key, size) in enumerate(self._headers.tolist()):
            is_run = flags is not None and bool(flags[number // 8] >> (number % 8) & 1)
            values, self.position = _parse_container(
                self._data, self.position, size + 1, is_run=is_run
            )
            yield key, values


def _parse_cookie(data: bytes) -> tuple[int, bytes | None, int]:
    """Return the container count, the bits of the run containers if any, and the next position."""
    low, high = _PAIR.unpack(_take(data, 0, _PAIR.size))
    if low == _COOKIE_WITH_RUNS:
        end = 4 + (high + 8) // 8
        if end > len(data):
            message = f"a roaring bitmap of {len(data)} bytes has no room for {high + 1} containers"
            raise FormatError(message)
        return high + 1, data[4:end], end
    if low != _COOKIE or high != 0:
        message = f"a roaring bitmap begins with {data[:4].hex()}, which is not a known cookie"
        raise FormatError(message)
    (count,) = struct.unpack("<I", _take(data, 4, 4))
    if count > 1 << 16:
        message = f"a roaring bitmap cannot have {count} containers"
        raise FormatError(message)
    return count, None, 8


def _parse_container(data: bytes, position: int, size: int, *, is_run: bool) -> tuple[Offsets, int]:
    """Return the low halves of a container's values, and the position behind it."""
    if is_run:
        return _parse_runs(data, position, size)
    if size <= _ARRAY_MAX:
        values, end = _words(data, position, size).astype(np.uint32), position + 2 * size
    else:
        values = read_bits(_take(data, position, _BITMAP_BYTES), size)
        end = position + _BITMAP_BYTES
    if len(values) != size or (size <= _ARRAY_MAX and np.any(values[1:] <= values[:-1])):
        message = f"a roaring container of {len(values)} values says {size}, or is not sorted"
        raise FormatError(message)
    return values, end


def _parse_runs(data: bytes, position: int, size: int) -> tuple[Offsets, int]:
    count = int(_words(data, position, 1)[0])
    runs = _words(data, position + 2, 2 * count).reshape(count, 2).astype(np.int64)
    lengths = runs[:, 1] + 1
    ends = runs[:, 0] + lengths
    if lengths.sum() != size or np.any(ends > 1 << 16) or np.any(runs[1:, 0] < ends[:-1]):
        message = f"the runs of a roaring container overlap, or are not of {size} values"
        raise FormatError(message)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = np.repeat(runs[:, 0], lengths) + np.arange(size) - before
    return values.astype(np.uint32), position + 2 + 4 * count


def _words(data: bytes, position: int, count: int) -> npt.NDArray[np.uint16]:
    return np.frombuffer(_take(data, position, 2 * count), "<u2")


def _take(data: bytes, position: int, size_bytes: int) -> bytes:
    if position + size_bytes > len(data):
        message = f"a roaring bitmap of {len(data)} bytes is cut off"
        raise FormatError(message)
    return data[position : position + size_bytes]
