"""Row masks, index segments, SQL, base paths of merges, moved addresses and graphs, beside pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.dataset
import lance.file
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset import serialize_row_addrs
from pennon.util import HNSW

THEIRS: Any = __import__("sys").modules["lance.dataset"]
"""The module: pylance has a function of that name in its place."""
RNG = np.random.default_rng(4)


def rows(start: int, count: int) -> pa.Table:
    vectors = RNG.normal(size=(count, 8)).astype(np.float32)
    return pa.table(
        {
            "id": range(start, start + count),
            "name": [None if n % 5 == 0 else f"n{n % 7}" for n in range(count)],
            "x": [float("nan") if n % 11 == 0 else n / 3 for n in range(count)],
            "vec": pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8),
        }
    )


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of three fragments; an index of two segments covers the first two."""
    place = str(tmp_path_factory.mktemp("masks") / "t.lance")
    table = lance.write_dataset(rows(0, 300), place)
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    table = lance.write_dataset(rows(300, 300), place, mode="append")
    table.optimize.optimize_indices(num_indices_to_merge=0)
    lance.write_dataset(rows(600, 300), place, mode="append")
    return place


def found(lib: Any, uri: str, **options: Any) -> Any:
    table = lib.dataset(uri).scanner(["id"], with_row_address=True, **options).to_table()
    return table.select(["id", "_rowaddr"]).to_pydict()


MASKS: list[dict[str, list[int]]] = [
    {"row_addr_allowlist": [3, 1, 2**32 + 5]},
    {"row_addr_blocklist": list(range(890))},
    {"row_addr_allowlist": list(range(0, 300, 7)), "row_addr_blocklist": list(range(100))},
    {"row_addr_allowlist": []},
]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("more", [{}, {"filter": "id % 2 = 1"}, {"nearest": True}])
def test_row_masks_leave_the_rows_of_pylance(
    uri: str, mask: dict[str, list[int]], more: dict[str, Any]
) -> None:
    theirs = {name: THEIRS.serialize_row_addrs(numbers) for name, numbers in mask.items()}
    ours = {name: serialize_row_addrs(numbers) for name, numbers in mask.items()}
    if "nearest" in more:
        more = {"nearest": {"column": "vec", "q": [0.0] * 8, "k": 30, "nprobes": 2}}
    expected = found(lance, uri, **theirs, **more)
    assert found(pennon, uri, **ours, **more) == found(pennon, uri, **theirs, **more) == expected
    assert found(lance, uri, **ours, **more) == expected


def test_search_of_some_segments_finds_the_rows_of_pylance(uri: str) -> None:
    segments = [each["uuid"] for each in lance.dataset(uri).list_indices()]
    near = {"column": "vec", "q": [0.0] * 8, "k": 50, "nprobes": 2}
    for chosen in (segments[:1], segments[1:], segments):
        options = {"nearest": near, "index_segments": chosen}
        assert found(pennon, uri, **options) == found(lance, uri, **options)
    for lib in (lance, pennon):
        with pytest.raises(ValueError, match="00000000-0000-4000-8000-000000000000"):
            found(lib, uri, nearest=near, index_segments=["00000000-0000-4000-8000-000000000000"])


SQL = [
    "SELECT * FROM dataset WHERE id > 590 AND id < 610",
    "SELECT count(*), sum(id), avg(x) FROM dataset WHERE x = x AND x < 50",
    "SELECT name, count(*) AS n FROM dataset GROUP BY name ORDER BY name NULLS FIRST",
    "SELECT id FROM dataset WHERE x > 90 ORDER BY id",
    "SELECT id FROM dataset WHERE name NOT IN ('n1', 'n2', 'n3', 'n4', 'n5') ORDER BY id LIMIT 9",
    "SELECT a.id FROM dataset a JOIN dataset b ON a.id = b.id + 899 ORDER BY 1",
    "SELECT id / 2 AS half, vec[1] FROM dataset WHERE id IN (1, 2, 3) ORDER BY id",
    "WITH q AS (SELECT max(id) AS m FROM dataset) SELECT m + 1 FROM q",
    "SELECT Id FROM DATASET WHERE upper(name) = 'N3' AND id < 20",
]


@pytest.mark.parametrize("text", SQL)
def test_sql_answers_and_types_are_those_of_pylance(uri: str, text: str) -> None:
    ours, theirs = (
        lib.dataset(uri).sql(text).build().to_stream_reader().read_all() for lib in (pennon, lance)
    )
    assert ours.schema == theirs.schema
    assert str(ours.to_pydict()) == str(theirs.to_pydict())


@pytest.mark.parametrize("text", ["SELECT nope FROM dataset", "SELECT * FROM other", "SELEC 1"])
def test_sql_that_pylance_refuses_is_refused(uri: str, text: str) -> None:
    for lib in (lance, pennon):
        with pytest.raises(ValueError, match=r"nope|other|SELEC|selec"):
            lib.dataset(uri).sql(text).build().to_batch_records()


def test_merges_into_base_paths_are_read_both_ways(tmp_path: Path) -> None:
    for writer, reader in ((pennon, lance), (lance, pennon)):
        place = tmp_path / writer.__name__
        bases = [writer.DatasetBasePath(str(place / name), name) for name in ("one", "two")]
        table = writer.write_dataset(
            pa.table({"id": range(5), "v": [0] * 5}), str(place / "t"), initial_bases=bases
        )
        for number, targets in enumerate((["one"], [table.uri, "two"], [str(place / "two")])):
            merge = table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().target_bases(targets).execute(
                pa.table({"id": [number, 100 + number], "v": [9, 9]})
            )
        merge = table.merge_insert("id").when_not_matched_insert_all()
        merge.target_all_bases(include_primary=False).execute(pa.table({"id": [500], "v": [9]}))
        table = writer.dataset(str(place / "t"))
        files = [file for fragment in table.get_fragments() for file in fragment.data_files()]
        assert [file.base_id for file in files] == [None, 1, None, 2, 1]
        assert reader.dataset(str(place / "t")).to_table() == table.to_table()


def test_addresses_after_deferred_compactions_are_those_of_pylance(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    table = lance.write_dataset(pa.table({"id": range(100)}), place, max_rows_per_file=10)
    table.create_scalar_index("id", "BTREE")
    table.delete("id % 3 = 0")
    table.optimize.compact_files(defer_index_remap=True)
    addresses = pa.array([n // 10 << 32 | n % 10 for n in range(100)] + [7 << 40], pa.uint64())
    ours = pennon.dataset(place).remap_row_addrs(addresses)
    assert ours == lance.dataset(place).remap_row_addrs(addresses)
    assert pennon.dataset(place, version=1).remap_row_addrs(addresses) is None


def test_graph_file_is_read_by_pylance_and_links_near_vectors(tmp_path: Path) -> None:
    vectors = RNG.normal(size=(200, 8)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(vectors.ravel(), 8)
    path = str(tmp_path / "graph.lance")
    HNSW.build(iter([lists[:50], lists[50:]]), m=4, ef_construction=20).to_lance_file(path)
    read = lance.file.LanceFileReader(path).read_all().to_table()
    assert read.schema.names == ["__vector_id", "__neighbors", "_distance"]
    for node, near, far in zip(
        *(read[name].to_pylist() for name in read.schema.names), strict=True
    ):
        squares = np.square(vectors[near] - vectors[node]).sum(axis=1)
        np.testing.assert_allclose(squares, far, rtol=1e-5)
    assert set(read["__vector_id"].to_pylist()) == set(range(200))


def test_manifest_sent_to_another_handle_opens_its_version(tmp_path: Path) -> None:
    for lib in (lance, pennon):
        place = str(tmp_path / lib.__name__)
        table = lib.write_dataset(pa.table({"id": [1, 2]}), place)
        manifest = table._ds.serialized_manifest()
        lib.write_dataset(pa.table({"id": [3]}), place, mode="append")
        sent = lib.LanceDataset(place, version=1, serialized_manifest=manifest)
        assert (sent.version, sent.count_rows()) == (1, 2)
