"""Two writers on one table, one step at a time: both plan on version 4, one commits 5, then the other.

Every operation is made through either library, whose names are the same, and says what it does to
rows that are kept in a dict beside the table.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import lance.file
import pyarrow as pa

import pennon
from pennon.table.commit.loop import commit
from pennon.table.operations import CreateIndex, ReserveFragments
from pennon.table.transaction import Transaction
from pennon.table.transaction_wire import parse_transaction, read_transaction
from pennon.table.versions import read_manifest

VERSION = 4
ROWS = 10
Row = dict[str, Any]
Commit = Callable[[], Any]


def make_base(uri: str) -> None:
    """Write three fragments of ten rows, with column c in files of its own."""
    for number in range(3):
        rows = table(range(number * ROWS, number * ROWS + ROWS)).select(["a", "b"])
        mode = "append" if number else "create"
        lance.write_dataset(rows, uri, mode=mode, data_storage_version="2.1")
    lance.dataset(uri).add_columns({"c": "a * 10"})


def table(numbers: Any) -> pa.Table:
    keys = list(numbers)
    columns = {"a": keys, "b": [f"b{a}" for a in keys], "c": [a * 10 for a in keys]}
    kinds = pa.schema(
        [pa.field("a", pa.int64()), pa.field("b", pa.string()), pa.field("c", pa.int64())]
    )
    return pa.table(columns, schema=kinds)


@dataclass
class Model:
    """What the table should hold: rows by their key, and the columns that show."""

    columns: list[str] = field(default_factory=lambda: ["a", "b", "c"])
    rows: dict[int, Row] = field(
        default_factory=lambda: {row["a"]: row for row in table(range(3 * ROWS)).to_pylist()}
    )

    def shown(self) -> list[Row]:
        """Return the rows as a scan shows them, ordered by key."""
        return [{c: self.rows[a].get(c) for c in self.columns} for a in sorted(self.rows)]

    def apply(self, name: str, number: int) -> None:
        """Do what an operation does, if it does anything to rows."""
        change = getattr(self, "_" + name.replace(" ", "_"), None)
        if change is not None:
            change(number * ROWS)

    def _append(self, key: int) -> None:
        self._write(range(100 + key, 103 + key))

    def _delete(self, key: int) -> None:
        del self.rows[key + 3]

    def _overwrite(self, key: int) -> None:
        self.columns, self.rows = ["a", "b", "c"], {}
        self._write(range(500 + key, 503 + key))

    def _merge(self, key: int) -> None:
        self.columns.append(f"m{key}")
        for row in self.rows.values():
            row[f"m{key}"] = row["a"] + 1

    def _restore(self, _: int) -> None:
        self.columns, self.rows = ["a", "b"], Model().rows

    def _update(self, key: int) -> None:
        self.rows[key + 5]["b"] = "u"

    def _update_columns(self, key: int) -> None:
        self.rows[key + 7]["b"] = "w"

    def _project(self, key: int) -> None:
        self.columns.remove("c" if key else "b")

    def _data_replacement(self, key: int) -> None:
        for a in self.rows.keys() & set(range(key, key + ROWS)):
            self.rows[a]["c"] = a * 1000

    def _write(self, numbers: Any) -> None:
        self.rows |= {row["a"]: row for row in table(numbers).to_pylist()}


@dataclass(frozen=True)
class Writer:
    """One library, at the table's version 4."""

    lib: ModuleType
    uri: str

    def plan(self, name: str, number: int) -> Commit:
        """Return what commits an operation; data files are written now."""
        dataset = self.lib.dataset(self.uri, version=VERSION)
        planned = getattr(self, "_" + name.replace(" ", "_"))(dataset, number)
        if callable(planned):
            return planned
        return lambda: self.lib.LanceDataset.commit(dataset, planned, read_version=VERSION)

    @property
    def _ops(self) -> Any:
        return self.lib.LanceOperation

    def _append(self, _: Any, number: int) -> Any:
        first = 100 + number * ROWS
        return self._ops.Append([self._write(range(first, first + 3))])

    def _delete(self, dataset: Any, number: int) -> Any:
        fragment = dataset.get_fragments()[number].delete(f"a = {number * ROWS + 3}")
        return self._ops.Delete([fragment], [], "a")

    def _overwrite(self, _: Any, number: int) -> Any:
        first = 500 + number * ROWS
        return self._ops.Overwrite(table([]).schema, [self._write(range(first, first + 3))])

    def _rewrite(self, dataset: Any, number: int) -> Any:
        old = dataset.get_fragments()[number].metadata
        new = self._write(range(number * ROWS, number * ROWS + ROWS))
        return self._ops.Rewrite([self._ops.RewriteGroup([old], [new])], [])

    def _merge(self, dataset: Any, number: int) -> Any:
        name = f"m{number * ROWS}"

        def add(batch: pa.RecordBatch) -> pa.RecordBatch:
            values = pa.array([a + 1 for a in batch["a"].to_pylist()], pa.int64())
            return pa.record_batch([values], [name])

        merged = [each.merge_columns(add, ["a"]) for each in dataset.get_fragments()]
        return self._ops.Merge([fragment for fragment, _ in merged], merged[-1][1])

    def _restore(self, _: Any, __: int) -> Any:
        return self._ops.Restore(VERSION - 1)

    def _update(self, dataset: Any, number: int) -> Any:
        key = number * ROWS + 5
        rest = dataset.get_fragments()[number].delete(f"a = {key}")
        return self._ops.Update([], [rest], [self._create(updated(key, "u"))], [], [])

    def _update_columns(self, dataset: Any, number: int) -> Any:
        data = updated(number * ROWS + 7, "w").select(["a", "b"])
        changed, fields = dataset.get_fragments()[number].update_columns(data, "a", "a")
        return self._ops.Update([], [changed], [], fields, [], "rewrite_columns")

    def _project(self, _: Any, number: int) -> Any:
        return self._ops.Project(self._without("c" if number else "b"))

    def _update_config(self, _: Any, number: int) -> Any:
        return self._ops.UpdateConfig(self._ops.UpdateMap({f"k{number}": self.lib.__name__}))

    def _data_replacement(self, _: Any, number: int) -> Any:
        file = self._one_column(range(number * ROWS, number * ROWS + ROWS))
        group = self._ops.DataReplacementGroup(number, file)
        return self._ops.DataReplacement([group])

    def _update_bases(self, dataset: Any, number: int) -> Commit:
        base = self.lib.DatasetBasePath(f"{self.uri}-base{number}", name=f"n{number}")
        return lambda: dataset.add_bases([base])

    def _reserve_fragments(self, dataset: Any, _: int) -> Commit:
        transaction = Transaction(VERSION, ReserveFragments(2))
        return lambda: commit(dataset.snapshot.store, transaction)

    def _write(self, numbers: Any) -> Any:
        return self._create(table(numbers))

    def _create(self, rows: pa.Table) -> Any:
        create = self.lib.fragment.LanceFragment.create
        return create(self.uri, rows, data_storage_version="2.1")

    def _without(self, column: str) -> Any:
        """Return the schema of version 4 without a column, through a copy that drops it."""
        copy = f"{self.uri}-{uuid.uuid4()}"
        shutil.copytree(self.uri, copy)
        lance.dataset(copy).drop_columns([column])
        return self.lib.dataset(copy).lance_schema

    def _one_column(self, numbers: Any) -> Any:
        """Write other values of column c, field 2, as a data file."""
        name = f"{uuid.uuid4()}.lance"
        path = Path(self.uri) / "data" / name
        values = pa.table({"c": pa.array([a * 1000 for a in numbers], pa.int64())})
        with lance.file.LanceFileWriter(str(path), values.schema, version="2.1") as writer:
            writer.write_batch(values)
        return self.lib.fragment.DataFile(name, [2], [0], 2, 1, path.stat().st_size)

    def _create_index(self, dataset: Any, number: int) -> Commit:
        if self.lib is lance:
            return lambda: dataset.create_scalar_index("a", "BTREE", name=f"i{number}")
        copy = f"{self.uri}-{uuid.uuid4()}"
        shutil.copytree(self.uri, copy)
        lance.dataset(copy).create_scalar_index("a", "BTREE", name=f"i{number}")
        shutil.copytree(f"{copy}/_indices", f"{self.uri}/_indices", dirs_exist_ok=True)
        store = pennon.dataset(copy).snapshot.store
        wire = read_transaction(store, read_manifest(store))
        assert wire is not None
        operation = parse_transaction(wire).operation
        assert isinstance(operation, CreateIndex)
        return lambda: commit(dataset.snapshot.store, Transaction(VERSION, operation))


def updated(key: int, value: str) -> pa.Table:
    """Return the row of a key with another value."""
    return table([key]).set_column(1, "b", pa.array([value]))


def outcome(step: Commit) -> str:
    """Return ``.`` if a commit succeeds, ``r`` or ``X`` for the conflict that it raises."""
    try:
        step()
    except (pennon.errors.RetryableConflict, pennon.errors.IncompatibleConflict) as error:
        return "r" if isinstance(error, pennon.errors.RetryableConflict) else "X"
    except OSError as error:
        for word, letter in (("retryable", "r"), ("incompatible", "X")):
            if word in str(error).lower():
                return letter
        raise
    return "."
