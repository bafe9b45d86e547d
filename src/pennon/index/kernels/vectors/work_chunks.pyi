"""Chunks of work, of which each thread takes the next one."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

class WorkChunks:
    """Ranges of numbers, each of which is taken once, by whichever thread comes first; kernels take them without the interpreter."""

    def __init__(self, borders: npt.NDArray[np.int64]) -> None:
        """Chunk the numbers ``borders[n]`` to ``borders[n + 1]``.  Raises ValueError unless they rise from 0 or more."""

    def __iter__(self) -> Iterator[tuple[int, int]]: ...
    def __next__(self) -> tuple[int, int]:
        """Take the next range: where it starts and ends."""
