"""The file behind a map, for ranges that lie far apart.

A byte that is touched in a map costs a fault, and brings up to 2 MiB of the file into the memory of
the process.  A read costs less than the fault, and no memory but its own.  So of a table that does not
fit the account of maps (`pennon.io.map_budget`), rows here and there are read past the map.

The file is opened for each such round: who maps thousands of files has no descriptor to keep for each.
"""

from __future__ import annotations

import os
from functools import reduce
from operator import or_
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.kernels.gather import gather_from_file
from pennon.core.memory import allocate_buffer
from pennon.core.units import MIB
from pennon.errors import Breadcrumb, FormatError

_FLAGS: Final = ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT")
READ_FLAGS: Final = reduce(or_, (getattr(os, name, 0) for name in _FLAGS), os.O_RDONLY)
"""How a file is opened to read: at once, also where a pipe has its name; not in children; as bytes (Windows asks)."""
FAR_BYTES: Final = MIB
"""Ranges within less than this come in at a fault or two."""
SPARSE: Final = 4
"""Where a map holds less than so many times what is wanted of it, it is the better way."""


@dataclass(frozen=True, slots=True)
class FileBehind:
    """The identity of a mapped file: its name, and the system's description of it."""

    real: str
    device: int
    inode: int

    @classmethod
    def of(cls, real: str, fd: int) -> FileBehind:
        """Return the file of a name, which is open."""
        status = os.fstat(fd)
        return cls(real, status.st_dev, status.st_ino)

    def gather(self, starts: Int64Array, ends: Int64Array, size_bytes: int) -> pa.Buffer | None:
        """Return the ranges, packed; None if the name leads to that file no longer.

        Raises FormatError if the file ends before the last range.
        """
        try:
            fd = os.open(self.real, READ_FLAGS)
        except OSError:
            return None
        try:
            if FileBehind.of(self.real, fd) != self:
                return None
            target = allocate_buffer(size_bytes)
            gather_from_file(fd, starts, ends, _bytes_of(target))
        except EOFError as error:
            raise FormatError(str(error), where=Breadcrumb(self.real)) from None
        except OSError:
            return None
        finally:
            os.close(fd)
        return target


def _bytes_of(buffer: pa.Buffer) -> npt.NDArray[np.uint8]:
    return np.frombuffer(memoryview(buffer), np.uint8)


def is_sparse(first: int, last: int, wanted_bytes: int) -> bool:
    """Tell whether so little of a stretch of a file is wanted that it is better read than mapped."""
    return last - first >= max(FAR_BYTES, SPARSE * wanted_bytes)
