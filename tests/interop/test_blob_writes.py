"""Blob columns of version 2, written: the same descriptions and files of blobs as pylance makes.

Every operation of Pennon on such a table leaves all blobs as they were, and pylance reads them.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, LanceError, NotFoundError, UntrustedPathError
from pennon.io import open_store
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import V2_2

KIB = 1024
SMALL = {"inline_size_threshold": 4, "dedicated_size_threshold": 30}
MIXED = [b"ab", None, b"", b"packed", b"D" * 40, b"also packed", b"1234", b"12345", b"x" * 30]


def _blobs(values: list[Any], **thresholds: int) -> pa.Table:
    return _named("b", lance.blob_array(values), lance.blob_field("b", **thresholds))


def _named(name: str, array: pa.Array, field: pa.Field | None = None) -> pa.Table:
    return pa.table([array], schema=pa.schema([field or pa.field(name, array.type)]))


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
    return _named("s", rows)


def _two_parts() -> pa.Table:
    parts = [pa.array([b"two", None, b"parts"], pa.large_binary()), pa.nulls(3, pa.string())]
    rows = pa.StructArray.from_arrays(
        parts, names=["data", "uri"], mask=pa.array([False, True, False])
    )
    metadata = {"ARROW:extension:name": "lance.blob.v2"}
    return _named("b", rows, pa.field("b", rows.type, metadata=metadata))


def _version_1() -> pa.Table:
    metadata = {"lance-encoding:blob": "true", "lance-encoding:blob-inline-size-threshold": "4"}
    values = pa.array([b"ab", None, b"", b"z" * 100], pa.large_binary())
    return _named("b", values, pa.field("b", pa.large_binary(), metadata=metadata))


AROUND = [size + more for size in (64 * KIB, 4 * KIB * KIB) for more in (-1, 0, 1)]
TABLES: dict[str, Callable[[], pa.Table]] = {
    "around the thresholds": lambda: _blobs([b"b" * size for size in AROUND]),
    "small thresholds": lambda: _blobs(MIXED, **SMALL),
    "short packs": lambda: _blobs([*MIXED, *MIXED], **SMALL, pack_file_size_threshold=30),
    "all inline": lambda: _blobs([b"", b"x", None, b"yy"]),
    "nothing inline": lambda: _blobs([b"", b"x", None, b"yy"], inline_size_threshold=0),
    "dedicated first": lambda: _blobs(
        [b"1234567"], inline_size_threshold=10, dedicated_size_threshold=5
    ),
    "all NULL": lambda: _blobs([None, None]),
    "no rows": lambda: _blobs([b"x"]).slice(1),
    "sliced": lambda: _blobs([*MIXED, *MIXED], **SMALL).slice(3, 11),
    "chunks": lambda: pa.concat_tables([_blobs(MIXED, **SMALL), _blobs(MIXED, **SMALL)]),
    "two columns": _two_columns,
    "in structs": _in_structs,
    "two parts": _two_parts,
    "version 1": _version_1,
}


def _written(module: Any, table: pa.Table, uri: Path, **options: Any) -> Any:
    module.write_dataset(table, str(uri), data_storage_version="2.2", **options)
    return lance.dataset(str(uri))


def _files_of_blobs(uri: Path) -> list[dict[str, bytes]]:
    """Return the files of blobs beside each data file, by their names."""
    table = lance.dataset(str(uri))
    names = [file.path for part in table.get_fragments() for file in part.data_files()]
    folders = [uri / "data" / name.removesuffix(".lance") for name in names]
    return [{file.name: file.read_bytes() for file in folder.glob("*")} for folder in folders]


def _read(table: Any, column: str = "b") -> list[bytes | None]:
    rows = range(table.count_rows())
    return [data for _, data in table.read_blobs(column, indices=rows)]


@pytest.mark.parametrize("rows_per_file", [1 << 20, 4])
@pytest.mark.parametrize("name", TABLES)
def test_the_same_as_pylance(name: str, rows_per_file: int, tmp_path: Path) -> None:
    table = TABLES[name]()
    options = {"max_rows_per_file": rows_per_file}
    theirs = _written(lance, table, tmp_path / "theirs", **options)
    ours = _written(pennon, table, tmp_path / "ours", **options)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_table() == theirs.to_table()
    assert ours.to_table(blob_handling="all_binary") == theirs.to_table(blob_handling="all_binary")
    assert pennon.dataset(tmp_path / "ours").to_table() == theirs.to_table()
    assert _files_of_blobs(tmp_path / "ours") == _files_of_blobs(tmp_path / "theirs")
    assert [f.data_files()[0].fields for f in ours.get_fragments()] == [
        f.data_files()[0].fields for f in theirs.get_fragments()
    ]
    pennon.dataset(tmp_path / "ours").validate()
    ours.validate()


def test_names_are_those_of_pylance(tmp_path: Path) -> None:
    values = [b"ab", None, pennon.Blob.empty(), pennon.Blob.from_bytes(bytearray(b"packed"))]
    field = pennon.blob_field("b", **SMALL)
    assert field.equals(lance.blob_field("b", **SMALL), check_metadata=True)
    assert pennon.blob_array(values[:3]).equals(lance.blob_array([b"ab", None, b""]))
    table = pa.table([pennon.blob_array(values)], schema=pa.schema([field]))
    assert pennon.write_dataset(table, tmp_path / "t").data_storage_version == "2.2"
    assert _read(lance.dataset(str(tmp_path / "t"))) == [b"ab", None, b"", b"packed"]


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
def test_wrong_blobs(name: str) -> None:
    with pytest.raises(Exception) as theirs:
        WRONG_BLOBS[name](lance)
    with pytest.raises(type(theirs.value)):
        WRONG_BLOBS[name](pennon)


# --- outside of the table -------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside" / "sub"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"0123456789" * 3)
    (folder / "b c.bin").write_bytes(b"blank")
    return folder.parent


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
def test_blobs_outside(way: str, outside: Path, tmp_path: Path) -> None:
    table = _blobs(_places(outside), **SMALL)
    options = [WAYS[way](module, outside) for module in (lance, pennon)]
    theirs = _written(lance, table, tmp_path / "theirs", **options[0])
    ours = _written(pennon, table, tmp_path / "ours", **options[1])
    assert ours.to_table() == theirs.to_table()
    assert _files_of_blobs(tmp_path / "ours") == _files_of_blobs(tmp_path / "theirs")
    wanted = [b"23456", b"own", b"0123456789" * 3, None, b"blank"]
    assert _read(ours) == wanted
    mine = pennon.dataset(tmp_path / "ours")
    assert _read(mine) == _read(pennon.dataset(tmp_path / "theirs")) == wanted
    mine.delete("b is null")
    mine.optimize.compact_files()
    left = [value for value in wanted if value is not None]
    assert _read(pennon.dataset(tmp_path / "ours")) == left
    assert _read(lance.dataset(str(tmp_path / "ours"))) == left


def test_a_table_of_a_stranger_opens_nothing_outside(outside: Path, tmp_path: Path) -> None:
    options = {"allow_external_blob_outside_bases": True}
    _written(lance, _blobs(_places(outside)), tmp_path / "t", **options)
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


def test_a_link_in_a_listed_folder_leads_nowhere_else(outside: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(b"secret")
    (outside / "link").symlink_to(secret)
    options = {"allow_external_blob_outside_bases": True}
    _written(lance, _blobs([(outside / "link").as_uri()]), tmp_path / "t", **options)
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
def test_refusals(name: str, tmp_path: Path) -> None:
    value, options = REFUSED[name]
    for module, kind in ((lance, Exception), (pennon, LanceError)):
        with pytest.raises(kind):
            _written(module, _blobs([b"a", value]), tmp_path / module.__name__, **options)
    assert not list(tmp_path.glob("pennon/data/*.lance"))


def _parts(**parts: Any) -> pa.Table:
    storage = pa.array([parts], lance.blob.BlobType().storage_type)
    array = pa.ExtensionArray.from_storage(lance.blob.BlobType(), storage)
    return _named("b", array, lance.blob_field("b"))


WRONG_TABLES: dict[str, Callable[[], pa.Table]] = {
    "both": lambda: _parts(data=b"x", uri="file:///x"),
    "neither": _parts,
    "half a range": lambda: _parts(uri="file:///x", position=1),
    "range of bytes": lambda: _parts(data=b"x", position=0, size=1),
    "range of nothing": lambda: _parts(uri="file:///x", position=1, size=0),
    "never NULL": lambda: _named(
        "b", lance.blob_array([None]), lance.blob_field("b", nullable=False)
    ),
    "threshold": lambda: _named(
        "b",
        lance.blob_array([b"x"]),
        lance.blob_field("b").with_metadata({"lance-encoding:blob-inline-size-threshold": "x"}),
    ),
    "threshold of 0": lambda: _named(
        "b",
        lance.blob_array([b"x"]),
        lance.blob_field("b").with_metadata({"lance-encoding:blob-dedicated-size-threshold": "0"}),
    ),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_wrong_tables(name: str, tmp_path: Path) -> None:
    options = {"allow_external_blob_outside_bases": True}
    for module, kind in ((lance, Exception), (pennon, LanceError)):
        with pytest.raises(kind):
            _written(module, WRONG_TABLES[name](), tmp_path / module.__name__, **options)


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1"])
def test_older_files_hold_no_blobs_of_version_2(version: str, tmp_path: Path) -> None:
    for module in (lance, pennon):
        with pytest.raises(Exception, match=r"2\.2"):
            module.write_dataset(_blobs([b"x"]), str(tmp_path), data_storage_version=version)


# --- operations -----------------------------------------------------------------------------------


def _rows(numbers: list[int], values: list[Any]) -> pa.Table:
    fields = [pa.field("i", pa.int64()), lance.blob_field("b", **SMALL)]
    return pa.table([numbers, lance.blob_array(values)], schema=pa.schema(fields))


@pytest.fixture
def uri(outside: Path, tmp_path: Path) -> str:
    """A table in two files with blobs of all kinds, one of them in a base path."""
    uri = str(tmp_path / "t")
    base = lance.DatasetBasePath(str(outside), "x")
    lance.write_dataset(_rows(list(range(9)), MIXED), uri, initial_bases=[base])
    place = lance.Blob.from_uri(str(outside / "sub" / "a.bin"), 1, 3)
    lance.write_dataset(_rows([10, 11, 12], [place, b"Q" * 31, None]), uri, mode="append")
    return uri


def _all(uri: str) -> dict[int, bytes | None]:
    """Return what both read, by row."""
    found = []
    for module in (lance, pennon):
        table = module.dataset(uri)
        numbers = table.to_table(columns=["i"])["i"].to_pylist()
        found.append(dict(zip(numbers, _read(table), strict=True)))
    assert found[0] == found[1]
    return found[1]


BEFORE = {**dict(enumerate(MIXED)), 10: b"123", 11: b"Q" * 31, 12: None}


def _merge(module: Any, uri: str, rows: pa.Table) -> None:
    merge = module.dataset(uri).merge_insert("i").when_matched_update_all()
    merge.when_not_matched_insert_all().execute(rows)


OPERATIONS: dict[str, tuple[Callable[[Any, str], Any], dict[int, Any]]] = {
    "append": (
        lambda m, u: m.write_dataset(_rows([20, 21], [b"new packed", None]), u, mode="append"),
        {20: b"new packed", 21: None},
    ),
    "compact": (lambda m, u: m.dataset(u).optimize.compact_files(), {}),
    "update": (lambda m, u: m.dataset(u).update({"i": "i"}, "i in (1, 3, 4, 10)"), {}),
    "delete": (lambda m, u: m.dataset(u).delete("i = 5"), {5: ...}),
    "merge": (
        lambda m, u: _merge(m, u, _rows([3, 30], [b"", b"merged" * 9])),
        {3: b"", 30: b"merged" * 9},
    ),
    "merge of other columns": (
        lambda m, u: _merge(m, u, pa.table({"i": pa.array([4, 10, 40])})),
        {40: None},
    ),
    "add and drop a column": (
        lambda m, u: (
            m.dataset(u).add_columns({"j": "i * 2"}),
            m.dataset(u).drop_columns(["j"]),
        ),
        {},
    ),
    "rename": (
        lambda m, u: (
            m.dataset(u).alter_columns({"path": "b", "name": "c"}),
            m.dataset(u).alter_columns({"path": "c", "name": "b"}),
        ),
        {},
    ),
    "clean up": (
        lambda m, u: m.dataset(u).cleanup_old_versions(datetime.timedelta(0)),
        {},
    ),
    "compact after deletes": (
        lambda m, u: (m.dataset(u).delete("i = 11"), m.dataset(u).optimize.compact_files()),
        {11: ...},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_keep_all_blobs(name: str, uri: str) -> None:
    assert _all(uri) == BEFORE
    run, changes = OPERATIONS[name]
    run(pennon, uri)
    wanted = {**BEFORE, **changes}
    assert _all(uri) == {row: value for row, value in wanted.items() if value is not ...}
    lance.dataset(uri).validate()
    pennon.dataset(uri).validate()


def test_operations_by_turns(uri: str) -> None:
    wanted: dict[int, Any] = dict(BEFORE)
    for number, (run, changes) in enumerate(OPERATIONS.values()):
        run((pennon, lance)[number % 2], uri)
        wanted = {k: v for k, v in {**wanted, **changes}.items() if v is not ...}
        assert _all(uri) == wanted
    run, _ = OPERATIONS["compact"]
    run(pennon, uri)
    assert _all(uri) == wanted


@pytest.mark.parametrize("most_bytes", [1, 40, 1 << 20])
def test_rewrites_hold_few_blobs_at_a_time(
    most_bytes: int, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pennon.ops.blob_rows.MOST_BYTES", most_bytes)
    for name in ("update", "merge of other columns", "compact"):
        OPERATIONS[name][0](pennon, uri)
    assert _all(uri) == {**BEFORE, 40: None}
    (fragment,) = pennon.dataset(uri).get_fragments()
    assert len(fragment.data_files()) == 1


def test_columns_of_blobs_are_added(uri: str) -> None:
    field = lance.blob_field("n", **SMALL)

    def make(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = [b"n" * (number * 4) for number in batch["i"].to_pylist()]
        return pa.record_batch([lance.blob_array(values)], schema=pa.schema([field]))

    pennon.dataset(uri).delete("i = 2")
    pennon.dataset(uri).add_columns(make, read_columns=["i"])
    left = [row for row in BEFORE if row != 2]
    for module in (lance, pennon):
        assert _read(module.dataset(uri), "n") == [b"n" * (row * 4) for row in left]
    joined = pa.table(
        [pa.array([0, 4]), lance.blob_array([b"joined", None])],
        schema=pa.schema([pa.field("i", pa.int64()), lance.blob_field("m", **SMALL)]),
    )
    pennon.dataset(uri).merge(joined, "i")
    pennon.dataset(uri).optimize.compact_files()
    for module in (lance, pennon):
        table = module.dataset(uri)
        assert _read(table, "m") == [b"joined"] + [None] * (len(left) - 1)
        assert _read(table, "n") == [b"n" * (row * 4) for row in left]
    assert _all(uri) == {row: BEFORE[row] for row in left}


def test_stable_row_ids_survive(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    options: dict[str, Any] = {"enable_stable_row_ids": True, "data_storage_version": "2.2"}
    pennon.write_dataset(_rows(list(range(9)), MIXED), uri, max_rows_per_file=4, **options)
    pennon.dataset(uri).delete("i = 4")
    pennon.dataset(uri).update({"i": "i + 100"}, "i in (3, 5)")
    pennon.dataset(uri).optimize.compact_files()
    for module in (lance, pennon):
        found = module.dataset(uri).read_blobs("b", ids=[5, 3, 8, 0])
        assert [data for _, data in found] == [MIXED[5], MIXED[3], MIXED[8], MIXED[0]]


def test_clean_up_knows_files_of_blobs(uri: str) -> None:
    orphan = Path(uri) / "data" / ("0" * 24 + "a" * 26) / ("0" * 32 + ".blob")
    orphan.parent.mkdir()
    orphan.write_bytes(b"nobody's")
    before = _files_of_blobs(Path(uri))
    pennon.dataset(uri).cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    assert not orphan.exists()
    assert _files_of_blobs(Path(uri)) == before
    pennon.dataset(uri).optimize.compact_files()
    pennon.dataset(uri).cleanup_old_versions(datetime.timedelta(0), delete_unverified=True)
    left = {file.parent.name for file in Path(uri).glob("data/*/*.blob")}
    (fragment,) = lance.dataset(uri).get_fragments()
    assert left == {file.path.removesuffix(".lance") for file in fragment.data_files()}
    assert _all(uri) == BEFORE


def test_clones_have_all_blobs(uri: str, tmp_path: Path) -> None:
    for clone in ("shallow_clone", "deep_clone"):
        copy = str(tmp_path / clone)
        table = pennon.dataset(uri)
        getattr(table, clone)(copy, table.version)
        assert _all(copy) == BEFORE
        pennon.dataset(copy).optimize.compact_files()
        assert _all(copy) == BEFORE
    deep = list((tmp_path / "deep_clone" / "data").glob("*/*.blob"))
    assert len(deep) >= 4


def test_a_copy_of_a_table_copies_its_blobs(uri: str, tmp_path: Path) -> None:
    copy = pennon.write_dataset(pennon.dataset(uri), tmp_path / "copy")
    assert copy.data_storage_version == "2.2"
    assert copy.schema.field("b").type == pennon.dataset(uri).schema.field("b").type
    assert _all(str(tmp_path / "copy")) == BEFORE
    assert set(copy.to_table(columns=["b.kind"])["b.kind"].to_pylist()) == {None, 0, 1, 2}


def test_a_table_without_a_file_of_blobs_is_not_valid(uri: str) -> None:
    table = pennon.dataset(uri)
    table.validate()
    first, *_ = sorted(Path(uri).glob("data/*/*.blob"))
    data = first.read_bytes()
    first.write_bytes(data[:-1])
    with pytest.raises(FormatError, match="blob"):
        pennon.dataset(uri).validate()
    first.unlink()
    with pytest.raises(NotFoundError, match="blob"):
        pennon.dataset(uri).validate()
    first.write_bytes(data)
    pennon.dataset(uri).validate()


def test_appends_say_no_other_threshold(uri: str) -> None:
    other = _rows([1], [b"x"]).schema.set(1, lance.blob_field("b", inline_size_threshold=5))
    table = _rows([1], [b"x"]).cast(other)
    for module in (lance, pennon):
        with pytest.raises(OSError, match="threshold"):
            module.write_dataset(table, uri, mode="append")
    silent = pa.schema([pa.field("i", pa.int64()), lance.blob_field("b")])
    pennon.write_dataset(_rows([50], [b"12345"]).cast(silent), uri, mode="append")
    kinds = lance.dataset(uri).to_table(columns=["b.kind"])["b.kind"].to_pylist()
    assert kinds[-1] == 1  # packed, as the table's own threshold says


def test_a_table_of_version_1_becomes_one_of_version_2(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    values = [b"ab", None, b"", b"z" * 100]
    lance.write_dataset(_version_1(), uri, data_storage_version="2.1", max_rows_per_file=3)
    convert(plan_convert(open_store(uri), V2_2))
    for module in (lance, pennon):
        table = module.dataset(uri)
        assert table.schema.field("b").type.extension_name == "lance.blob.v2"
        assert _read(table) == values
        assert table.to_table()["b"].to_pylist()[-1]["kind"] == 1
    pennon.write_dataset(_version_1(), uri, mode="append")
    assert _read(lance.dataset(uri)) == values * 2


# --- damage ---------------------------------------------------------------------------------------


def _described(kind: int, position: int, size: int, blob_id: int) -> bytes:
    return struct.pack("<BQQII", kind, position, size, blob_id, 0)


DAMAGE: dict[str, tuple[bytes, bytes]] = {
    "position of an inline blob": (_described(0, 0, 2, 0), _described(0, 1 << 50, 2, 0)),
    "position and size that overflow": (
        _described(0, 0, 2, 0),
        _described(0, (1 << 64) - 1, (1 << 64) - 1, 0),
    ),
    "size of an inline blob": (_described(0, 0, 2, 0), _described(0, 0, 1 << 40, 0)),
    "size of a packed blob": (_described(1, 0, 6, 1), _described(1, 0, 1 << 40, 1)),
    "position of a packed blob": (_described(1, 0, 6, 1), _described(1, 1 << 33, 6, 1)),
    "size of a dedicated blob": (_described(2, 0, 40, 2), _described(2, 0, 41, 2)),
    "no such file": (_described(1, 0, 6, 1), _described(1, 0, 6, 77)),
    "unknown kind": (_described(1, 0, 6, 1), _described(9, 0, 6, 1)),
    "no such base": (_described(1, 0, 6, 1), _described(3, 0, 6, 5)),
    "no uri": (_described(1, 0, 6, 1), _described(3, 0, 6, 0)),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_descriptions(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(_blobs([b"ab", b"packed", b"D" * 40], **SMALL), uri)
    (file,) = (tmp_path / "t" / "data").glob("*.lance")
    data = file.read_bytes()
    sound, damaged = DAMAGE[name]
    assert data.count(sound) == 1
    file.write_bytes(data.replace(sound, damaged))
    table = pennon.dataset(uri)
    assert table.to_table().num_rows == 3
    for read in (
        lambda: table.read_blobs("b", indices=[0, 1, 2]),
        lambda: table.to_table(blob_handling="all_binary"),
        lambda: [blob.read() for blob in table.take_blobs("b", indices=[0, 1, 2])],
    ):
        with pytest.raises((FormatError, NotFoundError)):
            read()
    if damaged[0] != 3:  # what lies outside stays there, unread
        pennon.write_dataset(_blobs([b"more"]), uri, mode="append")
        with pytest.raises((FormatError, NotFoundError)):  # and nothing is lost
            pennon.dataset(uri).optimize.compact_files()
        assert pennon.dataset(uri).version == 2
