"""Operations on the rows of one table: a request, and the dataset that it is about."""

from __future__ import annotations

import io
from typing import Any, Final

import pyarrow as pa

from pennon.dataset.lance_dataset import LanceDataset
from pennon.errors import ArgumentError
from pennon.namespace.models import answer
from pennon.table.versions import find_location

MODES: Final = ("append", "overwrite")


def read_stream(data: bytes, operation: str) -> pa.Table:
    """Return the rows of an Arrow IPC stream; raises ArgumentError if it is none."""
    if not data:
        message = f"Request data (Arrow IPC stream) is required for {operation}"
        raise ArgumentError(message)
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            found = reader.read_all()
            found.validate(full=True)
    except (pa.ArrowInvalid, OSError) as error:
        message = f"Invalid Arrow IPC stream: {str(error)[:200]}"
        raise ArgumentError(message) from error
    return found


def mode_of(request: Any, known: tuple[str, ...]) -> str:
    """Return the mode of a request, lower case with underscores; raises ArgumentError for another."""
    given = request.mode or known[0]
    lower = "".join(f"_{each.lower()}" if each.isupper() else each for each in given).strip("_")
    lower = lower if lower in known else given.lower()
    if lower not in known:
        message = f"there is no mode {given[:100]!r} here; the modes are {', '.join(known)}"
        raise ArgumentError(message)
    return lower


def count_table_rows(ds: LanceDataset, request: Any) -> Any:
    """Count the rows of a table that pass a condition."""
    return answer("CountTableRowsResponse", count=ds.count_rows(request.predicate))


def insert_into_table(ds: LanceDataset, request: Any, data: bytes) -> Any:
    """Append rows, or overwrite all."""
    rows = read_stream(data, "insert_into_table")
    mode: Any = mode_of(request, MODES)
    ds.insert(rows, mode=mode)
    return answer("InsertIntoTableResponse", num_inserted_rows=rows.num_rows, version=ds.version)


def merge_insert_into_table(ds: LanceDataset, request: Any, data: bytes) -> Any:
    """Merge rows by a key column."""
    rows = read_stream(data, "merge_insert_into_table")
    if not request.on:
        message = "a merge needs a key column: on"
        raise ArgumentError(message)
    builder = ds.merge_insert(request.on)
    if request.when_matched_update_all:
        builder = builder.when_matched_update_all(request.when_matched_update_all_filt)
    if request.when_not_matched_insert_all:
        builder = builder.when_not_matched_insert_all()
    if request.when_not_matched_by_source_delete:
        builder = builder.when_not_matched_by_source_delete(
            request.when_not_matched_by_source_delete_filt
        )
    counts = builder.execute(rows)
    return answer(
        "MergeInsertIntoTableResponse",
        num_updated_rows=counts["num_updated_rows"],
        num_inserted_rows=counts["num_inserted_rows"],
        num_deleted_rows=counts["num_deleted_rows"],
        version=ds.version,
    )


def update_table(ds: LanceDataset, request: Any) -> Any:
    """Set columns to SQL expressions in the rows that pass a condition."""
    updates = dict(request.updates)
    found = ds.update(updates, where=request.predicate)
    return answer("UpdateTableResponse", updated_rows=found["num_rows_updated"], version=ds.version)


def delete_from_table(ds: LanceDataset, request: Any) -> Any:
    """Delete the rows that pass a condition."""
    ds.delete(request.predicate)
    return answer("DeleteFromTableResponse", version=ds.version)


def query_table(ds: LanceDataset, request: Any) -> Any:
    """Return the rows of a query in Arrow's file format."""
    found = ds.to_table(**_scan_arguments(request))
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, found.schema) as writer:
        writer.write_table(found)
    return answer("QueryTableResponse", data=sink.getvalue())


def _scan_arguments(request: Any) -> dict[str, Any]:
    """Return the arguments of a scan that a query asks for."""
    found: dict[str, Any] = {
        "filter": request.filter,
        "offset": request.offset,
        "with_row_id": bool(request.with_row_id),
        "prefilter": request.prefilter,
        "fast_search": request.fast_search,
    }
    columns = request.columns
    if columns is not None:
        found["columns"] = columns.column_aliases or columns.column_names
    text = request.full_text_query
    if text is not None and text.string_query is not None:
        asked = {"query": text.string_query.query}
        found["full_text_query"] = asked | (
            {"columns": text.string_query.columns} if text.string_query.columns else {}
        )
    elif text is not None:
        message = "structured full-text queries are not served; ask for a string_query"
        raise ArgumentError(message)
    vector = _vector_of(request)
    if vector is None:
        found["limit"] = request.k
    else:
        found["nearest"] = {
            "column": request.vector_column,
            "q": vector,
            "k": request.k,
            "metric": request.distance_type,
            "nprobes": request.nprobes,
            "refine_factor": request.refine_factor,
            "ef": request.ef,
        }
        found["nearest"] = {
            key: value for key, value in found["nearest"].items() if value is not None
        }
    return {key: value for key, value in found.items() if value is not None}


def _vector_of(request: Any) -> list[float] | None:
    given = request.vector
    if given is not None and given.multi_vector:
        message = "queries of several vectors are not served"
        raise ArgumentError(message)
    return list(given.single_vector) if given is not None and given.single_vector else None


def list_table_versions(ds: LanceDataset, request: Any) -> Any:
    """List the versions of a table, oldest first or last."""
    versions = sorted(
        ds.versions(), key=lambda each: each["version"], reverse=bool(request.descending)
    )
    shown = [
        {
            "version": each["version"],
            "manifest_path": _path_of(ds, each["version"]),
            "timestamp_millis": int(each["timestamp"].timestamp() * 1000),
        }
        for each in versions
    ]
    return answer(
        "ListTableVersionsResponse",
        versions=shown if request.limit is None else shown[: request.limit],
    )


def _path_of(ds: LanceDataset, version: int) -> str:
    return find_location(ds.snapshot.store, version).path


def restore_table(ds: LanceDataset, request: Any) -> Any:
    """Make an old version the newest."""
    ds.checkout_version(request.version).restore()
    return answer("RestoreTableResponse")


def list_table_tags(ds: LanceDataset, request: Any) -> Any:
    """List the tags of a table."""
    tags = {
        name: {"version": tag["version"], "manifestSize": tag["manifest_size"]}
        for name, tag in ds.tags.list().items()
    }
    return answer("ListTableTagsResponse", tags=tags)


def get_table_tag_version(ds: LanceDataset, request: Any) -> Any:
    """Return the version that a tag names."""
    return answer("GetTableTagVersionResponse", version=ds.tags.get_version(request.tag))


def create_table_tag(ds: LanceDataset, request: Any) -> Any:
    """Make a tag."""
    ds.tags.create(request.tag, request.version)
    return answer("CreateTableTagResponse")


def update_table_tag(ds: LanceDataset, request: Any) -> Any:
    """Let a tag name another version."""
    ds.tags.update(request.tag, request.version)
    return answer("UpdateTableTagResponse")


def delete_table_tag(ds: LanceDataset, request: Any) -> Any:
    """Delete a tag."""
    ds.tags.delete(request.tag)
    return answer("DeleteTableTagResponse")


def alter_table_drop_columns(ds: LanceDataset, request: Any) -> Any:
    """Drop columns."""
    ds.drop_columns(list(request.columns))
    return answer("AlterTableDropColumnsResponse", version=ds.version)
