"""BTREE on whole numbers: answers, and the pages that it reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.index.scalar.page_bounds import PageBounds

ROWS = 20_000


def numbers(kind: pa.DataType) -> pa.Array:
    """Return numbers of a type, some of them twice, in no order; each eighth is NULL."""
    random = np.random.default_rng(5)
    values = random.integers(0, 120 if kind.bit_width == 8 else 3 * ROWS, ROWS)
    if pa.types.is_signed_integer(kind):
        values -= 60
    return (
        pa.array(values, mask=random.random(ROWS) < 0.125)
        .cast(pa.int32() if kind == pa.date32() else pa.int64())
        .cast(kind)
    )


def pages_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which pages are added that are read from now on."""
    read: list[int] = []
    real = PageBounds.check

    def spy(bounds: PageBounds, first: int, values: pa.Array, size: int) -> None:
        read.extend(range(first, first + -(-len(values) // size)))
        real(bounds, first, values, size)

    monkeypatch.setattr(PageBounds, "check", spy)
    return read


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.int32(),
        pa.int64(),
        pa.uint64(),
        pa.date32(),
        pa.timestamp("us"),
    ],
    ids=str,
)
def test_btree_lookup_of_number_lists(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"n": numbers(kind), "row": range(ROWS)})
    made = pennon.write_dataset(table, tmp_path / "t", max_rows_per_file=7_000)
    made.create_scalar_index("n", "BTREE", zone_size=256)
    there = table["n"].drop_null()
    least, greatest = pa.compute.min_max(there).values()
    for wanted in (
        there[:1],
        there[5:12],
        there[:3000],
        [least],
        [greatest],
        [least, None],
        [None],
    ):
        items = pa.array([each.as_py() if each is not None else None for each in wanted], kind)
        condition = pa.compute.field("n").isin(items)
        if not items.null_count:
            expected = table.filter(pa.compute.is_in(table["n"], items))["row"]
            assert made.to_table(["row"], condition)["row"].to_pylist() == expected.to_pylist()
        one = pa.compute.field("n") == items[0]
        expected = table.filter(pa.compute.equal(table["n"], items[0]))["row"]
        assert made.to_table(["row"], one)["row"].to_pylist() == expected.to_pylist()


def test_few_numbers_read_few_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": pa.array(np.random.default_rng(5).permutation(ROWS))})
    made = pennon.write_dataset(table, tmp_path / "t")
    made.create_scalar_index("n", "BTREE", zone_size=100)
    read = pages_read(monkeypatch)
    assert made.to_table(filter="n in (250, 5, 299, 19999)").num_rows == 4
    assert sorted(read) == [0, 2, 199]
    read.clear()
    many = ", ".join(map(str, range(0, ROWS, 100)))
    assert made.to_table(filter=f"n in ({many})").num_rows == ROWS // 100
    assert read == []  # to read the column is cheaper


def test_btree_is_unused_for_many_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": pa.array(np.random.default_rng(5).permutation(ROWS))})
    made = pennon.write_dataset(table, tmp_path / "t")
    made.create_scalar_index("n", "BTREE", zone_size=100)
    read = pages_read(monkeypatch)
    items = pa.array(range(0, ROWS, 10))
    assert made.to_table(filter=pc.field("n").isin(items)).num_rows == len(items)
    assert made.count_rows("n > 5000") == ROWS - 5001
    assert read == []


def test_a_value_in_each_of_many_pages(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(np.random.default_rng(5).permutation(ROWS))})
    made = pennon.write_dataset(table, tmp_path / "t")
    made.create_scalar_index("n", "BTREE", zone_size=100)
    scanner = made.scanner(filter=pc.field("n").isin(pa.array(range(0, ROWS, 200))))
    assert scanner.to_table().num_rows == ROWS // 200
    assert f"rows={ROWS // 200} of {ROWS}" in scanner.analyze_plan()


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()], ids=str)
def test_values_in_most_pages(
    kind: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of which most are wanted are read as one; a block of them begins with NULLs, the last one is short."""
    random = np.random.default_rng(9)
    values = pa.array(random.integers(0, 2 * ROWS, ROWS), mask=random.random(ROWS) < 0.1).cast(kind)
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.greater(values, 2.0 * ROWS - 300), float("nan"), values)
    table = pa.table({"n": values, "row": range(ROWS)})
    made = pennon.write_dataset(table, tmp_path / "t", max_rows_per_file=7_000)
    made.create_scalar_index("n", "BTREE", zone_size=100)
    read = pages_read(monkeypatch)
    many = values.drop_null().sort()[::120]
    for step, is_remembered in ((1, False), (1, False), (50, True), (1, True)):
        items = many[::step]
        read.clear()
        found = made.to_table(["row"], pc.field("n").isin(items))["row"].to_pylist()
        assert found == table.filter(pc.is_in(values, items))["row"].to_pylist()
        if is_remembered and not pa.types.is_floating(
            kind
        ):  # of floats no page is read as part of a block
            assert read == []  # most pages were wanted twice


def test_a_block_with_other_values_than_its_bounds_is_not_used(tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(np.random.default_rng(5).permutation(ROWS))})
    made = pennon.write_dataset(table, tmp_path / "t")
    made.create_scalar_index("n", "BTREE", zone_size=100)
    (folder,) = (tmp_path / "t" / "_indices").iterdir()
    other = pennon.write_dataset(pa.table({"n": pa.array(range(1, ROWS + 1))}), tmp_path / "o")
    other.create_scalar_index("n", "BTREE", zone_size=100)
    (theirs,) = (tmp_path / "o" / "_indices").iterdir()
    (folder / "page_data.lance").write_bytes((theirs / "page_data.lance").read_bytes())
    opened = pennon.dataset(tmp_path / "t")
    items = pa.array(range(0, ROWS, 133))
    scanner = opened.scanner(filter=pc.field("n").isin(items))
    assert sorted(scanner.to_table()["n"].to_pylist()) == items.to_pylist()
