"""The addresses of the page's data, and the functions that answer them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from pennon.view import history, layout, overview, rows
from pennon.view.asked import Asked
from pennon.view.cells import Json
from pennon.view.opened import ViewedTable

Answer: TypeAlias = Callable[[ViewedTable, Asked], Json]

MEDIA: Final = "/api/media"
"""An image or a sound; its answer is no JSON."""


def _version(asked: Asked) -> int:
    return asked.number("version", 0, 1 << 62)


ANSWERS: Final[Mapping[str, Answer]] = {
    "/api/table": lambda viewed, asked: overview.read_table(viewed, _version(asked)),
    "/api/columns": lambda viewed, asked: viewed.remember(
        ("columns", _version(asked)),
        lambda: overview.read_column_bytes(viewed.at(_version(asked))),
    ),
    "/api/health": lambda viewed, asked: overview.read_health(viewed.at(_version(asked))),
    "/api/rows": lambda viewed, asked: rows.read_rows(viewed.at(_version(asked)), asked),
    "/api/count": lambda viewed, asked: rows.count_rows(viewed.at(_version(asked)), asked),
    "/api/cell": lambda viewed, asked: rows.read_cell(viewed.at(_version(asked)), asked),
    "/api/strip": lambda viewed, asked: layout.read_strip(viewed.at(_version(asked))),
    "/api/grid": lambda viewed, asked: layout.read_grid(viewed.at(_version(asked)), asked),
    "/api/pages": lambda viewed, asked: layout.read_pages(viewed.at(_version(asked)), asked),
    "/api/versions": history.read_versions,
    "/api/difference": history.read_difference,
    "/api/changed": history.read_changed_rows,
}


def as_json(found: Json) -> bytes:
    """Return an answer as JSON in ASCII; numbers that JSON does not have become null."""
    return json.dumps(_finite(found), allow_nan=False, separators=(",", ":")).encode("ascii")


def _finite(value: object) -> object:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):  # noqa: PLR0124 - NaN
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return value
