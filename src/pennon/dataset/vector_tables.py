"""Tables of vectors made of what Python has (pylance's ``lance.vector``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import ArgumentError
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
