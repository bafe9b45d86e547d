"""The state of a loader: a handful of numbers, as JSON has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError

_FORMAT: Final = 1
_LISTS: Final = ("versions", "rows", "parts")


@dataclass(frozen=True, slots=True)
class LoaderState:
    """The place in an epoch, and all that its order depends on.

    ``versions``, ``rows`` and ``parts`` have one number for each table.  ``position`` counts rows of the whole
    order, all ranks together.  ``batch_size`` and the number of ranks are not part of it: either may change.
    """

    versions: tuple[int, ...]
    rows: tuple[int, ...]
    parts: tuple[int, ...]
    seed: int
    shuffle: bool
    block_rows: int
    window_blocks: int
    epoch: int
    position: int
    worker: int = -1
    workers: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the state as a dict that JSON can hold."""
        stated: dict[str, Any] = {"format": _FORMAT}
        for name in type(self).__slots__:
            value = getattr(self, name)
            stated[name] = list(value) if name in _LISTS else value
        return stated

    @classmethod
    def of_json(cls, stated: Mapping[str, Any]) -> Self:
        """Return the state of such a dict.  Raises ArgumentError for anything else."""
        if not isinstance(stated, Mapping) or stated.get("format") != _FORMAT:
            message = (
                f"a loader's state is a dict with 'format': {_FORMAT}, as state_dict() returns it"
            )
            raise ArgumentError(message)
        values: dict[str, Any] = {}
        for name in cls.__slots__:
            value = stated.get(name)
            if name in _LISTS:
                is_right = isinstance(value, (list, tuple)) and all(map(_is_number, value))
                values[name] = tuple(value) if is_right and value is not None else None
            else:
                is_right = isinstance(value, bool) if name == "shuffle" else _is_number(value)
                values[name] = value
            if not is_right:
                message = (
                    f"the loader's state has {value!r} for {name!r}; was it made by state_dict()?"
                )
                raise ArgumentError(message)
        return cls(**values)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
