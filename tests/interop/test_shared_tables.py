"""Tables that pylance makes with all its defaults, and that both libraries change by turns.

After each change both read the same rows, which are what the change should have made, and both find
the table valid.  Who makes which change goes by the seed; every other table has stable row ids.
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

POINT = pa.struct([("x", pa.int32()), ("words", pa.list_(pa.string()))])
SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("t", pa.string()),
        ("f", pa.float64()),
        ("v", pa.list_(pa.float32(), 4)),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("s", POINT),
        ("l", pa.list_(pa.map_(pa.int32(), POINT))),
        ("d", pa.dictionary(pa.int8(), pa.string())),
    ]
)
ROWS = 400


def row(k: int) -> dict[str, Any]:
    """Return a row that its key says all of, with NULLs in every layer."""
    point = {"x": k, "words": [f"w{k % 9}", None][: k % 3]}
    return {
        "k": k,
        "t": None if k % 5 == 0 else f"text {k % 70}",
        "f": None if k % 11 == 0 else k / 4,
        "v": None if k % 7 == 0 else [k, 0, 1, 2],
        "m": None if k % 4 == 0 else [(f"k{n}", n if n % 2 else None) for n in range(k % 6)],
        "s": None if k % 3 == 0 else point,
        "l": [[(n, point if n else None)] if n % 2 == 0 else None for n in range(k % 4)],
        "d": ["x", "y", None][k % 3],
    }


class Shared:
    """A table under changes by turns, and the rows that it should have, by their keys."""

    def __init__(self, seed: int, uri: Path) -> None:
        self.rng, self.uri, self.stable = Random(seed), str(uri), bool(seed % 2)
        self.schema = SCHEMA
        self.rows = {k: row(k) for k in range(ROWS)}
        self.turn = seed // 2
        lance.write_dataset(
            self.table(self.rows),
            self.uri,
            max_rows_per_file=150,
            enable_stable_row_ids=self.stable,
        )

    def table(self, keys: Any) -> pa.Table:
        """Return rows as the table has them."""
        rows = [self.rows[k] for k in sorted(keys)]
        return pa.Table.from_pylist(rows, self.schema.remove_metadata())

    def new(self, keys: range) -> pa.Table:
        """Add rows, and return them."""
        self.rows |= {k: {name: row(k).get(name) for name in self.schema.names} for k in keys}
        return self.table(keys)

    def append(self, dataset: Any) -> None:
        first = max(self.rows) + 1
        type(dataset).insert(dataset, self.new(range(first, first + 60)))

    def update(self, dataset: Any) -> None:
        by = self.rng.randint(3, 6)
        found = [k for k in self.rows if k % by == 1]
        done = dataset.update({"f": "f + 1", "t": "'changed'"}, where=f"k % {by} = 1")
        assert done["num_rows_updated"] == len(found)
        for k in found:
            old = self.rows[k]
            self.rows[k] = {**old, "f": None if old["f"] is None else old["f"] + 1, "t": "changed"}

    def delete(self, dataset: Any) -> None:
        rest = self.rng.randrange(8)
        dataset.delete(f"k % 8 = {rest} OR m IS NULL AND k > 390")
        self.rows = {
            k: each
            for k, each in self.rows.items()
            if k % 8 != rest and (k <= 390 or each["m"] is not None)
        }

    def merge(self, dataset: Any) -> None:
        """Update rows and add some, maps among their columns."""
        first = max(self.rows) + 1
        known = self.rng.sample(sorted(self.rows), 20)
        for k in known:
            self.rows[k] = {**self.rows[k], "m": [("merged", k)], "s": None}
        self.new(range(first, first + 5))
        data = self.table([*known, *range(first, first + 5)])
        builder = dataset.merge_insert("k").when_matched_update_all()
        done = builder.when_not_matched_insert_all().execute(data)
        assert (done["num_updated_rows"], done["num_inserted_rows"]) == (20, 5)

    def patch(self, dataset: Any) -> None:
        """Update some columns of some rows."""
        known = self.rng.sample(sorted(self.rows), 15)
        for k in known:
            self.rows[k] = {**self.rows[k], "l": [[(7, None)]], "t": None}
        data = self.table(known).select(["k", "l", "t"])
        dataset.merge_insert("k").when_matched_update_all().execute(data)

    def add(self, dataset: Any) -> None:
        name = f"n{len(self.schema)}"
        dataset.add_columns({name: "k * 2"})
        self.schema = self.schema.append(pa.field(name, pa.int64()))
        self.rows = {k: {**each, name: k * 2} for k, each in self.rows.items()}

    def copy(self, dataset: Any) -> None:
        """Add a column of maps that SQL takes from another."""
        name = f"n{len(self.schema)}"
        dataset.add_columns({name: "m"})
        self.schema = self.schema.append(pa.field(name, SCHEMA.field("m").type))
        self.rows = {k: {**each, name: each["m"]} for k, each in self.rows.items()}

    def join(self, dataset: Any) -> None:
        """Join a column of maps to half of the rows."""
        name, kind = f"n{len(self.schema)}", pa.map_(pa.string(), pa.bool_())
        keys = sorted(self.rows)[::2]
        maps = pa.array([[("half", k % 4 == 0)] for k in keys], kind)
        dataset.merge(pa.table({"k": keys, name: maps}), "k")
        self.schema = self.schema.append(pa.field(name, kind))
        joined = {k: [("half", k % 4 == 0)] for k in keys}
        self.rows = {k: {**each, name: joined.get(k)} for k, each in self.rows.items()}

    def alter(self, dataset: Any) -> None:
        """Cast one column, rename another and let pylance take that back."""
        other = pa.float32() if self.schema.field("f").type == pa.float64() else pa.float64()
        dataset.alter_columns({"path": "f", "data_type": other}, {"path": "t", "name": "T"})
        self.schema = self.schema.set(self.schema.get_field_index("f"), pa.field("f", other))
        back: Any = {"path": "T", "name": "t"}
        lance.dataset(self.uri).alter_columns(back)

    def drop(self, dataset: Any) -> None:
        """Drop the last column that was added."""
        name = self.schema.names[-1]
        dataset.drop_columns([name])
        self.schema = self.schema.remove(len(self.schema) - 1)
        self.rows = {
            k: {n: value for n, value in each.items() if n != name} for k, each in self.rows.items()
        }

    def compact(self, dataset: Any) -> None:
        dataset.optimize.compact_files(target_rows_per_fragment=300)

    def restore(self, dataset: Any) -> None:
        """Delete everything, and take that back."""
        version = dataset.version
        dataset.delete("k >= 0")
        type(dataset).checkout_version(dataset, version).restore()

    def do(self, change: Callable[[Any], None]) -> None:
        """Let the library whose turn it is make a change, and look what both find."""
        library = (lance, pennon)[self.turn % 2]
        self.turn += 1
        change(library.dataset(self.uri))
        wanted = self.table(self.rows)
        for reader in (lance, pennon):
            dataset = reader.dataset(self.uri)
            dataset.validate()
            got = dataset.to_table()
            order = pa.array(np.argsort(got["k"].to_numpy(), kind="stable"))
            found = difference(got.combine_chunks().take(order), wanted)
            assert found is None, (change, library.__name__, reader.__name__, found)
            last = dataset.take([got.num_rows - 1], columns=["k", "m", "l"])
            assert last.to_pylist() == got.select(["k", "m", "l"])[-1:].to_pylist()
        assert pennon.dataset(self.uri).data_storage_version == "2.2"


@pytest.mark.parametrize("seed", range(4))
def test_shared_table_changed_in_turn_with_pylance(seed: int, tmp_path: Path) -> None:
    shared = Shared(seed, tmp_path / "t")
    first = [shared.append, shared.update, shared.delete, shared.merge, shared.add, shared.alter]
    then = [shared.copy, shared.compact, shared.restore, shared.patch, shared.drop, shared.join]
    for change in (*first, *then, shared.delete, shared.append, shared.compact, shared.update):
        shared.do(change)
