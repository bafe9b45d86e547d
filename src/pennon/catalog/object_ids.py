"""Names as the ``__manifest`` of a folder and as folders hold them, by the lance-namespace specification.

=====================  ================================================================================
object id              the parts of a name joined by ``$``: ``train$images``
``images.lance``       the folder of the table ``images`` of the root namespace
``1f2e3d4c_train$…``   the folder of a table of another namespace: random digits, and its object id
=====================  ================================================================================
"""

from __future__ import annotations

import secrets
from typing import Final

from pennon.catalog.base import TableName
from pennon.catalog.table_names import check_parts, join_name
from pennon.errors import ArgumentError, FormatError
from pennon.io.paths import check_path

DELIMITER: Final = "$"
SUFFIX: Final = ".lance"
MANIFEST_FOLDER: Final = "__manifest"
_LONGEST_FOLDER: Final = 255
"""Bytes of a folder's name, on file systems and in object stores that have folders."""
_LONGEST_ID: Final = 200
"""Bytes of the object id that stand in a folder's name; the digits before them make it unique."""


def check_name(name: TableName, *, is_table: bool = True) -> TableName:
    """Return a name that a folder of tables can hold.

    Raises ArgumentError for a part with ``$`` (which joins the parts in ``__manifest``), a slash or a
    backslash, and for a table of the root namespace whose folder no store could have.
    """
    parts = check_parts(name, is_table=is_table)
    for part in parts:
        if any(mark in part for mark in "$/\\"):
            message = f"the part {part[:100]!r} of a name has a character that folders of tables use: $ / \\"
            raise ArgumentError(message)
    if is_table and len(parts) == 1:
        _check_folder(f"{parts[0]}{SUFFIX}", parts)
    return parts


def object_id(name: TableName) -> str:
    """Return the object id of a table or namespace."""
    return DELIMITER.join(name)


def root_folder(name: str) -> str:
    """Return the folder of a table of the root namespace."""
    return f"{name}{SUFFIX}"


def new_folder(name: TableName) -> str:
    """Return the name of a new folder for a table, which no other table gets."""
    shown = object_id(name).encode()[:_LONGEST_ID].decode(errors="ignore")
    folder = f"{secrets.token_hex(4)}_{shown}"
    _check_folder(folder, name)
    return folder


def check_location(location: str, name: str) -> str:
    """Return the location of a table in ``__manifest``: a path below the root of the catalog.

    The bytes of ``__manifest`` are not trusted.  Raises FormatError for a path that leaves the root, and for
    the folder of ``__manifest`` itself.
    """
    try:
        folder = check_path(location.removesuffix("/"))
    except FormatError:
        folder = ""
    if not folder or folder.partition("/")[0] == MANIFEST_FOLDER:
        message = (
            f"the catalog places the table {name[:100]!r} at {location[:200]!r}, which is no folder of a "
            "table below its root"
        )
        raise FormatError(message)
    return folder


def _check_folder(folder: str, name: TableName) -> None:
    too_long = len(folder.encode()) > _LONGEST_FOLDER
    try:
        check_path(folder)
    except FormatError:
        too_long = True
    if too_long:
        shown = join_name(name)[:100]
        message = (
            f"no folder can have the name of the table {shown}; take a shorter or simpler name"
        )
        raise ArgumentError(message)
