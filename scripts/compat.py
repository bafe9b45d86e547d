"""Write the table of docs/compat.md: every public name of pylance, and what Pennon does with it.

``python scripts/compat.py`` rewrites the page; a test in tests/interop keeps it true.  pylance must
be installed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import lance
import lance.file
import lance.fragment
import lance.indices
import lance.progress
import lance.schema

import pennon
import pennon.dataset
import pennon.indices
from pennon.compat.not_implemented import LATER as LATER_NAMES

PAGE = Path(__file__).parents[1] / "docs" / "compat.md"
START, END = "<!-- written by scripts/compat.py -->\n", "<!-- end -->\n"
OWNERS = [
    "LanceDataset",
    "LanceFragment",
    "LanceScanner",
    "ScannerBuilder",
    "MergeInsertBuilder",
    "LanceOperation",
    "FragmentMetadata",
    "Transaction",
    "Session",
    "fragment.DataFile",
    "fragment.DeletionFile",
    "schema.LanceSchema",
    "file.LanceFileReader",
    "file.LanceFileWriter",
    "progress.FileSystemFragmentWriteProgress",
    "indices.IndicesBuilder",
    "indices.IvfModel",
    "indices.PqModel",
]
MODULES = ["commit", "dataset", "fragment", "indices", "optimize", "progress", "schema", "udf"]
"""Modules from which programs import names."""
WORKS, IGNORED = "works", "accepted, changes nothing"
REFUSED = "refused, as by pylance"
LATER, ABSENT = "later: raises `UnsupportedError`", "absent"


def _find(module: Any, path: str) -> Any:
    if path == "ScannerBuilder":
        module = sys.modules[f"{module.__name__}.dataset"]  # the function hides the module
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _status(ours: Any, name: str) -> str:
    if name in getattr(ours, "__dataclass_fields__", ()):
        return WORKS
    found = inspect.getattr_static(ours, name, None)
    if found is None and not hasattr(ours, name):
        return LATER if name in LATER_NAMES.get(_name(ours), ()) else ABSENT
    document = inspect.getdoc(found) or ""
    if document.startswith("Refuse, as pylance does"):
        return REFUSED
    if document.startswith("Refuse"):
        return LATER
    return IGNORED if document.startswith("Accept and ignore") else WORKS


def _names(theirs: Any) -> list[str]:
    names = {*dir(theirs), *getattr(theirs, "__dataclass_fields__", ())}
    return sorted(name for name in names if not name.startswith("_"))


def _module(name: str) -> tuple[str, list[str], Any]:
    """Return what a module of pylance's defines or shows of its own, and our module of that name."""
    theirs = import_module(f"lance.{name}")
    found = {n: getattr(theirs, n) for n in dir(theirs) if not n.startswith("_")}
    own = [n for n, x in found.items() if str(getattr(x, "__module__", "")).startswith("lance")]
    return f"from lance.{name}", sorted(own), import_module(f"pennon.{name}")


def _name(ours: Any) -> str:
    name: str = ours.__name__
    return name


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield (owner, status, names), the names of one status together."""
    pairs = [("lance", sorted(set(lance.__all__) - {"__version__", "io"}), pennon)]
    pairs += [(owner, _names(_find(lance, owner)), _find(pennon, owner)) for owner in OWNERS]
    pairs += [_module(name) for name in MODULES]
    for owner, names, ours in pairs:
        statuses = {name: _status(ours, name) for name in names}
        for status in (WORKS, IGNORED, REFUSED, LATER, ABSENT):
            chosen = [f"`{name}`" for name in names if statuses[name] == status]
            if chosen:
                yield owner, status, ", ".join(chosen)


def table() -> str:
    """Return the table in Markdown."""
    head = ["| where | what Pennon does | names |", "|---|---|---|"]
    return "\n".join([*head, *(f"| `{o}` | {s} | {n} |" for o, s, n in rows())]) + "\n"


def page(text: str) -> str:
    """Return the page with the table as it should be."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return before + START + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
