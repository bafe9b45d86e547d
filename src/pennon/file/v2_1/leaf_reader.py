"""Leaf columns, and what is known of their pages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.block import VariableBlock
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.search_cache import Slot
from pennon.encoding.v2_1 import wire
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.layouts import BlobPage, Layout, MiniBlock
from pennon.encoding.v2_1.mini_block import read_known
from pennon.encoding.v2_1.page_runs import kinship
from pennon.encoding.v2_1.point_read import KnownPage, PickedPage, can_join
from pennon.errors import FormatError, LanceError
from pennon.file.container.column_metadata import Column, Indirect, Page
from pennon.file.container.generation import FileSource
from pennon.file.container.node import Node, encoding_bytes, page_buffers
from pennon.file.container.wire import unwrap_encoding
from pennon.file.v2_1.assemble_nested import path_types
from pennon.file.v2_1.tree import Path, Tree, column_rows


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, and the way to it in the schema."""

    file: FileSource
    path: Path
    column: Column
    node: Node
    types: tuple[pa.DataType, ...]
    factor: int
    """How many rows of the column a row of the file is."""
    opened: dict[int, OpenPage] = field(default_factory=dict)
    """The pages that were read before, by their numbers."""

    @classmethod
    def of(
        cls,
        file: FileSource,
        column_of: Mapping[FieldId, int],
        tree: Tree,
        path: Path,
        column: Column,
    ) -> Leaf:
        """Return the leaf at the end of ``path``."""
        factor = column_rows(path)
        name = ".".join([field.name for field in path])
        node = Node(file, column_of, name, file.num_rows * factor)
        return cls(file, path, column, node, path_types(path, tree), factor)

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes of the file a row of the column has: as many as in its first page."""
        pages = self.column.pages
        if not len(pages):
            return 1
        size_bytes = sum([extent.size_bytes for extent in pages[0].buffers])
        return size_bytes // max(pages[0].rows, 1) + 1

    def can_join(self, page: PickedPage | None) -> bool:
        """Return whether rows of a page can be read together with those of others that are like it.

        Pages of a column of dictionaries have strings of their own, and so have the arrays made of them.
        """
        if not can_join(page):
            return False
        return not (
            self._is_dictionary and page is not None and isinstance(page.dictionary, VariableBlock)
        )

    def kinship(self, layout: Layout) -> Hashable:
        """Return what whole pages that are decoded together have in common; None if one stays alone.

        Pages of a column of dictionaries do, as their arrays have dictionaries of their own.
        """
        if self._is_dictionary and isinstance(layout, MiniBlock) and layout.dictionary is not None:
            return None
        return kinship(layout)

    @property
    def _is_dictionary(self) -> bool:
        return bool(pa.types.is_dictionary(self.types[-1]))


def known_pages(leaf: Leaf, numbers: list[int]) -> Steps[list[KnownPage | None]]:
    """Return the steps that get to know pages; None for those that are no mini-block pages."""
    found = [remembered_page(leaf, number) for number in numbers]
    missing = [at for at, page in enumerate(found) if page is None]
    if missing:
        now = yield from _get_to_know(leaf, [numbers[at] for at in missing])
        for at, page in zip(missing, now, strict=True):
            found[at] = page
    return found


def remembered_page(leaf: Leaf, number: int) -> KnownPage | None:
    """Return a mini-block page that is known already."""
    page = leaf.opened.get(number)
    if page is None or not isinstance(page.layout, MiniBlock):
        return None
    known: KnownPage | None = page.slot.get()
    return known


def _get_to_know(leaf: Leaf, numbers: list[int]) -> Steps[list[KnownPage | None]]:
    """Return the steps that get to know pages, all at once; if one is damaged, one by one: that one says so."""
    try:
        return (yield from _know_together(leaf, numbers))
    except LanceError:
        return (yield from together([_know(leaf, number) for number in numbers]))


def _know_together(leaf: Leaf, numbers: list[int]) -> Steps[list[KnownPage | None]]:
    pages = yield from opened_pages(leaf, numbers)
    of_chunks = [
        (page.layout, page.buffers, page.slot) if isinstance(page.layout, MiniBlock) else None
        for page in pages
    ]
    known = iter((yield from read_known([each for each in of_chunks if each], CODECS)))
    return [next(known) if each else None for each in of_chunks]


def _know(leaf: Leaf, number: int) -> Steps[KnownPage | None]:
    try:
        (page,) = yield from _know_together(leaf, [number])
    except LanceError as error:
        place = leaf.node.place(leaf.column.pages[number], number)
        raise error.located(place) from error.__cause__
    return page


def opened_pages(leaf: Leaf, numbers: Sequence[int]) -> Steps[list[OpenPage]]:
    """Return the steps that get the layouts of pages; a round for those whose encodings lie elsewhere."""
    opened, pages, far = leaf.opened, leaf.column.pages, []
    for number in numbers:
        if number not in opened:
            page = pages[number]
            if isinstance(page.encoding, Indirect):
                far.append(number)
            else:
                data = None if page.encoding is None else page.encoding.data
                opened[number] = _open_page(leaf, number, page, data)
    if far:
        for number, data in zip(far, (yield from _far(leaf, far)), strict=True):
            opened[number] = _open_page(leaf, number, pages[number], data)
    return [opened[number] for number in numbers]


def _far(leaf: Leaf, numbers: Sequence[int]) -> Steps[list[bytes | None]]:
    pages = leaf.column.pages
    return together([encoding_bytes(pages[number].encoding) for number in numbers])


def opened_page(leaf: Leaf, number: int) -> Steps[OpenPage]:
    """Return the steps that get the layout of a page, unless it is known."""
    page = leaf.opened.get(number)
    if page is None:
        (page,) = yield from opened_pages(leaf, [number])
    return page


@dataclass(frozen=True, slots=True)
class OpenPage:
    """A page whose layout is known."""

    layout: Layout
    buffers: PageBuffers
    slot: Slot
    has_blobs: bool


def _open_page(leaf: Leaf, number: int, page: Page, encoding: bytes | None) -> OpenPage:
    if encoding is None:
        message = "page without an encoding"
        raise FormatError(message)
    layout = parse_page_layout(encoding)
    return OpenPage(
        layout,
        page_buffers(leaf.node, leaf.column, page),
        Slot(leaf.file.search_cache, (leaf.column.index, number)),
        isinstance(layout, BlobPage) and leaf.path[-1].logical_type != "struct",
    )


@lru_cache(maxsize=1024)
def parse_page_layout(data: bytes) -> Layout:
    """Return the layout in an ``Any`` message; pages of a column mostly repeat it."""
    return wire.parse_page_layout(unwrap_encoding(data, "PageLayout"))
