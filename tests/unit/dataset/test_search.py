"""``LanceDataset.search``: rows by a text, its vector, or both, and the words that explain it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.embeddings import EmbeddingModel
from pennon.errors import ArgumentError, NotFoundError

ANIMALS = ["red fox", "blue whale", "brown bear", None, "", "red panda", "grey wolf", "red deer"]


def letters(texts: list[str]) -> list[list[float]]:
    """Return how often each text has four letters."""
    return [[float(text.count(letter)) + 0.01 for letter in "redo"] for text in texts]


MODEL = EmbeddingModel(letters, "letters")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t.lance")


@pytest.fixture
def ds(uri: str) -> pennon.LanceDataset:
    """A table of embedded titles, in three fragments."""
    rows = pa.table({"id": range(len(ANIMALS)), "title": ANIMALS, "size": [2.5] * len(ANIMALS)})
    made = pennon.write_dataset(rows, uri, max_rows_per_file=3)
    made.embed("title", MODEL)
    return made


def distances(query: str, metric: str = "cosine") -> dict[int, float]:
    """Return the distance of each title by its id, by numpy."""
    (wanted,) = np.array(letters([query]))
    found = {}
    for n, title in enumerate(ANIMALS):
        if title is not None:
            (row,) = np.array(letters([title]))
            cosine = 1 - row @ wanted / np.linalg.norm(row) / np.linalg.norm(wanted)
            found[n] = float(cosine if metric == "cosine" else ((row - wanted) ** 2).sum())
    return found


def expected(query: str, k: int, metric: str = "cosine") -> list[int]:
    """Return the ids of the nearest titles, by numpy; of equal ones the lower ids."""
    known = distances(query, metric)
    return sorted(known, key=lambda n: (round(known[n], 6), n))[:k]


@pytest.mark.parametrize("query", ["red deer", "wolf", "bear"])
@pytest.mark.parametrize("k", [1, 3, 20])
def test_vector_search_by_text_finds_the_nearest_titles(
    ds: pennon.LanceDataset, query: str, k: int
) -> None:
    found = ds.search(query, k=k, model=MODEL)
    assert found.schema.names == ["id", "title", "size", "_distance"]
    known = distances(query)
    ids = found["id"].to_pylist()
    assert len(set(ids)) == min(k, len(known))
    assert [known[n] for n in ids] == pytest.approx(sorted(known.values())[:k], abs=1e-6)
    assert found["_distance"].to_pylist() == pytest.approx([known[n] for n in ids], abs=1e-6)


def test_search_uses_the_metric_that_the_column_remembers_unless_an_index_has_another(
    ds: pennon.LanceDataset,
) -> None:
    ds.embed("title", MODEL, "far", metric="l2")
    found = ds.search("red", k=4, column="far", model=MODEL)
    assert found["id"].to_pylist() == expected("red", 4, "l2")
    assert "metric l2" in ds.explain_search("red", column="far", model=MODEL)
    ds.create_index("far", "IVF_FLAT", metric="cosine", num_partitions=1)
    found = ds.search("red", k=4, column="far", model=MODEL)
    assert found["id"].to_pylist() == expected("red", 4)
    text = ds.explain_search("red", column="far", model=MODEL)
    assert (
        "vector: column 'far', index 'far_idx', metric cosine, query embedded by 'letters'" in text
    )


def test_search_of_a_table_with_a_full_text_index_is_hybrid(ds: pennon.LanceDataset) -> None:
    ds.create_scalar_index("title", "INVERTED")
    found = ds.search("wolf deer", k=4, model=MODEL)
    assert found.schema.names[-3:] == ["_distance", "_score", "_relevance_score"]
    assert set(found["id"].to_pylist()[:2]) == {6, 7}
    both = ds.hybrid_search(
        {"column": "title_vector", "q": letters(["wolf deer"])[0], "metric": "cosine"},
        {"query": "wolf deer", "columns": ["title"]},
        k=4,
        candidates=40,
        columns=["id", "title", "size"],
    )
    assert found.to_pydict() == both.to_pydict()
    text = ds.explain_search("wolf deer", model=MODEL)
    assert "text: full-text search of title\nfused by rank: 40 candidates of each" in text


def test_search_of_a_table_without_vectors_is_a_text_search(uri: str) -> None:
    ds = pennon.write_dataset(pa.table({"title": ANIMALS}), uri)
    ds.create_scalar_index("title", "INVERTED")
    found = ds.search("fox red", k=2)
    assert (found["title"][0].as_py(), found.schema.names) == ("red fox", ["title", "_score"])
    assert ds.explain_search("fox").startswith("text: full-text search of title\n")


@pytest.mark.parametrize("mode", ["vector", "text", "hybrid"])
def test_search_mode_chooses_vectors_texts_or_both(ds: pennon.LanceDataset, mode: Any) -> None:
    ds.create_scalar_index("title", "INVERTED")
    score = {"vector": "_distance", "text": "_score", "hybrid": "_relevance_score"}[mode]
    found = ds.search("red fox", k=2, mode=mode, model=MODEL)
    assert found.schema.names[-1] == score
    assert found["id"][0].as_py() == 0


def test_text_search_needs_no_model(ds: pennon.LanceDataset) -> None:
    ds.create_scalar_index("title", "INVERTED")
    assert ds.search("panda", mode="text")["id"].to_pylist() == [5]
    found = ds.search("panda", mode="text", text_columns=["title"], columns={"n": "id + 1"})
    assert found["n"].to_pylist() == [6]


def test_search_with_a_filter_before_and_behind(ds: pennon.LanceDataset) -> None:
    before = ds.search("red deer", k=2, model=MODEL, filter="id < 5")
    assert [n for n in expected("red deer", 20) if n < 5][:2] == before["id"].to_pylist()
    behind = ds.search("red deer", k=2, model=MODEL, filter="id < 5", prefilter=False)
    assert behind["id"].to_pylist() == [n for n in expected("red deer", 2) if n < 5]


def test_search_with_an_offset_and_chosen_columns(ds: pennon.LanceDataset) -> None:
    found = ds.search(
        "wolf", k=2, offset=1, model=MODEL, columns=["title_vector", "id"], with_row_id=True
    )
    assert found.schema.names == ["title_vector", "id", "_distance", "_rowid"]
    assert found["id"].to_pylist() == expected("wolf", 3)[1:]
    hybrid = pennon.dataset(ds.uri)
    hybrid.create_scalar_index("title", "INVERTED")
    whole = hybrid.search("red wolf", k=5, model=MODEL, candidates=8)["id"].to_pylist()
    part = hybrid.search("red wolf", k=3, offset=2, model=MODEL, candidates=8)["id"].to_pylist()
    assert part == whole[2:]


@pytest.mark.parametrize("query", [[0.0, 0.0, 1.0, 0.0], np.array([0, 0, 1, 0])])
def test_search_by_a_vector_needs_no_model(ds: pennon.LanceDataset, query: Any) -> None:
    ds.create_scalar_index("title", "INVERTED")
    found = ds.search(query, k=1)
    near = ds.to_table(nearest={"column": "title_vector", "q": query, "k": 1, "metric": "cosine"})
    assert found["id"].to_pylist() == near["id"].to_pylist()


def test_search_of_vectors_without_a_note_takes_a_model(uri: str) -> None:
    vectors = pa.array(letters(["fox", "deer"]), pa.list_(pa.float32(), 4))
    ds = pennon.write_dataset(pa.table({"id": [0, 1], "vec": vectors}), uri)
    assert ds.search("dear", k=1, model=letters)["id"].to_pylist() == [1]
    assert ds.search([0.0, 0.0, 0.0, 9.0], k=1).to_pydict()["id"] == [0]
    with pytest.raises(ArgumentError, match=r"'vec' remembers no model.*model=\.\.\."):
        ds.search("dear", column="vec")
    with pytest.raises(ArgumentError, match="nothing that a text can be looked for in"):
        ds.search("dear")


def test_search_by_a_query_function_and_a_normalised_column(ds: pennon.LanceDataset) -> None:
    other = EmbeddingModel(letters, "two", query=lambda texts: np.array(letters(["owl"])[0]))
    ds.embed("title", other, "two", normalize=True, metric="dot")
    found = ds.search("anything", k=1, column="two", model=other)
    assert found["id"].to_pylist() == expected("owl", 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "fuzzy"}, "mode is one of"),
        ({"k": 0}, "k is a whole number, 1 or more"),
        ({"offset": -1}, "offset is a whole number, 0 or more"),
        ({"columns": "id"}, "columns is a list of names"),
        ({"column": "size"}, "must be a vector"),
        ({"columns": ["nme"]}, "no column named 'nme'"),
        ({"filter": "nme = 1"}, "nme"),
        ({"mode": "text"}, "no column has a full-text index"),
        ({"mode": "hybrid"}, "no column has a full-text index"),
    ],
)
def test_search_with_wrong_arguments_is_refused(
    ds: pennon.LanceDataset, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ds.search("fox", model=MODEL, **options)


def test_search_with_a_misspelt_option_is_a_type_error(ds: pennon.LanceDataset) -> None:
    with pytest.raises(TypeError):
        ds.search("fox", modelx=MODEL)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'modelx'"):
        ds.explain_search("fox", modelx=MODEL)


def test_search_with_several_embedded_columns_needs_the_name_of_one(
    ds: pennon.LanceDataset,
) -> None:
    ds.embed("title", MODEL, "second")
    with pytest.raises(ArgumentError, match="title_vector, second remember models"):
        ds.search("fox", model=MODEL)
    found = ds.search("bear", k=1, column="second", model=MODEL)
    assert found["id"].to_pylist() == expected("bear", 1)


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        (
            b"fox",
            {},
            "no column of vectors remembers a model of bytes; those of texts: title_vector",
        ),
        (b"fox", {"mode": "hybrid"}, "mode 'hybrid' searches texts, and the query is bytes"),
        ([1.0], {}, "Query vector size 1 does not match"),
    ],
)
def test_search_by_a_query_that_does_not_fit_is_refused(
    ds: pennon.LanceDataset, query: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        ds.search(query, **options)


def test_query_without_a_vector_is_refused(ds: pennon.LanceDataset) -> None:
    never = EmbeddingModel(lambda texts: [None for _ in texts], "letters")
    with pytest.raises(ArgumentError, match="made no vector of the query 'fox'"):
        ds.search("fox", model=never)


PROGRAM = """
import sys, pennon
ds = pennon.dataset(sys.argv[1])
try:
    ds.search("red fox")
except pennon.errors.NotFoundError as error:
    print(error)
pennon.embeddings.register_embedding("letters", lambda texts: [[t.count(c) + 0.01 for c in "redo"] for t in texts])
print(ds.search("red fox", k=1)["id"].to_pylist())
"""


def test_search_in_a_new_process_needs_the_model_registered(
    ds: pennon.LanceDataset,
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, ds.uri], capture_output=True, text=True, check=True
    )
    error, found = run.stdout.splitlines()
    assert "no embedding model is called 'letters' in this process" in error
    assert "pennon.embeddings.register_embedding('letters', model)" in error
    assert found == "[0]"


def test_model_of_an_untrusted_remembered_name_is_not_loaded(
    ds: pennon.LanceDataset,
) -> None:
    for name in ("sentence-transformers:evil/model", "os", "wordllama.evil"):
        ds.embed("title", EmbeddingModel(letters, name), "c" + str(len(name)))
        with pytest.raises(NotFoundError, match="no embedding model is called"):
            ds.search("fox", column="c" + str(len(name)))
