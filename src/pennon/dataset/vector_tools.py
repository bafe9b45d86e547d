"""Make tables of vectors, and check that an index of vectors finds them (pylance's ``lance.vector`` and ``lance.util``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pennon.errors import ArgumentError
from pennon.index.vector.metric import L2
from pennon.index.vector.rows import usable

if TYPE_CHECKING:
    from pennon.dataset.lance_dataset import LanceDataset
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from pennon.index.vector.rows import as_array


def vec_to_table(
    data: Mapping[Any, Any] | Sequence[Any] | npt.NDArray[Any],
    names: str | Sequence[str] | None = None,
    ndim: int | None = None,
    check_ndim: bool = True,
) -> pa.Table:
    """Return a table of vectors: a column of fixed-size lists of float32.

    ``data``: a matrix with a vector a row, a list of vectors, or a mapping from ids to vectors, which gets a column of
    the ids, too.  ``names``: of the column (``vector``), or of both (``id``, ``vector``).  ``ndim``: how many numbers
    a vector has, by default as many as the first; ``check_ndim=False`` cuts all numbers into vectors of that length,
    without a look at each.

    Raises ArgumentError for vectors of other lengths and for other names, UnsupportedError's base
    ``NotImplementedError`` for data of another kind.

    >>> from pennon.vector import vec_to_table
    >>> vec_to_table([[1.0, 2.0], [3.0, 4.0]]).schema
    vector: fixed_size_list<item: float>[2]
      child 0, item: float
    >>> vec_to_table({"a": [1.0], "b": [2.0]}, names=["key", "vec"]).column_names
    ['key', 'vec']
    """
    if isinstance(data, Mapping):
        chosen = _names(names, ["id", "vector"])
        vectors = list(data.values())
        columns: list[Any] = [pa.array(list(data)), _column(vectors, ndim, check=check_ndim)]
    elif isinstance(data, (list, np.ndarray)):
        chosen = _names(names, ["vector"])
        columns = [_column(data, ndim, check=check_ndim)]
    else:
        message = f"data must be a dict, a list or an array, got {type(data).__name__}"
        raise NotImplementedError(message)
    return pa.Table.from_arrays(columns, names=chosen)


def _names(names: str | Sequence[str] | None, default: list[str]) -> list[str]:
    found = default if names is None else [names] if isinstance(names, str) else list(names)
    if len(found) != len(default):
        message = f"names are those of the columns {', '.join(default)}, got {found}"
        raise ArgumentError(message)
    return found


def _column(vectors: Any, ndim: int | None, *, check: bool) -> pa.Array[Any]:
    if ndim is None:
        if not len(vectors):
            message = "no vectors, so their length has to be told: ndim"
            raise ArgumentError(message)
        ndim = len(vectors[0])
    if check:
        _check(vectors, ndim)
    flat = np.array(vectors, np.float32).ravel()
    if not ndim or flat.size % ndim:
        message = f"{flat.size} numbers are no vectors of {ndim}"
        raise ArgumentError(message)
    return as_array(flat.reshape(-1, ndim))


def _check(vectors: Iterable[Any], ndim: int) -> None:
    for each in vectors:
        if len(each) != ndim:
            message = f"Expected {ndim} dimensions but got {len(each)} for {each}"
            raise ArgumentError(message)


# --- does an index find what it holds -------------------------------------------------------------

_SAME = 1e-6
_AT_ONCE = 1024


def validate_vector_index(
    dataset: LanceDataset,
    column: str,
    refine_factor: int = 5,
    sample_size: int | None = None,
    pass_threshold: float = 1.0,
) -> None:
    """Search an index for vectors of its table; each must be found at distance 0.

    ``sample_size``: so many random rows, by default all.  NULLs, and vectors with a NaN, are passed over.
    Raises ArgumentError where a share below ``pass_threshold`` is found.

    >>> import numpy as np, pennon, tempfile
    >>> from pennon.util import validate_vector_index
    >>> from pennon.vector import vec_to_table
    >>> vectors = np.random.default_rng(1).normal(size=(100, 8))
    >>> table = pennon.write_dataset(vec_to_table(vectors), tempfile.mkdtemp() + "/t.lance")
    >>> validate_vector_index(table.create_index("vector", "IVF_FLAT", num_partitions=2), "vector")
    """
    rows = (
        dataset.to_table(columns=[column])
        if sample_size is None
        else dataset.sample(sample_size, columns=[column])
    )
    found = total = 0
    for chunk in rows.column(0).chunks:
        vectors, _ = usable(chunk, np.arange(len(chunk), dtype=np.uint64), L2)
        total += len(vectors)
        for start in range(0, len(vectors), _AT_ONCE):
            asked = {
                "column": column,
                "q": vectors[start : start + _AT_ONCE],
                "k": 1,
                "nprobes": 1,
                "refine_factor": refine_factor,
            }
            near = dataset.to_table(columns=["_distance"], nearest=asked).column("_distance")
            found += int((np.abs(near.to_numpy()) < _SAME).sum())
    if found < pass_threshold * total:
        message = f"Vector index failed sanity check, only {found}/{total} passed"
        raise ArgumentError(message)
