"""Writers of objects as context managers: whole, or not there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Ending(ABC):
    """An object that a block closes at its end, and gives up when the block raises."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Make the object visible."""

    @abstractmethod
    def abort(self) -> None:
        """Give the object up; it never becomes visible under its name."""

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the writer, or abort it when an exception is on its way."""
        if kind is None:
            self.close()
        else:
            self.abort()
