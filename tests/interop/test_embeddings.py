"""Embedded tables beside pylance: it reads, searches and changes them, and Pennon finds what it changed."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.embeddings import EmbeddingModel

WORDS = ["red fox", "blue whale", None, "", "grey wolf", "red deer"]


def letters(texts: list[str]) -> list[list[float]]:
    return [[float(text.count(letter)) for letter in "redo"] for text in texts]


MODEL = EmbeddingModel(letters, "letters")


def made(uri: str, version: str, *, stable: bool) -> pennon.LanceDataset:
    rows = pa.table({"id": range(6), "title": WORDS})
    ds = pennon.write_dataset(
        rows, uri, max_rows_per_file=2, data_storage_version=version, enable_stable_row_ids=stable
    )
    ds.embed("title", MODEL, metric="l2")
    return ds


def check(uri: str) -> None:
    """Check that both sides read the vector of each title."""
    names = ["title", "title_vector"]
    rows = pennon.dataset(uri).to_table(columns=names)
    assert lance.dataset(uri).to_table(columns=names).equals(rows)
    for row in rows.to_pylist():
        wanted = None if row["title"] is None else letters([row["title"]])[0]
        assert row["title_vector"] == wanted


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_pylance_reads_and_searches_an_embedded_table(
    tmp_path: Path, version: str, stable: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    ds = made(uri, version, stable=stable)
    ds.update({"title": "'a red door'"}, where="id = 1")
    ds.insert(pa.table({"id": [9], "title": ["odd"]}))
    ds.refresh_embeddings(model=MODEL)
    check(uri)
    theirs = lance.dataset(uri)
    assert b"pennon.embedding" in theirs.schema.field("title_vector").metadata
    query = np.array(letters(["red deer"])[0], np.float32)
    near = {"column": "title_vector", "q": query, "k": 3, "metric": "l2"}
    found = ds.search("red deer", k=3, model=MODEL)
    shown = theirs.to_table(nearest=near, columns=["id"])
    assert shown["_distance"].to_pylist() == found["_distance"].to_pylist()
    assert shown["id"].to_pylist() == found["id"].to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("stable", [False, True])
def test_changes_by_pylance_are_found_by_a_refresh(
    tmp_path: Path, version: str, stable: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    made(uri, version, stable=stable)
    theirs = lance.dataset(uri)
    theirs.update({"title": "'a red door'"}, where="id = 1")
    theirs.insert(pa.table({"id": [9, 10], "title": ["odd", None]}))
    whole = theirs.to_table(filter="id = 4")
    theirs.merge_insert("id").when_matched_update_all().execute(
        whole.set_column(1, "title", pa.array(["reed"]))
    )
    theirs.delete("id = 0")
    theirs.optimize.compact_files()
    ds = pennon.dataset(uri)
    assert ds.refresh_embeddings(model=MODEL) == 3
    check(uri)
    assert ds.refresh_embeddings(model=MODEL) == 0


def test_pylance_goes_on_with_a_table_that_was_refreshed_under_its_index(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    titles = [f"{'red' * (n % 7)} {'o' * (n % 11)} {n}" for n in range(600)]
    ds = pennon.write_dataset(pa.table({"id": range(600), "title": titles}), uri)
    ds.embed("title", MODEL, metric="l2")
    theirs = lance.dataset(uri)
    theirs.create_index("title_vector", "IVF_FLAT", num_partitions=2, metric="l2")
    theirs.update({"title": "'oooooooooooooooo'"}, where="id = 5")
    theirs.optimize.optimize_indices()
    theirs.optimize.compact_files()
    ds = pennon.dataset(uri)
    assert ds.refresh_embeddings(model=MODEL) == 1
    check(uri)
    query = letters(["oooooooooooooooo"])[0]
    near = {"column": "title_vector", "q": np.array(query, np.float32), "k": 1, "nprobes": 2}
    assert lance.dataset(uri).to_table(nearest=near)["id"].to_pylist() == [5]
    assert ds.search("oooooooooooooooo", k=1, model=MODEL)["id"].to_pylist() == [5]
    theirs = lance.dataset(uri)
    theirs.optimize.optimize_indices()
    theirs.validate()
    assert theirs.to_table(nearest=near)["id"].to_pylist() == [5]
