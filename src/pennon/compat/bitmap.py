"""A set of fragment ids with pylance's name and text: ``lance.bitmap.Bitmap``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa


class Bitmap(set[int]):
    """A set of numbers from 0 to 2**32 - 1 that iterates in their order; it is a Python ``set``, too.

    ``values``: numbers, a numpy array or an Arrow array of integers.  Raises TypeError for other values, and
    OverflowError for numbers out of range.

    >>> from pennon.bitmap import Bitmap
    >>> Bitmap([7, 1, 7])
    Bitmap({1, 7})
    >>> list(Bitmap([9, 1])), Bitmap([1]) == {1}
    ([1, 9], True)
    """

    def __init__(
        self, values: Iterable[int] | pa.Array[Any] | pa.ChunkedArray[Any] | None = None
    ) -> None:
        super().__init__(map(_number, _listed(values)))

    def add(self, value: int) -> None:
        """Add a number."""
        super().add(_number(value))

    def update(self, *values: Iterable[int]) -> None:
        """Add the numbers of others."""
        for each in values:
            super().update(map(_number, _listed(each)))

    def copy(self) -> Bitmap:
        """Return a set of the same numbers."""
        return Bitmap(self)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(super().__iter__()))

    def __repr__(self) -> str:
        return f"Bitmap({{{', '.join(map(str, self))}}})"

    def __reduce__(self) -> tuple[type[Bitmap], tuple[list[int]]]:
        """Pickle as a list."""
        return Bitmap, (list(self),)


def _listed(values: Iterable[int] | pa.Array[Any] | pa.ChunkedArray[Any] | None) -> Iterable[int]:
    if values is None:
        return ()
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        listed: list[int] = values.to_pylist()
        return listed
    return values


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        message = f"a Bitmap holds integers, got {type(value).__name__}"
        raise TypeError(message)
    if not 0 <= value < 1 << 32:
        message = f"a Bitmap holds numbers from 0 to 4294967295, got {value}"
        raise OverflowError(message)
    return int(value)
