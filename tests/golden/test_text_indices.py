"""Full-text indices of old releases: each query finds the recorded rows, with the recorded scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pennon
from pennon.query import BooleanQuery, BoostQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery
from tests.golden.archives import unpack

ARCHIVES = Path(__file__).parent / "indices"
QUERIES = {
    "0.19.2": 6,
    "0.25.2": 14,
    "0.30.0": 13,
    "0.38.3": 6,
    "1.0.4": 31,
    "2.0.1": 6,
    "7.0.0": 19,
    "14.0.2": 82,
}
"""How many queries each release's tables have an answer to: an error is none."""
TOLERANCE = 2e-6
WRONG_SCORES = {("0.30.0/fts_pos", '"brown fox"')}
"""0.30 counts the documents of two tokens twice."""
WRONG_ROWS = {("0.25.2/life", '"brown fox"')}
"""0.25 finds no phrases in rows that no index covers."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for release in QUERIES:
        unpack(ARCHIVES / f"{release}.tar.xz", folder)
    return folder


def query_of(text: str, column: str) -> Any:
    """Return the query that the recorded words stand for."""

    def match(words: str, **more: Any) -> MatchQuery:
        return MatchQuery(words, column, **more)

    if text.startswith('"'):
        return PhraseQuery(text.strip('"'), column)
    if text.startswith("match AND "):
        return match(text.removeprefix("match AND "), operator=FullTextOperator.AND)
    if text == "match beto, fuzziness 1":
        return match("beto", fuzziness=1)
    if text.startswith("phrase "):
        words, _, slop = text.removeprefix("phrase ").partition(" slop ")
        return PhraseQuery(words, column, slop=int(slop or 0))
    if text.startswith("boolean "):
        parts = [(Occur.MUST_NOT, match("eta")), (Occur.SHOULD, match("gamma"))]
        return BooleanQuery([(Occur.MUST, match("theta")), *parts])
    if text.startswith("boost "):
        return BoostQuery(match("theta"), match("alpha"), negative_boost=0.3)
    return match(text.removeprefix("match "))


def answers(release: Path) -> Iterator[tuple[str, str, list[list[Any]]]]:
    """Yield table, query, and what it finds."""
    for path in sorted(release.glob("*.answers.json")):
        known: dict[str, Any] = json.loads(path.read_text())
        newer = known.get("read_by_14.0.2", {}).get("fts", {})
        for text, answer in known.get("fts", {}).items():
            found = newer.get(text, answer)
            found = answer if isinstance(found, str) else found
            if isinstance(found, list):
                yield path.name.removesuffix(".answers.json"), text, found


def row_of(found: list[Any]) -> tuple[Any, ...]:
    return (found[0], found[1], *map(tuple, found[3:]))


@pytest.mark.parametrize("release", QUERIES)
def test_queries_find_the_recorded_rows(tables: Path, release: str) -> None:
    asked = 0
    for name, text, expected in answers(tables / release):
        asked += 1
        where = f"{release}/{name}", text
        dataset = pennon.dataset(tables / release / f"{name}.lance")
        query = query_of(text, "j" if name == "json" else "doc")
        rows = dataset.to_table(["id", "_score"], full_text_query=query, with_row_id=True)
        items = (
            [[each] for each in rows["_doc_index"].to_pylist()]
            if "_doc_index" in rows.schema.names
            else None
        )
        found = [
            [each["id"], each["_rowid"], each["_score"], *(items[at] if items else ())]
            for at, each in enumerate(rows.to_pylist())
        ]
        scores = [each[2] for each in found]
        assert scores == sorted(scores, reverse=True), where
        if where not in WRONG_ROWS:
            assert sorted(map(row_of, found)) == sorted(map(row_of, expected)), where
        if where in WRONG_SCORES | WRONG_ROWS:
            continue
        known = {row_of(each): each[2] for each in expected}
        assert all(abs(known[row_of(each)] - each[2]) <= TOLERANCE for each in found), where
    assert asked == QUERIES[release]


def test_phrase_query_on_index_of_0_25_2_finds_all_rows(tables: Path) -> None:
    dataset = pennon.dataset(tables / "0.25.2" / "life.lance")
    found = dataset.to_table(["id"], full_text_query=PhraseQuery("brown fox", "doc"))
    texts = dataset.to_table(["id", "doc"]).to_pylist()
    expected = [
        each["id"]
        for each in texts
        if re.search(r"\bbrown\W+fox\b", each["doc"] or "", re.IGNORECASE)
    ]
    assert sorted(found["id"].to_pylist()) == sorted(expected)
    assert len(expected) == 38
