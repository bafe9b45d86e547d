"""The arguments of a vector search (``nearest``), checked.

Names, defaults and refusals are those of pylance 14.0.2.  Source: reference index-vector, 6.4.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from pennon.core.fast_dataclass import dataclass
from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError, ColumnTypeError
from pennon.index.vector.base import Probes
from pennon.index.vector.distance import is_element
from pennon.index.vector.metric import ALL_PARTITIONS, Metric, metric_of
from pennon.scan.plan.row_search import AddedColumns
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Schema
from pennon.schema.project import resolve, sorted_paths
from pennon.schema.types import BFLOAT16, storage_type

QUERY_INDEX: Final = "query_index"
"""The column that says which of many queries a row is near to."""
DISTANCE: Final = "_distance"
_ONE: Final = {DISTANCE: pa.field(DISTANCE, pa.float32())}
_MANY: Final = {**_ONE, QUERY_INDEX: pa.field(QUERY_INDEX, pa.int32(), nullable=False)}
_ADDED: Final = {
    (is_batch, is_scored): AddedColumns(
        _MANY if is_batch else _ONE,
        (QUERY_INDEX,) if is_batch else (),
        (DISTANCE,) if is_scored else (),
    )
    for is_batch in (False, True)
    for is_scored in (False, True)
}
"""The columns that a search adds: by whether it has many queries, and whether distances are shown."""
_MODES: Final = ("fast", "normal", "accurate")
VECTOR_COLUMN: Final[Key[VectorColumn]] = Key("vector column")


@dataclass(frozen=True, slots=True)
class VectorColumn:
    """A column of vectors: its path, and what a vector is.  ``is_multi``: a row is a list of them."""

    path: str
    field_id: int
    dimension: int
    element: pa.DataType
    is_multi: bool

    @classmethod
    def of(cls, schema: Schema, path: Any) -> VectorColumn:
        """Find a column.  Raises ArgumentError if it is not there, ColumnTypeError if it has no vectors."""
        if not isinstance(path, str):
            message = f"the column of a search is named by text, got {type(path).__name__}"
            raise TypeError(message)
        try:
            field = resolve(schema, path)[-1]
        except ArgumentError:
            hint = did_you_mean(path, sorted_paths(schema))
            message = f"Embedding column {path} is not in the dataset{hint}"
            raise ArgumentError(message) from None
        kind = storage_type(field_to_arrow(field).type)
        is_multi = t.is_list(kind) or t.is_large_list(kind)
        vector = storage_type(kind.value_type) if is_multi else kind
        element = storage_type(vector.value_type) if t.is_fixed_size_list(vector) else None
        if element is None or not is_element(element):
            message = f"Query column {path} must be a vector. Got {kind}."
            raise ColumnTypeError(message)
        halves = field.children[0] if is_multi and field.children else field
        if t.is_fixed_size_binary(element) and BFLOAT16 not in halves.logical_type:
            message = f"Query column {path} must be a vector. Got {kind}."
            raise ColumnTypeError(message)
        return cls(path, field.id, vector.list_size, element, is_multi)


def column_of(snapshot: Snapshot, path: Any) -> VectorColumn:
    """Return a column of a version, found now or before; raises as `VectorColumn.of` does."""
    find = partial(VectorColumn.of, snapshot.manifest.schema, path)
    return snapshot.remember(VECTOR_COLUMN, find, path) if isinstance(path, str) else find()


def vector_columns(snapshot: Snapshot) -> list[str]:
    """Return the columns of vectors of a version."""
    found = []
    for field in snapshot.manifest.schema.fields:
        try:
            found.append(column_of(snapshot, field.name).path)
        except (ArgumentError, ColumnTypeError):
            continue
    return found


@dataclass(frozen=True, slots=True, eq=False)
class VectorSearch:
    """A search for the rows whose vectors are nearest to a query; `pennon.scan.search.nearest` runs it.

    ``queries`` are rows; several are a *batch*, each answered by itself, unless the rows of the column are lists of
    vectors: then they are one query.  ``k`` None: as many as the limit says, else 10.  ``probes`` are what was
    asked for, None where nothing was.  ``effort`` 0 to 1: where to begin between the least number of partitions
    and all.  ``lower`` to ``upper``: the distances that rows may have, without the upper one.
    ``prefilter``: the condition comes before the search.  ``is_fast``: rows that no index covers are left out.
    ``is_scored``: distances are shown, even if they are not named among the columns.
    """

    column: VectorColumn
    queries: npt.NDArray[np.float64]
    is_batch: bool = False
    k: int | None = None
    metric: Metric | None = None
    minimum: int | None = None
    maximum: int | None = None
    ef: int | None = None
    effort: float | None = None
    refine_factor: int | None = None
    uses_index: bool = True
    lower: float | None = None
    upper: float | None = None
    prefilter: bool = False
    is_fast: bool = False
    is_scored: bool = True
    segments: frozenset[str] | None = None
    """The index segments to search, by their UUIDs; None: all of an index."""

    @property
    def source(self) -> str:
        """See `pennon.scan.plan.row_search.RowSearch`."""
        return "nearest:NearestSource"

    @property
    def added(self) -> AddedColumns:
        """See `pennon.scan.plan.row_search.RowSearch`."""
        return _ADDED[self.is_batch, self.is_scored]

    def probes(self, k: int, metric: Metric) -> Probes:
        """Return how much of an index is searched for ``k`` rows."""
        begin = next(number for most, number in metric.probes if k <= most)
        if self.effort is not None and self.effort <= 0.5:
            begin = math.ceil(begin ** (2 * self.effort))
        elif self.effort is not None:
            begin = ALL_PARTITIONS
        least = max(begin, self.minimum or 1)
        if self.maximum is not None:
            least = min(least, self.maximum)
        return Probes(least, self.maximum, self.ef)


def vector_search(
    snapshot: Snapshot,
    column: str,
    q: Any,
    k: int | None = None,
    metric: str | None = None,
    nprobes: int | None = None,
    minimum_nprobes: int | None = None,
    maximum_nprobes: int | None = None,
    refine_factor: int | None = None,
    use_index: Any = True,
    ef: int | None = None,
    query_parallelism: int | None = None,
    approx_mode: str = "normal",
    distance_range: tuple[float | None, float | None] | None = None,
    search_effort: float | None = None,
) -> VectorSearch:
    """Return the search that pylance's arguments ask for.

    ``query_parallelism`` and ``approx_mode`` change nothing here but what is refused: a search is spread over all
    processors, and distances of codes are summed as accurately as they can be.

    Raises ArgumentError or TypeError for what makes no sense, ColumnTypeError for a column without vectors.
    """
    queries, are_many = queries_of(q)
    found = column_of(snapshot, column)
    if queries.shape[1] != found.dimension:
        message = f"Query vector size {queries.shape[1]} does not match index column size {found.dimension}"
        raise ArgumentError(message)
    is_batch = are_many and not found.is_multi
    if is_batch and any(each.name == QUERY_INDEX for each in snapshot.manifest.schema.fields):
        message = (
            f"batch nearest neighbor search cannot be used on datasets with column '{QUERY_INDEX}'"
        )
        raise ArgumentError(message)
    if search_effort is not None:
        nprobes = None
    _check_least(
        (k, 1, "Nearest-K must be > 0"),
        (nprobes, 1, "Nprobes must be > 0"),
        (minimum_nprobes, 0, "Minimum nprobes must be >= 0"),
        (maximum_nprobes, 0, "Maximum nprobes must be >= 0"),
    )
    minimum = nprobes if minimum_nprobes is None else minimum_nprobes
    maximum = nprobes if maximum_nprobes is None else maximum_nprobes
    if minimum == 0:
        raise ArgumentError("minimum_nprobes must be >= 1")
    if maximum is not None and (minimum or 1) > maximum:
        raise ArgumentError("minimum_nprobes must be <= maximum_nprobes")
    _check_least((refine_factor, 1, "Refine factor must be 1 or more"), (ef, 1, "ef must be > 0"))
    if query_parallelism is not None and operator.index(query_parallelism) < -1:
        raise ArgumentError("query_parallelism must be >= -1")
    if approx_mode not in _MODES:
        message = f"approx_mode must be one of 'fast', 'normal', or 'accurate', got {approx_mode!r}"
        raise ArgumentError(message)
    if search_effort is not None and not 0 <= float(search_effort) <= 1:
        message = f"search_effort must be finite and in [0, 1], got {search_effort}"
        raise ArgumentError(message)
    if not isinstance(use_index, bool):
        message = f"use_index is True or False, got {use_index!r}"
        raise TypeError(message)
    lower, upper = _range_of(distance_range)
    return VectorSearch(
        found,
        queries,
        is_batch,
        None if k is None else int(k),
        None if metric is None else metric_of(metric),
        minimum,
        maximum,
        ef,
        None if search_effort is None else float(search_effort),
        refine_factor,
        use_index,
        lower,
        upper,
    )


def _check_least(*given: tuple[int | None, int, str]) -> None:
    """Raise ArgumentError, with a message of its own, for the first number that is less than it may be."""
    for value, least, message in given:
        if value is not None and int(value) < least:
            raise ArgumentError(f"{message} but got {value}")


def _range_of(given: Any) -> tuple[float | None, float | None]:
    if given is None:
        return None, None
    if len(given) != 2:
        raise ArgumentError("distance_range must be a tuple of (lower_bound, upper_bound)")
    for each in given:
        if each is not None and not isinstance(each, (int, float, np.number)):
            message = f"the bounds of distance_range are numbers, got {each!r}"
            raise TypeError(message)
    lower, upper = given
    return (None if lower is None else float(lower)), (None if upper is None else float(upper))


# --- queries --------------------------------------------------------------------------------------


_ARROW: Final = (pa.Array, pa.ChunkedArray, pa.Scalar)


def queries_of(q: Any) -> tuple[npt.NDArray[np.float64], bool]:
    """Return a query, or several, as rows, and whether it was given as several.

    Raises TypeError for what is no vector, ArgumentError for vectors of different lengths.
    """
    if hasattr(q, "__array__") and not isinstance(q, (np.ndarray, np.generic, *_ARROW)):
        q = np.asarray(q)  # a tensor of torch, or of others
    if isinstance(q, np.ndarray) and q.dtype.kind in "fiu" and q.size:
        if q.ndim == 1:
            return q.astype(np.float64)[np.newaxis], False
        if q.ndim == 2:
            return q.astype(np.float64), True
    rows = _rows_of(q)
    if rows is None:
        return _vector(q)[np.newaxis], False
    vectors = [_vector(each) for each in rows]
    for each in vectors:
        if len(each) != len(vectors[0]):
            message = f"All query vectors must have the same length, but got {len(vectors[0])} and {len(each)}"
            raise ArgumentError(message)
    return np.stack(vectors), True


def _rows_of(q: Any) -> Sequence[Any] | None:
    """Return the vectors that a query is made of; None if it is one vector."""
    if isinstance(q, (pa.Array, pa.ChunkedArray)):
        kind = storage_type(q.type)
        is_nested = t.is_fixed_size_list(kind) or t.is_list(kind) or t.is_large_list(kind)
        return [each.values for each in q] if is_nested and len(q) else None
    if isinstance(q, np.ndarray) and q.ndim > 1 and len(q):
        return list(q)
    if isinstance(q, (list, tuple)) and q:
        is_array = hasattr(q[0], "__array__") and not isinstance(q[0], np.generic)
        if is_array and not isinstance(q[0], _ARROW):
            return [np.asarray(each) for each in q] if np.ndim(q[0]) else None
        if isinstance(q[0], (list, tuple, pa.Array)):
            return list(q)
    return None


def _vector(q: Any) -> npt.NDArray[np.float64]:
    if isinstance(q, pa.ExtensionScalar):
        q = q.value
    if isinstance(q, (pa.FixedSizeListScalar, pa.ListScalar)):
        q = q.values
    if isinstance(q, (pa.Array, pa.ChunkedArray)):
        if not (t.is_floating(q.type) or t.is_integer(q.type)):
            message = (
                f"query vector must be list-like or pa.FloatingPointArray but received {q.type}"
            )
            raise TypeError(message)
        q = q.to_numpy(zero_copy_only=False) if isinstance(q, pa.Array) else q.to_numpy()
    elif isinstance(q, (str, bytes, dict)) or not (
        isinstance(q, (list, tuple)) or hasattr(q, "__array__")
    ):
        name = "string" if isinstance(q, str) else type(q).__name__
        message = f"query vector must be list-like or pa.FloatingPointArray but received {name}"
        raise TypeError(message)
    try:
        found = np.asarray(q).astype(np.float64)
    except (TypeError, ValueError) as error:
        message = f"query vectors should be an array of floats: {error}"
        raise ArgumentError(message) from None
    if found.ndim != 1:
        message = f"a query vector has one dimension, got an array of {found.ndim}"
        raise ArgumentError(message)
    return found
