"""The page as one file that needs no server: overview, first rows, layout and versions.

The file holds the answers of `pennon.view.routes` as JSON, and the scripts of the page as one. Its policy names the hashes of
script and style, and lets it load nothing.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pennon.core.units import KIB, MIB
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import LanceError, NotFoundError
from pennon.view import rows
from pennon.view.asked import Asked
from pennon.view.cells import Json
from pennon.view.opened import ViewedTable
from pennon.view.routes import ANSWERS, MEDIA, as_json
from pennon.view.server import FILES, read_file

ROWS: Final = 25
GRID_FRAGMENTS: Final = 40
MAX_PAGE_LISTS: Final = 400
MAX_MEDIA_BYTES: Final = 512 * KIB
MAX_ALL_MEDIA_BYTES: Final = 8 * MIB
DIFFERENCES: Final = 20

_IMPORT: Final = re.compile(r"^import .*\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def write_page(dataset: LanceDataset, path: Path) -> int:
    """Write the page of a version of a table as one HTML file, and return its size in bytes."""
    data = page(dataset).encode()
    path.write_bytes(data)
    return len(data)


def page(dataset: LanceDataset) -> str:
    """Return the page as one HTML document."""
    answers = collect(ViewedTable(dataset))
    script = _bundle()
    style = read_file("style.css").decode()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src blob: data:; "
        f"media-src blob:; base-uri 'none'; form-action 'none'"
    )
    icon = base64.b64encode(read_file("icon.svg")).decode()
    # "<" and ">" cannot end the element, nor begin a comment in it
    data = as_json(answers).decode().replace("<", "\\u003c").replace(">", "\\u003e")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<title>Pennon</title>\n'
        f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">\n'
        f"<style>{style}</style>\n</head>\n<body>\n"
        f'<script type="application/json" id="answers">{data}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _bundle() -> str:
    """Return all scripts as one: each stands behind those that it imports, so that no import is left."""
    names = [name for name in FILES if name.endswith(".js")]
    return "".join(_EXPORT.sub("", _IMPORT.sub("", read_file(each).decode())) for each in names)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def address(path: str, values: Mapping[str, object]) -> str:
    """Return the key of an answer as ``source.js`` makes it: parameters by name, empty ones and 0 left out."""
    given = sorted((k, str(v)) for k, v in values.items() if v not in ("", None, 0))
    return "|".join([path, *(f"{k}={v}" for k, v in given)])


def collect(viewed: ViewedTable) -> Json:
    """Return the answers of the addresses that the page of a file asks for, by address."""
    found: Json = {}

    def ask(path: str, **values: object) -> Any:
        given = {k: str(v) for k, v in values.items() if v not in ("", None, 0)}
        try:
            answer = ANSWERS[path](viewed, Asked(given))
        except (LanceError, ValueError, OSError) as error:
            answer = {"error": str(error)}
        found[address(path, values)] = answer
        return answer

    version = found["version"] = viewed.dataset.version
    for path in ("/api/table", "/api/columns", "/api/health", "/api/strip"):
        ask(path, version=version)
    first = ask("/api/rows", version=version, limit=ROWS)
    grid = ask("/api/grid", version=version, limit=GRID_FRAGMENTS)
    history = ask("/api/versions", limit=25)
    numbers = [each["version"] for each in history.get("versions", [])]
    for before, after in list(zip(numbers[1:], numbers, strict=False))[:DIFFERENCES]:
        ask("/api/difference", before=before, after=after)
    wanted = [
        (fragment["id"], column["path"])
        for fragment in grid.get("fragments", [])
        for column in grid.get("columns", [])
    ]
    for number, column in wanted[:MAX_PAGE_LISTS]:
        ask("/api/pages", version=version, fragment=number, column=column)
    _add_values(viewed, first, ask, found)
    return found


def _add_values(viewed: ViewedTable, first: Json, ask: Any, found: Json) -> None:
    """Add what a click on a row's value shows, and images and sounds as far as they are small."""
    version, left = viewed.dataset.version, MAX_ALL_MEDIA_BYTES
    for row, cells in zip(first.get("addresses", []), first.get("rows", []), strict=True):
        for column, cell in zip(first["fields"], cells, strict=True):
            place = {"version": version, "column": column, "row": row}
            if cell["kind"] in ("text", "vector", "nested") and (
                cell["kind"] != "text" or "more" in cell
            ):
                ask("/api/cell", **place)
            if cell["kind"] in ("image", "audio") and cell["bytes"] <= min(MAX_MEDIA_BYTES, left):
                left -= cell["bytes"]
                _add_media(viewed.dataset, place, found)


def _add_media(dataset: LanceDataset, place: Mapping[str, object], found: Json) -> None:
    try:
        media, data = rows.read_media(dataset, Asked({k: str(v) for k, v in place.items()}))
    except (LanceError, ValueError, OSError, NotFoundError):
        return
    found[address(MEDIA, place)] = {"mime": media.mime, "data": base64.b64encode(data).decode()}
