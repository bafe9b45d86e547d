"""A graph of vectors that stands alone (pylance's ``lance.util.HNSW``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from pennon.core.cached_property import cached_property
from pennon.errors import ArgumentError
from pennon.file.facade import LanceFileWriter
from pennon.index.vector.build.hnsw_build import GrownGraph, grown
from pennon.index.vector.layout import GRAPHS
from pennon.index.vector.metric import L2
from pennon.index.vector.model import Coded, Model
from pennon.index.vector.rows import usable
from pennon.index.vector.settings import Graph, VectorSettings


class HNSW:
    """A graph of vectors by their L2 distance: each is linked with vectors near to it, level by level.

    `LanceDataset.create_index` makes and searches such graphs; this class makes one of vectors that are in no table.
    The same vectors give the same graph.

    >>> import numpy as np, tempfile
    >>> from pennon.util import HNSW
    >>> rows = np.random.default_rng(1).normal(size=(100, 8)).astype(np.float32)
    >>> lists = pa.FixedSizeListArray.from_arrays(rows.ravel(), 8)
    >>> graph = HNSW.build(iter([lists]), m=8)
    >>> len(graph.vectors())
    100
    >>> graph.to_lance_file(tempfile.mkdtemp() + "/graph.lance")
    """

    def __init__(self, vectors: pa.FixedSizeListArray[Any], graph: Graph) -> None:
        self._vectors = vectors
        self._settings = graph

    @classmethod
    def build(
        cls,
        vectors_array: Iterable[pa.Array[Any]],
        max_level: int = 7,
        m: int = 20,
        ef_construction: int = 100,
    ) -> Self:
        """Return the graph of the vectors of some arrays, fixed-size lists of floats.

        ``m``: links of a vector on a level, twice as many on the lowest; ``ef_construction``: candidates that are
        looked at to find them; ``max_level``: levels at most.  Raises ArgumentError for no vectors, for those of
        several types, and for NULLs and vectors with a NaN or an infinity.
        """
        arrays = list(vectors_array)
        kinds = {each.type for each in arrays}
        if len(kinds) != 1:
            message = f"a graph is of vectors of one type, at least one array; got {sorted(map(str, kinds))}"
            raise ArgumentError(message)
        (kind,) = kinds
        if not t.is_fixed_size_list(kind) or not t.is_floating(kind.value_type):
            message = f"a graph is of fixed-size lists of floats, got {kind}"
            raise ArgumentError(message)
        for name, value, least in (
            ("m", m, 2),
            ("ef_construction", ef_construction, 1),
            ("max_level", max_level, 1),
        ):
            if value < least:
                message = f"{name} is {value}, which must be at least {least}"
                raise ArgumentError(message)
        made = cls(pa.concat_arrays(arrays), Graph(m, ef_construction, max_level))
        made._grown  # noqa: B018 - wrong vectors are found now
        return made

    @cached_property
    def _grown(self) -> GrownGraph:
        count = len(self._vectors)
        rows, numbers = usable(self._vectors, np.arange(count, dtype=np.uint64), L2)
        if len(numbers) != count or not count:
            message = f"a graph is of vectors of numbers; {count - len(numbers)} of {count} are NULL, or have a NaN, an infinity or a NULL"
            raise ArgumentError(message)
        settings = VectorSettings("IVF_HNSW_FLAT", L2, num_partitions=1, graph=self._settings)
        model = Model(settings, np.zeros((1, rows.shape[1]), rows.dtype))
        return grown(model, Coded(numbers, (rows,)))

    def vectors(self) -> pa.FixedSizeListArray[Any]:
        """Return the vectors, in the order given."""
        return self._vectors

    def to_lance_file(
        self,
        file_path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """Write the graph to a Lance file: a row for each vector and level.

        It has the columns ``__vector_id``, ``__neighbors`` and ``_distance`` (squares of L2), and in its metadata,
        under ``lance:hnsw``, where levels begin.
        """
        graph = self._grown
        options = None if storage_options is None else dict(storage_options)
        with LanceFileWriter(file_path, graph.batch.schema, storage_options=options) as writer:
            writer.add_schema_metadata(GRAPHS, graph.said)
            writer.write_batch(graph.batch)
