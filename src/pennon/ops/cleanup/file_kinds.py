"""Kinds of files in a table's folders, recognised by their names.

Clean-up looks at five folders, and in them only at names that tables give: a user's own files, and
other tables below, are not its business.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from pennon.table.cleanup_notes import is_plan, is_stamp

FOLDERS: Final = ("data", "_deletions", "_indices", "_transactions")
"""Beside ``_versions``."""

DETACHED: Final = re.compile(r"_versions/d[0-9]{1,20}\.manifest", re.ASCII)


class Kind(Enum):
    """The kind of a file."""

    DATA = "data"
    DELETION = "deletion"
    INDEX = "index"
    TRANSACTION = "transaction"
    MANIFEST = "manifest"
    TEMPORARY = "temporary"


_UUID = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_PATTERNS: Final = {
    Kind.TEMPORARY: re.compile(
        r"(?:data|_deletions|_indices|_transactions|_versions)/(?:.*/)?\.tmp[^/]*"
        r"|(?:data|_deletions|_indices|_transactions|_versions)/.*#[0-9]+"
        r"|_versions/[0-9]+\.manifest-[^/]+"
    ),
    Kind.DATA: re.compile(r"data/.+\.(?:lance|blob)"),
    Kind.DELETION: re.compile(r"_deletions/[0-9]+-[0-9]+-[0-9]+\.(?:arrow|bin)"),
    Kind.INDEX: re.compile(rf"_indices/{_UUID}/.+"),
    Kind.TRANSACTION: re.compile(r"_transactions/[0-9]+-[0-9A-Za-z-]+\.txn"),
}


def kind_of(path: str) -> Kind | None:
    """Return what the file at a path, relative to the table's folder, is; None if not a table's."""
    if is_plan(path) or is_stamp(path):
        return None
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(path):
            return kind
    return None
