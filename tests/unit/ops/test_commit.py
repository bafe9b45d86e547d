"""Options of a commit are made in one module, and `pennon.ops` exports every operation."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pennon
from pennon import ops

SOURCE = Path(pennon.__file__).parent
OWN_ROOM = "table/commit/"
"""Where commits are made without options, too."""


def makes_options(path: Path) -> bool:
    """Return whether a module calls ``CommitOptions``."""
    called = (
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )
    return any(ast.unparse(function).split(".")[-1] == "CommitOptions" for function in called)


def test_one_module_makes_the_options_of_a_commit() -> None:
    modules = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    found = {name for name, path in modules.items() if makes_options(path)}
    assert {name for name in found if not name.startswith(OWN_ROOM)} == {"ops/commit.py"}


def test_ops_exports_equal_their_type_checking_imports() -> None:
    tree = ast.parse(Path(ops.__file__).read_text())
    typed = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed
    for name, home in typed.items():
        offered = getattr(ops, name)
        assert offered is getattr(import_module(str(home)), name)
    assert vars(ops)["_HOMES"] == typed
