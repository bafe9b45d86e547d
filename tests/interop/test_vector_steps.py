"""Models and codes of IVF_PQ in files, there and back with pylance 14.0.2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lance.indices
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.dataset import VectorIndexReader as PylanceReader
from lance.file import LanceFileReader

import pennon
import pennon.indices
from pennon.dataset import VectorIndexReader
from pennon.errors import ArgumentError, FormatError
from tests.interop.vector_tables import VectorTable, found_by, recall

ROWS = 2000
SIDES: dict[str, tuple[Any, Any]] = {
    "lance": (lance, lance.indices),
    "pennon": (pennon, pennon.indices),
}


@pytest.mark.parametrize(("by", "to"), [("lance", "pennon"), ("pennon", "lance")])
def test_models_of_one_are_read_by_the_other(tmp_path: Path, by: str, to: str) -> None:
    (writer, mine), (_, other) = SIDES[by], SIDES[to]
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(VectorTable.of(ROWS, 7).table(), uri)
    builder = mine.IndicesBuilder(writer.dataset(uri), "vec")
    ivf = builder.train_ivf(6, sample_rate=50, distance_type="cosine")
    pq = builder.train_pq(ivf, 4, sample_rate=64, num_bits=4)
    ivf.save(str(tmp_path / "ivf"))
    pq.save(str(tmp_path / "pq"))
    ivf_read = other.IvfModel.load(str(tmp_path / "ivf"))
    pq_read = other.PqModel.load(str(tmp_path / "pq"))
    assert (ivf_read.centroids, ivf_read.distance_type) == (ivf.centroids, "cosine")
    assert (pq_read.codebook, pq_read.num_subvectors, pq_read.num_bits) == (pq.codebook, 4, 4)


@pytest.mark.parametrize("by", ["lance", "pennon"])
def test_ivf_pq_codes_of_either_library_make_a_searchable_index(tmp_path: Path, by: str) -> None:
    """pylance 14.0.2 itself sorts whole batches of 1024 codes, and loses the others."""
    table = VectorTable.of(ROWS, 8)
    uri, folder = str(tmp_path / "t.lance"), str(tmp_path)
    pennon.write_dataset(table.table(), uri, max_rows_per_file=700)
    writer, steps = SIDES[by]
    builder = pennon.indices.IndicesBuilder(pennon.dataset(uri), "vec")
    ivf = builder.train_ivf(6, sample_rate=50)
    pq = builder.train_pq(ivf, 8, sample_rate=4)
    maker = steps.IndicesBuilder(writer.dataset(uri), "vec")
    model = steps.IvfModel(ivf.centroids, "l2")
    maker.transform_vectors(model, steps.PqModel(8, pq.codebook), f"{folder}/codes")
    if by == "lance":
        (lossy,) = maker.shuffle_transformed_vectors(["codes"], folder, model)
        partitions = LanceFileReader(f"{folder}/{lossy}").read_all().to_table()["partitions"]
        assert pc.sum(pc.list_value_length(partitions)).as_py() == 1024
        with pytest.raises(FormatError, match="has no column '__pq_code'"):
            builder.load_shuffled_vectors([lossy], folder, ivf, pq)
        with pytest.raises(ArgumentError, match="is not sorted by partition"):
            builder.load_shuffled_vectors(["codes"], folder, ivf, pq)
    names = builder.shuffle_transformed_vectors(["codes"], folder, ivf, "runs")
    builder.load_shuffled_vectors(names, folder, ivf, pq)
    found = found_by(lance.dataset(uri), table, nprobes=6)
    pennon.dataset(uri).create_index(
        "vec",
        "IVF_PQ",
        "vec_idx",
        num_partitions=6,
        num_sub_vectors=8,
        ivf_centroids=ivf.centroids,
        pq_codebook=pq.codebook,
        replace=True,
    )
    assert found == found_by(lance.dataset(uri), table, nprobes=6)
    assert recall(found, table.nearest("l2", np.arange(ROWS))) > 0.4


def test_pylances_partitions_are_read_row_by_row(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(VectorTable.of(ROWS, 9).table(), uri)
    lance.dataset(uri).create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=8)
    ours = VectorIndexReader(pennon.dataset(uri), "vec_idx")
    theirs = PylanceReader(lance.dataset(uri), "vec_idx")
    assert ours.num_partitions() == theirs.num_partitions() == 2
    for number in range(2):
        mine = ours.read_partition(number, with_vector=True)
        other = theirs.read_partition(number, with_vector=True)
        assert mine["_rowid"].to_pylist() == other["_rowid"].to_pylist()
        stored = pa.concat_arrays(other["__pq_code"].chunks).flatten().to_numpy()
        codes = pa.concat_arrays(mine["__pq_code"].chunks).flatten().to_numpy()
        assert (codes.reshape(-1, 8) == stored.reshape(8, -1).T).all()
    assert pennon.dataset(uri).centroids(column="vec") == lance.dataset(uri).centroids(column="vec")
