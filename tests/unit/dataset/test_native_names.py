"""Names of pylance's native handle, sets of fragment ids, graphs of vectors, partitions, merges into base paths."""

from __future__ import annotations

import pickle
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.bitmap import Bitmap
from pennon.errors import ArgumentError, FormatError, UnknownOptionError, UnsupportedError
from pennon.indices import IndicesBuilder, IvfModel
from pennon.util import HNSW
from pennon.vector import vec_to_table

ROWS = pa.table({"id": range(10)})


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    return pennon.write_dataset(ROWS, str(tmp_path / "t"), max_rows_per_file=4)


def test_native_handle_counts_and_reads(table: pennon.LanceDataset) -> None:
    table.delete("id = 2")
    native: Any = table._ds
    assert (native.version(), native.latest_version(), native.uri) == (2, 2, table.uri)
    assert (native.count_fragments(), native.count_deleted_rows()) == (3, 1)
    assert native.num_small_files(4) == 1
    assert native.fragment_ids() == {0, 1, 2}
    assert native.schema == ROWS.schema
    assert native.take([1, 2]).to_pydict() == {"id": [1, 3]}
    assert native.take_rows([2, 2**32]).to_pydict() == {"id": [4]}
    slices = native.take_scan([(0, 2), (4, 5)], ["id"])
    assert [batch.to_pydict() for batch in slices] == [{"id": [0, 1]}, {"id": [5]}]
    assert native.count_rows("id > 5") == 4
    assert native.current_version()["version"] == 2
    assert (native.tags(), native.branches(), native.base_paths()) == ({}, {}, {})
    assert "count_rows" in dir(native)
    with pytest.raises(AttributeError, match=r"'count_rwos'; did you mean 'count_rows'\?"):
        native.count_rwos  # noqa: B018


def test_index_cache_hit_rate_rises_with_equal_searches(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).normal(size=(600, 8))
    made = pennon.write_dataset(vec_to_table(vectors), str(tmp_path / "v"))
    made.create_index("vector", "IVF_PQ", num_partitions=4, num_sub_vectors=2)
    opened = pennon.dataset(made.uri)
    assert opened._ds.index_cache_hit_rate() == 0
    for _ in range(30):
        opened.to_table(nearest={"column": "vector", "q": vectors[0], "k": 2})
    assert opened._ds.index_cache_hit_rate() > 0.8
    assert opened._ds.index_cache_entry_count() > 0
    without = pennon.dataset(made.uri, index_cache_size_bytes=0)
    without.to_table(nearest={"column": "vector", "q": vectors[0], "k": 2})
    assert without._ds.index_cache_hit_rate() == 0


def test_serialized_manifest_opens_its_version(table: pennon.LanceDataset) -> None:
    data = table._ds.serialized_manifest()
    pennon.write_dataset(ROWS, table.uri, mode="append")
    sent = pennon.LanceDataset(table.uri, version=1, serialized_manifest=data)
    assert (sent.version, sent.count_rows()) == (1, 10)
    with pytest.raises(ArgumentError, match="is of version 1, and version 2"):
        pennon.LanceDataset(table.uri, version=2, serialized_manifest=data)
    with pytest.raises(FormatError):
        pennon.LanceDataset(table.uri, serialized_manifest=data[:-3])


def test_bitmap_is_an_ordered_set_of_fragment_ids(table: pennon.LanceDataset) -> None:
    ids = table.fragment_ids()
    assert ids == {0, 1, 2}
    assert isinstance(ids, (Bitmap, AbstractSet))
    assert repr(Bitmap(pa.array([9, 3, 9]))) == "Bitmap({3, 9})"
    assert list(Bitmap(np.array([70_000, 2]))) == [2, 70_000]
    assert pickle.loads(pickle.dumps(Bitmap([5]))) == Bitmap([5]) == {5}
    grown = Bitmap([1]).copy()
    grown.add(4)
    grown.update([3], [2])
    assert list(grown) == [1, 2, 3, 4]
    for wrong in (-1, 2**32):
        with pytest.raises(OverflowError, match="0 to 4294967295"):
            Bitmap([wrong])
    text: Any = ["a"]
    with pytest.raises(TypeError, match="holds integers, got str"):
        Bitmap(text)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ([], {}, "vectors of one type"),
        ([pa.array([1.0])], {}, "fixed-size lists of floats, got double"),
        ([pa.array([[1, 2]], pa.list_(pa.int8(), 2))], {}, "fixed-size lists of floats"),
        ([pa.array([None, [1.0]], pa.list_(pa.float32(), 1))], {}, "1 of 2 are NULL"),
        ([pa.array([[1.0]], pa.list_(pa.float32(), 1))], {"m": 1}, "m is 1, which must be"),
        ([pa.array([], pa.list_(pa.float32(), 1))], {}, "a graph is of vectors"),
    ],
)
def test_graph_of_wrong_vectors_is_refused(
    arrays: list[Any], options: dict[str, int], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        HNSW.build(arrays, **options)


def test_partitions_are_those_of_the_nearest_centroids(tmp_path: Path) -> None:
    vectors = np.random.default_rng(2).normal(size=(300, 4)).astype(np.float32)
    rows = pa.table({"v": pa.array([*vectors.tolist(), None], pa.list_(pa.float32(), 4))})
    builder = IndicesBuilder(pennon.write_dataset(rows, str(tmp_path / "v")), "v")
    centroids = vectors[:3]
    ivf = IvfModel(pa.FixedSizeListArray.from_arrays(centroids.ravel(), 4), "l2")
    uri = builder.assign_ivf_partitions(ivf, output_uri=str(tmp_path / "parts"))
    found = pennon.dataset(uri).to_table()
    assert found.schema.types == [pa.uint64(), pa.uint32()]
    nearest = np.square(vectors[:, None] - centroids).sum(2).argmin(1)
    assert found.to_pydict() == {"row_id": list(range(300)), "partition": nearest.tolist()}
    with pytest.raises(UnsupportedError, match="accelerator"):
        builder.assign_ivf_partitions(ivf, "cuda")
    short = IvfModel(pa.FixedSizeListArray.from_arrays(centroids.ravel(), 2), "l2")
    with pytest.raises(ArgumentError, match="centroids of 2 numbers"):
        builder.assign_ivf_partitions(short)


def test_merge_into_unknown_base_paths_is_refused(table: pennon.LanceDataset) -> None:
    merge = table.merge_insert("id").when_not_matched_insert_all()
    rows = pa.table({"id": [99]})
    with pytest.raises(ArgumentError, match="no base path 'nope'"):
        merge.target_bases(["nope"]).execute(rows)
    with pytest.raises(ArgumentError, match="names no base path"):
        merge.target_bases([])
    with pytest.raises(TypeError, match="is a list of names"):
        merge.target_bases("one")
    with pytest.raises(ArgumentError, match="no base path besides its own"):
        merge.target_all_bases(include_primary=False).execute(rows)
    assert merge.target_all_bases().execute(rows)["num_inserted_rows"] == 1


def test_misspelt_index_option_is_a_type_error_with_the_nearest_name(
    table: pennon.LanceDataset,
) -> None:
    options: dict[str, Any] = {"replce": True}
    with pytest.raises(UnknownOptionError, match=r"no replce; did you mean 'replace'\?"):
        table.create_scalar_index("id", "BTREE", **options)
    assert issubclass(UnknownOptionError, (TypeError, ValueError))
    with pytest.raises(AttributeError) as raised:
        table.to_tabel  # type: ignore[attr-defined]  # noqa: B018
    assert (raised.value.name, raised.value.obj) == ("to_tabel", table)
