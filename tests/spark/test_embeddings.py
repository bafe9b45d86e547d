"""``LanceTable.embed``, ``refreshEmbeddings`` and ``search``, and ``search(...)`` in SQL."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.embeddings import EmbeddingModel, register_embedding
from pennon.errors import ArgumentError, NotFoundError
from pennon.spark import AttachedCatalog, LanceTable
from tests.spark.embedding_program import WORDS, letters, tell

ROOT = Path(__file__).parents[2]


@pytest.fixture
def animals(spark: SparkSession, tmp_path: Path) -> LanceTable:
    """A table of three fragments with titles."""
    uri = str(tmp_path / "animals.lance")
    rows = pa.table({"id": range(6), "title": WORDS})
    pennon.write_dataset(rows, uri, max_rows_per_file=2)
    return LanceTable.forPath(spark, uri)


def check(table: LanceTable) -> None:
    """Check that each row has the vector of its title."""
    for row in table.toDF().collect():
        wanted = None if row.title is None else letters([row.title])[0]
        assert row.title_vector == (None if wanted is None else pytest.approx(wanted))


@pytest.mark.parametrize("mode", ["classic", pytest.param("connect", marks=pytest.mark.slow)])
def test_embed_refresh_and_search_in_a_session(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    if mode == "classic":
        seen = tell(spark, tmp_path)
    else:
        program = [sys.executable, "-m", "tests.spark.embedding_program", mode, str(tmp_path)]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        seen = json.loads(done.stdout.splitlines()[-1])
    titles = ["red fox", "a red door", None, "", "grey wolf", "red deer", "odd"]
    assert [title for title, _ in seen["rows"]] == titles
    for title, vector in seen["rows"]:
        wanted = None if title is None else letters([title])[0]
        assert vector == (None if wanted is None else pytest.approx(wanted))
    assert (seen["written"], seen["embedded"], seen["found"], seen["by_sql"]) == (
        [3, 2],
        2,
        [5, 0],
        [9],
    )


def test_embed_after_a_failed_task_goes_on_from_its_checkpoint(
    animals: LanceTable, tmp_path: Path
) -> None:
    stop, notes = tmp_path / "stop", str(tmp_path / "notes")
    stop.touch()

    def fails(texts: list[str]) -> Any:
        if stop.exists() and "red deer" in texts:
            message = "the model is out of memory"
            raise ValueError(message)
        return letters(texts)

    model = EmbeddingModel(fails, "fails", dimension=4)
    with pytest.raises(Exception, match="the model is out of memory"):
        animals.embed("title", model, checkpoint=notes)
    stop.unlink()
    done = animals.embed("title", model, checkpoint=notes).first()
    assert done is not None
    assert done.num_reused_fragments + done.num_written_fragments == 3
    assert done.num_reused_fragments >= 1
    assert not list(Path(notes).iterdir())
    check(animals)


def test_refresh_after_changes_of_a_table_embeds_stale_rows(animals: LanceTable) -> None:
    animals.embed("title", letters)
    animals.update("id = 0", {"title": "'owl'"})
    animals.update("id = 4", {"id": "id + 100"})
    source = animals.toDF().where("id = 5").selectExpr("id", "'ant' AS title")
    animals.merge(source.selectExpr("id AS k", "title AS t"), "id = k").whenMatchedUpdate(
        set={"title": "t"}
    ).execute()
    animals.optimize().executeZOrderBy("title", "id")
    done = animals.refreshEmbeddings(model=letters).first()
    assert done is not None
    assert done.num_embedded_rows == 2
    check(animals)
    again = animals.refreshEmbeddings(model=letters).first()
    assert again is not None
    assert (again.version, again.num_embedded_rows) == (done.version, 0)
    entry = animals.history(1).first()
    assert entry is not None
    assert (entry.operation, entry.operationMetrics["numUpdatedRows"]) == (
        "REFRESH EMBEDDINGS",
        "2",
    )


def test_refresh_of_few_rows_under_an_index_moves_them_on_executors(
    spark: SparkSession, tmp_path: Path
) -> None:
    uri = str(tmp_path / "many.lance")
    rng = np.random.default_rng(0)
    titles = ["".join(rng.choice(list("redo"), 9)) for _ in range(400)]
    ds = pennon.write_dataset(pa.table({"id": range(400), "title": titles}), uri)
    table = LanceTable.forPath(spark, uri)
    table.embed("title", letters, metric="l2")
    ds.checkout_latest()
    ds.create_index("title_vector", "IVF_FLAT", num_partitions=2, metric="l2")
    table.update("id = 3", {"title": "'ooooooooooooooo'"})
    ds.checkout_latest()
    ds.optimize.optimize_indices()
    ds.optimize.compact_files()
    done = table.refreshEmbeddings(model=letters).first()
    assert done is not None
    assert done.num_embedded_rows == 1
    check(table)
    found = table.search("ooooooooooooooo", k=1, model=letters).first()
    assert found is not None
    assert (found.id, found._distance) == (3, 0.0)
    assert "index 'title_vector_idx'" in table.explainSearch("o", model=letters)


def test_search_shows_rows_with_scores_and_limits_them_by_a_filter(animals: LanceTable) -> None:
    model = EmbeddingModel(letters, "never registered")
    animals.embed("title", model)
    found = animals.search("red", k=3, model=model, filter="id > 1", columns=["id"])
    assert found.columns == ["id", "_distance"]
    assert found.collect()[0].id == 5
    assert animals.embeddings()["title_vector"]["source"] == "title"
    with pytest.raises(TypeError, match="unexpected keyword argument 'modelx'"):
        animals.explainSearch("red", modelx=letters)
    with pytest.raises(NotFoundError, match="register_embedding"):
        animals.search("red")


@pytest.fixture
def zoo(animals: LanceTable, tmp_path: Path) -> Iterator[AttachedCatalog]:
    """The animals, embedded by a registered model, with a full-text index, in a catalog."""
    register_embedding("spark letters", letters)
    animals.embed("title", "spark letters")
    pennon.dataset(animals.uri).create_scalar_index("title", "INVERTED")
    made = pennon.spark.attach(animals.spark, str(tmp_path), name="zoo")
    yield made
    made.detach()


SEARCHES = [
    ("search('zoo.animals', 'red deer', 1)", (5, "_relevance_score")),
    ("SEARCH(table => 'zoo.animals', query => 'wolf', k => 1)", (4, "_relevance_score")),
    ("lance_search('zoo.animals', 'wolf', 1, mode => 'vector')", (4, "_distance")),
    ("search('zoo.animals', 'wolf', mode => 'text')", (4, "_score")),
    ("search('zoo.animals', 'red', 1, mode => 'text', filter => 'id > 0')", (5, "_score")),
    ("search('zoo.animals', 'red', 1, vector_column => 'title_vector', filter => 'id = 1')", (1, "_relevance_score")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), SEARCHES)
def test_search_in_sql_uses_vectors_texts_or_both(
    zoo: AttachedCatalog, call: str, expected: tuple[int, str]
) -> None:
    rows = pennon.spark.sql(zoo.spark, f"SELECT * FROM {call}").collect()
    assert (rows[0].id, rows[0].__fields__[-1]) == expected
    assert not any(name.startswith("title_vector") for name in rows[0].__fields__)


def test_search_in_sql_joins_and_shows_chosen_columns(zoo: AttachedCatalog) -> None:
    text = """
        SELECT a.title, s._rowid FROM search('zoo.animals', 'grey wolf', 1, columns => array('id', '_rowid')) s
        JOIN zoo.animals a ON a.id = s.id"""
    (row,) = pennon.spark.sql(zoo.spark, text).collect()
    assert row.title == "grey wolf"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("search('zoo.animals', 'red', 1, mode => 'fuzzy')", "mode is one of"),
        ("search('zoo.animals', 'red', 1, mod => 'text')", "has no argument 'mod'"),
        ("search('zoo.animals')", "the argument query is missing"),
        ("search('zoo.animals', 'red', 1, vector_column => 'title')", "must be a vector"),
    ],
)
def test_search_in_sql_with_wrong_arguments_is_refused(
    zoo: AttachedCatalog, call: str, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        pennon.spark.sql(zoo.spark, f"SELECT * FROM {call}").collect()
