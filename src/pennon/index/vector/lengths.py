"""Lengths of vectors, and vectors of length 1: also where squares leave the range of their numbers.

The square of 1e-25 is 0 in float32, and that of 1e25 infinite.  Lengths are summed in the vectors' own type, which is
fast, and only a vector whose length is out of the usual range is scaled first: by a power of 2, which is exact.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_USUAL: Final = {np.dtype(np.float32): 2.0**40, np.dtype(np.float64): 2.0**400}
"""Lengths up to this, and from its inverse on, and products of two of them, are as exact as any."""


def lengths_of(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the length of each row of a float32 or float64 matrix; 0 or infinite where squares leave the range."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found: npt.NDArray[Any] = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return found


def usual_length(kind: np.dtype[Any]) -> float:
    """Return the greatest length that needs no scaling; the least one is its inverse."""
    return _USUAL[kind]


def are_unusual(vectors: npt.NDArray[Any], lengths: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which rows must be scaled before their squares are summed; zeros and what is not finite must not."""
    most = _USUAL[vectors.dtype]
    unusual: npt.NDArray[np.bool_] = ~((lengths >= 1 / most) & (lengths <= most))
    if unusual.any():
        some = vectors[unusual]
        unusual[unusual] = np.isfinite(some).all(axis=1) & some.any(axis=1)
    return unusual


def scaled(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return each row times a power of 2, so that its largest number is between 1/2 and 1."""
    _, exponents = np.frexp(np.abs(vectors).max(axis=1, initial=0))
    found: npt.NDArray[Any] = np.ldexp(vectors, -exponents[:, None])
    return found


def scaled_where_unusual(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return vectors of the same directions whose squares can be summed."""
    unusual = are_unusual(vectors, lengths_of(vectors))
    if not unusual.any():
        return vectors
    found = vectors.copy()
    found[unusual] = scaled(vectors[unusual])
    return found


def normalized(vectors: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return rows of length 1, and which rows have a direction; zeros, and what is not finite, have none."""
    wide = vectors.astype(np.float32) if vectors.dtype == np.float16 else vectors
    lengths = lengths_of(wide)
    unusual = are_unusual(wide, lengths)
    has_direction = (np.isfinite(lengths) & (lengths > 0)) | unusual
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        lengths[~has_direction | unusual] = 1
        found = (wide / lengths[:, None]).astype(vectors.dtype)
    if unusual.any():
        some = scaled(wide[unusual])
        found[unusual] = some / lengths_of(some)[:, None]
    return found, has_direction
