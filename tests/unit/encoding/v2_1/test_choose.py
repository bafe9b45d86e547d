"""The choice of an encoding for a page from samples, at all sizes, and the values it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.v2_1.choose import encode_page
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.encodings import General
from pennon.encoding.v2_1.layouts import FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.page_rules import RULES_OF_2_1, RULES_OF_2_2, PageRules
from pennon.file import LanceFileReader, LanceFileWriter


def layout_of(array: pa.Array, rules: PageRules = RULES_OF_2_2) -> Layout:
    page = encode_page(array, 0, EncodingHints(), rules)
    assert page is not None
    return page.layout


def written(array: pa.Array, folder: Path, version: str) -> pa.Array:
    """Return what is read of an array that was written to a file."""
    path = str(folder / f"{version}.lance")
    table = pa.table({"x": array})
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    return LanceFileReader(path).read_all().to_table()["x"].combine_chunks()


def items_of(layout: Layout) -> int:
    """Return how many items the dictionary of a page has, 0 if there is none."""
    assert isinstance(layout, MiniBlock)
    return layout.num_dictionary_items


@pytest.mark.parametrize("count", [150, 3000, 50_000])
@pytest.mark.parametrize("run", [1, 40])
def test_few_wide_numbers_are_a_dictionary(count: int, run: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    few = rng.integers(1 << 61, 1 << 62, 10)
    numbers = pa.array(few[np.repeat(rng.integers(0, 10, count), run)[:count]])
    if run == 1:
        assert items_of(layout_of(numbers)) == 10
    assert items_of(layout_of(numbers, RULES_OF_2_1)) == 0
    assert written(numbers, tmp_path, "2.2").equals(numbers)


@pytest.mark.parametrize("run", [5, 50])
def test_dictionary_of_runs_counts_the_first_of_each_run(run: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(run)
    few = rng.integers(1 << 61, 1 << 62, 200)
    numbers = pa.array(np.repeat(few[rng.integers(0, 200, 4000)], run))
    assert items_of(layout_of(numbers)) == 200
    assert written(numbers, tmp_path, "2.2").equals(numbers)


def test_numbers_as_small_as_dictionary_indices_are_packed() -> None:
    rng = np.random.default_rng(1)
    assert items_of(layout_of(pa.array(rng.integers(0, 1000, 50_000)))) == 0
    assert items_of(layout_of(pa.array(rng.integers(0, 1 << 60, 50_000)))) == 0


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_few_strings_are_a_dictionary(share: float, version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    numbers, mask = rng.integers(0, 20, 30_000), rng.random(30_000) < share
    strings = pa.array([f"category {number}" for number in numbers], mask=mask)
    rules = RULES_OF_2_1 if version == "2.1" else RULES_OF_2_2
    assert items_of(layout_of(strings, rules)) == 20 + (share > 0)
    assert written(strings, tmp_path, version).equals(strings)


@pytest.mark.parametrize("count", [20_000, 90_000])
def test_long_pages_of_text_are_coded_in_two_halves(count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    words = [f"word {number % 300} of {number}" for number in rng.integers(0, 1 << 30, count)]
    strings = pa.array(words, mask=rng.random(count) < 0.1)
    assert written(strings, tmp_path, "2.1").equals(strings)


def test_large_values_are_compressed_if_a_sample_shrinks() -> None:
    rng = np.random.default_rng(4)
    noise = [rng.bytes(40_000) for _ in range(40)]
    layout = layout_of(pa.array(noise))
    assert isinstance(layout, FullZip)
    assert not isinstance(layout.values, General)
    text = [b"plain words " * 4000 if number == 20 else each for number, each in enumerate(noise)]
    mixed = layout_of(pa.array([*text[20:], *text[:20]]))
    assert isinstance(mixed, FullZip)
    assert isinstance(mixed.values, General)


def test_vectors_without_nulls_are_not_copied() -> None:
    items = pa.array(np.arange(100 * 300, dtype=np.float32))
    page = encode_page(
        pa.FixedSizeListArray.from_arrays(items, 300), 0, EncodingHints(), RULES_OF_2_1
    )
    assert page is not None
    (data,) = page.buffers
    assert (data.address, data.size) == (items.buffers()[1].address, 100 * 300 * 4)


def test_null_string_stores_no_bytes(tmp_path: Path) -> None:
    strings = pa.array(["ab", "cd", "ef"] * 50)
    validity = np.packbits(np.arange(150) % 3 != 1, bitorder="little")
    hidden = pa.Array.from_buffers(
        pa.string(), 150, [pa.py_buffer(validity), *strings.buffers()[1:]]
    )
    clean = pa.array(["ab", None, "ef"] * 50)
    pages = [encode_page(array, 0, EncodingHints(), RULES_OF_2_2) for array in (hidden, clean)]
    assert pages[0] is not None
    assert pages[1] is not None
    assert [b.to_pybytes() for b in pages[0].buffers] == [b.to_pybytes() for b in pages[1].buffers]
    assert written(hidden, tmp_path, "2.2").equals(clean)
