"""Random histories of one table: three handles, two libraries, and a model in memory.

Each step changes the table, by Pennon or by pylance, from a handle that may be behind.  Such a change
either follows what others did meanwhile, or is done again on the newest version; the model accepts
both, and nothing else.  After each step Pennon's scan, pylance's scan and the model agree.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

import pennon
from pennon.errors import LanceError

TYPES = {"id": pa.int64(), "v": pa.int64(), "t": pa.string(), "w": pa.float64()}
Row = Mapping[str, Any]
Rows = Mapping[int, Row]
"""Rows by numbers of the model's own; a row that changes gets another."""

PREDICATES: dict[str, Callable[[Row], bool]] = {
    "v < 3": lambda r: r["v"] is not None and r["v"] < 3,
    "v IS NULL": lambda r: r["v"] is None,
    "v >= 5 OR t IS NULL": lambda r: (r["v"] is not None and r["v"] >= 5) or r["t"] is None,
    "t = 'x'": lambda r: r["t"] == "x",
    "id % 3 = 1": lambda r: r["id"] % 3 == 1,
    "id < 4": lambda r: r["id"] < 4,
    "true": lambda _: True,
    "false": lambda _: False,
}
VALUES: dict[tuple[str, str], Callable[[Row], Any]] = {
    ("v", "v + 1"): lambda r: None if r["v"] is None else r["v"] + 1,
    ("v", "id * 2"): lambda r: r["id"] * 2,
    ("v", "NULL"): lambda _: None,
    ("t", "'u'"): lambda _: "u",
    ("t", "CAST(id AS STRING)"): lambda r: str(r["id"]),
}
rows_of_data = st.lists(
    st.fixed_dictionaries(
        {
            "v": st.none() | st.integers(0, 9),
            "t": st.none() | st.sampled_from(["x", "y", ""]),
            "w": st.none() | st.floats(0, 1, width=32),
        }
    ),
    max_size=6,
)
numbers = count()
STEPS = [0]
"""How many there were."""


@dataclass(frozen=True)
class State:
    """A version of the table."""

    columns: tuple[str, ...]
    rows: Rows
    schemas: int = 0
    """How often columns were added, or an old version restored."""

    def seen(self) -> list[str]:
        """Return what a scan finds, without order."""
        return sorted(repr({c: row.get(c) for c in self.columns}) for row in self.rows.values())

    def without(self, gone: set[int], new: list[Row]) -> State:
        """Return the state with rows taken away and added."""
        rows = {number: row for number, row in self.rows.items() if number not in gone}
        return replace(self, rows=rows | {next(numbers): row for row in new})


Change = Callable[[State], tuple[set[int], list[Row]]]
"""What an operation does to the rows that it sees: which go, which come."""


def deletion(predicate: str) -> Change:
    test = PREDICATES[predicate]
    return lambda state: ({n for n, row in state.rows.items() if test(row)}, [])


def assignment(column: str, text: str, predicate: str) -> Change:
    test, value = PREDICATES[predicate], VALUES[column, text]

    def change(state: State) -> tuple[set[int], list[Row]]:
        found = {n: row for n, row in state.rows.items() if test(row)}
        return set(found), [{**row, column: value(row)} for row in found.values()]

    return change


@dataclass(frozen=True)
class Merge:
    """A merge by ``id``."""

    data: tuple[dict[str, Any], ...]
    matched: str
    inserts: bool
    deletes: str | None
    in_place: bool

    def __call__(self, state: State) -> tuple[set[int], list[Row]]:
        known = {row["id"] for row in state.rows.values()}
        by_key = {row["id"]: row for row in self.data}
        gone: set[int] = set()
        new: list[Row] = []
        for number, row in state.rows.items():
            mine = by_key.get(row["id"])
            if mine is not None and self.matched != "keep":
                gone.add(number)
                new += [{**row, **mine}] if self.matched == "update" else []
            elif mine is None and self.deletes is not None and PREDICATES[self.deletes](row):
                gone.add(number)
        if self.inserts:
            nothing = dict.fromkeys(state.columns)
            new += [nothing | row for row in self.data if row["id"] not in known]
        return gone, new

    def run(self, dataset: Any) -> None:
        builder = dataset.merge_insert("id")
        if self.matched == "update":
            builder = builder.when_matched_update_all()
        elif self.matched == "delete":
            builder = builder.when_matched_delete()
        if self.inserts:
            builder = builder.when_not_matched_insert_all()
        if self.deletes is not None:
            builder = builder.when_not_matched_by_source_delete(self.deletes)
        if self.in_place:
            builder = builder.write_mode("rewrite_columns")
        builder.execute(as_table(self.data, tuple(self.data[0])))


def as_table(rows: Any, columns: tuple[str, ...]) -> pa.Table:
    """Return rows as a table of those columns."""
    schema = pa.schema([(name, TYPES[name]) for name in columns])
    return pa.Table.from_pylist([{c: row.get(c) for c in columns} for row in rows], schema)


libraries = st.sampled_from(["pennon", "lance"])
handles = st.integers(0, 2)
predicates = st.sampled_from(list(PREDICATES))


class Table(RuleBasedStateMachine):
    """One table, its versions as the model has them, and three handles on it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.uri = f"{self.folder}/t.lance"
        self.versions: dict[int, State] = {}
        self.handles: list[Any] = []
        self.ids = count()

    @initialize(
        data=rows_of_data,
        stable=st.booleans(),
        version=st.sampled_from(["2.0", "2.1", "2.2"]),
        library=libraries,
    )
    def create(self, data: list[Row], stable: bool, version: Any, library: str) -> None:
        rows = self.numbered(data)
        made = as_table(rows, ("id", "v", "t"))
        write = pennon.write_dataset if library == "pennon" else lance.write_dataset
        options = {"data_storage_version": version, "enable_stable_row_ids": stable}
        write(made, self.uri, max_rows_per_file=3, **options)
        self.versions[1] = State(("id", "v", "t"), dict(zip(numbers, rows, strict=False)))
        self.handles = [pennon.dataset(self.uri) for _ in range(3)]
        self.check([self.versions[1]])

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- rules ------------------------------------------------------------------------------------

    @rule(handle=handles)
    def refresh(self, handle: int) -> None:
        self.handles[handle].checkout_latest()

    @rule(handle=handles, library=libraries, data=rows_of_data)
    def append(self, handle: int, library: str, data: list[Row]) -> None:
        base = self.versions[self.handles[handle].version]
        if library == "lance" and base.schemas != self.versions[self.head].schemas:
            self.handles[handle].checkout_latest()  # it drops values of columns made anew meanwhile
        columns = self.versions[self.handles[handle].version].columns
        rows = [{c: row[c] for c in columns} for row in self.numbered(data)]
        table = as_table(rows, columns)
        self.change(handle, library, lambda d: d.insert(table), lambda _: (set(), list(rows)))

    @rule(handle=handles, library=libraries, predicate=predicates)
    def delete(self, handle: int, library: str, predicate: str) -> None:
        self.change(handle, library, lambda d: d.delete(predicate), deletion(predicate))

    @rule(
        handle=handles,
        library=libraries,
        predicate=predicates,
        value=st.sampled_from(list(VALUES)),
    )
    def update(self, handle: int, library: str, predicate: str, value: tuple[str, str]) -> None:
        column, text = value
        self.change(
            handle,
            library,
            lambda d: d.update({column: text}, where=predicate),
            assignment(column, text, predicate),
        )

    @rule(
        handle=handles,
        library=libraries,
        data=rows_of_data.filter(bool),
        keys=st.permutations(range(12)),
        matched=st.sampled_from(["keep", "update", "delete"]),
        inserts=st.booleans(),
        deletes=st.none() | predicates,
        columns=st.sampled_from([("id", "v", "t"), ("id", "v"), ("t", "id")]),
        in_place=st.booleans(),
    )
    def merge(
        self,
        handle: int,
        library: str,
        data: list[Row],
        keys: list[int],
        matched: str,
        inserts: bool,
        deletes: str | None,
        columns: tuple[str, ...],
        in_place: bool,
    ) -> None:
        rows = [{**row, "id": key} for row, key in zip(data, keys, strict=False)]
        if in_place:
            matched, inserts, deletes = "update", False, None
            columns = ("id", "v")
        wanted = {*columns, *self.versions[self.head].columns}
        wanted |= {*self.versions[self.handles[handle].version].columns}
        if library == "lance" and len(columns) < len(wanted):  # pylance fails to plan the others
            matched, deletes = "update", None
        if library == "lance" and matched == "delete" and not inserts:
            deletes = None  # nor, sometimes, those that only delete
        if matched == "keep" and deletes is None:
            inserts = True
        chosen = tuple({c: row[c] for c in columns} for row in rows)
        merge = Merge(chosen, matched, inserts, deletes, in_place)
        self.change(handle, library, merge.run, merge)

    @rule(handle=handles, library=libraries, data=rows_of_data)
    def overwrite(self, handle: int, library: str, data: list[Row]) -> None:
        rows = self.numbered(data)
        table = as_table(rows, ("id", "v", "t"))

        def run(dataset: Any) -> None:
            dataset.insert(table, mode="overwrite", max_rows_per_file=3)

        state = State(("id", "v", "t"), {next(numbers): row for row in rows})
        self.step(handle, library, run, [state])

    @rule(handle=handles, library=libraries)
    def add_or_drop_column(self, handle: int, library: str) -> None:
        self.handles[handle].checkout_latest()
        head = self.versions[self.head]
        if "w" in head.columns:
            state = replace(head, columns=head.columns[:-1])
            self.step(handle, library, lambda d: d.drop_columns(["w"]), [state])
            return
        rows = {number: {**row, "w": row["id"] / 2} for number, row in head.rows.items()}
        state = State((*head.columns, "w"), rows, head.schemas + 1)
        self.step(
            handle, library, lambda d: d.add_columns({"w": "CAST(id AS DOUBLE) / 2.0"}), [state]
        )

    @rule(handle=handles, library=libraries, rows=st.integers(1, 20))
    def compact(self, handle: int, library: str, rows: int) -> None:
        def run(dataset: Any) -> None:
            dataset.optimize.compact_files(target_rows_per_fragment=rows)

        self.step(handle, library, run, [self.versions[self.head]])

    @rule(handle=handles, library=libraries, choice=st.randoms(use_true_random=False))
    def restore(self, handle: int, library: str, choice: Any) -> None:
        self.handles[handle].checkout_latest()
        version = choice.choice(sorted(self.versions))
        schemas = self.versions[self.head].schemas + 1
        state = replace(self.versions[version], schemas=schemas)

        def run(dataset: Any) -> None:
            dataset.checkout_version(version).restore()

        self.step(handle, library, run, [state])

    # --- steps ------------------------------------------------------------------------------------

    def numbered(self, data: list[Row]) -> list[Row]:
        return [{"id": next(self.ids) % 12, **row} for row in data]

    @property
    def head(self) -> int:
        return max(self.versions)

    def change(
        self, handle: int, library: str, run: Callable[[Any], object], change: Change
    ) -> None:
        """Do a change, which follows others or is done again on the newest version."""
        base, head = self.versions[self.handles[handle].version], self.versions[self.head]
        outcomes = []
        gone, new = change(base)
        if gone <= set(head.rows) and (base.schemas == head.schemas or not gone):
            outcomes.append(head.without(gone, new))
        outcomes.append(head.without(*change(head)))
        self.step(handle, library, run, outcomes)

    def step(
        self, handle: int, library: str, run: Callable[[Any], object], outcomes: list[State]
    ) -> None:
        """Run something from a handle; a conflict is an answer if the handle is behind."""
        STEPS[0] += 1
        mine = self.handles[handle]
        behind = mine.version < self.head
        theirs = lance.dataset(self.uri, version=mine.version) if library == "lance" else None
        try:
            run(mine if theirs is None else theirs)
        except (LanceError, OSError):
            if not behind:
                raise
            self.check([self.versions[self.head]])
            return
        mine.checkout_latest()
        self.check(outcomes)

    def check(self, outcomes: list[State]) -> None:
        """Compare the newest version with what it may be, and remember which it is."""
        ours, theirs = pennon.dataset(self.uri), lance.dataset(self.uri)
        theirs.validate()
        ours.validate()
        assert ours.version == theirs.version
        assert ours.version - self.head in {0, 1, 2}  # a compaction reserves ids before
        table = ours.to_table(with_row_id=True)
        assert table.equals(theirs.to_table(with_row_id=True))
        ids = table.column("_rowid").to_pylist()
        assert len(set(ids)) == len(ids)
        seen = sorted(map(repr, table.drop_columns(["_rowid"]).to_pylist()))
        fitting = [state for state in outcomes if state.seen() == seen]
        assert fitting, (seen, [state.seen() for state in outcomes])
        self.versions[ours.version] = fitting[0]


def run(examples: int, steps: int) -> None:
    """Run so many histories of so many steps."""
    run_machine(
        Table,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_histories_with_three_handles() -> None:
    run(examples=8, steps=12)


@pytest.mark.slow
def test_many_random_histories_with_three_handles() -> None:
    before = STEPS[0]
    run(examples=160, steps=30)
    assert STEPS[0] - before >= 2000
