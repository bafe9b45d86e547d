"""The arrays that full text is made of."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint32]
"""Documents, frequencies, lengths, positions."""
Floats: TypeAlias = npt.NDArray[np.float32]
"""Scores, and bounds of them."""
