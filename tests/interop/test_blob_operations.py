"""Tables with blobs of version 2: every operation leaves all blobs as they were, by turns with pylance's.

Damaged descriptions are errors, and lose nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, LanceError, NotFoundError
from pennon.io import open_store
from pennon.ops.convert import convert, plan_convert
from pennon.schema.version import V2_2
from tests.interop.blob_tables import (
    MIXED,
    SMALL,
    blobs,
    files_of_blobs,
    make_outside,
    read_all,
    version_1,
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    return make_outside(tmp_path)


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
        found.append(dict(zip(numbers, read_all(table), strict=True)))
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
        lambda m, u: m.dataset(u).cleanup_old_versions(timedelta(0)),
        {},
    ),
    "compact after deletes": (
        lambda m, u: (m.dataset(u).delete("i = 11"), m.dataset(u).optimize.compact_files()),
        {11: ...},
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_keep_values_of_all_blobs(name: str, uri: str) -> None:
    assert _all(uri) == BEFORE
    run, changes = OPERATIONS[name]
    run(pennon, uri)
    wanted = {**BEFORE, **changes}
    assert _all(uri) == {row: value for row, value in wanted.items() if value is not ...}
    lance.dataset(uri).validate()
    pennon.dataset(uri).validate()


def test_blob_operations_in_turn_with_pylance(uri: str) -> None:
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
        assert read_all(module.dataset(uri), "n") == [b"n" * (row * 4) for row in left]
    joined = pa.table(
        [pa.array([0, 4]), lance.blob_array([b"joined", None])],
        schema=pa.schema([pa.field("i", pa.int64()), lance.blob_field("m", **SMALL)]),
    )
    pennon.dataset(uri).merge(joined, "i")
    pennon.dataset(uri).optimize.compact_files()
    for module in (lance, pennon):
        table = module.dataset(uri)
        assert read_all(table, "m") == [b"joined"] + [None] * (len(left) - 1)
        assert read_all(table, "n") == [b"n" * (row * 4) for row in left]
    assert _all(uri) == {row: BEFORE[row] for row in left}


def test_conditions_and_expressions_on_blob_descriptions(uri: str) -> None:
    rows = _rows([1, 3, 4, 8], [b"new", b"new", b"new", b"new"])
    merge = pennon.dataset(uri).merge_insert("i").when_matched_update_all("target.b.size > 10")
    merge.when_not_matched_by_source_delete("b is null").execute(rows)
    wanted = {**BEFORE, 4: b"new", 8: b"new"}
    del wanted[12]  # row 1 is NULL, too, but has a partner
    assert _all(uri) == wanted
    pennon.dataset(uri).add_columns({"size": "b.size"})
    shown = lance.dataset(uri).to_table(columns=["i", "size"]).to_pylist()
    sizes = {row["i"]: row["size"] for row in shown}
    assert sizes == {row: None if value is None else len(value) for row, value in wanted.items()}


REFUSED_OF_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "drop of a part": lambda t: t.drop_columns(["b.uri"]),
    "rename of a part": lambda t: t.alter_columns({"path": "b.data", "name": "bytes"}),
    "cast": lambda t: t.alter_columns({"path": "b", "data_type": pa.large_binary()}),
    "function of blobs": lambda t: t.add_columns(lambda batch: batch.rename_columns(["j", "c"])),
    "map": lambda t: t.add_columns(
        pa.schema([pa.field("m", pa.map_(pa.string(), lance.blob_field("value")))])
    ),
    "key": lambda t: t.merge_insert("b").when_matched_update_all().execute(_rows([1], [b"x"])),
    "descriptions": lambda t: t.insert(t.to_table()),
    "bytes": lambda t: t.insert(t.to_table(blob_handling="all_binary")),
}


@pytest.mark.parametrize("name", REFUSED_OF_COLUMNS)
def test_blob_columns_refuse_unsupported_operations(name: str, uri: str) -> None:
    version = pennon.dataset(uri).version
    with pytest.raises(LanceError):
        REFUSED_OF_COLUMNS[name](pennon.dataset(uri))
    assert pennon.dataset(uri).version == version
    assert _all(uri) == BEFORE


def test_failed_blob_write_closes_its_files(tmp_path: Path) -> None:
    rows = blobs([b"packed", b"D" * 40], **SMALL)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from rows.to_batches()
        message = "the data ends here"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="ends here"):
        pennon.write_dataset(batches(), tmp_path / "t", schema=rows.schema)
    left = [file for file in (tmp_path / "t").rglob("*") if file.is_file()]
    assert [file.read_bytes() for file in left] == [b"D" * 40]  # whole, and nobody's
    pennon.write_dataset(rows, tmp_path / "t")
    pennon.dataset(tmp_path / "t").cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert not left[0].exists()
    assert read_all(lance.dataset(str(tmp_path / "t"))) == [b"packed", b"D" * 40]


def test_blob_operations_keep_stable_row_ids(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    options: dict[str, Any] = {"enable_stable_row_ids": True, "data_storage_version": "2.2"}
    pennon.write_dataset(_rows(list(range(9)), MIXED), uri, max_rows_per_file=4, **options)
    pennon.dataset(uri).delete("i = 4")
    pennon.dataset(uri).update({"i": "i + 100"}, "i in (3, 5)")
    pennon.dataset(uri).optimize.compact_files()
    for module in (lance, pennon):
        found = module.dataset(uri).read_blobs("b", ids=[5, 3, 8, 0])
        assert [data for _, data in found] == [MIXED[5], MIXED[3], MIXED[8], MIXED[0]]


def test_clean_up_deletes_orphaned_blob_files_only(uri: str) -> None:
    orphan = Path(uri) / "data" / ("0" * 24 + "a" * 26) / ("0" * 32 + ".blob")
    orphan.parent.mkdir()
    orphan.write_bytes(b"nobody's")
    before = files_of_blobs(Path(uri))
    pennon.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert not orphan.exists()
    assert files_of_blobs(Path(uri)) == before
    pennon.dataset(uri).optimize.compact_files()
    pennon.dataset(uri).cleanup_old_versions(timedelta(0), delete_unverified=True)
    left = {file.parent.name for file in Path(uri).glob("data/*/*.blob")}
    (fragment,) = lance.dataset(uri).get_fragments()
    assert left == {file.path.removesuffix(".lance") for file in fragment.data_files()}
    assert _all(uri) == BEFORE


def test_clones_of_blob_tables_have_all_blobs(uri: str, tmp_path: Path) -> None:
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


def test_append_with_other_blob_threshold_is_refused(uri: str) -> None:
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
    lance.write_dataset(version_1(), uri, data_storage_version="2.1", max_rows_per_file=3)
    convert(plan_convert(open_store(uri), V2_2))
    for module in (lance, pennon):
        table = module.dataset(uri)
        assert table.schema.field("b").type.extension_name == "lance.blob.v2"
        assert read_all(table) == values
        assert table.to_table()["b"].to_pylist()[-1]["kind"] == 1
    pennon.write_dataset(version_1(), uri, mode="append")
    assert read_all(lance.dataset(uri)) == values * 2


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("depth", [0, 1])
def test_blobs_of_files_written_before_a_column_change(
    version: Any, depth: int, tmp_path: Path
) -> None:
    uri, table, column = str(tmp_path / "t"), version_1(), "b"
    if depth:
        rows = pa.StructArray.from_arrays(
            [pa.array(range(4)), table["b"].chunk(0)],
            fields=[pa.field("n", pa.int64()), table.schema.field("b")],
        )
        table, column = pa.table({"s": rows}), "s.b"
    lance.write_dataset(table, uri, data_storage_version=version)
    lance.write_dataset(table, uri, mode="append", data_storage_version="2.2")
    values = [b"ab", None, b"", b"z" * 100] * 2
    theirs, ours = lance.dataset(uri), pennon.dataset(uri)
    assert ours.to_table() == theirs.to_table()
    assert read_all(ours, column) == read_all(theirs, column) == values
    assert [blob and blob.read() for blob in ours.take_blobs(column, ids=[3, 1])] == [
        b"z" * 100,
        None,
    ]
    ours.validate()


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
def test_damaged_blob_descriptions_are_refused(name: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(blobs([b"ab", b"packed", b"D" * 40], **SMALL), uri)
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
        pennon.write_dataset(blobs([b"more"]), uri, mode="append")
        with pytest.raises((FormatError, NotFoundError)):  # and nothing is lost
            pennon.dataset(uri).optimize.compact_files()
        assert pennon.dataset(uri).version == 2


def test_damaged_blob_path_error_names_file_and_column(outside: Path, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = blobs([lance.Blob.from_uri((outside / "sub" / "a.bin").as_uri(), 1, 3)])
    base = lance.DatasetBasePath(str(outside), "x")
    lance.write_dataset(rows, uri, data_storage_version="2.2", initial_bases=[base])
    (file,) = (tmp_path / "t" / "data").glob("*.lance")
    data = file.read_bytes()
    file.write_bytes(data.replace(b"sub/a.bin", b"sub/\x01.bin"))
    with pytest.raises(FormatError, match="plain path") as raised:
        pennon.dataset(uri).read_blobs("b", indices=[0])
    assert (raised.value.where.file, raised.value.where.column) == (f"data/{file.name}", "b")
