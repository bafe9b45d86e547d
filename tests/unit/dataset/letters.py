"""A model that counts letters, tables of titles, and the check that each title has its vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import pennon

WORDS = ("fox", "bee", "owl", "eel", "red fox", "", None, "a very long title of a very old book")


class Letters:
    """A model that counts letters, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.sizes: list[int] = []

    def __call__(self, values: list[Any]) -> np.ndarray[Any, Any]:
        self.seen.extend(values)
        self.sizes.append(len(values))
        return np.array([vector_of(value) for value in values], np.float32)


def vector_of(value: str | bytes) -> list[float]:
    """Return the vector of a value."""
    text = value if isinstance(value, str) else value.decode()
    return [float(text.count("o")), float(text.count("e")), float(len(text)), 0.5]


def check(ds: pennon.LanceDataset, source: str = "title", column: str = "title_vector") -> None:
    """Check that each row has the vector of its source, and NULL for NULL."""
    rows = ds.to_table(columns={"source": source, "vector": f"`{column}`"}).to_pylist()
    for row in rows:
        assert row["vector"] == (None if row["source"] is None else vector_of(row["source"]))


def titles(count: int, first: int = 0) -> pa.Table:
    """Return rows with titles, some of them NULL or empty."""
    numbers = range(first, first + count)
    columns = {"id": list(numbers), "title": [WORDS[n % len(WORDS)] for n in numbers]}
    return pa.table(columns, pa.schema([("id", pa.int64()), ("title", pa.string())]))
