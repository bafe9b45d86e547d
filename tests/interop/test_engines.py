"""DuckDB and Polars query a table: the same rows, and no bytes but those that are needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import pennon
from pennon.io import open_store
from pennon.lance_dataset import LanceDataset
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from pennon.units import MIB
from tests.interop.equality import difference

ROWS = 40_000
PARTS = 4
WIDE_BYTES = 300
Query = Callable[[LanceDataset | pa.Table], list[tuple[object, ...]]]


def table() -> pa.Table:
    """Return rows of two narrow columns, one of text, and one of 12 MB."""
    rng = np.random.default_rng(7)
    wide = rng.integers(0, 256, ROWS * WIDE_BYTES, np.uint8).tobytes()
    offsets = pa.array(np.arange(ROWS + 1) * WIDE_BYTES, pa.int32())
    x = rng.random(ROWS)
    x[::13] = np.nan
    text = [None if row % 7 == 0 else f"s{row}" for row in range(ROWS)]
    return pa.table(
        {
            "id": np.arange(ROWS),
            "x": pa.array(x, mask=np.arange(ROWS) % 11 == 0, from_pandas=False),
            "s": pa.array(text),
            "when": pa.array(np.arange(ROWS) * 1_000_000, pa.timestamp("us")),
            "wide": pa.Array.from_buffers(
                pa.binary(), ROWS, [None, offsets.buffers()[1], pa.py_buffer(wide)]
            ),
        }
    )


TABLE = table()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the table, in several fragments."""
    found = tmp_path_factory.mktemp("engines") / "t"
    pennon.write_dataset(TABLE, found, max_rows_per_file=ROWS // PARTS)
    return found


def counted(folder: Path) -> tuple[CountingStore, LanceDataset]:
    """Return a dataset that has read nothing yet but its manifest, and what counts its reads."""
    store = CountingStore(open_store(folder))
    manifest = read_manifest(store, None)
    store.reset()
    return store, LanceDataset.of_snapshot(str(folder), Snapshot(store, manifest))


def duck(text: str) -> Query:
    """Return a query of the table ``t``."""

    def run(dataset: LanceDataset | pa.Table) -> list[tuple[object, ...]]:
        with duckdb.connect() as connection:
            connection.register("t", dataset)
            return connection.sql(text).fetchall()

    return run


def polars(build: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Query:
    """Return a query of a lazy frame."""

    def run(source: LanceDataset | pa.Table) -> list[tuple[object, ...]]:
        in_memory = isinstance(source, pa.Table)
        frame = pl.DataFrame(source).lazy() if in_memory else pl.scan_pyarrow_dataset(source)
        return build(frame).collect().rows()

    return run


NARROW_BYTES = 24 * ROWS
"""The narrow columns that a query names have less; the wide one has 12 MB."""

QUERIES: dict[str, tuple[Query, Query]] = {
    "one column": (
        duck("select sum(id) from t"),
        polars(lambda t: t.select(pl.col("id").sum())),
    ),
    "no row": (
        duck("select wide from t where id < 0"),
        polars(lambda t: t.filter(pl.col("id") < 0).select("wide")),
    ),
    "few rows of the wide column": (
        duck("select id, wide from t where id between 20000 and 20004"),
        polars(lambda t: t.filter(pl.col("id").is_between(20000, 20004)).select("id", "wide")),
    ),
    "a set": (
        duck("select id, x from t where id in (5, 6, 39999) order by id"),
        polars(lambda t: t.filter(pl.col("id").is_in([5, 6, 39999])).select("id", "x")),
    ),
    "floats and nulls": (
        duck("select id from t where x > 0.999 or x is null order by id"),
        polars(lambda t: t.filter((pl.col("x") > 0.999) | pl.col("x").is_null()).select("id")),
    ),
    "float arithmetic": (
        duck("select id from t where x * 2 > 1.999 order by id"),
        polars(lambda t: t.filter(pl.col("x") * 2 > 1.999).select("id")),
    ),
    "not in a set": (
        duck("select id from t where s not in ('s1', 's2') and x = 'nan'::double order by id"),
        polars(
            lambda t: t.filter(~pl.col("s").is_in(["s1", "s2"]) & pl.col("x").is_nan()).select("id")
        ),
    ),
    "text": (
        duck("select id from t where s = 's39998' or s is null order by id"),
        polars(lambda t: t.filter((pl.col("s") == "s39998") | pl.col("s").is_null()).select("id")),
    ),
    "times": (
        duck("select id from t where \"when\" >= timestamp '1970-01-01 11:06:38' order by id"),
        polars(
            lambda t: t.filter(pl.col("when") >= pl.datetime(1970, 1, 1, 11, 6, 38)).select("id")
        ),
    ),
    "both sides": (
        duck("select id from t where not (id > 3) and s <> 's1' order by id"),
        polars(lambda t: t.filter(~(pl.col("id") > 3) & (pl.col("s") != "s1")).select("id")),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("engine", [0, 1], ids=["duckdb", "polars"])
def test_reads_what_is_needed(folder: Path, name: str, engine: int) -> None:
    store, dataset = counted(folder)
    found = QUERIES[name][engine](dataset)
    assert found == QUERIES[name][0](TABLE) == QUERIES[name][1](TABLE)
    assert store.counts.read_bytes <= NARROW_BYTES, store.counts


def test_the_table_is_mostly_wide(folder: Path) -> None:
    """What the other tests count is little beside what there is."""
    store, dataset = counted(folder)
    assert difference(dataset.to_table(), TABLE) is None
    assert store.counts.read_bytes > 10 * MIB > 10 * NARROW_BYTES
