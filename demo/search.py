"""The documentation of Python's data packages, searched: by meaning, by words, and by both.

Run by ``make demo-search``.  The texts are the docstrings of numpy, pandas, pyarrow and pyspark, as they are installed.
Executors take them out of the source files, give each a vector by latent semantic analysis (words that occur
together in many texts point the same way), and index both.  Each step checks what it finds against an exact
search or against one machine; the program ends with status 1 if one of them differs.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from flights import Account, run
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.query import PhraseQuery
from pennon.spark import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("numpy", "pandas", "pyarrow", "pyspark")
DIMENSION: Final = 64
LEAST_CHARACTERS: Final = 120
"""Shorter texts say too little."""
SAMPLE: Final = 2000
"""Texts that the model is made of, on the driver; executors give vectors to all."""
WORDS: Final = 3000
LEAST_TEXTS: Final = 3
"""A word that fewer of them have says nothing of others."""
SEED: Final = 2013
QUESTIONS: Final = (
    "combine the rows of two tables where their keys are equal",
    "replace missing values by those of the row before",
    "read a file of comma separated values",
    "solve a system of linear equations",
)
SHOWN: Final = 3
Matrix = npt.NDArray[np.float32]


# --- texts and vectors, on executors --------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """Return the words of a text, in small letters, without those of two letters and less."""
    return re.findall(r"[a-z]{3,}", text.lower())


def docstrings(package: str, path: Path, root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield package, full name and docstring of all that is public in a source file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    held: list[tuple[str, ast.AST]] = [(module, tree)]
    while held:
        prefix, node = held.pop()
        for each in ast.iter_child_nodes(node):
            if not isinstance(each, (ast.FunctionDef, ast.ClassDef)) or each.name.startswith("_"):
                continue
            name = f"{prefix}.{each.name}"
            held.append((name, each))
            text = ast.get_docstring(each) or ""
            if len(text) >= LEAST_CHARACTERS:
                yield package, name, text


def read_files(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take the docstrings out of source files; each row names a package, a file and the folder of packages."""
    for batch in batches:
        rows = [
            found
            for row in batch.to_pylist()
            for found in docstrings(row["package"], Path(row["path"]), Path(row["root"]))
        ]
        if rows:
            packages, names, texts = zip(*rows, strict=True)
            columns = {"package": packages, "name": names, "text": texts}
            yield pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True, slots=True)
class Embedding:
    """Latent semantic analysis: what each word adds to the vector of a text."""

    numbers: dict[str, int]
    weights: Matrix

    @classmethod
    def of(cls, texts: Sequence[str]) -> Embedding:
        """Make a model of some texts: the directions in which their words differ most."""
        counted = [Counter(words_of(text)) for text in texts]
        having = Counter(word for words in counted for word in words)
        known = [word for word, texts_of in having.most_common(WORDS) if texts_of >= LEAST_TEXTS]
        numbers = {word: number for number, word in enumerate(known)}
        rarity = np.log(len(texts) / np.array([having[word] for word in known]))
        matrix = np.zeros((len(texts), len(known)), np.float32)
        for row, words in enumerate(counted):
            for word, times in words.items():
                if word in numbers:
                    matrix[row, numbers[word]] = 1 + np.log(times)
        matrix *= rarity.astype(np.float32)
        matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)
        axes = np.random.default_rng(SEED).normal(size=(len(known), DIMENSION)).astype(np.float32)
        for _ in range(5):  # each turn leans the axes towards those of the largest differences
            axes, _ = np.linalg.qr(matrix.T @ (matrix @ axes))
        return cls(numbers, axes * rarity[:, None].astype(np.float32))

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text; all have length 1, but those without a known word."""
        found = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in enumerate(texts):
            for word, times in Counter(words_of(text)).items():
                if word in self.numbers:
                    found[row] += (1 + np.log(times)) * self.weights[self.numbers[word]]
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
        return found


@dataclass(frozen=True, slots=True)
class Embed:
    """Gives the texts of a batch their vectors."""

    model: Embedding

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """See `LanceTable.addColumns`."""
        vectors = self.model(batch.column("text").to_pylist())
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
        return pa.RecordBatch.from_arrays([column], ["vector"])


# --- the story ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Story:
    """The table and the model, and where what is found is told."""

    account: Account
    spark: SparkSession
    uri: str
    model: Embedding

    @property
    def table(self) -> LanceTable:
        """Return the table, on Spark."""
        return LanceTable.forPath(self.spark, self.uri)

    @property
    def here(self) -> pennon.LanceDataset:
        """Return the table, on this machine."""
        return pennon.dataset(self.uri)

    def near(self, question: str, **given: Any) -> dict[str, Any]:
        """Return a search for the texts near a question."""
        return {"column": "vector", "q": self.model([question])[0], "metric": "cosine", **given}

    def index(self) -> None:
        """Index vectors and words."""
        with self.account.step("Indices of vectors and of words, made by the executors"):
            given: dict[str, Any] = {"num_partitions": 16, "num_sub_vectors": 16}
            self.table.createIndex("vector", "IVF_PQ", metric="cosine", **given)
            self.table.createIndex("text", "INVERTED", with_position=True)
            lines = self.table.indices().select("name", "kind", "indexed_rows", "unindexed_rows")
            self.account.show(lines.toPandas())

    def by_vector(self) -> None:
        """Search by meaning, and count how much of the exact answer the index finds."""
        with self.account.step("By vector: what is meant, whatever it is called"):
            rows, found = [], 0
            for question in QUESTIONS:
                near = self.near(question, k=10, nprobes=8, refine_factor=5)
                mine = self.here.to_table(["name", "_distance"], nearest=near)
                near = self.near(question, k=10, use_index=False)
                exact = self.here.to_table(["name"], nearest=near)
                found += len(set(mine["name"].to_pylist()) & set(exact["name"].to_pylist()))
                rows += told(question, mine, "_distance")
            self.account.show(pd.DataFrame(rows, columns=["question", "found", "distance"]))
            recall = found / (10 * len(QUESTIONS))
            self.account.check(f"recall@10 of the index {recall:.2f}", recall >= 0.8)

    def by_words(self) -> None:
        """Search by words and by a phrase, and see that they are there."""
        with self.account.step("By words, and by a phrase"):
            rows = []
            words = self.here.to_table(["name", "text"], full_text_query="merge asof", limit=10)
            rows += told("merge asof", words, "_score")
            phrase = PhraseQuery("comma separated values", "text")
            texts = self.here.to_table(["name", "text"], full_text_query=phrase, limit=10)
            rows += told('"comma separated values"', texts, "_score")
            self.account.show(pd.DataFrame(rows, columns=["words", "found", "score"]))
            pattern = re.compile(r"comma[\s-]+separated[\s-]+values", re.IGNORECASE)
            has = [bool(pattern.search(text)) for text in texts["text"].to_pylist()]
            self.account.check(f"{len(has)} texts with the phrase", len(has) > 0 and all(has))

    def by_both(self) -> None:
        """Put both searches together by the ranks of what they find."""
        with self.account.step("By both: ranks of the two, put together"):
            rows = []
            for question in QUESTIONS:
                near = self.near(question, nprobes=16, refine_factor=5)
                found = self.here.hybrid_search(near, question, 10, columns=["name"], candidates=50)
                rows += told(question, found, "_relevance_score")
            self.account.show(pd.DataFrame(rows, columns=["question", "found", "relevance"]))

    def on_spark(self) -> None:
        """Ask for the nearest of each text of a package, in one join; the same as on one machine."""
        with self.account.step("On Spark: for each function of numpy the nearest of pandas"):
            numpys = self.table.read(["name", "vector"], filter="package = 'numpy'")
            queries = numpys.selectExpr("name AS asked", "vector AS q")
            began = time.perf_counter()
            given: dict[str, Any] = {"filter": "package = 'pandas'", "prefilter": True}
            given |= {"metric": "cosine", "use_index": False}
            joined = self.table.nearest(queries, 3, "vector", "q", columns=["name"], **given)
            found = joined.select("asked", "name", "_distance", "_rank").toPandas()
            took = time.perf_counter() - began
            asked = found["asked"].nunique()
            self.account.console.print(
                f"  {asked:,} queries, {len(found):,} rows in {took:.1f} s: {asked / took:,.0f} a second"
            )
            best = found[found["_rank"] == 1].sort_values(["_distance", "asked"]).head(5)
            self.account.show(best[["asked", "name", "_distance"]].round(3))
            some = numpys.orderBy("name").limit(50).toPandas()
            vectors = np.stack(some["vector"].to_list())
            near = {
                "column": "vector",
                "q": vectors,
                "k": 3,
                "metric": "cosine",
                "use_index": False,
            }
            given = {"filter": given["filter"], "prefilter": True}
            here = self.here.to_table(["name"], nearest=near, **given)["name"].to_pylist()
            frame = found.sort_values(["asked", "_rank"])
            there = [
                name for each in some["name"] for name in frame.loc[frame["asked"] == each, "name"]
            ]
            self.account.check("as one machine finds them", there == here)

    def both_on_spark(self) -> None:
        """Ask all questions by vector and words at once."""
        with self.account.step("On Spark, by both: all questions at once"):
            rows = [(each, self.model([each])[0].tolist()) for each in QUESTIONS]
            queries = self.spark.createDataFrame(rows, "question string, q array<float>")
            given: dict[str, Any] = {"words": "question", "columns": ["name"], "metric": "cosine"}
            given |= {"candidates": 50, "nprobes": 16, "refine_factor": 5}
            found = self.table.hybrid(queries, 10, "vector", "q", **given).toPandas()
            is_same = True
            for question in QUESTIONS:
                near = self.near(question, nprobes=16, refine_factor=5)
                here = self.here.hybrid_search(near, question, 10, columns=["name"], candidates=50)
                mine = found[found["question"] == question].sort_values("_rank")
                is_same &= mine["name"].to_list() == here["name"].to_pylist()
            self.account.check(f"{len(found)} rows, as one machine finds them", is_same)


def told(question: str, found: pa.Table, by: str) -> list[tuple[str, str, float]]:
    """Return the first rows found, behind what was asked."""
    pairs = zip(found["name"].to_pylist(), found[by].to_pylist(), strict=True)
    rows = [(name, round(value, 4)) for name, value in pairs][:SHOWN]
    return [(question if at == 0 else "", *row) for at, row in enumerate(rows)]


def load(account: Account, spark: SparkSession, uri: str) -> Embedding:
    """Source files -> texts -> vectors, all on executors; the model is made of a sample, here."""
    files = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            message = f"the package {package} is not installed; `make setup` does it"
            raise SystemExit(message)
        root = Path(spec.origin).parent
        paths = sorted(path for path in root.rglob("*.py") if "tests" not in path.parts)
        files += [(package, str(path), str(root.parent)) for path in paths]
    with account.step(f"The docstrings of {len(files):,} source files, into a table"):
        rows = spark.createDataFrame(files, "package string, path string, root string")
        texts = rows.repartition(8, "path").mapInArrow(
            read_files, "package string, name string, text string"
        )
        texts = texts.groupBy("package", "name").agg(sf.max("text").alias("text"))
        pennon.spark.write(texts.orderBy("name"), uri)
        counts = pennon.spark.read(spark, uri, aggregate={"*": "count"}, group_by=["package"])
        account.show(counts.toDF("package", "texts").orderBy("package").toPandas())
    with account.step("A vector for each text: the model here, the vectors by the executors"):
        step = max(pennon.dataset(uri).count_rows() // SAMPLE, 1)
        sample = pennon.dataset(uri).take(list(range(0, SAMPLE * step, step)), columns=["text"])
        model = Embedding.of(sample["text"].to_pylist())
        schema = pa.schema([pa.field("vector", pa.list_(pa.float32(), DIMENSION))])
        done = LanceTable.forPath(spark, uri).addColumns(
            Embed(model), readColumns=["text"], outputSchema=schema
        )
        account.console.print(f"  {done.collect()[0].num_written_fragments} fragments")
    return model


def tell(account: Account, spark: SparkSession, folder: Path) -> None:
    """Tell the whole story."""
    uri = str(folder / "docstrings.lance")
    story = Story(account, spark, uri, load(account, spark, uri))
    story.index()
    story.by_vector()
    story.by_words()
    story.by_both()
    story.on_spark()
    story.both_on_spark()


if __name__ == "__main__":
    sys.exit(run("the documentation of numpy, pandas, pyarrow and pyspark, searched", tell))
