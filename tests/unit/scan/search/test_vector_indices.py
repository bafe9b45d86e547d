"""Searches with a vector index: estimated rows, compared rows, and moved rows."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import pennon
from pennon.dataset.operation import Index
from pennon.errors import FormatError, UnsupportedError
from pennon.index.files import IndexFiles
from pennon.index.vector.base import Prefilter, Probes, SearchResult
from pennon.index.vector.distance import distances
from pennon.index.vector.metric import COSINE, DOT, L2, Metric
from pennon.scan.search import vector_indices

ESTIMATE = np.float32(1.25)
"""What the index below says of a distance is so much of it: that tells who worked it out."""
DETAILS = "/lance.index.pb.VectorIndexDetails"


@dataclass
class Fake:
    """An index in memory."""

    rows: npt.NDArray[np.uint64]
    vectors: npt.NDArray[np.float32]
    metric: Metric = L2
    kind: str = "IVF_FLAT"
    size_bytes: int = 1
    asked: list[tuple[int, Probes, bool]] = field(default_factory=list)

    @property
    def dimension(self) -> int:
        return self.vectors.shape[1]

    def search(
        self, queries: Any, k: int, probes: Probes, prefilter: Prefilter | None
    ) -> SearchResult:
        self.asked.append((k, probes, prefilter is not None))
        is_allowed = (
            np.ones(len(self.rows), np.bool_) if prefilter is None else prefilter(self.rows)
        )
        rows = self.rows[is_allowed]
        each = distances(self.vectors[is_allowed], queries, self.metric) * ESTIMATE
        order = np.argsort(each, axis=1, kind="stable")[:, :k]
        numbers = np.repeat(np.arange(len(queries)), order.shape[1])
        found = np.take_along_axis(each, order, 1).reshape(-1)
        return SearchResult(numbers, rows[order.reshape(-1)], found)


class Tables:
    """Tables of rows ``[id, 0]`` with indices in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.indices = folder, dict[str, Fake | Exception]()

    def open(self, files: IndexFiles) -> Fake:
        found = self.indices[files.folder.rpartition("/")[2]]
        if isinstance(found, Exception):
            raise found
        return found

    def table(self, rows: int, **options: Any) -> pennon.LanceDataset:
        vectors = pa.array([[n, 0] for n in range(rows)], pa.list_(pa.float32(), 2))
        table = pa.table({"id": range(rows), "vec": vectors})
        return pennon.write_dataset(table, self.folder / "t.lance", max_rows_per_file=10, **options)

    def fake(self, ds: pennon.LanceDataset, fragments: list[int], metric: Metric = L2) -> Fake:
        numbers = ds.to_table([], with_row_id=True)["_rowid"].to_numpy()
        table = ds.to_table(["vec"], with_row_address=True)
        owners = table["_rowaddr"].to_numpy() >> np.uint64(32)
        mine = np.isin(owners, np.array(fragments, np.uint64))
        return Fake(numbers[mine], np.array(table["vec"].to_pylist(), np.float32)[mine], metric)

    def add(
        self,
        ds: pennon.LanceDataset,
        fragments: list[int],
        name: str = "vec_idx",
        metric: Metric = L2,
    ) -> tuple[pennon.LanceDataset, Fake]:
        fake = self.fake(ds, fragments, metric)
        return self.commit(ds, [(fragments, fake)], name), fake

    def commit(
        self,
        ds: pennon.LanceDataset,
        segments: list[tuple[list[int], Fake | Exception]],
        name: str = "vec_idx",
    ) -> pennon.LanceDataset:
        made = []
        for fragments, fake in segments:
            number = str(uuid.uuid4())
            self.indices[number] = fake
            index = Index(number, name, [1], ds.version, fragments, 1, index_details=(DETAILS, b""))
            made.append(index)
        operation = pennon.LanceOperation.CreateIndex(made, [])
        return pennon.LanceDataset.commit(ds.uri, operation, read_version=ds.version)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    made = Tables(tmp_path)
    monkeypatch.setattr(vector_indices, "open_vector_index", made.open)
    return made


def found(ds: pennon.LanceDataset, **options: Any) -> list[tuple[int, float]]:
    nearest = {"column": "vec", "q": [0, 0], "k": 4, **options.pop("nearest", {})}
    table = ds.to_table(["id"], nearest=nearest, **options)
    return list(zip(table["id"].to_pylist(), table["_distance"].to_pylist(), strict=True))


def estimates(*ids: int) -> list[tuple[int, float]]:
    return [(row, float(ESTIMATE * row * row)) for row in ids]


def exact(*ids: int) -> list[tuple[int, float]]:
    return [(row, float(row * row)) for row in ids]


def test_vector_index_rows_have_estimated_distances(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30), [0, 1, 2])
    assert found(ds) == estimates(0, 1, 2, 3)
    assert fake.asked == [(4, Probes(6, None), False)]
    assert found(ds, nearest={"use_index": False}) == exact(0, 1, 2, 3)
    assert found(ds, nearest={"metric": "dot", "q": [1, 0], "k": 1}) == [(29, -28)]
    assert (
        "ANNSubIndex: name=vec_idx, k=4"
        in ds.scanner(nearest={"column": "vec", "q": [0, 0], "k": 4}).explain_plan()
    )


def test_refined_by_the_vectors(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30), [0, 1, 2])
    assert found(ds, nearest={"refine_factor": 3}) == exact(0, 1, 2, 3)
    assert fake.asked[0][0] == 12


def test_vector_search_compares_unindexed_rows_exactly(tables: Tables) -> None:
    ds, _ = tables.add(tables.table(30), [1, 2])
    assert found(ds, nearest={"q": [8, 0]}) == [(8, 0), (7, 1), (9, 1), (6, 4)]
    assert found(ds, nearest={"q": [10, 0], "k": 5}) == [(10, 0), (9, 1), (11, 1), (8, 4), (12, 4)]
    assert found(ds, nearest={"q": [8, 0], "k": 2}, fast_search=True) == [
        (10, float(ESTIMATE * 4)),
        (11, float(ESTIMATE * 9)),
    ]


def test_vector_index_search_skips_deleted_and_filtered_rows(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30), [0, 1, 2])
    assert found(ds, filter="id > 1") == estimates(2, 3)
    assert found(ds, filter="id % 2 = 1", prefilter=True) == estimates(1, 3, 5, 7)
    assert fake.asked[-1][2]
    ds.delete("id IN (0, 2)")
    assert found(ds) == estimates(1, 3, 4, 5)
    assert found(ds, fragments=[ds.get_fragments()[1]], prefilter=True) == estimates(10, 11, 12, 13)


def test_vector_index_search_with_several_queries_numbers_their_rows(tables: Tables) -> None:
    ds, _ = tables.add(tables.table(30), [0, 1, 2])
    queries = [[0, 0], [float("nan"), 0], [29, 0]]
    table = ds.to_table(["id"], nearest={"column": "vec", "q": queries, "k": 2})
    assert table["query_index"].to_pylist() == [0, 0, 2, 2]
    assert table["id"].to_pylist() == [0, 1, 29, 28]


def test_segments_of_one_name_are_one_index(tables: Tables) -> None:
    ds = tables.table(30)
    first, second = tables.fake(ds, [0, 1]), tables.fake(ds, [2])
    ds = tables.commit(ds, [([0, 1], first), ([2], second)])
    assert found(ds, nearest={"q": [20, 0], "k": 2}) == [(20, 0), (19, float(ESTIMATE))]
    second.rows = np.append(second.rows, second.rows[0])  # a row twice
    second.vectors = np.concatenate([second.vectors, second.vectors[:1]])
    assert [row for row, _ in found(ds, nearest={"q": [20, 0], "k": 3})] == [20, 19, 21]


def test_vector_index_with_stable_row_ids_after_compaction(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30, enable_stable_row_ids=True), [0, 1, 2])
    ds.delete("id IN (0, 2)")
    assert found(ds) == estimates(1, 3, 4, 5)
    ds.optimize.compact_files()
    assert found(ds) == estimates(1, 3, 4, 5)
    rows = ds.to_table(["id"], nearest={"column": "vec", "q": [0, 0], "k": 2}, with_row_id=True)
    assert rows["_rowid"].to_pylist() == [1, 3]
    assert fake.asked[-1][2]


def test_vector_index_after_deferred_compaction_finds_moved_rows(tables: Tables) -> None:
    ds, _ = tables.add(tables.table(30), [0, 1, 2])
    ds.delete("id IN (1, 25)")
    ds.optimize.compact_files(defer_index_remap=True)
    assert len(ds.get_fragments()) == 1
    assert found(ds) == estimates(0, 2, 3, 4)
    assert found(ds, nearest={"q": [24, 0], "k": 2}) == [(24, 0), (23, float(ESTIMATE))]


def test_vector_index_with_uncovered_rows_ignores_them(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30), [1])
    fake.rows = np.arange(10, dtype=np.uint64)  # of fragment 0, wherever these vectors were
    fake.vectors[:] = 0
    assert found(ds, nearest={"q": [0, 0]}) == exact(0, 1, 2, 3)
    assert [each[2] for each in fake.asked] == [False, True]


def test_a_range_of_estimates(tables: Tables) -> None:
    ds, fake = tables.add(tables.table(30), [0, 1, 2])
    assert found(ds, nearest={"distance_range": (None, 10)}) == estimates(0, 1, 2)
    assert found(ds, nearest={"distance_range": (60, None), "k": 2}) == estimates(7, 8)
    assert [each[0] for each in fake.asked] == [4, 2, 8, 32]
    assert found(ds, nearest={"distance_range": (60, 100), "k": 9}) == estimates(7, 8)
    assert found(ds, nearest={"distance_range": (49, 100), "k": 3, "refine_factor": 9}) == exact(
        7, 8, 9
    )


@pytest.mark.parametrize(
    "error", [UnsupportedError("of tomorrow"), FormatError("damaged"), FileNotFoundError]
)
def test_unreadable_vector_index_falls_back_to_scan(
    tables: Tables, error: Exception | type[Exception]
) -> None:
    ds = tables.table(30)
    problem = pennon.errors.NotFoundError("gone") if isinstance(error, type) else error
    ds = tables.commit(ds, [([0, 1, 2], problem)])
    assert found(ds) == exact(0, 1, 2, 3)


def test_an_index_of_longer_vectors_is_an_error(tables: Tables) -> None:
    fake = Fake(np.arange(3, dtype=np.uint64), np.zeros((3, 5), np.float32))
    ds = tables.commit(tables.table(30), [([0], fake)])
    with pytest.raises(FormatError, match=r"'vec_idx' .* vectors of 5 numbers, .*'vec' have 2"):
        found(ds)


def test_vector_index_is_chosen_by_metric(tables: Tables) -> None:
    ds, _ = tables.add(tables.table(30), [0, 1, 2], "first", metric=DOT)
    ds, _ = tables.add(ds, [0, 1, 2], "second")
    assert found(ds, nearest={"q": [1, 0], "k": 1}) == [(29, float(ESTIMATE * -28))]
    assert found(ds, nearest={"metric": "l2"}) == estimates(0, 1, 2, 3)
    assert found(ds, nearest={"metric": "cosine", "q": [1, 0], "k": 1}) == [(1, 0)]
    assert found(ds, nearest={"use_index": False}) == exact(0, 1, 2, 3)


def test_rows_of_many_vectors(tables: Tables) -> None:
    angles = np.linspace(0, 1.5, 16)
    vectors = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    lists = [vectors[[n, (n + 5) % 16]].tolist() for n in range(16)]
    kind = pa.list_(pa.list_(pa.float32(), 2))
    ds = pennon.write_dataset(
        pa.table({"id": range(16), "vec": pa.array(lists, kind)}), tables.folder / "m.lance"
    )
    rows = np.repeat(np.arange(16, dtype=np.uint64), 2)
    fake = Fake(rows, np.array(list(itertools.chain(*lists)), np.float32), COSINE)
    ds = tables.commit(ds, [([0], fake)])
    query = vectors[[3, 8]].tolist()
    one = [row for row, _ in found(ds, nearest={"q": query, "k": 1})]
    assert one == [3]
    assert fake.asked[0][0] == 10
    refined = found(ds, nearest={"q": query, "k": 3, "refine_factor": 2})
    assert refined == found(
        ds, nearest={"q": query, "k": 3, "use_index": False, "metric": "cosine"}
    )


@pytest.mark.parametrize(
    ("nearest", "probes"),
    [
        ({}, Probes(6, None)),
        ({"k": 1}, Probes(5, None)),
        ({"k": 11}, Probes(11, None)),
        ({"nprobes": 3}, Probes(3, 3)),
        ({"nprobes": 40}, Probes(40, 40)),
        ({"minimum_nprobes": 9}, Probes(9, None)),
        ({"maximum_nprobes": 2}, Probes(2, 2)),
        ({"ef": 77}, Probes(6, None, 77)),
        ({"search_effort": 0}, Probes(1, None)),
        ({"search_effort": 0.25, "nprobes": 50}, Probes(3, None)),
        ({"search_effort": 0.5}, Probes(6, None)),
    ],
)
def test_vector_search_probes_of_given_options(
    tables: Tables, nearest: dict[str, Any], probes: Probes
) -> None:
    ds, fake = tables.add(tables.table(30), [0, 1, 2])
    found(ds, nearest=nearest)
    assert fake.asked[0][1] == probes
