"""Full-text searches of tables without an index: rows, order, and refusals."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    DocumentGranularity,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
)

TEXTS = ["quick brown fox", "lazy dog", "fox fox", None, "brown dog and brown fox", "FOX"]
FOX = MatchQuery("fox", "text")


@pytest.fixture
def dataset(tmp_path: Path) -> pennon.LanceDataset:
    table = pa.table(
        {
            "id": range(6),
            "text": TEXTS,
            "title": ["dog", "fox", "", "fox", None, "bird"],
            "labels": [["fox", "dog"], ["a fox", "fox"], None, [], ["dog"], ["x", None, "fox"]],
        }
    )
    return pennon.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=4)


def ids(dataset: pennon.LanceDataset, query: Any, **options: Any) -> list[int]:
    found: list[int] = dataset.to_table(["id"], full_text_query=query, **options)["id"].to_pylist()
    return found


def test_full_text_matches_are_ordered_by_score(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, FOX) == [2, 5, 0, 4]
    assert ids(dataset, FOX, limit=2, offset=1) == [5, 0]
    assert ids(dataset, FOX, limit=0) == []
    assert ids(dataset, {"query": "fox", "columns": ["text"]}) == [2, 5, 0, 4]
    assert dataset.scanner(full_text_query=FOX).count_rows() == 4
    assert dataset.scanner(full_text_query=FOX, limit=3).count_rows() == 3
    batches = list(dataset.to_batches(["id"], full_text_query=FOX, batch_size=3))
    assert [batch.num_rows for batch in batches] == [3, 1]


def test_full_text_projection_adds_score(dataset: pennon.LanceDataset) -> None:
    def names(columns: Any = None, **options: Any) -> list[str]:
        scanner = dataset.scanner(columns, full_text_query=FOX, **options)
        assert scanner.to_table().schema == scanner.projected_schema
        found: list[str] = scanner.projected_schema.names
        return found

    assert names() == ["id", "text", "title", "labels", "_score"]
    assert names([]) == ["_score"]
    assert names(["_score", "id"]) == ["_score", "id"]
    assert names(["id"], with_row_id=True, with_row_address=True) == [
        "id",
        "_score",
        "_rowid",
        "_rowaddr",
    ]
    assert names(["id"], disable_scoring_autoprojection=True) == ["id"]
    assert names({"twice": "id * 2"}) == ["twice", "_score"]


def test_full_text_filter_runs_after_search_or_before_with_prefilter(
    dataset: pennon.LanceDataset,
) -> None:
    condition = "id < 5 AND id != 2"
    assert ids(dataset, FOX, filter=condition, limit=2) == []
    assert ids(dataset, FOX, filter=condition) == [0, 4]
    assert ids(dataset, FOX, filter=condition, limit=1, prefilter=True) == [0]
    assert ids(dataset, FOX, filter="id = 3", prefilter=True) == []


def test_full_text_order_by_applies_to_the_matches(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, FOX, order_by=["id"], limit=3) == [0, 2, 5]
    assert ids(dataset, FOX, fragments=dataset.get_fragments()[1:]) == [5, 4]
    dataset.delete("id = 5")
    assert ids(dataset, FOX) == [2, 0, 4]


def test_queries_of_queries(dataset: pennon.LanceDataset) -> None:
    dog, brown = MatchQuery("dog", "text"), MatchQuery("brown", "text")
    assert set(ids(dataset, FOX & brown)) == {0, 4}
    assert set(ids(dataset, dog | brown)) == {0, 1, 4}
    parts = [(Occur.MUST, FOX), (Occur.MUST_NOT, brown), (Occur.SHOULD, dog)]
    assert set(ids(dataset, BooleanQuery(parts))) == {2, 5}
    assert ids(dataset, BoostQuery(FOX, FOX, negative_boost=1.0)) == [0, 2, 4, 5]
    assert set(ids(dataset, MultiMatchQuery("fox", ["text", "title"]))) == {0, 1, 2, 3, 4, 5}
    assert set(ids(dataset, CombinedFieldsQuery("fox dog", ["text", "title"]))) == {
        0,
        1,
        2,
        3,
        4,
        5,
    }
    assert ids(dataset, PhraseQuery("brown fox", "text")) == [4, 0]
    assert ids(dataset, PhraseQuery("brown and brown", "text")) == []
    assert ids(dataset, PhraseQuery("dog brown", "text", slop=1)) == [4]


def scores(dataset: pennon.LanceDataset, query: Any, **options: Any) -> dict[int, float]:
    found = dataset.to_table(["id", "_score"], full_text_query=query, **options)
    return dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))


@pytest.mark.parametrize("has_index", [True, False])
def test_full_text_should_and_boost_clauses_change_scores_only(
    tmp_path: Path, *, has_index: bool
) -> None:
    rng = random.Random(7)
    texts = [" ".join(rng.choices("abcdefgh", k=rng.randrange(1, 9))) for _ in range(3000)]
    table = pa.table({"id": range(3000), "text": texts})
    dataset = pennon.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=1000)
    if has_index:
        words: dict[str, Any] = {"base_tokenizer": "whitespace", "stem": False}
        dataset.create_scalar_index("text", "INVERTED", **words)
        more_rows = pa.table({"id": range(3000, 3200), "text": texts[:200]})
        dataset = pennon.write_dataset(more_rows, dataset.uri, mode="append")
    for first, second in (("b", "c"), ("b d", "c e"), ("b", "b"), ("b", "nothing"), ("x", "b")):
        one, other = MatchQuery(first, "text"), MatchQuery(second, "text")
        rows, more = scores(dataset, one), scores(dataset, other)
        added = BooleanQuery([(Occur.MUST, one), (Occur.SHOULD, other)])
        less = BoostQuery(one, other, negative_boost=0.7)
        for query, factor in ((added, 1.0), (less, -0.7)):
            expected = {row: each + factor * more.get(row, 0.0) for row, each in rows.items()}
            found = scores(dataset, query)
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
            assert list(found.values()) == sorted(found.values(), reverse=True)
            for limit in (1, 10, 300):
                assert scores(dataset, query, limit=limit) == dict([*found.items()][:limit])


def test_full_text_list_element_granularity(dataset: pennon.LanceDataset) -> None:
    assert set(ids(dataset, MatchQuery("fox", "labels"))) == {0, 1, 5}
    query = MatchQuery("fox", "labels", document_granularity=DocumentGranularity.LIST_ELEMENT)
    found = dataset.to_table(["id"], full_text_query=query)
    assert found.schema.names == ["id", "_doc_index", "_score"]
    pairs = zip(found["id"].to_pylist(), found["_doc_index"].to_pylist(), strict=True)
    assert list(pairs) == [(0, [0]), (1, [1]), (5, [2]), (1, [0])]


def test_full_text_plan_text(dataset: pennon.LanceDataset) -> None:
    scanner = dataset.scanner(["id"], full_text_query=FOX, limit=2, filter="id > 0", prefilter=True)
    plan = scanner.explain_plan().splitlines()
    assert [line.strip().split(":")[0] for line in plan] == [
        "Read",
        "Limit",
        "Sort",
        "FlatMatchQuery",
        "Prefilter",
    ]
    assert "column=text, query=fox, num_fragments=2" in plan[3]
    assert scanner.analyze_plan().startswith("Scanned: rows=2")
    again = pickle.loads(pickle.dumps(scanner))
    assert again.to_table().equals(scanner.to_table())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("fox", "Cannot perform full text search unless an INVERTED index"),
        (MatchQuery("fox", "zz"), "FTS field path 'zz' does not exist"),
        (MatchQuery("fox", "id"), "FTS field 'id' must resolve to Utf8"),
        (BooleanQuery([]), "at least one leaf query"),
        (BooleanQuery([(Occur.MUST_NOT, FOX)]), "at least one should/must query"),
        ({"query": '"brown fox"', "columns": ["text", "title"]}, "the column must be specified"),
    ],
)
def test_invalid_full_text_queries_are_refused(
    dataset: pennon.LanceDataset, query: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        dataset.to_table(full_text_query=query)


def test_full_text_queries_with_invalid_parameters_are_refused() -> None:
    for boost in (-1.0, float("nan")):
        with pytest.raises(ArgumentError, match="must be finite and non-negative"):
            MatchQuery("a", "s", boost=boost)
    with pytest.raises(ArgumentError, match="Invalid boosts"):
        CombinedFieldsQuery("a", ["s"], boosts=[0.5])
    with pytest.raises(ArgumentError, match="1 columns cannot have 2 boosts"):
        MultiMatchQuery("a", ["s"], boosts=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="slop is a number from 0 on"):
        PhraseQuery("a", "s", slop=-1)


@pytest.mark.parametrize("query", [FOX, FOX & FOX, MultiMatchQuery("a", ["s"])])
def test_queries_are_values(query: FullTextQuery) -> None:
    again = pickle.loads(pickle.dumps(query))
    assert again == query
    assert hash(again) == hash(query)
    assert again != MatchQuery("other", "text")
    assert query.inner == query
