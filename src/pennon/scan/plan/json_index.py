"""Conditions on what lies at a path of a JSON column, as conditions on a column of just that.

The index of a path is one on a column of the values there, all of one type, and it is asked for
``json_get_int(j, 'a') = 3`` as an index on a column is for ``a = 3``.  A path is not a key: of ``a.b`` the index has
what lies in ``a`` under ``b``, and ``json_get_int(j, 'a.b')`` what lies under the key ``a.b``.  So only a path that is one
plain name is asked, for there both are the same.  Source: reference index-scalar, 12; ledger F-496.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pennon.expr.tree import Call, Column, Expression, Literal

_GETS: Final = frozenset({"json_get_int", "json_get_string", "json_get_float", "json_get_bool"})
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def of_json_path(node: Expression, path: str) -> Expression | None:
    """Return a condition on a column of what lies at a path; None if it asks for anything else."""
    if isinstance(node, Literal):
        return node
    if not isinstance(node, Call) or not _NAME.fullmatch(path):
        return None
    if node.function in _GETS:
        column, key = node.arguments
        if not (isinstance(column, Column) and isinstance(key, Literal)):
            return None
        return Column(column.path, node.type) if key.value.as_py() == path else None
    parts = tuple(of_json_path(each, path) for each in node.arguments)
    known = tuple(each for each in parts if each is not None)
    return replace(node, arguments=known) if len(known) == len(parts) else None
