"""The pages of the columns of a fragment: their sizes, and how they are encoded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB, FieldId
from pennon.encoding.read_protocol import run
from pennon.file.container.file import DataFile
from pennon.file.container.opened_file import OpenedFile
from pennon.file.container.page_report import PageReport
from pennon.file.inspect import explain_pages, explain_row_groups
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.field import Field
from pennon.table.fragment import NO_COLUMN, DataFileRef, Fragment

MAX_PAGES: Final = 400
"""The number of pages that are explained for one column of one fragment."""

LARGE_PAGE: Final = 16 * MIB
"""The pages of a column are told apart where one has more bytes."""
_OFFSET: Final = (1 << 32) - 1
_LARGEST: Final[Key[int]] = Key("largest page")


@dataclass(frozen=True, slots=True)
class ColumnPages:
    """The pages of a column, those of all that is nested in it, in one fragment.

    ``encoding`` names the layout and the encoding of the first page of the largest part; it is empty where nobody looked.
    ``damage`` says why the metadata cannot be read.
    """

    size_bytes: int = 0
    pages: int = 0
    largest_bytes: int = 0
    encoding: str = ""
    damage: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A column of a data file that belongs to a field; ``index`` is its number in the file."""

    file: DataFileRef
    index: int
    name: str


def parts_of(field: Field, fragment: Fragment) -> list[Part]:
    """Return the columns of data files that hold a top-level field, or something nested in it."""
    names = dict(_names(field, ""))
    found = []
    for file in fragment.files:
        if not file.column_indices:  # of version 0.1, whose pages are found by name
            found += [Part(file, NO_COLUMN, names[k]) for k in file.field_ids if k in names]
            continue
        for key, index in zip(file.field_ids, file.column_indices, strict=False):
            if key in names and index > NO_COLUMN:
                found.append(Part(file, index, names[key]))
    return found


def _names(field: Field, above: str) -> Iterator[tuple[FieldId, str]]:
    name = f"{above}.{field.name}" if above else field.name
    yield field.id, name
    for child in field.children:
        yield from _names(child, name)


def column_pages(
    snapshot: Snapshot, field: Field, fragment: Fragment, *, encodings: bool = True
) -> ColumnPages | None:
    """Return the sizes of a field's pages in a fragment; None if no data file holds the field."""
    parts = parts_of(field, fragment)
    if not parts:
        return None
    found: list[tuple[int, int, int, Part]] = []
    for part in parts:
        sizes = _page_sizes(snapshot, part)
        found.append((sum(sizes), len(sizes), max(sizes, default=0), part))
    largest = max(found, key=lambda each: each[0])
    first = explain(snapshot, largest[3], 1) if encodings else []
    return ColumnPages(
        sum(each[0] for each in found),
        sum(each[1] for each in found),
        max(each[2] for each in found),
        label(first[0]) if first else "",
    )


def explain(snapshot: Snapshot, part: Part, most: int) -> list[PageReport]:
    """Return reports about the first pages of a part, at most so many."""
    file = snapshot.open_file(part.file).data
    if isinstance(file, DataFile):
        return explain_pages(file, part.index, part.name, most)
    return [each for each in explain_row_groups(file) if each.column == part.name][:most]


def label(report: PageReport) -> str:
    """Return the layout and the outermost encoding of a page's values in a few words: ``mini-block BitPacked``."""
    values = next((how for what, how in report.encodings if what == "values"), "")
    while values.startswith(("NoNulls(", "SomeNulls(")):
        values = values.partition("(")[2]
    words = values.partition("(")[0].strip()
    if any(what == "dictionary" for what, _ in report.encodings):
        words = "Dictionary"
    if report.encodings and report.encodings[0][0] == "unreadable:":
        return "unreadable"
    return f"{report.layout} {words}".strip()


def value_bound(snapshot: Snapshot, field: Field, address: int) -> int:
    """Return the bytes that the stored value of a row cannot exceed, 0 if nothing is known.

    They are those of its page.  Where the column is nested, and rows are not items of pages, they are those of the largest
    page of the fragment.
    """
    largest = largest_page(snapshot, field, address >> 32)
    fragment = snapshot.manifest.fragment(address >> 32)
    if field.children or largest <= LARGE_PAGE or fragment is None:
        return largest
    for part in parts_of(field, fragment):
        file = snapshot.open_file(part.file).data
        if isinstance(file, DataFile) and part.index < file.num_columns:
            return _page_bytes_at(file, part.index, address & _OFFSET) or largest
    return largest


def _page_bytes_at(file: DataFile, index: int, row: int) -> int:
    """Return the bytes of the page that has a row of a column without children; 0 if none has it."""
    (column,) = run(file.read_columns([index]), file.source.read)
    for page in column.pages:
        if row < page.rows:
            return sum(buffer.size_bytes for buffer in page.buffers)
        row -= page.rows
    return 0


def largest_page(snapshot: Snapshot, field: Field, fragment_id: int) -> int:
    """Return the bytes of the largest page of a field in a fragment, 0 if none is known."""

    def find() -> int:
        fragment = snapshot.manifest.fragment(fragment_id)
        found = fragment and column_pages(snapshot, field, fragment, encodings=False)
        return found.largest_bytes if found else 0

    return snapshot.remember(_LARGEST, find, field.id, fragment_id)


def _page_sizes(snapshot: Snapshot, part: Part) -> Sequence[int]:
    file = snapshot.open_file(part.file).data
    if not isinstance(file, DataFile):
        return _row_group_sizes(file, part.name)
    if part.index >= file.num_columns:
        return []
    (column,) = run(file.read_columns([part.index]), file.source.read)
    return [sum(buffer.size_bytes for buffer in page.buffers) for page in column.pages]


def _row_group_sizes(file: OpenedFile, name: str) -> list[int]:
    return [
        sum(part.extent.size_bytes for part in page.parts)
        for page in explain_row_groups(file)
        if page.column == name
    ]
