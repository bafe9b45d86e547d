"""Daft and daft-lance: write, append, overwrite, read, filter, index, compact, add columns; run by test_engines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import daft
import daft_lance
import lance
import numpy as np

ROWS = 300


def ids(frame: Any) -> list[int]:
    """The ids of a frame, in order."""
    found: list[int] = frame.select("id").sort("id").to_pydict()["id"]
    return found


def refusal(call: Callable[[], Any]) -> str:
    """Return the error that refuses a call."""
    try:
        call()
    except ValueError as error:
        return str(error)
    raise AssertionError


def main(folder: str) -> None:
    """Check each step."""
    assert lance.dataset.__module__.startswith("pennon.")
    uri = f"{folder}/daft.lance"
    frame = daft.from_pydict(
        {
            "id": list(range(ROWS)),
            "word": [f"word{n % 7}" for n in range(ROWS)],
            "price": [float(n) for n in range(ROWS)],
        }
    )
    assert frame.write_lance(uri).to_pydict()["version"] == [1]
    frame.write_lance(uri, mode="append")
    assert daft.read_lance(uri).count_rows() == 2 * ROWS
    said = refusal(lambda: frame.write_lance(uri, mode="create"))
    assert "already exists" in said
    frame.write_lance(uri, mode="overwrite", max_rows_per_file=100)
    assert daft.read_lance(uri).count_rows() == ROWS
    assert daft.read_lance(uri, version=2).count_rows() == 2 * ROWS
    both = (daft.col("word") == "word1") & (daft.col("price") > 290)
    assert ids(daft.read_lance(uri).where(both)) == [295]
    assert len(daft.read_lance(uri).limit(3).to_pydict()["id"]) == 3

    daft_lance.create_scalar_index(uri, column="id", index_type="BTREE")
    daft_lance.create_scalar_index(uri, column="word", index_type="INVERTED")
    daft_lance.create_scalar_index(uri, column="id", index_type="BTREE", replace=True)
    assert ids(daft.read_lance(uri).where(daft.col("id") == 7)) == [7]
    table: Any = lance.dataset(uri)
    assert table.index_statistics("id_idx")["num_indexed_rows"] == ROWS
    found = table.to_table(full_text_query="word1")
    assert sorted(found["id"].to_pylist()) == list(range(1, ROWS, 7))

    frame.write_lance(uri, mode="append")
    daft_lance.optimize_indices(uri)
    assert lance.dataset(uri).index_statistics("id_idx")["num_indexed_rows"] == 2 * ROWS
    daft_lance.compact_files(uri)
    assert len(lance.dataset(uri).get_fragments()) == 1
    assert ids(daft.read_lance(uri).where(daft.col("id") == 7)) == [7, 7]
    daft_lance.merge_columns(uri, transform={"twice": "price * 2"})
    assert daft.read_lance(uri).where(daft.col("id") == 9).to_pydict()["twice"] == [18.0, 18.0]

    vectors = np.random.default_rng(1).normal(size=(ROWS, 8)).astype("float32")
    kind = daft.DataType.fixed_size_list(daft.DataType.float32(), 8)
    queries = daft.from_pydict({"id": list(range(ROWS)), "vec": vectors.tolist()})
    queries = queries.with_column("vec", daft.col("vec").cast(kind))
    queries.write_lance(f"{folder}/vectors.lance")
    searched = lance.dataset(f"{folder}/vectors.lance").create_index(
        "vec", "IVF_FLAT", num_partitions=2
    )
    nearest = {"column": "vec", "q": vectors[5], "k": 1, "nprobes": 2}
    assert searched.to_table(nearest=nearest)["id"].to_pylist() == [5]
    scan = daft.read_lance(f"{folder}/vectors.lance", default_scan_options={"nearest": nearest})
    assert ids(scan) == [5]


if __name__ == "__main__":
    main(sys.argv[1])
    print("all steps passed")
