"""Tables of many columns, by both writers: columns read together give what each gives by itself, and what was written."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError, UnsupportedError
from tests.interop.equality import difference
from tests.interop.random_arrays import random_array
from tests.property.test_many_fragments import TYPES
from tests.seeds import each_seed

ROWS = [1, 2, 5, 100, 1000, 1025, 4000, 30_000]


def _column(rng: Random, numbers: np.random.Generator, kind: pa.DataType, rows: int) -> Any:
    """Return a column: random, of few values, or of one; without NULLs, with some, or of NULLs only."""
    nulls = rng.choice(["none", "none", "none", "some", "all"])
    values = random_array(numbers, kind, rows, nulls)
    if rng.random() < 0.4:
        few = numbers.integers(0, min(rows, rng.choice([1, 3, 200])), rows)
        values = values.take(pa.array(few))
    return values


def _table(seed: int, rows: int) -> pa.Table:
    """Return random columns; most are of few types, so that some are alike."""
    rng, numbers = Random(seed), np.random.default_rng(seed)
    common = [rng.choice(TYPES) for _ in range(3)]
    kinds = [rng.choice(common if rng.random() < 0.8 else TYPES) for _ in range(rng.randint(8, 40))]
    columns = {f"c{n}": _column(rng, numbers, kind, rows) for n, kind in enumerate(kinds)}
    return pa.table({**columns, "k": pa.array(range(rows), pa.int64())})


def _check(seed: int, folder: Path) -> None:
    rng = Random(seed)
    rows = rng.choice(ROWS)
    model = _table(seed, rows)
    uri = str(folder / f"{seed}.lance")
    by = rng.choice([pennon, lance])
    version = rng.choice(["2.0", "2.1", "2.1", "2.2", "2.2"])
    by.write_dataset(model, uri, data_storage_version=version, max_rows_per_file=rows // 2 + 1)
    if rows > 10 and rng.random() < 0.3:
        low = rng.randrange(rows)
        pennon.dataset(uri).delete(f"k >= {low} AND k < {low + 7}")
        model = pa.concat_tables([model.slice(0, low), model.slice(low + 7)])
    table = pennon.dataset(uri)
    names = rng.sample(model.column_names, rng.randint(8, model.num_columns))
    wanted = model.select(names)
    for handle in (table, table, pennon.dataset(uri)):
        assert difference(handle.to_table(columns=names), wanted) is None
    batches = list(table.to_batches(columns=names, batch_size=rng.choice([7, 1000, 8192])))
    assert difference(pa.Table.from_batches(batches, wanted.schema), wanted) is None
    places = [rng.randrange(model.num_rows) for _ in range(rng.choice([1, 2, 30]))]
    for handle in (table, pennon.dataset(uri)):
        assert difference(handle.take(places, columns=names), wanted.take(places)) is None
    low = rng.randrange(rows)
    found = table.to_table(columns=names, filter=f"k >= {low} AND k < {low + 50}")
    at = model["k"].to_numpy()
    kept = pa.array((at >= low) & (at < low + 50))
    assert difference(found, wanted.filter(kept)) is None
    apart = [table.to_table(columns=[name])[name] for name in names]
    assert difference(pa.table(apart, names=names), wanted) is None


@each_seed(40)
def test_columns_read_together_equal_the_model(tmp_path: Path, seed: int) -> None:
    _check(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(5))
def test_many_seeds_of_columns_read_together_equal_the_model(tmp_path: Path, shard: int) -> None:
    for seed in range(1000 + 40 * shard, 1040 + 40 * shard):
        _check(seed, tmp_path)


def test_columns_read_together_have_memory_of_their_own(tmp_path: Path) -> None:
    """A column of a take is pickled and kept without the others that were read with it."""
    numbers = np.random.default_rng(3)
    columns = {f"c{n}": numbers.random(5000) for n in range(200)}
    pennon.write_dataset(pa.table(columns), tmp_path / "t")
    taken = pennon.dataset(tmp_path / "t").take([5, 77, 4000])
    for column in taken.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        assert sum(chunk.offset for chunk in chunks) == 0
        assert sum(each.size for chunk in chunks for each in chunk.buffers() if each) <= 64


@each_seed(30)
def test_damaged_column_of_many_is_named_or_its_rows_are_its_own(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    columns: dict[str, Any] = {f"c{n}": np.arange(n, 900 + n) for n in range(12)}
    columns |= {f"t{n}": [f"text {i % 9} of {n}" for i in range(900)] for n in range(12)}
    model = pa.table(columns)
    uri = tmp_path / f"{seed}.lance"
    table = pennon.write_dataset(model, uri)
    file = uri / "data" / table.get_fragments()[0].data_files()[0].path
    content = file.read_bytes()
    for _ in range(10):
        damaged = bytearray(content)
        start = rng.randrange(len(content) // 2)  # of the pages
        damaged[start : start + rng.choice([1, 2, 8])] = bytes(rng.choice([1, 2, 8]))
        file.write_bytes(damaged[: len(content)].ljust(len(content), b"\0"))
        try:
            found = pennon.dataset(uri).to_table()
        except (FormatError, UnsupportedError) as error:
            assert file.name in str(error)  # noqa: PT017 - other rows of one column are an answer, too
            continue
        wrong = [name for name in model.column_names if found[name] != model[name]]
        assert len(wrong) <= 2, "the damage reaches over the border of two pages at most"
