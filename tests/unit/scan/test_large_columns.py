"""Text and bytes that are more than one array holds, in one fragment; a limit of some KiB stands for 2 GiB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset import ColumnOrdering
from pennon.encoding import array_limit
from pennon.encoding.large_columns import combined, take_rows
from pennon.errors import TooLargeError

ROWS = 400
WIDTH = 50
LIMIT = 4000
"""The bytes of 80 rows."""
VERSIONS = ["2.0", "2.1", "2.2"]


@pytest.fixture(autouse=True)
def small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_limit, "LARGEST_ARRAY_BYTES", LIMIT)


def _text(number: int) -> str:
    return f"{number * 7919 % ROWS:06d}" + "x" * (WIDTH - 6)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=["text", "binary", "list"])
def ds(request: pytest.FixtureRequest, tmp_path: Path, version: str) -> pennon.LanceDataset:
    """Return a table of one fragment, without the row 5."""
    texts = [_text(n) for n in range(ROWS)]
    values: Any = pa.array(texts)
    if request.param == "binary":
        values = values.cast(pa.binary())
    if request.param == "list":
        values = pa.array([[text] for text in texts])
    table = pa.table({"id": range(ROWS), "t": values})
    ds = pennon.write_dataset(table, tmp_path / "t", data_storage_version=version)
    ds.delete("id = 5")
    return ds


@pytest.fixture
def texts(tmp_path: Path, version: str) -> pennon.LanceDataset:
    table = pa.table({"id": range(ROWS), "t": [_text(n) for n in range(ROWS)]})
    ds = pennon.write_dataset(table, tmp_path / "texts", data_storage_version=version)
    ds.delete("id = 5")
    return ds


LIVE = [n for n in range(ROWS) if n != 5]


def test_scan_of_column_above_the_array_limit(ds: pennon.LanceDataset) -> None:
    assert ds.to_table()["id"].to_pylist() == LIVE
    assert ds.to_table().num_rows == sum(b.num_rows for b in ds.to_batches(batch_size=100))
    assert ds.to_table(filter="id % 2 = 0")["id"].to_pylist() == [n for n in LIVE if n % 2 == 0]


def test_compaction_of_column_above_the_array_limit(ds: pennon.LanceDataset) -> None:
    before = ds.to_table()
    ds.optimize.compact_files(materialize_deletions_threshold=0)
    assert ds.get_fragments()[0].metadata.deletion_file is None
    assert ds.to_table().equals(before)


def test_take_of_column_above_the_array_limit(ds: pennon.LanceDataset) -> None:
    rows = np.random.default_rng(0).permutation(len(LIVE))
    taken = ds.take(rows)
    assert taken["id"].to_pylist() == [LIVE[n] for n in rows]
    assert taken.equals(ds.to_table().take(pa.array(rows)))


def test_order_by_beside_column_above_the_array_limit(ds: pennon.LanceDataset) -> None:
    scanner = ds.scanner(order_by=[ColumnOrdering("id", ascending=False)])
    found = scanner.to_table()
    assert found["id"].to_pylist() == LIVE[::-1]
    assert found["t"].num_chunks > 1
    assert pa.Table.from_batches(scanner.to_batches()).equals(found)


def test_count_and_filter_of_column_above_the_array_limit(texts: pennon.LanceDataset) -> None:
    expected = [n for n in LIVE if "1" in _text(n)]
    assert texts.count_rows("t LIKE '%1%'") == len(expected)
    assert texts.to_table(filter="t LIKE '%1%'")["id"].to_pylist() == expected


@pytest.mark.parametrize("limit", [None, 3, 300])
def test_order_by_column_above_the_array_limit(
    texts: pennon.LanceDataset, limit: int | None
) -> None:
    found = texts.to_table(columns=["id", "t"], order_by=["t"], limit=limit)
    expected = sorted(LIVE, key=_text)[:limit]
    assert found["id"].to_pylist() == expected
    assert found["t"].to_pylist() == [_text(n) for n in expected]


def test_merge_by_key_above_the_array_limit(texts: pennon.LanceDataset) -> None:
    keys = [3, 5, 77, ROWS - 1]
    data = pa.table({"id": [1000 + n for n in keys], "t": [_text(n) for n in keys]})
    merge = texts.merge_insert("t").when_matched_update_all().when_not_matched_insert_all()
    stats = merge.execute(data)
    assert (stats["num_updated_rows"], stats["num_inserted_rows"]) == (3, 1)
    found = dict(zip(*texts.to_table().to_pydict().values(), strict=True))
    assert {n: found[1000 + n] for n in keys} == {n: _text(n) for n in keys}
    assert len(found) == ROWS


def test_merge_of_source_above_the_array_limit(texts: pennon.LanceDataset) -> None:
    data = pa.table({"id": [1000 + n for n in range(ROWS)], "t": [_text(n) for n in range(ROWS)]})
    merge = texts.merge_insert("t").when_matched_update_all().when_not_matched_insert_all()
    stats = merge.execute(pa.Table.from_batches(data.to_batches(max_chunksize=30)))
    assert (stats["num_updated_rows"], stats["num_inserted_rows"]) == (ROWS - 1, 1)
    assert sorted(texts.to_table()["id"].to_pylist()) == [1000 + n for n in range(ROWS)]


def test_update_and_delete_by_column_above_the_array_limit(
    texts: pennon.LanceDataset,
) -> None:
    texts.update({"id": "id + 1000"}, where=f"t = '{_text(7)}'")
    texts.delete(f"t = '{_text(8)}'")
    expected = {n for n in LIVE if n not in (7, 8)} | {1007}
    assert set(texts.to_table()["id"].to_pylist()) == expected


def test_row_above_the_array_limit_is_refused(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_limit, "LARGEST_ARRAY_BYTES", 1 << 30)
    table = pa.table({"id": [1, 2, 3], "t": ["a", "b" * (LIMIT + 1), "c"]})
    ds = pennon.write_dataset(table, tmp_path, data_storage_version=version)
    monkeypatch.setattr(array_limit, "LARGEST_ARRAY_BYTES", LIMIT)
    with pytest.raises(TooLargeError, match=f"1 rows hold {LIMIT + 1} bytes"):
        ds.to_table()
    assert ds.to_table(columns=["id"])["id"].to_pylist() == [1, 2, 3]
    assert ds.take([0, 2])["t"].to_pylist() == ["a", "c"]


def test_take_rows_of_chunks_above_the_array_limit() -> None:
    chunks = [[_text(n) for n in range(at, at + 30)] for at in range(0, 300, 30)]
    table = pa.table({"n": pa.chunked_array([range(300)]), "t": pa.chunked_array(chunks)})
    for rows in ([], [7], [299, 0, 0, 150], list(range(299, -1, -1)), [4] * 200):
        found = take_rows(table, np.array(rows, np.int64))
        assert found.equals(table.take(pa.array(rows, pa.int64())))
        assert all(chunk.nbytes <= LIMIT for chunk in found["t"].chunks)
    assert combined(table).equals(table)
    assert combined(table)["t"].num_chunks == 5


# --- dictionaries ---------------------------------------------------------------------------------


@pytest.fixture
def named(tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch) -> pennon.LanceDataset:
    """Return a table whose dictionary column is too large to be written out."""
    monkeypatch.setattr("pennon.scan.read.compute.WRITTEN_OUT_BYTES", LIMIT)
    monkeypatch.setattr("pennon.scan.read.compute.LEAST_ITEM_BYTES", 10)
    items = ["c" * WIDTH, "a" * WIDTH, "b" * WIDTH]
    values = [None if n % 10 == 9 else items[n % 3] for n in range(ROWS)]
    table = pa.table({"id": range(ROWS), "d": pa.array(values).dictionary_encode()})
    ds = pennon.write_dataset(table, tmp_path / "d", data_storage_version=version)
    ds.delete("id = 5")
    return ds


def test_filter_of_dictionary_too_large_to_decode(named: pennon.LanceDataset) -> None:
    a_rows = [n for n in LIVE if n % 3 == 1 and n % 10 != 9]
    assert named.count_rows("d LIKE 'a%'") == len(a_rows)
    assert named.count_rows(f"d = '{'a' * WIDTH}'") == len(a_rows)
    assert named.to_table(filter="length(d) > 3 AND d LIKE 'a%'")["id"].to_pylist() == a_rows
    named.update({"id": "id + 1000"}, where="d LIKE 'a%'")
    named.delete("d LIKE 'b%'")
    kept = [n for n in LIVE if n % 10 == 9 or n % 3 != 2]
    assert sorted(named.to_table()["id"].to_pylist()) == sorted(
        n + 1000 * (n in a_rows) for n in kept
    )


@pytest.mark.parametrize("limit", [None, 5, 200])
def test_order_by_dictionary_too_large_to_decode(
    named: pennon.LanceDataset, limit: int | None
) -> None:
    rank = [2, 0, 1]
    expected = sorted(LIVE, key=lambda n: 3 if n % 10 == 9 else rank[n % 3])
    found = named.to_table(columns=["id"], order_by=["d"], limit=limit)
    assert found["id"].to_pylist() == expected[:limit]


def test_merge_by_dictionary_too_large_to_decode(named: pennon.LanceDataset) -> None:
    data = pa.table({"id": [1, 2], "d": pa.array(["a" * WIDTH, "z"]).dictionary_encode()})
    with pytest.raises(Exception, match="ambiguous"):
        named.merge_insert("d").when_matched_update_all().execute(pa.concat_tables([data, data]))
    stats = named.merge_insert("d").when_not_matched_insert_all().execute(data)
    assert stats["num_inserted_rows"] == 1
    assert named.count_rows("d = 'z'") == 1
    stats = (
        named.merge_insert("d")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(data)
    )
    a_rows = [n for n in LIVE if n % 3 == 1 and n % 10 != 9]
    assert stats["num_updated_rows"] == len(a_rows) + 1


@pytest.mark.slow
@pytest.mark.parametrize("version", ["2.1"], indirect=True)
def test_two_and_a_half_gigabytes_of_text(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(array_limit, "LARGEST_ARRAY_BYTES", (1 << 31) - 1)
    rows, width = 25_000, 100_000
    schema = pa.schema([("id", pa.int64()), ("t", pa.string())])

    def texts(first: int) -> pa.RecordBatch:
        numbers = range(first, first + 250)
        values = [f"{n * 7919 % rows:06d}" + "x" * (width - 6) for n in numbers]
        return pa.record_batch([pa.array(numbers), pa.array(values)], schema=schema)

    batches = map(texts, range(0, rows, 250))
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    ds = pennon.write_dataset(reader, tmp_path, data_storage_version=version)
    ds.delete("id = 5")
    assert ds.count_rows("t LIKE '000005x%' OR t LIKE '000006x%'") == 2
    by_text = ds.to_table(columns=["_rowid", "id"], order_by=["t"], limit=3)["id"].to_pylist()
    assert by_text == sorted((n for n in range(rows) if n != 5), key=lambda n: n * 7919 % rows)[:3]
    data = texts(0).slice(3, 3)
    merge = ds.merge_insert("t").when_matched_update_all().when_not_matched_insert_all()
    stats = merge.execute(pa.Table.from_batches([data]))
    assert (stats["num_updated_rows"], stats["num_inserted_rows"]) == (2, 1)
