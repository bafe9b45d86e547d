"""The answer of an embedding model as a column of vectors: float32, of one dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.errors import ArgumentError

Matrix = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


def vector_type(dimension: int) -> pa.DataType:
    """Return the type of a column of vectors."""
    return pa.list_(pa.float32(), dimension)


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of a batch, float32 with a row each; ``valid``: which of the rows have one."""

    rows: Matrix
    valid: Mask

    @classmethod
    def of(cls, given: Any, count: int, dimension: int | None, model: str) -> Vectors:
        """Return the answer of a model to ``count`` values.

        None, or NaN or infinity in a vector, stands for no vector.  Raises ArgumentError for another number of vectors, vectors of another
        dimension, or what is no array of numbers.
        """
        rows, is_there = _matrix(given, model)
        if len(rows) != count:
            message = f"the embedding model {model!r} returned {len(rows)} vectors for {count} values; it returns one for each"
            raise ArgumentError(message)
        if dimension is not None and count and rows.shape[1] != dimension:
            if is_there.any():
                message = (
                    f"the embedding model {model!r} returned vectors of {rows.shape[1]} numbers, but they have "
                    f"{dimension}"
                )
                raise ArgumentError(message)
            rows = np.zeros((count, dimension), np.float32)
        return cls(rows, is_there & np.isfinite(rows).all(axis=1))

    def normalized(self) -> Vectors:
        """Return the vectors divided by their lengths; zeros stay."""
        lengths = np.linalg.norm(self.rows, axis=1, keepdims=True)
        return Vectors(
            np.divide(self.rows, lengths, where=lengths > 0, out=self.rows.copy()), self.valid
        )

    def spread(self, places: npt.NDArray[np.int64], count: int) -> Vectors:
        """Return ``count`` rows with these at their places, and no vector elsewhere."""
        rows = np.zeros((count, self.rows.shape[1]), np.float32)
        valid = np.zeros(count, np.bool_)
        rows[places], valid[places] = self.rows, self.valid
        return Vectors(rows, valid)

    def array(self) -> pa.Array[Any]:
        """Return the vectors as Arrow's fixed-size lists, NULL where there is none."""
        flat = pa.array(np.ascontiguousarray(self.rows).reshape(-1), pa.float32())
        kind = vector_type(self.rows.shape[1])
        made: pa.Array[Any] = pa.FixedSizeListArray.from_arrays(
            flat, type=kind, mask=pa.array(~self.valid)
        )
        return made


def _matrix(given: Any, model: str) -> tuple[Matrix, Mask]:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        given = _of_arrow(given)
    elif hasattr(given, "detach"):  # a tensor of torch, maybe on a GPU
        given = given.detach().cpu().numpy()
    is_there: Mask | None = None
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes)):
        is_there = np.array([each is not None for each in given], np.bool_)
        given = _filled(given)
    try:
        rows = np.asarray(given, np.float32)
    except (TypeError, ValueError) as error:
        message = f"the embedding model {model!r} returned no array of vectors: {error}"
        raise ArgumentError(message) from error
    if rows.ndim == 1 and not rows.size:
        rows = rows.reshape(0, 1)
    if rows.ndim != 2 or rows.shape[1] < 1:
        message = f"the embedding model {model!r} returned an array of shape {rows.shape}; it returns a vector for each value"
        raise ArgumentError(message)
    return rows, np.ones(len(rows), np.bool_) if is_there is None else is_there


def _filled(given: Sequence[Any]) -> list[Any]:
    """Return a list of vectors with zeros in place of None."""
    plain = [each.detach().cpu().numpy() if hasattr(each, "detach") else each for each in given]
    first = next((each for each in plain if each is not None), [0.0])
    size = len(first) if hasattr(first, "__len__") else 1
    return [[0.0] * size if each is None else each for each in plain]


def _of_arrow(given: pa.Array[Any] | pa.ChunkedArray[Any]) -> Any:
    array: Any = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
    if pa.types.is_fixed_size_list(array.type) and not array.null_count:
        return array.flatten().to_numpy(zero_copy_only=False).reshape(len(array), -1)
    return array.to_pylist()
