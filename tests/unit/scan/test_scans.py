"""Scans and takes of tables with deletions and columns in several files, against plain Arrow."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.units import DatasetVersion, FieldId, FragmentId
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.errors import ArgumentError, FormatError, NotFoundError, OutOfRangeError
from pennon.io import MemoryStore, open_store
from pennon.io.store import Store
from pennon.ops.write import FileLimits, WriteTask, write_fragments
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.field import Schema
from pennon.schema.version import V2_0
from pennon.table.deletion import write_deletions
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.manifest import Manifest

ROWS = 5000
TABLE = pa.table(
    {
        "n": pa.array(range(ROWS)),
        "t": pa.array([None if n % 5 == 0 else f"row {n}" for n in range(ROWS)]),
        "s": pa.array([{"x": n, "l": [n] * (n % 3)} for n in range(ROWS)]),
    }
)
RANDOM = np.random.default_rng(7)
DEAD = [
    np.empty(0, np.int64),
    np.arange(0, 1700, 2),
    np.concatenate([np.arange(400), np.arange(1000, 1600)]),
]


def _split(store: Store, rows: pa.Table, schema: Schema) -> tuple[Fragment, ...]:
    """Write each fragment as two files: the first column, and the others."""
    whole: list[Fragment] = []
    for number, first in enumerate(range(0, ROWS, 1700)):
        part = rows.slice(first, 1700)
        files: list[DataFileRef] = []
        for fields in (schema.fields[:1], schema.fields[1:]):
            task = WriteTask(store, Schema(fields), V2_0, FileLimits())
            names = [field.name for field in fields]
            (made,) = write_fragments(task, part.select(names).to_batches(max_chunksize=333))
            files += made.files
        deleted = write_deletions(store, FragmentId(number), 1, DEAD[number])
        whole.append(Fragment(FragmentId(number), tuple(files), part.num_rows, deleted))
    return tuple(whole)


def _dead_rows() -> np.ndarray:
    return np.concatenate([dead + 1700 * number for number, dead in enumerate(DEAD)])


@pytest.fixture(scope="module")
def table() -> LanceDataset:
    store = MemoryStore("scans")
    schema = schema_from_arrow(TABLE.schema)
    manifest = Manifest(schema, DatasetVersion(2), _split(store, TABLE, schema))
    return LanceDataset.of_snapshot("memory://scans", Snapshot(store, manifest))


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    alive = np.setdiff1d(np.arange(ROWS), _dead_rows())
    addresses = (alive // 1700 << 32) + alive % 1700
    rows = TABLE.take(alive)
    return rows.append_column("_rowaddr", pa.array(addresses, pa.uint64()))


def test_scan_with_deletions_equals_arrow(table: LanceDataset, expected: pa.Table) -> None:
    assert table.to_table(with_row_address=True).equals(expected)
    assert table.count_rows() == expected.num_rows
    table.validate()


@pytest.mark.parametrize("batch_size", [1, 7, 512, 1700, 10**6])
def test_scan_batches_have_the_given_size(
    table: LanceDataset, expected: pa.Table, batch_size: int
) -> None:
    batches = list(table.to_batches(batch_size=batch_size, with_row_address=True))
    assert pa.Table.from_batches(batches).equals(expected)
    live = [fragment.count_rows() for fragment in table.get_fragments()]
    sizes = [min(batch_size, n - at) for n in live for at in range(0, n, batch_size)]
    assert [batch.num_rows for batch in batches] == sizes


@pytest.mark.parametrize("column", ["n", "t", "s", "s.x", "s.l"])
def test_slices_equal_arrow(table: LanceDataset, expected: pa.Table, column: str) -> None:
    flat = expected.flatten() if "." in column else expected
    for start, end in ((0, 1), (1699, 1701), (2000, 3100), (expected.num_rows - 1, 10**6)):
        part = table.slice(start, end, columns=[column])
        assert part[column].to_pylist() == flat[column].slice(start, end - start).to_pylist()


def test_takes_by_offset_and_address_equal_arrow(table: LanceDataset, expected: pa.Table) -> None:
    for count in (1, 2, 100, 4000):
        rows = RANDOM.integers(0, expected.num_rows, count)
        taken = table.take(rows, columns=["t", "_rowaddr", "n", "s"])
        assert taken.equals(expected.take(rows).select(["t", "_rowaddr", "n", "s"]))
        addresses = expected["_rowaddr"].take(rows)
        assert table._take_rows(addresses, columns=["n"])["n"].equals(taken["n"])


def test_take_by_address_skips_deleted_rows(table: LanceDataset) -> None:
    first_dead = 1 << 32
    assert table._take_rows([3, first_dead, 1], columns=["n"])["n"].to_pylist() == [3, 1]


def test_take_of_rows_out_of_range_is_refused(table: LanceDataset) -> None:
    for rows in ([table.count_rows()], [10**12]):
        with pytest.raises(OutOfRangeError, match="rows"):
            table.take(rows)
    with pytest.raises(OutOfRangeError, match="fragment 3"):
        table._take_rows([3 << 32])
    with pytest.raises(OutOfRangeError, match="fragment 0"):
        table._take_rows([1700])


def test_unknown_column_error_lists_columns(table: LanceDataset) -> None:
    for read in (table.to_table, lambda columns: table.take([0], columns)):
        with pytest.raises(ArgumentError, match=r"n, t, s, (s\.l, s\.l\.item, )?s\.x"):
            read(columns=["nope"])


def test_scan_closed_early_stops(table: LanceDataset) -> None:
    batches = table.to_batches(batch_size=10)
    assert next(batches).num_rows == 10
    batches.close()  # type: ignore[attr-defined]


def test_pickles_to_the_same_version(tmp_path: Path) -> None:
    written = pennon.write_dataset(TABLE, tmp_path / "t.lance")
    copy = pickle.loads(pickle.dumps(written))
    pennon.write_dataset(TABLE, written, mode="append")
    assert copy == written
    assert copy.version == 1
    assert copy.latest_version == 2
    assert copy.to_table().equals(TABLE)
    fragment = pickle.loads(pickle.dumps(written.get_fragments()[0]))
    assert fragment.to_table().equals(TABLE)


FORK = """
import os, sys
import pennon

table = pennon.dataset(sys.argv[1])
whole = table.to_table()
assert table.take([7])["n"].to_pylist() == [7]
child = os.fork()
if child == 0:
    same = table.to_table().equals(whole) and table.take([7])["n"].to_pylist() == [7]
    os._exit(0 if same else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_reads_after_a_fork(tmp_path: Path) -> None:
    """In a process of its own: the oracle, loaded by other tests, does not survive a fork."""
    pennon.write_dataset(TABLE, tmp_path / "t.lance", max_rows_per_file=1000)
    command = [sys.executable, "-c", FORK, str(tmp_path / "t.lance")]
    subprocess.run(command, check=True, timeout=60)


def _changed(table: LanceDataset, **changes: Any) -> LanceDataset:
    """Return the table with its first fragment's first file changed."""
    manifest = table.snapshot.manifest
    first = manifest.fragments[0]
    file = replace(first.files[0], **changes)
    fragments = (replace(first, files=(file, *first.files[1:])), *manifest.fragments[1:])
    changed = replace(manifest, fragments=fragments)
    return LanceDataset.of_snapshot("t", Snapshot(table.snapshot.store, changed))


def test_tombstoned_and_absent_columns_are_null(table: LanceDataset) -> None:
    without = _changed(table, field_ids=(FieldId(-2),))
    assert without.to_table(columns=["n"], limit=1700)["n"].null_count == 1700
    assert without.take([0, 1])["n"].to_pylist() == [None, None]
    assert without.take([0, 1])["t"].to_pylist() == [None, "row 1"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"path": "../../etc/passwd"}, FormatError),
        ({"path": "/etc/passwd"}, FormatError),
        ({"path": "gone.lance"}, NotFoundError),
        ({"column_indices": (9,)}, FormatError),
        ({"column_indices": (0, 1)}, FormatError),
    ],
)
def test_manifest_with_wrong_data_files_is_refused(
    table: LanceDataset, changes: dict[str, object], error: type[Exception]
) -> None:
    wrong = _changed(table, **changes)
    for read in (wrong.to_table, lambda: wrong.take([0]), wrong.validate):
        with pytest.raises(error):
            read()


def test_a_wrong_size_is_not_valid(table: LanceDataset) -> None:
    wrong = _changed(table, size_bytes=10)
    with pytest.raises(FormatError, match="10 bytes"):
        wrong.validate()


def test_row_count_mismatch_of_file_and_manifest_is_refused(table: LanceDataset) -> None:
    manifest = table.snapshot.manifest
    for rows in (1, 1699, 1701, 2**31):
        wrong = replace(manifest.fragments[0], physical_rows=rows)
        changed = replace(manifest, fragments=(wrong,))
        shown = LanceDataset.of_snapshot("t", Snapshot(table.snapshot.store, changed))
        for read in (shown.to_table, lambda d=shown: d.take([0]), shown.validate):
            with pytest.raises(FormatError, match="1700"):
                read()


def test_missing_row_counts_are_read_from_the_files(table: LanceDataset) -> None:
    manifest = table.snapshot.manifest
    bare = tuple(
        replace(
            fragment,
            physical_rows=None,
            deletion_file=fragment.deletion_file
            and replace(fragment.deletion_file, num_deleted_rows=None),
        )
        for fragment in manifest.fragments
    )
    old = LanceDataset.of_snapshot(
        "t", Snapshot(table.snapshot.store, replace(manifest, fragments=bare))
    )
    assert old.count_rows() == table.count_rows()
    assert old.to_table().equals(table.to_table())
    assert [f.metadata.num_rows for f in old.get_fragments()] == [
        f.metadata.num_rows for f in table.get_fragments()
    ]


def test_duplicate_field_ids_are_not_valid(table: LanceDataset) -> None:
    manifest = table.snapshot.manifest
    twice = replace(manifest.schema.fields[1], id=FieldId(0))
    schema = replace(manifest.schema, fields=(manifest.schema.fields[0], twice))
    wrong = replace(manifest, schema=schema)
    with pytest.raises(FormatError, match="same id"):
        LanceDataset.of_snapshot("t", Snapshot(table.snapshot.store, wrong)).validate()


def test_fragment_metadata_pickles() -> None:
    whole = FragmentMetadata(3, [DataFile("a.lance", [0], [0], 2, 0, 10)], 7)
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert FragmentMetadata.from_fragment(whole.to_fragment()) == whole


def test_open_store_has_the_uri_of_the_table(tmp_path: Path) -> None:
    pennon.write_dataset(TABLE, tmp_path / "t.lance")
    assert open_store(tmp_path / "t.lance").uri == str(tmp_path / "t.lance")


def test_misspelt_options_are_refused(table: LanceDataset) -> None:
    with pytest.raises(TypeError, match="colums"):
        table.to_table(colums=["n"])  # type: ignore[call-arg]


def test_scan_of_absent_column_with_huge_row_count_uses_little_memory(table: LanceDataset) -> None:
    schema = table.snapshot.manifest.schema
    empty = Fragment(FragmentId(0), (), 2**31)
    huge = replace(table.snapshot.manifest, fragments=(empty,), schema=Schema(schema.fields[:1]))
    shown = LanceDataset.of_snapshot("t", Snapshot(table.snapshot.store, huge))
    before = pa.total_allocated_bytes()
    rows = shown.to_table()
    assert rows.num_rows == rows["n"].null_count == 2**31
    assert pa.total_allocated_bytes() - before < 2**28
    assert shown.take([2**31 - 1])["n"].to_pylist() == [None]
