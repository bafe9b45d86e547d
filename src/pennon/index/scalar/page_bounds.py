"""The bounds of a BTREE's pages: in which pages a value may be, and whether a page has the values that they say.

Source: reference index-scalar, 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.core.byte_ranges import Int64Array
from pennon.core.cached_property import cached_property
from pennon.errors import FormatError
from pennon.expr.prune import Bounds, Pruner
from pennon.index.base import VALUE, bound_of, is_nan
from pennon.index.order import Keys
from pennon.index.scalar.wanted import Wanted

_KNOWN_BYTES: Final = 400
"""What the bounds of some pages take in memory, about, when they were asked for."""


class PageBounds:
    """The bounds of pages that are sorted: those of neighbours together are bounds, too."""

    def __init__(
        self, low: pa.Array[Any], high: pa.Array[Any], nulls: npt.NDArray[np.uint64]
    ) -> None:
        if any(_falls(bounds) for bounds in (low, high)):
            message = "the bounds of the pages of an index do not ascend"
            raise FormatError(message)
        self._low, self._high = low, high
        self._known: dict[tuple[int, int], Bounds] = {}
        self._nulls = np.concatenate([np.zeros(1, np.uint64), np.cumsum(nulls)])

    @property
    def size_bytes(self) -> int:
        """Return how much memory the bounds take: those of pages, and of halves of halves of all pages."""
        return int(
            self._low.nbytes + self._high.nbytes + self._nulls.nbytes
        ) + 2 * _KNOWN_BYTES * len(self)

    def __len__(self) -> int:
        return len(self._low)

    @property
    def ends(self) -> tuple[str, str]:
        """Return the least and the greatest value as text."""
        if not len(self):
            return "NULL", "NULL"
        found = self._low[0], self._high[-1]
        least, greatest = map(_text, found)
        return least, greatest

    @cached_property
    def _is_null_only(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._high.is_null().to_numpy(zero_copy_only=False))

    def matching(self, pruner: Pruner) -> Iterator[int]:
        """Yield the pages in which a value may pass, in order."""
        waiting = [(0, len(self))] if len(self) else []
        while waiting:
            start, end = waiting.pop()
            bounds = self._known.get((start, end))
            if bounds is None:
                bounds = self._known[start, end] = self._of(start, end)
            if not pruner.can_match({(VALUE,): bounds}):
                continue
            if end - start == 1:
                yield start
                continue
            middle = (start + end) // 2
            waiting += [(middle, end), (start, middle)]

    @cached_property
    def keys(self) -> tuple[Keys, Keys] | None:
        """Return the lower and the upper bounds that are not NULL, as keys; None if values of the type have none."""
        found = []
        for bounds in (self._low, self._high):
            nulls = bounds.null_count
            keys = Keys.of(bounds[nulls:]) if bounds[:nulls].null_count == nulls else None
            if keys is None:
                return None
            found.append(keys)
        return found[0], found[1]

    def pages_of(self, wanted: Wanted) -> tuple[Int64Array, Int64Array]:
        """Return for each range that is wanted the first page in which it may be, and the one behind the last.

        The first page with a value may begin with NULLs: then nothing tells its least value.
        """
        if self.keys is None:
            message = f"bounds of {self._high.type} have no keys"
            raise TypeError(message)
        low, high = self.keys
        return wanted.begins(high) + self._high.null_count, wanted.ends(low) + self._low.null_count

    def _of(self, start: int, end: int) -> Bounds:
        """Return the bounds of neighbouring pages.  The last page is the shortest, and has no NULLs alone."""
        nulls = int(self._nulls[end] - self._nulls[start])
        if self._is_null_only[end - 1]:
            return Bounds(null_count=nulls, rows=nulls)
        return Bounds(bound_of(self._low[start]), bound_of(self._high[end - 1]), nulls)

    def check(self, first: int, values: pa.Array[Any], size: int) -> None:
        """Raise FormatError if pages of a size have other values than their bounds say, or have them not in order."""
        starts = np.arange(0, len(values), size)
        sizes = np.diff(starts, append=len(values))
        end = first + len(starts)
        nulls = min(int(self._nulls[end] - self._nulls[first]), len(values) + 1)
        is_sorted = values[:nulls].null_count == nulls == values.null_count and not _falls(values)
        counts = (self._nulls[first + 1 : end + 1] - self._nulls[first:end]).astype(np.int64)
        is_right = counts == np.clip(nulls - starts, 0, sizes)
        is_right &= _are_same(values, starts, self._low[first:end])
        is_right &= _are_same(values, starts + sizes - 1, self._high[first:end])
        if not (is_sorted and is_right.all()):
            message = (
                f"page {first + int(is_right.argmin())} of an index has other values than its bounds: an old "
                "release broke it when it compacted the table"
            )
            raise FormatError(message)


def _text(value: pa.Scalar) -> str:
    """Return a value as statistics show it."""
    if not value.is_valid:
        return "NULL"
    if is_nan(value):
        return "NaN"
    return str(value.as_py()).lower() if t.is_boolean(value.type) else str(value.as_py())


def _falls(bounds: pa.Array[Any]) -> bool:
    """Return whether a value is less than the one before it; Arrow does not order all types."""
    try:
        falls = pc.less(bounds[1:], bounds[:-1])
    except pa.ArrowNotImplementedError:
        return False
    return bool(falls.true_count)


def _are_same(
    values: pa.Array[Any], places: Int64Array, bounds: pa.Array[Any]
) -> npt.NDArray[np.bool_]:
    """Return whether the values at places are bounds, each of them."""
    found = (
        values[int(places[0]) : int(places[0]) + 1]
        if len(places) == 1
        else values.take(pa.array(places))
    )
    if found.equals(bounds):
        return np.ones(len(bounds), np.bool_)
    return np.array([_same(*pair) for pair in zip(found, bounds, strict=True)], np.bool_)


def _same(value: pa.Scalar, bound: pa.Scalar) -> bool:
    if not (value.is_valid and bound.is_valid):
        return bool(value.is_valid == bound.is_valid)
    return bool(value.equals(bound)) or is_nan(value)
