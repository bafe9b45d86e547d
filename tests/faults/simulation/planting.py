"""Plant a known bug and find it again: see `tests.faults.simulation.plants`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any
from unittest.mock import patch

from pennon.table.apply import next_manifest as applying
from pennon.table.commit.conflict_matrix import Verdict, judge
from pennon.table.manifest import Manifest
from pennon.table.operations import Delete
from tests.faults.simulation.actors import NO_FOCUS, Focus
from tests.faults.simulation.store import Fault


@contextmanager
def everywhere(original: FunctionType, replacement: Callable[..., Any]) -> Iterator[None]:
    """Put a function in the place of another, wherever Pennon has imported it."""
    with ExitStack() as stack:
        for name, module in sorted(sys.modules.items()):
            if name.startswith("pennon."):
                for key, value in list(vars(module).items()):
                    if value is original:
                        stack.enter_context(patch.object(module, key, replacement))
        yield


LOST = {Fault.LOST: 0.15}
LATE = {Fault.LATE: 0.15, Fault.DIE_LATE: 0.02}

Planting = Callable[[ExitStack], None]


@dataclass(frozen=True)
class Plant:
    """A bug: what it is, what it needs to show, and a seed from which on it is soon found."""

    name: str
    about: str
    planting: Planting
    focus: Focus = NO_FOCUS
    first: int = 0

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have the bug, as long as this goes on."""
        with ExitStack() as stack:
            self.planting(stack)
            yield


PLANTS: dict[str, Plant] = {}


def plant(about: str, **focus: Any) -> Callable[[Planting], Planting]:
    """Make a function a plant, under its name."""

    def add(planting: Planting) -> Planting:
        name = planting.__name__.replace("_", " ")
        PLANTS[name] = Plant(name, about, planting, Focus(**focus), FIRST.get(name, 0))
        return planting

    return add


FIRST: dict[str, int] = {
    "absent is failed": 4,
    "clean up believes its clock": 33,
    "clean up forgets a kind": 3,
    "clean up forgets branches": 19,
    "clean up forgets tags": 10,
    "clean up takes files first": 2,
    "clean up takes the newest": 2,
    "clean up takes young files": 5,
    "delete after compaction": 5,
    "deletions are replaced": 2,
    "files are not looked for": 48,
    "final before grant": 3,
    "finish error is a conflict": 1,
    "finished by another is an error": 3,
    "finished under the wrong name": 3,
    "fragment ids are used again": 4,
    "half done commits are not finished": 2,
    "merges add a key twice": 2,
    "newer versions are not judged": 2,
    "no look after landing": 831,
    "one row is taken twice": 2,
    "own manifest is an obstacle": 1,
    "retry builds on a stale version": 2,
    "row ids are used again": 2,
    "the hint is believed": 2,
    "two make one tag": 3,
    "update after compaction": 3,
    "update after update": 2,
}
"""The first seed, from 0, that shows a bug; where none is said, it is 0.  A change of requests may move it."""


def swap(stack: ExitStack, original: Any, replacement: Callable[..., Any]) -> None:
    stack.enter_context(everywhere(original, replacement))


def never_judged(stack: ExitStack, mine: str, *others: str) -> None:
    """Let one operation follow others as if they never met."""

    def lax(one: Any, other: Any) -> Verdict:
        if type(one).__name__ == mine and type(other).__name__ in others:
            return Verdict.COMPATIBLE
        return judge(one, other)

    swap(stack, judge, lax)


def applied(
    stack: ExitStack, kind: type, change: Callable[[Manifest, Any], tuple[Manifest, Any]]
) -> None:
    """Change what an operation finds, and is, before it is applied: a second net that is gone."""
    original = applying._APPLY[kind]

    def changed(head: Manifest, operation: Any, around: Any) -> Manifest:
        return original(*change(head, operation), around)

    stack.enter_context(patch.dict(applying._APPLY, {kind: changed}))


def of_fragments_that_are_there(head: Manifest, operation: Any) -> tuple[Manifest, Any]:
    there = {fragment.id for fragment in head.fragments}
    updated = tuple(fragment for fragment in operation.updated if fragment.id in there)
    if isinstance(operation, Delete):
        gone = tuple(number for number in operation.deleted_ids if number in there)
        return head, replace(operation, updated=updated, deleted_ids=gone)
    gone = tuple(number for number in operation.removed_ids if number in there)
    return head, replace(operation, updated=updated, removed_ids=gone)
