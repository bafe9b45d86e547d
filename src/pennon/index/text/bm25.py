"""The score of a document for a query: BM25 with k1 = 1.2 and b = 0.75, in float32 as pylance counts.

::

    idf(t)       ln((N - df + 0.5) / (df + 0.5) + 1)
    score        sum over the tokens of a query: idf(t) * 2.2 f / (f + 1.2 (0.25 + 0.75 L / average))

N are the documents, df those that have the token, f is how often this one has it, L how many tokens it has.
Source: reference index-scalar, 15.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from pennon.core.fast_dataclass import dataclass
from pennon.index.text.arrays import Floats

_ONE: Final = np.float32(1)
_HALF: Final = np.float32(0.5)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of all documents together; ``having``: how many have each token of a query."""

    documents: int
    tokens: int
    having: Mapping[str, int]

    @property
    def average(self) -> float:
        """Return how many tokens a document has."""
        return float(np.float32(self.tokens) / np.float32(max(self.documents, 1))) or 1.0

    def idf(self, token: str) -> float:
        """Return what a token weighs: the more, the fewer documents have it."""
        having = np.float32(self.having.get(token, 0))
        others = np.float32(self.documents) - having
        return float(np.log((others + _HALF) / (having + _HALF) + _ONE))

    def and_(self, other: Statistics) -> Statistics:
        """Return what is known of these documents and others."""
        names = {**self.having, **other.having}
        having = {name: self.having.get(name, 0) + other.having.get(name, 0) for name in names}
        return Statistics(self.documents + other.documents, self.tokens + other.tokens, having)


def share(
    frequencies: npt.NDArray[np.float32], lengths: npt.NDArray[np.float32], average: float
) -> Floats:
    """Return what a token of weight 1 contributes to documents."""
    normal = np.float32(1.2) * (np.float32(0.25) + np.float32(0.75) * lengths / np.float32(average))
    return (np.float32(2.2) * frequencies / (frequencies + normal)).astype(np.float32)
