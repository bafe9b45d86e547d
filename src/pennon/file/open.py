"""Data files of any version, opened or begun: the one place that knows which versions there are.

The code of a file version is a package.  It is imported when the first file of its version is read or
written, so all that is imported within functions here is: a table's first row must not wait for the
code of versions that it does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pennon.core.cache import Cache
from pennon.core.units import FieldId
from pennon.encoding.rows import FileRows
from pennon.errors import Breadcrumb, LanceError, UnsupportedError
from pennon.file.container.footer import FOOTER_BYTES, parse_footer, parse_version
from pennon.file.container.opened_file import BoundsSteps, OpenedFile, ReadRows
from pennon.file.container.tail import Tail
from pennon.io.store import ObjectReader, ObjectWriter
from pennon.schema.field import Field, Schema
from pennon.schema.version import V0_1, V2_0, V2_1, V2_2, FileVersion

if TYPE_CHECKING:  # what is imported for its names only need not be loaded, either
    from pennon.file.container.file import DataFile
    from pennon.file.container.generation import FileSource, Generation
    from pennon.file.container.page_report import ExplainPage, FileReport
    from pennon.file.container.write_limits import PageLimits, RowGroups
    from pennon.file.container.writer import DataFileWriter, PlanColumns
    from pennon.file.container.writer_base import FileWriter
    from pennon.file.v0_1.file import RowGroupFile

# ruff: noqa: PLC0415 - see above

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
    from pennon.file.v2_1.across import read_across as read
    from pennon.file.v2_1.reader import FieldReader

    mine = [reader for reader in readers if isinstance(reader, FieldReader)]
    return read(mine, rows) if len(mine) == len(readers) else None


def _open_row_groups(source: ObjectReader, tail: Tail) -> OpenedFile:
    from pennon.file.v0_1.file import open_row_groups

    return open_row_groups(source, tail, _columns_of_0_1())


def _open_container(
    source: ObjectReader,
    tail: Tail,
    version: FileVersion,
    memory: Cache | None = None,
    identity: Hashable = None,
) -> DataFile:
    from pennon.file.container.file import open_container

    return open_container(source, tail, _COLUMNS[version](), memory, identity)


@cache
def _columns_of_0_1() -> Generation[RowGroupFile]:
    from pennon.file.v0_1.reader import COLUMNS

    return replace(COLUMNS, read_bounds=_bounds_of_0_1)


def _bounds_of_0_1(
    file: RowGroupFile, fields: Sequence[Field], column_of: Mapping[FieldId, int]
) -> BoundsSteps:
    from pennon.file.v0_1.page_bounds import read_bounds

    return read_bounds(file, fields, column_of)


@cache
def _columns_of_2_0() -> Generation[FileSource]:
    from pennon.file.v2_0.reader import COLUMNS

    return replace(COLUMNS, read_bounds=_bounds_of_2_0)


def _bounds_of_2_0(
    file: FileSource, fields: Sequence[Field], column_of: Mapping[FieldId, int]
) -> BoundsSteps:
    from pennon.file.v2_0.zones import read_bounds

    return read_bounds(file, fields, column_of)


@cache
def _columns_of_2_1() -> Generation[FileSource]:
    from pennon.file.v2_1.reader import COLUMNS

    return COLUMNS


_COLUMNS: Final[Mapping[FileVersion, Callable[[], Generation[FileSource]]]] = {
    V2_0: _columns_of_2_0,
    V2_1: _columns_of_2_1,
    V2_2: _columns_of_2_1,
}

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
    from pennon.file.v0_1.writer import create_row_groups

    return create_row_groups(sink, schema, groups)


def create_container_file(
    sink: ObjectWriter, schema: Schema, version: FileVersion, *, limits: PageLimits | None = None
) -> DataFileWriter:
    """Begin a data file of version 2.0 or 2.1; see `create_data_file`."""
    from pennon.file.container.writer import DataFileWriter

    if version not in _PLANNERS:
        sink.abort()
        known = " and ".join(str(known) for known in _PLANNERS)
        message = f"Pennon writes file versions {known}; it cannot write version {version} yet"
        raise UnsupportedError(message)
    return DataFileWriter(sink, schema, version, _PLANNERS[version](), limits)


def _plan_of_2_0() -> PlanColumns:
    from pennon.file.v2_0.writer import plan_columns

    return plan_columns


def _plan_of_2_1() -> PlanColumns:
    from pennon.file.v2_1.writer import plan_leaves

    return plan_leaves


_PLANNERS: Final[Mapping[FileVersion, Callable[[], PlanColumns]]] = {
    V2_0: _plan_of_2_0,
    V2_1: _plan_of_2_1,
}

# --- explaining -----------------------------------------------------------------------------------


def page_explainer(version: FileVersion) -> ExplainPage:
    """Return what explains the pages of a version from 2.0 on."""
    if version == V2_0:
        from pennon.file.v2_0.explain import explain_arrays

        return explain_arrays
    from pennon.file.v2_1.explain import explain_layout

    return explain_layout


def report_row_groups(file: OpenedFile) -> FileReport:
    """Return the pages and parts of a file of version 0.1; others have none."""
    from pennon.file.container.page_report import FileReport
    from pennon.file.v0_1.file import RowGroupFile
    from pennon.file.v0_1.inspect import report_file

    return report_file(file) if isinstance(file, RowGroupFile) else FileReport([], [])
