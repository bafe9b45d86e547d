"""Damaged files of full-text indices: a typed error or an answer, never a crash, a hang or another error."""

from __future__ import annotations

import os
import random
import shutil
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.errors import LanceError
from pennon.query import FullTextOperator, MatchQuery, PhraseQuery
from tests.golden.archives import unpack

ARCHIVE = Path(__file__).parents[1] / "golden" / "indices"
TABLES = (
    ("14.0.2", "fts_v1_blocks"),
    ("14.0.2", "fts_v2_blocks"),
    ("14.0.2", "fts_v3_block256"),
    ("1.0.4", "fts_pos"),
    ("0.30.0", "fts_pos"),
    ("0.25.2", "fts_pos"),
)
SEED = int(os.environ.get("PENNON_MUTANTS_SEED", "1"))
MOST_SECONDS = 10


def queries(words: str) -> list[Any]:
    return [
        MatchQuery(words, "doc"),
        MatchQuery(words, "doc", operator=FullTextOperator.AND),
        MatchQuery(words, "doc", fuzziness=2),
        PhraseQuery(words, "doc", slop=1),
    ]


def damage(data: bytes, rng: random.Random) -> bytes:
    """Return bytes of which some are others, or the end is missing."""
    if rng.random() < 0.1:
        return data[: rng.randrange(len(data))]
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(made))
        made[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, made[at] ^ 1 << rng.randrange(8)))
    return bytes(made)


def tried(release: str, name: str, folder: Path, count: int) -> Counter[str]:
    """Return how many mutants gave answers, and how many errors."""
    unpack(ARCHIVE / f"{release}.tar.xz", folder)
    table = folder / release / f"{name}.lance"
    files = sorted((table / "_indices").rglob("*.lance"))
    known = {each: each.read_bytes() for each in files}
    rng = random.Random(f"{SEED} {release} {name}")
    found: Counter[str] = Counter()
    words = "alpha beta" if "blocks" in name or "256" in name else "brown fox"
    assert pennon.dataset(table).to_table(full_text_query=queries(words)[0]).num_rows > 9
    for number in range(count):
        file = rng.choice(files)
        mutant = file.with_suffix(".new")
        mutant.write_bytes(damage(known[file], rng))
        mutant.replace(file)
        query = queries(words)[number % 4]
        begun = time.monotonic()
        try:
            rows = pennon.dataset(table).to_table(["id"], full_text_query=query, limit=9)
            assert rows.num_rows <= 9
            found["answers"] += 1
        except LanceError:
            found["errors"] += 1
        assert time.monotonic() - begun < MOST_SECONDS, (file.name, number)
        mutant.write_bytes(known[file])
        mutant.replace(file)
    shutil.rmtree(folder)
    return found


@pytest.mark.parametrize(("release", "name"), TABLES)
def test_damaged_text_index_raises_typed_errors_or_answers(
    tmp_path: Path, release: str, name: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tried(release, name, tmp_path / "t", 60)
    assert found["errors"] > 5
    assert found["answers"] > 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("release", "name"), TABLES)
def test_damaged_text_index_raises_typed_errors_or_answers_with_many_mutants(
    tmp_path: Path, release: str, name: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tried(release, name, tmp_path / "t", 1500)["errors"] > 100
