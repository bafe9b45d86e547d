"""Names that programs import: each is still where it was, and has one home."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import pennon
from pennon.names import HOMES

OFFERED = [
    line.partition(": ")[::2]
    for line in (Path(__file__).parent / "public_names.txt").read_text().splitlines()
]
"""The modules that users import from, and their public names, as they were before the second edition
of the house: made of that tree, only ever added to."""
DOORS = ("pennon", "pennon.dataset", "pennon.file")


@pytest.mark.parametrize(("module", "names"), OFFERED, ids=[module for module, _ in OFFERED])
def test_public_names_are_importable_from_their_modules(module: str, names: str) -> None:
    door = importlib.import_module(module)
    missing = [name for name in names.split() if not hasattr(door, name)]
    assert not missing


@pytest.mark.parametrize("module", DOORS)
def test_public_names_seen_by_type_checkers_exist(module: str) -> None:
    door = importlib.import_module(module)
    tree = ast.parse(Path(str(door.__file__)).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "pennon"  # but for modules
        for alias in node.names
        if alias.name == alias.asname
    }
    assert {name: HOMES[name] for name in door.__all__} == seen


def test_unknown_public_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'pennon\.dataset' has no attribute 'LanceDatasets'"):
        importlib.import_module("pennon.dataset").LanceDatasets  # noqa: B018
    with pytest.raises(AttributeError):
        pennon.datasets  # type: ignore[attr-defined]  # noqa: B018
