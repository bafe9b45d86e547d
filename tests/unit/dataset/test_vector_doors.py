"""Indices of vectors step by step: models, their files, codes in files, and index readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset import VectorIndexReader
from pennon.errors import ArgumentError, FormatError, UnsupportedError
from pennon.indices import IndexFileVersion, IndicesBuilder, IvfModel, PqModel
from pennon.util import validate_vector_index
from pennon.vector import vec_to_table

DIM = 16
ROWS = 600


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> pennon.LanceDataset:
    vectors = np.random.default_rng(4).normal(size=(ROWS, DIM)).astype(np.float32)
    vectors[7] = np.nan
    return pennon.write_dataset(
        vec_to_table(vectors),
        str(tmp_path / "t.lance"),
        max_rows_per_file=200,
        enable_stable_row_ids=request.param,
    )


def trained(builder: IndicesBuilder, **how: Any) -> tuple[IvfModel, PqModel]:
    ivf = builder.train_ivf(5, sample_rate=50, **how)
    return ivf, builder.train_pq(ivf, 4, sample_rate=2)


def nearest(table: pennon.LanceDataset, **how: Any) -> pa.Table:
    query = np.random.default_rng(5).normal(size=DIM)
    asked = {"column": "vector", "q": query, "k": 5, **how}
    return table.to_table(columns=["_distance"], nearest=asked, with_row_id=True)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_index_models_round_trip_through_files_and_indices(
    table: pennon.LanceDataset, tmp_path: Path, metric: Any
) -> None:
    builder = IndicesBuilder(table, "vector")
    ivf, pq = trained(builder, distance_type=metric.upper())
    assert (ivf.num_partitions, ivf.distance_type) == (5, metric)
    assert (pq.dimension, pq.num_subvectors, len(pq.codebook)) == (DIM, 4, 256)
    ivf.save(tmp_path / "ivf")
    pq.save(tmp_path / "pq")
    ivf, pq = IvfModel.load(tmp_path / "ivf"), PqModel.load(tmp_path / "pq")
    table = table.create_index(
        "vector",
        "IVF_PQ",
        metric=metric,
        num_partitions=5,
        num_sub_vectors=4,
        ivf_centroids=ivf.centroids,
        pq_codebook=pq.codebook,
    )
    assert table.centroids(column="vector") == ivf.centroids
    found = table.get_ivf_model("vector_idx")
    assert found is not None
    assert found.distance_type == metric


def test_index_of_codes_in_files_equals_index_built_at_once(
    table: pennon.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(table, "vector")
    ivf, pq = trained(builder)
    once = table.create_index(
        "vector",
        "IVF_PQ",
        num_partitions=5,
        num_sub_vectors=4,
        ivf_centroids=ivf.centroids,
        pq_codebook=pq.codebook,
    )
    right = nearest(once, nprobes=5)
    once.drop_index("vector_idx")
    builder = IndicesBuilder(once, "vector")
    first, *rest = once.get_fragments()
    builder.transform_vectors(ivf, pq, str(tmp_path / "one"), [first])
    builder.transform_vectors(ivf, pq, str(tmp_path / "two"), rest)
    names = builder.shuffle_transformed_vectors(["one", "two"], str(tmp_path), ivf, "by_part")
    assert names == ["by_part_0.lance", "by_part_1.lance"]
    builder.load_shuffled_vectors(names, str(tmp_path), ivf, pq)
    again = pennon.dataset(once.uri)
    assert nearest(again, nprobes=5) == right
    (index,) = again.describe_indices()
    assert index.segments[0].fragment_ids == {0, 1, 2}
    reader = VectorIndexReader(again, "vector_idx")
    parts = [reader.read_partition(n, with_vector=True) for n in range(reader.num_partitions())]
    assert sum(part.num_rows for part in parts) == ROWS - 1
    assert parts[0].column_names == ["_rowid", "__pq_code"]


def test_index_of_codes_in_files_covers_their_fragments_only(
    table: pennon.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(table, "vector")
    ivf, pq = trained(builder)
    builder.transform_vectors(ivf, pq, str(tmp_path / "one"), table.get_fragments()[1:2])
    names = builder.shuffle_transformed_vectors(["one"], str(tmp_path), ivf)
    builder.load_shuffled_vectors(names, str(tmp_path), ivf, pq, "mine")
    (index,) = pennon.dataset(table.uri).describe_indices()
    assert (index.name, index.segments[0].fragment_ids) == ("mine", {1})


def test_indices_builder_with_unfit_models_is_refused(
    table: pennon.LanceDataset, tmp_path: Path
) -> None:
    builder = IndicesBuilder(table, "vector")
    ivf, pq = trained(builder)
    builder.transform_vectors(ivf, pq, str(tmp_path / "x"))
    fewer = IvfModel(ivf.centroids[:2], "l2")
    with pytest.raises(ArgumentError, match="and there are 2 centroids"):
        builder.shuffle_transformed_vectors(["x"], str(tmp_path), fewer)
    names = builder.shuffle_transformed_vectors(["x"], str(tmp_path), ivf)
    with pytest.raises(FormatError, match="has codes of fixed_size_list"):
        builder.load_shuffled_vectors(
            names, str(tmp_path), ivf, builder.train_pq(ivf, 2, sample_rate=2)
        )
    with pytest.raises(ArgumentError, match="no files of sorted codes were given"):
        builder.load_shuffled_vectors([], str(tmp_path), ivf, pq)
    with pytest.raises(ValueError, match="There are not enough rows in the dataset to create IVF"):
        builder.train_ivf(100)
    with pytest.raises(ValueError, match="16384 rows needed and there are 600"):
        builder.train_pq(ivf, 4, sample_rate=64)
    with pytest.raises(ValueError, match=r"must be divisible by num_subvectors \(5\) without"):
        builder.train_pq(ivf, 5, sample_rate=2)
    with pytest.raises(ValueError, match="Fragment id does not exist: 9"):
        builder.train_ivf(2, sample_rate=2, fragment_ids=[9])
    with pytest.raises(ValueError, match="Distance type x not supported"):
        builder.train_ivf(2, sample_rate=2, distance_type="x")
    with pytest.raises(UnsupportedError, match="trains on the CPU"):
        builder.train_ivf(2, sample_rate=2, accelerator="cuda")
    with pytest.raises(KeyError, match="nope not found in schema"):
        IndicesBuilder(table, "nope")
    ivf.save(tmp_path / "ivf")
    with pytest.raises(FormatError, match="and no codebook"):
        PqModel.load(tmp_path / "ivf")


def test_train_pq_without_dividing_sub_vector_width_is_refused(tmp_path: Path) -> None:
    table = pennon.write_dataset(vec_to_table(np.zeros((4, 12))), str(tmp_path / "t.lance"))
    with pytest.raises(ValueError, match="is not divisible by 16 or 8"):
        IndicesBuilder(table, "vector").train_pq(IvfModel(pa.array([]), "l2"))


def test_tables_of_vectors() -> None:
    found = vec_to_table({"a": [1, 2], "b": [3, 4]})
    assert found["id"].to_pylist() == ["a", "b"]
    assert found["vector"].to_pylist() == [[1, 2], [3, 4]]
    assert vec_to_table(np.arange(6.0), ndim=3, check_ndim=False).num_rows == 2
    with pytest.raises(ValueError, match="Expected 2 dimensions but got 1"):
        vec_to_table([[1, 2], [3]])
    with pytest.raises(ValueError, match="names are those of the columns id, vector"):
        vec_to_table({"a": [1]}, names="vec")
    with pytest.raises(NotImplementedError):
        vec_to_table(7)  # type: ignore[arg-type]


def test_an_index_is_checked_by_its_own_vectors(table: pennon.LanceDataset) -> None:
    table = table.create_index("vector", "IVF_FLAT", num_partitions=4)
    validate_vector_index(table, "vector")
    validate_vector_index(table, "vector", sample_size=50)
    wrong = np.zeros((4, DIM), np.float32) + np.arange(4)[:, None] * 100
    table = table.create_index(
        "vector",
        "IVF_PQ",
        num_partitions=4,
        num_sub_vectors=2,
        ivf_centroids=wrong.astype(np.float32),
        pq_codebook=np.zeros((2, 256, 8), np.float32),
        replace=True,
    )
    with pytest.raises(ValueError, match="failed sanity check, only"):
        validate_vector_index(table, "vector", refine_factor=1)


def test_index_file_version_values() -> None:
    assert [each.value for each in IndexFileVersion] == ["Legacy", "V3"]
    assert IndexFileVersion("V3") == "V3"
