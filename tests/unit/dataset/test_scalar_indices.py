"""Scalar indices through a dataset's handle: made, named, replaced, made in parts, brought up to date."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, UnsupportedError
from pennon.indices import IndexConfig

ROWS = 100


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return a table of four fragments."""
    uri = str(tmp_path / "t.lance")
    table = pa.table(
        {
            "i": pa.array(range(ROWS), pa.int64()),
            "s": pa.array([f"word {n % 7}" for n in range(ROWS)]),
            "l": pa.array([[f"l{n % 3}"] for n in range(ROWS)]),
            "st": pa.array([{"x": n % 5} for n in range(ROWS)]),
        }
    )
    pennon.write_dataset(table, uri, max_rows_per_file=25)
    return uri


def plan(table: pennon.LanceDataset, condition: str) -> str:
    return table.scanner(filter=condition).explain_plan()


def covered(table: pennon.LanceDataset) -> dict[str, list[set[int]]]:
    return {
        index.name: [segment.fragment_ids for segment in index.segments]
        for index in table.describe_indices()
    }


def test_scalar_index_names_and_replacement(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("i", "BITMAP")
    table.create_scalar_index("i", "BTREE")
    table.create_scalar_index("s", "BTREE", "words")
    assert set(covered(table)) == {"i_idx", "i_idx_2", "words"}
    with pytest.raises(RuntimeError, match="'words' already exists, please"):
        table.create_scalar_index("s", "BITMAP", "words", replace=False)
    with pytest.raises(RuntimeError, match="'words' already exists with different fields"):
        table.create_scalar_index("i", "BITMAP", "words")
    table.create_scalar_index("s", "BITMAP", "words")
    assert {i.name: i.index_type for i in table.describe_indices()}["words"] == "Bitmap"


@pytest.mark.parametrize(
    ("column", "kind", "error", "message"),
    [
        ("nope", "BTREE", KeyError, "nope not found in schema"),
        ("l", "BTREE", TypeError, "BTREE index column l must be int, float"),
        ("st", "BITMAP", TypeError, "BITMAP index column st must be"),
        ("i", "NGRAM", TypeError, "NGRAM index column i must be a string"),
        ("i", "LABEL_LIST", TypeError, "LABEL_LIST index column i must be a list"),
        ("i", "INVERTED", TypeError, "INVERTED index column i must be string, large string or"),
        ("i", "IVF_PQ", UnsupportedError, "no index of kind 'IVF_PQ'"),
        ("s", IndexConfig("fts", {"stems": True}), ArgumentError, "unknown FTS index parameter"),
        ("i", IndexConfig("btree", {"zone": 3}), ArgumentError, "has zone_size, and no zone"),
        ("i", IndexConfig("btree", {"zone_size": 0}), ArgumentError, "zone_size .* positive"),
        ("i", IndexConfig("bloomfilter", {"probability": 1.0}), ArgumentError, "between 0 and 1"),
    ],
    ids=str,
)
def test_create_scalar_index_with_wrong_arguments_is_refused(
    uri: str, column: str, kind: Any, error: type[Exception], message: str
) -> None:
    table = pennon.dataset(uri)
    with pytest.raises(error, match=message):
        table.create_scalar_index(column, kind)
    assert table.version == table.latest_version == 1


def test_scalar_index_parameters_are_stored_and_retrained(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", IndexConfig("btree", {"zone_size": 10}), "b")
    table.create_scalar_index("i", IndexConfig("ZoneMap", {"rows_per_zone": 10}), "z")
    table.create_scalar_index("i", IndexConfig("bloomfilter", {"number_of_items": 5}), "f")
    assert table.index_statistics("b")["indices"] == [{"min": "0", "max": "99", "num_pages": 10}]
    assert table.index_statistics("z")["indices"] == [{"num_zones": 12, "rows_per_zone": 10}]
    table.optimize.optimize_indices(retrain=True)
    assert table.index_statistics("b")["indices"][0]["num_pages"] == 10
    assert table.index_statistics("f")["indices"][0] == {
        "type": "BloomFilter",
        "num_blocks": 20,
        "number_of_items": 5,
        "probability": 0.00057,
    }


def test_scalar_index_without_training_is_built_by_optimize(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", "BTREE", train=False)
    assert covered(table) == {"i_idx": [set()]}
    assert table.count_rows("i < 10") == 10
    table.optimize.optimize_indices()
    assert covered(table) == {"i_idx": [{0, 1, 2, 3}]}
    assert table.count_rows("i < 10") == 10


def test_scalar_index_built_in_parts_merges(uri: str) -> None:
    table = pennon.dataset(uri)
    parts = [
        table.create_index_uncommitted("i", "BTREE", "i_idx", fragment_ids=numbers)
        for numbers in ([0, 1], [2], [3])
    ]
    assert table.latest_version == 1
    assert [part.fragment_ids for part in parts] == [{0, 1}, {2}, {3}]
    merged = table.merge_existing_index_segments(parts[:2])
    assert merged.fragment_ids == {0, 1, 2}
    table.commit_existing_index_segments("i_idx", "i", [merged, parts[2]])
    assert covered(table) == {"i_idx": [{0, 1, 2}, {3}]}
    assert table.count_rows("i >= 40 AND i < 90") == 50
    with pytest.raises(ValueError, match="requires fragment_ids"):
        table.create_index_uncommitted("i", "BTREE")
    with pytest.raises(ArgumentError, match="no fragment 9"):
        table.create_index_uncommitted("i", "BTREE", fragment_ids=[9])
    with pytest.raises(ArgumentError, match="not of s"):
        table.commit_existing_index_segments("x", "s", [merged])


def test_unreadable_scalar_index_is_rebuilt_by_optimize(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", "BTREE")
    (folder,) = (Path(uri) / "_indices").iterdir()
    (folder / "page_data.lance").write_bytes(b"nothing")
    table.insert(table.to_table(limit=5))
    assert pennon.dataset(uri).count_rows("i < 5") == 10
    table = pennon.dataset(uri)
    table.optimize.optimize_indices()
    assert covered(table) == {"i_idx": [{0, 1, 2, 3, 4}]}
    assert table.index_statistics("i_idx")["indices"][0]["max"] == "99"
    assert table.count_rows("i < 5") == 10


def test_scalar_index_statistics(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("s", "BITMAP")
    table.delete("i < 5")
    table.insert(table.to_table(limit=3))
    found = table.index_statistics("s_idx")
    assert found["index_type"] == "Bitmap"
    assert found["indices"] == [{"num_bitmaps": 7}]
    assert (found["num_indexed_fragments"], found["num_unindexed_fragments"]) == (4, 1)
    assert (found["num_indexed_rows"], found["num_unindexed_rows"]) == (95, 3)
    with pytest.raises(KeyError, match='"nope" not found'):
        table.index_statistics("nope")
    with pytest.raises(RuntimeError, match='"nope" not found'):
        table.prewarm_index("nope")


def test_prewarmed_index_answers_without_its_files(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", "BTREE")
    table.prewarm_index("i_idx")
    (folder,) = (Path(uri) / "_indices").iterdir()
    for file in folder.iterdir():
        file.unlink()
    assert "@i_idx" in plan(table, "i = 3")
    assert table.count_rows("i = 3") == 1


@pytest.mark.parametrize(
    ("column", "kind", "condition", "shown"),
    [
        ("s", "NGRAM", "contains(s, 'ord 2')", '[contains(s, Utf8("ord 2"))]@s_idx(NGram)'),
        ("s", "BTREE", "s LIKE 'word 1%'", "[s LIKE 'word 1%']@s_idx(BTree)"),
        (
            "l",
            "LABEL_LIST",
            "array_has(l, 'l1')",
            "[array_has_any(l, List([l1]))]@l_idx(LabelList)",
        ),
        (
            "l",
            "LABEL_LIST",
            "array_has_all(l, ['l1', 'l2'])",
            "[array_has_all(l, List([l1,l2]))]@l_idx(LabelList)",
        ),
        ("i", "BTREE", "i = arrow_cast('7', 'Int64')", "[i = 7]@i_idx(BTree)"),
        ("st.x", "btree", "st.x = 3", "[st.x = 3]@st.x_idx(BTree)"),
        ("s", "BITMAP", "s = 'word 2'", "[s = word 2]@s_idx(Bitmap)"),
        ("i", "ZONEMAP", "i > 90", "[i > 90]@i_idx(ZoneMap)"),
        ("i", "BLOOMFILTER", "i = 7", "[i = 7]@i_idx(BloomFilter)"),
    ],
)
def test_plans_have_the_words_of_pylance(
    uri: str, column: str, kind: Any, condition: str, shown: str
) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index(column, kind)
    assert f"ScalarIndexQuery: query={shown}" in plan(table, condition)


def test_analyze_plan_shows_the_cost_of_an_index(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("i", "BTREE")
    (line,) = [
        line
        for line in table.scanner(filter="i < 3").analyze_plan().splitlines()
        if "ScalarIndexQuery" in line
    ]
    measured = dict(each.split("=") for each in line.split("metrics=[")[1].rstrip("]").split(", "))
    assert measured["indices_loaded"] == measured["parts_loaded"] == "1"
    assert measured["rows"] == "3"
    assert int(measured["rounds"]) > 0
    assert int(measured["bytes_read"]) > 0


def test_search_scan_stats_report_loaded_parts(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("s", "INVERTED")
    table.create_scalar_index("i", "BTREE")
    loaded: list[int] = []
    for is_warm in (False, True):
        table = pennon.dataset(uri)
        if is_warm:
            table.prewarm_index("s_idx")
        table.to_table(
            full_text_query="word",
            scan_stats_callback=lambda told: loaded.append(told.parts_loaded),
        )
    assert loaded[0] > 0 == loaded[1]
    scanner = table.scanner(full_text_query="word", filter="i < 3", prefilter=True)
    assert "rows=3, index_comparisons=3]" in scanner.analyze_plan()
    assert "ScalarIndexQuery: query=[i < 3]@i_idx(BTree)" in scanner.explain_plan()
    with pytest.raises(ValueError, match="Cannot include deleted rows"):
        table.to_table(full_text_query="word", with_row_id=True, include_deleted_rows=True)
    assert table.to_table(["_rowid", "_score"], full_text_query="word", limit=1).column_names == [
        "_rowid",
        "_score",
    ]


def test_phrase_query_uses_the_first_text_index(uri: str) -> None:
    table = pennon.dataset(uri)
    table.create_scalar_index("s", "INVERTED", "with_places", with_position=True)
    table.create_scalar_index("s", "INVERTED", "none")
    assert table.to_table(full_text_query='"word 3"').num_rows == 14


def test_index_of_unsupported_kind_is_kept_and_not_created(uri: str) -> None:
    other = pennon.Index(
        uuid="00112233-4455-6677-8899-aabbccddeeff",
        name="other",
        fields=[1],
        dataset_version=1,
        fragment_ids={0, 1, 2, 3},
        index_version=0,
        index_details=("/lance.index.pb.FMIndexDetails", b"123"),
    )
    made = pennon.LanceOperation.CreateIndex(new_indices=[other], removed_indices=[])
    table = pennon.LanceDataset.commit(uri, made, read_version=1)
    table.create_scalar_index("i", "BTREE")
    table.delete("i = 3")
    table.insert(table.to_table(limit=3))
    with pytest.warns(UserWarning, match="'other' is not asked: Pennon searches no index of FM"):
        names = {each["name"] for each in table.list_indices()}
    assert names == {"i_idx", "other"}
    assert table.count_rows("s = 'word 0'") == 16
    kinds: list[Any] = ["FM", "RTREE", "MINHASHLSH"]
    for kind in kinds:
        with pytest.raises(NotImplementedError, match="makes no index of kind"):
            table.create_scalar_index("s", kind)


@pytest.mark.parametrize("name", ["__lance_frag_reuse", "__lance_mem_wal", "__lance_other"])
def test_reserved_names_of_indices_are_refused(uri: str, name: str) -> None:
    table = pennon.dataset(uri)
    vectors = pa.table({"v": pa.array([[1.0, 2.0]] * ROWS, pa.list_(pa.float32(), 2))})
    table.merge(pa.table({"i": range(ROWS), "v": vectors["v"]}), "i")
    segment = table.create_index_uncommitted("i", "BTREE", "mine", fragment_ids=[0])
    calls: list[Any] = [
        lambda: table.create_scalar_index("i", "BTREE", name),
        lambda: table.create_scalar_index("i", "BTREE", name, train=False),
        lambda: table.create_index("v", "IVF_FLAT", name, num_partitions=1),
        lambda: table.create_index_uncommitted("i", "BTREE", name, fragment_ids=[0]),
        lambda: table.commit_existing_index_segments(name, "i", [segment]),
        lambda: pennon.LanceDataset.commit(
            uri,
            pennon.LanceOperation.CreateIndex([replace(segment, name=name)], []),
            read_version=table.version,
        ),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match=f"{name}.* is reserved"):
            call()
    assert pennon.dataset(uri).describe_indices() == []
    assert pennon.dataset(uri).version == table.version
