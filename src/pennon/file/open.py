"""Data files of any version, opened or begun: the one place that knows which versions there are.

The code of a file version is a package.  It is imported when the first file of its version is read,
written or explained (`_HOMES`): a table's first row must not wait for the code of versions that it
does not have.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from pennon.core.cache import Cache
from pennon.core.units import FieldId
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import FileRows, Rows
from pennon.errors import Breadcrumb, LanceError, UnsupportedError
from pennon.file.container.footer import FOOTER_BYTES, parse_footer, parse_version
from pennon.file.container.opened_file import (
    BoundsSteps,
    JoinableFile,
    OpenedFile,
    ReadRows,
    ReadsSideBySide,
)
from pennon.file.container.tail import Tail
from pennon.io.store import ObjectReader, ObjectWriter
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, V2_0, V2_1, V2_2, WRITABLE, FileVersion

if TYPE_CHECKING:  # what is imported for its names only need not be loaded, either
    from pennon.file.container.file import DataFile
    from pennon.file.container.generation import Generation
    from pennon.file.container.page_report import ExplainPage, FileReport
    from pennon.file.container.write_limits import PageLimits, RowGroups
    from pennon.file.container.writer import DataFileWriter
    from pennon.file.container.writer_base import FileWriter

Part = Literal[
    "columns",
    "bounds",
    "across",
    "join",
    "like",
    "joined",
    "side",
    "plan",
    "open",
    "begin",
    "write",
    "explain",
    "report",
]
_HOMES: Final[Mapping[tuple[Part, FileVersion], tuple[str, str]]] = {
    ("columns", V0_1): ("v0_1.reader", "COLUMNS"),
    ("columns", V2_0): ("v2_0.reader", "COLUMNS"),
    ("columns", V2_1): ("v2_1.reader", "COLUMNS"),
    ("columns", V2_2): ("v2_1.reader", "COLUMNS"),
    ("bounds", V0_1): ("v0_1.page_bounds", "read_bounds"),
    ("bounds", V2_0): ("v2_0.zones", "read_bounds"),
    ("across", V2_1): ("v2_1.multi_file_take", "read_across"),
    ("join", V2_1): ("v2_1.joined_files", "joinable_file"),
    ("like", V2_1): ("v2_1.joined_files", "joinable_alike"),
    ("joined", V2_1): ("v2_1.joined_files", "read_joined"),
    ("side", V2_1): ("v2_1.side_by_side", "SideBySide"),
    ("plan", V0_1): ("v0_1.read_plan", "describe"),
    ("plan", V2_0): ("v2_0.read_plan", "describe"),
    ("plan", V2_1): ("v2_1.reader", "describe"),
    ("plan", V2_2): ("v2_1.reader", "describe"),
    ("open", V0_1): ("v0_1.file", "open_row_groups"),
    ("open", V2_0): ("container.file", "open_container"),
    ("begin", V2_0): ("container.writer", "DataFileWriter"),
    ("write", V0_1): ("v0_1.writer", "create_row_groups"),
    ("write", V2_0): ("v2_0.writer", "plan_columns"),
    ("write", V2_1): ("v2_1.writer", "plan_leaves"),
    ("write", V2_2): ("v2_1.writer", "plan_leaves"),
    ("explain", V2_0): ("v2_0.explain", "explain_arrays"),
    ("explain", V2_1): ("v2_1.explain", "explain_layout"),
    ("report", V0_1): ("v0_1.inspect", "report_file"),
}
"""Where the code of each version is, below `pennon.file`; what versions share stands with the oldest."""


@cache
def _code(part: Part, version: FileVersion) -> Any:
    """Return a part of a version's code, which is imported when that is first asked for."""
    module, name = _HOMES[part, version]
    return getattr(import_module(f"pennon.file.{module}"), name)


# --- reading --------------------------------------------------------------------------------------


def open_data_file(
    source: ObjectReader, memory: Cache | None = None, identity: Hashable = None
) -> OpenedFile:
    """Open a data file of any version: one read of its end, and another if its tables are very long.

    What is learned of its pages is kept in ``memory``, if that is given, where ``identity``
    (`pennon.io.store.Opens.identity`) tells this file from all others.

    Raises FormatError if it is damaged or no Lance file, UnsupportedError for other versions.
    """
    try:
        tail = Tail.read(source)
        source = tail.behind(source)
        version, _ = parse_version(tail.last(8))
        if version == V0_1:
            return _open_row_groups(source, tail)
        return _open_container(source, tail, version, memory, identity)
    except LanceError as error:
        raise error.located(Breadcrumb(file=source.path)) from error.__cause__


def open_container_file(source: ObjectReader) -> DataFile:
    """Open a data file that has columns and buffers of its own: of version 2.0 or newer.

    Raises FormatError if it is damaged or no Lance file, UnsupportedError for other versions.
    """
    try:
        tail = Tail.read(source)
        footer = parse_footer(tail.last(FOOTER_BYTES), source.size_bytes)
        return _open_container(tail.behind(source), tail, footer.version)
    except LanceError as error:
        raise error.located(Breadcrumb(file=source.path)) from error.__cause__


def read_across(readers: Sequence[ReadRows], rows: FileRows) -> pa.Array | None:
    """Return rows of one field of several mapped files, those of each file after the other.

    None if they cannot be read together: of other versions than 2.1 and 2.2, encoded in other ways,
    or damaged.
    """
    read: pa.Array | None = _code("across", V2_1)(readers, rows)
    return read


def joinable_file(reader: ReadRows) -> JoinableFile | None:
    """Return what is known of a field of a mapped file, to read it together with other files.

    None if it cannot be: of other versions than 2.1 and 2.2, encoded in other ways, or damaged.
    """
    known: JoinableFile | None = _code("join", V2_1)(reader)
    return known


def joinable_alike(
    files: Sequence[ObjectReader],
    rows: Sequence[int],
    columns: Sequence[Mapping[FieldId, int]],
    like: JoinableFile,
) -> list[JoinableFile | None]:
    """Return what is known of the field of ``like`` in other mapped files, where that is quickly told; else None.

    Each has so many rows, and keeps its fields in these columns.  ``like`` comes from `joinable_file`.
    """
    known: list[JoinableFile | None] = _code("like", V2_1)(files, rows, columns, like)
    return known


def read_joined(files: Sequence[JoinableFile], rows: FileRows) -> pa.Array | None:
    """Return rows of one field of files that are alike (`JoinableFile.is_like`), those of each file after the other.

    None if one of them is damaged: read one by one they say which.
    """
    read: pa.Array | None = _code("joined", V2_1)(files, rows)
    return read


def side_by_side(
    file: OpenedFile, fields: Sequence[Field], column_of: Mapping[FieldId, int]
) -> ReadsSideBySide | None:
    """Return a reader of many fields of a mapped file, which reads fields that are alike together.

    None if no field can be read so: in files of other versions than 2.1 and 2.2, and where no fields are alike.
    """
    if file.version not in _SIDE_BY_SIDE:
        return None
    found: ReadsSideBySide | None = _code("side", V2_1).of(file, fields, column_of)
    return found


_SIDE_BY_SIDE: Final = (V2_1, V2_2)


def _open_row_groups(source: ObjectReader, tail: Tail) -> OpenedFile:
    opened: OpenedFile = _code("open", V0_1)(source, tail, _columns(V0_1))
    return opened


def _open_container(
    source: ObjectReader,
    tail: Tail,
    version: FileVersion,
    memory: Cache | None = None,
    identity: Hashable = None,
) -> DataFile:
    opened: DataFile = _code("open", V2_0)(source, tail, _columns(version), memory, identity)
    return opened


@cache
def _columns(version: FileVersion) -> Generation[Any]:
    """Return how columns of a version are read; what reads bounds is imported with the first of them."""
    columns: Generation[Any] = _code("columns", version)
    if ("bounds", version) not in _HOMES:
        return columns
    return replace(columns, read_bounds=partial(_read_bounds, version))


def _read_bounds(
    version: FileVersion, file: Any, fields: Sequence[Field], column_of: Mapping[FieldId, int]
) -> BoundsSteps:
    steps: BoundsSteps = _code("bounds", version)(file, fields, column_of)
    return steps


# --- writing --------------------------------------------------------------------------------------


def create_data_file(
    sink: ObjectWriter,
    schema: Schema,
    version: FileVersion,
    *,
    limits: PageLimits | None = None,
    groups: RowGroups | None = None,
) -> FileWriter[Any]:
    """Begin a data file of a version: files of 0.1 have row groups, newer ones pages with limits.

    Raises ArgumentError for limits that no file can keep, UnsupportedError for a version that is not
    written, and for types that it cannot hold; then nothing appears under the name of ``sink``.
    """
    if version != V0_1:
        return create_container_file(sink, schema, version, limits=limits)
    begun: FileWriter[Any] = _code("write", V0_1)(sink, schema, groups)
    return begun


def create_container_file(
    sink: ObjectWriter,
    schema: Schema,
    version: FileVersion,
    *,
    limits: PageLimits | None = None,
    may_be_reserved: bool = False,
) -> DataFileWriter:
    """Begin a data file of version 2.0, 2.1 or 2.2; see `create_data_file`.

    ``may_be_reserved``: columns may be called ``_rowid`` and the like, as those of index files are.
    """
    if version not in _WRITTEN:
        sink.abort()
        known = " and ".join(str(known) for known in _WRITTEN)
        message = f"Pennon writes file versions {known}; it cannot write version {version} yet"
        raise UnsupportedError(message)
    begin: type[DataFileWriter] = _code("begin", V2_0)
    plan = _code("write", version)
    return begin(sink, schema, version, plan, limits, may_be_reserved=may_be_reserved)


_WRITTEN: Final = tuple(version for version in WRITABLE if version != V0_1)

# --- explaining -----------------------------------------------------------------------------------


def page_explainer(version: FileVersion) -> ExplainPage:
    """Return what explains the pages of a version from 2.0 on."""
    explain: ExplainPage = _code("explain", V2_0 if version == V2_0 else V2_1)
    return explain


def describe_read(
    file: OpenedFile, field: Field, column_of: Mapping[FieldId, int], rows: Rows
) -> Steps[list[str]]:
    """Return the steps that say in words how rows of a field would be read, a line for each column.

    They read what describes the columns, and nothing of the pages.
    """
    steps: Steps[list[str]] = _code("plan", file.version)(file, field, column_of, rows)
    return steps


def report_row_groups(file: OpenedFile) -> FileReport:
    """Return the pages and parts of a file of version 0.1."""
    report: FileReport = _code("report", V0_1)(file)
    return report
