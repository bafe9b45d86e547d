"""Further places for a table's files, as pylance shows them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pennon.io.paths import parse_uri
from pennon.table.fragment import BasePath


@dataclass(frozen=True)
class DatasetBasePath:
    """A place that a table may name files in.

    ``is_dataset_root``: data files lie in its folder ``data/``, as in a table, rather than beside one
    another.  ``id`` is given when the place becomes one of a table's.
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None


def show_base(base: BasePath) -> DatasetBasePath:
    """Return a base path of a manifest."""
    return DatasetBasePath(base.path, base.name, base.is_dataset_root, base.id)


def to_base_path(base: DatasetBasePath) -> BasePath:
    """Return a base path to be added to a table; 0 stands for an id to be given.

    Paths of this machine are made absolute.
    """
    return BasePath(base.id or 0, _absolute(base.path), base.name, base.is_dataset_root)


def _absolute(path: str | os.PathLike[str]) -> str:
    location = parse_uri(path)
    return location.path if location.scheme == "file" else os.fspath(path)
