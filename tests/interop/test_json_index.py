"""Indices that pylance makes on a path of a JSON column, beside scans, with random values and conditions."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import pennon
from pennon.table.indices_wire import parse_indices
from pennon.table.json_index_wire import json_target

GETS: dict[str, tuple[list[Any], str]] = {
    "int": ([0, 3, -5, 7, 1 << 60], "json_get_int(j, 'a')"),
    "float": ([0.5, -2.25, 1e300, 3.0], "json_get_float(j, 'a')"),
    "string": (["", "q", "qwerty", "Été", "3"], "json_get_string(j, 'a')"),
}
CONDITIONS = (
    "{0} = {1}",
    "{0} != {1}",
    "{0} < {1}",
    "{0} >= {1}",
    "{0} IN ({1}, {2})",
    "{0} IS NULL",
)
KINDS = ("btree", "bitmap", "zonemap", "bloomfilter", "ngram")


def make(folder: str, values: list[Any], path: str, kind: str) -> None:
    column = pa.array([None if each is None else json.dumps(each) for each in values], pa.json_())
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "j": column})
    made = lance.write_dataset(table, folder, max_rows_per_file=30)
    config = IndexConfig("json", {"path": path, "target_index_type": kind})
    made.create_scalar_index("j", config, name="x")


def rows(folder: str, condition: str) -> list[int]:
    """Return the rows of a condition: with and without the index they are the same, and pylance's scan's."""
    table = pennon.dataset(folder)
    found, plain = (
        table.to_table(["id"], condition, use_scalar_index=uses)["id"].to_pylist()
        for uses in (True, False)
    )
    assert found == plain, condition
    theirs = lance.dataset(folder).to_table(["id"], filter=condition, use_scalar_index=False)
    assert theirs["id"].to_pylist() == plain, condition
    return found


def plan(folder: str, condition: str) -> str:
    return pennon.dataset(folder).scanner(filter=condition).explain_plan()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", GETS)
def test_random_values(tmp_path: Path, kind: str, of: str) -> None:
    if kind == "ngram" and of != "string":
        return
    folder, rng = str(tmp_path / "t.lance"), random.Random(kind + of)
    values, get = GETS[of]
    documents: list[Any] = [{"a": values[0], "b": 1}] + [
        rng.choice(
            ({"a": rng.choice(values)}, {"a": rng.choice(values)}, {"b": 1}, None, {"a": None})
        )
        for _ in range(80)
    ]
    make(folder, documents, "a", kind)
    lance.dataset(folder).delete("id % 7 = 3")
    asked = 0
    for condition in (*CONDITIONS, "contains({0}, 'wer')" if of == "string" else "NOT ({0} = {1})"):
        text = condition.format(get, *(repr(each) for each in rng.sample(values, 2)))
        rows(folder, text)
        rows(folder, f"({text}) AND id < 50")
        asked += "@x(" in plan(folder, text)
    assert asked >= (1 if kind == "ngram" else 3)


def test_the_plan_shows_the_path(tmp_path: Path) -> None:
    folder, condition = str(tmp_path / "t.lance"), "json_get_int(j, 'a') = 3"
    make(folder, [{"a": n % 9} for n in range(80)], "a", "btree")
    shown = "ScalarIndexQuery: query=[Json(j = 3->a)]@x(BTree)"
    assert shown in plan(folder, condition)
    assert shown in lance.dataset(folder).scanner(filter=condition).explain_plan()
    assert len(rows(folder, condition)) == 9


def test_what_is_not_asked(tmp_path: Path) -> None:
    """Another key, another type, a bare column, and a path that is no key."""
    folder = str(tmp_path / "t.lance")
    make(folder, [{"a": n % 9, "b": 1} for n in range(80)], "a", "btree")
    for condition in (
        "json_get_int(j, 'b') = 1",
        "json_get_int(j, 'a') = json_get_int(j, 'b')",
        "json_extract(j, '$.a') = '3'",
        "j IS NULL",
    ):
        assert "@x(" not in plan(folder, condition)
        rows(folder, condition)
    assert len(rows(folder, "json_get_float(j, 'a') = 3.0")) == 9
    paths = str(tmp_path / "paths.lance")
    make(paths, [{"a": {"b": "q"}}, {"a.b": "w"}], "a.b", "btree")
    assert rows(paths, "json_get_string(j, 'a.b') = 'w'") == [1]
    assert lance.dataset(paths).count_rows("json_get_string(j, 'a.b') = 'w'") == 0
    assert "@x(" not in plan(paths, "json_get_string(j, 'a.b') = 'w'")


def test_details_that_cannot_be_read(tmp_path: Path) -> None:
    folder, condition = str(tmp_path / "t.lance"), "json_get_int(j, 'a') = 3"
    make(folder, [{"a": n % 9} for n in range(80)], "a", "btree")
    (index,) = parse_indices(pennon.dataset(folder).snapshot.manifest.indices)
    assert index.details is not None
    for details in (b"", b"\x0a\xff", b"\x08\x01\x10\x02", index.details[1][:-9]):
        bad = replace(index, details=(index.details[0], details))
        assert json_target(bad) == ("", bad)
    assert json_target(replace(index, details=None)) is None
    assert rows(folder, condition)
