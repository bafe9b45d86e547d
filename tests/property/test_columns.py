"""Random histories of a table's columns, by both libraries, against a model in memory.

After each step our scan, pylance's scan and the model agree, old versions are what they were, and no
two files of a fragment have one field.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pennon

WIDER = {pa.int8(): pa.int32(), pa.int32(): pa.int64(), pa.int64(): pa.int32()}
STEPS = [
    *("sql", "nulls", "function", "reader", "merge", "drop", "rename", "cast", "swap"),
    *("delete", "append", "compact", "metadata"),
]
steps = st.lists(
    st.tuples(st.sampled_from(STEPS), st.booleans(), st.integers(0, 1000)), min_size=4, max_size=12
)


@dataclass
class Model:
    """The table: names and types of its columns in order, and its rows."""

    types: dict[str, pa.DataType]
    rows: list[dict[str, Any]]
    made: int = 0
    history: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    def new_name(self) -> str:
        """Return a name that was never used."""
        self.made += 1
        return f"c{self.made}"

    def pick(self, number: int) -> str:
        """Return the name of a column other than the key."""
        names = [name for name in self.types if name != "k"] or ["k"]
        return names[number % len(names)]

    def add(self, name: str, kind: pa.DataType, values: list[Any]) -> None:
        """Add a column."""
        self.types[name] = kind
        for row, value in zip(self.rows, values, strict=True):
            row[name] = value

    def rename(self, names: dict[str, str]) -> None:
        """Give columns other names, in their places."""
        self.types = {names.get(name, name): kind for name, kind in self.types.items()}
        self.rows = [{names.get(n, n): value for n, value in row.items()} for row in self.rows]


def change(dataset: Any, model: Model, step: str, number: int) -> None:  # noqa: C901, PLR0912 - a list of cases
    """Change the table and the model."""
    name, old = model.new_name(), model.pick(number)
    keys = [row["k"] for row in model.rows]
    match step:
        case "sql":
            dataset.add_columns({name: f"k + {number}"})
            model.add(name, pa.int64(), [key + number for key in keys])
        case "nulls":
            dataset.add_columns(pa.field(name, pa.int32()))
            model.add(name, pa.int32(), [None] * len(keys))
        case "function" if keys:
            dataset.add_columns(lambda b: pa.record_batch({name: b["k"]}), read_columns=["k"])
            model.add(name, pa.int64(), keys)
        case "reader":
            values = pa.array(range(len(keys)), pa.int32())
            dataset.add_columns(pa.table({name: values}).to_reader(max_chunksize=1 + number % 5))
            model.add(name, pa.int32(), list(range(len(keys))))
        case "merge":
            other = pa.table({"key": pa.array([number % 20, 1, 500], pa.int64()), name: [7, 8, 9]})
            dataset.merge(other, "k", "key")
            found = {number % 20: 7, 500: 9} | {1: 8}
            model.add(name, pa.int64(), [found.get(key) for key in keys])
        case "drop" if old != "k":
            dataset.drop_columns([old])
            del model.types[old]
            for row in model.rows:
                del row[old]
        case "rename" if old != "k":
            dataset.alter_columns({"path": old, "name": name})
            model.rename({old: name})
        case "swap" if old != "k" and len(model.types) > 2:
            other_name = model.pick(number + 1)
            dataset.alter_columns(
                {"path": old, "name": other_name}, {"path": other_name, "name": old}
            )
            model.rename({old: other_name, other_name: old})
        case "cast" if old != "k" and model.types[old] in WIDER:
            kind = WIDER[model.types[old]]
            dataset.alter_columns({"path": old, "data_type": kind})
            model.types[old] = kind
        case "delete":
            dataset.delete(f"k % 7 = {number % 7}")
            model.rows = [row for row in model.rows if row["k"] % 7 != number % 7]
        case "append":
            dataset.insert(_rows(model, number))
            model.rows += _rows(model, number).to_pylist()
        case "compact":
            dataset.optimize.compact_files()
        case "metadata":
            dataset.update_field_metadata({old: {"n": str(number)}})


def _rows(model: Model, number: int) -> pa.Table:
    first = 1000 + number
    columns = {
        name: pa.array([first, first + 1] if name == "k" else [number % 100, None], kind)
        for name, kind in model.types.items()
    }
    return pa.table(columns)


def check(uri: str, model: Model) -> None:
    """Raise unless both libraries see the model, and files are as they should be."""
    ours, theirs = pennon.dataset(uri), lance.dataset(uri)
    theirs.validate()
    ours.validate()
    expected = sorted(map(repr, model.rows))
    for dataset in (ours, theirs):
        table = dataset.to_table()
        assert dict(zip(table.schema.names, table.schema.types, strict=True)) == model.types
        assert sorted(map(repr, table.to_pylist())) == expected
    for fragment in ours.get_fragments():
        ids = Counter(n for file in fragment.data_files() for n in file.fields if n >= 0)
        assert max(ids.values(), default=1) == 1
    model.history[ours.version] = [dict(row) for row in model.rows]


def walk(history: list[tuple[str, bool, int]], version: Any, *, stable: bool) -> None:
    """Run a history."""
    folder = tempfile.mkdtemp()
    try:
        keys = pa.array(range(20), pa.int64())
        data = pa.table({"k": keys, "a": pa.array(range(20), pa.int8())})
        lance.write_dataset(
            data, folder, max_rows_per_file=7, data_storage_version=version,
            enable_stable_row_ids=stable,
        )  # fmt: skip
        model = Model(
            dict(zip(data.schema.names, data.schema.types, strict=True)), data.to_pylist()
        )
        for step, is_ours, number in history:
            library = pennon if is_ours else lance
            change(library.dataset(folder), model, step, number)
            check(folder, model)
        for number, rows in model.history.items():
            seen = pennon.dataset(folder, version=number).to_table().to_pylist()
            assert sorted(map(repr, seen)) == sorted(map(repr, rows))
    finally:
        shutil.rmtree(folder)


SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "database": None,
}


@settings(max_examples=10, **SETTINGS)
@given(steps, st.sampled_from(["2.0", "2.1", "2.2"]), st.booleans())
def test_columns_in_random_histories(history: Any, version: str, stable: bool) -> None:
    walk(history, version, stable=stable)


@pytest.mark.slow
@settings(max_examples=250, **SETTINGS)
@given(steps, st.sampled_from(["2.0", "2.1", "2.2"]), st.booleans())
def test_columns_in_many_random_histories(history: Any, version: str, stable: bool) -> None:
    walk(history, version, stable=stable)
