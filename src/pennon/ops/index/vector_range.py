"""Warns of new rows whose numbers lie outside of the range that IVF_SQ was trained on.

All such numbers get the code of an end of the range, and searches cannot tell these rows apart.  A segment with a
range of its own would be searched well, but pylance merges segments without coding them anew (ledger F-536).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Final

import numpy as np

from pennon.ops.index.vector_build import VectorBuild, sample_vectors
from pennon.scan.read.tasks import live_row_count
from pennon.table.fragment import Fragment

_SAMPLED_ROWS: Final = 1024
_LEAST_SHARE: Final = 0.01


def warn_outside_range(build: VectorBuild, fragments: Sequence[Fragment]) -> None:
    """Warn if more than 1 % of the numbers of rows that are added lie outside of the range of an SQ index."""
    bounds = None if build.model is None else build.model.bounds
    rows = sum(live_row_count(build.snapshot, each) for each in fragments)
    if bounds is None or not rows:
        return
    vectors = sample_vectors(build, fragments, rows, min(rows, _SAMPLED_ROWS))
    if not len(vectors):
        return
    low, high = bounds
    outside = float(np.mean((vectors < low) | (vectors > high)))
    if outside > _LEAST_SHARE:
        message = (
            f"{outside:.0%} of the numbers in new rows of index {build.name!r} lie outside of {low:.4g} to {high:.4g}, "
            f"the range that {build.settings.kind} was trained on, so that searches may miss these rows: "
            "optimize_indices(retrain=True) trains the index anew"
        )
        warnings.warn(message, UserWarning, stacklevel=6)
