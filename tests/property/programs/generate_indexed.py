"""Random steps for tables with indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.property.programs.generate import WEIGHTS, Generator, Surroundings
from tests.property.programs.indices import (
    COLUMN_KINDS,
    FEWEST_VECTORS,
    VECTORS,
    kinds_for,
    one_of_a_column,
    random_parameters,
    random_tree,
)
from tests.property.programs.kinds import KINDS
from tests.property.programs.model import State
from tests.property.programs.steps import CLONE, Dimensions, Step, is_clone

_MOST_INDICES = 4
_MOST_LINES = 3
_ALWAYS = ("phrase", "embedding")
"""Kinds of columns that half of the tables have each."""


class IndexedGenerator(Generator):
    """Makes steps for a table of a few dozen rows, with up to four indices."""

    weights: Mapping[str, int] = {
        **WEIGHTS,
        "overwrite": 1,
        "add_nulls": 1,
        "nullable": 1,
        "tag": 1,
        "hold": 5,
        "compact": 20,
        "index": 22,
        "unindex": 2,
        "optimize": 14,
        "cluster": 4,
        "clone": 2,
    }
    late = ("append", "delete", "update", "merge", "compact", "drop", "index", "optimize")
    length = (5, 20, 13)

    _may_defer = True

    def dimensions(self, versions: Sequence[str]) -> Dimensions:
        """Return what a program is about."""
        found = super().dimensions([v for v in versions if v != "0.1"])
        self._may_defer = not found.stable  # neither library defers with stable row ids
        return replace(found, indexed=True)

    def propose(self, around: Surroundings) -> Step | None:
        """Return a step; the first after the table is there make indices."""
        head = around.heads[None]
        if len(head.indices) < 2 and self.rng.random() < 0.5:
            args = self._index(head, around.dimensions.version)
            return None if args is None else Step("index", self._library(), args)
        step = super().propose(around)
        if step is not None and step.op == "cluster":
            return replace(step, library="pennon")
        return step

    # --- data -------------------------------------------------------------------------------------

    def _kinds(self, version: str) -> list[str]:
        chosen = [self.rng.choice(COLUMN_KINDS) for _ in range(self.rng.randint(1, 4))]
        return chosen + [kind for kind in _ALWAYS if kind not in chosen and self._coin()]

    def _size(self) -> int:
        return self.rng.choice([0, 5, 30, 45, 60, 60, 100])

    def _new_table(self, dimensions: Dimensions) -> dict[str, Any]:
        found = super()._new_table(dimensions)
        return {**found, "max_rows_per_file": self.rng.choice([13, 20, 20, 30, 100])}

    def _filter(self, state: State, version: str) -> Any:
        choice = self.rng.random()
        if choice < 0.2:  # rows that lie together: whole fragments, now and then
            start = self.rng.randrange(max(self.next_key, 1))
            return ("between", "k", "int64", start, start + self.rng.choice([6, 13, 30]))
        if choice < 0.6:
            return random_tree(self.rng, state, [column.name for column in state.columns])
        return super()._filter(state, version)

    # --- indices ----------------------------------------------------------------------------------

    def _index(self, state: State, version: str) -> dict[str, Any] | None:
        able = [c for c in state.columns if kinds_for(c.kind)]
        if not able:
            return None
        column = self.rng.choice(able)
        kind = self.rng.choice(kinds_for(column.kind))
        old = [index.name for index in state.indices if index.column == column.number]
        again = bool(old) and self.rng.random() < 0.3
        if len(state.indices) >= _MOST_INDICES and not again:
            return None
        return {
            "column": column.name,
            "column_kind": column.kind,
            "kind": kind,
            "name": self.rng.choice(old) if again else f"i{self._new_name()}",
            "parameters": random_parameters(self.rng, kind, column.kind),
            "replace": again,
            "alone": one_of_a_column(kind),
            "fewest": FEWEST_VECTORS if kind in VECTORS else 0,
        }

    def _unindex(self, state: State, version: str) -> dict[str, Any] | None:
        names = [index.name for index in state.indices]
        return {"name": self.rng.choice(names)} if names else None

    def _optimize(self, state: State, version: str) -> dict[str, Any] | None:
        if not state.indices:
            return None
        options: dict[str, Any] = {}
        choice = self.rng.random()
        if choice < 0.4:
            options["num_indices_to_merge"] = self.rng.choice([0, 0, 1, 2, 10])
        elif choice < 0.5:
            options["retrain"] = True
        if self.rng.random() < 0.2:
            options["index_names"] = [self.rng.choice(state.indices).name]
        return options

    # --- rows that move ---------------------------------------------------------------------------

    def _compact(self, state: State, version: str) -> dict[str, Any]:
        """Return options that let a compaction find something to do, mostly."""
        options: dict[str, Any] = {"target_rows_per_fragment": self.rng.choice([9, 19, 40, 1000])}
        if self.rng.random() < 0.7:
            options["materialize_deletions_threshold"] = self.rng.choice([0.0, 0.0, 0.3])
        if self._may_defer and self._coin():
            options["defer_index_remap"] = True
        return options

    def _cluster(self, state: State, version: str) -> dict[str, Any] | None:
        able = [column.name for column in state.columns if KINDS[column.kind].sql is not None]
        return {
            "columns": tuple(self.rng.sample(able, min(len(able), self.rng.randint(1, 2)))),
            "curved": self._coin(),
            "target_rows_per_fragment": self.rng.choice([6, 30, 1000]),
        }

    def _clone(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        if len(around.heads) >= _MOST_LINES or line is not None:
            return None
        version = self.rng.choice(list(around.versions[line])[-2:])
        return {"name": f"{CLONE}{self._new_name()}", "version": version}

    def _cleanup(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        if any(is_clone(name) for name in around.heads) and not is_clone(line):
            return None  # it would take the clone's files
        return super()._cleanup(line, around)

    def _branch(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        return None if is_clone(line) else super()._branch(line, around)

    def _tag(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        return None if is_clone(line) else super()._tag(line, around)

    def _restore(self, line: str | None, around: Surroundings) -> dict[str, Any]:
        found = super()._restore(line, around)
        return {**found, "branch": None} if is_clone(line) else found
