"""Damage in any part of a 2.1 or 2.2 file: a typed error with its place, or valid rows.

Files of one column each, for every layout and encoding, by the oracle and by our own writer
(`files_2_1`), are damaged part by part (`structure`, `damage`) and read in a process of its own
(`try_mutants`).  ``PENNON_MUTANTS_SEED`` chooses other mutants.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.layouts import BlobPage, ConstantPage, FullZip, MiniBlock
from pennon.encoding.v2_1.wire import parse_page_layout
from tests.faults.child import summary_of
from tests.faults.files_2_1 import SINCE_2_2, columns_of, write_ours
from tests.faults.structure import layout_bytes, parts_of

SEED = int(os.environ.get("PENNON_MUTANTS_SEED", "21"))
FEW = 15
MANY = 160
MANY_OF_2_2 = 334
"""Of each file that has what only 2.2 has, beside the others."""
WRITERS = ("oracle-2.1", "oracle-2.2", "ours-2.1", "ours-2.2")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name in WRITERS:
        writer, version = name.split("-")
        found[name] = tmp_path_factory.mktemp(name)
        if writer == "ours":
            assert write_ours(version, found[name]) == []
        else:
            summary_of("tests.faults.files_2_1", version, str(found[name]))
        assert len(list(found[name].iterdir())) == len(columns_of(version))
    return found


@pytest.fixture(scope="module")
def of_2_2(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of the files that have what only 2.2 has, by both writers."""
    folder = tmp_path_factory.mktemp("of-2.2")
    for writer in ("oracle", "ours"):
        for name in SINCE_2_2:
            made = folders[f"{writer}-2.2"] / f"{name}-2.2.lance"
            (folder / f"{writer}-{made.name}").symlink_to(made)
    return folder


@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_2_1_files_raise_typed_errors_or_read(
    folders: dict[str, Path], writer: str
) -> None:
    _try(folders[writer], 0, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_2_1_files_raise_typed_errors_or_read_with_many_mutants(
    folders: dict[str, Path], writer: str
) -> None:
    parts = _try(folders[writer], FEW, MANY)
    assert {"chunk words", "row index", "chunk header", "repetition", "definition"} <= parts
    assert {"dictionary", "entries", "values 0 head", "values 1", "layout", "rows"} <= parts


@pytest.mark.slow
def test_20_000_mutants_of_2_2_encodings(of_2_2: Path) -> None:
    parts = _try(of_2_2, FEW + MANY, MANY_OF_2_2)
    assert len(list(of_2_2.iterdir())) * MANY_OF_2_2 >= 20_000
    assert {"chunk words", "row index", "chunk header", "repetition", "definition"} <= parts
    assert {"dictionary", "entries", "value", "layout", "descriptor", "rows"} <= parts


def _try(folder: Path, first: int, count: int) -> set[str]:
    """Try mutants of all files of a folder; return which parts were hit."""
    summary = summary_of("tests.faults.try_mutants", str(folder), str(SEED), str(first), str(count))
    print(summary["tried"], "tried,", summary["refused"], "refused")
    problems = summary["problems"]
    assert not problems, f"{len(problems)}, the first: {problems[0]['mutant']}\n" + str(
        problems[0]["problem"]
    )
    assert summary["tried"] == count * len(list(folder.iterdir()))
    assert summary["refused"] > summary["tried"] / 2, "the damage does not reach the reader"
    return set(summary["parts"])


def test_mutated_2_1_files_have_every_layout_and_encoding(folders: dict[str, Path]) -> None:
    found: set[type] = set()
    for folder in folders.values():
        for path in folder.iterdir():
            for column in parts_of(path.read_bytes()).columns:
                for page in column.pages:
                    found.update(_classes(parse_page_layout(layout_bytes(page))))
    readable = {*CODECS.chunks, *CODECS.blocks, *CODECS.values}
    # No writer has a constant among the values of a page any more: the page itself is one.
    assert found >= (readable - {e.Constant}) | {MiniBlock, FullZip, ConstantPage, BlobPage}
    assert e.Dictionary not in found


def _classes(value: object) -> Iterator[type]:
    """Yield the class of a layout, and of all layouts and encodings inside."""
    if isinstance(value, tuple):
        for each in value:
            yield from _classes(each)
    if is_dataclass(value):
        yield type(value)
        for field in fields(value):
            yield from _classes(getattr(value, field.name))
