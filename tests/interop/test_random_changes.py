"""Random tables, changed by Pennon and pylance in turns, keep values of all types.

The model says, for each key and column, which row of the seed's table the value is from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from tests.interop.equality import difference
from tests.interop.random_tables import as_lance_reads, random_case

FAST, SLOW = range(12), range(12, 160)
MOST_ROWS = 5000
BREAKDOWNS = "panicked", "PanicException", "Not supported", "cannot express this merge"


class History:
    """A table under changes, and where its values are from."""

    def __init__(self, seed: int, uri: Path) -> None:
        self.rng = Random(seed)
        self.uri = str(uri)
        case = random_case(seed)
        pool = as_lance_reads(case.table.slice(0, MOST_ROWS)).combine_chunks()
        self.pool = pool.select([f.name for f in pool.schema if _is_taken(f)])
        first = range(max(self.pool.num_rows // 2, 1))
        self.columns = self.pool.schema.names
        self.is_empty = not (self.pool.num_rows and self.columns)
        if self.is_empty:
            return
        self.rows = {k: dict.fromkeys(self.columns, k) for k in first}
        options: dict[str, Any] = {
            "data_storage_version": self.rng.choice(["2.0", "2.1", "2.2"]),
            "enable_stable_row_ids": self.rng.random() < 0.5,
            "max_rows_per_file": self.rng.choice([7, 100, 1 << 20]),
        }
        data = self.pool.slice(0, len(first)).append_column("k", pa.array(first, pa.int64()))
        pennon.write_dataset(data, self.uri, **options)

    @property
    def library(self) -> Any:
        return self.rng.choice([pennon, lance])

    def do(self, change: Callable[[Any], Any]) -> Any:
        """Return what a change gives; where pylance breaks down, Pennon does it."""
        dataset = self.library.dataset(self.uri)
        try:
            return change(dataset)
        except BaseException as error:
            if isinstance(dataset, pennon.LanceDataset) or not _is_breakdown(error):
                raise
        return change(pennon.dataset(self.uri))

    def data(self, columns: list[str], keys: list[int]) -> tuple[pa.Table, list[int]]:
        """Return rows of the pool under other keys, and which they are."""
        chosen = [self.rng.randrange(self.pool.num_rows) for _ in keys]
        table = self.pool.select(columns).take(pa.array(chosen, pa.int64()))
        return table.append_column("k", pa.array(keys, pa.int64())), chosen

    def step(self) -> None:
        self.rng.choice([self.delete, self.update, self.merge, self.merge, self.patch])()

    def delete(self) -> None:
        by = self.rng.randint(3, 9)
        gone = {k for k in self.rows if k % by == 1}
        done = self.do(lambda dataset: dataset.delete(f"k % {by} = 1"))
        assert done == {"num_deleted_rows": len(gone)}
        self.rows = {k: row for k, row in self.rows.items() if k not in gone}

    def update(self) -> None:
        """Set columns to themselves or NULL, and keys to others."""
        by, column = self.rng.randint(2, 9), self.rng.choice(self.columns)
        found = [k for k in self.rows if k % by == 0]
        far = 1 << 20
        updates = {"k": f"k + {far}", column: f"`{column}`"}
        done = self.do(lambda dataset: dataset.update(updates, where=f"k % {by} = 0"))
        assert done == {"num_rows_updated": len(found)}
        self.rows.update({k + far: self.rows.pop(k) for k in found})

    def merge(self) -> None:
        """Update rows, and add rows, with all columns or some."""
        columns = self.columns
        if self.rng.random() < 0.5:
            columns = self.rng.sample(columns, self.rng.randint(1, len(columns)))
        new = [1 << 40 | self.rng.randrange(1 << 30) for _ in range(5)]
        known = self.rng.sample(sorted(self.rows), len(self.rows) // self.rng.randint(1, 5))
        inserts = len(columns) == len(self.columns)
        data, chosen = self.data(columns, [*known, *new])

        def change(dataset: Any) -> Any:
            builder = dataset.merge_insert("k").when_matched_update_all()
            if inserts:
                builder = builder.when_not_matched_insert_all()
            return builder.execute(data)

        done = self.do(change)
        assert done["num_updated_rows"] == len(known)
        for key, row in zip(
            [*known, *new][: None if inserts else len(known)], chosen, strict=False
        ):
            old = self.rows.get(key, {})
            self.rows[key] = {**old, **dict.fromkeys(columns, row)}

    def patch(self) -> None:
        """Write some columns anew, beside the others."""
        if len(self.columns) == 1:
            return
        columns = self.rng.sample(self.columns, self.rng.randint(1, len(self.columns) - 1))
        known = self.rng.sample(sorted(self.rows), len(self.rows) // 2)
        data, chosen = self.data(columns, known)

        def change(dataset: Any) -> Any:
            builder = dataset.merge_insert("k").when_matched_update_all()
            return builder.write_mode("rewrite_columns").execute(data)

        done = self.do(change)
        assert done["num_updated_rows"] == len(known)
        for key, row in zip(known, chosen, strict=True):
            self.rows[key] = {**self.rows[key], **dict.fromkeys(columns, row)}

    def check(self) -> None:
        keys = sorted(self.rows)
        for library in (pennon, lance):
            dataset = library.dataset(self.uri)
            dataset.validate()
            try:
                got = dataset.to_table()
            except BaseException as error:
                if library is pennon or not _is_breakdown(error):
                    raise
                continue
            order = np.argsort(got.column("k").to_numpy())
            assert got.column("k").to_numpy()[order].tolist() == keys
            for name in self.columns:
                rows = pa.array([self.rows[key][name] for key in keys], pa.int64())
                mine = got.select([name]).take(pa.array(order))
                found = difference(mine, self.pool.select([name]).take(rows))
                assert found is None, (library.__name__, found)


def _is_breakdown(error: BaseException) -> bool:
    """Tell whether pylance ends in a panic, or says that it cannot do what it does elsewhere."""
    said = f"{type(error).__name__} {error}"
    return any(known in said for known in BREAKDOWNS)


def _is_taken(field: pa.Field) -> bool:
    """Leave out what only one of the two writes, or what Arrow cannot put in another order."""
    said = str(field.type)
    is_packed = field.metadata is not None and b"packed" in field.metadata
    return not (is_packed or "dictionary" in said or "struct<>" in said)


def follow(seed: int, folder: Path) -> None:
    history = History(seed, folder / str(seed))
    if history.is_empty:
        return
    for _ in range(6):
        history.step()
        history.check()


@pytest.mark.parametrize("seed", FAST)
def test_random_changes_keep_values(seed: int, tmp_path: Path) -> None:
    follow(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_random_changes_keep_values_with_many_seeds(seed: int, tmp_path: Path) -> None:
    follow(seed, tmp_path)
