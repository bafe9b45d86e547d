"""``pennon ingest`` of local files by pyarrow; Spark's are in tests/spark."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pennon
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    SchemaMismatchError,
)
from tests.unit.cli.commands import done, from_json, run


def ingested(source: Path | str, *words: str, uri: Path) -> pa.Table:
    done("ingest", str(source), str(uri), *words)
    return pennon.dataset(uri).to_table()


def test_ingest_of_csv_finds_one_type_for_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"x,y"\n2,\n')
    (tmp_path / "b.csv").write_text('id,name\n2.5,""\n')
    found = ingested(tmp_path / "*.csv", uri=tmp_path / "t.lance")
    assert found.to_pydict() == {"id": [1.0, 2.0, 2.5], "name": ["x,y", None, ""]}


@pytest.mark.parametrize("name", ["a.tsv", "A.TSV", "a.tsv.gz"])
def test_ingest_of_values_between_tabs(tmp_path: Path, name: str) -> None:
    data = b"id\tname\n1\ta,b\n"
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    found = ingested(tmp_path / name, uri=tmp_path / "t.lance")
    assert found.to_pydict() == {"id": [1], "name": ["a,b"]}


@pytest.mark.parametrize(
    "text", ['[{"a": 1, "v": [1.5, 2]}, {"v": null}]', '{"a": 1, "v": [1.5, 2]}\n{"v": null}\n']
)
def test_ingest_of_json_arrays_and_json_lines(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    found = ingested(tmp_path / "a.json", "--fixed-size-list", "v:2", uri=tmp_path / "t.lance")
    assert found.to_pydict() == {"a": [1, None], "v": [[1.5, 2.0], None]}
    assert found.schema.field("v").type.list_size == 2


def test_ingest_of_parquet_arrow_files_and_streams(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "list": [[1], None]})
    pq.write_table(rows, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "b.arrow", rows.schema) as writer:
        writer.write_table(rows)
    with pa.ipc.new_stream(tmp_path / "c.arrows", rows.schema) as writer:
        writer.write_table(rows)
    for name in ("a.parquet", "b.arrow", "c.arrows"):
        assert ingested(tmp_path / name, uri=tmp_path / f"{name}.lance").equals(rows)


def test_ingest_of_a_folder_of_images_keeps_paths_labels_and_bytes(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (folder / "cats").mkdir(parents=True)
    (folder / "cats" / "1.png").write_bytes(b"\x89PNG")
    (folder / "2.JPG").write_bytes(b"jpg")
    (folder / ".hidden.png").write_bytes(b"no")
    found = ingested(folder, uri=tmp_path / "t.lance")
    assert found.to_pydict() == {
        "path": ["2.JPG", "cats/1.png"],
        "label": [None, "cats"],
        "image": [b"jpg", b"\x89PNG"],
    }


def test_append_casts_to_the_columns_of_the_table(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    vector = pa.list_(pa.float32(), 2)
    rows = pa.table({"v": pa.array([[0, 1]], vector), "id": pa.array([1], pa.int32())})
    pennon.write_dataset(rows, uri)
    (tmp_path / "a.json").write_text('{"id": 2, "v": [0.5, 1]}')
    found = ingested(tmp_path / "a.json", "--mode", "append", uri=uri)
    assert found.to_pydict() == {"v": [[0.0, 1.0], [0.5, 1.0]], "id": [1, 2]}
    assert found.schema == rows.schema
    for text, said in (
        ('{"id": 3}', "'v' is not in the files"),
        ('{"id": 1.5, "v": [1, 1]}', "'id' does not fit"),
    ):
        (tmp_path / "b.json").write_text(text)
        error = run("ingest", str(tmp_path / "b.json"), str(uri), "--mode", "append").exception
        assert isinstance(error, SchemaMismatchError)
        assert said in str(error)
    assert pennon.dataset(uri).version == 2


def test_ingest_modes(tmp_path: Path) -> None:
    uri, file = tmp_path / "t.lance", tmp_path / "a.csv"
    file.write_text("id\n1\n")
    ingested(file, "--mode", "append", uri=uri)
    assert isinstance(run("ingest", str(file), str(uri)).exception, AlreadyExistsError)
    assert ingested(file, "--mode", "overwrite", uri=uri).num_rows == 1
    file.write_text("id\n1\n2\n3\n")
    found = from_json(
        "ingest", str(file), str(uri), "--mode", "overwrite", "--max-rows-per-file", "2"
    )
    assert (found["version"], found["rows"]) == (3, 3)
    assert len(pennon.dataset(uri).get_fragments()) == 2


def test_ingest_of_odd_names_keeps_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('"a,b","c\x1b[2J","d\ne"\n1,2,3\n')
    found = ingested(tmp_path / "a.csv", uri=tmp_path / "t.lance")
    assert found.column_names == ["a,b", "c\x1b[2J", "d\ne"]
    assert "\x1b" not in done("head", str(tmp_path / "t.lance"))


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.csv", b"", Exception),
        ("a.csv", b"a,b\n1\n", Exception),
        ("a.json", b"[1, 2]", ArgumentError),
        ("a.json", b"[" * 100_000, LanceError),
        ("a.json", b"{", Exception),
        ("a.parquet", b"PAR1", Exception),
        ("a.arrow", b"ARROW1\0\0", Exception),
    ],
)
def test_damaged_files_make_no_table(
    tmp_path: Path, name: str, data: bytes, kind: type[Exception]
) -> None:
    (tmp_path / name).write_bytes(data)
    error = run("ingest", str(tmp_path / name), str(tmp_path / "t.lance")).exception
    assert isinstance(error, kind)
    assert isinstance(error, (LanceError, OSError, ValueError, pa.ArrowException)), repr(error)
    assert not (tmp_path / "t.lance").exists() or not list(
        (tmp_path / "t.lance").rglob("*.manifest")
    )


def test_ingest_of_an_absent_local_source_does_not_start_spark(tmp_path: Path) -> None:
    error = run("ingest", str(tmp_path / "nix.csv"), str(tmp_path / "t.lance")).exception
    assert isinstance(error, NotFoundError)
    (tmp_path / "a.csv").write_text("id\n1\n")
    wrong = ("--fixed-size-list", "id:2")
    error = run("ingest", str(tmp_path / "a.csv"), str(tmp_path / "t.lance"), *wrong).exception
    assert isinstance(error, ArgumentError)
