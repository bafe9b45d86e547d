"""Look up vectors of a sample in an index: their partition must name the row, with their code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pennon.index.kind import Sample
from pennon.index.vector.build.opened_index import open_stored
from pennon.index.vector.build.partitions import sorted_by_partition
from pennon.index.vector.layout import rows_named

_ALIKE: Final = 0.5
"""A code is that of a vector if more of its numbers are equal; another library may round a few otherwise."""


def finds(sample: Sample) -> list[bool]:
    """Return which vectors a segment has; of PQ without residuals, whichever partition and code a row has."""
    stored = open_stored(sample.files)
    coded = sorted_by_partition(iter([sample.values]), stored.model)
    settings = stored.model.settings
    if settings.quantizer == "PQ" and not settings.metric.codes_residuals:
        # pylance codes rows that come later otherwise than those that it trained on
        numbers, _ = sample.present(rows_named(sample.files).numbers())
        found: list[bool] = np.isin(coded.coded.rows, numbers).tolist()
        return found
    there = []
    for number, some in coded.filled():
        (held,) = stored.read(number, number + 1)
        rows, kept = sample.present(held.rows)
        columns = [each[kept] for each in held.columns]
        for at, row in enumerate(some.rows.tolist()):
            codes = [each[at] for each in some.columns]
            places = np.flatnonzero(rows == row)
            there.append(any(_are_alike(codes, [c[place] for c in columns]) for place in places))
    return there


def _are_alike(mine: Sequence[Any], stored: Sequence[Any]) -> bool:
    """Return whether most numbers of two codes are equal, on average of their columns."""
    equal = [
        np.isclose(np.ravel(one).astype(float), np.ravel(other).astype(float), rtol=1e-3).mean()
        for one, other in zip(mine, stored, strict=True)
    ]
    return bool(np.mean(equal) > _ALIKE)
