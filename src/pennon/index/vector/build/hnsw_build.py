"""The graph of a partition: which rows are near which, level by level.

Rows are looked at as their codes stand for them.  Of equal rows the first one is linked with its neighbours, and the
others are linked with it.  Each row can be reached from each other one.  Row 0 is on the highest level, for releases up
to 1.0.4 begin there whatever the entry point is said to be.

Source: reference index-vector, 2.6.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.thread_places import processors
from pennon.core.thread_pools import PoolSpec, map_all
from pennon.index.kernels.vectors.hnsw_build import Growth
from pennon.index.kernels.vectors.hnsw_reach import connect_graph, first_equal_rows
from pennon.index.vector.file_settings import json_text
from pennon.index.vector.kmeans import BLOCK_ROWS
from pennon.index.vector.model import Coded, Model
from pennon.index.vector.quantizers.sq import ScalarCoder
from pennon.index.vector.rows import Floats, Matrix, as_floats
from pennon.index.vector.settings import Graph

FIELDS: Final = (
    pa.field("__vector_id", pa.uint32()),
    pa.field("__neighbors", pa.list_(pa.uint32())),
    pa.field("_distance", pa.list_(pa.float32())),
)
"""The columns of ``index.idx``: nodes by the numbers of their rows in the partition."""
_LINE: Final = 64
_CODES_WIDTH: Final = 1 << 15
_SHARED_ROWS: Final = 1 << 12
"""Graphs of so many rows are worked on by as many threads as there are processors."""
_POOL: Final = PoolSpec("graphs")
_HALF_BITS: Final = 4
_BRANCHES_SHARE: Final = 4
"""One in so many of the ``m`` links of a row may lead to rows that are equal to it."""


@dataclass(frozen=True, slots=True, eq=False)
class GrownGraph:
    """The rows of a graph, and where its levels begin."""

    batch: pa.RecordBatch
    said: str


def grown(model: Model, coded: Coded) -> GrownGraph:
    """Return the graph of the rows of a partition, whose codes are row by row."""
    settings = model.settings.graph or Graph()
    count = len(coded.rows)
    if not count:
        return GrownGraph(pa.RecordBatch.from_pylist([], pa.schema(FIELDS)), "")
    space = _Space.of(model, coded)
    m, few = settings.m, max(settings.m // _BRANCHES_SHARE, 1)
    firsts = np.empty(count, np.int32)
    first_equal_rows(space.kind, space.rows, firsts)
    levels = _levels(firsts, settings, model.settings.seed)
    starts = np.cumsum(levels, dtype=np.int64) - levels
    counts, nodes, far = _slots(count, 2 * m)
    upper_counts, upper_nodes, upper_far = _slots(max(int(levels.sum(dtype=np.int64)), 1), m)
    workers = processors() if count >= _SHARED_ROWS else 1
    growth = Growth(
        space.kind,
        space.rows,
        _spare(firsts, few),
        levels,
        starts,
        m,
        settings.ef_construction,
        counts,
        nodes,
        far,
        upper_counts,
        upper_nodes,
        upper_far,
        workers,
    )
    while growth.next_block():
        map_all(growth.find, range(workers), _POOL)
        map_all(growth.link, range(workers), _POOL)
    connect_graph(space.kind, space.rows, firsts, few, counts, nodes, far)
    batches = [_batch(np.arange(count), counts, nodes, far, space.factor)]
    offsets = [0, count]
    for level in range(1, settings.max_level):
        on = np.flatnonzero(levels >= level)
        at = starts[on] + level - 1
        batches.append(_batch(on, upper_counts[at], upper_nodes[at], upper_far[at], space.factor))
        offsets.append(offsets[-1] + len(on))
    params = {
        "max_level": settings.max_level,
        "m": m,
        "ef_construction": settings.ef_construction,
        "prefetch_distance": 2,
    }
    said = {"entry_point": 0, "params": params, "level_offsets": offsets}
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return GrownGraph(whole, json_text(said))


class _Apart(IntEnum):
    """Distance kinds: the numbers of `pennon.index.kernels.vectors.hnsw_build`."""

    SQUARES = 0
    PRODUCTS = 1
    CODE_SQUARES = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Space:
    """Rows as they are compared with one another; their distances are what is found times ``factor``."""

    kind: _Apart
    rows: npt.NDArray[np.uint8]
    factor: float = 1.0

    @classmethod
    def of(cls, model: Model, coded: Coded) -> _Space:
        """Return the codes themselves where they are as far from one another as what they stand for."""
        is_product = model.settings.metric.is_product
        is_narrow = coded.columns[0].shape[1] <= _CODES_WIDTH
        if model.settings.quantizer == "SQ" and not is_product and is_narrow:
            return cls(_Apart.CODE_SQUARES, _padded(coded.columns[0]), ScalarCoder(model).step ** 2)
        kind = _Apart.PRODUCTS if is_product else _Apart.SQUARES
        return cls(kind, _padded(as_decoded(model, coded)))


def as_decoded(model: Model, coded: Coded) -> Floats:
    """Return the vectors that codes stand for; of residuals these, for what they lack is the same for all."""
    settings = model.settings
    if settings.quantizer == "SQ":
        coder, (codes,) = ScalarCoder(model), coded.columns
        rows = np.empty(codes.shape, np.float32)
        for start in range(0, len(codes), BLOCK_ROWS):
            some = slice(start, start + BLOCK_ROWS)
            rows[some] = coder.decode((codes[some],))
        return rows
    if settings.quantizer == "FLAT" or model.codebook is None:
        return as_floats(coded.columns[0])
    (codes,) = coded.columns
    if settings.bits == _HALF_BITS:
        halves = np.stack([codes & 15, codes >> _HALF_BITS], axis=2)
        codes = halves.reshape(len(codes), -1)
    words = model.codebook[np.arange(settings.sub_vectors)[None], codes]
    return np.ascontiguousarray(words.reshape(len(codes), -1), np.float32)


def _padded(rows: Matrix) -> npt.NDArray[np.uint8]:
    """Return the bytes of rows as kernels take them: each begins where a line of the processor's cache does."""
    width = rows.shape[1] * rows.itemsize
    space = np.zeros(len(rows) * (width + -width % _LINE) + _LINE, np.uint8)
    start = -space.ctypes.data % _LINE
    padded = space[start : len(space) - _LINE + start].reshape(len(rows), -1)
    padded[:, :width] = np.ascontiguousarray(rows).view(np.uint8)
    return padded


def _levels(firsts: npt.NDArray[np.int32], settings: Graph, seed: int) -> npt.NDArray[np.uint8]:
    """Return the greatest level of each row: one of m is on each higher level, but no row that has a first equal."""
    random = 1 - np.random.default_rng(seed).random(len(firsts))
    found = np.floor(-np.log(random) / np.log(settings.m))
    levels: npt.NDArray[np.uint8] = np.minimum(found, settings.max_level - 1).astype(np.uint8)
    levels[firsts != np.arange(len(firsts))] = 0
    levels[0] = levels.max()
    return levels


def _spare(firsts: npt.NDArray[np.int32], few: int) -> npt.NDArray[np.int32]:
    """Return how many slots of each row are for rows that are equal to it; -1 for those that are equal to a first."""
    counts = np.bincount(firsts, minlength=len(firsts)) - 1
    spare: npt.NDArray[np.int32] = np.clip(counts, -1, few).astype(np.int32)
    return spare


def _slots(count: int, most: int) -> tuple[Any, Any, Any]:
    return (
        np.zeros(count, np.int32),
        np.empty((count, most), np.int32),
        np.empty((count, most), np.float32),
    )


def _batch(ids: Any, counts: Any, nodes: Any, far: Any, factor: float) -> pa.RecordBatch:
    filled = np.arange(nodes.shape[1])[None] < counts[:, None]
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    neighbours = pa.array(nodes[filled].astype(np.uint32))
    arrays = [
        pa.array(ids.astype(np.uint32)),
        pa.ListArray.from_arrays(offsets, neighbours),
        pa.ListArray.from_arrays(offsets, pa.array(far[filled] * np.float32(factor))),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(FIELDS))
