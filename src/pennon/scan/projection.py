"""From the columns that a caller names to what is read and what is shown.

Names are those of top-level fields, of fields inside structs (``st.y.z``), or of columns that lie
in no file: ``_rowid``, ``_rowaddr``, ``_rowoffset``, and the versions that made or last changed a row.

A scan *flattens*: ``st.y.z`` becomes a column of that name.  A take *nests*: it becomes a struct
``st`` that holds only what was asked for.  (That is how pylance does it, measured on 14.0.2.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, UnsupportedError
from pennon.schema.arrow import arrow_metadata, field_to_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.project import project, resolve


class MetaColumn(Enum):
    """A column that is computed, not stored in a data file."""

    ROW_ID = "_rowid"
    ROW_ADDRESS = "_rowaddr"
    ROW_OFFSET = "_rowoffset"
    CREATED_AT = "_row_created_at_version"
    UPDATED_AT = "_row_last_updated_at_version"


_META_NAMES = {meta.value: meta for meta in MetaColumn}
Path: TypeAlias = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the result.

    Either ``meta`` is set, or ``top`` is the position of a field among those read, and ``path``
    leads from it into structs, as child positions.
    """

    arrow: pa.Field[Any]
    meta: MetaColumn | None = None
    top: int = 0
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Projection:
    """The columns to read (``read``: a schema with ids) and the columns to show, in order."""

    read: Schema
    columns: tuple[OutputColumn, ...]
    arrow: pa.Schema = field(init=False, repr=False, compare=False)
    """The schema of the result."""

    def __post_init__(self) -> None:
        """Make the schema."""
        fields = [column.arrow for column in self.columns]
        arrow = pa.schema(fields, arrow_metadata(self.read.metadata))
        object.__setattr__(self, "arrow", arrow)

    @property
    def names(self) -> list[str]:
        """Return the names of the columns that are shown."""
        return [column.arrow.name for column in self.columns]

    @property
    def metas(self) -> frozenset[MetaColumn]:
        """Return the computed columns that are shown."""
        return frozenset(column.meta for column in self.columns if column.meta is not None)


def plan_scan_projection(
    schema: Schema,
    columns: Sequence[str] | Mapping[str, str] | None,
    extra: Sequence[MetaColumn] = (),
) -> Projection:
    """Return the projection of a scan; ``extra`` computed columns follow unless named already.

    A mapping gives new names: ``{"shown": "path.of.column"}``.

    Raises ArgumentError for a column that is not there or is named twice, UnsupportedError for an
    expression in place of a column.
    """
    if columns is None:
        shown = [_top_column(field, at) for at, field in enumerate(schema.fields)]
        return Projection(schema, (*shown, *(_meta_column(meta) for meta in extra)))
    if isinstance(columns, Mapping):
        _check_plain(schema, columns)
        sources = dict(columns)
    else:
        _check_distinct(columns)
        sources = {name: name for name in columns}
    paths = {at: resolve(schema, at) for at in sources.values() if at not in _META_NAMES}
    read = project(schema, list(paths))
    tops = {field.id: number for number, field in enumerate(read.fields)}
    shown = [
        _flat_column(read, name, paths[at], tops[paths[at][0].id])
        if at in paths
        else _meta_column(_META_NAMES[at], name)
        for name, at in sources.items()
    ]
    shown += [_meta_column(meta) for meta in extra if meta.value not in sources]
    return Projection(read, tuple(shown))


def plan_take_projection(
    schema: Schema, columns: Sequence[str] | Mapping[str, str] | None
) -> Projection:
    """Return the projection of a take: structs stay structs, a field named twice counts once.

    A mapping gives new names, and flattens like that of a scan.

    Raises ArgumentError for a column that is not there.
    """
    if columns is None or isinstance(columns, Mapping):
        return plan_scan_projection(schema, columns)
    read = project(schema, [name for name in columns if name not in _META_NAMES])
    tops = {field.name: at for at, field in enumerate(read.fields)}
    shown: list[OutputColumn] = []
    for name in columns:
        if name in _META_NAMES:
            shown.append(_meta_column(_META_NAMES[name]))
            continue
        at = tops.pop(resolve(schema, name)[0].name, None)
        if at is not None:
            shown.append(_top_column(read.fields[at], at))
    return Projection(read, tuple(shown))


def _check_distinct(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            message = f"column {name!r} is named twice"
            raise ArgumentError(message)
        seen.add(name)


def is_column(schema: Schema, source: str) -> bool:
    """Tell whether a text is the name of a column, and no expression."""
    if source in _META_NAMES:
        return True
    try:
        resolve(schema, source)
    except ArgumentError:
        return False
    return True


def _check_plain(schema: Schema, columns: Mapping[str, str]) -> None:
    """Raise UnsupportedError unless every value is a column that exists."""
    for name, source in columns.items():
        if not is_column(schema, source):
            message = (
                f"column {name!r} is to be {source!r}: expressions are computed by scans and takes, "
                "elsewhere columns can be renamed"
            )
            raise UnsupportedError(message)


def _meta_column(meta: MetaColumn, name: str | None = None) -> OutputColumn:
    return OutputColumn(pa.field(name or meta.value, pa.uint64()), meta)


def _top_column(field: Field, top: int) -> OutputColumn:
    return OutputColumn(field_to_arrow(field), None, top)


def _flat_column(read: Schema, name: str, path: Path, top: int) -> OutputColumn:
    """Return the column that shows what the path, of fields of the whole schema, leads to."""
    here, steps, nullable = read.fields[top], [], path[0].nullable
    for step in path[1:]:
        if here.logical_type != "struct":
            message = f"column {name!r} leads through {here.name!r}, which is no struct"
            raise ArgumentError(message)
        same = [child.id == step.id and child.name == step.name for child in here.children]
        steps.append(same.index(True))
        here = here.children[steps[-1]]
        nullable = nullable or step.nullable
    arrow = field_to_arrow(here).with_name(name).with_nullable(nullable)
    return OutputColumn(arrow, None, top, tuple(steps))
