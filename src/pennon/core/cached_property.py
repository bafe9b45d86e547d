"""A property that is worked out once, without a lock.

`functools.cached_property` of Python 3.11 holds a lock while it works, one for all objects of a
class.  A child that is forked meanwhile would wait for it for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - reads like `property`
    """A method as a property that keeps its value; two threads may work it out at once."""

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T:
        """Return the value; Python finds it in the object itself from then on."""
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._make(instance))
        return value
