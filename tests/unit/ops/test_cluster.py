"""Clustering without Spark: the order of rows, samples, blocks and files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, FormatError, UnsupportedError
from pennon.ops.cluster.order import ADDRESS, RowOrder, count_below
from pennon.ops.cluster.plan import plan_clusterings
from pennon.ops.compact.options import CompactOptions
from pennon.scan.read.tasks import plan_tasks
from pennon.schema.arrow import schema_from_arrow
from tests.property.programs.cluster import cluster as in_order

ROWS = 1600
_HISTORY = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def rows_of_types(version: str) -> pa.Table:
    """Rows in no order, of the types that are hard to carry."""
    random = np.random.default_rng(1)
    table = pa.table({
        "a": pa.array(random.integers(0, 100, ROWS), pa.uint64()),
        "b": pa.array([x if x > 0.1 else None for x in random.random(ROWS)]),
        "time": pa.array(random.integers(0, 10**15, ROWS), pa.timestamp("ns")),
        "word": pa.array([f"w{n % 300}" for n in range(ROWS)]).dictionary_encode(),
        "list": [[n, n + 1] for n in range(ROWS)],
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(random.random(2 * ROWS), pa.float16()), 2),
    })  # fmt: skip
    if version in {"0.1", "2.0"}:
        return table
    structs = [None if n % 7 == 0 else {"p": n % 50, "q": f"{n}"} for n in range(ROWS)]
    return table.append_column("st", pa.array(structs))


def cluster(uri: str, columns: list[str], *, curved: bool, **options: Any) -> None:
    """Do what Spark does, in this process."""
    in_order(pennon.dataset(uri), columns, curved=curved, **options)


@pytest.mark.parametrize(
    ("version", "stable"), [("2.0", True), ("2.1", False), ("2.1", True), ("2.2", False)]
)
def test_clustering_keeps_row_ids_and_versions_in_narrower_files(
    version: Any, stable: bool, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    rows = rows_of_types(version)
    pennon.write_dataset(
        rows,
        uri,
        max_rows_per_file=200,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    table = pennon.dataset(uri)
    table.delete("a = 7")
    table.update({"b": "0.5"}, "a = 9")
    columns = [*rows.column_names, *(_HISTORY if stable else [])]

    def seen() -> list[str]:
        found = lance.dataset(uri)
        found.validate()
        return sorted(map(repr, found.to_table(columns=columns).to_pylist()))

    def spreads() -> list[float]:
        parts = [each.to_table(columns=["a", "b"]) for each in lance.dataset(uri).get_fragments()]
        return [
            float(np.mean([np.ptp(part[name].drop_null().to_numpy()) for part in parts]))
            for name in ("a", "b")
        ]

    before, wide = seen(), spreads()
    cluster(uri, ["a", "b"], curved=True, target_rows_per_fragment=40)
    assert seen() == before
    assert all(now < 0.6 * then for now, then in zip(spreads(), wide, strict=True))
    sizes = [each.count_rows() for each in lance.dataset(uri).get_fragments()]
    assert min(sizes) >= 40
    cluster(uri, ["b", "time"], curved=False)
    assert seen() == before
    (only,) = lance.dataset(uri).get_fragments()
    keys = only.to_table(columns=["b", "time"]).to_pylist()
    assert keys == sorted(keys, key=lambda row: (row["b"] is not None, row["b"] or 0, row["time"]))


def test_clustering_moves_blobs_with_their_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "blobs.lance")
    field = pennon.blob_field("image")
    images = pennon.blob_array([bytes([n]) * 10 if n % 3 else None for n in range(100)])
    schema = pa.schema([pa.field("n", pa.int64()), field])
    numbers = pa.array([n * 37 % 100 for n in range(100)])
    rows = pa.Table.from_arrays([numbers, images], schema=schema)
    pennon.write_dataset(rows, uri, max_rows_per_file=30, data_storage_version="2.2")
    cluster(uri, ["n"], curved=False)
    table = lance.dataset(uri)
    table.validate()
    assert table.to_table(columns=["n"])["n"].to_pylist() == list(range(100))
    at = {n: number for number, n in enumerate(numbers.to_pylist())}
    blobs = table.take_blobs("image", indices=list(range(100)))
    wanted = [bytes([at[n]]) * 10 if at[n] % 3 else None for n in range(100)]
    assert [None if blob is None else blob.readall() for blob in blobs] == wanted


def keys_of(columns: dict[str, Any], *, curved: bool) -> pa.Table:
    """The keys of rows in the order of all their columns."""
    table = pa.table(
        {**columns, ADDRESS: pa.array(range(len(next(iter(columns.values())))), pa.uint64())}
    )
    batch = table.combine_chunks().to_batches()[0]
    order = RowOrder.by(schema_from_arrow(table.select(list(columns)).schema), list(columns))
    values = order.values(batch)
    return (order.curved(values) if curved else order).keys(values)


def test_a_curve_takes_the_bits_of_quantiles_in_turns() -> None:
    both = [(x, y) for x in range(4) for y in range(4)]
    keys = keys_of({"x": [x for x, _ in both], "y": [y for _, y in both]}, curved=True)
    curve = keys.column(0).to_numpy()
    first = {both[n] for n in np.argsort(curve)[:4]}
    assert first == {(0, 0), (0, 1), (1, 0), (1, 1)}
    last = {both[n] for n in np.argsort(curve)[12:]}
    assert last == {(2, 2), (2, 3), (3, 2), (3, 3)}


def test_clustering_keys_order_nulls_first_and_floats_totally() -> None:
    values = [1.0, None, float("nan"), -0.0, float("-inf"), 0.0]
    keys = keys_of({"x": values}, curved=False)
    points = keys.take([1, 4, 3, 5, 0, 2])
    assert count_below(keys, points).tolist() == [5, 1, 6, 3, 2, 4]


def test_a_sample_without_rows_makes_one_slice(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(pa.table({"n": [3, 1, 2]}), uri)
    snapshot = pennon.dataset(uri).snapshot
    (plan,) = plan_clusterings(snapshot, ["n"], CompactOptions(), curved=True)
    shares = [tuple(plan_tasks(snapshot))]
    split = plan.split(shares, [replace(plan.sample(shares), fraction=0.0).run(0)])
    (block,) = split.run(0)
    assert block[0] == 0
    (fragment,) = plan.gather(split).run([block]).fragments
    plan.check([fragment])
    with pytest.raises(FormatError, match="3 live rows were put in order as 0"):
        plan.check([])


@pytest.mark.parametrize(
    ("columns", "error"),
    [([], ArgumentError), (["a", "a"], ArgumentError), (["no"], ArgumentError), (["list"], UnsupportedError)],
)  # fmt: skip
def test_cluster_by_wrong_columns_is_refused(columns: list[str], error: type[Exception]) -> None:
    schema = schema_from_arrow(rows_of_types("2.1").schema)
    with pytest.raises(error):
        RowOrder.by(schema, columns)
