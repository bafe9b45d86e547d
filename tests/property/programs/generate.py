"""Random steps that make sense for the table as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.property.programs.filters import (
    random_assignment,
    random_expression,
    random_filter,
)
from tests.property.programs.kinds import CASTS, KINDS, kinds_of, random_value
from tests.property.programs.model import Column, State
from tests.property.programs.steps import Dimensions, Step

REFERENCES = {
    "cleanup",
    "restore",
    "tag",
    "untag",
    "branch",
    "unbranch",
    "config",
    "hold",
    "clone",
}
LATE = ("append", "delete", "update", "merge", "compact", "config", "drop", "rename")
FAULTS_OF_OURS = {
    "a dictionary by SQL becomes text",
}
"""Known faults that others are mending: programs keep away from them while they stand here."""

WEIGHTS = {
    "append": 14,
    "overwrite": 2,
    "delete": 10,
    "update": 10,
    "merge": 16,
    "add_sql": 5,
    "add_data": 4,
    "add_nulls": 2,
    "drop": 3,
    "rename": 3,
    "nullable": 2,
    "cast": 4,
    "compact": 8,
    "cleanup": 2,
    "restore": 3,
    "tag": 3,
    "untag": 1,
    "branch": 3,
    "unbranch": 1,
    "config": 2,
    "hold": 12,
}


@dataclass(slots=True)
class Surroundings:
    """What a step may refer to."""

    dimensions: Dimensions
    heads: dict[str | None, State]
    versions: dict[str | None, Sequence[int]]
    held: dict[int, tuple[str | None, State]]
    tags: Sequence[str]
    leaves: Sequence[str]
    """Branches that none left from, and none of whose versions has a tag."""
    names: list[int] = field(default_factory=lambda: [0])


class Generator:
    """Makes steps; keys and names are never used twice, unless on purpose."""

    weights: Mapping[str, int] = WEIGHTS
    late: Sequence[str] = LATE
    length = (5, 40, 10)
    """The fewest steps, the most and the usual number."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.next_key = 0
        self.next_name = 0

    def dimensions(self, versions: Sequence[str]) -> Dimensions:
        """Return what a program is about."""
        version = self.rng.choice(list(versions))
        stable = self.rng.random() < 0.5
        return Dimensions(version, stable, self.rng.choice(["V1", "V2"]))

    def create(self, dimensions: Dimensions) -> Step:
        """Return the first step."""
        return Step("create", self._library(), self._new_table(dimensions))

    def propose(self, around: Surroundings) -> Step | None:
        """Return a step, None if the one that was drawn makes no sense."""
        if around.held and self.rng.random() < 0.3:
            return self._late(around)
        op = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        line = self.rng.choice(list(around.heads)) if self.rng.random() < 0.5 else None
        args = self._args(op, around.heads[line], line, around)
        return None if args is None else Step(op, self._library(), args, line)

    def _late(self, around: Surroundings) -> Step | None:
        handle = self.rng.choice(list(around.held))
        line, base = around.held[handle]
        op = self.rng.choices(self.late, [self.weights[op] for op in self.late])[0]
        args = self._args(op, base, line, around)
        return None if args is None else Step(op, self._library(), args, line, handle)

    def _library(self) -> str:
        return self.rng.choice(["pennon", "pylance"])

    def _args(
        self, op: str, state: State, line: str | None, around: Surroundings
    ) -> dict[str, Any] | None:
        make: Callable[..., dict[str, Any] | None] = getattr(self, f"_{op}")
        if op in REFERENCES:
            return make(line, around)
        return make(state, around.dimensions.version)

    # --- data -------------------------------------------------------------------------------------

    def _new_name(self) -> str:
        self.next_name += 1
        return f"c{self.next_name}"

    def _new_table(self, dimensions: Dimensions) -> dict[str, Any]:
        version = dimensions.version
        chosen = self._kinds(version)
        columns = [("k", "int64", self.rng.random() < 0.7)]
        columns += [(self._new_name(), kind, self.rng.random() < 0.8) for kind in chosen]
        self.rng.shuffle(columns)
        rows = self._size()
        if version == "0.1" and "colors" in chosen:  # pylance makes no such table without rows
            rows = max(rows, 1)
        return {
            **self._rows(columns, rows, version),
            "max_rows_per_file": self.rng.choice([13, 30, 100]),
            "max_rows_per_group": self.rng.choice([3, 1024]),
        }

    def _kinds(self, version: str) -> list[str]:
        """Return the kinds of a new table's columns, beside the key."""
        return [self.rng.choice(kinds_of(version)) for _ in range(self.rng.randint(1, 5))]

    def _size(self) -> int:
        """Return how many rows a new table has."""
        return self.rng.choice([0, 1, 5, 12, 30, 60])

    def _rows(
        self,
        columns: Sequence[tuple[str, str, bool]],
        rows: int | Sequence[int],
        version: str,
    ) -> dict[str, Any]:
        """Return data: so many rows of new keys, or rows of these keys."""
        if isinstance(rows, int):
            rows = range(self.next_key, self.next_key + rows)
            self.next_key = rows.stop
        made = [
            tuple(
                key if name == "k" else random_value(self.rng, kind, version, nullable=nullable)
                for name, kind, nullable in columns
            )
            for key in rows
        ]
        cuts = sorted(self.rng.sample(range(1, len(made)), 1)) if len(made) > 1 else []
        keeps = self.rng.random() < 0.7
        return {"columns": tuple(columns), "rows": tuple(made), "cuts": () if keeps else cuts}

    def _some_columns(self, state: State, version: str) -> list[tuple[str, str, bool]]:
        """Return columns in any order, sometimes not all that may be NULL."""
        kept = list(state.columns)
        if version != "0.1" and self.rng.random() < 0.3:
            kept = [c for c in kept if c.name == "k" or not _may_lack(c, version) or self._coin()]
        if self.rng.random() < 0.3:
            self.rng.shuffle(kept)
        return [(c.name, c.kind, c.nullable) for c in kept]

    def _coin(self) -> bool:
        return self.rng.random() < 0.5

    def _append(self, state: State, version: str) -> dict[str, Any]:
        rows = self.rng.choice([1, 2, 5, 9, 20])
        return {
            **self._rows(self._some_columns(state, version), rows, version),
            "max_rows_per_file": self.rng.choice([5, 100, 100]),
            "max_rows_per_group": self.rng.choice([3, 1024]),
        }

    def _overwrite(self, state: State, version: str) -> dict[str, Any]:
        return self._new_table(Dimensions(version, stable=False, naming=""))

    # --- rows -------------------------------------------------------------------------------------

    def _filter(self, state: State, version: str) -> Any:
        if self.rng.random() < 0.05:
            return ("constant", self._coin())
        return random_filter(self.rng, state.names(), version)

    def _delete(self, state: State, version: str) -> dict[str, Any]:
        where = self._filter(state, version)
        if self.rng.random() < 0.7:  # few rows, that something is left to go on with
            where = ("and", where, ("mod", "k", 3, self.rng.randint(0, 2)))
        return {"where": where}

    def _update(self, state: State, version: str) -> dict[str, Any] | None:
        others = [c for c in state.columns if c.name != "k"]
        if not others:
            return None
        values: dict[str, Any] = {}
        for column in self.rng.sample(others, self.rng.randint(1, min(2, len(others)))):
            target = column.name, column.kind
            null = column.nullable and KINDS[column.kind].holds_null(version)
            tree = random_assignment(self.rng, state.names(), target, null=null)
            if tree is not None:
                values[column.name] = tree
        where = None if self.rng.random() < 0.1 else self._filter(state, version)
        return {"values": values, "where": where} if values else None

    def _merge(self, state: State, version: str) -> dict[str, Any]:
        known = [state.named(row)["k"] for row in state.rows.values()]
        keys = self.rng.sample(known, self.rng.randint(0, min(len(known), 12)))
        for _ in range(self.rng.randint(0 if keys else 1, 4)):
            keys.append(self.next_key)
            self.next_key += 1
        self.rng.shuffle(keys)
        matched = self.rng.choice(["update", "update", "update", "keep", "delete", "fail"])
        inserts = self._coin() or matched in {"keep", "fail"}
        in_place = False
        columns = self._some_columns(state, version)
        if matched == "update" and not inserts and version != "0.1" and self._coin():
            columns = [c for c in columns if c[0] == "k" or self._coin()]
            in_place = 1 < len(columns) < len(state.columns)
        condition = None
        if matched == "update" and self.rng.random() < 0.3:
            side = self.rng.choice(["source", "target"])
            of = [c[:2] for c in columns] if side == "source" else state.names()
            condition = (side, random_filter(self.rng, of, version))
        deletes = None
        if not in_place and self.rng.random() < 0.25:
            deletes = self._filter(state, version)
        return {
            "matched": matched,
            "condition": condition,
            "inserts": inserts,
            "deletes": deletes,
            "in_place": in_place,
            **self._rows(columns, keys, version),
        }

    # --- columns ----------------------------------------------------------------------------------

    def _add_sql(self, state: State, version: str) -> dict[str, Any]:
        names = [self._new_name() for _ in range(self.rng.randint(1, 2))]
        of = state.names()
        if version == "0.1":  # a new column of Pennon's is none there, pylance's is
            of = [(name, kind) for name, kind in of if kind not in {"dictionary", "colors"}]
        return {"values": {name: random_expression(self.rng, of, version) for name in names}}

    def _add_data(self, state: State, version: str) -> dict[str, Any]:
        able = [kind for kind in kinds_of(version) if version != "0.1" or kind != "colors"]
        kinds = [self.rng.choice(able) for _ in range(self.rng.randint(1, 2))]
        columns = [(self._new_name(), kind, True) for kind in kinds]
        return self._rows(columns, list(range(len(state.rows))), version)

    def _add_nulls(self, state: State, version: str) -> dict[str, Any] | None:
        kind = self.rng.choice(kinds_of(version))
        if version == "0.1" or not KINDS[kind].holds_null(version):
            return None
        return {"name": self._new_name(), "kind": kind}

    def _drop(self, state: State, version: str) -> dict[str, Any] | None:
        names = [c.name for c in state.columns if c.name != "k"]
        return {"columns": (self.rng.choice(names),)} if names else None

    def _rename(self, state: State, version: str) -> dict[str, Any] | None:
        names = [c.name for c in state.columns if c.name != "k"]
        if not names:
            return None
        one = self.rng.choice(names)
        other = self.rng.choice(names)
        swaps = one != other and self.rng.random() < 0.3
        return {"names": {one: other, other: one} if swaps else {one: self._new_name()}}

    def _nullable(self, state: State, version: str) -> dict[str, Any] | None:
        column = self.rng.choice(state.columns)
        return {"name": column.name, "nullable": not column.nullable}

    def _cast(self, state: State, version: str) -> dict[str, Any] | None:
        able = [c for c in state.columns if c.kind in CASTS and c.name != "k"]
        if not able:
            return None
        column = self.rng.choice(able)
        return {"name": column.name, "kind": self.rng.choice(CASTS[column.kind])}

    # --- upkeep -----------------------------------------------------------------------------------

    def _compact(self, state: State, version: str) -> dict[str, Any]:
        options: dict[str, Any] = {"target_rows_per_fragment": self.rng.choice([2, 6, 15, 1000])}
        if self._coin():
            options["materialize_deletions"] = self._coin()
        if self._coin():
            options["materialize_deletions_threshold"] = self.rng.choice([0.0, 0.3, 0.9])
        return options

    def _cleanup(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        return {"retain": self.rng.choice([None, None, 1, 3])}

    def _restore(self, line: str | None, around: Surroundings) -> dict[str, Any]:
        return {"version": self.rng.choice(list(around.versions[line])), "branch": line}

    def _tag(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        version = self.rng.choice(list(around.versions[line]))
        return {"name": f"t{self._new_name()}", "version": version, "branch": line}

    def _untag(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        return {"name": self.rng.choice(list(around.tags))} if around.tags else None

    def _branch(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        if len(around.heads) > 2:
            return None
        version = self.rng.choice(list(around.versions[line]))
        return {"name": f"b{self._new_name()}", "version": version, "parent": line}

    def _unbranch(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        names = [name for name in around.leaves if name != line]
        return {"name": self.rng.choice(names)} if names else None

    def _config(self, line: str | None, around: Surroundings) -> dict[str, Any]:
        return {"values": {self.rng.choice("abc"): self.rng.choice(["1", "2", None])}}

    def _hold(self, line: str | None, around: Surroundings) -> dict[str, Any] | None:
        free = {0, 1, 2} - set(around.held)
        return {"number": min(free)} if free else None


def _may_lack(column: Column, version: str) -> bool:
    return column.nullable and KINDS[column.kind].holds_null(version)
