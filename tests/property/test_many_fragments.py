"""Tables of many small fragments, by both writers: a scan gives what its fragments give one by one, and what was written."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.encoding.v2_1 import strategy
from pennon.io import map_budget
from pennon.scan.read import batch_sizing, join_tasks, tasks
from tests.interop.equality import difference
from tests.interop.random_arrays import random_array
from tests.seeds import each_seed

TYPES = [
    *(
        pa.int8(),
        pa.int64(),
        pa.float32(),
        pa.float64(),
        pa.bool_(),
        pa.string(),
        pa.large_binary(),
    ),
    *(
        pa.date32(),
        pa.timestamp("us"),
        pa.decimal128(20, 3),
        pa.binary(5),
        pa.list_(pa.float32(), 4),
    ),
    *(
        pa.list_(pa.int32()),
        pa.list_(pa.list_(pa.string())),
        pa.list_(pa.struct([("p", pa.int16())])),
    ),
    *(pa.struct([("a", pa.int32()), ("b", pa.string())]), pa.dictionary(pa.int16(), pa.string())),
]
SIZES = [1, 2, 3, 17, 100, 1000, 1024, 1025, 3000]


class World:
    """A table of random fragments, and the rows that it should have."""

    def __init__(self, seed: int, folder: Path, *, stable: bool, version: str) -> None:
        self.rng, self.numbers = Random(seed), np.random.default_rng(seed)
        self.uri = str(folder / f"{seed}.lance")
        self.words = [2, 5, 50]
        """Numbers of distinct words that a fragment may have."""
        count = self.rng.randint(1, 4)
        self.types = {f"c{n}": self.rng.choice(TYPES) for n in range(count)}
        self.model = self._rows(0)
        self._first = {
            "data_storage_version": version,
            "enable_stable_row_ids": stable,
        }
        self.next = 0
        self.versions: list[str] = []
        """File versions of appended rows; those of the table if there are none."""
        self.misses_columns = False
        """Whether some rows are appended without a column, or none are."""

    def _rows(self, rows: int, first: int = 0) -> pa.Table:
        """Return random rows; a column of a fragment may be without NULLs, all NULL, or one value."""
        words = [f"word {n}" for n in range(self.rng.choice(self.words))]
        columns: dict[str, Any] = {
            "k": pa.array(range(first, first + rows), pa.int64()),
            "w": pa.array([self.rng.choice(words) for _ in range(rows)], pa.string()),
            "x": pa.array(self.numbers.integers(0, 100, rows), pa.int32()),
        }
        for name, kind in self.types.items():
            nulls = self.rng.choice(["none", "none", "some", "all"])
            columns[name] = random_array(self.numbers, kind, rows, nulls)
            if rows and self.rng.random() < 0.2:
                columns[name] = columns[name].take(pa.array([0] * rows))
        return pa.table(columns)

    def append(self) -> None:
        """Append a fragment or more by one of the libraries."""
        by = self.rng.choice([pennon, lance])
        rows = self._rows(self.rng.choice(SIZES), self.next)
        self.next += rows.num_rows
        options = {"mode": "append"} if Path(self.uri).exists() else self._first
        given = rows
        if self.versions and "mode" in options:
            by = pennon
            options["data_storage_version"] = self.rng.choice(self.versions)
        if self.misses_columns and "mode" in options and self.rng.random() < 0.3:
            name = self.rng.choice(["w", "x", *self.types])
            given = rows.drop_columns([name])
            place = rows.column_names.index(name)
            nulls = pa.nulls(rows.num_rows, rows.schema.field(name).type)
            rows = rows.set_column(place, name, nulls)
        by.write_dataset(
            given, self.uri, max_rows_per_file=self.rng.choice([64, 1000, 5000]), **options
        )
        self.model = pa.concat_tables([self.model, rows])

    def delete(self) -> None:
        """Delete some rows; maybe all of a fragment."""
        by = self.rng.choice([pennon, lance])
        low = self.rng.randrange(self.next)
        where = self.rng.choice(
            [f"x = {self.rng.randrange(100)}", f"k >= {low} AND k < {low + 70}"]
        )
        by.dataset(self.uri).delete(where)
        if where.startswith("x"):
            other = pc.not_equal(self.model["x"], int(where.split()[-1]))
            keep = pc.fill_null(other, fill_value=True)
        else:
            keep = pc.or_(
                pc.less(self.model["k"], low), pc.greater_equal(self.model["k"], low + 70)
            )
        self.model = self.model.filter(keep)

    def add_column(self) -> None:
        """Add a column, whose values lie in files of their own; rows that come later have it, too."""
        if "y" in self.model.column_names or "y" in self.types:
            return
        pennon.dataset(self.uri).add_columns({"y": "x + 1"})
        values = pc.add(self.model["x"], pa.scalar(1, pa.int32())).cast(pa.int64())
        y = pennon.dataset(self.uri).schema.field("y").type
        self.model = self.model.append_column("y", values.cast(y))
        self.types["y"] = y


def _made(seed: int, folder: Path, *, stable: bool, version: str, most: int) -> World:
    world = World(seed, folder, stable=stable, version=version)
    for step in range(world.rng.randint(2, most)):
        world.append()
        if world.rng.random() < 0.2 and step:
            world.delete()
        if world.rng.random() < 0.05:
            world.add_column()
        if not world.model.num_rows:
            world.append()
    return world


def _one_by_one(table: pennon.LanceDataset, **options: Any) -> pa.Table:
    """Return what the fragments give, each read by itself."""
    return pa.concat_tables([each.to_table(**options) for each in table.get_fragments()])


def _check(world: World) -> None:
    table = pennon.dataset(world.uri)
    assert difference(table.to_table(), world.model) is None
    names = world.model.column_names
    shown = world.rng.sample(names, world.rng.randint(1, len(names)))
    for options in _choices(world, shown):
        wanted = _one_by_one(table, **options)
        assert difference(table.to_table(**options), wanted) is None, options
        batches = list(table.to_batches(batch_size=100, **options))
        assert difference(pa.Table.from_batches(batches, wanted.schema), wanted) is None, options
        if "filter" in options:
            assert table.count_rows(filter=options["filter"]) == wanted.num_rows, options
        else:
            sizes = [
                batch.num_rows
                for each in table.get_fragments()
                for batch in each.to_batches(batch_size=100, **options)
            ]
            assert [batch.num_rows for batch in batches] == sizes, options
    offset, limit = world.rng.randrange(world.model.num_rows), world.rng.choice([0, 1, 150, 10_000])
    part = table.to_table(columns=shown, offset=offset, limit=limit)
    assert difference(part, world.model.select(shown).slice(offset, limit)) is None
    some = world.rng.sample(table.get_fragments(), world.rng.randint(1, len(table.get_fragments())))
    read = table.scanner(columns=shown, fragments=some).to_table()
    assert (
        difference(read, pa.concat_tables([each.to_table(columns=shown) for each in some])) is None
    )


def _choices(world: World, shown: list[str]) -> list[dict[str, Any]]:
    number = world.rng.randrange(max(world.next, 1))
    conditions = [
        f"x < {world.rng.randrange(100)}",
        f"w = 'word {world.rng.randrange(6)}'",
        f"k >= {number} AND k < {number + 500}",
        f"x < 50 AND w <> 'word 1' AND {world.rng.choice(shown)} IS NOT NULL",
    ]
    metas = {"with_row_id": True, "with_row_address": True}
    return [
        {"columns": shown},
        {"columns": [*shown, "_rowoffset"] if world.rng.random() < 0.5 else shown, **metas},
        *[{"columns": shown, "filter": each} for each in conditions],
        {"columns": shown, "filter": conditions[0], **metas},
    ]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@each_seed(2)
def test_scan_of_many_fragments_equals_scans_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, stable: bool, seed: int
) -> None:
    monkeypatch.setattr(join_tasks, "SMALL_ROWS", 1000 if seed else 1 << 17)
    _check(_made(seed, tmp_path, stable=stable, version=version, most=12))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@each_seed(20)
def test_many_scans_of_many_fragments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, seed: int
) -> None:
    number = 1000 + 20 * part + seed
    monkeypatch.setattr(join_tasks, "SMALL_ROWS", [100, 1000, 1 << 17][number % 3])
    version = ["2.0", "2.1", "2.1", "2.2", "2.2"][number % 5]
    _check(_made(number, tmp_path, stable=number % 2 == 0, version=version, most=25))


def _with_small_units(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut units within fragments, and read long fragments of a run by themselves."""
    monkeypatch.setattr(strategy, "MOST_POINT_STRINGS", 40)
    monkeypatch.setattr(strategy, "MOST_POINT_NUMBERS", 90)
    monkeypatch.setattr(strategy, "MOST_JOINED", [250, 1 << 62][seed % 2])
    monkeypatch.setattr(join_tasks, "STREAMED_BYTES", [1 << 23, 1 << 14][seed % 2])
    monkeypatch.setattr(join_tasks, "SMALL_ROWS", [1 << 18, 1000][seed // 2 % 2])
    for module in (tasks, batch_sizing):
        monkeypatch.setattr(module, "UNIT_BYTES", 6000)
        monkeypatch.setattr(module, "LEAST_UNIT_BYTES", 500)
    monkeypatch.setattr(tasks, "MAX_DECODED_BYTES", 9000)
    budget = [0, map_budget.BUDGET_BYTES][seed % 3 > 0]  # a table too large for its maps, or not
    monkeypatch.setattr(map_budget._OfProcess, "resident", map_budget.Resident(budget))


def _made_of_all(seed: int, folder: Path, most: int) -> World:
    """Return a table of rows with missing columns, in files of several versions, some rows deleted."""
    world = World(seed, folder, stable=seed % 2 == 0, version=["2.1", "2.2", "2.0"][seed % 3])
    world.append()
    world.versions, world.misses_columns = ["2.1", "2.1", "2.1", "2.2", "2.0"], True
    world.words = [2, 50, 5000]
    for _ in range(world.rng.randint(1, most)):
        world.append()
        if world.rng.random() < 0.1:
            world.delete()
        if world.rng.random() < 0.05:
            world.add_column()
    if not world.model.num_rows:
        world.append()
    return world


@each_seed(3)
def test_scan_of_long_and_short_fragments_equals_scans_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _with_small_units(seed, monkeypatch)
    _check(_made_of_all(seed, tmp_path, most=12))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
@each_seed(10)
def test_many_scans_of_long_and_short_fragments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int, seed: int
) -> None:
    number = 100 + 10 * part + seed
    _with_small_units(number, monkeypatch)
    _check(_made_of_all(number, tmp_path, most=60))
