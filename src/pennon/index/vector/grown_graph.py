"""The graph of a partition: which rows are near which, level by level.

Rows are looked at as their codes stand for them.  Row 0 is on the highest level, for releases up to 1.0.4 begin
there whatever the entry point is said to be.

Source: reference index-vector, 2.6.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.kernels.graphs import grow_graph
from pennon.index.vector.coders import ScalarCoder
from pennon.index.vector.kmeans import BLOCK_ROWS
from pennon.index.vector.model import Coded, Model
from pennon.index.vector.rows import Floats, as_floats
from pennon.index.vector.settings import Graph

FIELDS: Final = (
    pa.field("__vector_id", pa.uint32()),
    pa.field("__neighbors", pa.list_(pa.uint32())),
    pa.field("_distance", pa.list_(pa.float32())),
)
"""The columns of ``index.idx``: nodes by the numbers of their rows in the partition."""
_LANES: Final = 16
_HALF_BITS: Final = 4


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
    rows = _padded(as_decoded(model, coded))
    levels = _levels(count, settings, model.settings.seed)
    starts = np.cumsum(levels, dtype=np.int64) - levels
    m = settings.m
    counts, nodes, far = _slots(count, 2 * m)
    upper_counts, upper_nodes, upper_far = _slots(max(int(levels.sum(dtype=np.int64)), 1), m)
    is_product = model.settings.metric == "dot"
    grow_graph(
        rows,
        is_product,
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
    )
    batches = [_batch(np.arange(count), counts, nodes, far)]
    offsets = [0, count]
    for level in range(1, settings.max_level):
        on = np.flatnonzero(levels >= level)
        at = starts[on] + level - 1
        batches.append(_batch(on, upper_counts[at], upper_nodes[at], upper_far[at]))
        offsets.append(offsets[-1] + len(on))
    params = {
        "max_level": settings.max_level,
        "m": m,
        "ef_construction": settings.ef_construction,
        "prefetch_distance": 2,
    }
    said = {"entry_point": 0, "params": params, "level_offsets": offsets}
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    return GrownGraph(whole, json.dumps(said))


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


def _padded(rows: Floats) -> Floats:
    missing = -rows.shape[1] % _LANES
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)))
    return np.ascontiguousarray(rows, np.float32)


def _levels(count: int, settings: Graph, seed: int) -> npt.NDArray[np.uint8]:
    """Return the greatest level of each row: one of m is on each higher level."""
    random = 1 - np.random.default_rng(seed).random(count)
    found = np.floor(-np.log(random) / np.log(settings.m))
    levels: npt.NDArray[np.uint8] = np.minimum(found, settings.max_level - 1).astype(np.uint8)
    levels[0] = levels.max()
    return levels


def _slots(count: int, most: int) -> tuple[Any, Any, Any]:
    return (
        np.zeros(count, np.int32),
        np.empty((count, most), np.int32),
        np.empty((count, most), np.float32),
    )


def _batch(ids: Any, counts: Any, nodes: Any, far: Any) -> pa.RecordBatch:
    filled = np.arange(nodes.shape[1])[None] < counts[:, None]
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    neighbours = pa.array(nodes[filled].astype(np.uint32))
    arrays = [
        pa.array(ids.astype(np.uint32)),
        pa.ListArray.from_arrays(offsets, neighbours),
        pa.ListArray.from_arrays(offsets, pa.array(far[filled])),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(FIELDS))
