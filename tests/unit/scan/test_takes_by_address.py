"""Rows taken by their addresses: any order, any row more than once, of fragments with deleted rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import OutOfRangeError
from pennon.scan.plan.take_plan import plan_take
from pennon.scan.run.take import take_addresses

ROWS = 60


def _table(folder: Path, *, has_deleted: bool) -> pennon.LanceDataset:
    words = [None if number % 7 == 0 else f"word {number}" for number in range(ROWS)]
    vectors = pa.array([[number, 1] for number in range(ROWS)], pa.list_(pa.float32(), 2))
    table = pa.table({"n": range(ROWS), "word": words, "vec": vectors})
    ds = pennon.write_dataset(table, folder / "t", max_rows_per_file=20)
    if has_deleted:
        ds.delete("n % 5 == 3 AND n < 40")
    return ds


@pytest.mark.parametrize("has_deleted", [False, True])
@pytest.mark.parametrize("most", [1, 20, 60], ids="of {} fragments".format)
def test_take_by_address_keeps_the_requested_order(
    tmp_path: Path, has_deleted: bool, most: int
) -> None:
    ds = _table(tmp_path, has_deleted=has_deleted)
    alive = dict.fromkeys(ds.to_table(["n"])["n"].to_pylist())
    plan = plan_take(ds.snapshot, ("n", "word", "vec"))
    random = np.random.default_rng(most)
    for count in (0, 1, 2, 10, 50):
        for rows in (
            random.integers(0, most, count),
            np.unique(random.integers(0, most, count)),
            random.permutation(most)[:count],
        ):
            addresses = ((rows // 20) << 32 | rows % 20).astype(np.uint64)
            taken = take_addresses(ds.snapshot, plan, addresses)
            wanted = [row for row in rows.tolist() if row in alive]
            assert taken.column("n").to_pylist() == wanted
            words = [None if row % 7 == 0 else f"word {row}" for row in wanted]
            assert taken.column("word").to_pylist() == words
            assert taken.column("vec").to_pylist() == [[row, 1] for row in wanted]


@pytest.mark.parametrize("address", [20, (1 << 32) + 20, 3 << 32, (1 << 64) - 1])
def test_an_address_of_no_row(tmp_path: Path, address: int) -> None:
    ds = _table(tmp_path, has_deleted=False)
    plan = plan_take(ds.snapshot, ("n",))
    with pytest.raises(OutOfRangeError):
        take_addresses(ds.snapshot, plan, np.array([address, 5], np.uint64))
