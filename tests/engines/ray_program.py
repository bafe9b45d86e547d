"""lance-ray: write, append, overwrite, read, filter, scalar, text and vector index; run by test_engines."""

from __future__ import annotations

import sys
from typing import Any

import lance
import lance_ray
import numpy as np
import pyarrow as pa
import ray

ROWS = 600


def main(folder: str) -> None:
    """Check each step, on a cluster of one machine."""
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 << 20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    assert lance.dataset.__module__.startswith("pennon.")
    uri = f"{folder}/ray.lance"
    vectors = np.random.default_rng(1).normal(size=(ROWS, 8)).astype("float32")
    rows = pa.table(
        {
            "id": range(ROWS),
            "word": [f"word{n % 7}" for n in range(ROWS)],
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )
    data = ray.data.from_arrow(rows)
    lance_ray.write_lance(data, uri)
    lance_ray.write_lance(data, uri, mode="append")
    assert lance_ray.read_lance(uri).count() == 2 * ROWS
    few = lance_ray.read_lance(uri, filter="id < 2", columns=["id"]).take_all()
    assert sorted(each["id"] for each in few) == [0, 0, 1, 1]
    lance_ray.write_lance(data, uri, mode="overwrite", min_rows_per_file=1, max_rows_per_file=300)
    assert lance_ray.read_lance(uri).count() == ROWS

    lance_ray.create_scalar_index(uri, column="id", index_type="BTREE", num_workers=1)
    lance_ray.create_scalar_index(uri, column="word", index_type="INVERTED", num_workers=1)
    lance_ray.create_index(
        uri, column="vec", index_type="IVF_FLAT", num_partitions=2, num_workers=1
    )
    table: Any = lance.dataset(uri)
    assert {each.name for each in table.describe_indices()} == {"id_idx", "word_idx", "vec_idx"}
    for name in ("id_idx", "word_idx", "vec_idx"):
        assert table.index_statistics(name)["num_indexed_rows"] == ROWS, name
    assert table.to_table(filter="id = 7")["id"].to_pylist() == [7]
    found = table.to_table(full_text_query="word1")
    assert sorted(found["id"].to_pylist()) == list(range(1, ROWS, 7))
    nearest = {"column": "vec", "q": vectors[5], "k": 1, "nprobes": 2}
    assert table.to_table(nearest=nearest)["id"].to_pylist() == [5]

    lance_ray.write_lance(data, uri, mode="append")
    lance_ray.optimize_indices(uri)
    assert lance.dataset(uri).index_statistics("id_idx")["num_indexed_rows"] == 2 * ROWS
    lance_ray.compact_files(uri, num_workers=1)
    assert lance_ray.read_lance(uri, filter="id = 7").count() == 2


if __name__ == "__main__":
    main(sys.argv[1])
    print("all steps passed")
