"""Compactions that leave the indices as they were: rows are found where they are now."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.indices import IndexConfig

import pennon
from tests.interop.indexed_tables import Tables, differences
from tests.interop.test_indexed_tables import described, listed

INDICES = {
    "i": IndexConfig("btree", {"zone_size": 7}),
    "s": "BITMAP",
    "l": "LABEL_LIST",
    "t": "NGRAM",
    "f": IndexConfig("zonemap", {"rows_per_zone": 9}),
    "d": IndexConfig("bloomfilter", {"number_of_items": 12}),
}
ASKED = {
    "i = 5": "i_idx",
    "s = 'apple'": "s_idx",
    "array_has(l, 'a')": "l_idx",
    "NOT array_has(l, 'a')": "l_idx",
    "contains(t, 'banana')": "t_idx",
    "f > 1.0": "f_idx",
    "d = date '2019-05-01'": "d_idx",
    "i IS NULL": "i_idx",
}


def indexed(folder: str, tables: Tables) -> None:
    made = lance.write_dataset(tables.rows(150), folder, max_rows_per_file=50)
    for column, kind in INDICES.items():
        made.create_scalar_index(column, kind)  # type: ignore[arg-type]


def put_off(folder: str, **options: int) -> None:
    lance.dataset(folder).optimize.compact_files(defer_index_remap=True, **options)  # type: ignore[arg-type]


def check(folder: str, tables: Tables, conditions: int = 12) -> None:
    """Check that indices change no answer, that they are asked, and what is said of them."""
    assert not differences(folder, tables, conditions)
    ours = pennon.dataset(folder)
    for condition, name in ASKED.items():
        plain = ours.to_table(["id"], condition, use_scalar_index=False)
        assert ours.to_table(["id"], condition).equals(plain), condition
        assert ours.count_rows(condition) == plain.num_rows, condition
        assert f"@{name}(" in ours.scanner(filter=condition).explain_plan()
    theirs = lance.dataset(folder)
    assert described(ours) == described(theirs)
    assert listed(ours) == listed(theirs)


def test_index_after_repeated_deferred_compactions_and_appends(tmp_path: Path) -> None:
    tables, folder = Tables(31), str(tmp_path / "t.lance")
    indexed(folder, tables)
    lance.dataset(folder).delete("id % 7 = 3")
    put_off(folder, target_rows_per_fragment=70)
    check(folder, tables)
    lance.dataset(folder).delete("id % 5 = 1")
    put_off(folder, target_rows_per_fragment=1000)
    check(folder, tables)
    lance.write_dataset(tables.rows(40), folder, mode="append")
    check(folder, tables)
    lance.dataset(folder).update({"i": "i + 1"}, where="id % 11 = 2")
    lance.dataset(folder).delete("id % 13 = 5")
    check(folder, tables)
    lance.dataset(folder).optimize.optimize_indices()
    put_off(folder)
    check(folder, tables)


def test_index_after_deferred_compaction_reads_only_matching_rows(tmp_path: Path) -> None:
    """A wrong map would be hidden if the table were scanned."""
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(1000), pa.int64()), "v": ["v" * 50] * 1000})
    made = lance.write_dataset(data, folder, max_rows_per_file=100)
    made.create_scalar_index("k", "BTREE")
    lance.dataset(folder).delete("k % 10 = 3")
    put_off(folder, target_rows_per_fragment=450)
    table = pennon.dataset(folder)
    assert len(table.get_fragments()) == 2
    plan = table.scanner(filter="k IN (0, 99, 100, 499, 500, 999, 13)").analyze_plan()
    assert "rows=6 of 900," in plan
    found = table.to_table(["k"], "k IN (0, 99, 100, 499, 500, 999, 13)")["k"].to_pylist()
    assert found == [0, 99, 100, 499, 500, 999]


@pytest.mark.parametrize("seed", range(2))
def test_index_after_deferred_compactions_in_random_histories(tmp_path: Path, seed: int) -> None:
    tables, folder = Tables(500 + seed), str(tmp_path / "t.lance")
    indexed(folder, tables)
    rng = random.Random(seed)
    steps: list[Callable[[], object]] = [
        lambda: lance.write_dataset(tables.rows(rng.randrange(10, 60)), folder, mode="append"),
        lambda: lance.dataset(folder).delete(f"id % 9 = {rng.randrange(9)}"),
        lambda: lance.dataset(folder).delete(f"id % 4 = {rng.randrange(4)}"),
        lambda: lance.dataset(folder).update({"s": "'new'"}, where="id % 8 = 2"),
        lambda: lance.dataset(folder).optimize.optimize_indices(num_indices_to_merge=1),
        lambda: lance.dataset(folder).optimize.optimize_indices(num_indices_to_merge=0),
        *[lambda: put_off(folder, target_rows_per_fragment=rng.randrange(30, 300))] * 4,
        lambda: pennon.dataset(folder).delete(f"id % 6 = {rng.randrange(6)}"),
        lambda: pennon.dataset(folder).optimize.compact_files(target_rows_per_fragment=80),
        lambda: pennon.dataset(folder).update({"i": "i - 1"}, where="id % 10 = 7"),
    ]
    rng.shuffle(steps)
    for step in steps:
        step()
        assert not differences(folder, tables, 6)


def test_index_after_deferred_then_plain_compaction_finds_all_rows(tmp_path: Path) -> None:
    """pylance forgets, when it rewrites a fragment, where a BTREE and an NGRAM say that its rows are."""
    folder = str(tmp_path / "t.lance")
    data = pa.table(
        {"k": pa.array(range(40), pa.int64()), "t": [f"word{n % 9}" for n in range(40)]}
    )
    made = lance.write_dataset(data, folder, max_rows_per_file=10)
    made.create_scalar_index("k", "BTREE")
    made.create_scalar_index("t", "NGRAM")
    put_off(folder)
    lance.dataset(folder).delete("k % 8 = 3")
    lance.dataset(folder).optimize.compact_files()
    ours, theirs = pennon.dataset(folder), lance.dataset(folder)
    expected_rows = {"k < 5": [0, 1, 2, 4], "contains(t, 'word1')": [1, 10, 28, 37]}
    for condition, expected in expected_rows.items():
        assert ours.to_table(["k"], condition)["k"].to_pylist() == expected
        assert ours.count_rows(condition) == len(expected)
        assert theirs.to_table(["k"], filter=condition)["k"].to_pylist() == []
    assert ours.count_rows("k = 1000") == 0


def test_fragment_reuse_details_in_an_external_file(tmp_path: Path) -> None:
    """From about 200 KB on the versions are not among the details of the entry."""
    folder = str(tmp_path / "t.lance")
    data = pa.table({"k": pa.array(range(2_000_000), pa.int64())})
    made = lance.write_dataset(data, folder, max_rows_per_file=1_000_000)
    made.create_scalar_index("k", "BTREE")
    lance.dataset(folder).delete("k % 3 = 1")
    put_off(folder)
    (found,) = Path(folder).glob("_indices/*/details.binpb")
    assert found.stat().st_size > 200_000
    table = pennon.dataset(folder)
    for condition in ("k = 5", "k BETWEEN 999900 AND 1000100", "k > 1999950"):
        plain = table.to_table(filter=condition, use_scalar_index=False)
        assert table.to_table(filter=condition).equals(plain)
        assert table.count_rows(condition) == plain.num_rows
    assert described(table) == described(lance.dataset(folder))
    whole = found.read_bytes()
    for damaged in (whole[:-1000], whole[:100_000] + bytes(1000) + whole[101_000:], None):
        found.unlink()  # a reader may still map the old file
        if damaged is not None:
            found.write_bytes(damaged)
        again = pennon.dataset(folder)
        assert again.count_rows("k < 10") == 7
        assert again.to_table(filter="k > 1999990").num_rows == 6
        assert {each.name for each in again.describe_indices()} == {"k_idx", "__lance_frag_reuse"}
        if damaged is not None:
            continue
        (why,) = (each.details["not_asked"] for each in again.describe_indices() if each.details)
        assert "details.binpb" in why


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"])
def test_index_segments_with_updated_rows_answer_by_new_values(tmp_path: Path, kind: str) -> None:
    """Stable row ids; pylance answers by the old values of a BITMAP, too."""
    folder = str(tmp_path / "t.lance")

    def rows(values: list[int | None], keys: list[int]) -> pa.Table:
        return pa.table({"c": pa.array(values, pa.int64()), "k": pa.array(keys, pa.int64())})

    lance.write_dataset(
        rows([None, 1, None, 3, 4], [0, 1, 2, 3, 4]), folder, enable_stable_row_ids=True
    )
    lance.dataset(folder).create_scalar_index("c", kind)  # type: ignore[arg-type]
    lance.write_dataset(rows([5, None], [9, 10]), folder, mode="append")
    lance.dataset(folder).optimize.optimize_indices()
    merge = lance.dataset(folder).merge_insert("k").when_matched_update_all()
    merge.when_not_matched_insert_all().execute(rows([6, 7, 8, 9, 10, None], [10, 0, 2, 22, 1, 3]))
    lance.dataset(folder).optimize.optimize_indices(num_indices_to_merge=0)
    ours = pennon.dataset(folder)
    ours.validate()
    wanted = {
        "c = 1": [],
        "c = 10": [1],
        "c != 6": [0, 1, 2, 4, 9, 22],
        "c IS NULL": [3],
        "c IS NOT NULL": [0, 1, 2, 4, 9, 10, 22],
        "NOT (c < 8)": [1, 2, 22],
        "c IN (1, 3, 7)": [0],
    }
    for condition, keys in wanted.items():
        assert sorted(ours.to_table(["k"], condition)["k"].to_pylist()) == keys, condition
        assert ours.count_rows(condition) == len(keys), condition


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_list_index_leaves_fragments_with_items_written_anew(tmp_path: Path, stable: bool) -> None:
    """pylance goes on to answer by the old lists: ledger F-725."""
    rows = pa.table({"id": [1, 2, 3, 4], "l": [["a"], ["b"], ["c"], ["d"]], "x": [1, 2, 3, 4]})
    table = pennon.write_dataset(
        rows, tmp_path / "t", max_rows_per_file=2, enable_stable_row_ids=stable
    )
    table.create_scalar_index("l", "LABEL_LIST")
    table.create_scalar_index("x", "BTREE")
    new = pa.table({"id": [1, 2], "l": [["b"], ["a"]]})
    changed, fields = table.get_fragments()[0].update_columns(new.to_reader(), "id", "id")[:2]
    update = pennon.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    pennon.LanceDataset.commit(table.uri, update, read_version=table.version)
    for optimize in (False, True):
        if optimize:
            pennon.dataset(table.uri).optimize.optimize_indices(num_indices_to_merge=0)
        for library in (pennon, lance):
            found = library.dataset(table.uri)
            assert found.to_table(filter="array_has(l, 'a')")["id"].to_pylist() == [2]
            assert found.to_table(filter="array_has(l, 'c')")["id"].to_pylist() == [3]
            assert found.to_table(filter="x = 2")["id"].to_pylist() == [2]
    described = {each.name: each for each in pennon.dataset(table.uri).describe_indices()}
    assert len(described["x_idx"].segments) == 1, "an index beside it is left alone"
