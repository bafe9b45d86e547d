"""Field metadata ``lance-encoding:*`` chooses encodings in Pennon's files, which pylance reads.

For each key: what our page is made of, and whether the oracle's own file with the same metadata is
made of the same.  Where it is not, ours is the smaller one (see `WE_DO_BETTER`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pytest

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import BlobPage, FullZip, Layout, MiniBlock
from pennon.errors import ArgumentError
from pennon.file import LanceFileReader
from pennon.file.container.column_metadata import Direct
from pennon.file.open import open_container_file
from pennon.file.v2_1.leaf_reader import parse_page_layout
from pennon.io import open_store
from tests.interop.equality import difference
from tests.interop.layouts import classes_in, layouts_of, open_file
from tests.interop.oracle import Oracle
from tests.interop.test_write_2_1 import KEY, differences, write

ROWS = 20_000
_NUMBERS = np.arange(ROWS)
_RNG = np.random.default_rng(4)

COLUMNS: dict[str, pa.Array] = {
    "runs": pa.array(_NUMBERS // 100),
    "numbers": pa.array(_RNG.integers(0, 1 << 40, ROWS)),
    "waves": pa.array(np.sin(_NUMBERS / 1000)),
    "few": pa.array([f"value number {n % 500}" for n in range(ROWS)]),
    "decimals": pa.array(_NUMBERS % 500).cast(pa.decimal128(38, 2)),
    "text": pa.array([f"some text {n} and {n * 7919 % 100_003}" for n in range(ROWS)]),
    "long": pa.array([f"{n * 7919 % 100_003:0300d}" for n in range(300)]),
    "vectors": pa.FixedSizeListArray.from_arrays(pa.array(_RNG.random(ROWS)), 40),
    "rows": pa.array([{"x": n, "y": n / 3} for n in range(ROWS)]),
    "blobs": pa.array([b"a" * 5000, None, b"", b"b"] * 30, pa.large_binary()),
}

Parts = frozenset[type]
_SHOWN: Parts = frozenset(
    {MiniBlock, FullZip, BlobPage, e.InlineBitpacking, e.Rle, e.General, e.ByteStreamSplit}
) | {e.Fsst, e.PackedStruct}


def _parts(*parts: type) -> Parts:
    return frozenset(parts)


PACKED, RUNS, FLAT = (
    _parts(MiniBlock, e.InlineBitpacking),
    _parts(MiniBlock, e.Rle),
    _parts(MiniBlock),
)
STREAMS = _parts(MiniBlock, e.General, e.ByteStreamSplit)

WISHES: list[tuple[str, dict[str, str], Parts, int]] = [
    ("runs", {}, RUNS, 0),
    ("runs", {"rle-threshold": "0.001"}, PACKED, 0),
    ("runs", {"rle-threshold": "0.02"}, RUNS, 0),
    ("runs", {"compression": "none"}, FLAT, 0),
    ("numbers", {"structural-encoding": "fullzip"}, _parts(FullZip), 0),
    ("numbers", {"structural-encoding": "miniblock"}, PACKED, 0),
    ("waves", {"compression": "zstd", "bss": "on"}, STREAMS, 0),
    ("waves", {"compression": "lz4", "bss": "on"}, STREAMS, 0),
    ("waves", {"compression": "zstd", "bss": "off"}, _parts(MiniBlock, e.General), 0),
    ("waves", {"compression": "zstd", "bss": "auto"}, STREAMS, 0),
    ("waves", {"compression": "none"}, FLAT, 0),
    ("few", {}, PACKED, 500),
    ("few", {"dict-divisor": "30"}, PACKED, 500),
    ("few", {"dict-divisor": "100"}, _parts(MiniBlock, e.Fsst), 0),
    ("few", {"dict-size-ratio": "0.01"}, _parts(MiniBlock, e.Fsst), 0),
    ("few", {"dict-size-ratio": "0.9"}, PACKED, 500),
    ("few", {"compression": "none"}, FLAT, 500),
    ("few", {"structural-encoding": "fullzip"}, PACKED, 500),
    ("decimals", {}, PACKED, 500),
    ("decimals", {"dict-divisor": "100"}, FLAT, 0),
    ("text", {}, _parts(MiniBlock, e.Fsst), 0),
    ("text", {"compression": "fsst"}, _parts(MiniBlock, e.Fsst), 0),
    ("text", {"compression": "none"}, FLAT, 0),
    ("text", {"structural-encoding": "fullzip"}, _parts(FullZip, e.Fsst), 0),
    ("text", {"structural-encoding": "fullzip", "compression": "none"}, _parts(FullZip), 0),
    ("long", {}, _parts(FullZip, e.Fsst), 0),
    ("long", {"structural-encoding": "miniblock"}, _parts(MiniBlock, e.Fsst), 0),
    ("vectors", {}, _parts(FullZip), 0),
    ("vectors", {"structural-encoding": "miniblock"}, FLAT, 0),
    ("rows", {"packed": "true"}, _parts(MiniBlock, e.PackedStruct), 0),
    ("rows", {}, PACKED, 0),
    ("blobs", {"blob": "true"}, _parts(BlobPage, MiniBlock, e.PackedStruct), 0),
]

WE_DO_BETTER = {
    # Byte streams wherever they compress better; the oracle asks a guess.
    ("waves", "zstd auto"),
    # The oracle counts items in the first 4096 rows only.
    ("few", "30"),
}


def _schema(array: pa.Array, said: dict[str, str]) -> pa.Schema:
    metadata = {KEY + key: value for key, value in said.items()}
    return pa.schema([pa.field("c", array.type, metadata=metadata)])


def _shown(path: Path) -> Parts:
    return frozenset(classes_in(path) & _SHOWN)


def _items(path: Path) -> int:
    """Return how many items the dictionaries of a file have."""
    file, total = open_container_file(open_store(path.parent).open(path.name)), 0
    for column in file.columns():
        for page in column.pages:
            assert isinstance(page.encoding, Direct)
            layout = parse_page_layout(page.encoding.data)
            total += layout.num_dictionary_items if isinstance(layout, MiniBlock) else 0
    return total


@pytest.mark.parametrize("number", range(len(WISHES)))
def test_encoding_hints_2_1_choose_the_encodings(
    oracles: dict[str, Oracle], number: int, folder: Path
) -> None:
    name, said, parts, items = WISHES[number]
    array = COLUMNS[name]
    table = pa.table([array], _schema(array, said))
    ours, theirs = folder / "ours.lance", folder / "theirs.lance"
    size_bytes = write(ours, table)
    assert (_shown(ours), _items(ours)) == (parts, items)
    newest = oracles["14.0.2"]
    newest.call("write_file", path=str(theirs), table=table, version="2.1")
    better = (name, " ".join(said.values())) in WE_DO_BETTER
    assert better != ((_shown(theirs), _items(theirs)) == (parts, items))
    assert size_bytes <= 1.01 * theirs.stat().st_size
    if name == "blobs":
        got = LanceFileReader(ours).read_all().to_table()
        assert difference(got, table) is None
        return
    for oracle in (newest, oracles["1.0.4"]):
        assert not differences(oracle, {ours: table})


ITEMS: list[tuple[dict[str, str], int, str | None]] = [
    ({"dict-max-size": "7889"}, 0, None),
    ({"dict-max-size": "7890", "dict-values-compression": "lz4"}, 500, "lz4"),
    ({"dict-values-compression": "zstd", "dict-values-compression-level": "9"}, 500, "zstd"),
    ({"dict-values-compression": "none"}, 500, None),
]
"""What 2.2 has besides: how many bytes the items may have, and how they are compressed."""


@pytest.mark.parametrize("number", range(len(ITEMS)))
def test_encoding_hints_choose_compression_of_dictionary_items(
    newest: Oracle, number: int, folder: Path
) -> None:
    said, items, scheme = ITEMS[number]
    table = pa.table([COLUMNS["few"]], _schema(COLUMNS["few"], said))
    ours, theirs = folder / "ours.lance", folder / "theirs.lance"
    size_bytes = write(ours, table, version="2.2")
    newest.call("write_file", path=str(theirs), table=table, version="2.2")
    for path in (ours, theirs):
        assert _items(path) == items
        assert _schemes(path) == ({scheme} if items else set())
    assert size_bytes <= 1.01 * theirs.stat().st_size
    assert not differences(newest, {ours: table})


def _schemes(path: Path) -> set[str | None]:
    """Return how the items of the dictionaries of a file are compressed."""
    found = [layout.dictionary for layout in layouts_of(open_file(path)) if _has_items(layout)]
    return {each.compression.scheme if isinstance(each, e.General) else None for each in found}


def _has_items(layout: Layout) -> TypeGuard[MiniBlock]:
    """Tell whether a page has a dictionary."""
    return isinstance(layout, MiniBlock) and layout.dictionary is not None


@pytest.mark.parametrize("number", range(len(WISHES)))
def test_encoding_hints_2_2_choose_the_encodings(newest: Oracle, number: int, folder: Path) -> None:
    name, said, _, _ = WISHES[number]
    if name == "blobs":
        said = {}
    table = pa.table([COLUMNS[name]], _schema(COLUMNS[name], said))
    ours, theirs = folder / "ours.lance", folder / "theirs.lance"
    size_bytes = write(ours, table, version="2.2")
    newest.call("write_file", path=str(theirs), table=table, version="2.2")
    assert size_bytes <= 1.01 * theirs.stat().st_size
    if said.get("rle-threshold") == "0.001":
        assert e.Rle not in classes_in(ours)
    if said.get("structural-encoding") == "fullzip" and name != "few":
        assert FullZip in classes_in(ours)
    assert not differences(newest, {ours: table})


def test_a_higher_level_compresses_more(newest: Oracle, folder: Path) -> None:
    sizes = []
    for level in ("1", "19", "99"):
        said = {"compression": "zstd", "compression-level": level}
        table = pa.table([COLUMNS["text"]], _schema(COLUMNS["text"], said))
        sizes.append(write(folder / f"{level}.lance", table))
        assert not differences(newest, {folder / f"{level}.lance": table})
    assert sizes[0] > sizes[1]
    assert abs(sizes[2] - sizes[1]) < 0.01 * sizes[1]


@pytest.mark.parametrize(
    "said", [{"compression": "gzip"}, {"structural-encoding": "zip"}, {"dict-size-ratio": "1.5"}]
)
def test_encoding_hints_with_unknown_values_are_refused(said: dict[str, str], folder: Path) -> None:
    array = COLUMNS["numbers"]
    with pytest.raises(ArgumentError, match=next(iter(said))):
        write(folder / "x.lance", pa.table([array], _schema(array, said)))


@pytest.mark.parametrize("key", ["rle-threshold", "dict-divisor", "compression-level", "bss"])
def test_encoding_hint_with_invalid_number_is_ignored(
    key: str, newest: Oracle, folder: Path
) -> None:
    array = COLUMNS["runs"]
    for value in ("much", "-3"):
        table = pa.table([array], _schema(array, {key: value}))
        theirs = folder / "theirs.lance"
        newest.call("write_file", path=str(theirs), table=table, version="2.1")
        write(folder / "x.lance", table)
        if (key, value) != ("rle-threshold", "-3"):
            assert _shown(folder / "x.lance") == _shown(theirs) == RUNS


def test_encoding_hint_of_a_list_applies_to_its_items(folder: Path) -> None:
    texts: Any = COLUMNS["text"]
    lists = pa.ListArray.from_arrays(pa.array([0, 7, ROWS], pa.int32()), texts)
    write(folder / "x.lance", pa.table([lists], _schema(lists, {"compression": "zstd"})))
    assert e.General in classes_in(folder / "x.lance")
