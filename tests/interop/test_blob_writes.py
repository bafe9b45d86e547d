"""Blob columns of version 2, written: the same descriptions and files of blobs as pylance makes.

Every operation of Pennon on such a table leaves all blobs as they were, and pylance reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import LanceError, UntrustedPathError
from tests.interop.blob_tables import (
    MIXED,
    SMALL,
    blobs,
    files_of_blobs,
    make_outside,
    named,
    read_all,
    version_1,
    written,
)

KIB = 1024


def _two_columns() -> pa.Table:
    fields = [lance.blob_field("a", **SMALL), lance.blob_field("b", inline_size_threshold=1)]
    columns = [lance.blob_array([b"packed", b"y" * 50]), lance.blob_array([b"z", b"pack"])]
    return pa.table(columns, schema=pa.schema(fields))


def _in_structs() -> pa.Table:
    blobs = lance.blob_array([b"a", None, b"c" * 70_000, b"hidden" * 20_000])
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3, 4]), blobs],
        fields=[pa.field("n", pa.int64()), lance.blob_field("b")],
        mask=pa.array([False, False, False, True]),
    )
    return named("s", rows)


def _two_parts() -> pa.Table:
    parts = [pa.array([b"two", None, b"parts"], pa.large_binary()), pa.nulls(3, pa.string())]
    rows = pa.StructArray.from_arrays(
        parts, names=["data", "uri"], mask=pa.array([False, True, False])
    )
    metadata = {"ARROW:extension:name": "lance.blob.v2"}
    return named("b", rows, pa.field("b", rows.type, metadata=metadata))


AROUND = [size + more for size in (64 * KIB, 4 * KIB * KIB) for more in (-1, 0, 1)]
TABLES: dict[str, Callable[[], pa.Table]] = {
    "around the thresholds": lambda: blobs([b"b" * size for size in AROUND]),
    "small thresholds": lambda: blobs(MIXED, **SMALL),
    "short packs": lambda: blobs([*MIXED, *MIXED], **SMALL, pack_file_size_threshold=30),
    "all inline": lambda: blobs([b"", b"x", None, b"yy"]),
    "nothing inline": lambda: blobs([b"", b"x", None, b"yy"], inline_size_threshold=0),
    "dedicated first": lambda: blobs(
        [b"1234567"], inline_size_threshold=10, dedicated_size_threshold=5
    ),
    "all NULL": lambda: blobs([None, None]),
    "no rows": lambda: blobs([b"x"]).slice(1),
    "sliced": lambda: blobs([*MIXED, *MIXED], **SMALL).slice(3, 11),
    "chunks": lambda: pa.concat_tables([blobs(MIXED, **SMALL), blobs(MIXED, **SMALL)]),
    "two columns": _two_columns,
    "in structs": _in_structs,
    "two parts": _two_parts,
    "version 1": version_1,
}


@pytest.mark.parametrize("rows_per_file", [1 << 20, 4])
@pytest.mark.parametrize("name", TABLES)
def test_written_blob_columns_equal_those_of_pylance(
    name: str, rows_per_file: int, tmp_path: Path
) -> None:
    table = TABLES[name]()
    options = {"max_rows_per_file": rows_per_file}
    theirs = written(lance, table, tmp_path / "theirs", **options)
    ours = written(pennon, table, tmp_path / "ours", **options)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table() == theirs.to_table()
    assert ours.to_table(blob_handling="all_binary") == theirs.to_table(blob_handling="all_binary")
    assert pennon.dataset(tmp_path / "ours").to_table() == theirs.to_table()
    assert files_of_blobs(tmp_path / "ours") == files_of_blobs(tmp_path / "theirs")
    assert [f.data_files()[0].fields for f in ours.get_fragments()] == [
        f.data_files()[0].fields for f in theirs.get_fragments()
    ]
    pennon.dataset(tmp_path / "ours").validate()
    ours.validate()


def test_blob_field_and_array_have_the_types_of_pylance(tmp_path: Path) -> None:
    values = [b"ab", None, pennon.Blob.empty(), pennon.Blob.from_bytes(bytearray(b"packed"))]
    field = pennon.blob_field("b", **SMALL)
    # Which library was imported first decides whose class the Arrow type has, so storage is compared.
    theirs, few = lance.blob_field("b", **SMALL), lance.blob_array([b"ab", None, b""])
    assert (field.name, field.nullable) == (theirs.name, theirs.nullable)
    assert field.metadata == theirs.metadata
    assert str(field.type) == str(theirs.type)
    assert field.type.storage_type == theirs.type.storage_type
    assert pennon.blob_array(values[:3]).storage.equals(few.storage)
    table = pa.table([pennon.blob_array(values)], schema=pa.schema([field]))
    assert pennon.write_dataset(table, tmp_path / "t").data_storage_version == "2.2"
    assert read_all(lance.dataset(str(tmp_path / "t"))) == [b"ab", None, b"", b"packed"]


WRONG_BLOBS: dict[str, Callable[[Any], Any]] = {
    "both": lambda m: m.Blob(data=b"a", uri="file:///a"),
    "neither": lambda m: m.Blob(),
    "empty uri": lambda m: m.Blob(uri=""),
    "range of bytes": lambda m: m.Blob(data=b"a", position=0, size=1),
    "half a range": lambda m: m.Blob(uri="file:///a", position=0),
    "no bytes": lambda m: m.Blob(uri="file:///a", position=0, size=0),
    "negative": lambda m: m.Blob.from_uri("file:///a", -1, 4),
    "empty text": lambda m: m.blob_array([""]),
    "number": lambda m: m.blob_array([7]),
    "threshold of a bool": lambda m: m.blob_field("b", inline_size_threshold=True),
    "threshold below 0": lambda m: m.blob_field("b", inline_size_threshold=-1),
    "pack of nothing": lambda m: m.blob_field("b", pack_file_size_threshold=0),
    "threshold too large": lambda m: m.blob_field("b", dedicated_size_threshold=1 << 64),
}


@pytest.mark.parametrize("name", WRONG_BLOBS)
def test_invalid_blobs_are_refused_as_in_pylance(name: str) -> None:
    with pytest.raises(Exception) as theirs:
        WRONG_BLOBS[name](lance)
    with pytest.raises(type(theirs.value)):
        WRONG_BLOBS[name](pennon)


# --- outside of the table -------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return make_outside(tmp_path)


def _places(outside: Path) -> list[Any]:
    uri = (outside / "sub" / "a.bin").as_uri()
    blank = f"file://{outside}/sub/b c.bin"
    return [lance.Blob.from_uri(uri, 2, 5), b"own", uri, None, blank]


WAYS: dict[str, Callable[[Any, Path], dict[str, Any]]] = {
    "anywhere": lambda _, __: {"allow_external_blob_outside_bases": True},
    "in a base": lambda m, folder: {"initial_bases": [m.DatasetBasePath(str(folder), "x")]},
    "copied": lambda _, __: {"external_blob_mode": "ingest"},
}


@pytest.mark.parametrize("way", WAYS)
def test_external_blobs_are_written_as_in_pylance(way: str, outside: Path, tmp_path: Path) -> None:
    table = blobs(_places(outside), **SMALL)
    options = [WAYS[way](module, outside) for module in (lance, pennon)]
    theirs = written(lance, table, tmp_path / "theirs", **options[0])
    ours = written(pennon, table, tmp_path / "ours", **options[1])
    assert ours.to_table() == theirs.to_table()
    assert files_of_blobs(tmp_path / "ours") == files_of_blobs(tmp_path / "theirs")
    wanted = [b"23456", b"own", b"0123456789" * 3, None, b"blank"]
    assert read_all(ours) == wanted
    mine = pennon.dataset(tmp_path / "ours")
    assert read_all(mine) == read_all(pennon.dataset(tmp_path / "theirs")) == wanted
    mine.delete("b is null")
    mine.optimize.compact_files()
    left = [value for value in wanted if value is not None]
    assert read_all(pennon.dataset(tmp_path / "ours")) == left
    assert read_all(lance.dataset(str(tmp_path / "ours"))) == left


def test_external_blobs_outside_trusted_bases_are_refused(outside: Path, tmp_path: Path) -> None:
    options = {"allow_external_blob_outside_bases": True}
    written(lance, blobs(_places(outside)), tmp_path / "t", **options)
    strict = pennon.dataset(tmp_path / "t", trusted_bases=[])
    assert strict.to_table().num_rows == 5
    assert strict.read_blobs("b", indices=[1]) == [(1, b"own")]
    with pytest.raises(UntrustedPathError, match="outside of its own root"):
        strict.take_blobs("b", indices=[0])
    with pytest.raises(UntrustedPathError):
        strict.to_table(blob_handling="all_binary")
    other = pennon.dataset(tmp_path / "t", trusted_bases=[tmp_path / "elsewhere"])
    with pytest.raises(UntrustedPathError):
        other.read_blobs("b", indices=[2])
    listed = pennon.dataset(tmp_path / "t", trusted_bases=[outside])
    assert listed.read_blobs("b", indices=[0]) == [(0, b"23456")]


def test_symbolic_link_out_of_a_trusted_base_is_refused(outside: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"secret")
    (outside / "link").symlink_to(secret)
    options = {"allow_external_blob_outside_bases": True}
    written(lance, blobs([(outside / "link").as_uri()]), tmp_path / "t", **options)
    listed = pennon.dataset(tmp_path / "t", trusted_bases=[outside])
    with pytest.raises(LanceError):
        listed.read_blobs("b", indices=[0])


REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "outside": ("file:///tmp/x", {}),
    "relative": ("rel/x", {"allow_external_blob_outside_bases": True}),
    "path": ("/tmp/x", {"allow_external_blob_outside_bases": True}),
    "both options": (
        b"x",
        {"allow_external_blob_outside_bases": True, "external_blob_mode": "ingest"},
    ),
    "mode": (b"x", {"external_blob_mode": "copy"}),
    "not there": ("file:///nonexistent/x", {"external_blob_mode": "ingest"}),
    "beyond": (
        lance.Blob.from_uri(Path(__file__).as_uri(), 1 << 40, 1),
        {"external_blob_mode": "ingest"},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_blob_writes_refused_by_pylance_are_refused(name: str, tmp_path: Path) -> None:
    value, options = REFUSED[name]
    for module, kind in ((lance, Exception), (pennon, LanceError)):
        with pytest.raises(kind):
            written(module, blobs([b"a", value]), tmp_path / module.__name__, **options)
    assert not list(tmp_path.glob("pennon/data/*.lance"))


def _parts(**parts: Any) -> pa.Table:
    storage = pa.array([parts], lance.blob.BlobType().storage_type)
    array = pa.ExtensionArray.from_storage(lance.blob.BlobType(), storage)
    return named("b", array, lance.blob_field("b"))


WRONG_TABLES: dict[str, Callable[[], pa.Table]] = {
    "both": lambda: _parts(data=b"x", uri="file:///x"),
    "neither": _parts,
    "half a range": lambda: _parts(uri="file:///x", position=1),
    "range of bytes": lambda: _parts(data=b"x", position=0, size=1),
    "range of nothing": lambda: _parts(uri="file:///x", position=1, size=0),
    "never NULL": lambda: named(
        "b", lance.blob_array([None]), lance.blob_field("b", nullable=False)
    ),
    "threshold": lambda: named(
        "b",
        lance.blob_array([b"x"]),
        lance.blob_field("b").with_metadata({"lance-encoding:blob-inline-size-threshold": "x"}),
    ),
    "threshold of 0": lambda: named(
        "b",
        lance.blob_array([b"x"]),
        lance.blob_field("b").with_metadata({"lance-encoding:blob-dedicated-size-threshold": "0"}),
    ),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_invalid_blob_tables_are_refused_as_in_pylance(name: str, tmp_path: Path) -> None:
    options = {"allow_external_blob_outside_bases": True}
    for module, kind in ((lance, Exception), (pennon, LanceError)):
        with pytest.raises(kind):
            written(module, WRONG_TABLES[name](), tmp_path / module.__name__, **options)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1"])
def test_older_files_hold_no_blobs_of_version_2(version: str, tmp_path: Path) -> None:
    for module in (lance, pennon):
        with pytest.raises(Exception, match=r"2\.2"):
            module.write_dataset(blobs([b"x"]), str(tmp_path), data_storage_version=version)
