"""Rows and queries as Python programs have them: iterators of dicts, tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon

SCHEMA = pa.schema([("id", pa.int32()), ("word", pa.string())])


def rows(count: int) -> Iterator[dict[str, Any]]:
    """Rows one by one; every third lacks its word."""
    for number in range(count):
        yield {"id": number} if number % 3 == 0 else {"id": number, "word": f"w{number}"}


@pytest.mark.parametrize("count", [0, 1, 1024, 2500])
def test_an_iterator_of_dicts_is_written_with_a_schema(tmp_path: Path, count: int) -> None:
    table = pennon.write_dataset(rows(count), tmp_path / "t", schema=SCHEMA)
    assert table.schema == SCHEMA
    assert table.to_table().to_pylist() == [{"word": None, **row} for row in rows(count)]


def test_write_of_mixed_dicts_and_batches(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"id": [7], "word": ["x"]}, SCHEMA)
    mixed = [{"id": 1}, {"id": 2}, batch, {"id": 3}]
    table = pennon.write_dataset(iter(mixed), tmp_path / "t", schema=SCHEMA)
    assert table.to_table()["id"].to_pylist() == [1, 2, 7, 3]


def test_an_iterator_of_dicts_without_a_schema_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="batches or dicts needs a schema"):
        pennon.write_dataset(rows(2), tmp_path / "t")


class Tensor:
    """The part of torch's tensors that numpy uses."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values, np.float32)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values.astype(dtype or np.float32)

    def __len__(self) -> int:
        return len(self.values)


def test_tensors_of_one_query_and_of_several_are_searched(tmp_path: Path) -> None:
    vectors = np.eye(4, dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4)
    table = pennon.write_dataset(pa.table({"id": range(4), "vec": column}), tmp_path / "t")

    def nearest(q: Any) -> list[int]:
        found = table.to_table(nearest={"column": "vec", "q": q, "k": 1}, columns=["id"])
        ids: list[int] = found["id"].to_pylist()
        return ids

    assert nearest(Tensor(vectors[2])) == nearest(vectors[2]) == [2]
    assert nearest(Tensor(vectors[[3, 1]])) == nearest(vectors[[3, 1]]) == [3, 1]
    assert nearest([Tensor(vectors[3]), Tensor(vectors[1])]) == [3, 1]
