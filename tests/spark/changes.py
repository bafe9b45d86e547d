"""Operations that change a table on executors, and the rows that they leave; tests let things go wrong in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from pyspark.sql import DataFrame

import pennon
from pennon.spark import LanceTable

ROWS = 2_000
FRAGMENTS = 20


def make(uri: str) -> None:
    """A table of rows (n, n)."""
    ids = pa.array(range(ROWS), pa.int64())
    pennon.write_dataset(pa.table({"id": ids, "v": ids}), uri, max_rows_per_file=ROWS // FRAGMENTS)


def rows_of(uri: str) -> dict[Any, tuple[Any, ...]]:
    """The rows as pylance reads them, by id; no id is there twice."""
    table = lance.dataset(uri)
    table.validate()
    rows = list(zip(*table.to_table().to_pydict().values(), strict=True))
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(rows)
    return found


@dataclass(frozen=True)
class Operation:
    """What is done, what the rows are then, and after how many finished tasks a kill hits the middle."""

    run: Callable[[LanceTable], Any]
    after: dict[int, tuple[Any, ...]]
    done: int = 1


def _source(table: LanceTable) -> DataFrame:
    return table.spark.range(0, ROWS, 1, 4).selectExpr("id * 2 AS k", "-id AS w")


def _merge(table: LanceTable) -> None:
    merge = table.merge(_source(table), "id = k").whenMatchedUpdate(set={"v": "w"})
    merge = merge.whenNotMatchedInsert(values={"id": "k", "v": "w"})
    merge.whenNotMatchedBySourceDelete("id % 5 = 0").execute()


_KEPT = {n: (n,) for n in range(1, ROWS, 2) if n % 5}

OPERATIONS = {
    "merge": Operation(_merge, _KEPT | {2 * n: (-n,) for n in range(ROWS)}, 2),
}
