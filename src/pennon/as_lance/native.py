"""Names of ``lance.lance``, pylance's native module."""

from __future__ import annotations

from pennon.as_lance.modules import PYLANCE_RELEASE
from pennon.dataset.compaction import CompactionMetrics

__version__ = PYLANCE_RELEASE
__all__ = ["CompactionMetrics"]
