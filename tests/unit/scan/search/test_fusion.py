"""Hybrid search: two rankings combined by reciprocal rank fusion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.query import DocumentGranularity, PhraseQuery

ROWS, DIM = 400, 6
FOX = {"query": "fox", "columns": ["text"]}
WORDS = ("red", "green", "blue", "fox", "whale", "tree", "stone")


def make(uri: str, *, is_indexed: bool = True) -> pennon.LanceDataset:
    """Return a table of texts and vectors in four fragments, of which some rows are deleted."""
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(ROWS, DIM)).astype(np.float32)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(ROWS)]
    rows = pa.table(
        {
            "id": np.arange(ROWS),
            "text": texts,
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
        }
    )
    ds = pennon.write_dataset(rows, uri, max_rows_per_file=100)
    if is_indexed:
        ds.create_scalar_index("text", "INVERTED", with_position=True)
        ds.create_index("vec", "IVF_FLAT", num_partitions=2)
    ds.delete("id % 11 = 3")
    return pennon.dataset(uri)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> pennon.LanceDataset:
    """The table, with an index of each kind."""
    return make(str(tmp_path_factory.mktemp("indexed") / "t.lance"))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> pennon.LanceDataset:
    """The table without an index."""
    return make(str(tmp_path_factory.mktemp("plain") / "t.lance"), is_indexed=False)


def fused(near: pa.Table, texts: pa.Table, k: int, constant: float) -> dict[int, float]:
    """Return what comes out by the formula, rows of equal sums by id, which is by address here."""
    sums: dict[int, float] = {}
    for found in (near, texts):
        for rank, row in enumerate(found["id"].to_pylist(), 1):
            sums[row] = sums.get(row, 0.0) + 1 / (constant + rank)
    best = sorted(sums, key=lambda row: (-sums[row], row))[:k]
    return {row: sums[row] for row in best}


@pytest.mark.parametrize("table", ["indexed", "plain"])
@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, 10),
        ({"k": 25, "constant": 1}, 25),
        ({"k": 5, "candidates": 60}, 60),
        ({"filter": "id % 2 = 0"}, 10),
        ({"filter": "id % 2 = 0", "prefilter": True, "use_scalar_index": False}, 10),
        ({"filter": "id < 0"}, 10),
    ],
)
def test_ranks_of_both_searches_are_summed(
    request: pytest.FixtureRequest, given: dict[str, Any], limit: int, table: str
) -> None:
    ds: pennon.LanceDataset = request.getfixturevalue(table)
    near = {"column": "vec", "q": [0.1, -0.2, 0.3, 0.0, 0.5, 1.0], "nprobes": 2}
    words = {"query": "red fox", "columns": ["text"]}
    found = ds.hybrid_search(near, words, columns=["id"], **given)
    scan = {name: given[name] for name in ("filter", "prefilter") if name in given}
    parts = [
        ds.to_table(["id"], nearest={**near, "k": limit}, **scan),
        ds.to_table(["id"], full_text_query=words, limit=limit, **scan),
    ]
    expected = fused(parts[0], parts[1], given.get("k", 10), given.get("constant", 60))
    assert found["id"].to_pylist() == list(expected)
    relevance = found["_relevance_score"].to_numpy()
    np.testing.assert_array_equal(relevance, np.array([*expected.values()], np.float32))
    for part, name in zip(parts, ("_distance", "_score"), strict=True):
        known = dict(zip(part["id"].to_pylist(), part[name].to_pylist(), strict=True))
        assert found[name].to_pylist() == [known.get(row) for row in expected]


def test_hybrid_columns_are_in_the_named_order_then_added_ones(
    indexed: pennon.LanceDataset,
) -> None:
    ds = indexed
    near, words = {"column": "vec", "q": [0.0] * DIM}, "whale"
    every = ds.hybrid_search(near, words, 2, with_row_id=True, with_row_address=True)
    added = ["_distance", "_score", "_relevance_score"]
    assert every.column_names == ["id", "text", "vec", *added, "_rowid", "_rowaddr"]
    assert every["_rowid"].to_pylist() == every["_rowaddr"].to_pylist()
    some = ds.hybrid_search(near, words, 2, columns=["_relevance_score", "id"])
    assert some.column_names == ["_relevance_score", "id", "_distance", "_score"]
    made = ds.hybrid_search(near, words, 2, columns={"twice": "id * 2", "text": "text"})
    assert made.column_names == ["twice", "text", *added]
    assert made["twice"].to_pylist() == [2 * row for row in some["id"].to_pylist()]


def test_hybrid_columns_computed_from_scores(indexed: pennon.LanceDataset) -> None:
    near, words = {"column": "vec", "q": [0.0] * DIM}, "whale"
    plain = indexed.hybrid_search(near, words, 3, columns=["id"])
    columns = {"percent": "_relevance_score * 100", "id": "id"}
    found = indexed.hybrid_search(near, words, 3, columns=columns)
    assert found.column_names == ["percent", "id", "_distance", "_score", "_relevance_score"]
    assert found["id"].equals(plain["id"])
    expected = plain["_relevance_score"].to_numpy() * 100
    np.testing.assert_allclose(found["percent"].to_numpy(), expected, rtol=1e-6)


def test_a_phrase_in_stable_rows_after_a_compaction(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": list(range(6)),
            "text": ["a red fox", "fox red", "red fox red fox", "none", "a red fox", "red fox"],
            "vec": pa.array([[float(n), 0.0] for n in range(6)], pa.list_(pa.float32(), 2)),
        }
    )
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(rows, uri, max_rows_per_file=2, enable_stable_row_ids=True)
    ds.create_scalar_index("text", "INVERTED", with_position=True)
    ds.delete("id = 0")
    ds.optimize.compact_files()
    ds = pennon.dataset(uri)
    near = {"column": "vec", "q": [3.1, 0.0], "k": 2}
    found = ds.hybrid_search(near, PhraseQuery("red fox", "text"), 10, columns=["id"])
    # near: 3, 4 by distance; the phrase: in 5 of two words, 2 of four, 4 of three
    by_text = ds.to_table(["id"], full_text_query=PhraseQuery("red fox", "text"))["id"].to_pylist()
    assert set(by_text) == {2, 4, 5}
    assert found["id"].to_pylist()[0] == 4
    assert set(found["id"].to_pylist()) == {2, 3, 4, 5}


def test_hybrid_search_of_list_rows_uses_the_best_text(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [0, 1, 2],
            "texts": [["fox", "fox and a tree"], ["a fox of many words"], ["stone"]],
            "vec": pa.array([[0.0, 1.0], [0.0, 2.0], [0.0, 9.0]], pa.list_(pa.float32(), 2)),
        }
    )
    ds = pennon.write_dataset(rows, str(tmp_path / "t.lance"))
    ds.create_scalar_index(
        "texts", "INVERTED", document_granularity=DocumentGranularity.LIST_ELEMENT
    )
    ds = pennon.dataset(ds.uri)
    found = ds.hybrid_search({"column": "vec", "q": [0.0, 2.0]}, "fox", columns=["id"])
    # by distance 1, 0, 2; by text 0 (its first item), and 1 behind the items of 0
    assert found["id"].to_pylist() == [0, 1, 2]
    sums = np.array([1 / 61 + 1 / 62, 1 / 61 + 1 / 62, 1 / 63], np.float32)
    np.testing.assert_array_equal(found["_relevance_score"].to_numpy(), sums)


@pytest.mark.parametrize(
    ("near", "words", "given", "message"),
    [
        ({}, FOX, {"k": 0}, "k is the number of rows to find, 1 or more, got 0"),
        ({}, FOX, {"k": 5, "candidates": 4}, r"candidates, .* are k \(5\) or more, got 4"),
        ({}, FOX, {"constant": -1}, "the constant of the ranks is 0 or more, got -1"),
        ({"q": [[0.0] * DIM] * 2}, FOX, {}, "one query, a vector and a text"),
        ({"q": [0.0]}, FOX, {}, "vector size 1 does not match index column size 6"),
        ({}, FOX, {"filter": "_distance < 1"}, "cannot compute with _distance"),
        ({}, FOX, {"columns": ["nothing"]}, "nothing"),
        ({}, "fox", {}, "INVERTED index"),
        ({}, {"query": "fox", "columns": ["id"]}, {}, "FTS field 'id' must resolve to Utf8"),
    ],
)
def test_fusion_with_wrong_arguments_is_refused(
    plain: pennon.LanceDataset,
    near: dict[str, Any],
    words: Any,
    given: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(ArgumentError, match=message):
        plain.hybrid_search({"column": "vec", "q": [0.0] * DIM, **near}, words, **given)
