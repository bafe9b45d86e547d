"""Indices of vectors made in tasks that pass blocks on: row by row those of one machine, and searched by pylance 14.0.2."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon import ops
from pennon.file import LanceFileReader
from pennon.ops.index.builders import THREADS
from pennon.ops.index.request import IndexRequest
from pennon.ops.index.vector_build import VectorBuild
from pennon.ops.index.vector_shuffle import VectorShuffle
from pennon.scan.read.tasks import plan_tasks

T = TypeVar("T")

ROWS, DIM, CENTROIDS = 1200, 16, 7
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {"metric": "cosine"},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_PQ of 4 bits": {"num_sub_vectors": 8, "num_bits": 4, "metric": "dot"},
    "IVF_SQ": {},
    "IVF_RQ": {"num_bits": 3},
    "IVF_HNSW_FLAT": {"m": 6, "ef_construction": 30},
    "IVF_HNSW_SQ": {"m": 6, "ef_construction": 30, "metric": "cosine"},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4, "m": 6, "ef_construction": 30},
}


def vectors(rows: int) -> Any:
    rng = np.random.default_rng(3)
    means = rng.normal(size=(9, DIM)) * 4
    return (means[rng.integers(0, 9, rows)] + rng.normal(size=(rows, DIM))).astype(np.float32)


def make(uri: str, **options: Any) -> None:
    """A table of three fragments, with vectors that an index does not hold, and deleted rows."""
    matrix = vectors(ROWS)
    matrix[5, 3] = np.nan
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(matrix.ravel()), DIM, mask=pa.array(np.arange(ROWS) % 50 == 7)
    )
    data = pa.table({"id": np.arange(ROWS), "vec": column})
    pennon.write_dataset(data, uri, max_rows_per_file=500, **options)
    pennon.dataset(uri).delete("id % 11 = 4")


def again(task: T) -> T:
    """Return a task as an executor gets it."""
    found: T = pickle.loads(pickle.dumps(task))
    return found


def create_in_parts(uri: str, kind: str, per_part: int, **arguments: Any) -> None:
    """Make an index as executors do; each task runs twice, and blocks come in any order."""
    snapshot = pennon.dataset(uri)._snapshot
    build = VectorBuild.plan(IndexRequest(snapshot, "vec", kind, "vec_idx", arguments)).train(
        THREADS
    )
    pieces = [
        replace(task, start=start, end=min(start + 170, task.end))
        for task in plan_tasks(snapshot)
        for start in range(task.start, task.end, 170)
    ]
    shares = tuple(tuple(pieces[n : n + 2]) for n in range(0, len(pieces), 2))
    plan = VectorShuffle(build, shares, per_part)
    split = again(plan.split)
    blocks = [block for number in range(len(shares)) for block in split.run(number)]
    assert blocks == [block for number in range(len(shares)) for block in split.run(number)]
    random.Random(1).shuffle(blocks)
    groups: list[list[tuple[int, bytes]]] = [[] for _ in range(plan.parts)]
    for number, block in sorted(blocks, key=lambda block: block[0]):
        groups[number // per_part].append((number, block))
    write = again(plan.write)
    lost = [write.run(group) for group in groups]
    parts = [part for part in map(write.run, groups) if part is not None]
    assert [part is None for part in lost] == [not group for group in groups]
    entry = again(plan.join(dict(parts))).run()
    assert len({entry.uuid, *(each.uuid for _, each in [*filter(None, lost), *parts])}) > 2
    ops.commit_segments(snapshot, "vec_idx", "vec", [entry])


def files_of(uri: str) -> list[Any]:
    """Return all that the files of the index of a table say."""
    (index,) = pennon.dataset(uri).describe_indices()
    (segment,) = index.segments
    found: list[Any] = []
    for name in ("auxiliary.idx", "index.idx"):
        file = LanceFileReader(f"{uri}/_indices/{segment.uuid}/{name}")
        said = dict(file.metadata().schema.metadata or {})
        found += [file.read_all().to_table(), said]
    statistics = pennon.dataset(uri).index_statistics("vec_idx")
    for each in statistics["indices"]:
        del each["uuid"], each["uri"]
    return [*found, statistics["indices"], statistics["num_indexed_rows"]]


def answer(reader: Any, uri: str, number: int) -> dict[str, Any]:
    query = {"column": "vec", "q": vectors(ROWS)[number], "k": 20, "nprobes": 20}
    table = reader.dataset(uri).to_table(columns=["id", "_distance"], nearest=query)
    found: dict[str, Any] = table.to_pydict()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_vector_index_built_in_parts_equals_local_build(tmp_path: Path, kind: str) -> None:
    here, there = str(tmp_path / "here.lance"), str(tmp_path / "there.lance")
    arguments: dict[str, Any] = {"metric": "l2", "num_partitions": CENTROIDS, **KINDS[kind]}
    index_type: Any = kind.partition(" ")[0]
    for uri in (here, there):
        make(uri)
    pennon.dataset(here).create_index("vec", index_type, **arguments)
    create_in_parts(there, index_type, 3, **arguments)
    assert files_of(there) == files_of(here)
    readers: tuple[Any, ...] = (pennon, lance)
    for reader in readers:
        for number in (0, 100):
            assert answer(reader, there, number) == answer(reader, here, number)


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("per_part", [1, 2, 9])
def test_vector_index_built_in_parts_with_empty_partitions(
    tmp_path: Path, kind: Any, per_part: int
) -> None:
    """The first, the last, and all of a part."""
    here, there = str(tmp_path / "here.lance"), str(tmp_path / "there.lance")
    far = np.full((1, DIM), 1e4, np.float32)
    near = vectors(ROWS)[[0, 1, 2]]
    given = np.concatenate([far, near[:1], far, far, far, near[1:], far])
    arguments: dict[str, Any] = {
        "metric": "l2",
        "num_partitions": len(given),
        "ivf_centroids": given,
    }
    for uri in (here, there):
        make(uri)
    pennon.dataset(here).create_index("vec", kind, **arguments)
    create_in_parts(there, kind, per_part, **arguments)
    assert files_of(there) == files_of(here)
    assert answer(lance, there, 0) == answer(lance, here, 0)


def test_vector_index_built_in_parts_with_stable_row_ids(tmp_path: Path) -> None:
    here, there = str(tmp_path / "here.lance"), str(tmp_path / "there.lance")
    for uri in (here, there):
        make(uri, enable_stable_row_ids=True)
    arguments: dict[str, Any] = {"metric": "l2", "num_partitions": 4}
    pennon.dataset(here).create_index("vec", "IVF_FLAT", **arguments)
    create_in_parts(there, "IVF_FLAT", 2, **arguments)
    assert files_of(there) == files_of(here)


@pytest.mark.parametrize("kind", ["lists", "bits"])
def test_vectors_in_lists_and_vectors_of_bits(tmp_path: Path, kind: str) -> None:
    here, there = str(tmp_path / "here.lance"), str(tmp_path / "there.lance")
    rng = np.random.default_rng(0)
    if kind == "lists":
        flat = pa.FixedSizeListArray.from_arrays(pa.array(vectors(3 * ROWS).ravel()), DIM)
        ends = np.sort(rng.integers(0, 3 * ROWS, ROWS - 1))
        column = pa.ListArray.from_arrays(pa.array([0, *ends, 3 * ROWS], pa.int32()), flat)
        arguments: dict[str, Any] = {"metric": "cosine", "num_partitions": 4}
    else:
        bits = rng.integers(0, 256, (ROWS, DIM)).astype(np.uint8)
        column = pa.FixedSizeListArray.from_arrays(pa.array(bits.ravel()), DIM)
        arguments = {"metric": "hamming", "num_partitions": 4}
    for uri in (here, there):
        pennon.write_dataset(pa.table({"vec": column}), uri, max_rows_per_file=500)
    pennon.dataset(here).create_index("vec", "IVF_FLAT", **arguments)
    create_in_parts(there, "IVF_FLAT", 2, **arguments)
    assert files_of(there) == files_of(here)
