"""A read-only memory map that does not keep its file descriptor.

The standard library's `mmap` keeps a duplicate of the descriptor for as long as the map lives, so a
table of a few thousand files would run into the limit of open files.
"""

def mapped_bytes() -> int:
    """Return the size of all maps of this process together."""

class Mapping:
    """The first ``size_bytes`` bytes of an open file, as a read-only buffer.

    The descriptor may be closed at once.  The map ends when the last buffer over it is gone.
    """

    def __init__(self, fd: int, size_bytes: int) -> None:
        """Map the file; raises OSError if the system refuses, ValueError if there are no bytes."""

    def forget(self, position: int, size_bytes: int) -> None:
        """Let the system take back the memory of a range.

        The bytes stay readable, also through buffers handed out before: whoever touches them gets
        them from the file again.  Raises ValueError if the range leaves the map.
        """

    def __len__(self) -> int:
        """Return the size in bytes."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return the bytes (buffer protocol)."""

def map_files(
    paths: list[bytes],
) -> list[tuple[Mapping, int, int, tuple[int, int, int]] | None]:
    """Map files, without the GIL for all of them; None for what is no file, has no bytes or cannot be opened.

    With each map come what the system says of the file: device, inode, and the size in bytes and the times
    of the last change of its bytes and of its entry, in nanoseconds.  Raises ValueError if a path has a zero byte.
    """
