"""Every kind of index passes the shipped contract of indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from pennon.dataset import LanceDataset, LanceScanner
from pennon.indices import IndexConfig
from pennon.testing import IndexContract

_DIMENSION = 8


class _Values(IndexContract):
    """Indices of values, and filters that they answer."""

    column: ClassVar[str] = "k"
    kind: ClassVar[Any]
    filters: ClassVar[Sequence[str]] = ("k = 'key041'",)

    def rows(self, first: int, count: int) -> pa.Table:
        ids = range(first, first + count)
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "k": [f"key{n:03}" if n % 10 else None for n in ids],
                "t": [f"text {n} of {n % 7}" if n % 10 else None for n in ids],
                "few": pa.array([n % 7 for n in ids], pa.int32()),
                "l": [[f"a{n % 5}", f"b{n % 3}"] if n % 9 else None for n in ids],
                "st": [{"x": n % 13} for n in ids],
            }
        )

    def build(self, dataset: LanceDataset, name: str) -> None:
        dataset.create_scalar_index(self.column, self.kind, name)

    def scans(self, dataset: LanceDataset, *, uses_index: bool) -> Sequence[LanceScanner]:
        return [dataset.scanner(filter=each, use_scalar_index=uses_index) for each in self.filters]


class TestBTree(_Values):
    kind = IndexConfig("btree", {"zone_size": 7})
    filters = ("k = 'key041'", "k >= 'key05' AND k < 'key07'", "k IN ('key003', 'no')", "k IS NULL")


class TestBTreeOfPartOfStruct(_Values):
    column, kind = "st.x", "BTREE"
    filters = ("st.x = 3", "st.x > 10")


class TestBitmap(_Values):
    column, kind = "few", "BITMAP"
    filters = ("few = 3", "few IN (1, 9)", "few < 2")


class TestLabelList(_Values):
    column, kind = "l", "LABEL_LIST"
    filters = ("array_has(l, 'a3')", "array_has_all(l, ['a1', 'b2'])", "array_has_any(l, ['b0'])")


class TestNGram(_Values):
    kind = "NGRAM"
    filters = ("contains(k, 'ey04')", "contains(k, '111')")


class TestZoneMap(_Values):
    moves_with_rows = False
    column, kind = "id", IndexConfig("zonemap", {"rows_per_zone": 9})
    filters = ("id = 41", "id > 100", "id IS NULL")


class TestBloomFilter(_Values):
    moves_with_rows = False
    kind = IndexConfig("bloomfilter", {"number_of_items": 12})
    filters = ("k = 'key041'", "k IN ('key003', 'no')")


class TestInverted(_Values):
    column, kind = "t", "INVERTED"
    words = ("41", "text", "3 5")

    def scans(self, dataset: LanceDataset, *, uses_index: bool) -> Sequence[LanceScanner]:
        if uses_index:
            return [dataset.scanner(full_text_query=each) for each in self.words]
        tests = [[f"contains_tokens(t, '{word}')" for word in each.split()] for each in self.words]
        return [dataset.scanner(filter=" OR ".join(each), use_scalar_index=False) for each in tests]

    def is_asked(self, scan: LanceScanner) -> bool:
        return "MatchQuery" in scan.explain_plan()


class _Vectors(IndexContract):
    """Indices of vectors, whose candidates are compared exactly."""

    kind: ClassVar[Any]
    more: ClassVar[dict[str, Any]] = {}
    metric: ClassVar[Any] = "l2"

    def rows(self, first: int, count: int) -> pa.Table:
        ids = range(first, first + count)
        vectors = [[float((n * 37 + at * 11) % 101 + n / 1000) for at in range(8)] for n in ids]
        kind = pa.list_(pa.float32(), _DIMENSION)
        return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(vectors, kind)})

    def build(self, dataset: LanceDataset, name: str) -> None:
        dataset.create_index(
            "v", self.kind, name, metric=self.metric, num_partitions=2, **self.more
        )

    def scans(self, dataset: LanceDataset, *, uses_index: bool) -> Sequence[LanceScanner]:
        nearest = {"column": "v", "k": 5, "metric": self.metric, "use_index": uses_index}
        nearest |= {"nprobes": 2, "refine_factor": 40} if uses_index else {}
        queries = ([50.0] * _DIMENSION, [float(n) for n in range(_DIMENSION)])
        return [dataset.scanner(nearest={"q": q, **nearest}) for q in queries]


class TestIvfFlat(_Vectors):
    kind = "IVF_FLAT"


class TestIvfSq(_Vectors):
    kind = "IVF_SQ"


class TestIvfPq(_Vectors):
    kind, more = "IVF_PQ", {"num_sub_vectors": 2, "num_bits": 4}


class TestIvfRq(_Vectors):
    kind = "IVF_RQ"


class TestIvfHnswFlat(_Vectors):
    kind, metric = "IVF_HNSW_FLAT", "cosine"


class TestIvfHnswSq(_Vectors):
    kind = "IVF_HNSW_SQ"


class TestIvfHnswPq(_Vectors):
    kind, more = "IVF_HNSW_PQ", {"num_sub_vectors": 2, "num_bits": 4}
