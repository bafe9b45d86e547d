"""The graph of a partition: HNSW, levels of nodes with their neighbours.

::

    level 2        0 ------------- 7            a node of each level is on those below it, too
    level 1        0 --- 3 ------- 7 -- 8
    level 0        0 1 2 3 4 5 6 7 8 9          node n is row n of the partition's codes

A walk goes down from the entry, on each level to the node that is nearest, and at the bottom it is wider.
Source: reference index-vector, 2.6 and 3.3.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.memory import kept
from pennon.errors import FormatError
from pennon.index.kernels.vectors.hnsw_search import check_graph
from pennon.index.vector.file_settings import Settings

COLUMNS: Final = ("__vector_id", "__neighbors")
_MOST_LEVELS: Final = 1 << 10


@dataclass(frozen=True, slots=True, eq=False)
class GraphPlan:
    """The entry point of a graph, and the rows on each of its levels."""

    entry: int
    levels: Int64Array

    @classmethod
    def parse(cls, settings: Settings, rows: int) -> GraphPlan:
        """Return what the file says of the graph of a partition.  Raises FormatError."""
        borders = settings.values.get("level_offsets")
        borders = borders if isinstance(borders, list) else []
        is_right = 2 <= len(borders) < _MOST_LEVELS
        if not is_right or not all(type(each) is int and 0 <= each <= rows for each in borders):
            message = f"{settings.path}: the levels of a graph of {rows} rows are {borders!r:.80}"
            raise FormatError(message)
        return cls(settings.number("entry_point", default=0), np.array(borders, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A graph, checked: see `check_graph` for its arrays."""

    nodes: npt.NDArray[np.uint32]
    levels: Int64Array
    ends: Int64Array
    neighbours: npt.NDArray[np.uint32]
    entry: int

    @property
    def size_bytes(self) -> int:
        """Return how much memory it takes."""
        return self.nodes.nbytes + self.ends.nbytes + self.neighbours.nbytes

    @classmethod
    def of(cls, columns: list[pa.Array[Any]], plan: GraphPlan, count: int) -> Graph:
        """Return the graph over ``count`` rows.  Raises FormatError if one names nodes that are not there."""
        nodes, lists = columns
        is_list = pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type)
        if not is_list or lists.null_count or lists.values.null_count:
            message = f"the neighbours of a graph's nodes are {lists.type}, or NULL"
            raise FormatError(message)
        last = int(plan.levels[-1])  # what comes behind is not on any level, and never walked
        numbers, lists = _numbers(nodes)[:last], lists[:last]
        order = _ascending(numbers, plan.levels)
        if order is not None:
            numbers, lists = numbers[order], lists.take(pa.array(order))
        ends = np.asarray(lists.offsets.to_numpy()).astype(np.int64)
        near = _numbers(lists.values.slice(int(ends[0]), int(ends[-1] - ends[0])))
        entry = min(plan.entry, (1 << 32) - 1)
        made = cls(numbers, plan.levels, ends - ends[0], near, entry)
        check_graph(count, made.nodes, made.levels, made.ends, made.neighbours, entry)
        return made


def _ascending(nodes: npt.NDArray[np.uint32], levels: Int64Array) -> Int64Array | None:
    """Return the order in which the nodes of each level ascend; None if they do, as newer releases write them."""
    if (levels[1:] < levels[:-1]).any() or levels[0] or len(nodes) != levels[-1]:
        return None  # which `check_graph` refuses
    falls = np.flatnonzero(nodes[1:] < nodes[:-1]) + 1
    if np.isin(falls, levels).all():
        return None
    return np.lexsort((nodes, np.repeat(np.arange(len(levels) - 1), np.diff(levels))))


def _numbers(column: pa.Array[Any]) -> npt.NDArray[np.uint32]:
    if column.type not in {pa.uint32(), pa.uint64()} or column.null_count:
        message = f"the nodes of a graph are {column.type} with {column.null_count} NULLs"
        raise FormatError(message)
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype == np.uint64 and len(values) and int(values.max()) >= 1 << 32:
        message = "the nodes of a graph have numbers beyond 32 bits"
        raise FormatError(message)
    if values.dtype == np.uint64:
        return values.astype(np.uint32)
    buffer = column.buffers()[1]
    return kept(values, 0 if buffer is None else buffer.size)
