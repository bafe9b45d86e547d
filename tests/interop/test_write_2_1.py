"""Data files of versions 2.1 and 2.2 that Pennon writes, read by pylance and by Pennon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, MiniBlock
from pennon.errors import UnsupportedError
from pennon.file import LanceFileReader
from pennon.file.container.write_limits import PageLimits
from pennon.file.open import create_container_file
from pennon.io import open_store
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import FileVersion
from tests.interop.equality import difference
from tests.interop.layouts import classes_in
from tests.interop.null_structs import with_null_structs
from tests.interop.oracle import MIDDLE, Oracle, OracleError
from tests.interop.random_arrays import NULLS, random_array
from tests.interop.random_tables import as_lance_reads
from tests.interop.test_matrix_2_0 import TYPES

SIZES = [1, 100, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 9000]
INDICES = [0, 5, 99, 1022, 1023, 1024, 2048, 4096, 8999]
KEY = "lance-encoding:"
VERSIONS = ["2.1", "2.2"]


def write(
    path: Path,
    table: pa.Table,
    batch_rows: int | None = None,
    version: str = "2.1",
    **options: Any,
) -> int:
    """Write a table to one data file; return its size in bytes."""
    sink = open_store(path.parent).open_writer(path.name)
    schema = schema_from_arrow(table.schema)
    limits = PageLimits(**options)
    with create_container_file(sink, schema, FileVersion.parse(version), limits=limits) as writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write(batch)
    return path.stat().st_size


def differences(oracle: Oracle, files: dict[Path, pa.Table]) -> list[str]:
    """Read each file whole, and scattered rows of it, with the oracle and with us."""
    calls: list[dict[str, Any]] = []
    for path, table in files.items():
        calls.append({"op": "read_file", "path": str(path), "out": True})
        rows = [row for row in INDICES if row < table.num_rows]
        calls.append({"op": "take_file", "path": str(path), "out": True, "indices": rows})
    found = []
    answers = iter(oracle.run(calls))
    for path, table in files.items():
        wanted = as_lance_reads(table)
        rows = [row for row in INDICES if row < table.num_rows]
        ours = LanceFileReader(path)
        taken = ours.take_rows(rows).to_table()
        for who, got, source in (
            ("oracle, scan", next(answers), wanted),
            ("oracle, take", next(answers), wanted.take(rows)),
            ("ours, scan", ours.read_all().to_table(), wanted),
            ("ours, take", taken, wanted.take(rows)),
        ):
            broken = isinstance(got, OracleError)
            different = str(got)[:300] if broken else difference(got, source)
            if different:
                found.append(f"{path.name} {table.schema.types[0]} {who}: {different}")
    return found


@pytest.mark.parametrize("rows", [9, 1030])
@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_of_pennon_at_2_1_is_read_by_pylance(
    newest: Oracle, version: str, nulls: str, rows: int, folder: Path
) -> None:
    files = {}
    for number, t in enumerate(TYPES):
        rng = np.random.default_rng(number)
        array = random_array(rng, t, rows, nulls)
        if nulls == "some" and not isinstance(t, pa.BaseExtensionType):
            array = with_null_structs(rng, array)
        table = pa.table([array], ["c"])
        path = folder / f"{number}.lance"
        try:
            write(path, table, version=version)
        except UnsupportedError:
            assert "struct<>" in str(t)  # which no reader gets back if one is NULL
            continue
        files[path] = table
    assert not differences(newest, files)


def _some_null(array: pa.Array) -> pa.Array:
    keep = pa.array(np.arange(len(array)) % 7 != 3)
    return pa.compute.if_else(keep, array, pa.scalar(None, array.type))


_NUMBERS = np.arange(5000)
_WAVES = pa.array(np.sin(_NUMBERS / 100))
_TEXT = pa.array([f"some text, number {i} and {i * 7919 % 100_003}" for i in range(5000)])
_LONG = pa.array([f"{i * 7919 % 100_003:0300d}" for i in range(500)])
_RNG = np.random.default_rng(3)

FORCED: dict[str, tuple[pa.Array, dict[str, str], set[type]]] = {
    "packed": (pa.array(_NUMBERS), {}, {MiniBlock, e.InlineBitpacking}),
    "flat": (pa.array(_RNG.integers(-9, 9, 5000)), {}, {MiniBlock, e.Flat}),
    "none": (pa.array(_NUMBERS), {"compression": "none"}, {MiniBlock, e.Flat}),
    "runs": (pa.array(_NUMBERS // 50), {}, {MiniBlock, e.Rle}),
    "no runs": (
        pa.array(_NUMBERS // 50),
        {"rle-threshold": "0.001"},
        {MiniBlock, e.InlineBitpacking},
    ),
    "streams": (
        _WAVES,
        {"compression": "zstd", "bss": "on"},
        {MiniBlock, e.General, e.ByteStreamSplit},
    ),
    "lz4": (_TEXT, {"compression": "lz4"}, {MiniBlock, e.General, e.Variable}),
    "zstd": (_TEXT, {"compression": "zstd", "compression-level": "9"}, {MiniBlock, e.General}),
    "fsst": (_TEXT, {}, {MiniBlock, e.Fsst, e.Variable}),
    "plain text": (_TEXT, {"compression": "none"}, {MiniBlock, e.Variable}),
    "dictionary": (pa.array([f"value {i % 30}" for i in range(5000)]), {}, {MiniBlock, e.Variable}),
    "decimals": (pa.array(_NUMBERS % 5).cast(pa.decimal128(38, 2)), {}, {MiniBlock}),
    "long text": (_LONG, {}, {FullZip, e.Fsst}),
    "long text, chunks": (_LONG, {"structural-encoding": "miniblock"}, {MiniBlock, e.Fsst}),
    "text one by one": (_TEXT, {"structural-encoding": "fullzip"}, {FullZip, e.Fsst}),
    "numbers one by one": (pa.array(_NUMBERS), {"structural-encoding": "fullzip"}, {FullZip}),
    "compressed one by one": (
        pa.array([b"z" * 40_000, b"", b"y" * 100] * 5),
        {"structural-encoding": "fullzip"},
        {FullZip, e.General},
    ),
    "vectors": (
        pa.FixedSizeListArray.from_arrays(_some_null(pa.array(_RNG.random(60_000))), 100),
        {},
        {FullZip, e.FixedSizeList},
    ),
    "small vectors": (
        pa.FixedSizeListArray.from_arrays(_some_null(pa.array(_RNG.random(60_000))), 3),
        {},
        {MiniBlock, e.FixedSizeList},
    ),
    "bits": (pa.array([[True, None, False]] * 3000, pa.list_(pa.bool_(), 3)), {}, {MiniBlock}),
    "all NULL": (pa.nulls(5000, pa.int32()), {}, {ConstantPage}),
    "empty lists": (pa.array([[], None] * 50, pa.list_(pa.int8())), {}, {ConstantPage}),
}


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("name", FORCED)
def test_each_encoding_of_pennon_at_2_1_is_read_by_pylance(
    oracle_2_1: Oracle, name: str, folder: Path, *, null: bool
) -> None:
    array, said, classes = FORCED[name]
    if null:
        array = _some_null(array)
    metadata = {KEY + key: value for key, value in said.items()}
    table = pa.table([array], pa.schema([pa.field("c", array.type, metadata=metadata)]))
    path = folder / "x.lance"
    write(path, table)
    assert classes <= classes_in(path)
    assert not differences(oracle_2_1, {path: table})
    lists = pa.ListArray.from_arrays(pa.array([0, 0, len(array)], pa.int32()), array)
    if oracle_2_1.release == MIDDLE and name == "empty lists":
        return  # it loses empty lists in lists, in its own files, too
    nested = pa.table([lists], pa.schema([pa.field("c", lists.type, metadata=metadata)]))
    write(path, nested)
    assert not differences(oracle_2_1, {path: nested})


FORCED_IN_2_2: dict[str, tuple[pa.Array, dict[str, str], set[type]]] = FORCED | {
    "plain text": (_TEXT, {"compression": "none"}, {MiniBlock, e.Variable}),
    "decimals": (pa.array(_NUMBERS % 5).cast(pa.decimal128(38, 2)), {}, {MiniBlock}),
    "few numbers": (
        pa.array(_RNG.integers(0, 1 << 60, 40)[_NUMBERS % 40]),
        {},
        {MiniBlock, e.InlineBitpacking},
    ),
    "few floats": (pa.array(_WAVES.to_numpy()[_NUMBERS % 40], pa.float32()), {}, {MiniBlock}),
    "many numbers again": (
        pa.array(_RNG.integers(0, 1 << 50, 1200)[_NUMBERS * 7 % 1200]),
        {},
        {MiniBlock, e.OutOfLineBitpacking},
    ),
    "few wide binaries": (
        pa.array([b"%032d" % (n % 3) for n in range(5000)], pa.binary(32)),
        {},
        {MiniBlock, e.General},
    ),
    "items, zstd": (
        pa.array([f"value number {n % 200}" for n in range(5000)]),
        {"dict-values-compression": "zstd", "dict-values-compression-level": "9"},
        {MiniBlock, e.General},
    ),
    "items, plain": (
        pa.array([f"value number {n % 200}" for n in range(5000)]),
        {"dict-values-compression": "none"},
        {MiniBlock, e.Variable},
    ),
    "levels in runs": (
        pa.array(_RNG.random(5000), mask=_NUMBERS // 700 % 2 == 1),
        {},
        {MiniBlock, e.Rle},
    ),
    "one number": (pa.array([7] * 5000), {}, set()),
    "one bit": (pa.array([True] * 5000), {}, set()),
    "one text": (pa.array(["the same"] * 5000), {}, set()),
    "one empty text": (pa.array([""] * 5000, pa.large_string()), {}, set()),
    "one long text": (pa.array(["the same " * 500] * 500), {}, set()),
    "one wide value": (pa.array([b"x" * 40] * 5000, pa.binary(40)), {}, set()),
    "one decimal": (pa.array([7] * 5000).cast(pa.decimal256(50, 2)), {}, set()),
}
"""What 2.2 has besides, where one value for all is a page of its own if there are no levels."""


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("name", FORCED_IN_2_2)
def test_each_encoding_of_pennon_at_2_2_is_read_by_pylance(
    newest: Oracle, name: str, folder: Path, *, null: bool
) -> None:
    array, said, classes = FORCED_IN_2_2[name]
    if not null and name.startswith("one "):
        classes = {ConstantPage}
    if null:
        array = _some_null(array)
    metadata = {KEY + key: value for key, value in said.items()}
    table = pa.table([array], pa.schema([pa.field("c", array.type, metadata=metadata)]))
    path, nested, few = folder / "x.lance", folder / "n.lance", folder / "f.lance"
    size_bytes = write(path, table, version="2.2")
    assert classes <= classes_in(path)
    newest.call("write_file", path=str(folder / "t.lance"), table=table, version="2.2")
    assert size_bytes <= 1.02 * (folder / "t.lance").stat().st_size
    lists = pa.ListArray.from_arrays(pa.array([0, 0, *range(1, len(array), 3)], pa.int32()), array)
    write(few, table[:9], version="2.2")
    files = {path: table, few: table[:9], nested: pa.table([lists], ["c"])}
    write(nested, files[nested], version="2.2")
    assert not differences(newest, files)


def test_packed_structs_and_blobs(oracle_2_1: Oracle, folder: Path) -> None:
    rows = [{"x": i, "y": i / 3} if i % 3 else None for i in range(2000)]
    packed = pa.field("c", pa.struct([("x", pa.int32()), ("y", pa.float64())]))
    packed = packed.with_metadata({"packed": "true"})
    table = pa.table([pa.array(rows, packed.type)], pa.schema([packed]))
    write(folder / "p.lance", table)
    assert e.PackedStruct in classes_in(folder / "p.lance")
    assert not differences(oracle_2_1, {folder / "p.lance": table})
    blob = pa.field("c", pa.large_binary(), metadata={KEY + "blob": "true"})
    values = [b"a" * 5000, None, b"", b"b"] * 30
    table = pa.table([pa.array(values, pa.large_binary())], pa.schema([blob]))
    write(folder / "b.lance", table)
    assert BlobPage in classes_in(folder / "b.lance")
    got = LanceFileReader(folder / "b.lance").read_all().to_table()
    assert difference(got, table) is None


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.large_binary(), pa.bool_()], ids=str)
def test_dictionaries_without_values_in_lists_are_read_by_pylance(
    newest: Oracle, kind: pa.DataType, folder: Path
) -> None:
    """Items that are all NULL need no item of a dictionary, but their indices name one."""
    files = {}
    for name, items in {"none": pa.array([], kind), "a NULL": pa.nulls(1, kind)}.items():
        indices = pa.array([0, None] * 5 if len(items) else [None] * 10, pa.int32())
        values = pa.DictionaryArray.from_arrays(indices, items)
        structs = pa.StructArray.from_arrays([values], ["x"], mask=pa.array([True, False] * 5))
        offsets = pa.array([0, 2, 2, 10], pa.int32())
        table = pa.table(
            {
                "l": pa.ListArray.from_arrays(offsets, values),
                "s": pa.ListArray.from_arrays(offsets, structs),
            }
        )
        files[folder / f"{name}.lance"] = table
        write(folder / f"{name}.lance", table)
    assert not differences(newest, files)


def test_lists_with_many_empty_rows_between_items_are_read_by_pylance(
    oracle_2_1: Oracle, folder: Path
) -> None:
    rows = [[1], *[[]] * 70_000, [2, 3], *[None] * 70_000, [4]]
    table = pa.table({"c": pa.array(rows, pa.list_(pa.int32()))})
    bits = pa.table({"c": pa.array([[True], *[[]] * 70_000, [None]], pa.list_(pa.bool_()))})
    write(folder / "n.lance", table)
    write(folder / "b.lance", bits)
    assert not differences(oracle_2_1, {folder / "n.lance": table, folder / "b.lance": bits})


def test_written_bytes_are_deterministic(folder: Path) -> None:
    table = pa.table({"t": _TEXT, "n": _some_null(pa.array(_NUMBERS)), "w": _WAVES})
    write(folder / "1.lance", table, 900)
    write(folder / "2.lance", table, 900)
    assert (folder / "1.lance").read_bytes() == (folder / "2.lance").read_bytes()
