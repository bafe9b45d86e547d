"""Names of ``lance.dependencies``: packages that may be absent."""

from __future__ import annotations

import importlib.util
from importlib import import_module

_PANDAS_AVAILABLE = importlib.util.find_spec("pandas") is not None
pandas = import_module("pandas") if _PANDAS_AVAILABLE else None
