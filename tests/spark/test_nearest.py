"""``LanceTable.nearest`` and ``hybrid``: many queries at once, against distances computed by numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon
from pennon.errors import ArgumentError
from pennon.spark import LanceTable
from tests.spark.failing import DyingQueries

ROWS, DIM, QUERIES = 600, 8, 9
Matrix = npt.NDArray[np.float32]


def vectors_of(matrix: Matrix) -> pa.Array:
    """Return rows of numbers as a column of vectors."""
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of six fragments, with rows deleted; some vectors are there twice."""
    uri = str(tmp_path_factory.mktemp("nearest") / "t.lance")
    matrix = numbers()
    words = [f"{('red', 'blue')[n % 2]} {('fox', 'owl', 'bee')[n % 3]}" for n in range(ROWS)]
    rows = {"id": np.arange(ROWS), "text": words, "vec": vectors_of(matrix)}
    pennon.write_dataset(pa.table(rows), uri, max_rows_per_file=100)
    pennon.dataset(uri).delete("id % 7 = 0")
    return uri


def numbers() -> Matrix:
    """Return the vectors: whole numbers, so that distances are exact, and some are equal."""
    rng = np.random.default_rng(1)
    matrix = rng.integers(-4, 5, (ROWS, DIM)).astype(np.float32)
    matrix[300:320] = matrix[:20]
    return matrix


def asked() -> Matrix:
    """Return the queries."""
    return np.random.default_rng(2).integers(-4, 5, (QUERIES, DIM)).astype(np.float32)


def frame_of(spark: SparkSession, matrix: Matrix, partitions: int = 2) -> DataFrame:
    """Return queries with a name each."""
    rows = [(f"q{n}", [float(x) for x in each]) for n, each in enumerate(matrix)]
    return spark.createDataFrame(rows, "name string, vec array<float>").repartition(partitions)


def exact(
    query: Matrix, k: int, keeps: Callable[[int], bool] = lambda _: True
) -> list[tuple[int, float]]:
    """Return the ids and distances of the rows nearest to a query, those of equal distance by id."""
    distances = ((numbers() - query) ** 2).sum(1)
    alive = [row for row in range(ROWS) if row % 7 and keeps(row)]
    best = sorted(alive, key=lambda row: (distances[row], row))[:k]
    return [(row, float(distances[row])) for row in best]


def told(found: DataFrame, *extra: str) -> dict[str, list[tuple[Any, ...]]]:
    """Return by the names of queries what was found, and that ranks count from 1."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for row in sorted(found.collect(), key=lambda row: (row["name"], row["_rank"])):
        mine = rows.setdefault(row["name"], [])
        mine.append((row["id"], row["_distance"], *(row[name] for name in extra)))
        assert row["_rank"] == len(mine)
    return rows


def test_nearest_without_index_equals_exact_search(spark: SparkSession, made: str) -> None:
    table = LanceTable.forPath(spark, made)
    found = table.nearest(frame_of(spark, asked()), 12, "vec")
    assert found.columns == ["name", "vec", "id", "text", "_distance", "_rank"]
    assert told(found) == {f"q{n}": exact(query, 12) for n, query in enumerate(asked())}


@pytest.mark.parametrize("adapts", ["true", "false"])
def test_nearest_with_duplicate_and_null_queries(
    spark: SparkSession, made: str, adapts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes out by itself, with whatever stands beside it, in parts of the table as in one."""
    monkeypatch.setattr("pennon.spark.source.partitions.MIN_SPLIT_BYTES", 1)
    query, other = asked()[:2].tolist()
    rows = [(1, query, {"a": 1}), (1, query, {"a": 1}), (1, query, {"a": 2}), (None, query, None)]
    rows += [(2, other, {}), (3, None, {}), (4, [None, *other[1:]], {})]
    queries = spark.createDataFrame(rows, "n int, q array<double>, m map<string, int>")
    queries = queries.withColumn("v", sf.parse_json(sf.lit('{"x": [1, null]}')))
    table = LanceTable.forPath(spark, made)
    spark.conf.set("spark.sql.adaptive.enabled", adapts)
    try:
        found = table.nearest(queries, 3, "vec", columns={"row": "id", "far": "_distance * 2"})
        joined = found.withColumn("v", sf.to_json("v")).collect()
    finally:
        spark.conf.set("spark.sql.adaptive.enabled", "false")
    assert {row["v"] for row in joined} == {'{"x":[1,null]}'}
    seen = sorted(
        (str(row["n"]), str(row["m"]), row["_rank"], row["row"], row["far"]) for row in joined
    )
    best, others = exact(asked()[0], 3), exact(asked()[1], 3)
    expected = [
        (n, m, rank, row, 2 * distance)
        for n, m, times, near in (
            ("1", "{'a': 1}", 2, best),
            ("1", "{'a': 2}", 1, best),
            ("None", "None", 1, best),
            ("2", "{}", 1, others),
        )
        for rank, (row, distance) in enumerate(near, 1)
        for _ in range(times)
    ]
    assert seen == sorted(expected)


@pytest.mark.parametrize("prefilter", [True, False])
def test_nearest_with_prefilter_and_postfilter(
    spark: SparkSession, made: str, prefilter: bool
) -> None:
    table = LanceTable.forPath(spark, made)
    found = table.nearest(
        frame_of(spark, asked()[:3]), 20, filter="id % 2 = 0", prefilter=prefilter, with_row_id=True
    )
    expected = {}
    for n, query in enumerate(asked()[:3]):
        rows = exact(query, 20, lambda row: row % 2 == 0) if prefilter else exact(query, 20)
        expected[f"q{n}"] = [
            (row, far, (row // 100 << 32) + row % 100) for row, far in rows if row % 2 == 0
        ]
    assert told(found, "_rowid") == expected


def test_ranges_metrics_and_distances_in_filters(spark: SparkSession, made: str) -> None:
    table = LanceTable.forPath(spark, made)
    queries = frame_of(spark, asked()[:2])
    far = exact(asked()[0], 8)[-1][1]
    some = told(table.nearest(queries, 30, distance_range=(None, far)))
    assert some["q0"] == [each for each in exact(asked()[0], 30) if each[1] < far]
    assert told(table.nearest(queries, 30, filter=f"_distance < {far}"))["q0"] == some["q0"]
    dot = told(table.nearest(queries, 2, metric="dot"))["q0"]
    products = 1 - numbers() @ asked()[0]
    alive = [row for row in range(ROWS) if row % 7]
    assert dot == [
        (row, products[row]) for row in sorted(alive, key=lambda row: (products[row], row))[:2]
    ]


@pytest.fixture(scope="module")
def indexed(made: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same rows with indices of vectors and texts, that all but the last fragment are in."""
    rows = pennon.dataset(made).to_table()
    uri = str(tmp_path_factory.mktemp("indexed") / "t.lance")
    old = rows.slice(0, rows.num_rows - 50)
    ds = pennon.write_dataset(old, uri, max_rows_per_file=100, enable_stable_row_ids=True)
    ds.create_index("vec", "IVF_FLAT", num_partitions=4)
    ds.create_scalar_index("text", "INVERTED")
    pennon.write_dataset(rows.slice(old.num_rows), uri, mode="append")
    return uri


@pytest.mark.parametrize("fast", [True, False])
def test_nearest_with_unindexed_rows_and_fast_search(
    spark: SparkSession, indexed: str, fast: bool
) -> None:
    table = LanceTable.forPath(spark, indexed)
    found = table.nearest(frame_of(spark, asked()), 10, nprobes=4, fast_search=fast)
    ids = pennon.dataset(indexed).to_table(["id"])["id"].to_pylist()
    covered = set(ids[:-50] if fast else ids)
    expected = {f"q{n}": exact(query, 10, covered.__contains__) for n, query in enumerate(asked())}
    assert told(found) == expected


def test_hybrid_search_equals_local_search(spark: SparkSession, indexed: str) -> None:
    texts = ["red fox", "owl", None, "nothing of it"]
    rows: list[tuple[str, list[float] | None, str | None]] = [
        (f"q{n}", [*map(float, asked()[n])], text) for n, text in enumerate(texts)
    ]
    rows.append(("q4", None, "owl"))
    queries = spark.createDataFrame(rows, "name string, vec array<float>, words string")
    table = LanceTable.forPath(spark, indexed)
    given: dict[str, Any] = {"candidates": 25, "filter": "id % 5 != 0", "prefilter": True}
    found = table.hybrid(queries, 15, words="words", nprobes=4, columns=["id"], **given)
    assert found.columns[-4:] == ["_distance", "_score", "_relevance_score", "_rank"]
    seen = told(found, "_score", "_relevance_score")
    ds = pennon.dataset(indexed)
    for name, query, text in rows:
        near = {"column": "vec", "q": query, "nprobes": 4}
        if query is None or text is None:
            search: dict[str, Any] = {"nearest": {**near, "k": 15}}
            if query is None:
                search = {"full_text_query": text, "limit": 15}
            alone = ds.to_table(["id"], filter="id % 5 != 0", prefilter=True, **search)
            assert [row[0] for row in seen[name]] == alone["id"].to_pylist()
            continue
        one = ds.hybrid_search(near, text, 15, columns=["id"], **given)
        names = ("id", "_distance", "_score", "_relevance_score")
        assert seen[name] == list(zip(*(one[each].to_pylist() for each in names), strict=True))


def test_nearest_of_lists_of_vectors(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pennon.spark.source.partitions.MIN_SPLIT_BYTES", 1)
    matrix = numbers()[:, :2]
    lists = pa.ListArray.from_arrays(
        pa.array(range(0, ROWS + 1, 3), pa.int32()), vectors_of(matrix)
    )
    rows = pa.table({"id": range(ROWS // 3), "vecs": lists})
    pennon.write_dataset(rows, uri, max_rows_per_file=50)
    queries = spark.createDataFrame(
        [("one", [[1.0, 2.0]]), ("two", [[0.0, 0.0], [4.0, 4.0]]), ("none", [])],
        "name string, vecs array<array<float>>",
    )
    found = told(LanceTable.forPath(spark, uri).nearest(queries, 7))
    assert found.keys() == {"one", "two"}
    for name, query in (("one", [[1, 2]]), ("two", [[0, 0], [4, 4]])):
        each = ((matrix[:, None] - np.array(query)) ** 2).sum(2).reshape(-1, 3, len(query))
        total = each.min(1).sum(1)
        best = sorted(range(len(total)), key=lambda row: (total[row], row))[:7]
        assert found[name] == [(row, total[row]) for row in best]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_nearest_with_retried_task_and_reordered_queries(
    spark: SparkSession, made: str, indexed: str, tmp_path: Path, is_indexed: bool
) -> None:
    """The first attempt at the queries dies behind a part of its rows, the second has them backwards."""
    queries = frame_of(spark, asked(), 1).mapInArrow(
        DyingQueries(str(tmp_path / "died")), "name string, vec array<float>"
    )
    table = LanceTable.forPath(spark, indexed if is_indexed else made)
    found = told(table.nearest(queries, 10, nprobes=4))
    assert (tmp_path / "died").exists()
    assert found == {f"q{n}": exact(query, 10) for n, query in enumerate(asked())}


def test_nearest_of_empty_table_or_queries(spark: SparkSession, uri: str, made: str) -> None:
    empty = pennon.dataset(made).schema.empty_table()
    pennon.write_dataset(empty, uri)
    queries = frame_of(spark, asked()[:1])
    assert LanceTable.forPath(spark, uri).nearest(queries, 3).collect() == []
    assert LanceTable.forPath(spark, made).nearest(queries.where("false"), 3).collect() == []


def test_a_query_at_hand_of_another_dimension_is_refused_before_any_job(
    spark: SparkSession, made: str
) -> None:
    """Those that are computed are refused by a task (below)."""
    table = LanceTable.forPath(spark, made)
    queries = spark.createDataFrame(pa.table({"q": pa.array([None, [1.0, 2.0, 3.0]])}))
    with pytest.raises(ArgumentError, match=r"a query in column 'q' has 3 numbers, .* have 8"):
        table.nearest(queries, 2, vector="q")


def test_nearest_query_of_other_dimension_is_refused(spark: SparkSession, made: str) -> None:
    queries = spark.createDataFrame([("a", [1.0, 2.0])], "name string, q array<double>")
    found = LanceTable.forPath(spark, made).nearest(queries, 3, "vec", "q")
    text = "a query in column 'q' has 2 numbers, the vectors of column 'vec' of the table have 8"
    with pytest.raises(PySparkException, match=text):
        found.collect()


@pytest.mark.parametrize(
    ("columns", "given", "message"),
    [
        ("name string, vec array<float>", {"k": 0}, "Nearest-K must be > 0 but got 0"),
        ("name string, vec array<float>", {"column": "id"}, "Query column id must be a vector"),
        ("name string, vec array<float>", {"column": "x"}, "column x is not in the dataset"),
        ("name string, vec array<float>", {"vector": "q"}, "no column 'q'; they have name, vec"),
        ("name string, vec array<float>", {"vector": "name"}, "'name' of the queries is string"),
        ("name string", {}, "name the column of the queries with the vectors"),
        ("a array<float>, b array<int>", {}, "2 of a, b are arrays of numbers"),
        ("id int, vec array<float>", {}, r"both have a column 'id': .* columns=\{'row_id': 'id'\}"),
        ("_rank int, vec array<float>", {}, "queries cannot have a column '_rank'"),
        ("name string, vec array<float>", {"metric": "hamming"}, "hamming does not support float"),
        ("name string, vec array<float>", {"columns": ["no"]}, "no"),
        ("name string, vec array<float>", {"filter": "no = 1"}, "no"),
    ],
)
def test_nearest_with_wrong_queries_is_refused(
    spark: SparkSession, made: str, columns: str, given: dict[str, Any], message: str
) -> None:
    queries = spark.createDataFrame([], columns)
    with pytest.raises(ArgumentError, match=message):
        LanceTable.forPath(spark, made).nearest(queries, **given)


def test_hybrid_needs_words_of_the_queries(spark: SparkSession, made: str) -> None:
    queries = frame_of(spark, asked()[:1])
    table = LanceTable.forPath(spark, made)
    with pytest.raises(ArgumentError, match="the queries have no column 'text' of strings"):
        table.hybrid(queries, 3, words="text")
    with pytest.raises(ArgumentError, match="INVERTED index"):
        table.hybrid(queries, 3, words="name")
