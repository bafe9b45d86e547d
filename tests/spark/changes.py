"""Every operation that changes a table on executors, and the rows that it leaves; tests let things go wrong in them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import pennon
import pennon.spark
from pennon.spark import LanceTable

ROWS = 2_000
FRAGMENTS = 20
NEW_ROWS = 400
PARTITIONS = 12


def make(uri: str) -> None:
    """A table of rows (n, n)."""
    ids = pa.array(range(ROWS), pa.int64())
    pennon.write_dataset(pa.table({"id": ids, "v": ids}), uri, max_rows_per_file=ROWS // FRAGMENTS)


def _old_rows() -> dict[Any, tuple[Any, ...]]:
    return {n: (n,) for n in range(ROWS)}


def rows_of(uri: str) -> dict[Any, tuple[Any, ...]]:
    """The rows as pylance reads them, by id; no id is there twice."""
    table = lance.dataset(uri)
    table.validate()
    rows = list(zip(*table.to_table().to_pydict().values(), strict=True))
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(rows)
    return found


def make_vectors(uri: str) -> None:
    """A table of rows (n, v), where v is near to its neighbours alone."""
    ids = np.arange(ROWS)
    angles = ids * (2 * np.pi / ROWS)
    matrix = np.stack([np.cos(angles), np.sin(angles), angles, -angles], axis=1)
    column = pa.FixedSizeListArray.from_arrays(pa.array(matrix.astype(np.float32).ravel()), 4)
    data = pa.table({"id": pa.array(ids), "v": column})
    pennon.write_dataset(data, uri, max_rows_per_file=ROWS // FRAGMENTS)


def found_near(uri: str) -> dict[Any, tuple[Any, ...]]:
    """What pylance finds near some vectors, each row once, and how many rows the index has."""
    table = lance.dataset(uri)
    found: dict[Any, tuple[Any, ...]] = {}
    for number, vector in table.to_table(filter="id % 50 = 0").to_pandas().to_numpy():
        query = {"column": "v", "q": vector, "k": 40, "nprobes": PARTITIONS, "ef": 200}
        near = table.to_table(columns=["id"], nearest=query)["id"].to_pylist()
        assert len(set(near)) == 40
        found[number] = (near[0],)
    parts = [
        part["size"]
        for index in table.describe_indices()
        for each in table.stats.index_stats(index.name)["indices"]
        for part in each["partitions"]
    ]
    return found | {"indexed": (sum(parts), len(parts))}


@dataclass(frozen=True)
class Operation:
    """What is done, what the rows are then, and after how many finished tasks a kill hits the middle.

    ``seen`` is what is looked at of a table that ``make`` made, ``before`` what it is there.
    """

    run: Callable[[LanceTable], Any]
    after: dict[Any, tuple[Any, ...]]
    done: int = 1
    make: Callable[[str], None] = make
    seen: Callable[[str], dict[Any, tuple[Any, ...]]] = rows_of
    before: dict[Any, tuple[Any, ...]] = field(default_factory=_old_rows)


def _source(table: LanceTable) -> DataFrame:
    return table.spark.range(0, ROWS, 1, 4).selectExpr("id * 2 AS k", "-id AS w")


def _merge(table: LanceTable) -> None:
    merge = table.merge(_source(table), "id = k").whenMatchedUpdate(set={"v": "w"})
    merge = merge.whenNotMatchedInsert(values={"id": "k", "v": "w"})
    merge.whenNotMatchedBySourceDelete("id % 5 = 0").execute()


def _doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"w": [2 * v for v in batch.column("v").to_pylist()]})


def _new(table: LanceTable) -> DataFrame:
    return table.spark.range(ROWS // 2, ROWS + NEW_ROWS, 2, 4).selectExpr("id", "-id AS v")


def _late(table: LanceTable) -> DataFrame:
    return table.spark.range(ROWS, ROWS + NEW_ROWS, 1, 4).selectExpr("id", "-id AS v")


_OLD = _old_rows()
_NEW = {n: (-n,) for n in range(ROWS // 2, ROWS + NEW_ROWS, 2)}
_WITH_W = {n: (n, 2 * n) for n in range(ROWS)}
_NEAR: dict[Any, tuple[Any, ...]] = {n: (n,) for n in range(0, ROWS, 50)}
_KEPT = {n: (n,) for n in range(1, ROWS, 2) if n % 5}

OPERATIONS = {
    "delete": Operation(
        lambda table: table.delete("id % 2 = 0"), {n: (n,) for n in range(1, ROWS, 2)}, 2
    ),
    "delete by statistics": Operation(
        lambda table: table.delete("id < 150"), {n: (n,) for n in range(150, ROWS)}
    ),
    "update": Operation(
        lambda table: table.update("id % 2 = 0", {"v": "v + 1"}),
        {n: (n + 1 - n % 2,) for n in range(ROWS)},
        2,
    ),
    "merge": Operation(_merge, _KEPT | {2 * n: (-n,) for n in range(ROWS)}, 2),
    "compaction": Operation(
        lambda table: table.optimize().executeCompaction(target_rows_per_fragment=ROWS // 4), _OLD
    ),
    "backfill": Operation(lambda table: table.addColumns({"w": sf.expr("v * 2")}), _WITH_W, 3),
    "backfill by a function": Operation(
        lambda table: table.addColumns(_doubled, outputSchema=pa.schema([("w", pa.int64())])),
        _WITH_W,
        3,
    ),
    "backfill by a key": Operation(
        lambda table: table.addColumns(
            table.toDF().select("id", (sf.col("v") * 2).alias("w")), on="id"
        ),
        _WITH_W,
    ),
    "cast": Operation(lambda table: table.alterColumn("v", dataType="int"), _OLD, 3),
    "z-order": Operation(
        lambda table: table.optimize().executeZOrderBy("v", target_rows_per_fragment=ROWS // 4),
        _OLD,
        4,
    ),
    "append": Operation(
        lambda table: pennon.spark.write(_late(table), table.uri, mode="append"),
        _OLD | {n: (-n,) for n in range(ROWS, ROWS + NEW_ROWS)},
        2,
    ),
    "overwrite of a part": Operation(
        lambda table: pennon.spark.write(
            _new(table), table.uri, "overwrite", where=f"id >= {ROWS // 2}"
        ),
        {n: (n,) for n in range(ROWS // 2)} | _NEW,
        2,
    ),
    "overwrite by a key": Operation(
        lambda table: pennon.spark.write(_new(table), table.uri, "overwrite", overwrite_by=["id"]),
        _OLD | _NEW,
        2,
    ),
    "index of vectors": Operation(
        lambda table: table.createIndex(
            "v", "IVF_HNSW_FLAT", num_partitions=PARTITIONS, m=8, ef_construction=60
        ),
        _NEAR | {"indexed": (ROWS, PARTITIONS)},
        3,
        make=make_vectors,
        seen=found_near,
        before=_NEAR | {"indexed": (0, 0)},
    ),
}


def whims(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return as many rows, with other keys each time that it is asked."""
    for batch in batches:
        keys = [ROWS + (uuid.uuid4().int >> 66) for _ in range(batch.num_rows)]
        yield pa.RecordBatch.from_pydict({"k": keys})


def merge_whims(table: LanceTable) -> int:
    """Insert rows of a source that never says the same twice; return how many the merge says."""
    source = table.spark.range(0, NEW_ROWS, 1, 4).mapInArrow(whims, "k long")
    merge = table.merge(source, "id = k").whenMatchedUpdate(set={"v": "k"})
    counts = merge.whenNotMatchedInsert(values={"id": "k", "v": "k"}).execute().first()
    return 0 if counts is None else int(counts.num_inserted_rows)


def files(uri: str) -> set[str]:
    """The data files, and the folders of indices, that are there."""
    found = [*Path(uri, "data").iterdir(), *Path(uri).glob("_indices/*/*.idx")]
    return {path.name if path.suffix == ".lance" else path.parent.name for path in found}


def named(uri: str) -> set[str]:
    """Those that some version names."""
    table = pennon.dataset(uri)
    versions = [table.checkout_version(each["version"]) for each in table.versions()]
    found = {file.path for v in versions for f in v.get_fragments() for file in f.data_files()}
    return found | {
        segment.uuid
        for v in versions
        for index in v.describe_indices()
        for segment in index.segments
    }
