"""Statistics of version 0.1: what they rule out is not read, and what is read is the same."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.io import open_store
from pennon.lance_dataset import LanceDataset
from pennon.scan import prune
from pennon.scan.plan import ScanTask
from pennon.scan.snapshot import Snapshot
from pennon.table.deletion import write_deletions
from pennon.table.manifest import Fragment, Manifest
from pennon.table.versions import read_manifest
from pennon.testing import CountingStore
from pennon.units import FragmentId

ROWS, GROUP = 3000, 100
SEED = 4
FILTERS = 60
MANY_FILTERS = 600


def _some(values: list[Any], every: int) -> list[Any]:
    return [None if number % every == 3 else value for number, value in enumerate(values)]


def table_of(rng: random.Random) -> pa.Table:
    """Sorted, scattered and constant columns, with NULLs, empty text, NaN and signed zeros."""
    numbers = range(ROWS)
    texts = [["", "a", "ab", "x" * 70][n % 4] if n > ROWS // 2 else f"{n:05d}" for n in numbers]
    floats = [[0.0, -0.0, math.nan, n / 10, -math.inf][n % 5] for n in numbers]
    fields = [
        pa.field("sorted", pa.int32()),
        pa.field("holes", pa.int64()),
        pa.field("f", pa.float64()),
        pa.field("smooth", pa.float32()),
        pa.field("t", pa.string()),
        pa.field("never", pa.large_string(), nullable=False),
        pa.field("b", pa.bool_()),
        pa.field("d", pa.date32()),
        pa.field("m", pa.decimal128(10, 2)),
        pa.field("s", pa.struct([("x", pa.int16()), ("y", pa.string())])),
        pa.field("u", pa.uint8()),
    ]
    columns = [
        list(numbers),
        _some([n // 7 for n in numbers], 150),
        floats,
        [n / 3 for n in numbers],
        _some(texts, 11),
        texts,
        [n > 1234 for n in numbers],
        [date(2020, 1, 1) + timedelta(n // 30) for n in numbers],
        [Decimal(n) / 4 for n in numbers],
        [{"x": n // 100, "y": str(n // 500)} for n in numbers],
        [rng.randrange(256) for _ in numbers],
    ]
    pairs = zip(columns, fields, strict=True)
    return pa.table([pa.array(c, f.type) for c, f in pairs], pa.schema(fields))


LITERALS = {
    "sorted": ["0", "1500", "2999", "5000", "-1", "99.5"],
    "holes": ["0", "100", "428", "NULL"],
    "f": ["0", "100.5", "-1", "cast('nan' as double)"],
    "smooth": ["0", "500.0", "999"],
    "t": ["''", "'00700'", "'a'", "'x'", "'zz'"],
    "never": ["''", "'00700'", "'ab'"],
    "b": ["true", "false"],
    "d": ["date '2020-02-01'", "date '2019-01-01'"],
    "m": ["10", "500.25"],
    "s.x": ["0", "7", "29"],
    "s.y": ["'0'", "'3'"],
    "u": ["0", "255"],
}


def random_filter(rng: random.Random, depth: int = 0) -> str:
    if depth < 2 and rng.random() < 0.4:
        parts = [random_filter(rng, depth + 1) for _ in range(2)]
        return f"({rng.choice([' AND ', ' OR ']).join(parts)})"
    if rng.random() < 0.1:
        return f"NOT ({random_filter(rng, depth + 1)})"
    name = rng.choice(sorted(LITERALS))
    literals = LITERALS[name]
    shapes = [
        f"{name} {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {rng.choice(literals)}",
        f"{name} BETWEEN {rng.choice(literals)} AND {rng.choice(literals)}",
        f"{name} IN ({rng.choice(literals)}, {rng.choice(literals)})",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
    ]
    return rng.choice(shapes)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    folder = tmp_path_factory.mktemp("bounds") / "t"
    table = table_of(random.Random(SEED))
    with pytest.warns(pennon.errors.DataLossWarning):
        pennon.write_dataset(
            table,
            folder,
            data_storage_version="legacy",
            max_rows_per_group=GROUP,
            max_rows_per_file=ROWS // 2,
        )
    store = CountingStore(open_store(folder))
    return LanceDataset.of_snapshot(str(folder), Snapshot(store, _some_deleted(store)))


def _some_deleted(store: Any) -> Manifest:
    """Return the manifest with rows of the second fragment deleted, a whole row group among them."""
    manifest = read_manifest(store)
    dead = np.array([5, *range(250, 420), 1499], np.uint32)
    deleted = write_deletions(store, FragmentId(1), 1, dead)
    fragments: list[Fragment] = list(manifest.fragments)
    old = fragments[1]
    fragments[1] = Fragment(old.id, old.files, old.physical_rows, deleted)
    return Manifest(manifest.schema, manifest.version, tuple(fragments))


def _everything(_snapshot: Any, task: ScanTask, *_: Any) -> Iterator[ScanTask]:
    yield task


def _compare(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch, seeds: range) -> int:
    """Compare filtered scans with those that read everything; return how many found rows."""
    found = 0
    for seed in seeds:
        condition = random_filter(random.Random(seed))
        pruned = dataset.to_table(filter=condition, with_row_id=True)
        with monkeypatch.context() as patched:
            patched.setattr(prune, "prune_pages", _everything)
            whole = dataset.to_table(filter=condition, with_row_id=True)
        assert pruned["_rowid"].equals(whole["_rowid"]), condition
        assert dataset.count_rows(condition) == whole.num_rows
        found += 0 < whole.num_rows < dataset.count_rows()
    return found


def test_some_filters(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _compare(dataset, monkeypatch, range(FILTERS)) > FILTERS / 3


@pytest.mark.slow
def test_many_filters(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(dataset, monkeypatch, range(FILTERS, MANY_FILTERS))


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("sorted >= 700 AND sorted < 730", 30),
        ("s.x = 3", 100),
        ("t = '00123' AND sorted < 1501", 1),
        ("d = date '2020-01-05'", 30),
        ("m < 5", 20),
        ("smooth < 5", 15),
        ("never = '00123' AND sorted < 1501", 1),
    ],
)
def test_few_pages_are_read(dataset: LanceDataset, condition: str, rows: int) -> None:
    store: Any = dataset.snapshot.store
    dataset.to_table()
    store.reset()
    columns = ["sorted", "smooth", "d", "m"]
    dataset.to_table(columns=columns)
    whole = store.counts.asked_bytes
    store.reset()
    assert dataset.to_table(columns=columns, filter=condition).num_rows == rows
    pages = ROWS // GROUP
    assert store.counts.asked_bytes <= whole * 3 / pages + 2000


def test_bounds_hold_what_is_read(dataset: LanceDataset) -> None:
    from pennon.encoding.rows import Rows
    from pennon.encoding.steps import run

    known = 0
    for fragment in dataset.snapshot.manifest.fragments:
        opened = dataset.snapshot.open_file(fragment.files[0])
        file = opened.data
        fields = [each for each in file.schema.walk() if each.logical_type != "struct"]
        for field, bounds in zip(
            fields, run(file.read_bounds(fields), opened.source.read), strict=True
        ):
            assert bounds is not None
            for unit, (start, end) in enumerate(
                zip(bounds.borders[:-1].tolist(), bounds.borders[1:].tolist(), strict=True)
            ):
                ((chunk,),) = file.read_rows([field], file.column_of, Rows.between(start, end))
                values = [v for v in chunk.to_pylist() if v is not None]
                known += _holds(bounds, unit, values, chunk.null_count)
    assert known > 200


def _holds(bounds: Any, unit: int, values: list[Any], nulls: int) -> bool:
    """Check one page; tell whether both bounds were known."""
    low = None if bounds.low is None else bounds.low[unit].as_py()
    high = None if bounds.high is None else bounds.high[unit].as_py()
    count = bounds.null_counts[unit].as_py()
    assert count in {None, nulls}
    assert low is None or not any(v < low for v in values)
    assert high is None or not any(v > high for v in values)
    return low is not None and high is not None
