"""Indices on a path of a JSON column, of both makers, beside scans, with random values and conditions."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from lance.indices import IndexConfig

import pennon
import pennon.errors
import pennon.indices
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


def make(
    folder: str, values: list[Any], path: str, kind: str, maker: Any = lance, **more: Any
) -> None:
    column = pa.array([None if each is None else json.dumps(each) for each in values], pa.json_())
    table = pa.table({"id": pa.array(range(len(values)), pa.int64()), "j": column})
    made = maker.write_dataset(table, folder, max_rows_per_file=30)
    config: Any = {lance: IndexConfig, pennon: pennon.indices.IndexConfig}[maker]
    chosen = {"path": path, "target_index_type": kind, **more}
    made.create_scalar_index("j", config("json", chosen), name="x")


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


@pytest.mark.parametrize("maker", [lance, pennon], ids=["theirs", "ours"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", GETS)
def test_json_index_with_random_values_and_conditions(
    tmp_path: Path, kind: str, of: str, maker: Any
) -> None:
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
    make(folder, documents, "a", kind, maker)
    lance.dataset(folder).delete("id % 7 = 3")
    asked = 0
    for condition in (*CONDITIONS, "contains({0}, 'wer')" if of == "string" else "NOT ({0} = {1})"):
        text = condition.format(get, *(repr(each) for each in rng.sample(values, 2)))
        rows(folder, text)
        rows(folder, f"({text}) AND id < 50")
        asked += "@x(" in plan(folder, text)
        if maker is pennon:
            theirs = lance.dataset(folder)
            assert theirs.count_rows(text) == pennon.dataset(folder).count_rows(text)
    assert asked >= {"ngram": 1, "bloomfilter": 0}.get(kind, 3)


VALUES: tuple[list[Any], ...] = (
    [1, 2, None],
    [2.5, 1],
    [True, False],
    ["q", ""],
    [None, None],
    [1 << 63],
    [1, 2.5],
    [1, "q"],
    ["q", 1],
    [True, 1],
    [1, 1 << 63],
    [[1, 2]],
    [{"b": 1}],
)


@pytest.mark.parametrize("values", VALUES, ids=repr)
def test_json_index_takes_the_type_of_the_first_value(tmp_path: Path, values: list[Any]) -> None:
    """Whole numbers among floating-point ones are such; all else must be of one type.  Files say so alike."""
    found: list[Any] = []
    for maker in (lance, pennon):
        folder = str(tmp_path / maker.__name__)
        try:
            make(folder, [{"a": each} for each in values], "a", "btree", maker)
        except ValueError:
            found.append(None)
            continue
        (index,) = lance.dataset(folder).describe_indices()
        file = f"{folder}/_indices/{index.segments[0].uuid}/page_data.lance"
        found.append((LanceFileReader(file).read_all().to_table().to_pydict(), index.details))
    assert found[0] == found[1]


def test_json_index_after_append_delete_and_compaction_answers_right(tmp_path: Path) -> None:
    for maker in (lance, pennon):
        folder, condition = str(tmp_path / maker.__name__), "json_get_int(j, 'a') = 3"
        make(folder, [{"a": n % 9} for n in range(80)], "a", "btree", maker)
        more = pa.table({"id": [100], "j": pa.array(['{"a": 3}'], pa.json_())})
        pennon.write_dataset(more, folder, mode="append")
        table = pennon.dataset(folder)
        table.delete("id = 3")
        table.optimize.optimize_indices()
        table.optimize.compact_files()
        statistics = table.index_statistics("x")
        assert (statistics["index_type"], statistics["num_unindexed_rows"]) == ("BTree", 0)
        assert statistics["indices"] == [{"min": "0", "max": "8", "num_pages": 1}]
        assert "@x(" in plan(folder, condition)
        assert rows(folder, condition) == [12, 21, 30, 39, 48, 57, 66, 75, 100]
        assert lance.dataset(folder).count_rows(condition) == 9
        (described,) = table.describe_indices()
        assert (described.index_type, described.details["path"]) == ("Json", "a")


def test_json_indices_on_two_paths_of_a_column(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    make(folder, [{"a": n, "b": str(n)} for n in range(20)], "a", "btree", pennon)
    table = pennon.dataset(folder)
    for _ in range(2):
        config = pennon.indices.IndexConfig("json", {"path": "b", "target_index_type": "bitmap"})
        table.create_scalar_index("j", config)
    table.create_scalar_index(
        "j", pennon.indices.IndexConfig("json", {"path": "a", "target_index_type": "zonemap"})
    )
    names = {each.name: each.details["path"] for each in table.describe_indices()}
    assert names == {"x": "a", "j_idx": "b", "j_idx_2": "a"}
    assert "@j_idx(Bitmap)" in plan(folder, "json_get_string(j, 'b') = '7'")


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"path": "a"}, "target_index_type"),
        ({"target_index_type": "btree"}, "path"),
        ({"path": "a", "target_index_type": "btree", "zone": 1}, "zone"),
        ({"path": "a", "target_index_type": "inverted"}, "INVERTED"),
        ({"path": "$$", "target_index_type": "btree"}, "no JSON path"),
        ({"path": "a", "target_index_type": "btree", "target_index_parameters": "{"}, "Expecting"),
        (
            {
                "path": "a",
                "target_index_type": "btree",
                "target_index_parameters": '{"rows": 1}',
            },
            "no rows",
        ),
    ],
    ids=str,
)
def test_json_index_with_wrong_parameters_is_refused(
    tmp_path: Path, chosen: dict[str, str], message: str
) -> None:
    table = pennon.write_dataset(
        pa.table({"j": pa.array(['{"a": 1}'], pa.json_()), "s": ["{}"]}), str(tmp_path / "t.lance")
    )
    with pytest.raises(pennon.errors.ArgumentError, match=message):
        table.create_scalar_index("j", pennon.indices.IndexConfig("json", chosen))
    config = pennon.indices.IndexConfig("json", {"path": "a", "target_index_type": "btree"})
    with pytest.raises(TypeError, match="made of a JSON column, and s is string"):
        table.create_scalar_index("s", config)


def test_json_index_with_target_index_parameters(tmp_path: Path) -> None:
    folder = str(tmp_path / "t.lance")
    sizes = '{"zone_size": 10}'
    make(
        folder,
        [{"a": n} for n in range(30)],
        "a",
        "btree",
        pennon,
        target_index_parameters=sizes,
    )
    table = pennon.dataset(folder)
    assert table.index_statistics("x")["indices"][0]["num_pages"] == 3
    assert rows(folder, "json_get_int(j, 'a') = 29") == [29]


def test_json_bloom_filter_is_unused_for_functions_of_other_types(tmp_path: Path) -> None:
    """So it is not asked: the oracle misses the rows where the function has another type."""
    folder, condition = str(tmp_path / "t.lance"), "json_get_float(j, 'a') = 3.0"
    make(folder, [{"a": n % 9} for n in range(80)], "a", "bloomfilter")
    assert len(rows(folder, condition)) == 9
    assert lance.dataset(folder).count_rows(condition) == 0


def test_json_index_plan_shows_the_path(tmp_path: Path) -> None:
    folder, condition = str(tmp_path / "t.lance"), "json_get_int(j, 'a') = 3"
    make(folder, [{"a": n % 9} for n in range(80)], "a", "btree")
    shown = "ScalarIndexQuery: query=[Json(j = 3->a)]@x(BTree)"
    assert shown in plan(folder, condition)
    assert shown in lance.dataset(folder).scanner(filter=condition).explain_plan()
    assert len(rows(folder, condition)) == 9


def test_json_index_is_unused_for_other_conditions(tmp_path: Path) -> None:
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


def test_json_index_with_unreadable_details_has_no_target_path(tmp_path: Path) -> None:
    folder, condition = str(tmp_path / "t.lance"), "json_get_int(j, 'a') = 3"
    make(folder, [{"a": n % 9} for n in range(80)], "a", "btree")
    (index,) = parse_indices(pennon.dataset(folder).snapshot.manifest.indices)
    assert index.details is not None
    for details in (b"", b"\x0a\xff", b"\x08\x01\x10\x02", index.details[1][:-9]):
        bad = replace(index, details=(index.details[0], details))
        assert json_target(bad) == ("", bad)
    blank = replace(index, details=None)
    assert json_target(blank) == (None, blank)
    assert rows(folder, condition)
