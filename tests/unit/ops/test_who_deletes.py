"""Only clean-up, and the drop of a name, delete objects of a store.

A writer that deletes what it wrote when its commit seems to have failed destroys the table if the
commit had landed after all (lance#7722, lance#8123).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pennon

SOURCE = Path(pennon.__file__).parent
MAY_DELETE = {
    "catalog/table_folders.py": "markers of names, in folders of tables; a table itself by ops/cleanup/drop.py",
    "file/session.py": "a file that the user of a file session names",
    "index/new_files.py": "sorted runs of an index build under way, which no version ever named",
    "ops/held.py": "a note that keeps clean-up from a version while it is restored, tagged or branched from",
    "ops/versions/branches.py": "a branch that is dropped",
    "ops/cleanup/drop.py": "a table that is dropped",
    "ops/cleanup/run.py": "clean-up",
    "ops/columns/finished.py": "a note of what was finished, in a folder of the caller's, when all is committed",
    "ops/index/parts.py": "parts of an index that were merged, and that no version ever named",
    "ops/versions/refs.py": "a tag that is dropped",
    "table/commit/migrate_naming.py": "the old name of a manifest that has a new one",
    "table/external/finish.py": "the staged copy of a manifest that has its final name",
}
PASS_ON = {"io/forwarding_store.py", "io/remote.py", "table/base_paths.py"}
"""Stores, whose verb it is."""


def deletes(path: Path) -> bool:
    """Tell whether a module calls a ``delete`` of something that is a store by its name."""
    called = (
        node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    )
    return any(
        isinstance(function, ast.Attribute)
        and function.attr == "delete"
        and ast.unparse(function.value) not in NO_STORES
        for function in called
    )


NO_STORES = {
    *("np", "self._dataset", "dataset", "ds", "ops", "table", "changed.table"),  # rows
    *("ds.tags", "table.tags", "table.branches"),
    "self._folders",  # catalog/table_folders.py
}


def test_only_clean_up_deletes() -> None:
    modules = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    found = {
        name for name, path in modules.items() if not name.startswith("testing/") and deletes(path)
    }
    assert found - PASS_ON == MAY_DELETE.keys()
