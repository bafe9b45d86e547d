"""Inspection of pylance's files: every layout, every encoding, every byte; and damaged files."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter

from pennon.cli.inspect import explained
from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, MiniBlock
from pennon.errors import LanceError
from pennon.file.describe import describe, summarize
from pennon.file.inspect import Inspection, inspect_pages
from pennon.file.open import open_container_file
from pennon.io import open_store
from pennon.testing import MemoryStore
from tests.interop.test_encodings_2_1 import FORCED, ROWS, _field
from tests.interop.test_metadata import everything

SAID = {
    MiniBlock: "mini-block",
    FullZip: "full-zip",
    ConstantPage: "constant",
    BlobPage: "blob (mini-block)",
    e.InlineBitpacking: "of 64, in line)",
    e.OutOfLineBitpacking: "BitPacked(",
    e.Flat: "Flat(",
    e.Variable: "Variable(offsets: ",
    e.Rle: "Rle(values: ",
    e.General: "General(",
    e.ByteStreamSplit: "ByteStreamSplit > ",
    e.Fsst: "bytes of symbols) > ",
    e.FixedSizeList: "FixedSizeList(3",
    e.PackedStruct: "PackedStruct(",
    e.VariablePackedStruct: "PackedStruct(",
}


def write(folder: Path, table: pa.Table, version: str, cache_bytes: int | None = None) -> str:
    name = f"{version}.lance"
    path = str(folder / name)
    with LanceFileWriter(
        path, table.schema, version=version, data_cache_bytes=cache_bytes
    ) as writer:
        writer.write_batch(table)
    return name


def forced(name: str) -> pa.Table:
    array = FORCED[name].make(ROWS)
    return pa.table([array], schema=pa.schema([_field(FORCED[name], array)]))


def inspected(folder: Path, name: str) -> tuple[Inspection, str]:
    """Inspect a file, check that its ranges tile it, and return what is said of its pages."""
    source = open_store(folder).open(name)
    found = inspect_pages(source)
    assert (found.ranges[0].start, found.ranges[-1].end) == (0, source.size_bytes)
    assert all(before.end == after.start for before, after in pairwise(found.ranges))
    said = "\n".join(line for page in found.pages for line in explained(page))
    for word in ("unclaimed", "not named", "unreadable"):
        assert word not in said + str(found.ranges)
    return found, said


@pytest.mark.parametrize("name", FORCED)
def test_inspect_names_each_encoding(name: str, tmp_path: Path) -> None:
    case = FORCED[name]
    for version in case.versions:
        found, said = inspected(tmp_path, write(tmp_path, forced(name), version))
        assert found.version == version
        for each in case.classes:
            assert SAID[each] in said, said
        kinds = {each.kind for each in found.ranges}
        if MiniBlock in case.classes:
            assert {"chunk table", "chunks"} <= kinds
        for page in found.pages:
            for part in page.parts:
                if part.kind == "chunks":
                    assert "headers and padding" in part.detail
                    sizes = [
                        int(word.split()[-1].replace(",", "")) for word in part.detail.split(", ")
                    ]
                    assert sum(sizes) == part.extent.size_bytes


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("rows", [0, 1, 3_000])
def test_inspect_covers_every_byte_of_pylance_files(
    version: str, rows: int, tmp_path: Path
) -> None:
    table = everything().slice(0, rows)
    found, _ = inspected(tmp_path, write(tmp_path, table, version, 4_096))
    assert found.rows == rows
    kinds = {each.kind for each in found.ranges}
    assert {"global buffer", "column metadata", "column table", "buffer table", "footer"} <= kinds
    if rows:
        assert {each.detail for each in found.ranges if each.kind == "blob values"} == {"blob"}
        assert ("chunk table" in kinds) == (version != "2.0")


def test_inspect_of_a_page_shows_its_encodings(tmp_path: Path) -> None:
    _, said = inspected(tmp_path, write(tmp_path, forced("dictionary"), "2.1"))
    assert "mini-block" in said
    assert "values       BitPacked(" in said
    assert "dictionary   Variable(offsets: Flat(32))" in said
    assert "dictionary of 9" in said
    _, said = inspected(tmp_path, write(tmp_path, forced("lists"), "2.1"))
    assert "list (NULL, empty) > item" in said
    assert "repetition index" in said
    assert "repetition levels" in said
    assert "2 chunks of" in said or "3 chunks of" in said
    _, said = inspected(tmp_path, write(tmp_path, forced("full-zip text"), "2.1"))
    assert "control words of 0 + 1 bits" in said
    assert "control words 2,049, sizes and values" in said
    assert "repetition index" in said
    _, said = inspected(tmp_path, write(tmp_path, forced("blobs"), "2.1"))
    assert f"{ROWS - len(range(1, ROWS, 5)) - len(range(2, ROWS, 5)):,} values of " in said
    _, said = inspected(tmp_path, write(tmp_path, forced("all NULL"), "2.1"))
    assert "all NULL" in said
    _, said = inspected(tmp_path, write(tmp_path, forced("one number"), "2.2"))
    assert "one value, 0x0700000000000000" in said


@pytest.mark.parametrize("name", [*FORCED, "2.0"])
def test_inspect_of_damaged_file_succeeds_or_raises_typed_error(name: str, tmp_path: Path) -> None:
    """Bytes of the file are changed, most of all in its metadata; it is read or refused."""
    chance = random.Random(name)
    versions = ("2.0",) if name == "2.0" else FORCED[name].versions
    table = everything().slice(0, 300) if name == "2.0" else forced(name)
    store = MemoryStore(f"damage {name}")
    outcomes: set[type] = set()
    for version in versions:
        whole = (tmp_path / write(tmp_path, table, version)).read_bytes()
        metadata = len(whole) - min(len(whole), 1_200)
        for _ in range(120):
            damaged = bytearray(whole)
            first = metadata if chance.random() < 0.7 else 0
            for _ in range(chance.randrange(1, 5)):
                damaged[chance.randrange(first, len(whole))] = chance.randrange(256)
            if chance.random() < 0.1:
                del damaged[chance.randrange(first, len(whole)) :]
            store.put("x.lance", bytes(damaged))
            with suppress(LanceError):
                file = open_container_file(store.open("x.lance"))
                assert (repr(describe(file)), repr(summarize(file))) != ("", "")
            try:
                found = inspect_pages(store.open("x.lance"))
            except LanceError as error:
                outcomes.add(type(error))
                continue
            outcomes.add(Inspection)
            said = "\n".join(line for page in found.pages for line in explained(page))
            assert all(each.start <= each.end <= len(damaged) for each in found.ranges), said
            covered = 0
            for each in found.ranges:
                assert each.start <= covered, "no gap, even if ranges overlap"
                covered = max(covered, each.end)
            assert covered == len(damaged)
    assert {Inspection} < outcomes
