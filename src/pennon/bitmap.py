"""Sets of fragment ids, with the name of ``lance.bitmap``."""

from __future__ import annotations

from pennon.compat.bitmap import Bitmap

__all__ = ["Bitmap"]
