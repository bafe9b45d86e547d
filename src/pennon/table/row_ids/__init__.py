"""Stable row ids, the versions of rows, and their bytes."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

RowIds: TypeAlias = npt.NDArray[np.uint64]
"""A value for each row: its stable id, or a version of the table."""
