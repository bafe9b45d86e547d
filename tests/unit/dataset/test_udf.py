"""Columns that functions compute, and checkpoints of them."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.udf import BatchUDF
from tests.unit.columns import TABLE, bytes_of, made


def test_batch_udf_adds_columns_with_batch_size(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    seen: list[tuple[int, list[str]]] = []

    @pennon.batch_udf(output_schema=pa.schema([("c", pa.int64())]))
    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append((batch.num_rows, batch.schema.names))
        return pa.record_batch([pc.multiply(batch["a"], 2)], ["c"])

    dataset.add_columns(double, read_columns=["a", "_rowid"], batch_size=5)
    assert seen == [(n, ["a", "_rowid"]) for n in (5, 3, 5, 2, 4)]
    assert dataset.to_table()["c"].to_pylist() == [2 * n for n in range(20) if n != 9]


def test_frames_of_pandas(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    dataset.add_columns(lambda batch: batch.to_pandas()[["a"]].rename(columns={"a": "c"}))
    assert dataset.to_table()["c"] == dataset.to_table()["a"]


def test_udf_with_wrong_results_is_refused(tmp_path: Path) -> None:
    dataset = made(tmp_path)
    schema = pa.schema([("c", pa.int64())])

    def wrong(func: Any) -> BatchUDF:
        return BatchUDF(func, schema)

    with pytest.raises(SchemaMismatchError, match="does not match the expected schema"):
        dataset.add_columns(wrong(lambda batch: batch))
    with pytest.raises(SchemaMismatchError, match="8 rows, but they have 7"):
        dataset.add_columns(wrong(lambda batch: pa.record_batch([batch["a"][1:]], schema=schema)))
    with pytest.raises(SchemaMismatchError, match="returned int"):
        dataset.add_columns(wrong(lambda _: 3))
    with pytest.raises(ZeroDivisionError):
        dataset.add_columns(wrong(lambda _: 1 / 0))
    with pytest.raises(TypeError, match="division by zero"):
        dataset.add_columns(lambda _: 1 / 0)
    with pytest.raises(ArgumentError, match="at least 1"):
        dataset.add_columns(lambda batch: batch, batch_size=0)
    assert dataset.latest_version == 2
    empty = pennon.write_dataset(TABLE.slice(0, 0), tmp_path / "empty")
    with pytest.raises(ArgumentError, match="no row"):
        empty.add_columns(lambda batch: batch)


def test_udf_checkpoint_resumes_after_a_failure(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t")
    kept = tmp_path / "kept.sqlite"
    calls: list[int] = []

    def udf(fails_at: int) -> BatchUDF:
        def run(batch: pa.RecordBatch) -> pa.RecordBatch:
            first = batch["a"][0].as_py()
            if first >= fails_at:
                message = "crash"
                raise RuntimeError(message)
            calls.append(first)
            return pa.record_batch([pc.multiply(batch["a"], 2)], ["c"])

        return BatchUDF(run, pa.schema([("c", pa.int64())]), kept)

    with pytest.raises(RuntimeError):
        dataset.add_columns(udf(13), batch_size=4)
    assert calls == [0, 4, 8]
    files = bytes_of(tmp_path / "t")
    dataset.add_columns(udf(99), batch_size=4)
    assert calls == [0, 4, 8, 13, 16]
    assert not kept.exists()
    assert files.keys() < bytes_of(tmp_path / "t").keys()
    assert dataset.to_table()["c"].to_pylist() == [2 * n for n in range(20) if n != 9]


def test_udf_checkpoint_of_another_table_or_plan_is_ignored(tmp_path: Path) -> None:
    kept = tmp_path / "kept.sqlite"
    schema = pa.schema([("c", pa.int64())])
    dataset = made(tmp_path / "t")

    def stopped(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch["a"][0].as_py() >= 16:
            message = "crash"
            raise RuntimeError(message)
        return pa.record_batch([pc.multiply(batch["a"], 1000)], ["c"])

    with pytest.raises(RuntimeError):
        dataset.add_columns(BatchUDF(stopped, schema, kept))
    dataset.delete("a in (0, 1)")  # fragment 0 is another one now; the others are as they were
    udf = BatchUDF(lambda batch: pa.record_batch([batch["a"]], ["c"]), schema, kept)
    dataset.add_columns(udf)
    found = dataset.to_table(columns=["a", "c"]).to_pylist()
    assert all(row["c"] in (row["a"], 1000 * row["a"]) for row in found)
    assert [row["c"] for row in found[:6]] == [2, 3, 4, 5, 6, 7]
    assert [row["c"] for row in found[6:8]] == [8000, 10000]


def test_udf_checkpoint_with_foreign_pickles_is_not_loaded(tmp_path: Path) -> None:
    dataset = made(tmp_path / "t")
    kept = tmp_path / "kept.sqlite"
    udf = BatchUDF(
        lambda batch: pa.record_batch([batch["a"]], ["c"]), pa.schema([("c", pa.int64())]), kept
    )
    with sqlite3.connect(kept) as connection:
        for number in range(3):
            row = (number, 0, pickle.dumps(_Bomb()))
            connection.execute("INSERT INTO batches VALUES (?, ?, ?)", row)
            connection.execute("INSERT INTO fragments VALUES (?, ?)", (number, b"\x80garbage"))
    connection.close()
    dataset.add_columns(udf)
    assert dataset.to_table()["c"] == dataset.to_table()["a"]
    (tmp_path / "text.sqlite").write_text("this is no database " * 100)
    with pytest.raises(ArgumentError, match=r"text\.sqlite"):
        BatchUDF(lambda batch: batch, None, tmp_path / "text.sqlite")


class _Bomb:
    def __reduce__(self) -> Any:
        return pytest.fail, ("a pickle was loaded",)
