"""Statistics of version 0.1, value by value, beside those that pylance writes of the same columns."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.proto import file_pb2
from tests.interop.oracle import Oracle

ROWS = 300
GROUPS = [1, 7, 64, 1000]
TABLES = 24
FAST = 10

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTEGERS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
KINDS: list[pa.DataType] = [
    *INTEGERS,
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.date64(),
    pa.decimal128(38, 3),
    pa.decimal128(5, 0),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
]
FLOATS = [0.0, -0.0, 1.5, -1e30, float("nan"), float("inf"), float("-inf"), 1e-40]
STARTS = ["", "a", "ä" * 31, "a" * 63, "a" * 64, "\U0010ffff" * 16, "\x7f" * 64, "ö" * 33]
ENDS = ["", "b", "\U0010ffff", "ä"]
RAW = [b"", b"\x00", b"\xff" * 63, b"\xff" * 64, b"a" * 64 + b"\xff", b"\xfe" + b"\xff" * 70]


def value(chance: random.Random, kind: pa.DataType) -> Any:
    if kind in INTEGERS:
        signed = pa.types.is_signed_integer(kind)
        bits = chance.randrange(1, kind.bit_width + 1)
        low = -(2 ** (bits - 1)) if signed else 0
        return chance.randint(low, 2 ** (bits - signed) - 1)
    if pa.types.is_floating(kind):
        return chance.choice(FLOATS) if chance.random() < 0.6 else chance.uniform(-9, 9)
    if pa.types.is_boolean(kind):
        return chance.random() < 0.8
    if pa.types.is_date(kind):
        return date.fromordinal(chance.randrange(1, date(9999, 1, 1).toordinal()))
    if pa.types.is_decimal(kind):
        most = 10 ** chance.randrange(kind.precision + 1) - 1
        return Decimal(chance.randint(-most, most)).scaleb(-kind.scale)
    if kind in (pa.binary(), pa.large_binary()):
        return chance.choice(RAW) + chance.randbytes(chance.randrange(3))
    return chance.choice(STARTS) + chance.choice(ENDS)


def column(chance: random.Random, kind: pa.DataType, share: float) -> pa.Array:
    """Return values of which a share is NULL, and often few are different."""
    some = [value(chance, kind) for _ in range(chance.choice([1, 3, ROWS]))]
    picked = [None if chance.random() < share else chance.choice(some) for _ in range(ROWS)]
    return pa.array(picked, kind)


def table_of(seed: int) -> pa.Table:
    """Return a random table of 24 columns, some of them in a struct."""
    chance = random.Random(seed)
    fields, arrays = [], []
    for number in range(24):
        kind = chance.choice(KINDS)
        share = chance.choice([0, 0, 0.02, 0.5, 1])
        fields.append(pa.field(f"c{number}", kind, nullable=share > 0 or chance.random() < 0.5))
        arrays.append(column(chance, kind, share))
    inner = pa.StructArray.from_arrays(arrays[:3], fields=fields[:3])
    schema = pa.schema([pa.field("s", inner.type, nullable=False), *fields[3:]])
    return pa.Table.from_arrays([inner, *arrays[3:]], schema=schema)


@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(FAST), id="some"),
        pytest.param(range(FAST, TABLES), id="the rest", marks=pytest.mark.slow),
    ],
)
def test_statistics_0_1_equal_pylance(newest: Oracle, seeds: range, tmp_path: Path) -> None:
    """240 columns, and 576 with the slow ones."""
    compared = 0
    for seed in seeds:
        table, group = table_of(seed), GROUPS[seed % len(GROUPS)]
        options: dict[str, Any] = {"data_storage_version": "legacy", "max_rows_per_group": group}
        newest.write(tmp_path / f"t{seed}", table, **options)
        pennon.write_dataset(table, tmp_path / f"o{seed}", **options)
        theirs, ours = (statistics_of(tmp_path / f"{who}{seed}") for who in "to")
        assert ours.keys() == theirs.keys()
        for field, pages in theirs.items():
            missed = _missed(table, field, group)
            assert len(ours[field]) == len(pages)
            for number, (mine, its) in enumerate(zip(ours[field], pages, strict=True)):
                least = missed.get(number - 2)
                assert mine == its or (least and mine > least), (seed, field, number)
        compared += len({field.split(".")[0] for field in ours})
    assert compared >= 24 * len(seeds)


def _missed(table: pa.Table, field: str, group: int) -> dict[int, bytes]:
    """Return the greatest text of the row groups of which the oracle cuts one within a character.

    It cuts first, and then does not see that such a text is the greatest.
    """
    number, what = field.split(".")
    at = int(number)
    column = table["s"].combine_chunks().field(at - 1) if at < 4 else table.column(at - 3)
    if what != "max_value" or column.type not in (pa.string(), pa.large_string()):
        return {}
    found = {}
    for start in range(0, ROWS, group):
        values = [v.encode() for v in column.slice(start, group).to_pylist() if v is not None]
        if any(len(value) > 64 and value[64] & 0xC0 == 0x80 for value in values):
            found[start // group] = max(values)
    return found


def statistics_of(uri: Path) -> dict[str, list[Any]]:
    """Return NULL counts and bounds by field id and kind, a value for each row group.

    Decoded here as the documents say, by hand; bounds of fixed width as their bytes, where NaN and
    signs of zeros are different values.
    """
    (path,) = (uri / "data").iterdir()
    data = path.read_bytes()
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, position)
    statistics = file_pb2.Metadata.FromString(data[position + 4 : position + 4 + size]).statistics
    names = {field.id: field for field in statistics.schema}
    found: dict[str, list[Any]] = {}
    for field in statistics.schema:
        if field.parent_id == -1:
            continue
        entry = statistics.page_table_position + field.id * 16
        at, count = struct.unpack_from("<qq", data, entry)
        name = f"{names[field.parent_id].name}.{field.name}"
        found[name] = [field.logical_type, field.nullable, *_values(data, field, at, count)]
    return found


@pytest.mark.filterwarnings("ignore::pennon.errors.DataLossWarning")
def test_statistics_0_1_bound_of_long_texts_keeps_matches(newest: Oracle, tmp_path: Path) -> None:
    """The oracle's bound is below a value, and it does not find that; Pennon does, in both files."""
    table = pa.table({"x": ["a" * 63 + "0", "a" * 63 + "\x80"]})
    newest.write(tmp_path / "t", table, data_storage_version="legacy")
    pennon.write_dataset(table, tmp_path / "o", data_storage_version="legacy")
    theirs, ours = (statistics_of(tmp_path / who)["0.max_value"] for who in "to")
    greatest = ("a" * 63 + "\x80").encode()
    assert theirs[2] < greatest < ours[2]
    condition = f"x > '{'a' * 63}2'"
    assert newest.scan(tmp_path / "t", filter=condition).num_rows == 0
    for who in "to":
        assert pennon.dataset(tmp_path / who).to_table(filter=condition) == table.slice(1)
    assert newest.scan(tmp_path / "o", filter=condition).num_rows == 1


def _values(data: bytes, field: file_pb2.Field, position: int, count: int) -> Sequence[Any]:
    kind = field.logical_type
    if kind in ("string", "large_string", "binary", "large_binary"):
        ends = struct.unpack_from(f"<{count + 1}q", data, position)
        return [data[a:b] for a, b in pairwise(ends)]
    if kind == "bool":
        bits = np.frombuffer(data, np.uint8, -(-count // 8), position)
        return np.unpackbits(bits, bitorder="little")[:count].tolist()
    widths = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}
    widths |= {"float": 4, "date32:day": 4}
    width = 16 if kind.startswith("decimal") else widths.get(kind, 8)
    return [data[position + n * width : position + (n + 1) * width] for n in range(count)]
