"""The effect of each operation on a model of a table, and its execution by an actor.

A row is an id and a value, and no two rows have one id.  An operation is planned on a version, its base, and
may be committed on top of a later one: what it takes away must be as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

import pyarrow as pa

import pennon
from pennon.errors import CommitError, CommitStateUnknown, ConflictError, StoreError

BASE_COLUMNS = ("id", "v")
EXTRA = "w"


@dataclass(frozen=True)
class State:
    """A version of the table: rows as value by id, names of columns, config."""

    rows: Mapping[int, int]
    columns: tuple[str, ...] = BASE_COLUMNS
    config: Mapping[str, str] = field(default_factory=dict)

    def without(self, gone: Mapping[int, int]) -> State | None:
        """Return the state without some rows; None if one of them is not as it was."""
        if any(self.rows.get(key) != value for key, value in gone.items()):
            return None
        return replace(self, rows={k: v for k, v in self.rows.items() if k not in gone})

    def with_rows(self, new: Mapping[int, int]) -> State | None:
        """Return the state with rows added; None if an id is there already."""
        if self.rows.keys() & new.keys():
            return None
        return replace(self, rows={**self.rows, **new})


Predicate = tuple[str, Callable[[int, int], bool]]


def has_id(number: int) -> Predicate:
    """Return what is true of one row."""
    return f"id = {number}", lambda key, _: key == number


def every(count: int, rest: int) -> Predicate:
    """Return what is true of every ``count``-th id."""
    return f"id % {count} = {rest}", lambda key, _: key % count == rest


def above(bound: int) -> Predicate:
    """Return what is true of large values."""
    return f"v > {bound}", lambda _, value: value > bound


class Client:
    """What an actor has of a table: its URI, how it opens it, and a handle that may be behind."""

    def __init__(self, uri: str, lock: Any = None) -> None:
        self.uri = uri
        self.lock = lock
        self.session = pennon.Session()
        self.handle: pennon.LanceDataset | None = None

    def open(self, version: int | None = None) -> pennon.LanceDataset:
        """Open a version, the newest by default."""
        return pennon.dataset(
            self.uri, version=version, commit_lock=self.lock, session=self.session
        )

    def at(self, *, fresh: bool) -> pennon.LanceDataset:
        """Return the handle, at the newest version if it is to be fresh."""
        if self.handle is None or fresh:
            self.handle = self.open()
        return self.handle


@dataclass(eq=False)
class Operation:
    """Something that an actor does, and what became of it."""

    may_commit_before: ClassVar[bool] = False
    """Whether it commits what changes no row, before it commits itself."""

    fresh: bool = True
    outcome: str = "not begun"
    error: BaseException | None = None
    base: int = 0
    begun: int = 0
    ended: int = 0

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        """Do it."""
        raise NotImplementedError

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        """Return what it makes of ``on`` when it was planned on ``base``; None if it must conflict."""
        return on

    def clashes(self, other: Operation) -> bool:
        """Tell whether it cannot follow another, even where both leave one state."""
        return self is other

    def __str__(self) -> str:
        """Return it in a word or two, and its outcome."""
        shown = {
            k: v
            for k, v in vars(self).items()
            if k not in {"fresh", "outcome", "error", "base", "begun", "ended"}
        }
        text = ", ".join(f"{k}={v[0] if k == 'predicate' else v}" for k, v in shown.items())
        why = f": {type(self.error).__name__}: {str(self.error)[:120]}" if self.error else ""
        return f"{type(self).__name__}({text}) from {self.base} {self.outcome}{why}"


def table_of(ids: tuple[int, ...], value: int, columns: tuple[str, ...]) -> pa.Table:
    """Return rows of one value."""
    data = {"id": list(ids), "v": [value] * len(ids), EXTRA: [2 * n for n in ids]}
    return pa.table({name: pa.array(data[name], pa.int64()) for name in columns})


@dataclass(eq=False)
class Append(Operation):
    """Adds rows of ids that nobody else has."""

    ids: tuple[int, ...] = ()

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        columns = tuple(dataset.schema.names)
        made = pennon.write_dataset(
            table_of(self.ids, 0, columns), dataset, mode="append", commit_lock=client.lock
        )
        client.handle = made

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        return on.with_rows(dict.fromkeys(self.ids, 0))


@dataclass(eq=False)
class CommitAgain(Append):
    """Appends by a transaction, which is committed again as long as nobody says what became of it."""

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        from pennon.fragment import write_fragments

        columns = tuple(dataset.schema.names)
        fragments = write_fragments(table_of(self.ids, 0, columns), dataset)
        operation = pennon.LanceOperation.Append(fragments)
        transaction = pennon.Transaction(dataset.version, operation)
        unknown: CommitStateUnknown | None = None
        for left in (2, 1, 0):
            try:
                client.handle = pennon.LanceDataset.commit(
                    dataset, transaction, commit_lock=client.lock
                )
            except CommitStateUnknown as error:
                unknown = error
            except (StoreError, CommitError) as error:
                if isinstance(error, ConflictError) or (not left and unknown is None):
                    raise
            else:
                return
        if unknown is not None:
            raise unknown


@dataclass(eq=False)
class Delete(Operation):
    """Takes rows away."""

    predicate: Predicate = field(default_factory=lambda: has_id(0))

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.delete(self.predicate[0])

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        test = self.predicate[1]
        return on.without({k: v for k, v in base.rows.items() if test(k, v)})


@dataclass(eq=False)
class Update(Operation):
    """Adds to the values of rows."""

    predicate: Predicate = field(default_factory=lambda: has_id(0))
    add: int = 1

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.update({"v": f"v + {self.add}"}, self.predicate[0])

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        test = self.predicate[1]
        old = {k: v for k, v in base.rows.items() if test(k, v)}
        left = on.without(old)
        return left and left.with_rows({k: v + self.add for k, v in old.items()})


@dataclass(eq=False)
class Merge(Operation):
    """Updates rows that have a key, and adds those that have none; ``in_place``: updates only."""

    ids: tuple[int, ...] = ()
    value: int = 0
    updates: bool = True
    in_place: bool = False

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        builder = dataset.merge_insert("id")
        columns = tuple(dataset.schema.names)
        self.in_place = (
            self.in_place and EXTRA in columns
        )  # what has all columns is no part of a row
        if self.in_place:
            builder = builder.when_matched_update_all().write_mode("rewrite_columns")
            columns = BASE_COLUMNS
        else:
            builder = builder.when_matched_update_all() if self.updates else builder
            builder = builder.when_not_matched_insert_all()
        builder.execute(table_of(self.ids, self.value, columns))

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        known = {key: base.rows[key] for key in self.ids if key in base.rows}
        new = {key: self.value for key in self.ids if key not in known}
        if self.in_place:
            new = {}
        if self.updates or self.in_place:
            new |= dict.fromkeys(known, self.value)
            left = on.without(known)
        else:
            left = on
        return left and left.with_rows(new)


@dataclass(eq=False)
class Overwrite(Operation):
    """Puts other rows in the place of all."""

    ids: tuple[int, ...] = ()

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        client.handle = pennon.write_dataset(
            table_of(self.ids, 0, BASE_COLUMNS), dataset, mode="overwrite", commit_lock=client.lock
        )

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        return State(dict.fromkeys(self.ids, 0), BASE_COLUMNS, on.config)


@dataclass(eq=False)
class ChangeColumns(Operation):
    """Adds a column, or drops it if it is there."""

    adds: bool = True

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        self.adds = EXTRA not in dataset.schema.names
        if self.adds:
            dataset.add_columns({EXTRA: "id * 2"})
        else:
            dataset.drop_columns([EXTRA])

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        if self.adds is (EXTRA in on.columns):
            return None
        return replace(on, columns=(*BASE_COLUMNS, EXTRA) if self.adds else BASE_COLUMNS)


@dataclass(eq=False)
class Compact(Operation):
    """Writes small fragments together; ids are reserved before."""

    may_commit_before: ClassVar[bool] = True

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.optimize.compact_files()


@dataclass(eq=False)
class Restore(Operation):
    """Makes an old version the newest."""

    back: int = 1

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        self.back = max(dataset.version - self.back, 1)
        dataset.checkout_version(self.back).restore()

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        return states.get(self.back)


@dataclass(eq=False)
class SetConfig(Operation):
    """Sets a key of the config."""

    key: str = "a"
    value: str = "0"

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.update_config({self.key: self.value})

    def clashes(self, other: Operation) -> bool:
        return isinstance(other, SetConfig) and other.key == self.key

    def after(self, base: State, on: State, states: Mapping[int, State]) -> State | None:
        return replace(on, config={**on.config, self.key: self.value})


@dataclass(eq=False)
class Migrate(Operation):
    """Gives manifests their names of scheme V2; makes no version."""

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.migrate_manifest_paths_v2()


@dataclass(eq=False)
class CleanUp(Operation):
    """Takes old versions away; makes no version."""

    older_than: float = 0.0
    retain: int | None = None

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        dataset.cleanup_old_versions(
            timedelta(seconds=self.older_than),
            retain_versions=self.retain,
            error_if_tagged_old_versions=False,
        )


@dataclass(eq=False)
class Tag(Operation):
    """Names a version; makes no version."""

    name: str = "t"
    version: int = 0

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        self.version = dataset.version
        dataset.tags.create(self.name, self.version)


@dataclass(eq=False)
class MakeBranch(Operation):
    """Makes a branch, and adds a row to it; makes no version of the main line."""

    name: str = "b"
    version: int = 0
    ids: tuple[int, ...] = ()

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        self.version = dataset.version
        branch = dataset.create_branch(self.name)
        pennon.write_dataset(
            table_of(self.ids, 0, tuple(branch.schema.names)), branch, mode="append"
        )


@dataclass(eq=False)
class Read(Operation):
    """Reads the newest version; ``seen`` is its number and its rows, once or twice."""

    again_after: float | None = None
    seen: list[tuple[int, dict[int, int], tuple[str, ...]]] = field(default_factory=list)

    def run(self, client: Client, dataset: pennon.LanceDataset) -> None:
        self._look(dataset)
        if self.again_after is not None:
            import time

            time.sleep(self.again_after)
            client.session = pennon.Session()
            self._look(client.open(dataset.version))

    def _look(self, dataset: pennon.LanceDataset) -> None:
        table = dataset.to_table()
        self.seen.append((dataset.version, rows_of(table), tuple(table.column_names)))


class DoubledError(AssertionError):
    """Two rows of one id."""


def rows_of(table: pa.Table) -> dict[int, int]:
    """Return value by id; raises DoubledError."""
    ids, values = table.column("id").to_pylist(), table.column("v").to_pylist()
    if len(set(ids)) != len(ids):
        message = f"rows are there twice: {sorted(ids)}"
        raise DoubledError(message)
    if EXTRA in table.column_names:
        extra = table.column(EXTRA).to_pylist()
        wrong = [n for n, w in zip(ids, extra, strict=True) if w not in {None, 2 * n}]
        if wrong:
            message = f"rows {wrong} have another's value of {EXTRA}"
            raise DoubledError(message)
    return dict(zip(ids, values, strict=True))
