"""Keys of rows, compared as Spark compares them; rows that a condition is not true for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pennon.spark.source.replaced_rows import AmongKeys


def test_keys_are_compared_column_by_column() -> None:
    nan = float("nan")
    keys = pa.table({"a": [1, 1, None], "x": [0.0, nan, 2.0], "s": ["p", "p", None]})
    rows = pa.record_batch(
        {
            "s": pa.array(["p", "p", None, "p", "q", None], pa.string()).dictionary_encode(),
            "x": [-0.0, nan, 2.0, 2.0, 0.0, 2.0],
            "a": pa.array([1, 1, None, 1, 1, 1], pa.int64()),
        }
    )
    expected = [True, True, True, False, False, False]
    assert AmongKeys(keys).test(rows).to_pylist() == expected
    assert AmongKeys(keys).test(rows.slice(0, 0)).to_pylist() == []


@pytest.mark.parametrize("seed", range(5))
def test_many_keys_match_rows_as_a_set(seed: int) -> None:
    random = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]

    def draw(rows: int) -> pa.Table:
        kinds = {name: random.integers(0, 6, rows) for name in names}
        return pa.table({n: pa.array(v, mask=random.random(rows) < 0.1) for n, v in kinds.items()})

    keys, rows = draw(200), draw(500).to_batches()[0]
    known = {tuple(row.values()) for row in keys.to_pylist()}
    expected = [tuple(row.values()) in known for row in rows.to_pylist()]
    assert 0 < sum(expected) < len(expected)
    assert AmongKeys(keys).test(rows).to_pylist() == expected
