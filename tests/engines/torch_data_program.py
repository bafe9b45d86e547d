"""``lance.torch`` on Pennon: each step checks itself.  Run by tests/engines/test_torch_data.py."""

from __future__ import annotations

import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import torch
from lance.arrow import bfloat16_array
from lance.sampler import ShardedBatchSampler
from lance.torch.bench_utils import ground_truth, infer_vector_column, recall
from lance.torch.data import LanceDataset, SafeLanceDataset, TensorDataset, get_safe_loader
from lance.torch.distance import cosine_distance, dot_distance, l2_distance, pairwise_cosine

ROWS, DIMENSION = 1000, 8


def table_of(place: Path) -> lance.LanceDataset:
    """Write a table with a column of each kind."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=ROWS * DIMENSION).astype(np.float32)
    rows = pa.table(
        {
            "id": pa.array(range(ROWS), pa.uint64()),
            "flag": [number % 3 == 0 for number in range(ROWS)],
            "small": bfloat16_array([None, *range(1, ROWS)]),
            "vector": pa.FixedSizeListArray.from_arrays(vectors, DIMENSION),
            "image": pa.FixedShapeTensorArray.from_numpy_ndarray(
                rng.integers(0, 255, (ROWS, 2, 3)).astype(np.uint8)
            ),
        }
    )
    return lance.write_dataset(rows, place / "t.lance", max_rows_per_file=100)


def check_tensors(table: lance.LanceDataset) -> None:
    """Each kind of column becomes a tensor of its type."""
    (batch,) = list(LanceDataset(table, batch_size=2 * ROWS))
    kinds = {name: (value.dtype, tuple(value.shape)) for name, value in batch.items()}
    assert kinds == {
        "id": (torch.int64, (ROWS,)),
        "flag": (torch.bool, (ROWS,)),
        "small": (torch.bfloat16, (ROWS,)),
        "vector": (torch.float32, (ROWS, DIMENSION)),
        "image": (torch.uint8, (ROWS, 6)),
    }, kinds
    assert torch.isnan(batch["small"][0])
    assert batch["small"][1:5].tolist() == [1, 2, 3, 4]


def check_workers(table: lance.LanceDataset) -> None:
    """Workers share the rows out, forked and started anew; each row comes once."""
    for method in ("fork", "spawn", "forkserver"):
        rows = LanceDataset(table.uri, 64, columns=["id"], shard_granularity="batch")
        loader = torch.utils.data.DataLoader(
            rows, batch_size=None, num_workers=2, multiprocessing_context=method
        )
        found = torch.cat(list(loader)).tolist()
        assert sorted(found) == list(range(ROWS)), method
    plain = lance.write_dataset(table.to_table(columns=["id"]), f"{table.uri}-ids")
    loader = get_safe_loader(SafeLanceDataset(plain.uri), batch_size=100, num_workers=2)
    found = [number for batch in loader for number in batch["id"].tolist()]
    assert found == list(range(ROWS))


def check_order_and_cache(table: lance.LanceDataset, place: Path) -> None:
    """Samples, filters, samplers and the cache."""
    (place / "cache").mkdir()
    cached = LanceDataset(table, 100, columns=["id"], samples=300, cache=str(place / "cache"))
    first, second = torch.cat(list(cached)).tolist(), torch.cat(list(cached)).tolist()
    assert first == second
    assert len(set(first)) == 300
    even = LanceDataset(table, 10, columns=["id"], filter="id % 2 = 0")
    assert torch.cat(list(even)).tolist() == list(range(0, ROWS, 2))
    sampler = ShardedBatchSampler(1, 2, randomize=True)
    half = torch.cat(list(LanceDataset(table, 50, columns=["id"], sampler=sampler))).tolist()
    assert half != sorted(half)
    assert {number // 50 % 2 for number in half} == {1}
    assert [len(each) for each in TensorDataset(np.zeros((5, 2)), 2)] == [2, 2, 1]


def check_distances(table: lance.LanceDataset) -> None:
    """Exact neighbours are those of a search by Pennon, and distances those of numpy."""
    vectors = torch.from_numpy(np.stack(table.to_table()["vector"].to_numpy()))
    queries = vectors[:5]
    assert infer_vector_column(table) == "vector"
    found = ground_truth(table, "vector", queries, k=10, batch_size=64, device="cpu")
    searched = [
        table.to_table(nearest={"column": "vector", "q": query.numpy(), "k": 10}, with_row_id=True)[
            "_rowid"
        ].to_pylist()
        for query in queries
    ]
    assert recall(np.array(searched), found.numpy()).tolist() == [1.0] * 5
    near, distance = l2_distance(queries, vectors)
    assert near.tolist() == [0, 1, 2, 3, 4]
    assert float(distance.max()) < 1e-4
    assert cosine_distance(queries, vectors)[0].tolist() == [0, 1, 2, 3, 4]
    products = 1 - (queries @ vectors.T)
    assert torch.allclose(dot_distance(queries, vectors)[1], products.min(dim=1).values)
    assert pairwise_cosine(queries, vectors).shape == (5, ROWS)
    nan = torch.full((1, DIMENSION), float("nan"))
    assert l2_distance(nan, vectors)[0].tolist() == [-1]


def check_blobs(place: Path) -> None:
    """Blobs are files in a batch, and need a function."""
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows = pa.table({"id": [1, 2], "b": [b"one", b"two"]}, pa.schema([("id", pa.int64()), field]))
    table = lance.write_dataset(rows, place / "blobs.lance")
    try:
        next(iter(LanceDataset(table, 2)))
    except NotImplementedError as error:
        message = str(error)
    assert "to_tensor_fn" in message
    batch = next(iter(LanceDataset(table, 2, to_tensor_fn=lambda batch, **_: batch)))
    assert [file.read() for file in batch["b"]] == [b"one", b"two"]


def main(place: Path) -> None:
    """Run all steps."""
    table = table_of(place)
    check_tensors(table)
    check_workers(table)
    check_order_and_cache(table, place)
    check_distances(table)
    check_blobs(place)
    sys.stdout.write("all steps passed\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
