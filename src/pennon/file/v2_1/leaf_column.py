"""Writing the columns of version 2.1: every leaf of the schema gathers its own pages.

A page holds whole rows.  What gathers is the *spine* of a leaf (see `pennon.file.v2_1.spines`), so the
leaves of a struct need not cut their pages at the same rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from pennon.encoding.v2_0.encodings import ColumnEncoding, Values
from pennon.encoding.v2_1.blob_page import describe_blobs
from pennon.encoding.v2_1.choose import encode_descriptions, encode_page
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.page import EncodedPage as EncodedLayout
from pennon.errors import Breadcrumb, LanceError, UnsupportedError
from pennon.file.v2_0.column_tree import ColumnTree
from pennon.file.v2_0.pages import ColumnWriter, EncodedPage, GatheringColumn, PageLimits, PageWork
from pennon.file.v2_1.spines import leaf_of, replaced_leaf, spines
from pennon.file.v2_1.tree import LISTS, Path, Tree
from pennon.schema.check import is_blob
from pennon.schema.field import Schema


def plan_leaves(
    schema: Schema, limits: PageLimits, write_value: Callable[[pa.Buffer], int]
) -> ColumnTree:
    """Give every leaf its column, in the order of the fields, depth first.

    ``write_value`` puts a blob into the file and returns its position.
    """
    numbers = count()
    writers: list[ColumnWriter] = []
    ids: list[int] = []
    for top in schema.fields:
        tree = Tree.of(top)
        leaves = [_leaf(path, next(numbers), limits, write_value) for path in tree.paths()]
        ids += [leaf.path[-1].id for leaf in leaves]
        writers.append(FieldWriter(tree, leaves))
    return ColumnTree(writers, tuple(ids), tuple(range(len(ids))))


def _leaf(
    path: Path, column: int, limits: PageLimits, write: Callable[[pa.Buffer], int]
) -> LeafColumn:
    hints = EncodingHints.parse({**path[0].metadata, **path[-1].metadata})
    if not is_blob(path[-1]):
        return LeafColumn(column, limits, path, hints)
    if any(field.logical_type in LISTS for field in path):
        name = ".".join(field.name for field in path)
        message = f"blob column {name!r} inside a list"
        raise UnsupportedError(message, where=Breadcrumb(column=name))
    return LeafColumn(column, limits, path, hints, write)


@dataclass(slots=True)
class FieldWriter:
    """A field of the schema's top; takes its arrays apart for the leaves."""

    tree_of_fields: Tree
    leaves: list[LeafColumn]
    column: int = -1
    encoding: ColumnEncoding = dataclasses.field(default_factory=Values)

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `pennon.file.v2_0.pages.ColumnWriter.add`."""
        found = spines(array, self.tree_of_fields, self.tree_of_fields.field.name)
        for leaf, spine in zip(self.leaves, list(found), strict=True):
            yield from leaf.add(spine)

    def flush(self) -> Iterator[PageWork]:
        """See `pennon.file.v2_0.pages.ColumnWriter.flush`."""
        for leaf in self.leaves:
            yield from leaf.flush()

    def finish(self) -> Iterator[PageWork]:
        """See `pennon.file.v2_0.pages.ColumnWriter.finish`."""
        return iter(())

    def own(self) -> None:
        """See `pennon.file.v2_0.pages.ColumnWriter.own`."""
        for leaf in self.leaves:
            leaf.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `pennon.file.v2_0.pages.ColumnWriter.tree`."""
        return iter(self.leaves)


@dataclass(slots=True)
class LeafColumn(GatheringColumn):
    """One leaf; ``write`` is where the values of a blob column go, at once."""

    path: Path
    hints: EncodingHints
    write: Callable[[pa.Buffer], int] | None = None

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """Take a spine; yield the work of the pages that are full."""
        depth = len(self.path) - 1
        if self.write is not None:
            described = describe_blobs(leaf_of(array, depth), self.write)
            array = replaced_leaf(array, depth, described)
        return self.gather(array)

    def encode(self, array: pa.Array) -> list[EncodedPage]:
        """Return a page, or smaller ones if that cannot be one."""
        page = self._encode(array)
        if page is not None:
            return [EncodedPage(self.column, len(array), page)]
        if len(array) == 1:
            name = ".".join(field.name for field in self.path)
            message = "a row with more NULL or empty lists in sequence than a chunk can hold"
            raise UnsupportedError(message, where=Breadcrumb(column=name))
        half = len(array) // 2
        return [*self.encode(array.slice(0, half)), *self.encode(array.slice(half))]

    def _encode(self, array: pa.Array) -> EncodedLayout | None:
        depth = len(self.path) - 1
        try:
            if self.write is not None:
                return encode_descriptions(array, depth)
            return encode_page(array, depth, self.hints)
        except LanceError as error:
            name = ".".join(field.name for field in self.path)
            raise error.located(Breadcrumb(column=name)) from error
