"""The settings of a new vector index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pennon.index.vector.kind import KIND
from pennon.index.vector.metric import L2, Metric

KINDS: Final = KIND.user_names
"""The kinds of indices of vectors, by the names that users call them."""

SAMPLE_RATE: Final = 256
"""Vectors that a centroid is trained on."""
MOST_PARTITIONS: Final = 4096
_PARTITION_ROWS: Final = {"FLAT": 4096, "PQ": 8192, "SQ": 8192, "RQ": 8192}
_GRAPH_ROWS: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of each partition: neighbours of a node, candidates while it is built, and levels at most."""

    m: int = 20
    ef_construction: int = 150
    max_level: int = 7


@dataclass(frozen=True, slots=True)
class VectorSettings:
    """The kind of an index and how it is trained; ``sub_vectors`` and ``bits`` are of its codes.

    ``is_plain``: codes are stored row by row, as a half-made index of pylance is.
    """

    kind: str
    metric: Metric = L2
    num_partitions: int | None = None
    partition_rows: int | None = None
    sub_vectors: int = 0
    bits: int = 8
    sample_rate: int = SAMPLE_RATE
    max_iters: int = 50
    graph: Graph | None = None
    is_plain: bool = False
    seed: int = 42

    @property
    def quantizer(self) -> str:
        """Return what codes vectors: FLAT, PQ, SQ or RQ."""
        return self.kind.rpartition("_")[2]

    @property
    def words(self) -> int:
        """Return the number of code words that a sub-vector has."""
        return 1 << self.bits

    def partitions(self, rows: int) -> int:
        """Return how many partitions an index of so many rows gets.

        Source: reference index-vector, 4.2.
        """
        wanted = self.num_partitions
        if wanted is None:
            size = self.partition_rows or (
                _GRAPH_ROWS if self.graph is not None else _PARTITION_ROWS[self.quantizer]
            )
            wanted = min(max(rows // size, 1), MOST_PARTITIONS)
        most = max(rows // self.sample_rate, 1) if self.quantizer == "PQ" else rows
        return max(min(wanted, most), 1)
