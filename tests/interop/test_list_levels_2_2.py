"""Lists of version 2.2, whose levels are runs, packed, or nothing but 0, in pages with and without dictionaries.

Both libraries write each shape in several pages or chunks, and both read it: whole, by slices, by rows in any order, and
by filters that keep few or many rows; then again after rows were deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.encoding.v2_1.encodings import Rle
from pennon.encoding.v2_1.layouts import MiniBlock
from pennon.encoding.v2_1.page import NO_BITS
from tests.interop.layouts import layouts_of, open_file

Random = np.random.Generator
Items = Callable[[Random, int], pa.Array]


def numbers(random: Random, count: int) -> pa.Array:
    return pa.array(random.integers(0, 1 << 40, count))


def few_numbers(random: Random, count: int) -> pa.Array:
    """Numbers that become indices into a dictionary."""
    return pa.array(random.integers(0, 300, count) << 33)


def some_numbers(random: Random, count: int) -> pa.Array:
    return pa.array(random.integers(0, 300, count) << 33, mask=random.random(count) < 0.2)


def words(random: Random, count: int) -> pa.Array:
    return pa.array([f"word {n}" for n in random.integers(0, 50, count)])


def structs(random: Random, count: int) -> pa.Array:
    parts = [numbers(random, count), some_numbers(random, count)]
    return pa.StructArray.from_arrays(parts, ["x", "y"], mask=pa.array(random.random(count) < 0.01))


def of_sizes(sizes: np.ndarray, items: Items, random: Random, nulls: float = 0) -> pa.Array:
    gone = random.random(len(sizes)) < nulls
    sizes = np.where(gone, 0, sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    inner = items(random, int(offsets[-1]))
    return pa.ListArray.from_arrays(
        pa.array(offsets), inner, mask=pa.array(gone) if nulls else None
    )


def lists(
    rows: int, low: int, high: int, items: Items, nulls: float = 0
) -> Callable[[Random], pa.Array]:
    """Return a maker of lists of ``low`` to ``high`` items."""
    return lambda random: of_sizes(random.integers(low, high + 1, rows), items, random, nulls)


def lists_of(low: int, high: int, items: Items, nulls: float = 0) -> Items:
    """Return a maker of items that are lists themselves."""
    return lambda random, count: of_sizes(
        random.integers(low, high + 1, count), items, random, nulls
    )


def in_struct(make: Callable[[Random], pa.Array]) -> Callable[[Random], pa.Array]:
    def made(random: Random) -> pa.Array:
        array = make(random)
        return pa.StructArray.from_arrays(
            [array], ["l"], mask=pa.array(random.random(len(array)) < 0.01)
        )

    return made


SHAPES: dict[str, Callable[[Random], pa.Array]] = {
    "random sizes": lists(40_000, 0, 7, numbers),
    "random sizes, dictionary": lists(60_000, 0, 7, few_numbers),
    "random sizes, dictionary and NULLs": lists(60_000, 0, 7, some_numbers, 0.1),
    "dictionary of strings": lists(30_000, 0, 5, words, 0.1),
    "long": lists(2_000, 0, 200, numbers),
    "long, none empty": lists(2_000, 1, 200, numbers),
    "all of one size": lists(3_000, 60, 60, numbers),
    "one item each": lists(30_000, 1, 1, numbers, 0.001),
    "longer than chunks": lists(40, 0, 9_000, numbers, 0.1),
    "mostly NULL": lists(120_000, 0, 8, numbers, 0.98),
    "mostly empty": lambda random: of_sizes(
        np.maximum(random.integers(-300, 9, 90_000), 0), numbers, random
    ),
    "all NULL or empty, but one": lambda random: of_sizes(
        np.arange(9_000) // 8_999 * 5, numbers, random, 0.5
    ),
    "lists of lists": lists(4_000, 0, 3, lists_of(20, 60, numbers)),
    "lists of NULL and empty lists": lists(4_000, 0, 5, lists_of(0, 40, some_numbers, 0.05), 0.02),
    "lists of lists of lists": lists(500, 2, 2, lists_of(3, 3, lists_of(0, 30, numbers))),
    "lists of structs": lists(3_000, 0, 90, structs, 0.01),
    "lists in structs": in_struct(lists(3_000, 0, 90, numbers, 0.01)),
    "NULLs in runs, no lists": lambda random: pa.array(
        random.integers(0, 1 << 40, 50_000), mask=np.arange(50_000) // 70 % 9 == 0
    ),
}


def check(dataset: Any, whole: pa.Table, random: Random) -> None:
    """Compare what a table has with what was written."""
    rows = len(whole)
    assert dataset.to_table().equals(whole)
    for count in (1, 2, 60, rows // 9):
        some = random.integers(0, rows, count)
        assert dataset.take(some.tolist()).equals(whole.take(pa.array(some)))
    low, high = sorted(random.integers(0, rows + 1, 2).tolist())
    part = dataset.to_table(offset=low, limit=high - low)
    assert part.equals(whole.slice(low, high - low))
    keys = whole["key"].to_numpy()
    for share in (1, 20, 500):
        kept = np.flatnonzero(keys < share)
        assert dataset.to_table(filter=f"key < {share}").equals(whole.take(pa.array(kept)))


@pytest.mark.parametrize("name", SHAPES)
def test_lists_of_2_2_are_read_by_both(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(len(name))
    array = SHAPES[name](random)
    table = pa.table(
        {"c": array, "key": pa.array(random.integers(0, 1000, len(array)), pa.int32())}
    )
    gone = "key % 5 = 2"
    kept = table.filter(pa.compute.not_equal(pa.array(table["key"].to_numpy() % 5), 2))
    for writer in (lance, pennon):
        uri = str(tmp_path / writer.__name__)
        writer.write_dataset(
            table, uri, data_storage_version="2.2", max_rows_per_file=len(table) * 2 // 3
        )
        check(pennon.dataset(uri), table, random)
        if writer is pennon:
            assert lance.dataset(uri).to_table().equals(table)
        writer.dataset(uri).delete(gone)
        check(pennon.dataset(uri), kept, random)


def test_lists_of_2_2_by_pylance_have_levels_of_each_kind(tmp_path: Path) -> None:
    """If pylance encodes the shapes above in other ways in a later release, they need other sizes."""
    found: set[object] = set()
    for name in ("random sizes, dictionary", "long", "long, none empty", "lists in structs"):
        table = pa.table({"c": SHAPES[name](np.random.default_rng(len(name)))})
        lance.write_dataset(table, str(tmp_path / name), data_storage_version="2.2")
        (path,) = (tmp_path / name / "data").iterdir()
        for layout in layouts_of(open_file(path)):
            assert isinstance(layout, MiniBlock)
            rep, definition = layout.rep, layout.definition
            found.add(
                "no levels" if definition is None else "zeros" if definition == NO_BITS else ""
            )
            found.add("dictionary" if layout.dictionary else "none")
            found.add((isinstance(rep, Rle), isinstance(definition, Rle)))
    runs = {(True, True), (True, False), (False, True), (False, False)}
    assert found == {*runs, "no levels", "zeros", "", "dictionary", "none"}
