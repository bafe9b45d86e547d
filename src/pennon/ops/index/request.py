"""A request for an index: its column, kind and parameters, checked; its name; and its fragments in groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pennon.core.near_names import did_you_mean
from pennon.errors import (
    ArgumentError,
    ColumnTypeError,
    FormatError,
    NoColumnError,
    UnknownOptionError,
)
from pennon.index.kind import Kind
from pennon.scan.read.tasks import live_row_count
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.project import find_path, quoted, walk_names, walk_paths
from pennon.schema.types import storage_type
from pennon.schema.width import row_bytes
from pennon.table.fragment import Fragment
from pennon.table.indices import Index
from pennon.table.indices_wire import parse_indices

SEGMENT_BYTES: Final = 512 << 20
"""About how much memory the values and row numbers of one segment take while it is made."""
_NUMBER_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """An index that is wanted of a column: its kind as users call it, its parameters; ``fragments``: all, or some."""

    snapshot: Snapshot
    column: str
    kind: str
    name: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    fragments: Sequence[Fragment] | None = None

    @property
    def leaf(self) -> Field:
        """Return the field of the column.  Raises NoColumnError."""
        return leaf_of(self.snapshot.manifest.schema, self.column)

    @property
    def indices(self) -> Sequence[Index]:
        """Return the indices of the table."""
        return parse_indices(self.snapshot.manifest.indices)

    def name_or_new(self, details: str, others: Iterable[Index], ending: str = "") -> str:
        """Return the name, or a new one beside others; that of the same kind on the column is replaced."""
        if self.name is not None:
            return self.name
        return new_name(self.snapshot.manifest.schema, self.leaf, details, others, ending)


_OF_ALL_KINDS: Final = (
    "name",
    "replace",
    "train",
    "fragment_ids",
    "index_uuid",
    "progress_callback",
)
"""The options of `LanceDataset.create_scalar_index` itself."""


def check_parameters(kind: Kind, parameters: Mapping[str, Any]) -> None:
    """Raise UnknownOptionError for parameters that a kind does not have, unless it checks them itself."""
    names = kind.parameters.names
    unknown = sorted(parameters.keys() - names)
    if unknown and kind.parameters.check is None:
        known = ", ".join(sorted(names)) or "no parameters"
        hint = did_you_mean(unknown[0], [*names, *_OF_ALL_KINDS])
        text = f"a {kind.user_names[0]} index has {known}, and no {', '.join(unknown)}{hint}"
        raise UnknownOptionError(text)


def check_type(kind: Kind, column: str, arrow: pa.DataType) -> None:
    """Raise ColumnTypeError for values that a kind does not take."""
    if not kind.takes(storage_type(arrow)):
        text = f"{kind.user_names[0]} index column {column} must be {kind.types}, but got {arrow}"
        raise ColumnTypeError(text)


def groups_of_index(
    snapshot: Snapshot, leaf: Field, kind: Kind, fragments: Sequence[Fragment] | None
) -> tuple[tuple[Fragment, ...], ...]:
    """Return some fragments, by default all, as they are sorted together for an index of a kind on a field."""
    chosen = snapshot.manifest.fragments if fragments is None else fragments
    value_bytes = row_bytes(pa.schema([field_to_arrow(leaf)]))
    width = value_bytes + _NUMBER_BYTES + kind.row_bytes
    return tuple(groups_of(snapshot, chosen, max(SEGMENT_BYTES // width, 1)))


def leaf_of(schema: Schema, column: str) -> Field:
    """Return the field that a path leads to, by names in any case if no other has them; raises NoColumnError."""
    try:
        return find_path(schema, column)[-1]
    except ArgumentError as error:
        text = f"{column} not found in schema: {error}"
        raise NoColumnError(text) from None


def leaf_of_index(schema: Schema, index: Index) -> Field:
    """Return the field that an index is of.  Raises FormatError if its entry does not name one of the schema."""
    found = {each.id: each for each in schema.walk()}
    if len(index.field_ids) != 1 or index.field_ids[0] not in found:
        text = f"the index {index.name!r} is of the fields {list(index.field_ids)}, and not of one of the table"
        raise FormatError(text)
    return found[index.field_ids[0]]


def path_of(schema: Schema, leaf: Field) -> str:
    """Return the path of a field, as users write it; `resolve` reads it back."""
    return {each.id: path for path, each in walk_paths(schema)}[leaf.id]


def groups_of(
    snapshot: Snapshot, fragments: Sequence[Fragment], most_rows: int
) -> Iterator[tuple[Fragment, ...]]:
    """Yield fragments that make a segment together: as many rows as are sorted at once; one group at least."""
    group: list[Fragment] = []
    rows = 0
    for fragment in fragments:
        more = live_row_count(snapshot, fragment)
        if group and rows + more > most_rows:
            yield tuple(group)
            group, rows = [], 0
        group.append(fragment)
        rows += more
    yield tuple(group)


def new_name(
    schema: Schema, leaf: Field, message: str, indices: Iterable[Index], ending: str = ""
) -> str:
    """Return the name of an index without one: that of the same kind on the same column is replaced."""
    taken = {index.name: (index.field_ids, index.type_name) for index in indices}
    start = _name_of(schema, leaf) + ending
    name, number = f"{start}_idx", 1
    while taken.get(name, ((leaf.id,), message)) != ((leaf.id,), message):
        number += 1
        name = f"{start}_idx_{number}"
    return name


def _name_of(schema: Schema, leaf: Field) -> str:
    """Return the names along a field's path, as pylance begins the name of an index with them.

    They are joined by dots; if one of them has a dot, those that are no identifiers are quoted.  Source: ledger F-760.
    """
    names = next(names for names, each in walk_names(schema) if each.id == leaf.id)
    if not any("." in name for name in names):
        return ".".join(names)
    return ".".join(name if name.replace("_", "a").isalnum() else quoted(name) for name in names)
