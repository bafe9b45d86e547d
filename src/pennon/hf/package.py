"""The package ``datasets``, which may be absent."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from pennon.core.extras import not_installed


def hugging_face(module: str = "datasets") -> Any:
    """Return the package ``datasets``, or a module of it; raises ModuleNotFoundError if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise not_installed("datasets", "pennon.hf") from None


def is_array(kind: pa.DataType) -> bool:
    """Say whether a type is one of Hugging Face's extension types ``Array2D`` to ``Array5D``."""
    return isinstance(kind, pa.BaseExtensionType) and type(kind).__module__.startswith("datasets.")
