"""Filtered rows, joins and orders as pyarrow datasets; fragments that a filter leaves; scanners of other sources."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

import pennon
from pennon.dataset import ScannerBuilder, serialize_row_addrs
from pennon.errors import ArgumentError, OutOfRangeError, UnsupportedError

ROWS = pa.table({"id": [3, 1, 2, 6, 5, 4], "name": ["c", "a", "b", "f", "e", "d"]})


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    return pennon.write_dataset(ROWS, str(tmp_path / "t"), max_rows_per_file=2)


def test_filtered_rows_are_read_counted_and_taken(table: pennon.LanceDataset) -> None:
    late = table.filter("id > 1")
    assert late.schema == table.schema
    assert late.count_rows() == 5
    assert late.to_table(["name"], "id < 4").to_pydict() == {"name": ["c", "b"]}
    assert [batch.num_rows for batch in late.to_batches(batch_size=4)] == [4, 1]
    assert late.take([1, 0])["id"].to_pylist() == [2, 3]
    assert late.head(2, columns=["id"]).to_pydict() == {"id": [3, 2]}
    assert table.count_rows() == 6


def test_filters_of_sql_and_pyarrow_are_joined(table: pennon.LanceDataset) -> None:
    few = table.filter(pc.field("id") > 1).filter("id < 6")
    assert sorted(few.to_table()["id"].to_pylist()) == [2, 3, 4, 5]
    only_arrow = pc.equal(pc.utf8_upper(pc.field("name")), "D")
    assert few.filter(only_arrow).to_table()["id"].to_pylist() == [4]
    assert few.count_rows(only_arrow) == 1
    scan = pickle.loads(pickle.dumps(few.filter(only_arrow).scanner()))
    assert scan.to_table()["id"].to_pylist() == [4]


def test_filter_that_does_not_fit_the_table_is_refused_at_once(table: pennon.LanceDataset) -> None:
    with pytest.raises(ArgumentError, match="no column 'nope'"):
        table.filter("nope > 1")
    wrong: Any = 3
    with pytest.raises(UnsupportedError, match="a filter is SQL text"):
        table.filter(wrong)


def test_rows_are_sorted_and_joined_by_pyarrow(table: pennon.LanceDataset, tmp_path: Path) -> None:
    assert table.sort_by("id").to_table()["id"].to_pylist() == [1, 2, 3, 4, 5, 6]
    ordered = table.filter("id < 4").sort_by([("id", "descending")])
    assert ordered.head(1)["name"].to_pylist() == ["c"]
    sizes = pa.table({"key": [2, 9], "size": [20, 90]})
    other = pennon.write_dataset(sizes, str(tmp_path / "o"))
    joined = table.join(other, "id", "key", join_type="inner").to_table()
    assert joined.to_pydict() == {"id": [2], "name": ["b"], "size": [20]}
    files = pa.dataset.dataset(sizes)
    assert table.join(files, "id", "key", join_type="inner").to_table() == joined
    near = pennon.write_dataset(
        pa.table({"t": [10, 20], "k": [1, 1], "p": [1.0, 2.0]}), str(tmp_path / "p")
    )
    ticks = pennon.write_dataset(pa.table({"t": [12, 19, 40], "k": [1, 1, 1]}), str(tmp_path / "q"))
    assert ticks.join_asof(near, "t", "k", -5).to_table()["p"].to_pylist() == [1.0, None, None]


def test_get_fragments_with_a_filter_leaves_out_those_without_a_match(
    table: pennon.LanceDataset,
) -> None:
    def ids(condition: Any) -> list[int]:
        return [each.fragment_id for each in table.get_fragments(condition)]

    assert ids(None) == ids("id > 0") == [0, 1, 2]
    assert ids("_rowaddr >= 8589934592") == [2]
    table.create_scalar_index("id", "BTREE")
    assert ids("id = 6") == ids(pc.field("id") == 6) == [1]
    assert ids("id > 100") == []
    pennon.write_dataset(ROWS, table, mode="append")
    table.checkout_latest()
    with pytest.raises(ArgumentError, match="no column 'nope'"):
        ids("nope = 1")


def test_partition_expressions_are_true(table: pennon.LanceDataset) -> None:
    assert table.partition_expression.equals(pc.scalar(value=True))
    assert table.get_fragments()[0].partition_expression.equals(pc.scalar(value=True))


def test_scanner_takes_rows_by_number(table: pennon.LanceDataset) -> None:
    scan = table.scanner(filter="id > 1")
    assert scan.take([4, 0, 4])["id"].to_pylist() == [4, 3, 4]
    assert scan.take([]).num_rows == 0
    with pytest.raises(OutOfRangeError, match="5 rows, and no row 5"):
        scan.take([5])
    with pytest.raises(OutOfRangeError):
        table.scanner(limit=2).take([2])


def test_scanners_are_made_of_datasets_fragments_and_batches(table: pennon.LanceDataset) -> None:
    scanner = pennon.LanceScanner
    assert scanner.from_dataset(table, columns=["id"], filter="id > 5").count_rows() == 1
    assert scanner.from_dataset(pa.dataset.dataset(ROWS)).count_rows() == 6
    first = table.get_fragments()[0]
    assert scanner.from_fragment(first, schema=table.schema).to_table()["id"].to_pylist() == [3, 1]
    assert scanner.from_batches(ROWS.to_reader()).to_table() == ROWS


def test_row_masks_limit_scans_and_searches(tmp_path: Path) -> None:
    vectors = np.arange(40, dtype=np.float32).reshape(20, 2)
    rows = pa.table({"id": range(20), "vec": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 2)})
    table = pennon.write_dataset(rows, str(tmp_path / "v"), max_rows_per_file=5)
    some, others = serialize_row_addrs([1, 4, 2**32 + 2]), serialize_row_addrs(range(5))
    assert table.scanner(row_addr_allowlist=some).to_table()["id"].to_pylist() == [1, 4, 7]
    allowed = table.scanner(filter="id > 1", row_addr_allowlist=some, row_addr_blocklist=others)
    assert allowed.to_table()["id"].to_pylist() == [7]
    assert table.scanner(row_addr_allowlist=some).fragment_ids() == {0, 1}
    near = {"column": "vec", "q": [0.0, 0.0], "k": 2}
    found = table.scanner(nearest=near, row_addr_blocklist=others, filter="id != 6").to_table()
    assert found["id"].to_pylist() == [5]
    every = ScannerBuilder(table).row_addr_prefilter(some, others).row_addr_prefilter()
    assert every.to_scanner().count_rows() == 20
    empty = table.scanner(row_addr_allowlist=serialize_row_addrs([]))
    assert empty.count_rows() == 0


@pytest.mark.parametrize("data", [b"", b"abc", b"\xff" * 40])
def test_row_mask_of_wrong_bytes_is_refused(table: pennon.LanceDataset, data: bytes) -> None:
    with pytest.raises(ArgumentError, match="row_addr_allowlist is not a serialized set"):
        table.scanner(row_addr_allowlist=data)
    wrong: Any = [1, 2]
    with pytest.raises(TypeError, match="row_addr_blocklist is a serialized set"):
        table.scanner(row_addr_blocklist=wrong)


def test_search_in_some_segments_of_an_index(tmp_path: Path) -> None:
    vectors = np.random.default_rng(3).normal(size=(300, 4)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(vectors.ravel(), 4)
    rows = pa.table({"id": range(300), "vec": column})
    table = pennon.write_dataset(rows, str(tmp_path / "v"), max_rows_per_file=100)
    parts = [
        table.create_index_uncommitted("vec", "IVF_FLAT", num_partitions=1, fragment_ids=[number])
        for number in (0, 1)
    ]
    table = table.commit_existing_index_segments("vec_idx", "vec", parts)
    first, second = (part.uuid for part in parts)

    def owners(segments: Any, **more: Any) -> set[int]:
        near = {"column": "vec", "q": [0.0] * 4, "k": 90}
        scan = table.scanner(["id"], nearest=near, index_segments=segments, **more)
        return {row // 100 for row in scan.to_table()["id"].to_pylist()}

    assert owners(None) == {0, 1, 2}
    assert owners([first]) == {0}
    assert owners([second]) == {1}
    assert owners([first, second]) == {0, 1}
    fragments = table.get_fragments()
    assert owners([first], fragments=[fragments[0], fragments[2]], prefilter=True) == {0, 2}
    for wrong, message in (
        ([], "names no segment"),
        (["x"], "named by its UUID, not by 'x'"),
        (["00000000-0000-4000-8000-000000000000"], "is no segment of an index of column 'vec'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            owners(wrong)
    with pytest.raises(TypeError, match="not a single one"):
        owners(first)
    with pytest.raises(ArgumentError, match="for a search of vectors"):
        table.scanner(index_segments=[first])
