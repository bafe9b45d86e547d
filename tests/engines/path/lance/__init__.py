"""``import lance`` gives Pennon, for libraries above pylance: this folder's parent stands on PYTHONPATH.

Processes that such a library starts find it, too.  Modules that Pennon has no twin of get what these libraries need.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pennon
from pennon.indices import IvfModel, PqModel
from pennon.optimize import CompactionMetrics

_TWINS = (
    "blob",
    "commit",
    "dataset",
    "file",
    "fragment",
    "indices",
    "optimize",
    "progress",
    "query",
    "schema",
    "udf",
    "util",
    "vector",
)


def _module(name: str, **attributes: Any) -> None:
    made = ModuleType(name)
    vars(made).update(attributes)
    sys.modules[name] = made


for _name in _TWINS:
    sys.modules[f"lance.{_name}"] = importlib.import_module(f"pennon.{_name}")
_HAS_PANDAS = importlib.util.find_spec("pandas") is not None
_module(
    "lance.dependencies",
    _PANDAS_AVAILABLE=_HAS_PANDAS,
    pandas=importlib.import_module("pandas") if _HAS_PANDAS else None,
)
_module("lance.lance", CompactionMetrics=CompactionMetrics, indices=sys.modules["lance.indices"])
_module("lance.indices.ivf", IvfModel=IvfModel)
_module("lance.indices.pq", PqModel=PqModel)
vars(pennon)["__version__"] = "14.0.2"  # whose names Pennon has: lance-ray asks for 0.36 at least
sys.modules["lance"] = pennon
