"""Embedding, refreshing and searching a table on Spark, for any mode: ``python -m tests.spark.embedding_program MODE FOLDER``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import pennon
import pennon.spark
from pennon.embeddings import register_embedding
from pennon.spark import LanceTable
from tests.spark.modes import start

WORDS = ["red fox", "blue whale", None, "", "grey wolf", "red deer"]


def letters(texts: list[str]) -> list[list[float]]:
    """Return how often each text has four letters."""
    return [[float(text.count(letter)) + 0.01 for letter in "redo"] for text in texts]


def tell(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Embed, change, refresh and search a table; return what was seen."""
    uri = str(folder / "animals.lance")
    rows = pa.table({"id": range(6), "title": WORDS})
    pennon.write_dataset(rows, uri, max_rows_per_file=2)
    register_embedding("letters", letters)
    table = LanceTable.forPath(spark, uri)
    added = table.embed("title", "letters", metric="l2").first()
    table.update("id = 1", {"title": "'a red door'"})
    pennon.write_dataset(pa.table({"id": [9], "title": ["odd"]}), uri, mode="append")
    refreshed = table.refreshEmbeddings().first()
    found = table.search("red deer", k=2).collect()
    lake = pennon.spark.attach(spark, str(folder))
    by_sql = pennon.spark.sql(spark, "SELECT id FROM search('lake.animals', 'odd', 1)").collect()
    lake.detach()
    assert added is not None
    assert refreshed is not None
    return {
        "written": [added.num_written_fragments, refreshed.num_written_fragments],
        "embedded": refreshed.num_embedded_rows,
        "rows": [
            [row.title, None if row.title_vector is None else list(row.title_vector)]
            for row in table.toDF().orderBy("id").collect()
        ],
        "found": [row.id for row in found],
        "by_sql": [row.id for row in by_sql],
    }


if __name__ == "__main__":
    print(json.dumps(tell(start(sys.argv[1]), Path(sys.argv[2]))))
