"""Metrics of vectors: each is one value with all that is true of it.

==========  ====================================  =========================================
l2          the sum of squared differences        no root is taken
cosine      1 - cos                               NaN where a vector or a query is all zeros
dot         1 - the product                       may be below 0
hamming     the number of bits that differ        of vectors of bytes
==========  ====================================  =========================================

A smaller distance is nearer.  Source: reference index-vector, 0.7, 4.3, 6.3 and 6.5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum
from typing import Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError

ALL_PARTITIONS: Final = (1 << 31) - 1


class DistanceKind(IntEnum):
    """Distance kinds: the numbers of `pennon.index.kernels.vectors.vector_rows`."""

    SQUARES = 0
    PRODUCTS = 1
    SQUARES_64 = 2
    PRODUCTS_64 = 3
    CODE_SQUARES = 4
    CODE_PRODUCTS = 5
    BITS = 6
    TABLES = 7


FLOAT64_KINDS: Final = {
    DistanceKind.SQUARES: DistanceKind.SQUARES_64,
    DistanceKind.PRODUCTS: DistanceKind.PRODUCTS_64,
}
"""By the kind of float32 vectors: that of float64 vectors."""
BOUNDED_KINDS: Final = frozenset({DistanceKind.SQUARES, DistanceKind.PRODUCTS})
"""Kinds of which `Uint8Bounds` tell that most rows are too far away."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Metric:
    """A metric: there is one value of each, which `str` shows by its name.  It pickles as its name.

    ``name`` is written to files, and a user may give it or one of the ``aliases``.  ``number`` is that of messages.
    ``kernel`` is the number of `pennon.index.kernels.vectors.distances`, None where bits are counted.
    """

    name: str
    aliases: tuple[str, ...] = ()
    number: int
    kernel: int | None
    quantizers: frozenset[str] = frozenset({"FLAT", "PQ", "SQ", "RQ"})
    """The quantizers whose codes have distances of it."""
    is_product: bool = False
    """Whether the nearest vector is that with the largest product."""
    is_of_bits: bool = False
    """Whether vectors are bits, eight in a byte."""
    normalises: bool = False
    """Whether an index holds vectors of the length 1."""
    codes_residuals: bool = True
    """Whether PQ codes what is left of a vector without its centroid, or else the vector."""
    centroid_kind: DistanceKind = DistanceKind.SQUARES
    """How an index compares queries with its centroids."""
    row_kind: DistanceKind = DistanceKind.SQUARES
    """How FLAT compares queries with float32 vectors, or with bits."""
    row_start: float = 0.0
    """A constant added to each distance of ``row_kind``."""
    probes: tuple[tuple[float, int], ...] = ((math.inf, ALL_PARTITIONS),)
    """Partitions that a search of up to so many rows begins with."""

    def __str__(self) -> str:
        """Return its name."""
        return self.name

    def __reduce__(self) -> tuple[Callable[[object], Metric], tuple[str]]:
        """Pickle as a name, so that there is one value of each metric in a process."""
        return metric_of, (self.name,)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that a user may give, its own first."""
        return self.name, *self.aliases


L2: Final = Metric(
    name="l2",
    aliases=("euclidean",),
    number=0,
    kernel=0,
    probes=((1, 5), (10, 6), (100, 11), (200, 15), (500, 22), (1000, 29), (math.inf, 98)),
)
COSINE: Final = Metric(
    name="cosine",
    number=1,
    kernel=1,
    normalises=True,
    row_kind=DistanceKind.PRODUCTS,
    row_start=1.0,
    probes=((1, 4), (10, 8), (100, 11), (200, 18), (500, 28), (1000, 34), (math.inf, 104)),
)
DOT: Final = Metric(
    name="dot",
    number=2,
    kernel=2,
    is_product=True,
    codes_residuals=False,
    centroid_kind=DistanceKind.PRODUCTS,
    row_kind=DistanceKind.PRODUCTS,
    row_start=1.0,
)
HAMMING: Final = Metric(
    name="hamming",
    number=3,
    kernel=None,
    quantizers=frozenset({"FLAT"}),
    is_of_bits=True,
    centroid_kind=DistanceKind.BITS,
    row_kind=DistanceKind.BITS,
)

METRICS: Final = (L2, COSINE, DOT, HAMMING)
_BY_NAME: Final = {name: metric for metric in METRICS for name in metric.names}
_BY_NUMBER: Final = {metric.number: metric for metric in METRICS}


def metric_named(name: object) -> Metric | None:
    """Return the metric of a name, in any case; None if there is none."""
    return _BY_NAME.get(str(name).lower())


def metric_numbered(number: int) -> Metric | None:
    """Return the metric of a number of messages; None if there is none."""
    return _BY_NUMBER.get(number)


def metric_of(name: object) -> Metric:
    """Return the metric of a name, in any case.  Raises ArgumentError if there is none."""
    found = metric_named(name)
    if found is None:
        *names, last = _BY_NAME
        message = f"Metric type '{name}' is not supported; there are {', '.join(names)} and {last}"
        raise ArgumentError(message)
    return found


def default_metric(element: pa.DataType) -> Metric:
    """Return the metric of vectors of some type where none is named."""
    return HAMMING if t.is_uint8(element) else L2


def check_metric(metric: Metric, element: pa.DataType) -> None:
    """Raise ArgumentError if vectors of some type have no distance of that metric."""
    if metric.is_of_bits and not (t.is_uint8(element) or t.is_int8(element)):
        message = f"Distance type {metric} does not support {element} vectors, only those of bytes"
        raise ArgumentError(message)
