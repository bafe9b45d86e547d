"""Vector searches of tables without an index: rows, order, and refusals."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, ColumnTypeError

SQUARE = [[0, 0], [1, 0], [0, 2], None, [3, 3], [float("nan"), 0], [0, 0], [-4, 0]]
"""From the origin: 0, 1, 4, none, 18, none, 0, 16."""
ORIGIN = {"column": "vec", "q": [0, 0]}


@pytest.fixture
def dataset(tmp_path: Path) -> pennon.LanceDataset:
    vectors = pa.array(SQUARE, pa.list_(pa.float32(), 2))
    table = pa.table(
        {
            "id": range(8),
            "vec": vectors,
            "inner": pa.StructArray.from_arrays([vectors, pa.array(range(8))], ["vec", "n"]),
            "many": pa.array(
                [
                    [[0, 0], [5, 5]],
                    [[1, 0]],
                    None,
                    [],
                    [[2, 2]],
                    [[0, 2], [9, 9]],
                    [[3, 3]],
                    [None],
                ],
                pa.list_(pa.list_(pa.float32(), 2)),
            ),
            "words": pa.array(list("hgfedcba")),
        }
    )
    return pennon.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=3)


def found(dataset: pennon.LanceDataset, **options: Any) -> list[tuple[int, float]]:
    nearest = {**ORIGIN, **options.pop("nearest", {})}
    table = dataset.to_table(["id"], nearest=nearest, **options)
    return list(zip(table["id"].to_pylist(), table["_distance"].to_pylist(), strict=True))


def ids(dataset: pennon.LanceDataset, **options: Any) -> list[int]:
    return [row for row, _ in found(dataset, **options)]


def test_nearest_orders_equal_distances_by_row(dataset: pennon.LanceDataset) -> None:
    assert found(dataset) == [(0, 0), (6, 0), (1, 1), (2, 4), (7, 16), (4, 18)]
    assert ids(dataset, nearest={"k": 3}) == [0, 6, 1]
    assert found(dataset, nearest={"metric": "dot", "q": [-1, 0]})[0] == (7, -3)
    cosine = found(dataset, nearest={"metric": "Cosine", "q": [2, 0]})
    assert [row for row, _ in cosine] == [1, 4, 2, 7]  # vectors of zeros point nowhere
    assert [distance for _, distance in cosine] == pytest.approx([0, 1 - 0.5**0.5, 1, 2])


def test_nearest_k_and_limit_bound_the_rows(dataset: pennon.LanceDataset, tmp_path: Path) -> None:
    many = pa.table({"vec": pa.array([[n, 0] for n in range(40)], pa.list_(pa.float32(), 2))})
    table = pennon.write_dataset(many, tmp_path / "many.lance")
    count = {
        (k, limit): table.scanner(nearest={**ORIGIN, "k": k}, limit=limit).count_rows()
        for k in (None, 3, 20)
        for limit in (None, 0, 2, 30)
    }
    assert count == {
        (None, None): 10,
        (None, 0): 0,
        (None, 2): 2,
        (None, 30): 30,
        (3, None): 3,
        (3, 0): 0,
        (3, 2): 2,
        (3, 30): 3,
        (20, None): 20,
        (20, 0): 0,
        (20, 2): 2,
        (20, 30): 20,
    }
    assert ids(dataset, nearest={"k": 5}, limit=2, offset=1) == [6, 1]
    assert ids(dataset, nearest={"k": 5}, offset=4) == [7]


def test_nearest_with_prefilter_and_postfilter(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, nearest={"k": 3}, filter="id > 0") == [6, 1]
    assert ids(dataset, nearest={"k": 3}, filter="id > 0", prefilter=True) == [6, 1, 2]
    assert ids(dataset, nearest={"k": 4}, filter="id > 0", limit=1, offset=1) == [1]
    assert ids(dataset, filter="_distance > 0 AND _distance < 17") == [1, 2, 7]
    assert ids(dataset, filter="words IN ('h', 'b') AND _distance = 0") == [0, 6]
    with pytest.raises(ArgumentError, match="_distance"):
        dataset.to_table(nearest=ORIGIN, filter="_distance > 0", prefilter=True)
    with pytest.raises(ArgumentError, match="_distance"):
        dataset.to_table(filter="_distance > 0")
    with pytest.raises(ArgumentError, match="_distance"):
        dataset.to_table({"x": "_distance * 2"})


def test_nearest_skips_deleted_rows(dataset: pennon.LanceDataset) -> None:
    dataset.delete("id IN (0, 7)")
    assert ids(dataset) == [6, 1, 2, 4]
    assert ids(dataset, nearest={"k": 2}) == [6, 1]


def test_a_range_of_distances(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, nearest={"distance_range": (1, 16)}) == [1, 2]
    assert ids(dataset, nearest={"distance_range": (None, 16), "k": 2}) == [0, 6]
    assert ids(dataset, nearest={"distance_range": (4, None), "k": 2}) == [2, 7]
    assert ids(dataset, nearest={"distance_range": (9, 2)}) == []


def test_nearest_projection_adds_distance(dataset: pennon.LanceDataset) -> None:
    def names(columns: Any = None, q: Any = (0, 0), **options: Any) -> list[str]:
        scanner = dataset.scanner(columns, nearest={"column": "vec", "q": q}, **options)
        table = scanner.to_table()
        assert table.schema.equals(scanner.projected_schema, check_metadata=True)
        return table.schema.names

    everything = ["id", "vec", "inner", "many", "words"]
    assert names() == [*everything, "_distance"]
    assert names([]) == ["_distance"]
    assert names(["id"], with_row_id=True, with_row_address=True) == [
        "id",
        "_distance",
        "_rowid",
        "_rowaddr",
    ]
    assert names(["_distance", "_rowid", "id"]) == ["_distance", "_rowid", "id"]
    assert names(["inner.n"]) == ["inner.n", "_distance"]
    assert names(["id"], disable_scoring_autoprojection=True) == ["id"]
    assert names({"x": "id + 1", "d": "_distance * 2"}) == ["x", "d", "_distance"]
    assert names({"d": "_distance"}, disable_scoring_autoprojection=True) == ["d"]
    assert names({"_distance": "_distance", "x": "id"}) == ["_distance", "x"]
    many = [[0, 0], [1, 1]]
    assert names(["id"], many) == ["query_index", "id", "_distance"]
    assert names(["id", "query_index", "_distance"], many) == ["query_index", "id", "_distance"]
    with pytest.raises(ArgumentError, match="twice"):
        names(["_distance", "_distance"])


def test_nearest_columns_computed_from_distances(dataset: pennon.LanceDataset) -> None:
    columns = {"x": "id * 10", "d": "_distance * 2 + id", "_distance": "_distance"}
    table = dataset.to_table(columns, nearest={**ORIGIN, "k": 3})
    assert table.to_pydict() == {"x": [0, 60, 10], "d": [0, 6, 3], "_distance": [0, 0, 1]}


def test_nearest_with_several_queries_numbers_their_rows(dataset: pennon.LanceDataset) -> None:
    nearest = {"column": "vec", "q": [[0, 0], [float("nan"), 0], [-4, 0]], "k": 2}
    table = dataset.to_table(["id"], nearest=nearest)
    assert table.schema.field("query_index") == pa.field("query_index", pa.int32(), nullable=False)
    assert table.to_pydict() == {
        "query_index": [0, 0, 2, 2],
        "id": [0, 6, 7, 0],
        "_distance": [0, 0, 0, 16],
    }
    cut = dataset.to_table(["id"], nearest=nearest, limit=2, offset=1)
    assert cut["id"].to_pylist() == [6, 7]
    after = dataset.to_table(["id"], nearest=nearest, filter="query_index = 2 OR _distance > 0")
    assert after["id"].to_pylist() == [7, 0]
    assert dataset.scanner(nearest=nearest).count_rows() == 4
    alone = dataset.to_table(["id"], nearest={"column": "vec", "q": np.zeros((1, 2)), "k": 1})
    assert alone["query_index"].to_pylist() == [0]


def test_more_queries_than_are_compared_at_a_time(dataset: pennon.LanceDataset) -> None:
    queries = np.random.default_rng(5).normal(size=(3000, 2)) * 4
    table = dataset.to_table(["id"], nearest={"column": "vec", "q": queries, "k": 1})
    vectors = np.array([SQUARE[0], SQUARE[1], SQUARE[2], SQUARE[4], SQUARE[6], SQUARE[7]])
    squares = ((queries.astype(np.float32)[:, None] - vectors) ** 2).sum(2)
    expected = np.array([0, 1, 2, 4, 6, 7])[squares.argmin(1)]
    assert table["id"].to_pylist() == expected.tolist()


def test_rows_of_many_vectors(dataset: pennon.LanceDataset) -> None:
    one = found(dataset, nearest={"column": "many", "q": [0, 0]})
    assert one == [(0, 0), (1, 1), (5, 4), (4, 8), (6, 18)]
    both = found(dataset, nearest={"column": "many", "q": [[0, 0], [5, 5]]})
    assert both == [(0, 0), (4, 26), (6, 26), (5, 36), (1, 42)]


def test_vectors_within_structs(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, nearest={"column": "inner.vec", "k": 3}) == [0, 6, 1]
    assert ids(dataset, nearest={"column": "inner.vec", "k": 3}, filter="inner.n > 1") == [6]


def test_nearest_with_order_by(dataset: pennon.LanceDataset) -> None:
    assert ids(dataset, nearest={"k": 4}, order_by=["words"]) == [6, 2, 1, 0]
    assert ids(dataset, nearest={"k": 4}, order_by=["words"], limit=2, offset=1) == [2, 1]


def test_batches_fragments_and_pickles(dataset: pennon.LanceDataset) -> None:
    scanner = dataset.scanner(["id"], nearest=ORIGIN, batch_size=4)
    assert [batch.num_rows for batch in scanner.to_batches()] == [4, 2]
    again = pickle.loads(pickle.dumps(scanner))
    assert again.to_table() == scanner.to_table()
    first = [dataset.get_fragments()[0]]
    assert ids(dataset, fragments=first, prefilter=True) == [0, 1, 2]
    with pytest.raises(ArgumentError, match="fragment"):
        dataset.scanner(nearest=ORIGIN, fragments=first)
    assert ids(dataset, fast_search=True) == []
    assert dataset.head(2, nearest=ORIGIN)["id"].to_pylist() == [0, 6]


def test_stable_row_ids(tmp_path: Path) -> None:
    table = pa.table({"id": range(20), "vec": pa.array([[0, 0]] * 20, pa.list_(pa.float32(), 2))})
    ds = pennon.write_dataset(table, tmp_path / "s.lance", enable_stable_row_ids=True)
    ds.update({"id": "id + 100"}, where="id < 3")
    rows = ds.to_table(["id"], nearest={**ORIGIN, "k": 4}, with_row_id=True)
    assert rows["_rowid"].to_pylist() == [0, 1, 2, 3]
    assert rows["id"].to_pylist() == [100, 101, 102, 3]


@pytest.mark.parametrize(
    ("make", "q"),
    [
        (pa.float16, [0.5, 0]),
        (pa.float64, [0.5, 0]),
        (pa.int8, [1, 0]),
        (pa.uint8, [1, 0]),
    ],
)
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_nearest_by_vector_type_and_metric(
    tmp_path: Path, make: Callable[[], pa.DataType], q: Any, version: str
) -> None:
    vectors = pa.array([[3, 4], [1, 0], None, [0, 2]], pa.list_(make(), 2))
    ds = pennon.write_dataset(
        pa.table({"id": range(4), "vec": vectors}), tmp_path / "t", data_storage_version=version
    )
    for kind in ("l2", "dot", "cosine"):
        assert len(found(ds, nearest={"q": q, "metric": kind})) == 3
    x = q[0]
    expected = [(1, (1 - x) ** 2), (3, x * x + 4), (0, (3 - x) ** 2 + 16)]
    assert found(ds, nearest={"q": q, "metric": "l2"}) == expected
    if make() == pa.uint8():
        assert found(ds, nearest={"q": q}) == [(1, 0), (0, 2), (3, 2)]
    else:
        assert found(ds, nearest={"q": q}) == expected


def test_nearest_of_bfloat16_vectors(tmp_path: Path) -> None:
    halves = (np.array([3, 4, 1, 0], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    items = pa.FixedSizeBinaryArray.from_buffers(pa.binary(2), 4, [None, pa.py_buffer(halves)])
    metadata = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}
    kind = pa.list_(pa.field("item", pa.binary(2), metadata=metadata), 2)
    vectors = pa.FixedSizeListArray.from_arrays(items, type=kind)
    ds = pennon.write_dataset(pa.table({"id": range(2), "vec": vectors}), tmp_path / "t")
    assert found(ds) == [(1, 1), (0, 25)]


@pytest.mark.parametrize(
    "q",
    [
        (1, 0),
        np.array([1, 0]),
        np.array([1, 0], np.float16),
        pa.array([1, 0]),
        pa.array([1, 0], pa.float64()),
        pa.chunked_array([[1.0], [0.0]]),
        pa.scalar([1, 0], pa.list_(pa.float32(), 2)),
    ],
)
def test_queries_of_any_kind(dataset: pennon.LanceDataset, q: Any) -> None:
    assert found(dataset, nearest={"q": q, "k": 1}) == [(1, 0)]


@pytest.mark.parametrize(
    ("nearest", "error", "message"),
    [
        ({"q": [1]}, ArgumentError, "Query vector size 1 does not match index column size 2"),
        ({"q": [1, 2, 3, 4]}, ArgumentError, "Query vector size 4 does not match"),
        ({"q": []}, ArgumentError, "Query vector size 0 does not match"),
        ({"q": [[1, 2], [1]]}, ArgumentError, "must have the same length, but got 2 and 1"),
        ({"q": "abc"}, TypeError, "but received string"),
        ({"q": None}, TypeError, "NoneType"),
        ({"q": ["a", "b"]}, ArgumentError, "array of floats"),
        ({"q": pa.array([True, False])}, TypeError, "bool"),
        ({"q": np.zeros((2, 2, 2))}, ArgumentError, "one dimension"),
        ({"column": "nope"}, ArgumentError, "Embedding column nope is not in the dataset"),
        ({"column": "VEC"}, ArgumentError, "VEC"),
        ({"column": "id"}, ColumnTypeError, "Query column id must be a vector. Got int64."),
        ({"column": "words"}, TypeError, "must be a vector"),
        ({"column": None}, TypeError, "named by text"),
        ({"k": 0}, ArgumentError, "Nearest-K must be > 0 but got 0"),
        ({"metric": "foo"}, ArgumentError, "Metric type 'foo' is not supported"),
        ({"metric": "hamming"}, ArgumentError, "hamming does not support"),
        ({"nprobes": 0}, ArgumentError, "Nprobes must be > 0 but got 0"),
        ({"minimum_nprobes": -1}, ArgumentError, "Minimum nprobes must be >= 0 but got -1"),
        ({"minimum_nprobes": 0}, ArgumentError, "minimum_nprobes must be >= 1"),
        ({"maximum_nprobes": -1}, ArgumentError, "Maximum nprobes must be >= 0 but got -1"),
        ({"maximum_nprobes": 0}, ArgumentError, "minimum_nprobes must be <= maximum_nprobes"),
        ({"minimum_nprobes": 3, "maximum_nprobes": 2}, ArgumentError, "minimum_nprobes must be <="),
        ({"refine_factor": 0}, ArgumentError, "Refine factor must be 1 or more but got 0"),
        ({"ef": 0}, ArgumentError, "ef must be > 0 but got 0"),
        ({"query_parallelism": -2}, ArgumentError, "query_parallelism must be >= -1"),
        ({"approx_mode": "zzz"}, ArgumentError, "got 'zzz'"),
        ({"search_effort": 2}, ArgumentError, r"search_effort must be finite and in \[0, 1\]"),
        ({"use_index": None}, TypeError, "use_index"),
        ({"distance_range": (1,)}, ArgumentError, "must be a tuple of"),
        ({"distance_range": ("a", 1)}, TypeError, "'a'"),
        ({"foo": 1}, TypeError, "unexpected keyword argument 'foo'"),
    ],
)
def test_invalid_nearest_queries_are_refused(
    dataset: pennon.LanceDataset, nearest: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        dataset.to_table(nearest={**ORIGIN, **nearest})


def test_invalid_nearest_combinations_are_refused(
    dataset: pennon.LanceDataset, tmp_path: Path
) -> None:
    with pytest.raises(TypeError, match="'column'"):
        dataset.to_table(nearest={"q": [0, 0]})
    with pytest.raises(TypeError, match="dict"):
        dataset.to_table(nearest="vec")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="not both"):
        dataset.to_table(nearest=ORIGIN, full_text_query="a")
    with pytest.raises(ArgumentError, match="deleted rows"):
        dataset.to_table(nearest=ORIGIN, include_deleted_rows=True, with_row_id=True)
    table = dataset.to_table(["vec"]).append_column("query_index", pa.array(range(8)))
    other = pennon.write_dataset(table, tmp_path / "other.lance")
    with pytest.raises(ArgumentError, match="'query_index'"):
        other.to_table(nearest={**ORIGIN, "q": [[0, 0]]})
    assert other.to_table(nearest={**ORIGIN, "k": 2})["query_index"].to_pylist() == [0, 6]


def test_nearest_plan_text(dataset: pennon.LanceDataset) -> None:
    plan = dataset.scanner(
        ["id"], nearest={**ORIGIN, "k": 3}, filter="id > 0", prefilter=True, limit=2
    ).explain_plan()
    assert [line.strip() for line in plan.splitlines()[1:]] == [
        "Limit: limit=2, offset=0",
        "Sort: _distance ASC NULLS LAST, _rowid ASC NULLS LAST, TopK(fetch=3)",
        "KNNVectorDistance: metric=l2, column=vec, num_fragments=3",
        "Prefilter: id > 0",
    ]
    assert "Filter: id > 0" in dataset.scanner(nearest=ORIGIN, filter="id > 0").explain_plan()
    assert dataset.scanner(nearest=ORIGIN).analyze_plan().startswith("Scanned: rows=6")
