"""A plugin of pytest that lets ``import lance`` mean `pennon`, and ``lance.x`` mean ``pennon.x``."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import pennon

# Not by a finder: the import system would put the module `dataset` over the function of that name.
for found in iter_modules(pennon.__path__):
    if found.name != "spark":
        sys.modules[f"lance.{found.name}"] = import_module(f"pennon.{found.name}")
sys.modules["lance"] = pennon
