"""Faults of pylance 14.0.2 that random programs meet: each as narrow as it is known.

None of them is one of Pennon's.  A step that pylance is known to do wrong is done by Pennon instead;
what pylance is known to read wrong is not asked of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.property.programs.filters import Tree, columns_of, names_in
from tests.property.programs.kinds import KINDS
from tests.property.programs.model import State
from tests.property.programs.steps import Dimensions, Step


@dataclass(frozen=True, slots=True)
class Situation:
    """A step before it is done: the version that its handle has, and the newest one."""

    step: Step
    base: State
    head: State
    dimensions: Dimensions

    @property
    def is_late(self) -> bool:
        """Tell whether the handle is behind."""
        return self.base is not self.head

    @property
    def schema_changed(self) -> bool:
        """Tell whether others changed columns since the handle was opened."""
        return self.base.columns != self.head.columns


@dataclass(frozen=True, slots=True)
class Known:
    """One fault."""

    name: str
    why: str
    applies: Callable[[Situation], bool]
    says: str | None = None
    """What pylance says when it refuses; None where it is not asked at all."""


def known_of(situation: Situation) -> Known | None:
    """Return the fault that pylance would show in a step, if one is known."""
    found = (known for known in KNOWN_OF_PYLANCE if known.says is None)
    return next((known for known in found if known.applies(situation)), None)


def refusal_of(situation: Situation, message: str) -> Known | None:
    """Return the fault that makes pylance refuse a step with a message, if one is known."""
    found = (known for known in KNOWN_OF_PYLANCE if known.says and known.says in message)
    return next((known for known in found if known.applies(situation)), None)


def misread_filter(tree: Tree, state: State, dimensions: Dimensions) -> bool:
    """Tell whether pylance takes NULL for text in a filter.

    At version 0.1, where the last row of a page is NULL, it tests text and bytes that it reads for a
    filter as if no row were; in its own files, too.
    """
    return dimensions.version == "0.1" and any(
        KINDS[state.column(name).kind].nulls == "0.1" and state.column(name).nullable
        for name, _ in columns_of(tree)
    )


def _trees(step: Step) -> list[Tree]:
    """Return the filters of a step, and its tests for NULL."""
    args = step.args
    found = [args.get("where"), args.get("deletes"), (args.get("condition") or (None, None))[1]]
    if step.op == "add_sql":
        found += [("null", tree[1]) for tree, _ in args["values"].values() if tree[0] == "is null"]
    return [tree for tree in found if tree is not None]


def _reads_updated(values: dict[str, Tree]) -> bool:
    """Tell whether an expression names another column that is updated."""
    return any(names_in(tree) & (set(values) - {name}) for name, tree in values.items())


def _args(situation: Situation) -> dict[str, Any]:
    return situation.step.args


KNOWN_OF_PYLANCE: tuple[Known, ...] = (
    Known(
        "0.1: NULL text in filters",
        "where the last row of a page is NULL, a filter takes NULL text and bytes for empty ones",
        lambda s: any(misread_filter(tree, s.base, s.dimensions) for tree in _trees(s.step)),
    ),
    Known(
        "0.1: restore with a dictionary",
        "the restored version's dictionaries are not read before the manifest is written",
        lambda s: s.step.op == "restore" and s.dimensions.version == "0.1",
        says="is missing dictionary values",
    ),
    Known(
        "0.1: new columns beside deleted rows",
        "batches of which most rows are deleted cannot be filled up",
        lambda s: s.dimensions.version == "0.1" and s.step.op in {"add_data", "add_sql", "cast"},
        says="missing too many rows in merge, run compaction",
    ),
    Known(
        "update from an updated column",
        "columns get their values one after another, in any order, and expressions see the new ones",
        lambda s: s.step.op == "update" and _reads_updated(_args(s)["values"]),
    ),
    Known(
        "merge that only deletes",
        "its planner loses the columns of a merge that deletes on both sides and inserts nothing",
        lambda s: (
            s.step.op == "merge"
            and _args(s)["matched"] == "delete"
            and _args(s)["deletes"] is not None
            and not _args(s)["inserts"]
        ),
        says="this indicates a logical plan pruning bug",
    ),
    Known(
        "late append after changed columns",
        "values of columns that were made anew meanwhile are lost",
        lambda s: s.is_late and s.schema_changed and s.step.op == "append",
    ),
    Known(
        "late merge that inserts",
        "keys that others inserted meanwhile come twice",
        lambda s: s.is_late and s.step.op == "merge" and bool(_args(s)["inserts"]),
    ),
)
