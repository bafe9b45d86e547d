"""Casts between whole numbers and dates, times, durations, and texts beside a time of day."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ExpressionError

NUMBERS = [3726, 0, None, 1, 86399]
TIMES = {
    "t32": (pa.int32(), pa.time32("s")),
    "t32m": (pa.int32(), pa.time32("ms")),
    "t64": (pa.int64(), pa.time64("us")),
    "t64n": (pa.int64(), pa.time64("ns")),
    "d32": (pa.int32(), pa.date32()),
    "ts": (pa.int64(), pa.timestamp("us")),
    "tsz": (pa.int64(), pa.timestamp("us", "UTC")),
    "du": (pa.int64(), pa.duration("us")),
}
ARROW = {
    "t32": "Time32(Second)",
    "t32m": "Time32(Millisecond)",
    "t64": "Time64(Microsecond)",
    "t64n": "Time64(Nanosecond)",
    "d32": "Date32",
    "ts": "Timestamp(Microsecond, None)",
    "du": "Duration(Microsecond)",
}
INTEGERS = {"Int32": pa.int32(), "Int64": pa.int64(), "UInt32": pa.uint32(), "UInt64": pa.uint64()}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> pennon.LanceDataset:
    columns: dict[str, Any] = {
        name: pa.array(NUMBERS, width).cast(kind) for name, (width, kind) in TIMES.items()
    }
    columns |= {name: pa.array(NUMBERS, kind) for name, kind in INTEGERS.items()}
    folder: Path = tmp_path_factory.mktemp("casts")
    return pennon.write_dataset(pa.table(columns), str(folder / "t"))


def made(table: pennon.LanceDataset, expression: str) -> list[Any]:
    found = table.to_table(columns={"x": expression})["x"]
    kind = found.type
    counts = pa.int32() if pa.types.is_temporal(kind) and kind.bit_width == 32 else pa.int64()
    values: list[Any] = found.cast(counts).to_pylist()
    return values


@pytest.mark.parametrize("name", ARROW)
@pytest.mark.parametrize("number", INTEGERS)
def test_integers_of_every_width_become_dates_and_times(
    table: pennon.LanceDataset, name: str, number: str
) -> None:
    """And back: the value is the count of days, or of units of time."""
    if name != "ts" or number == "Int64":
        there = f"arrow_cast({number}, '{ARROW[name]}')"
        assert made(table, there) == NUMBERS
        assert table.count_rows(filter=f"{there} = {name}") == 4
    back = f"arrow_cast({name}, '{number}')"
    assert made(table, back) == NUMBERS
    assert table.count_rows(filter=f"{back} = {number}") == 4


def test_literals_become_dates_and_times(table: pennon.LanceDataset) -> None:
    for condition in (
        "t32 = arrow_cast(3726, 'Time32(Second)')",
        "d32 = arrow_cast(3726, 'Date32')",
        "d32 = cast(3726 as date)",
        "cast(d32 as int) = 3726",
        "cast(ts as bigint) = 3726",
        "arrow_cast(tsz, 'Int64') = 3726",
    ):
        assert table.count_rows(filter=condition) == 1, condition


def test_time_cast_of_numbers_out_of_range_is_refused(table: pennon.LanceDataset) -> None:
    for expression in (
        "arrow_cast(t32, 'Int16')",
        "arrow_cast(d32, 'UInt8')",
        "arrow_cast(Int64 * 99999999, 'Date32')",
    ):
        with pytest.raises(ExpressionError):
            table.to_table(columns={"x": expression})
    assert made(table, "try_cast(Int64 * 99999999 as date)") == [None, 0, None, 99999999, None]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("t32 > '00:30:00'", 2),
        ("'00:30:00' < t32", 2),
        ("t32 = '01:02:06'", 1),
        ("t32 = '23:59:59'", 1),
        ("t32 = '01:02'", 0),
        ("t32m <= '00:00:03.726'", 3),
        ("t64 > '00:00:00.003'", 2),
        ("t64n > '00:00:00.000003'", 2),
        ("t32 BETWEEN '00:00:00' AND '02:00:00'", 3),
        ("t32 IN ('01:02:06', '00:00:00')", 2),
        ("t32 NOT IN ('01:02:06')", 3),
        ("arrow_cast('01:02:06', 'Time32(Second)') = t32", 1),
        ("t32 IS DISTINCT FROM '01:02:06'", 4),
    ],
)
def test_text_beside_a_time_of_day(table: pennon.LanceDataset, condition: str, rows: int) -> None:
    assert table.count_rows(filter=condition) == rows


@pytest.mark.parametrize("text", ["nonsense", "25:00:00", "01:02:06.5", ""])
def test_invalid_time_of_day_text_is_refused(table: pennon.LanceDataset, text: str) -> None:
    """So is one with a fraction that the column cannot have."""
    with pytest.raises(ExpressionError, match=r"is no time32\[s\]"):
        table.count_rows(filter=f"t32 = '{text}'")
