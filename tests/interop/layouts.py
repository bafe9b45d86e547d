"""The layouts and encodings that the pages of a data file have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

from pennon.encoding.read_protocol import run
from pennon.encoding.v2_1.layouts import ConstantPage, Layout
from pennon.file.container.file import DataFile
from pennon.file.container.node import encoding_bytes
from pennon.file.open import open_container_file
from pennon.file.v2_1.leaf_reader import parse_page_layout
from pennon.io import open_store


def open_file(path: Path) -> DataFile:
    """Open a data file of the local disk."""
    return open_container_file(open_store(path.parent).open(path.name))


def layouts_of(file: DataFile) -> Iterator[Layout]:
    """Yield the layout of every page."""
    for column in file.columns():
        for page in column.pages:
            data = run(encoding_bytes(page.encoding), file.source.read)
            assert data is not None
            yield parse_page_layout(data)


def classes_in(file: DataFile | Path) -> set[type]:
    """Return the classes of all layouts and encodings of a file."""
    file = open_file(file) if isinstance(file, Path) else file
    return {part for layout in layouts_of(file) for part in _parts(layout)}


def has_constant_lists(uri: Path) -> bool:
    """Say whether some page of a table holds nothing but the levels of lists."""
    return any(
        isinstance(layout, ConstantPage) and any(layer.is_list for layer in layout.layers)
        for path in (uri / "data").iterdir()
        for layout in layouts_of(open_file(path))
    )


def _parts(value: object) -> Iterator[type]:
    if is_dataclass(value):
        yield type(value)
        for each in fields(value):
            yield from _parts(getattr(value, each.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from _parts(each)
