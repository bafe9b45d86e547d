"""Rows of a table for the page: found by number, filter or search, then read by their addresses.

Two steps keep an answer small.  The first finds addresses and reads only the columns of the filter or the search.  The
second reads the values of at most `MAX_ROWS` rows, so few at once that they fit into `AT_ONCE_BYTES`, and none that may be
larger than that: the pages of its column in the data file say how large a value can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from pennon.core.units import MIB
from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import ArgumentError, LanceError, NotFoundError
from pennon.scan.plan.take_plan import plan_take
from pennon.scan.run.blobs import BlobRange, blobs_by_addresses, read_ranges
from pennon.scan.run.take import take_addresses
from pennon.scan.snapshot import Snapshot
from pennon.schema.arrow import field_to_arrow
from pennon.schema.check import is_blob, is_blob_v2
from pennon.schema.field import Field
from pennon.schema.project import join_path
from pennon.schema.version import V0_1
from pennon.table.storage_version import storage_version
from pennon.view import cells
from pennon.view.asked import Asked
from pennon.view.cells import Json
from pennon.view.column_pages import largest_page, value_bound
from pennon.view.media import HEAD_BYTES, Media, sniff

MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 60
MAX_OFFSET: Final = 1 << 62
MAX_FOUND: Final = 10_000
"""A search ranks so many rows at most."""
AT_ONCE_BYTES: Final = 256 * MIB
MAX_MEDIA_BYTES: Final = 64 * MIB


@dataclass(frozen=True, slots=True)
class Found:
    """Addresses of rows, best first; a search has a score or a distance of each."""

    addresses: list[int]
    scores: list[float] | None = None
    score_name: str = ""


def read_rows(dataset: LanceDataset, asked: Asked) -> Json:
    """Return rows as cells, with their addresses, and the scores of a search."""
    found = find_rows(dataset, asked)
    fields = chosen_fields(dataset.snapshot, asked)
    return {
        "columns": [cells.printable(each.name) for each in fields],
        "fields": [join_path([each.name]) for each in fields],
        "addresses": [str(each) for each in found.addresses],
        "scores": found.scores and [f"{each:.5g}" for each in found.scores],
        "score_name": found.score_name,
        "rows": _cells(dataset.snapshot, fields, found.addresses),
    }


def find_rows(dataset: LanceDataset, asked: Asked) -> Found:
    """Find rows: all, those that pass a filter, or those nearest to a text or to the vector of a row.

    Raises ArgumentError (and others of `LanceDataset.scanner`) for a filter or a column that cannot be.
    """
    offset, limit = asked.number("offset", 0, MAX_OFFSET), asked.number("limit", 25, MAX_ROWS)
    options: dict[str, Any] = {"filter": asked.text("filter") or None}
    words, near = asked.text("words"), asked.address("near")
    if words or near is not None:
        offset = min(offset, MAX_FOUND)
        options["prefilter"] = True
    if near is not None:
        column = asked.text("column")
        query = _vector_of(dataset, column, near)
        options["nearest"] = {"column": column, "q": query, "k": offset + limit}
        rows = _scan(dataset, options).slice(offset)
        return _found(rows, "_distance")
    if words:
        column = asked.text("column")
        options["full_text_query"] = {"query": words, "columns": [column]} if column else words
    rows = _scan(dataset, {**options, "limit": limit, "offset": offset})
    return _found(rows, "_score")


def _scan(dataset: LanceDataset, options: dict[str, Any]) -> pa.Table:
    return dataset.scanner(columns=[], with_row_address=True, **options).to_table()


def _found(rows: pa.Table, score: str) -> Found:
    addresses = rows["_rowaddr"].to_pylist()
    if score not in rows.column_names:
        return Found(addresses)
    return Found(addresses, rows[score].to_pylist(), score.lstrip("_"))


def _vector_of(dataset: LanceDataset, column: str, address: int) -> Any:
    value = _take(dataset.snapshot, column, [address]).column(0)[0]
    if not value.is_valid or not isinstance(value, pa.FixedSizeListScalar):
        message = f"the row has no vector in column {column!r} to search with"
        raise ArgumentError(message)
    return value.values


def count_rows(dataset: LanceDataset, asked: Asked) -> Json:
    """Return the number of rows that pass a filter."""
    count = dataset.count_rows(asked.text("filter") or None)
    return {"count": count, "text": f"{count:,}"}


def chosen_fields(snapshot: Snapshot, asked: Asked) -> list[Field]:
    """Return the top-level columns from ``first_column`` on, at most `MAX_COLUMNS`; all they are named by ``columns``."""
    fields = list(snapshot.manifest.schema.fields)
    first = asked.number("first_column", 0, len(fields))
    return fields[first : first + asked.number("column_count", MAX_COLUMNS, MAX_COLUMNS)]


# --- values ---------------------------------------------------------------------------------------


def _cells(snapshot: Snapshot, fields: Sequence[Field], addresses: list[int]) -> list[list[Json]]:
    """Return the cells of rows, row by row."""
    columns = [_column_cells(snapshot, field, addresses) for field in fields]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in addresses]


def _column_cells(snapshot: Snapshot, field: Field, addresses: list[int]) -> list[Json]:
    if is_described(snapshot, field):
        return _blob_cells(snapshot, field, addresses)
    found: dict[int, Json] = {}
    for fragment in dict.fromkeys(each >> 32 for each in addresses):
        inside = [each for each in addresses if each >> 32 == fragment]
        largest = largest_page(snapshot, field, fragment)
        if largest > AT_ONCE_BYTES and _may_be_large(field):
            bounds = {each: value_bound(snapshot, field, each) for each in inside}
            found.update((k, cells.large(v)) for k, v in bounds.items() if v > AT_ONCE_BYTES)
            inside = [each for each in inside if each not in found]
        some = max(1, min(len(inside), AT_ONCE_BYTES // 8 // max(largest, 1)))
        for start in range(0, len(inside), some):
            part = inside[start : start + some]
            found.update(zip(part, _taken_cells(snapshot, field, part), strict=True))
    return [found[each] for each in addresses]


def _taken_cells(snapshot: Snapshot, field: Field, addresses: list[int]) -> list[Json]:
    """Return the cells of rows of one fragment; damage becomes the text of the cell that it hides."""
    try:
        column = _take(snapshot, join_path([field.name]), addresses).column(0)
    except LanceError as error:
        if len(addresses) > 1:
            return [_taken_cells(snapshot, field, [each])[0] for each in addresses]
        return [cells.failed(error)]
    return [shown(value) for value in column]


def shown(value: pa.Scalar) -> Json:
    """Return a cell, also of a value that breaks the rules of its type."""
    try:
        return cells.cell(value)
    except (ValueError, TypeError, OverflowError, IndexError, pa.ArrowException) as error:
        return cells.failed(error)


def _take(snapshot: Snapshot, column: str, addresses: Sequence[int]) -> pa.RecordBatch:
    plan = plan_take(snapshot, (column,))
    return take_addresses(snapshot, plan, np.array(addresses, np.uint64))


def _may_be_large(field: Field) -> bool:
    kind = field_to_arrow(field).type
    return not (t.is_primitive(kind) or t.is_boolean(kind))


# --- blobs ----------------------------------------------------------------------------------------


def is_described(snapshot: Snapshot, field: Field) -> bool:
    """Tell whether rows hold descriptions of the column's values, which lie elsewhere: blobs."""
    return is_blob_v2(field) or (is_blob(field) and storage_version(snapshot.manifest) != V0_1)


def _blob_cells(snapshot: Snapshot, field: Field, addresses: list[int]) -> list[Json]:
    """Return cells of blobs; only their first bytes are read."""
    try:
        found = _blobs(snapshot, field, addresses)
        filled = [each for each in found if each is not None]
        heads = iter(read_ranges([(b, 0, min(b.size_bytes, HEAD_BYTES)) for b in filled]))
        return [
            {"kind": "null"} if b is None else cells.blob(next(heads).to_pybytes(), b.size_bytes)
            for b in found
        ]
    except (LanceError, OSError) as error:
        if len(addresses) > 1:
            return [_blob_cells(snapshot, field, [each])[0] for each in addresses]
        return [cells.failed(error)]


def _blobs(
    snapshot: Snapshot, field: Field, addresses: Sequence[int]
) -> Sequence[BlobRange | None]:
    column = join_path([field.name])
    return blobs_by_addresses(snapshot, column, np.array(addresses, np.uint64)).blobs


# --- one value ------------------------------------------------------------------------------------


def read_cell(dataset: LanceDataset, asked: Asked) -> Json:
    """Return one value with all that the page shows of it."""
    snapshot = dataset.snapshot
    field, address = _place(snapshot, asked)
    if is_described(snapshot, field):
        return _blob_cells(snapshot, field, [address])[0]
    bound = value_bound(snapshot, field, address)
    if bound > AT_ONCE_BYTES and _may_be_large(field):
        return cells.large(bound)
    return cells.full_cell(_one(snapshot, field, address))


def read_media(dataset: LanceDataset, asked: Asked) -> tuple[Media, bytes]:
    """Return an image or a sound.

    Raises ArgumentError for a value that is neither, or larger than `MAX_MEDIA_BYTES`.
    """
    snapshot = dataset.snapshot
    field, address = _place(snapshot, asked)
    data = _blob_bytes(snapshot, field, address) if is_described(snapshot, field) else None
    if data is None:
        bound = value_bound(snapshot, field, address)
        if bound > AT_ONCE_BYTES:
            message = f"the value may be as large as {bound:,} bytes, and is not read"
            raise ArgumentError(message)
        value = cells.plain(_one(snapshot, field, address))
        data = value.as_buffer().to_pybytes() if isinstance(value, pa.BinaryScalar) else b""
    media = sniff(data[:MIB])  # the size of a JPEG stands behind its EXIF block
    if media is None or not media.is_shown or len(data) > MAX_MEDIA_BYTES:
        message = "the value is no image or sound that the page shows"
        raise ArgumentError(message)
    return media, data


def _blob_bytes(snapshot: Snapshot, field: Field, address: int) -> bytes:
    blob = _blobs(snapshot, field, [address])[0]
    if blob is None or blob.size_bytes > MAX_MEDIA_BYTES:
        message = "the value is NULL, or larger than the page shows"
        raise ArgumentError(message)
    return bytes(read_ranges([(blob, 0, blob.size_bytes)])[0].to_pybytes())


def _place(snapshot: Snapshot, asked: Asked) -> tuple[Field, int]:
    column, address = asked.text("column"), asked.address("row")
    for field in snapshot.manifest.schema.fields:
        if join_path([field.name]) == column and address is not None:
            return field, address
    message = f"there is no column {column!r}" if address is not None else "row is missing"
    raise NotFoundError(message)


def _one(snapshot: Snapshot, field: Field, address: int) -> pa.Scalar:
    column = _take(snapshot, join_path([field.name]), [address]).column(0)
    if not len(column):
        message = f"there is no row at address {address}: it was deleted"
        raise NotFoundError(message)
    return column[0]
