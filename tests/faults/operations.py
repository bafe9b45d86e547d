"""Every operation on a small table, and checks that must hold after success or failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

import pennon
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import LanceError
from pennon.io.memory import _STORES, MemoryStore
from pennon.io.store import Store
from pennon.ops.convert import convert, plan_convert
from pennon.scan.session import Session
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import FileVersion
from pennon.table.fragment import ExternalFile
from pennon.table.manifest import Manifest
from pennon.table.naming import transaction_path
from pennon.table.versions import list_locations, read_manifest, read_manifest_at

Rows: TypeAlias = tuple[str, ...]
ROWS = pa.table({"a": list(range(12)), "s": [f"row {n}" for n in range(12)]})
MORE = pa.table({"a": [100, 101], "s": ["more", "rows"]})


def dataset_itself(dataset: LanceDataset) -> LanceDataset:
    return dataset


@dataclass(frozen=True)
class Operation:
    """An operation on a dataset, and how to see that it is done; by default, by the rows.

    ``prepare`` is what must be done before, where nothing fails.  ``cleans``: versions may go.
    """

    run: Callable[[LanceDataset], object]
    is_done: Callable[[LanceDataset], bool] | None = None
    prepare: Callable[[LanceDataset], object] = dataset_itself
    cleans: bool = False

    def __call__(self, store: Store) -> None:
        """Do it on the newest version."""
        self.run(dataset_of(store))

    def done(self, store: Store, before: Rows) -> bool:
        """Tell whether it is done."""
        if self.is_done is not None:
            return self.is_done(dataset_of(store))
        return rows_of(store) != before


def dataset_of(store: Store, version: int | None = None) -> LanceDataset:
    """Return a handle that sees ``store``, and asks no other."""
    snapshot = Snapshot(store, read_manifest(store, version), Session())
    return LanceDataset.of_snapshot(store.uri, snapshot)


def _merge_insert(dataset: LanceDataset) -> None:
    builder = dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(pa.table({"a": [2, 100], "s": ["updated", "new"]}))


def _is_compact(dataset: LanceDataset) -> bool:
    return len(dataset.get_fragments()) == 1


def _is_2_0(dataset: LanceDataset) -> bool:
    return dataset.data_storage_version == "2.0"


def _add_by_function(dataset: LanceDataset) -> None:
    dataset.add_columns(lambda batch: pa.record_batch({"c": pc.multiply(batch["a"], 2)}))


def _clean_up(dataset: LanceDataset) -> None:
    """Take away all old versions but the tagged one."""
    dataset.cleanup_old_versions(
        timedelta(0), error_if_tagged_old_versions=False, delete_unverified=True
    )


def _numbers(dataset: LanceDataset) -> list[int]:
    return [version["version"] for version in dataset.version_refs()]


OPERATIONS: dict[str, Operation] = {
    "append": Operation(lambda ds: pennon.write_dataset(MORE, ds, mode="append")),
    "overwrite": Operation(lambda ds: pennon.write_dataset(MORE, ds, mode="overwrite")),
    "convert": Operation(
        lambda ds: convert(plan_convert(ds.snapshot.store, FileVersion(2, 0))), _is_2_0
    ),
    "delete": Operation(lambda ds: ds.delete("a % 3 = 0")),
    "delete fragments": Operation(lambda ds: ds.delete("a < 5")),
    "update": Operation(lambda ds: ds.update({"s": "'new'"}, "a % 3 = 0")),
    "merge_insert": Operation(_merge_insert),
    "add_columns": Operation(lambda ds: ds.add_columns({"b": "a + 1"})),
    "add_columns by a function": Operation(_add_by_function),
    "drop_columns": Operation(lambda ds: ds.drop_columns(["s"])),
    "alter_columns": Operation(lambda ds: ds.alter_columns({"path": "s", "name": "t"})),
    "cast a column": Operation(
        lambda ds: ds.alter_columns({"path": "a", "data_type": pa.int32()}),
        lambda ds: ds.schema.field("a").type == pa.int32(),
    ),
    "merge": Operation(lambda ds: ds.merge(pa.table({"a": [2, 3], "m": ["x", "y"]}), "a")),
    "compact": Operation(lambda ds: ds.optimize.compact_files(), _is_compact),
    "restore": Operation(lambda ds: ds.checkout_version(2).restore()),
    "update_config": Operation(
        lambda ds: ds.update_config({"key": "value"}), lambda ds: "key" in ds.config()
    ),
    "create a tag": Operation(
        lambda ds: ds.tags.create("new", 2), lambda ds: "new" in ds.tags.list()
    ),
    "move a tag": Operation(
        lambda ds: ds.tags.update("old", 3), lambda ds: ds.tags.get_version("old") == 3
    ),
    "delete a tag": Operation(
        lambda ds: ds.tags.delete("old"), lambda ds: "old" not in ds.tags.list()
    ),
    "create a branch": Operation(
        lambda ds: ds.create_branch("new", 2), lambda ds: "new" in ds.branches.list()
    ),
    "write to a branch": Operation(
        lambda ds: ds.checkout_version(("old", None)).insert(MORE),
        lambda ds: ds.checkout_version(("old", None)).count_rows() == 10,
        prepare=lambda ds: ds.create_branch("old", 2),
    ),
    "delete a branch": Operation(
        lambda ds: ds.branches.delete("old"),
        lambda ds: "old" not in ds.branches.list(),
        prepare=lambda ds: ds.create_branch("old", 2),
    ),
    "clean up": Operation(_clean_up, lambda ds: _numbers(ds) == [1, 4], cleans=True),
    "truncate_table": Operation(lambda ds: ds.truncate_table()),
}


def make_table(store: Store) -> None:
    """Make the table that the operations work on: four versions, three fragments, a tag."""
    for number in range(3):
        part = ROWS.slice(number * 4, 4)
        pennon.write_dataset(
            part, store.uri, mode="append" if number else "create", data_storage_version="2.1"
        )
    dataset_of(store).delete("a = 1")
    dataset_of(store).tags.create("old", 1)


def copy_memory(store: MemoryStore, name: str) -> MemoryStore:
    """Return another store in memory with the same objects."""
    _STORES[name] = dict(_STORES.get(store.name, {}))
    return MemoryStore(name)


def rows_of(store: Store, version: int | None = None) -> Rows:
    """Return the rows of a version, in any order of theirs, as text with the names of columns."""
    table = dataset_of(store, version).to_table()
    return tuple(sorted(repr(sorted(row.items())) for row in table.to_pylist()))


def outcomes(operation: Operation, store: Store) -> set[Rows]:
    """Run an operation where nothing fails; return the rows before and after."""
    before = rows_of(store)
    operation.prepare(dataset_of(store))
    operation(store)
    return {before, rows_of(store)}


def named_files(manifest: Manifest) -> Iterator[str]:
    """Yield the paths of all files that a manifest names."""
    if manifest.transaction_file is not None:
        yield transaction_path(manifest.transaction_file)
    for fragment in manifest.fragments:
        yield from (file.store_path for file in fragment.files)
        if fragment.deletion_file is not None:
            yield fragment.deletion_file.store_path(fragment.id)
        sequences = (
            fragment.row_ids,
            fragment.created_at_versions,
            fragment.last_updated_at_versions,
        )
        yield from (each.path for each in sequences if isinstance(each, ExternalFile))


def check(store: Store, allowed: set[Rows], *, gaps: bool = False, reads_all: bool = True) -> None:
    """Assert that the table is at one of the ``allowed`` states, and that nothing is missing.

    Versions follow one another without ``gaps``, unless some were cleaned up.  ``reads_all``: the
    rows of older versions are read, too.
    """
    locations = list_locations(store)
    numbers = [location.version for location in locations]
    assert gaps or numbers == list(range(1, len(numbers) + 1))
    there = {path for path, _ in store.list_names("")}
    for location in locations:
        missing = set(named_files(read_manifest_at(store, location))) - there
        assert not missing, f"version {location.version} names {missing}"
        if reads_all:
            rows_of(store, location.version)
    assert rows_of(store) in allowed
    newest = dataset_of(store)
    for name in newest.tags.list():
        assert newest.checkout_version(name).version in numbers
    for name in newest.branches.list():
        assert newest.checkout_version((name, None)).to_table().num_rows > 0


def check_that_work_goes_on(operation: Operation, store: Store, before: Rows) -> None:
    """Assert that, with no repair, the operation succeeds if it did not; and another one does."""
    if not operation.done(store, before):
        operation(store)
    assert operation.done(store, before)
    count = len(rows_of(store))
    newest = dataset_of(store)
    part: Any = newest.to_table().slice(0, 1) if count else MORE.slice(0, 1)
    pennon.write_dataset(part, newest, mode="append")
    assert len(rows_of(store)) == count + 1


def attempt(operation: Operation, store: Store) -> bool:
    """Run an operation on a store in trouble; return whether it succeeded.

    Only errors of our own may come of it.
    """
    try:
        operation(store)
    except LanceError:
        return False
    return True
