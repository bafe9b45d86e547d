"""Writing data files: limits, names, and failures."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset.metadata import FragmentMetadata
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    SchemaMismatchError,
    StoreError,
    UnsupportedError,
)
from pennon.file import LanceFileReader, LanceFileWriter
from pennon.io import MemoryStore, open_store
from pennon.ops.fit import fit_schema
from pennon.ops.source import as_reader
from pennon.ops.write import (
    FileLimits,
    WriteMode,
    commit_write,
    new_file_name,
    plan_write,
    write_fragments,
)
from pennon.progress import FileSystemFragmentWriteProgress, FragmentWriteProgress
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import FileVersion
from pennon.testing import Fault, FaultyStore

NUMBERS = pa.table({"n": pa.array(range(10_000))})


def test_data_file_names_are_unique_and_well_formed() -> None:
    names = {new_file_name() for _ in range(100)}
    assert len(names) == 100
    assert all(re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", name) for name in names)


def _sizes(table: pennon.LanceDataset) -> list[int]:
    return [fragment.count_rows() for fragment in table.get_fragments()]


def test_files_end_at_the_row_limit(tmp_path: Path) -> None:
    batches = NUMBERS.to_batches(max_chunksize=700)
    written = pennon.write_dataset(
        iter(batches), tmp_path / "t", schema=NUMBERS.schema, max_rows_per_file=3000
    )
    assert _sizes(written) == [3000, 3000, 3000, 1000]
    assert written.to_table().equals(NUMBERS)


def test_files_end_near_the_byte_limit(tmp_path: Path) -> None:
    written = pennon.write_dataset(NUMBERS, tmp_path / "t", max_bytes_per_file=20_000)
    assert _sizes(written) == [2500] * 4
    for file in (tmp_path / "t" / "data").iterdir():
        assert file.stat().st_size < 21_000


@pytest.mark.parametrize("limit", ["max_rows_per_file", "max_bytes_per_file"])
def test_write_with_zero_file_limit_is_refused(limit: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {limit: 0}
    with pytest.raises(ArgumentError, match=limit):
        pennon.write_dataset(NUMBERS, tmp_path / "t", **options)
    assert not (tmp_path / "t").exists()


def test_write_of_zero_rows_makes_no_files(tmp_path: Path) -> None:
    written = pennon.write_dataset(NUMBERS.slice(0, 0), tmp_path / "t")
    assert written.get_fragments() == []
    assert written.to_table().equals(NUMBERS.slice(0, 0))
    assert pennon.write_dataset(NUMBERS, written, mode="append").to_table().equals(NUMBERS)


def test_write_consumes_one_batch_at_a_time(tmp_path: Path) -> None:
    """The source is asked for a batch only when the one before was written."""
    alive: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        for number in range(50):
            alive.append(number)
            yield pa.record_batch({"n": pa.array([number] * 1000)})

    store = open_store(tmp_path / "t")
    schema = pa.schema({"n": pa.int64()})
    plan = plan_write(store, schema, WriteMode.CREATE, limits=FileLimits(max_rows=1000))
    batches = source()
    assert len(write_fragments(plan.task, [next(batches)])) == 1
    assert alive == [0]
    assert len(write_fragments(plan.task, batches)) == 49


@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
@pytest.mark.parametrize("version", ["2.3", "next"])
def test_write_of_unsupported_file_versions_is_refused(
    version: str, mode: Any, tmp_path: Path
) -> None:
    with pytest.raises(
        UnsupportedError, match=r"2\.3 cannot be written yet; .* 0\.1, 2\.0, 2\.1 and 2\.2"
    ):
        pennon.write_dataset(NUMBERS, tmp_path / "t", mode=mode, data_storage_version=version)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    ("asked", "version"),
    [(None, "2.1"), ("2.0", "2.0"), ("2.1", "2.1"), ("2.2", "2.2"), ("stable", "2.2")],
)
def test_the_file_version_of_a_new_table(asked: str | None, version: str, tmp_path: Path) -> None:
    written = pennon.write_dataset(NUMBERS, tmp_path / "t", data_storage_version=asked)
    assert written.data_storage_version == version
    assert _file_versions(written) == [version]
    for mode in ("append", "overwrite"):
        written = pennon.write_dataset(NUMBERS, written, mode=mode)
        assert set(_file_versions(written)) == {version} == {written.data_storage_version}
    assert written.to_table().equals(NUMBERS)


def test_create_chooses_the_lowest_file_version_for_its_types(
    tmp_path: Path,
) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    maps = pa.table({"m": pa.array([[("a", 1)], None, []], kind)})
    written = pennon.write_dataset(maps, tmp_path / "t")
    assert (written.data_storage_version, _file_versions(written)) == ("2.2", ["2.2"])
    assert written.to_table().equals(maps)
    with LanceFileWriter(tmp_path / "f.lance", maps.schema) as writer:
        writer.write_batch(maps)
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().equals(maps)
    for options in ({"data_storage_version": "2.1"}, {"use_legacy_format": True}):
        with pytest.raises(UnsupportedError, match=r"column 'm' of type map.*; 2\.2 can"):
            pennon.write_dataset(maps, tmp_path / "u", **options)
    nowhere = pa.table({"v": pa.array([["a", "b"]], pa.list_(pa.string(), 2))})
    with pytest.raises(UnsupportedError, match=r"'v' .* file version 2\.1; no version can"):
        pennon.write_dataset(nowhere, tmp_path / "u")


def _file_versions(table: pennon.LanceDataset) -> list[str]:
    files = [file for fragment in table.get_fragments() for file in fragment.data_files()]
    return [f"{file.file_major_version}.{file.file_minor_version}" for file in files]


@pytest.mark.parametrize(("first", "second"), [("2.0", "2.1"), ("2.1", "2.0")])
def test_append_with_other_file_version_makes_a_mixed_table(
    first: str, second: str, tmp_path: Path
) -> None:
    pennon.write_dataset(NUMBERS, tmp_path / "t", data_storage_version=first)
    mixed = pennon.write_dataset(
        NUMBERS, tmp_path / "t", mode="append", data_storage_version=second
    )
    assert _file_versions(mixed) == [first, second]
    assert mixed.data_storage_version == first
    assert mixed.to_table().equals(pa.concat_tables([NUMBERS, NUMBERS]))
    assert mixed.take([0, 10_001])["n"].to_pylist() == [0, 1]


def test_tasks_pickle_and_one_commit_takes_all(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t")
    plan = plan_write(store, NUMBERS.schema, WriteMode.CREATE)
    task = pickle.loads(pickle.dumps(plan.task))
    made = [write_fragments(task, part.to_batches()) for part in (NUMBERS, NUMBERS.slice(0, 5))]
    fragments = pickle.loads(pickle.dumps([one for some in made for one in some]))
    assert commit_write(plan, fragments).version == 1
    assert _sizes(pennon.dataset(tmp_path / "t")) == [10_000, 5]


def test_two_creators_one_wins(tmp_path: Path) -> None:
    store = open_store(tmp_path / "t")
    plans = [plan_write(store, NUMBERS.schema, WriteMode.CREATE) for _ in range(2)]
    written = [write_fragments(plan.task, NUMBERS.to_batches()) for plan in plans]
    commit_write(plans[0], written[0])
    with pytest.raises(AlreadyExistsError):
        commit_write(plans[1], written[1])
    assert pennon.dataset(tmp_path / "t").count_rows() == 10_000


def test_appends_of_the_same_version_both_land(tmp_path: Path) -> None:
    base = pennon.write_dataset(NUMBERS, tmp_path / "t")
    pennon.write_dataset(NUMBERS, base, mode="append")
    assert pennon.write_dataset(NUMBERS, base, mode="append").count_rows() == 30_000


def test_a_failed_write_makes_no_version(tmp_path: Path) -> None:
    base = pennon.write_dataset(NUMBERS, tmp_path / "t")

    def source() -> Iterator[pa.RecordBatch]:
        yield NUMBERS.to_batches()[0]
        message = "the source broke"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="the source broke"):
        pennon.write_dataset(source(), base, schema=NUMBERS.schema, mode="append")
    assert base.latest_version == 1
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1
    for verb in ("open_writer", "write", "close", "put"):
        store = FaultyStore(MemoryStore(f"faults-{verb}"), Fault(1, verbs=frozenset({verb})))
        plan = plan_write(store, NUMBERS.schema, WriteMode.CREATE)
        with pytest.raises(StoreError):
            commit_write(plan, write_fragments(plan.task, NUMBERS.to_batches()))


def test_nulls_in_a_column_without_nulls_name_the_column(tmp_path: Path) -> None:
    inner = pa.field("x", pa.int64(), nullable=False)
    rows = pa.StructArray.from_arrays([pa.array([1, None])], fields=[inner])
    with pytest.raises(SchemaMismatchError, match=r"'s\.x'"):
        pennon.write_dataset(pa.table({"s": rows}), tmp_path / "t")


def test_fit_schema_error_names_all_differences() -> None:
    table = schema_from_arrow(
        pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.utf8())])
    )
    data = schema_from_arrow(pa.schema({"b": pa.large_utf8(), "c": pa.int8()}))
    with pytest.raises(SchemaMismatchError) as raised:
        fit_schema(table, data)
    for part in ("'a'", "'b'", "'c'", "large_string", "a: int64"):
        assert part in str(raised.value)


def test_fit_schema_assigns_field_ids_by_name() -> None:
    table = schema_from_arrow(pa.schema({"a": pa.int64(), "s": pa.struct({"x": pa.utf8()})}))
    data = schema_from_arrow(pa.schema({"s": pa.struct({"x": pa.utf8()}), "a": pa.int64()}))
    assert [field.id for field in fit_schema(table, data).walk()] == [1, 2, 0]


def test_write_reports_fragment_progress(tmp_path: Path) -> None:
    calls: list[tuple[str, int | None]] = []

    class Recorder(FragmentWriteProgress):
        def begin(self, fragment: FragmentMetadata, **_: Any) -> None:
            calls.append(("begin", fragment.physical_rows))

        def complete(self, fragment: FragmentMetadata, **_: Any) -> None:
            calls.append(("complete", fragment.physical_rows))

    pennon.write_dataset(NUMBERS, tmp_path / "t", max_rows_per_file=6000, progress=Recorder())
    assert calls == [
        ("begin", None),
        ("complete", 6000),
        ("begin", None),
        ("complete", 4000),
    ]
    files = FileSystemFragmentWriteProgress(str(tmp_path / "p"))
    pennon.write_dataset(NUMBERS, tmp_path / "t2", progress=files)
    assert [file.name for file in (tmp_path / "p").iterdir()] == ["fragment_0.json"]


def test_as_reader_returns_the_same_reader_without_validation() -> None:
    reader = NUMBERS.to_reader()
    assert as_reader(reader, validate=False) is reader
    assert as_reader(reader).read_all() == NUMBERS


def test_unknown_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="base_store_params"):
        pennon.write_dataset(NUMBERS, tmp_path / "t", base_store_params={"x": {}})
    assert str(FileVersion.parse("2.0")) == "2.0"


def test_a_limit_below_a_row_makes_no_file_of_every_row(tmp_path: Path) -> None:
    wide = pa.table({"t": ["0" * 1000] * 5000})
    written = pennon.write_dataset(wide, tmp_path / "t", max_bytes_per_file=10)
    assert _sizes(written) == [1024] * 4 + [904]
    very_wide = pa.table({"t": ["0" * 2**22] * 5})
    written = pennon.write_dataset(very_wide, tmp_path / "v", max_bytes_per_file=10)
    assert _sizes(written) == [2, 2, 1]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_write_of_two_long_texts_keeps_two_rows(version: str, tmp_path: Path) -> None:
    texts = ["plain text, plain words; " * 400, "words, plain words of plain text. " * 400]
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(pa.table({"text": texts}), uri, data_storage_version=version)
    assert pennon.dataset(uri).to_table()["text"].to_pylist() == texts
