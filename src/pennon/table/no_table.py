"""The error for a place without a table: it names what is there instead."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Final

from pennon.errors import LanceError, NotFoundError
from pennon.io.paths import parse_uri
from pennon.table.naming import VERSIONS

_OWN_FOLDERS: Final = {"data", "_deletions", "_indices", "_transactions", VERSIONS}
_FEW: Final = 100


def no_table(uri: str) -> NotFoundError:
    """Return the error for a place without a table.

    Programs look for its words: Daft for "was not found", which stands in pylance's message, others for "not found".
    """
    hint = _hint(uri)
    message = (
        f"Dataset at path {uri} was not found: there is no Lance table at {uri!r}, for it has no manifest under "
        f"{VERSIONS}/"
    )
    return NotFoundError(f"{message}; {hint}" if hint else message)


def _hint(uri: str) -> str | None:
    try:
        location = parse_uri(uri)
    except LanceError:
        return None
    path = location.path
    if path.endswith(".parquet"):
        return _PARQUET
    return _look(Path(path)) if location.scheme == "file" else None


_PARQUET: Final = (
    "this is Parquet: read it with pyarrow.parquet, and write the rows with pennon.write_dataset"
)


def _look(path: Path) -> str | None:
    """Return what a local path is, if it is known."""
    try:
        if path.is_file():
            return _look_into(path)
        if path.name in _OWN_FOLDERS and (path.parent / VERSIONS).is_dir():
            return f"this is a folder inside of the table {str(path.parent)!r}"
        names = [each.name for each in islice(path.iterdir(), _FEW)]
    except OSError:
        return None
    return _PARQUET if any(each.endswith(".parquet") for each in names) else None


def _look_into(path: Path) -> str:
    """Return what a file is, by its ends."""
    with path.open("rb") as file:
        first = file.read(4)
        file.seek(max(path.stat().st_size - 4, 0))
        last = file.read(4)
    if first == b"PAR1":
        return _PARQUET
    if last == b"LANC":
        return "this is one data file: read it with pennon.file.LanceFileReader"
    return "this is a file, and a table is a folder"
