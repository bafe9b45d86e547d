"""Writing the columns of versions 2.1 and 2.2: every leaf of the schema gathers its own pages.

A page holds whole rows.  What gathers is the *spine* of a leaf: the array of the field as if it had
that one leaf only, so every struct in it has one field.  Nothing is copied for that, spines of many
batches join like other arrays, and the leaves of a struct need not cut their pages at the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa

from pennon.encoding.v2_1.blob_page import describe_blobs
from pennon.encoding.v2_1.blob_rows import encode_blob_rows, write_inline_blobs
from pennon.encoding.v2_1.choose import encode_descriptions, encode_page
from pennon.encoding.v2_1.encoding_hints import EncodingHints
from pennon.encoding.v2_1.page import EncodedPage as EncodedLayout
from pennon.encoding.v2_1.page_rules import rules_of
from pennon.encoding.v2_1.wire import serialize_page_layout
from pennon.errors import ArgumentError, Breadcrumb, LanceError, UnsupportedError
from pennon.file.container.arrays import check_array, child_array, without_hidden_json
from pennon.file.container.column_writer import (
    ColumnTree,
    ColumnWriter,
    EncodedPage,
    FieldWriter,
    GatheringColumn,
    PageWork,
)
from pennon.file.container.wire import wrap_encoding
from pennon.file.container.write_limits import PageLimits
from pennon.file.v2_1.tree import LISTS, Path, Tree, column_rows
from pennon.schema.blob import is_description, prepare_v2, with_blobs_v2
from pennon.schema.check import is_blob
from pennon.schema.field import Schema
from pennon.schema.version import FileVersion


def plan_leaves(
    schema: Schema,
    limits: PageLimits,
    write_value: Callable[[pa.Buffer], int],
    version: FileVersion,
) -> ColumnTree:
    """Give every leaf its column, in the order of the fields, depth first.

    ``write_value`` puts a blob into the file and returns its position.  Raises ArgumentError for
    zones, which these versions do not have.
    """
    if limits.rows_per_zone is not None:
        message = "zone maps belong to files of version 2.0, and this is to be a newer one"
        raise ArgumentError(message)
    numbers = count()
    writers: list[FieldWriter] = []
    ids: list[int] = []
    for top in schema.fields:
        tree = Tree.of(with_blobs_v2(top, prepare_v2))
        leaves = [_leaf(path, next(numbers), limits, write_value, version) for path in tree.paths()]
        ids += [leaf.path[-1].id for leaf in leaves]
        writers.append(SpineWriter(tree, leaves))
    return ColumnTree(writers, tuple(ids), tuple(range(len(ids))))


def _leaf(
    path: Path,
    column: int,
    limits: PageLimits,
    write: Callable[[pa.Buffer], int],
    version: FileVersion,
) -> LeafColumn:
    hints = EncodingHints.parse({**path[0].metadata, **path[-1].metadata})
    factor = column_rows(path)
    if not is_blob(path[-1]):
        return LeafColumn(column, limits, path, hints, version, factor)
    if is_description(path[-1]):
        return DescribedColumn(column, limits, path, hints, version, factor, write)
    if factor > 1 or any(field.logical_type in LISTS for field in path):
        name = ".".join(field.name for field in path)
        message = f"blob column {name!r} inside a list"
        raise UnsupportedError(message, where=Breadcrumb(column=name))
    return LeafColumn(column, limits, path, hints, version, factor, write)


@dataclass(slots=True)
class SpineWriter(FieldWriter):
    """A field of the schema's top; takes its arrays apart for the leaves."""

    tree_of_fields: Tree
    leaves: list[LeafColumn]

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """See `FieldWriter.add`."""
        found = spines(array, self.tree_of_fields, self.tree_of_fields.field.name)
        for leaf, spine in zip(self.leaves, list(found), strict=True):
            yield from leaf.add(spine)

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        for leaf in self.leaves:
            yield from leaf.flush()

    def own(self) -> None:
        """See `FieldWriter.own`."""
        for leaf in self.leaves:
            leaf.own()

    def tree(self) -> Iterator[ColumnWriter]:
        """See `FieldWriter.tree`."""
        return iter(self.leaves)


@dataclass(slots=True)
class LeafColumn(GatheringColumn):
    """One leaf; ``write`` is where the values of a blob column go, at once."""

    path: Path
    hints: EncodingHints
    version: FileVersion
    factor: int
    """How many rows of the column a row of the file is (`column_rows`)."""
    write: Callable[[pa.Buffer], int] | None = None
    has_pages: bool = field(default=False, init=False)
    """Whether work of a page has left already."""

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """Take a spine; yield the work of the pages that are full."""
        depth = len(self.path) - 1
        if self.write is not None:
            described = describe_blobs(leaf_of(array, depth), self.write)
            array = replaced_leaf(array, depth, described)
        return self.gather(array)

    def flush(self) -> Iterator[PageWork]:
        """See `FieldWriter.flush`."""
        parts = list(self.cut())
        if len(parts) == 1 and not self.has_pages:
            rows, size_bytes = parts[0]
            yield PageWork(size_bytes, partial(self.encode, rows, is_whole=True))
        else:
            for rows, size_bytes in parts:
                yield self.work_of(rows, size_bytes)

    def work_of(self, rows: pa.Array, size_bytes: int) -> PageWork:
        """See `GatheringColumn.work_of`."""
        self.has_pages = True
        return GatheringColumn.work_of(self, rows, size_bytes)  # slots: no plain super()

    def encode(self, array: pa.Array, *, is_whole: bool = False) -> list[EncodedPage]:
        """Return a page, or smaller ones if that cannot be one.

        ``is_whole`` tells that the column has no other rows.
        """
        page = self._encode(array, is_whole=is_whole)
        if page is not None:
            encoding = wrap_encoding("encodings21.PageLayout", serialize_page_layout(page.layout))
            return [EncodedPage(self.column, len(array) * self.factor, encoding, page.buffers)]
        if len(array) == 1:
            name = ".".join(field.name for field in self.path)
            message = "a row with more NULL or empty lists in sequence than a chunk can hold"
            raise UnsupportedError(message, where=Breadcrumb(column=name))
        half = len(array) // 2
        return [*self.encode(array.slice(0, half)), *self.encode(array.slice(half))]

    def _encode(self, array: pa.Array, *, is_whole: bool) -> EncodedLayout | None:
        depth, rules = len(self.path) - 1, rules_of(self.version)
        try:
            if self.write is not None:
                return encode_descriptions(array, depth, rules)
            return encode_page(array, depth, self.hints, rules, is_whole=is_whole)
        except LanceError as error:
            name = ".".join(field.name for field in self.path)
            raise error.located(Breadcrumb(column=name)) from error


@dataclass(slots=True)
class DescribedColumn(LeafColumn):
    """A column of blobs of version 2, whose arrays say where the blobs are, or hold them."""

    def add(self, array: pa.Array) -> Iterator[PageWork]:
        """Take a spine, and write the blobs in it; yield the work of the pages that are full."""
        assert self.write is not None  # as for all blobs
        depth = len(self.path) - 1
        written = write_inline_blobs(leaf_of(array, depth), self.write)
        return self.gather(replaced_leaf(array, depth, written))

    def _encode(self, array: pa.Array, *, is_whole: bool) -> EncodedLayout | None:
        del is_whole  # which matters in fixed-size lists only
        return encode_blob_rows(array, len(self.path) - 1)


# --- spines ---------------------------------------------------------------------------------------


def spines(
    array: pa.Array, tree: Tree, path: str, *, within_null: bool = False
) -> Iterator[pa.Array]:
    """Yield the spine of each leaf, in the order of the columns.

    Raises ArgumentError if the array does not fit the field.  Below structs that are NULL,
    anything may be NULL.
    """
    field = replace(tree.field, nullable=True) if within_null else tree.field
    array = check_array(array, field, path)
    if not tree.children:
        yield array
        return
    within_null = within_null or array.null_count > 0
    for child in tree.children:
        below = f"{path}.{child.field.name}"
        if pa.types.is_struct(array.type):
            part = child_array(array, child.field.name, path)
        else:
            part = array.values
        part = without_hidden_json(part, child.field, array)
        for spine in spines(part, child, below, within_null=within_null):
            yield _wrapped(array, spine, child.field.name)


def _wrapped(array: pa.Array, spine: pa.Array, name: str) -> pa.Array:
    """Return the array with ``spine`` in the place of its fields or items."""
    inner = pa.field(name, spine.type)
    if pa.types.is_struct(array.type):
        validity = array.is_valid().buffers()[1] if array.null_count else None
        kind: pa.DataType = pa.struct([inner])
        return pa.Array.from_buffers(kind, len(array), [validity], children=[spine])
    kind = _list_of(inner, array.type)
    buffers = array.buffers()[: kind.num_buffers]
    return pa.Array.from_buffers(kind, len(array), buffers, offset=array.offset, children=[spine])


def _list_of(item: pa.Field[Any], like: pa.DataType) -> pa.DataType:
    """Return the type of lists as they are in ``like``; a map is lists of its entries."""
    if pa.types.is_fixed_size_list(like):
        return pa.list_(item, like.list_size)
    return pa.large_list(item) if pa.types.is_large_list(like) else pa.list_(item)


def replaced_leaf(spine: pa.Array, depth: int, leaf: pa.Array) -> pa.Array:
    """Return a spine with another leaf, which has as many values, ``depth`` layers down."""
    if depth == 0:
        return leaf
    inner = spine.field(0) if pa.types.is_struct(spine.type) else spine.values
    name = spine.type.field(0).name
    return _wrapped(spine, replaced_leaf(inner, depth - 1, leaf), name)


def leaf_of(spine: pa.Array, depth: int) -> pa.Array:
    """Return the values of a spine, ``depth`` layers down, those under NULLs too."""
    for _ in range(depth):
        spine = spine.field(0) if pa.types.is_struct(spine.type) else spine.values
    return spine
