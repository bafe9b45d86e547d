"""Blob columns of every version: pylance and Pennon show, take and refuse the same."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
import pennon.blob
from pennon.errors import UntrustedPathError

BLOB = {"lance-encoding:blob": "true"}
BLOBS = pa.field("b", pa.large_binary(), metadata=BLOB)
LARGE = bytes(range(256)) * 4000
VALUES = [b"hello", None, b"", LARGE, b"yy", b"0123456789", None]
SCHEMA = pa.schema([pa.field("i", pa.int64()), BLOBS])
TABLE = pa.table([range(7), pa.array(VALUES, pa.large_binary())], schema=SCHEMA)
CASES = [(version, writer) for version in ("2.0", "2.1") for writer in (lance, pennon)]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}, {case[1].__name__}")
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table in three files, written by either; of row 4 only the number is left."""
    version, writer = request.param
    uri = str(tmp_path / "t.lance")
    options = {"data_storage_version": version, "max_rows_per_file": 3}
    writer.write_dataset(TABLE, uri, **options)
    return uri


def _read(files: list[Any]) -> list[bytes | None]:
    return [None if file is None else file.read() for file in files]


ADDRESS = 1 << 32
TAKES: dict[str, Callable[[Any], Any]] = {
    "all": lambda t: _read(t.take_blobs("b", indices=range(7))),
    "order": lambda t: _read(t.take_blobs("b", indices=[4, 0, 4, 1, 0])),
    "none": lambda t: t.take_blobs("b", indices=[]),
    "array": lambda t: _read(t.take_blobs("b", indices=pa.array([3, 2]))),
    "positional": lambda t: _read(t.take_blobs("b", [0])),
    "addresses": lambda t: _read(t.take_blobs("b", addresses=[ADDRESS, 1, 0, 2 * ADDRESS])),
    "ids": lambda t: _read(t.take_blobs("b", ids=[ADDRESS + 1, 1, 0])),
    "sizes": lambda t: [f and f.size() for f in t.take_blobs("b", indices=range(7))],
    "shown": lambda t: repr(t.take_blobs("b", indices=[0])),
    "bytes": lambda t: t.read_blobs("b", indices=[6, 0, 6, 3, 2], preserve_order=True),
    "bytes by address": lambda t: t.read_blobs("b", addresses=[ADDRESS, 0]),
    "ranges": lambda t: t.read_blob_ranges(
        "b",
        [(5, 2, 3), (0, 0, 5), (1, 7, 9), (2, 0, 0), (5, 9, 1), (3, 500, 20)],
        selector="indices",
    ),
    "ranges by id": lambda t: t.read_blob_ranges("b", [(ADDRESS, 1, 1)], selector="ids"),
    "descriptions": lambda t: t.to_table(),
    "renamed": lambda t: t.to_table(columns={"q": "b"}),
    "described": lambda t: t.to_table(blob_handling="all_descriptions"),
    "as bytes": lambda t: t.to_table(blob_handling="all_binary"),
    "one column": lambda t: t.to_table(columns=["b"], limit=3, offset=2),
    "row": lambda t: t.take([1, 2], columns=["b"]),
    "part": lambda t: t.take([1, 2], columns=["b.size"]),
    "fragment": lambda t: t.get_fragments()[1].to_table(),
    "row of a fragment": lambda t: t.get_fragments()[0].take([1, 2]),
    "schema": lambda t: t.schema,
    "shown schema": lambda t: t.scanner().projected_schema,
    "frame": lambda t: t.to_pandas()["b"].map(lambda f: f and f.read()).tolist(),
    "frame, renamed": lambda t: repr(t.to_pandas(columns={"q": "b", "i": "i"})),
    "frame of bytes": lambda t: t.to_pandas(blob_mode="bytes").to_dict(),
    "frame of descriptions": lambda t: t.to_pandas(blob_mode="descriptions").to_dict(),
}


@pytest.mark.parametrize("name", TAKES)
def test_take_blobs_equals_pylance(name: str, uri: str) -> None:
    theirs, ours = TAKES[name](lance.dataset(uri)), TAKES[name](pennon.dataset(uri))
    assert ours == theirs
    if isinstance(ours, pa.Table):
        assert ours.schema.equals(theirs.schema, check_metadata=True)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "beyond": lambda t: t.take_blobs("b", indices=[7]),
    "negative": lambda t: t.take_blobs("b", indices=[-1]),
    "no such row": lambda t: t.take_blobs("b", addresses=[7]),
    "no such fragment": lambda t: t.take_blobs("b", ids=[9 * ADDRESS]),
    "no rows": lambda t: t.take_blobs("b"),
    "two kinds of rows": lambda t: t.take_blobs("b", ids=[1], indices=[2]),
    "floats": lambda t: t.take_blobs("b", indices=[0.5]),
    "no blobs": lambda t: t.take_blobs("i", indices=[0]),
    "buffer size": lambda t: t.take_blobs("b", indices=[0], buffer_size=-1),
    "buffer size of a bool": lambda t: t.take_blobs("b", indices=[0], buffer_size=True),
    "range": lambda t: t.read_blob_ranges("b", [(0, 3, 3)], selector="indices"),
    "selector": lambda t: t.read_blob_ranges("b", [(0, 3, 1)], selector="rows"),
    "handling": lambda t: t.to_table(blob_handling="bytes"),
    "mode": lambda t: t.to_pandas(blob_mode="files"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_blob_takes_are_refused_as_in_pylance(name: str, uri: str) -> None:
    with pytest.raises(Exception) as theirs:
        REFUSED[name](lance.dataset(uri))
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[name](pennon.dataset(uri))
    assert str(ours.value)


def _seek(file: Any) -> Any:
    places = [file.seek(1), file.read(1), file.seek(-2, io.SEEK_END), file.read(), file.seek(99)]
    return [
        *places,
        file.read(),
        file.tell(),
        file.seek(4),
        file.seek(-2, io.SEEK_CUR),
        file.read(1),
    ]


def _into(file: Any) -> Any:
    buffer, numbers = bytearray(3), np.zeros(2, np.uint16)
    filled = [(file.readinto(buffer), bytes(buffer)) for _ in range(5)]
    file.seek(1)
    return filled, file.readinto(numbers), numbers.tolist(), file.tell()


def _closed(file: Any) -> Any:
    with file as same:
        assert same is file
    file.close()
    return file.closed, file.size(), repr(file)


FILES: dict[str, Callable[[Any], Any]] = {
    "reads": lambda f: (f.read(2), f.tell(), f.read(), f.read(), f.read(5), f.tell()),
    "read nothing": lambda f: (f.read(0), f.tell(), f.read(None)),
    "seeks": _seek,
    "fills": _into,
    "reads once": lambda f: (f.read1(2), f.read1(), f.read1(0), f.readall()),
    "lines": lambda f: (f.readline(), list(f)),
    "range": lambda f: (f.read_range(1, 3), f.read_range(10, 0), f.tell()),
    "ranges": lambda f: f.read_ranges([(7, 3), (0, 0), (1, 2), (0, 10)]),
    "what it is": lambda f: (f.readable(), f.seekable(), f.writable(), f.closed, f.isatty()),
    "closes": _closed,
    "range beyond": lambda f: f.read_range(3, 9),
    "ranges beyond": lambda f: f.read_ranges([(0, 1), (11, 0)]),
    "range before": lambda f: f.read_range(-1, 2),
    "before the start": lambda f: f.seek(-1),
    "from where": lambda f: f.seek(0, 7),
    "fills bytes": lambda f: f.readinto(b"abc"),
    "writes": lambda f: f.write(b"a"),
    "number": lambda f: f.fileno(),
    "cut": lambda f: f.truncate(),
    "detach": lambda f: f.detach(),
    "read closed": lambda f: (f.close(), f.read()),
    "tell closed": lambda f: (f.close(), f.tell()),
    "seek closed": lambda f: (f.close(), f.seek(0)),
    "fill closed": lambda f: (f.close(), f.readinto(bytearray(2))),
    "range closed": lambda f: (f.close(), f.read_range(0, 1)),
}


@pytest.mark.parametrize("buffer_size", [0, 4, 1 << 19])
@pytest.mark.parametrize("name", FILES)
def test_blob_file_methods_equal_pylance(name: str, buffer_size: int, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(TABLE, uri, data_storage_version="2.1")
    options: dict[str, Any] = {"indices": [5], "buffer_size": buffer_size}
    (theirs,) = lance.dataset(uri).take_blobs("b", **options)
    (ours,) = pennon.dataset(uri).take_blobs("b", **options)
    try:
        wanted = FILES[name](theirs)
    except Exception as error:  # noqa: BLE001 - whatever it is, ours is the same
        with pytest.raises(type(error)):
            FILES[name](ours)
    else:
        assert FILES[name](ours) == wanted
    assert isinstance(ours, io.BufferedIOBase)


def test_take_blobs_of_deleted_rows_equals_pylance(uri: str) -> None:
    lance.dataset(uri).delete("i = 1 or i = 3")
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    indices = range(5)
    assert _read(ours.take_blobs("b", indices=indices)) == _read(
        theirs.take_blobs("b", indices=indices)
    )
    deleted: list[dict[str, Any]] = [{"addresses": [0, 1, 2]}, {"ids": [1]}]
    for rows in deleted:
        for table in (theirs, ours):
            with pytest.raises(NotImplementedError):
                table.take_blobs("b", **rows)
    assert _read(ours.to_pandas()["b"]) == [b"hello", b"", b"yy", b"0123456789", None]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_by_stable_row_ids_equal_pylance(version: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"data_storage_version": version, "enable_stable_row_ids": True}
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(TABLE, uri, max_rows_per_file=3, **options)
    lance.dataset(uri).delete("i = 1")
    lance.dataset(uri).update({"i": "9"}, where="i = 0")
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    for ids in ([0, 4, 0], [6, 3]):
        assert ours.read_blobs("b", ids=ids) == theirs.read_blobs("b", ids=ids)
    for table in (theirs, ours):
        with pytest.raises(ValueError, match="row"):
            table.take_blobs("b", ids=[4, 1])


@pytest.mark.parametrize("writer", [lance, pennon])
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_blobs_in_structs(version: str, writer: Any, tmp_path: Path) -> None:
    rows: list[Any] = [{"n": 1, "b": b"aa"}, {"n": 2, "b": None}, {"n": 3, "b": b""}]
    rows += [None] if version == "2.1" else []
    struct = pa.struct([("n", pa.int32()), BLOBS])
    table = pa.table([pa.array(rows, struct)], schema=pa.schema([("s", struct)]))
    writer.write_dataset(table, str(tmp_path / "t"), data_storage_version=version)
    theirs, ours = (module.dataset(str(tmp_path / "t")) for module in (lance, pennon))
    everything = {"indices": range(len(rows))}
    assert ours.read_blobs("s.b", **everything) == theirs.read_blobs("s.b", **everything)
    for options in ({}, {"columns": ["s.b"]}, {"blob_handling": "all_binary"}):
        assert ours.to_table(**options) == theirs.to_table(**options)
    assert repr(ours.to_pandas()) == repr(theirs.to_pandas())
    assert ours.to_pandas()["s"][0]["b"].read() == b"aa"
    sizes = ours.to_table(columns=["s.b.size"])["s.b.size"].to_pylist()
    assert sizes[0] == 2


def test_a_copy_of_a_table_copies_its_blobs(uri: str, tmp_path: Path) -> None:
    copy = pennon.write_dataset(pennon.dataset(uri), tmp_path / "copy")
    assert _read(copy.take_blobs("b", indices=range(7))) == VALUES


def _first_batch(table: pa.Table, _: pa.RecordBatch) -> pa.RecordBatch:
    return table.to_batches()[0]


def test_blobs_of_a_file_of_their_own(tmp_path: Path) -> None:
    """A column added later lies in another data file; where it was not added, blobs are NULL."""
    uri = str(tmp_path / "t")
    pennon.write_dataset(TABLE.select(["i"]), uri, max_rows_per_file=4)
    table = lance.dataset(uri)
    parts = [TABLE.select(["b"])[:4], TABLE.select(["b"])[4:]]
    made = []
    for fragment, part in zip(table.get_fragments(), parts, strict=True):
        made.append(fragment.merge_columns(partial(_first_batch, part), ["i"]))
    merge = lance.LanceOperation.Merge([piece for piece, _ in made], made[0][1])
    lance.LanceDataset.commit(uri, merge, read_version=1)
    lance.write_dataset(TABLE.select(["i"]).slice(0, 2), uri, mode="append")
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    assert _read(ours.take_blobs("b", indices=range(9))) == [*VALUES, None, None]
    assert ours.to_table() == theirs.to_table()


def test_duckdb_and_polars_read_blobs_as_bytes(uri: str) -> None:
    """The schema of a dataset says bytes, so scans that others make must give bytes."""
    blobs = pennon.dataset(uri, default_scan_options={"blob_handling": "all_binary"})
    assert duckdb.sql("select b from blobs where i = 0 or i = 2 order by i").fetchall() == [
        (b"hello",),
        (b"",),
    ]
    assert pl.scan_pyarrow_dataset(blobs).collect()["b"].to_list() == VALUES


# --- version 2 ------------------------------------------------------------------------------------

V2_VALUES = [b"hello", None, b"", b"x" * 100_000, b"yy" * 3, b"z" * 5_000_000, b"w" * 90_000]


@pytest.fixture(params=[lance, pennon], ids=lambda module: module.__name__)
def uri_v2(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table of 2.2 with blobs in its data files, packed beside them, and by themselves."""
    uri = str(tmp_path / "v2")
    blobs = lance.blob_array(V2_VALUES)
    schema = pa.schema([pa.field("i", pa.int64()), lance.blob_field("b")])
    table = pa.table([range(7), blobs], schema=schema)
    request.param.write_dataset(table, uri, max_rows_per_file=6, data_storage_version="2.2")
    return uri


V2_TAKES = dict(TAKES)
V2_TAKES |= {"a part": lambda t: t.to_table(columns=["b.size", "b.kind", "i"])}
V2_TAKES |= {
    "some as bytes": lambda t: t.to_table(
        columns={"q": "b", "i": "i"}, blob_handling="all_binary", limit=3, offset=2
    ),
    "batches of bytes": lambda t: pa.Table.from_batches(
        t.to_batches(blob_handling="all_binary", batch_size=2, with_row_id=True)
    ),
    "bytes by address": lambda t: t.read_blobs("b", addresses=[ADDRESS, 0, 5]),
    "filtered bytes": lambda t: t.to_table(filter=pc.field("i") > 3, blob_handling="all_binary"),
}
del V2_TAKES["row of a fragment"]  # the oracle fails
V2_TAKES["ranges"] = lambda t: t.read_blob_ranges(
    "b",
    [(5, 2, 3), (0, 0, 5), (1, 7, 9), (2, 0, 0), (3, 99_990, 10), (6, 5, 5)],
    selector="indices",
)
V2_TAKES["addresses"] = lambda t: _read(t.take_blobs("b", addresses=[ADDRESS, 1, 0, 5]))
V2_TAKES["ids"] = lambda t: _read(t.take_blobs("b", ids=[ADDRESS, 3, 1, 0]))
V2_TAKES["ranges by id"] = lambda t: t.read_blob_ranges("b", [(ADDRESS, 1, 1)], selector="ids")


@pytest.mark.parametrize("name", V2_TAKES)
def test_take_blobs_of_version_2_equals_pylance(name: str, uri_v2: str) -> None:
    theirs, ours = V2_TAKES[name](lance.dataset(uri_v2)), V2_TAKES[name](pennon.dataset(uri_v2))
    assert ours == theirs
    if isinstance(ours, pa.Table):
        assert ours.schema.equals(theirs.schema, check_metadata=True)


def test_blob_thresholds_of_version_2_are_column_metadata(tmp_path: Path) -> None:
    """They are metadata of the column, and not of its descriptions."""
    field = lance.blob_field("b", inline_size_threshold=2)
    table = pa.table([lance.blob_array([b"abc", None, b"d"])], schema=pa.schema([field]))
    lance.write_dataset(table, str(tmp_path / "t"))
    theirs, ours = (module.dataset(str(tmp_path / "t")) for module in (lance, pennon))
    for handling in ("blobs_descriptions", "all_binary"):
        shown = [table.to_table(blob_handling=handling) for table in (theirs, ours)]
        assert shown[0] == shown[1]
        assert shown[0].schema.equals(shown[1].schema, check_metadata=True)


def test_blob_test_table_has_all_kinds_of_version_2(uri_v2: str) -> None:
    kinds = pennon.dataset(uri_v2).to_table(columns=["b.kind"])["b.kind"].to_pylist()
    assert set(kinds) == {None, 0, 1, 2}


def test_blobs_of_version_2_in_structs(tmp_path: Path) -> None:
    field = lance.blob_field("b")
    rows = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3]), lance.blob_array([b"a", None, b"c" * 70_000])],
        fields=[pa.field("n", pa.int64()), field],
    )
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table([rows], schema=pa.schema([("s", rows.type)])), uri)
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    assert ours.to_table() == theirs.to_table()
    assert ours.read_blobs("s.b", indices=[2, 1, 0]) == theirs.read_blobs("s.b", indices=[2, 1, 0])
    ways: list[dict[str, Any]] = [{}, {"columns": ["s.b"]}]
    for options in ways:
        bytes_of = [
            table.to_table(blob_handling="all_binary", **options) for table in (theirs, ours)
        ]
        assert bytes_of[0] == bytes_of[1]
        assert bytes_of[0].schema.equals(bytes_of[1].schema, check_metadata=True)


def test_external_blobs_are_opened_under_the_rules_of_base_paths(tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"secret")
    values = [b"mine", lance.Blob.from_uri(secret.as_uri())]
    schema = pa.schema([lance.blob_field("b")])
    uri = str(tmp_path / "t")
    options: dict[str, Any] = {"allow_external_blob_outside_bases": True}
    lance.write_dataset(pa.table([lance.blob_array(values)], schema=schema), uri, **options)
    table = pennon.dataset(uri)
    assert table.to_table() == lance.dataset(uri).to_table()
    assert _read(table.take_blobs("b", indices=[0, 1])) == [b"mine", b"secret"]
    strict = pennon.dataset(uri, trusted_bases=[])
    assert _read(strict.take_blobs("b", indices=[0])) == [b"mine"]
    with pytest.raises(UntrustedPathError, match="outside of its own root"):
        strict.take_blobs("b", indices=[0, 1])


def test_blob_column_of_binaries_yields_files() -> None:
    values = pa.array([b"ab", None, b""], pa.large_binary())
    ours = [f and f.read() for f in pennon.BlobColumn(values)]
    assert ours == [b"ab", None, b""]
    for wrong in (pa.array([1]), [b"ab"]):
        for module in (lance, pennon):
            with pytest.raises(ValueError, match="Expected a"):
                module.BlobColumn(wrong)
    assert pennon.blob.BlobFile is pennon.BlobFile
