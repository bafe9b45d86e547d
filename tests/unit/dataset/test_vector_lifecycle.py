"""Lifecycle of a vector index: progress, retraining, and unusable entries."""

from __future__ import annotations

import io
import sys
import tracemalloc
import uuid
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.dataset import VectorIndexReader
from pennon.dataset.operation import Index
from pennon.errors import FormatError
from pennon.ops import bars
from pennon.progress import IndexProgress
from pennon.vector import vec_to_table

DIM = 8
ROWS = 600


@pytest.fixture
def table(tmp_path: Path) -> pennon.LanceDataset:
    rng = np.random.default_rng(11)
    data = vec_to_table(rng.normal(size=(ROWS, DIM)), names="vec")
    bits = rng.integers(0, 256, (ROWS, DIM), np.uint8)
    for name, column in {
        "other": vec_to_table(rng.normal(size=(ROWS, 4)))["vector"],
        "bits": pa.FixedSizeListArray.from_arrays(pa.array(bits.ravel()), DIM),
        "id": pa.array(range(ROWS)),
    }.items():
        data = data.append_column(name, column)
    return pennon.write_dataset(data, str(tmp_path / "t.lance"), max_rows_per_file=200)


def near(table: pennon.LanceDataset, column: str = "vec", **how: Any) -> list[int]:
    width = table.schema.field(column).type.list_size
    asked = {"column": column, "q": np.full(width, 0.5), "k": 5, **how}
    ids: list[int] = table.to_table(columns=["id"], nearest=asked)["id"].to_pylist()
    return ids


def entry(table: pennon.LanceDataset) -> Index:
    """Return the entry of the only index, as its transaction has it."""
    transaction = table.read_transaction(table.version)
    assert transaction is not None
    operation = transaction.operation
    assert isinstance(operation, pennon.LanceOperation.CreateIndex)
    (index,) = operation.new_indices
    return replace(index, wire=b"")


def with_entry(table: pennon.LanceDataset, index: Index, **changes: Any) -> pennon.LanceDataset:
    """Commit an entry in place of another one."""
    operation = pennon.LanceOperation.CreateIndex([replace(index, **changes)], [index])
    return pennon.LanceDataset.commit(table.uri, operation, read_version=table.version)


def test_index_training_reports_progress(table: pennon.LanceDataset) -> None:
    said: list[IndexProgress] = []
    table.create_index(
        "vec", "IVF_PQ", num_partitions=2, num_sub_vectors=4, progress_callback=said.append
    )
    stages = list(dict.fromkeys(each.stage for each in said))
    assert stages == ["train_ivf", "train_quantizer", "shuffle"]
    for name in stages:
        mine = [each for each in said if each.stage == name]
        assert [mine[0].event, mine[-1].event] == ["start", "complete"]
        counts = [each.completed for each in mine[:-1]]
        assert counts == list(range(len(counts)))
        assert mine[-1].completed == counts[-1]
    rounds = [each for each in said if each.stage == "train_ivf"][-1]
    assert (rounds.total, rounds.unit) == (50, "iterations")
    assert 1 <= (rounds.completed or 0) <= 50
    words = [each for each in said if each.stage == "train_quantizer"][-1]
    assert (words.completed, words.total, words.fraction) == (4, 4, 1.0)
    assert IndexProgress("start", "x").fraction is None


def test_create_index_ends_when_progress_callback_raises(table: pennon.LanceDataset) -> None:
    def stop(_: IndexProgress) -> None:
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        table.create_index("vec", "IVF_FLAT", num_partitions=2, progress_callback=stop)
    assert not pennon.dataset(table.uri).describe_indices()


def test_index_training_shows_a_progress_bar_on_terminals(
    table: pennon.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(bars, "QUIET_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    table.create_index("vec", "IVF_SQ", num_partitions=3, max_iters=4)
    shown = sys.stderr.getvalue()
    assert "index vec_idx: train ivf" in shown
    assert "index vec_idx" in shown.replace("index vec_idx: train ivf", "")


def test_vector_index_without_details_is_retrained_with_its_settings(
    table: pennon.LanceDataset,
) -> None:
    table.create_index("vec", "IVF_PQ", metric="cosine", num_partitions=2, num_sub_vectors=2)
    index = entry(table)
    table = with_entry(table, index, index_details=("/lance.table.VectorIndexDetails", b""))
    table.optimize.optimize_indices(retrain=True)
    (said,) = table.index_statistics("vec_idx")["indices"]
    assert (said["index_type"], said["metric_type"]) == ("IVF_PQ", "cosine")
    assert said["sub_index"]["num_sub_vectors"] == 2
    assert said["uuid"] != index.uuid


def test_missing_vector_index_files_warn_and_fall_back_to_scan(table: pennon.LanceDataset) -> None:
    right = near(table)
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    (described,) = table.describe_indices()
    assert "not_asked" not in described.details
    table = with_entry(table, entry(table), uuid=str(uuid.uuid4()))
    with pytest.warns(UserWarning, match="'vec_idx' of column 'vec' is not asked, and its rows"):
        assert near(table) == right
    (described,) = table.describe_indices()
    assert "not there" in described.details["not_asked"] or described.details["not_asked"]


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("other", "is of vectors of 8 numbers, those of column 'other' have 4"),
        ("bits", "is by l2, which vectors of uint8 in column 'bits' have no index of"),
    ],
)
def test_vector_index_entry_of_unfitting_column_is_unused(
    table: pennon.LanceDataset, column: str, why: str
) -> None:
    right = near(table)
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    field = table.lance_schema.field(column)
    assert field is not None
    table = with_entry(table, entry(table), fields=[field.id()])
    query: Any = np.full(DIM, 3, np.uint8) if column == "bits" else np.zeros(4)
    with pytest.raises(FormatError, match=why):
        near(table, column, q=query)
    (described,) = table.describe_indices()
    assert why in described.details["not_asked"]
    assert near(table) == right


@pytest.mark.parametrize("fields", [[], [3], [99], [0, 1]], ids=str)
def test_vector_index_entry_without_vector_column_is_unused(
    table: pennon.LanceDataset, fields: list[int]
) -> None:
    right = near(table)
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    names = {0: "vec", 3: "id"}
    assert fields in ([], [99], [0, 1]) or names[fields[0]] == "id"
    table = with_entry(table, entry(table), fields=fields)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert near(table) == right
    (described,) = table.describe_indices()
    assert described.details["not_asked"]
    with pytest.warns(UserWarning, match="it was left as it is"):
        table.optimize.optimize_indices(retrain=True)


@pytest.mark.parametrize("number", [-1, 99])
def test_an_entry_of_an_impossible_version(table: pennon.LanceDataset, number: int) -> None:
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    right = near(table, use_index=False)
    table = with_entry(table, entry(table), index_version=number)
    assert near(table) == right
    (described,) = table.describe_indices()
    assert described.details["not_asked"].startswith(f"it is of version {number}")


def test_vector_index_entry_with_missing_fragments_equals_exact_search(
    table: pennon.LanceDataset,
) -> None:
    table.create_index("vec", "IVF_FLAT", num_partitions=2)
    right = near(table, use_index=False)
    table = with_entry(table, entry(table), fragment_ids={0, 1, 2, 77, (1 << 32) - 1})
    assert near(table, nprobes=2) == right


def test_many_vector_queries_are_processed_in_batches(tmp_path: Path) -> None:
    """Each query of a PQ by dot has tables of 64 KiB: those of 3,000 would be 188 MiB."""
    rng = np.random.default_rng(3)
    table = pennon.write_dataset(vec_to_table(rng.normal(size=(300, 64))), tmp_path / "t.lance")
    codebook = rng.normal(size=(64, 256, 1)).astype(np.float32)
    centroids = rng.normal(size=(2, 64)).astype(np.float32)
    table = table.create_index(
        "vector",
        "IVF_PQ",
        metric="dot",
        num_partitions=2,
        num_sub_vectors=64,
        ivf_centroids=centroids,
        pq_codebook=codebook,
    )
    queries = rng.normal(size=(3000, 64)).astype(np.float32)
    asked = {"column": "vector", "q": queries, "k": 1, "nprobes": 1}
    few = table.to_table(columns=["_distance"], nearest={**asked, "q": queries[-3:]})
    tracemalloc.start()
    try:
        many = table.to_table(columns=["_distance"], nearest=asked)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert many["query_index"].to_pylist() == list(range(3000))
    assert many["_distance"][-3:].to_pylist() == few["_distance"].to_pylist()
    assert peak < 64 << 20


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ"])
def test_new_rows_join_an_index_without_files_of_their_own(
    table: pennon.LanceDataset, kind: Any
) -> None:
    table.create_index("vec", kind, num_partitions=3)
    more = table.to_table().slice(0, 100)
    pennon.write_dataset(more, table.uri, mode="append")
    table = pennon.dataset(table.uri)
    table.optimize.optimize_indices()
    assert len(list((Path(table.uri) / "_indices").iterdir())) == 2
    (described,) = table.describe_indices()
    assert described.segments[0].fragment_ids == {0, 1, 2, 3}
    assert near(table, nprobes=3, refine_factor=20) == near(table, use_index=False)
    reader = VectorIndexReader(table, "vec_idx")
    assert sum(reader.read_partition(number).num_rows for number in range(3)) == ROWS + 100


def test_counts_of_entries_bound_no_memory(table: pennon.LanceDataset) -> None:
    with pytest.warns(DeprecationWarning, match="index_cache_size_bytes bounds the memory"):
        pennon.dataset(table.uri, index_cache_size=256)
