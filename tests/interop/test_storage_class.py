"""Columns of storage class blob: tables that pylance 0.19.2 writes, changes and reads, and pylance 14 spoils."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, UnsupportedError
from pennon.io import open_store
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import V2_0
from tests.interop.oracle import OLDEST, Oracle, interpreter

BLOBS = {1: b"one", 2: None, 3: b"", 4: b"four" * 100, 5: b"five", 6: b"six", 7: None}


def written(tmp_path: Path, *steps: str) -> str:
    """Return the URI of a table that pylance 0.19.2 wrote and changed."""
    uri = str(tmp_path / "t")
    program = str(Path(__file__).with_name("storage_class_tables.py"))
    subprocess.run([interpreter(OLDEST), program, uri, *steps], check=True, capture_output=True)
    return uri


@pytest.mark.parametrize("steps", ["", "add delete index", "compact add index"])
def test_tables_with_a_nested_table_are_read(tmp_path: Path, steps: str) -> None:
    """By scan, take, filter and index, whatever the release did to the table."""
    table = pennon.dataset(written(tmp_path, *steps.split()))
    ids = [n for n in BLOBS if "delete" not in steps or n not in {1, 6}]
    assert table.to_table(columns=["id", "b"]).to_pydict() == {
        "id": ids,
        "b": [BLOBS[n] for n in ids],
    }
    assert table.take([3, 0])["b"].to_pylist() == [BLOBS[ids[3]], BLOBS[ids[0]]]
    assert table.to_table(filter="id >= 4", columns=["b"])["b"].to_pylist() == [
        BLOBS[n] for n in ids if n >= 4
    ]
    assert table.count_rows(filter="b IS NULL") == 2


def test_row_id_sequence_too_short_after_old_compaction_is_an_error(tmp_path: Path) -> None:
    """Its compaction of deleted rows leaves fewer row ids than rows; other columns can be read."""
    table = pennon.dataset(written(tmp_path, "delete", "compact"))
    assert table.to_table(columns=["id"])["id"].to_pylist() == [2, 3, 4, 5, 7]
    with pytest.raises(FormatError, match="4 values stands for 5 rows"):
        table.to_table(columns=["b"])
    with pytest.raises(pa.ArrowInvalid, match="4 rows, but the selection requires 5"):
        lance.dataset(table.uri).to_table(with_row_id=True)


def test_converted_table_is_read_by_both_releases(tmp_path: Path) -> None:
    """The column is one of bytes then, in data files that all releases read."""
    uri = written(tmp_path, "add", "delete")
    before = pennon.dataset(uri).to_table()
    convert(plan_convert(open_store(uri), V2_0))
    assert lance.dataset(uri).to_table() == pennon.dataset(uri).to_table()
    assert lance.dataset(uri).to_table().cast(before.schema) == before
    (tmp_path / "oracle").mkdir()
    with Oracle.start(OLDEST, tmp_path / "oracle") as oracle:
        assert oracle.scan(uri).cast(before.schema) == before
    lance.write_dataset(lance.dataset(uri).to_table(), uri, mode="append")
    assert pennon.dataset(uri).to_table()["b"].to_pylist() == before["b"].to_pylist() * 2


def test_version_by_a_release_without_nested_tables_is_an_error(tmp_path: Path) -> None:
    """An append by pylance 14 loses which version of the nested table it was; it reads NULLs then."""
    uri = written(tmp_path)
    rows = pa.table({"id": [8], "b": pa.array([b"new"], pa.large_binary()), "t": ["t8"]})
    lance.write_dataset(rows, uri, mode="append")
    assert lance.dataset(uri).to_table()["b"].to_pylist() == [None] * 7 + [b"new"]
    table = pennon.dataset(uri)
    with pytest.raises(UnsupportedError, match="does not know the nested table"):
        table.to_table()
    assert table.to_table(columns=["id"])["id"].to_pylist() == list(range(1, 9))
    assert table.get_fragments()[-1].to_table(columns=["b"])["b"].to_pylist() == [b"new"]
    old = pennon.dataset(uri, version=table.version - 1)
    assert old.to_table()["b"].to_pylist() == list(BLOBS.values())
