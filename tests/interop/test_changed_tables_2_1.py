"""Random nested tables of 2.1 and 2.2 that both libraries write to: appends, deletions, columns more and less.

One library makes the table, the other appends to it, the oracle deletes rows of it, Pennon compacts
it; every other table has stable row ids.  Then both read the same, and what the source says.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import pennon
from tests.interop.equality import difference
from tests.interop.nested_tables import nested_case
from tests.interop.oracle import Oracle
from tests.interop.random_tables import Case, as_lance_reads
from tests.interop.reads import differences, reads_of
from tests.interop.test_nested_2_1 import blocks

IN_EVERY_RUN = 40
COMPACTED_IN_EVERY_RUN = 20
DELETED = "number % 7 < 3"


@blocks(IN_EVERY_RUN)
def test_nested_2_1_tables_appended_by_the_other_library(
    newest: Oracle, seeds: range, folder: Path
) -> None:
    found = []
    for case, uri in _cases(seeds, folder):
        first, second = (_ours, _theirs) if case.seed % 4 < 2 else (_theirs, _ours)
        half = case.table.num_rows // 2
        stable = bool(case.seed % 2)
        first(newest, case, uri, case.table[:half], enable_stable_row_ids=stable)
        second(newest, case, uri, case.table[half:], mode="append")
        newest.call("delete", uri=str(uri), predicate=DELETED)
        left = _left(case)
        found += differences(left, reads_of(left), as_lance_reads(left.table), newest, uri)
        found += _by_row_id(newest, left, uri)
        _check(case.seed, uri, left.table.num_rows)
    assert not found, "\n".join(found)


@blocks(COMPACTED_IN_EVERY_RUN)
def test_nested_2_1_tables_compacted_by_pennon(newest: Oracle, seeds: range, folder: Path) -> None:
    found = []
    for case, uri in _cases(seeds, folder):
        half = case.table.num_rows // 2
        stable = bool(case.seed % 2)
        _ours(newest, case, uri, case.table[:half], enable_stable_row_ids=stable)
        _theirs(newest, case, uri, case.table[half:], mode="append")
        newest.call("delete", uri=str(uri), predicate=DELETED)
        dataset = pennon.dataset(uri)
        dataset.optimize.compact_files()
        assert len(dataset.get_fragments()) <= 1
        left = _left(case)
        found += differences(left, reads_of(left), as_lance_reads(left.table), newest, uri)
        found += _by_row_id(newest, left, uri)
        _check(case.seed, uri, left.table.num_rows)
    assert not found, "\n".join(found)


@blocks(IN_EVERY_RUN)
def test_nested_2_1_tables_with_added_and_dropped_columns(
    newest: Oracle, seeds: range, folder: Path
) -> None:
    """The oracle rewrites what the manifest says of our files: leaves that are dead, new files."""
    found = []
    for case, uri in _cases(seeds, folder):
        _ours(newest, case, uri, case.table)
        newest.call("add_columns", uri=str(uri), expressions={"twice": "number * 2"})
        dropped = case.table.column_names[0]
        newest.call("drop_columns", uri=str(uri), columns=[dropped])
        twice = pa.array(np.arange(case.table.num_rows) * 2)
        table = case.table.append_column("twice", twice).drop_columns([dropped])
        _theirs(newest, case, uri, table[:9], mode="append")
        _ours(newest, case, uri, table[:5], mode="append")
        table = pa.concat_tables([table, table[:9], table[:5]])
        names = [name for name in case.columns if name.split(".")[0] != dropped]
        shown = replace(case, table=table, columns=names or ["twice"], deep_columns=None)
        found += differences(shown, reads_of(shown), as_lance_reads(table), newest, uri)
        _check(case.seed, uri, table.num_rows)
    assert not found, "\n".join(found)


def _cases(seeds: range, folder: Path) -> Iterator[tuple[Case, Path]]:
    for seed in seeds:
        case = nested_case(seed, "2.1")
        numbers = pa.array(range(case.table.num_rows))
        yield replace(case, table=case.table.append_column("number", numbers)), folder / str(seed)
        shutil.rmtree(folder / str(seed))


def _version(seed: int) -> str:
    """Return the file version of a seed's table, whose types are those of 2.1."""
    return ("2.1", "2.2")[seed // 4 % 2]


def _ours(_: Oracle, case: Case, uri: Path, table: pa.Table, **options: Any) -> None:
    data = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(case.batch_rows))
    if options.get("mode") != "append":
        options |= {"data_storage_version": _version(case.seed)}
    options |= {"max_rows_per_file": case.max_rows_per_file, "max_page_bytes": case.page_bytes}
    pennon.write_dataset(data, uri, **options)


def _theirs(newest: Oracle, case: Case, uri: Path, table: pa.Table, **options: Any) -> None:
    if options.get("mode") != "append":
        options |= {"data_storage_version": _version(case.seed)}
    newest.write(uri, table, max_rows_per_file=case.max_rows_per_file, **options)


def _left(case: Case) -> Case:
    """Return the case without the rows that were deleted."""
    numbers = np.arange(case.table.num_rows)
    table = as_lance_reads(case.table).take(pa.array(numbers[numbers % 7 >= 3]))
    indices = [index % table.num_rows for index in case.indices] if table.num_rows else []
    return replace(case, table=table, indices=indices)


def _by_row_id(newest: Oracle, case: Case, uri: Path) -> list[str]:
    """Compare rows that are taken by their ids."""
    dataset = pennon.dataset(uri)
    ids = dataset.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    wanted = ids[:: max(len(ids) // 20, 1)][::-1]
    ours = dataset._take_rows(wanted, columns=["number"])
    call = {"uri": str(uri), "row_ids": wanted, "columns": ["number"], "out": True}
    different = difference(ours, newest.call("take_row_ids", **call)) if wanted else None
    return [f"seed {case.seed}, by row id: {different}"] if different else []


def _check(seed: int, uri: Path, rows: int) -> None:
    dataset = pennon.dataset(uri)
    dataset.validate()
    assert dataset.count_rows() == rows
    assert dataset.data_storage_version == _version(seed)
