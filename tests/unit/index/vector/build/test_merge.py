"""Indices merged, and rows of them that are gone or elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

import pennon
from pennon.index.base import Values
from pennon.index.files import IndexFiles
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import RowSet
from pennon.index.vector.build.merge import merge_indices
from pennon.index.vector.build.new_index import write_index
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.index.vector.model import Model
from pennon.index.vector.quantizers.sq import ScalarCoder
from pennon.index.vector.settings import Graph, VectorSettings
from pennon.scan.snapshot import Snapshot
from pennon.schema.version import V2_1

CENTROIDS = np.array([[0, 0, 0, 0], [9, 9, 9, 9], [90, 90, 90, 90]], np.float32)


def snapshot_of(tmp_path: Path) -> Snapshot:
    """Return a table whose folder has a place for indices."""
    table = pennon.write_dataset(pa.table({"x": [1]}), str(tmp_path / "t.lance"))
    return table._snapshot


def written(
    snapshot: Snapshot, name: str, model: Model, vectors: np.ndarray, start: int
) -> IndexFiles:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 4)
    rows = np.arange(start, start + len(vectors), dtype=np.uint64)
    found = sorted_by_partition([Values(column, rows)], model)
    new = NewFiles(snapshot.store, f"_indices/{name}", V2_1)
    write_index(model, (found.partition(number) for number in range(3)), new)
    return files_of(snapshot, new)


def files_of(snapshot: Snapshot, new: NewFiles) -> IndexFiles:
    return IndexFiles(new.folder, snapshot.open_index_file, lambda _, make, __: make())


def merged(snapshot: Snapshot, model: Model, parts: list[IndexFiles], kept: RowSet) -> IndexFiles:
    new = NewFiles(snapshot.store, "_indices/merged", V2_1)
    merge_indices([OldIndex(each, RowMap.keeping(kept)) for each in parts], model.settings, new)
    return files_of(snapshot, new)


def near(size: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (CENTROIDS[rng.integers(0, 2, size)] + rng.normal(size=(size, 4))).astype(np.float32)


def test_scalars_between_the_bounds_of_all(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path)
    settings = VectorSettings("IVF_SQ")
    low, high = near(50, 1), near(60, 2) + np.float32(3)
    models = [
        Model(settings, CENTROIDS, bounds=(float(each.min()), float(each.max())))
        for each in (low, high)
    ]
    parts = [
        written(snapshot, "low", models[0], low, 0),
        written(snapshot, "high", models[1], high, 50),
    ]
    every = RowSet.of(np.arange(110, dtype=np.uint64))
    opened = open_stored(merged(snapshot, models[0], parts, every))
    assert opened.model.bounds == (float(low.min()), float(high.max()))
    vectors = np.concatenate([low, high])
    step = float(high.max() - low.min()) / 255
    for part in opened.read(0, 3):
        decoded = ScalarCoder(opened.model).decode(part.columns)
        wrong = np.abs(decoded - vectors[part.rows.astype(int)])
        assert wrong.max(initial=0) < 1.6 * step


def test_merge_removes_rows_that_no_longer_exist(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path)
    words = np.random.default_rng(0).normal(size=(2, 256, 2)).astype(np.float32)
    for settings in (
        VectorSettings("IVF_PQ", sub_vectors=2),
        VectorSettings("IVF_PQ", sub_vectors=2, is_plain=True),
        VectorSettings("IVF_HNSW_PQ", sub_vectors=2, graph=Graph(4, 20, 3)),
    ):
        model = Model(settings, CENTROIDS, words)
        parts = [
            written(snapshot, f"{number}", model, near(40, number), 40 * number)
            for number in range(3)
        ]
        whole = written(
            snapshot, "whole", model, np.concatenate([near(40, n) for n in range(3)]), 0
        )
        kept = RowSet.of(np.flatnonzero(np.arange(120) % 3).astype(np.uint64))
        found = open_stored(merged(snapshot, model, parts, kept))
        assert not found.model.settings.is_plain
        assert sum(found.parts.lengths) == 80
        assert found.parts.lengths[2] == 0
        for mine, all_rows in zip(found.read(0, 3), open_stored(whole).read(0, 3), strict=True):
            there = all_rows.rows % 3 != 0
            assert mine.rows.tolist() == all_rows.rows[there].tolist()
            assert np.array_equal(mine.columns[0], all_rows.columns[0][there])
