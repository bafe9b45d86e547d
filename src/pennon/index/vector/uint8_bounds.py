"""Float32 vectors quantised to uint8, used as lower bounds to skip exact distances.

They are a quarter of what the vectors take, and are made when these are asked again: a first query after a table was
opened would wait for them in vain.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.index.kernels.vectors.vector_rows import bounds_bytes, quantise_rows

_TIMES: Final = 2
"""Rows that are compared so many times are quantised."""


class Uint8Bounds:
    """The bytes of rows, once they are worth it; they are kept with the rows."""

    __slots__ = ("_bytes", "_compared", "_is_begun", "_rows", "size_bytes")

    def __init__(self, rows: npt.NDArray[np.uint8]) -> None:
        """Take the bytes of rows of float32."""
        self._rows = rows
        self._bytes: npt.NDArray[np.uint8] | None = None
        self._compared, self._is_begun = 0, False
        self.size_bytes = bounds_bytes(len(rows), rows.shape[1] // 4)
        """How much memory they take, or will."""

    def bytes_for(self, compared: int) -> npt.NDArray[np.uint8] | None:
        """Return the bytes of rows for a number of comparisons; None if they were not quantised."""
        if not self._is_begun:
            self._compared += compared
            if self._compared >= _TIMES * len(self._rows):
                self._is_begun = True  # other threads compare the rows as they are meanwhile
                made = np.empty(self.size_bytes, np.uint8)
                if self.size_bytes and quantise_rows(self._rows, made):
                    self._bytes = made
        return self._bytes
