"""Write the table of docs/compat.md: every public name of pylance, and what Pennon does with it.

``python scripts/compat.py`` rewrites the page; a test in tests/interop keeps it true.  pylance must
be installed.  ``--count`` prints how many names work, by tiers, instead:

1. what LanceDB, lance-ray, Daft and notebooks call: the package, tables and their parts, data files;
2. modules beside them: Arrow types, samplers, torch, pydantic, logs, native names;
3. what stands on parts of Lance that Pennon leaves out: MemWAL, OpenTelemetry, generated data.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections import Counter
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
import pennon.as_lance.modules
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
OTHER_MODULES = {
    **dict.fromkeys(["arrow", "bitmap", "blob", "debug", "dependencies", "hf"], 2),
    **dict.fromkeys(["lance", "log", "namespace", "pydantic", "query", "sampler"], 2),
    **dict.fromkeys(["torch", "torch.async_dataset", "torch.bench_utils", "torch.data"], 2),
    **dict.fromkeys(["torch.dist", "torch.distance", "torch.kmeans", "tracing"], 2),
    **dict.fromkeys(["util", "vector"], 2),
    **dict.fromkeys(["_datagen", "download", "mem_wal", "otel"], 3),
}
"""The other modules, and their tiers: their names are read from their sources, for some of them need torch."""
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


def _source_names(module: str) -> set[str]:
    """Return the public functions and classes that a module's source defines, and what it lists in ``__all__``."""
    if module == "lance.lance":  # native
        return {name for name in dir(import_module(module)) if not name.startswith("_")}
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return set()
    found = set()
    for node in ast.parse(Path(spec.origin).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            found.update(alias.asname for alias in node.names if alias.asname == alias.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found.update(ast.literal_eval(node.value))
    return {name for name in found if name and not name.startswith("_")}


def _other_module(name: str) -> dict[str, str]:
    """Return the public names of another module of pylance's, and what Pennon does with each."""
    home = pennon.as_lance.modules.MODULES.get(f"lance.{name}")
    if home is None:
        return dict.fromkeys(sorted(_source_names(f"lance.{name}")), ABSENT)
    try:
        ours = import_module(home)
    except ModuleNotFoundError:  # torch is not installed
        defined = _source_names(home)
        return {
            n: WORKS if n in defined else ABSENT for n in sorted(_source_names(f"lance.{name}"))
        }
    return {n: _status(ours, n) for n in sorted(_source_names(f"lance.{name}"))}


def _name(ours: Any) -> str:
    name: str = ours.__name__
    return name


def rows() -> Iterator[tuple[str, str, str]]:
    """Yield (owner, status, names), the names of one status together."""
    pairs = [("lance", sorted(set(lance.__all__) - {"__version__", "io"}), pennon)]
    pairs += [(owner, _names(_find(lance, owner)), _find(pennon, owner)) for owner in OWNERS]
    pairs += [_module(name) for name in MODULES]
    found = [(owner, {name: _status(ours, name) for name in names}) for owner, names, ours in pairs]
    found += [(f"from lance.{name}", _other_module(name)) for name in OTHER_MODULES]
    for owner, statuses in found:
        names = list(statuses)
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


def counts() -> Iterator[str]:
    """Yield for each tier how many names there are, by what Pennon does with them."""
    tiers: dict[int, Counter[str]] = {1: Counter(), 2: Counter(), 3: Counter()}
    for owner, status, names in rows():
        tier = (
            OTHER_MODULES.get(owner.removeprefix("from lance."), 1)
            if owner.startswith("from")
            else 1
        )
        tiers[tier][status] += names.count(", ") + 1
    for tier, found in tiers.items():
        shown = ", ".join(f"{count} {status}" for status, count in found.items())
        yield f"tier {tier}: {found.total()} names: {shown}"


if __name__ == "__main__":
    if "--count" in sys.argv:
        print("\n".join(counts()))
        sys.exit()
    PAGE.write_text(page(PAGE.read_text()))
