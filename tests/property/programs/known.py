"""Faults of pylance 14.0.2 that random programs meet: each as narrow as it is known.

None of them is one of Pennon's.  A step that pylance is known to do wrong is done by Pennon instead;
what pylance is known to read wrong is not asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.property.programs.filters import Tree, columns_of, names_in
from tests.property.programs.kinds import KINDS
from tests.property.programs.model import State
from tests.property.programs.steps import Dimensions, Step

LARGE = "large_binary"


@dataclass(frozen=True, slots=True)
class Situation:
    """A step before it is done: the version that its handle has, and the newest one."""

    step: Step
    base: State
    head: State
    dimensions: Dimensions
    skips: bool = False
    """Whether a clean-up took away versions between the two."""
    past: Sequence[Step] = ()
    """The steps that were done, on all lines."""

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


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that pylance answers wrongly, and how the table came to be."""

    query: tuple[Any, ...]
    state: State
    dimensions: Dimensions
    past: Sequence[Step]
    """The steps that were done, on all lines."""

    def index_of(self, name: str) -> set[str]:
        """Return the kinds of the indices of a column."""
        number = self.state.column(name).number
        return {index.kind for index in self.state.indices if index.column == number}

    def did(self, op: str, library: str | None = None, **args: Any) -> bool:
        """Return whether a library, or any, did such a step."""
        return _did(self.past, op, library, **args)


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A fault in answers."""

    name: str
    why: str
    applies: Callable[[Asked], bool]
    says: str | None = None
    """Return pylance's answer; None where it is wrong."""


def _did(past: Sequence[Step], op: str, library: str | None = None, **args: Any) -> bool:
    return any(
        step.op == op
        and library in {None, step.library}
        and all(step.args.get(name) == value for name, value in args.items())
        for step in past
    )


def known_of(situation: Situation) -> Known | None:
    """Return the fault that pylance would show in a step, if one is known."""
    found = (known for known in KNOWN_OF_PYLANCE if known.says is None)
    return next((known for known in found if known.applies(situation)), None)


def refusal_of(situation: Situation, message: str) -> Known | None:
    """Return the fault that makes pylance refuse a step with a message, if one is known."""
    found = (known for known in KNOWN_OF_PYLANCE if known.says and known.says in message)
    return next((known for known in found if known.applies(situation)), None)


def known_answer(asked: Asked, answer: Any) -> KnownAnswer | None:
    """Return the fault that pylance shows in an answer, if one is known."""
    said = answer if isinstance(answer, str) else None
    for known in KNOWN_ANSWERS_OF_PYLANCE:
        fits = known.says is None if said is None else bool(known.says and known.says in said)
        if fits and known.applies(asked):
            return known
    return None


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


def _makes_null_bytes(situation: Situation) -> bool:
    """Tell whether a step makes a column of large binary values that has a NULL."""
    step, state = situation.step, situation.head
    match step.op:
        case "add_data":
            kinds = [kind for _, kind, _ in step.args["columns"]]
            large = [at for at, kind in enumerate(kinds) if kind == LARGE]
            return any(row[at] is None for row in step.args["rows"] for at in large)
        case "add_sql":
            copied = [tree[1] for tree, kind in step.args["values"].values() if kind == LARGE]
        case "cast" if step.args["kind"] == LARGE:
            copied = [step.args["name"]]
        case _:
            return False
    numbers = [state.column(name).number for name in copied]
    return any(row.get(number) is None for row in state.rows.values() for number in numbers)


def _joins_dictionaries(situation: Situation) -> bool:
    """Tell whether a merge has several batches, each with its dictionary."""
    step = situation.step
    return (
        step.op == "merge"
        and bool(_args(situation)["cuts"])
        and any(pa.types.is_dictionary(KINDS[kind].type) for _, kind, _ in step.args["columns"])
    )


def _moves_rows_twice(situation: Situation) -> bool:
    """Return whether a compaction remaps indices that an earlier, deferred compaction left unchanged."""
    return (
        not situation.dimensions.stable
        and not _args(situation).get("defer_index_remap")
        and bool(situation.base.indices)
        and _did(situation.past, "compact", defer_index_remap=True)
    )


def _reads_updated(values: dict[str, Tree]) -> bool:
    """Tell whether an expression names another column that is updated."""
    return any(names_in(tree) & (set(values) - {name}) for name, tree in values.items())


def _is_indexed(state: State, name: str) -> bool:
    """Return whether a column has an index."""
    number = state.column(name).number
    return any(index.column == number for index in state.indices)


def _has_vector_index(state: State) -> bool:
    return any("metric" in dict(index.parameters) for index in state.indices)


def _is_made_anew(situation: Situation) -> bool:
    """Tell whether no column is left of those that the handle has."""
    origins = ({c.origin for c in state.columns} for state in (situation.base, situation.head))
    return set.isdisjoint(*origins)


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
        "0.1: NULL among new bytes",
        "of a column that is added, NULL is refused in large binary values, which files may hold",
        lambda s: s.dimensions.version == "0.1" and _makes_null_bytes(s),
        says="but storing nulls for this data type is not supported",
    ),
    Known(
        "0.1: merge of batches with dictionaries",
        "indices of all batches are those of a joined dictionary, the table has the first of them",
        lambda s: s.dimensions.version == "0.1" and _joins_dictionaries(s),
    ),
    Known(
        "merge by an index of its key",
        "a condition on the table's rows does not see columns that the merge does not bring",
        lambda s: s.step.op == "merge" and _is_indexed(s.base, "k") and bool(_args(s)["condition"]),
        says="not found in struct",
    ),
    Known(
        "compaction of a branch or a clone",
        "it writes indices anew into the table's own folder, and says that they lie in the other one",
        lambda s: s.step.op == "compact" and s.step.line is not None and bool(s.base.indices),
    ),
    Known(
        "compaction after a deferred one",
        "BTREE, NGRAM and INVERTED keep the addresses from before both compactions (F-492, F-702)",
        lambda s: s.step.op == "compact" and _moves_rows_twice(s),
    ),
    Known(
        "cast of an indexed column",
        "it is refused until the index is dropped; Pennon drops it",
        lambda s: s.step.op == "cast" and _is_indexed(s.base, _args(s)["name"]),
    ),
    Known(
        "optimize without new vectors",
        "where all rows that an index of vectors does not cover yet are NULL, no file of them is there (F-722)",
        lambda s: s.step.op == "optimize" and _has_vector_index(s.base),
        says="ivf_",
    ),
    Known(
        "optimize without any vector",
        "centroids are trained on none where an index of vectors covers no row and all are NULL (F-722)",
        lambda s: s.step.op == "optimize" and _has_vector_index(s.base),
        says="KMeans cannot train",
    ),
    Known(
        "late over versions that are gone",
        "what was committed meanwhile and cleaned up is not judged, an old schema comes back",
        lambda s: s.skips,
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
        "late update of a table made anew",
        "done again, it makes a version, though its columns are gone, where it finds no row (F-441)",
        lambda s: s.step.op == "update" and _is_made_anew(s),
    ),
    Known(
        "late merge that inserts",
        "keys that others inserted meanwhile come twice",
        lambda s: s.is_late and s.step.op == "merge" and bool(_args(s)["inserts"]),
    ),
)


def _asks_few(asked: Asked) -> bool:
    """Return whether a search asks for fewer rows than there are."""
    query = asked.query
    return query[0] == "nearest" and dict(query[1])["k"] < len(asked.state.rows)


def _asks_old_bitmap(asked: Asked) -> bool:
    """Return whether a filter is answered by a BITMAP that has rows which a newer segment has, too."""
    trees = [part for part in asked.query[1:] if isinstance(part, tuple) and part]
    names = {name for tree in trees if isinstance(tree[0], str) for name in names_in(tree)}
    return (
        asked.dimensions.stable
        and asked.did("optimize", "pylance", num_indices_to_merge=0)
        and (asked.did("merge") or asked.did("update"))
        and any("BITMAP" in asked.index_of(name) for name in names)
    )


KNOWN_ANSWERS_OF_PYLANCE: tuple[KnownAnswer, ...] = (
    KnownAnswer(
        "fewer of the nearest, with stable row ids",
        "rows that were deleted before a compaction are still in the index, and count (F-537)",
        lambda a: a.dimensions.stable and _asks_few(a) and a.did("compact"),
    ),
    KnownAnswer(
        "graphs after a deferred compaction",
        "rows that are gone are taken out of the vectors, not out of the graph, which is refused then",
        lambda a: a.query[0] == "nearest" and a.did("compact", defer_index_remap=True),
        says="HNSW graph has",
    ),
    KnownAnswer(
        "a BITMAP with an old segment, stable row ids",
        "optimized with num_indices_to_merge=0, values from before updates are still answered (F-724)",
        _asks_old_bitmap,
    ),
)
