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
from pennon.core.units import MIB
from pennon.dataset.lance_dataset import LanceDataset
from pennon.io import open_store
from pennon.scan.run import page_scan
from pennon.scan.snapshot import Snapshot
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from tests.interop.equality import difference

ROWS = 40_000
PARTS = 4
WIDE_BYTES = 300
Query = Callable[[LanceDataset | pa.Table], list[tuple[object, ...]]]


def table() -> pa.Table:
    """Return rows of narrow columns, one of text, and one of 12 MB; a struct has a field like it."""
    rng = np.random.default_rng(7)
    wide = rng.integers(0, 256, ROWS * WIDE_BYTES, np.uint8).tobytes()
    offsets = pa.array(np.arange(ROWS + 1) * WIDE_BYTES, pa.int32())
    x = rng.random(ROWS)
    x[::13] = np.nan
    text = [None if row % 7 == 0 else f"s{row}" for row in range(ROWS)]
    blocks: pa.Array = pa.Array.from_buffers(
        pa.binary(), ROWS, [None, offsets.buffers()[1], pa.py_buffer(wide)]
    )
    return pa.table(
        {
            "id": np.arange(ROWS),
            "x": pa.array(x, mask=np.arange(ROWS) % 11 == 0, from_pandas=False),
            "s": pa.array(text),
            "when": pa.array(np.arange(ROWS) * 1_000_000, pa.timestamp("us")),
            "wide": blocks,
            "st": pa.StructArray.from_arrays([pa.array(range(ROWS)), blocks], ["a", "block"]),
        }
    )


TABLE = table()


@pytest.fixture(scope="module", params=["2.0", "2.1"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the table, in several fragments."""
    found = tmp_path_factory.mktemp("engines") / "t"
    part = ROWS // PARTS
    pennon.write_dataset(TABLE, found, max_rows_per_file=part, data_storage_version=request.param)
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


NARROW_BYTES = 36 * ROWS
"""The narrow columns that a query names have less; the wide one, and the struct, have 12 MB each."""

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
    "a field of a struct": (
        duck("select st.a from t where id = 7"),
        polars(lambda t: t.filter(pl.col("id") == 7).select(pl.col("st").struct.field("a"))),
    ),
    "a filter of a column that is not shown": (
        duck("select s, wide from t where \"when\" = timestamp '1970-01-01 05:33:20'"),
        polars(
            lambda t: t.filter(pl.col("when") == pl.datetime(1970, 1, 1, 5, 33, 20)).select(
                "s", "wide"
            )
        ),
    ),
    "both sides": (
        duck("select id from t where not (id > 3) and s <> 's1' order by id"),
        polars(lambda t: t.filter(~(pl.col("id") > 3) & (pl.col("s") != "s1")).select("id")),
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("engine", [0, 1], ids=["duckdb", "polars"])
def test_duckdb_and_polars_queries_read_only_needed_bytes(
    folder: Path, name: str, engine: int
) -> None:
    store, dataset = counted(folder)
    found = QUERIES[name][engine](dataset)
    assert found == QUERIES[name][0](TABLE) == QUERIES[name][1](TABLE)
    assert store.counts.read_bytes <= NARROW_BYTES, store.counts


def test_engine_test_table_is_mostly_wide_columns(folder: Path) -> None:
    """What the other tests count is little beside what there is."""
    store, dataset = counted(folder)
    assert difference(dataset.to_table(), TABLE) is None
    assert store.counts.read_bytes > 20 * MIB > 10 * NARROW_BYTES


@pytest.mark.parametrize(
    "query",
    [
        duck("select id, wide from t limit 5"),
        polars(lambda t: t.select("id", "wide").head(5)),
        duck("select id, wide from t where id >= 10 limit 5"),
    ],
)
def test_engine_limit_ends_the_scan(
    folder: Path, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines keep limits to themselves and read no further; what is read ahead is all that is lost."""
    monkeypatch.setattr(page_scan, "READ_AHEAD_BYTES", MIB)
    store, dataset = counted(folder)
    assert query(dataset) == query(TABLE)
    assert store.counts.read_bytes < 0.6 * ROWS * WIDE_BYTES


def test_engine_projection_of_struct_fields(folder: Path) -> None:
    """DuckDB's conditions name a field; so does a projection of ours."""
    query = duck("select id from t where st.a = 7")
    store, dataset = counted(folder)
    assert query(dataset) == [(7,)]
    assert dataset.to_table(columns=["st.a"]).column(0).to_pylist() == list(range(ROWS))
    assert store.counts.read_bytes <= NARROW_BYTES
