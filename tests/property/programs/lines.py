"""The state of a random program beside the table's rows: branches, handles, and outcomes of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.property.programs.model import State


class DisagreementError(Exception):
    """Pennon, pylance and the model are not of one mind."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


class RefusedError(Exception):
    """A step was refused, and might be: nothing of it may be seen."""


@dataclass(slots=True)
class Line:
    """A branch."""

    states: dict[int, State]
    left_from: tuple[str | None, int] | None = None

    @property
    def newest(self) -> int:
        """Return the number of the newest version."""
        return max(self.states)

    @property
    def head(self) -> State:
        """Return the newest version."""
        return self.states[self.newest]

    def lacks_since(self, version: int) -> bool:
        """Return whether a version after this one is gone."""
        return not self.states.keys() >= set(range(version + 1, self.newest))


@dataclass(slots=True)
class Held:
    """A handle that stays at a version, in both processes."""

    line: str | None
    version: int
    base: State
    ours: Any
    cleaned: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcomes that a step may have."""

    outcomes: Sequence[State]
    counts: dict[str, int] | None = None
    refused: bool = False
    may_fail: bool = False
    may_refuse: bool = False
