"""Merging data into a table: pylance's ``MergeInsertBuilder``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict

import pyarrow as pa

from pennon.compat.option_types import MergeModeName
from pennon.dataset.base import DatasetBase
from pennon.dataset.operation import Transaction
from pennon.dataset.operation_fields import from_update
from pennon.errors import ArgumentError, printable
from pennon.io.durability import hands_over
from pennon.ops.base_paths import Targets
from pennon.ops.merge_insert.clauses import Clauses, Matched, WriteMode
from pennon.ops.merge_insert.merge import (
    MergeCounts,
    Merged,
    MergePlan,
    commit_merge,
    plan_merge,
    run_merge,
)
from pennon.ops.merge_insert.source import Source, key_columns
from pennon.ops.retry import CONFLICT_RETRIES, RETRY_TIMEOUT
from pennon.ops.source import as_reader
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_to_arrow
from pennon.schema.field import Schema
from pennon.schema.version import FileVersion
from pennon.schema.wire import is_primary_key
from pennon.table.manifest import Manifest


class MergeResult(TypedDict):
    """The number of rows that a merge inserted, updated and deleted.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> ds.merge_insert("id").when_not_matched_insert_all().execute(pa.table({"id": [4]}))
    {'num_inserted_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0}
    """

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


ExecuteResult: TypeAlias = MergeResult
"""pylance's name of the result of a merge."""


class MergeInsertBuilder:
    """Collects the clauses of a merge, one call each, and executes it.

    Rows of the data and of the table match if all columns of the key are equal; a NULL equals
    nothing.  Kinds of rows that are not mentioned stay as they are.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    >>> merge.execute(pa.table({"id": [3, 4]}))
    {'num_inserted_rows': 1, 'num_updated_rows': 1, 'num_deleted_rows': 0}
    """

    def __init__(self, dataset: DatasetBase, on: str | Iterable[str] | None) -> None:
        """Choose the key; without ``on`` it is the schema's primary key."""
        self._ds = dataset
        schema = dataset.snapshot.manifest.schema
        named = [on] if isinstance(on, str) else list(on or _primary_key(schema))
        if not named:
            message = "a merge needs a key: name its columns, or mark them in the schema"
            raise ArgumentError(message)
        self._on = key_columns(schema, named)
        self._clauses = Clauses()
        self._mode = WriteMode.AUTO
        self._version: FileVersion | None = None
        self._targets: Targets | None = None
        self._retries = CONFLICT_RETRIES
        self._timeout = RETRY_TIMEOUT

    # --- clauses ----------------------------------------------------------------------------------

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Update rows that match with the data's columns, if a condition is true or absent.

        It is SQL over ``source.column`` and ``target.column``.  Several rows of the data for one row
        of the table are an error.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2], "n": [10, 20]}), uri)
        >>> merge = ds.merge_insert("id").when_matched_update_all("source.n > target.n")
        >>> _ = merge.execute(pa.table({"id": [1, 2], "n": [5, 25]}))
        >>> sorted(ds.to_table()["n"].to_pylist())
        [10, 25]
        """
        return self._with(matched=Matched.UPDATE, condition=condition)

    def when_matched_fail(self) -> MergeInsertBuilder:
        """Fail if any row matches.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
        >>> merge.execute(pa.table({"id": [4]}))["num_inserted_rows"]
        1
        """
        return self._with(matched=Matched.FAIL, condition=None)

    def when_matched_delete(self) -> MergeInsertBuilder:
        """Delete rows of the table that match.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_matched_delete()
        >>> merge.execute(pa.table({"id": [2, 4]}))["num_deleted_rows"]
        1
        """
        return self._with(matched=Matched.DELETE, condition=None)

    def when_not_matched_insert_all(self) -> MergeInsertBuilder:
        """Add the rows of the data whose key the table does not have.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> _ = merge.execute(pa.table({"id": [3, 4]}))
        >>> ds.to_table()["id"].to_pylist()
        [1, 2, 3, 4]
        """
        return self._with(inserts=True)

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Delete rows of the table whose key the data does not have, if SQL is true or absent.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_by_source_delete("id > 1")
        >>> _ = merge.execute(pa.table({"id": [3]}))
        >>> ds.to_table()["id"].to_pylist()
        [1, 3]
        """
        return self._with(deletes=True, delete_if=expr)

    def _with(self, **changes: Any) -> MergeInsertBuilder:
        self._clauses = replace(self._clauses, **changes)
        return self

    # --- options ----------------------------------------------------------------------------------

    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """Set how often the merge is done again after a conflict with another writer.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all().conflict_retries(3)
        >>> merge.execute(pa.table({"id": [4]}))["num_inserted_rows"]
        1
        """
        self._retries = max_retries
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """Set how long the merge is retried: no attempt begins later.

        >>> from datetime import timedelta
        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all().retry_timeout(timedelta(minutes=1))
        >>> merge.execute(pa.table({"id": [4]}))["num_inserted_rows"]
        1
        """
        self._timeout = timeout
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Accept and ignore: keys are found by a scan of their columns.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_matched_delete().use_index(False)
        >>> merge.execute(pa.table({"id": [2]}))["num_deleted_rows"]
        1
        """
        return self

    def write_mode(self, mode: MergeModeName) -> MergeInsertBuilder:
        """Choose how updated rows are written if the data has only some of the columns.

        ``rewrite_rows`` (and ``auto``): the rows, whole, into new fragments.  ``rewrite_columns``: the
        data's columns, for all rows of the fragments touched; rows stay in their places.

        >>> rows = pa.table({"id": [1, 2], "n": [10, 20], "name": ["a", "b"]})
        >>> ds = pennon.write_dataset(rows, uri)
        >>> merge = ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
        >>> _ = merge.execute(pa.table({"id": [1], "n": [15]}))
        >>> ds.to_table()["n"].to_pylist()
        [15, 20]
        """
        try:
            self._mode = WriteMode(mode)
        except ValueError:
            known = ", ".join(repr(each.value) for each in WriteMode)
            message = f"there is no write_mode {mode!r}; there are {known}"
            raise ArgumentError(message) from None
        return self

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """Choose the version of new data files; by default the table's.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all().data_storage_version("2.1")
        >>> merge.execute(pa.table({"id": [4]}))["num_inserted_rows"]
        1
        """
        self._version = FileVersion.parse(version)
        return self

    def target_bases(self, bases: Sequence[str]) -> MergeInsertBuilder:
        """Write new data files to base paths of the table, one after the other, by their names or paths.

        The table's own URI among them stands for its own folder.  Deletion files, and columns that are written anew
        beside others (``rewrite_columns``), stay in the table's own folder.

        >>> import pennon, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> more = pennon.DatasetBasePath(folder + "/more", "more")
        >>> ds = pennon.write_dataset(pa.table({"id": [1]}), folder + "/t.lance", initial_bases=[more])
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all().target_bases(["more"])
        >>> _ = merge.execute(pa.table({"id": [2]}))
        >>> [file.base_id for fragment in ds.get_fragments() for file in fragment.data_files()]
        [None, 1]
        """
        self._targets = Targets(_names_of(bases))
        return self

    def target_all_bases(self, include_primary: bool = True) -> MergeInsertBuilder:
        """Write new data files to all base paths of the table, one after the other.

        ``include_primary``: the table's own folder is the first of them.  See `target_bases`.

        >>> import pennon, pyarrow as pa, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> more = pennon.DatasetBasePath(folder + "/more", "more")
        >>> ds = pennon.write_dataset(pa.table({"id": [1]}), folder + "/t.lance", initial_bases=[more])
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all().target_all_bases(include_primary=False)
        >>> merge.execute(pa.table({"id": [2]}))["num_inserted_rows"]
        1
        """
        self._targets = Targets(None, include_primary)
        return self

    # --- doing it ---------------------------------------------------------------------------------

    def execute(self, data_obj: Any, *, schema: pa.Schema | None = None) -> MergeResult:
        """Merge data, commit, and turn the dataset to the version made.

        All of the data is held in memory.  ``schema``: of an iterable of batches.

        Raises SchemaMismatchError for data that does not fit the table, MatchError for rows that
        match and must not, RetryableConflict if other writers were faster every time.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.merge_insert("id").when_not_matched_insert_all().execute(pa.table({"id": [3, 4]}))
        {'num_inserted_rows': 1, 'num_updated_rows': 0, 'num_deleted_rows': 0}
        """
        data = as_reader(data_obj, schema).read_all()

        def execute(snapshot: Snapshot) -> tuple[Manifest, MergeCounts]:
            merged = self._run(snapshot, data)
            return commit_merge(merged), merged.counts

        counts = self._ds._change(execute, self._retries, self._timeout)  # noqa: SLF001 - its own
        return _result(counts)

    @hands_over
    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, dict[str, Any]]:
        """Write what a merge writes, and return the transaction for `LanceDataset.commit`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> transaction, _ = merge.execute_uncommitted(pa.table({"id": [3, 4]}))
        >>> pennon.LanceDataset.commit(ds, transaction).count_rows()
        4
        """
        data = as_reader(data_obj, schema).read_all()
        merged = self._run(self._ds.snapshot, data)
        operation = from_update(merged.operation, adds_keys=merged.adds_keys)
        transaction = Transaction(merged.snapshot.manifest.version, operation)
        return transaction, dict(_result(merged.counts))

    def execute_batches(self, new_data: pa.RecordBatchReader) -> MergeResult:
        """Merge the batches of a reader; `execute` takes them, too.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> merge.execute_batches(pa.table({"id": [3, 4]}).to_reader())["num_inserted_rows"]
        1
        """
        return self.execute(new_data)

    def execute_uncommitted_batches(
        self, new_data: pa.RecordBatchReader
    ) -> tuple[Transaction, dict[str, Any]]:
        """Write what a merge of the batches of a reader writes; `execute_uncommitted` takes them, too.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> transaction, _ = merge.execute_uncommitted_batches(pa.table({"id": [4]}).to_reader())
        >>> pennon.LanceDataset.commit(ds, transaction).count_rows()
        4
        """
        return self.execute_uncommitted(new_data)

    def _run(self, snapshot: Snapshot, data: pa.Table) -> Merged:
        source = Source.of(data, snapshot.manifest.schema, self._on)
        return run_merge(self._plan(snapshot, source))

    def _plan(self, snapshot: Snapshot, source: Source) -> MergePlan:
        return plan_merge(snapshot, source, self._clauses, self._mode, self._version, self._targets)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """Return the plan of a merge as text, for data with a schema (by default, the table's).

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> print(ds.merge_insert("id").when_not_matched_insert_all().explain_plan())
        MergeInsert: on=[id], when_matched=DoNothing, when_not_matched=InsertAll, ...
          HashJoin: keys of the data in memory, 1 groups of fragments
            LanceRead: uri=memory://..., projection=[id], groups=1
            Data: columns=[id]
        """
        snapshot = self._ds.snapshot
        arrow = schema or schema_to_arrow(snapshot.manifest.schema)
        source = Source.of(arrow.empty_table(), snapshot.manifest.schema, self._on)
        plan = self._plan(snapshot, source)
        return "\n".join(map(printable, self._lines(source, plan.task.count, verbose=verbose)))

    def _lines(self, source: Source, groups: int, *, verbose: bool) -> Iterable[str]:
        """Yield the lines of a plan."""
        keys = ", ".join(self._on)
        yield f"MergeInsert: on=[{keys}], {self._clauses}, write_mode={self._mode.value}"
        yield f"  HashJoin: keys of the data in memory, {groups} groups of fragments"
        yield f"    LanceRead: uri={self._ds.uri}, projection=[{keys}], groups={groups}"
        columns = ", ".join(source.table.column_names)
        first, *rest = str(source.table.schema).split("\n") if verbose else [""]
        yield f"    Data: columns=[{columns}]" + (f", {first}" if first else "")
        yield from rest

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Do a merge but for its commit, and return the plan with what was done and written.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> print(merge.analyze_plan(pa.table({"id": [3, 4]})))
        MergeInsert: on=[id], ..., metrics=[num_inserted_rows=1, ...]
          HashJoin: keys of the data in memory, 1 groups of fragments
            LanceRead: uri=memory://..., projection=[id], groups=1
            Data: columns=[id]
        """
        data = as_reader(data_obj, schema).read_all()
        snapshot, started = self._ds.snapshot, time.perf_counter()
        counts = self._run(snapshot, data).counts
        seconds = time.perf_counter() - started
        source = Source.of(data, snapshot.manifest.schema, self._on)
        first, *rest = self._lines(source, len(snapshot.manifest.fragments), verbose=False)
        metrics = (
            f", metrics=[num_inserted_rows={counts.inserted}, num_updated_rows={counts.updated}, "
            f"num_deleted_rows={counts.deleted}, bytes_written={counts.size_bytes}, "
            f"num_files_written={counts.files}, elapsed={seconds * 1000:.1f}ms]"
        )
        return "\n".join(map(printable, [first + metrics, *rest]))

    def analyze_plan_batches(self, new_data: pa.RecordBatchReader) -> str:
        """Do a merge of the batches of a reader but for its commit; see `analyze_plan`.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> merge = ds.merge_insert("id").when_not_matched_insert_all()
        >>> "num_inserted_rows=1" in merge.analyze_plan_batches(pa.table({"id": [4]}).to_reader())
        True
        """
        return self.analyze_plan(new_data)


def _names_of(bases: Sequence[str]) -> tuple[str, ...]:
    """Return names of base paths.  Raises TypeError for what is no list of text, ArgumentError for none."""
    if isinstance(bases, str) or not all(isinstance(each, str) for each in bases):
        message = f"target_bases is a list of names or paths of base paths, got {bases!r}"
        raise TypeError(message)
    if not bases:
        message = "target_bases names no base path; leave it out to write to the table's own folder"
        raise ArgumentError(message)
    return tuple(bases)


def _primary_key(schema: Schema) -> list[str]:
    return [field.name for field in schema.fields if is_primary_key(field)]


def _result(counts: MergeCounts) -> MergeResult:
    return {
        "num_inserted_rows": counts.inserted,
        "num_updated_rows": counts.updated,
        "num_deleted_rows": counts.deleted,
    }
