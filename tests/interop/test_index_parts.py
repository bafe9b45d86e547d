"""Parts of a full-text index in one folder: made by Pennon or pylance, merged by either, found by both."""

from __future__ import annotations

import random
import uuid
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
import pennon.errors
from tests.interop.test_text_build import answers
from tests.interop.test_text_search import WORDS, is_close

ROWS = 400
FRAGMENTS = 4
QUERIES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("MatchQuery", ("fox", "s"), {}),
    ("MatchQuery", ("only7 fox", "s"), {"operator": "AND"}),
    ("MatchQuery", ("only70", "s"), {"fuzziness": 1}),
    ("PhraseQuery", ("quick fox", "s"), {}),
]


def written(folder: str, **options: Any) -> pennon.LanceDataset:
    """Return a table of texts, in fragments; one of these has no word."""
    rng = random.Random(5)
    texts: list[str | None] = [
        " ".join([*rng.choices(WORDS[:8], k=rng.randrange(1, 9)), f"only{row}"])
        for row in range(ROWS)
    ]
    rows = ROWS // FRAGMENTS
    texts[2 * rows : 3 * rows] = [None] * rows
    table = pa.table({"id": pa.array(range(ROWS)), "s": pa.array(texts, pa.string())})
    return pennon.write_dataset(table, folder, max_rows_per_file=rows, **options)


def committed(folder: str, index_uuid: str, fragment_ids: set[int]) -> None:
    """Commit an index as users of pylance do: without files, details or the version of its format."""
    dataset = pennon.dataset(folder)
    index = pennon.Index(
        uuid=index_uuid,
        name="s_parts",
        fields=[1],
        dataset_version=dataset.version,
        fragment_ids=fragment_ids,
        index_version=0,
    )
    made = pennon.LanceOperation.CreateIndex(new_indices=[index], removed_indices=[])
    pennon.LanceDataset.commit(folder, made, read_version=dataset.version)


def places(folder: str, index_uuid: str) -> set[str]:
    """Return the files of an index."""
    root = Path(folder, "_indices", index_uuid)
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def make_part(module: Any, folder: str, index_uuid: str, fragments: list[int], **more: Any) -> None:
    """Make a part."""
    settings = {"with_position": True, "stem": False, "remove_stop_words": False} | more
    module.dataset(folder).create_scalar_index(
        "s", "INVERTED", name="s_parts", fragment_ids=fragments, index_uuid=index_uuid, **settings
    )


def in_one_piece(folder: str, **options: Any) -> list[Any]:
    """Return what is found with an index that was made at once."""
    dataset = written(folder, **options)
    dataset.create_scalar_index(
        "s", "INVERTED", with_position=True, stem=False, remove_stop_words=False
    )
    return [answers(folder, query, None)[1] for query in QUERIES]


@pytest.mark.parametrize("merger", [pennon, lance], ids=["ours", "theirs"])
@pytest.mark.parametrize(
    "makers", [[pennon], [lance], [pennon, lance]], ids=["ours", "theirs", "in turns"]
)
def test_index_parts_are_merged_by_both(tmp_path: Path, makers: list[Any], merger: Any) -> None:
    known = in_one_piece(str(tmp_path / "whole.lance"))
    folder, name = str(tmp_path / "parts.lance"), str(uuid.uuid4())
    written(folder)
    for number, fragments in enumerate(([0], [1, 2], [3])):
        make_part(makers[number % len(makers)], folder, name, fragments)
    assert all(place.startswith("staging/part_") for place in places(folder, name))
    merger.dataset(folder).merge_index_metadata(name, "INVERTED")
    whole = {"metadata.lance", "part_0_docs.lance", "part_0_invert.lance", "part_0_tokens.lance"}
    assert places(folder, name) == whole
    merger.dataset(folder).merge_index_metadata(name, "INVERTED")
    assert places(folder, name) == whole
    assert pennon.dataset(folder).describe_indices() == []
    committed(folder, name, set(range(FRAGMENTS)))
    for query, expected in zip(QUERIES, known, strict=True):
        for found in answers(folder, query, None):
            assert found.keys() == expected.keys()
            assert all(is_close(found[each], expected[each]) for each in found)


def test_index_of_parts_after_append_and_compaction(tmp_path: Path) -> None:
    folder, name = str(tmp_path / "t.lance"), str(uuid.uuid4())
    dataset = written(folder)
    for number in range(FRAGMENTS - 1):
        make_part(pennon, folder, name, [number])
    dataset.merge_index_metadata(name, "INVERTED")
    committed(folder, name, set(range(FRAGMENTS - 1)))
    dataset = pennon.dataset(folder)
    assert dataset.index_statistics("s_parts")["num_unindexed_rows"] == ROWS // FRAGMENTS
    dataset.optimize.optimize_indices()
    dataset.delete("id = 0")
    dataset.optimize.compact_files()
    statistics = dataset.index_statistics("s_parts")
    assert (statistics["num_indexed_rows"], statistics["index_type"]) == (ROWS - 1, "Inverted")
    for found in answers(folder, ("MatchQuery", ("only7 only350", "s"), {}), None):
        assert set(found) == {7, 350}


def test_index_parts_with_stable_row_ids(tmp_path: Path) -> None:
    folder, name = str(tmp_path / "t.lance"), str(uuid.uuid4())
    dataset = written(folder, enable_stable_row_ids=True)
    dataset.delete("id < 10")
    dataset.optimize.compact_files()
    for fragment in pennon.dataset(folder).get_fragments():
        make_part(pennon, folder, name, [fragment.fragment_id])
    dataset.merge_index_metadata(name, "INVERTED")
    committed(folder, name, {each.fragment_id for each in pennon.dataset(folder).get_fragments()})
    for found in answers(folder, ("MatchQuery", ("only17 only350", "s"), {}), None):
        assert set(found) == {17, 350}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("column", ["id", "st.x"])
def test_btree_parts_are_merged_committed_and_read_by_pylance(
    tmp_path: Path, column: str, stable: bool
) -> None:
    folder, name = str(tmp_path / "t.lance"), str(uuid.uuid4())
    rows = pa.table({"id": range(900), "st": [{"x": n if n % 10 else None} for n in range(900)]})
    dataset = pennon.write_dataset(
        rows, folder, max_rows_per_file=300, enable_stable_row_ids=stable
    )
    dataset.delete("id % 100 = 5")
    with pytest.raises(pennon.errors.NotFoundError, match="no parts of an index"):
        dataset.merge_index_metadata(name, "BTREE")
    for fragment in dataset.get_fragments():
        part = [fragment.fragment_id]
        dataset.create_scalar_index(
            column, "BTREE", name="parts", replace=False, fragment_ids=part, index_uuid=name
        )
    dataset.merge_index_metadata(name, "BTREE")
    dataset.merge_index_metadata(name, "BTREE")
    files = {path.name for path in (Path(folder) / "_indices" / name).rglob("*") if path.is_file()}
    assert files == {"page_data.lance", "page_lookup.lance"}
    field = dataset.lance_schema.field(column).id()
    entry = pennon.Index(name, "parts", [field], dataset.version, {0, 1, 2}, 0)
    made = pennon.LanceOperation.CreateIndex(new_indices=[entry], removed_indices=[])
    pennon.LanceDataset.commit(folder, made, read_version=dataset.version)
    for condition in (f"{column} IN (7, 305, 899)", f"{column} < 20", f"{column} IS NULL"):
        expected = dataset.to_table(["id"], condition, use_scalar_index=False)
        for module in (pennon, lance):
            table: Any = module.dataset(folder)
            assert "parts" in table.scanner(filter=condition).explain_plan()
            assert table.to_table(columns=["id"], filter=condition) == expected


def test_index_parts_with_wrong_arguments_are_refused(tmp_path: Path) -> None:
    folder, name = str(tmp_path / "t.lance"), str(uuid.uuid4())
    dataset = written(folder)
    for module in (pennon, lance):
        table: Any = module.dataset(folder)
        with pytest.raises(ValueError, match="BITMAP distributed indexing uses create_index_unc"):
            table.create_scalar_index("id", "BITMAP", fragment_ids=[0], index_uuid=name)
        with pytest.raises(ValueError, match="Vector distributed indexing no longer supports"):
            table.merge_index_metadata(name, "IVF_PQ")
        with pytest.raises(NotImplementedError, match="supported, received BITMAP"):
            table.merge_index_metadata(name, "BITMAP")
        with pytest.raises(ValueError, match="Invalid UUID string for index_uuid"):
            table.merge_index_metadata("nope", "INVERTED")
        with pytest.raises(ValueError, match=r"(?i)no part"):
            table.merge_index_metadata(name, "INVERTED")
        with pytest.raises(ValueError, match="fragment"):
            table.create_scalar_index("s", "INVERTED", fragment_ids=[77])
    with pytest.raises(pennon.errors.ArgumentError, match="no fragment"):
        dataset.create_scalar_index("s", "INVERTED", fragment_ids=[])
    make_part(pennon, folder, name, [0])
    make_part(pennon, folder, name, [1], stem=True)
    staged = places(folder, name)
    with pytest.raises(pennon.errors.ArgumentError, match="made with different settings"):
        dataset.merge_index_metadata(name, "INVERTED")
    assert places(folder, name) == staged
    make_part(pennon, folder, name, [1])
    dataset.merge_index_metadata(name, "INVERTED")
    make_part(pennon, folder, name, [3])
    with pytest.raises(pennon.errors.ArgumentError, match="parts beside it"):
        dataset.merge_index_metadata(name, "INVERTED")
    assert "metadata.lance" in places(folder, name)


def test_index_folder_with_a_given_uuid(tmp_path: Path) -> None:
    folder, names = str(tmp_path / "t.lance"), [str(uuid.uuid4()) for _ in range(3)]
    dataset = written(folder)
    dataset.create_scalar_index("id", "BTREE", index_uuid=names[0])
    segment = dataset.create_index_uncommitted(
        "id", "BITMAP", "second", fragment_ids=[1], index_uuid=names[1]
    )
    dataset.commit_existing_index_segments("second", "id", [segment])
    found = {each.name: each.segments[0].uuid for each in dataset.describe_indices()}
    assert found == {"id_idx": names[0], "second": names[1]}
    with pytest.raises(pennon.errors.ArgumentError, match="has an index in"):
        dataset.create_scalar_index("s", "INVERTED", index_uuid=names[0])
    assert lance.dataset(folder).count_rows("id = 7") == 1
