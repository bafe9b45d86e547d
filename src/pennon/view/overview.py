"""The overview of a table: facts, columns with their bytes, indices, warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyarrow import types as t

from pennon.dataset.index_descriptions import IndexDescription
from pennon.dataset.lance_dataset import LanceDataset
from pennon.dataset.stats import LanceStats
from pennon.display.cells import size
from pennon.errors import LanceError, printable
from pennon.scan.facts import table_facts
from pennon.scan.plan.moved_rows import indices_now
from pennon.scan.snapshot import Key, Snapshot
from pennon.schema.field import Field
from pennon.schema.project import join_path
from pennon.schema.version import V0_1
from pennon.table.fragments import Fragments
from pennon.table.indices_wire import kind_of
from pennon.table.manifest import Manifest
from pennon.table.storage_version import storage_version
from pennon.view.cells import Json, is_vector
from pennon.view.column_pages import column_pages
from pennon.view.opened import ViewedTable

MAX_SHOWN_COLUMNS: Final = 2_000
MAX_FILES: Final = 400
"""The metadata of so many data files is read to find the bytes of columns; in larger tables of some fragments only."""
_WORD_INDEXED: Final[Key[frozenset[int]]] = Key("fields with a full-text index")
SMALL_ROWS: Final = 1_024
"""`LanceStats.dataset_stats` calls a fragment of fewer rows small."""


def read_table(viewed: ViewedTable, version: int) -> Json:
    """Return the facts and the columns of a version; only its manifest is read."""
    dataset = viewed.at(version)
    manifest, newest = dataset.snapshot.manifest, viewed.newest()
    fields = manifest.schema.fields[:MAX_SHOWN_COLUMNS]
    facts = table_facts(dataset.snapshot, dataset.uri, newest)
    return {
        "name": printable(dataset.uri.rstrip("/").rpartition("/")[2] or dataset.uri),
        "version": int(dataset.version),
        "newest": newest,
        "time": f"{manifest.timestamp.astimezone():%Y-%m-%d %H:%M:%S %Z}",
        "branch": printable(manifest.branch or ""),
        "facts": [[name, printable(text)] for name, text in facts.items()],
        "rows": dataset.count_rows(),
        "columns": [_column(dataset, each, number) for number, each in enumerate(fields)],
        "column_count": len(manifest.schema.fields),
        "tags": _tags(dataset, manifest),
        "config": _pairs({**manifest.config, **manifest.table_metadata}),
    }


def _column(dataset: LanceDataset, field: Field, number: int) -> Json:
    kind = dataset.schema.field(number).type
    return {
        "name": printable(field.name),
        "path": join_path([field.name]),
        "type": _type_name(field, kind),
        "nullable": field.nullable,
        "number": bool(t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)),
        "search": "vector" if is_vector(kind) else "text" if _is_text(kind) else "",
        "indexed": field.id in _word_indexed(dataset.snapshot),
    }


def _word_indexed(snapshot: Snapshot) -> frozenset[int]:
    """Return the fields that have a full-text index."""

    def find() -> frozenset[int]:
        found = [each for each in indices_now(snapshot) if kind_of(each)[1] == "Inverted"]
        return frozenset(field for each in found for field in each.field_ids)

    return snapshot.remember(_WORD_INDEXED, find)


def _type_name(field: Field, kind: pa.DataType) -> str:
    name = printable(field.metadata.get("ARROW:extension:name", b"").decode("utf-8", "replace"))
    text = printable(str(kind))
    return f"{name} ({text})" if name and name not in text else text


def _is_text(kind: pa.DataType) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind))


def _tags(dataset: LanceDataset, manifest: Manifest) -> list[str]:
    try:
        tags = dataset.tags.list()
    except (LanceError, OSError):
        return []
    mine = [
        k
        for k, v in tags.items()
        if v["version"] == manifest.version and v["branch"] == manifest.branch
    ]
    return [printable(each) for each in mine[:50]]


def _pairs(values: dict[str, str]) -> list[list[str]]:
    return [[printable(k), printable(v[:2000])] for k, v in sorted(values.items())[:200]]


# --- bytes of columns -----------------------------------------------------------------------------


def read_column_bytes(dataset: LanceDataset) -> Json:
    """Return the bytes of each top-level column, with all that is nested in it.

    In tables of more than `MAX_FILES` data files they are those of some fragments, scaled by the size of all: then
    ``note`` says so.
    """
    snapshot = dataset.snapshot
    summary = snapshot.manifest.summary
    some, share = _sample(snapshot)
    found = _column_bytes(some)
    total = summary.size_bytes
    scaled = [round(each / share) if share else each for each in found]
    rest = max(total - sum(scaled), 0)
    note = ""
    if some is not snapshot:
        note = (
            f"estimated from {len(some.manifest.fragments):,} of {summary.fragments:,} fragments; "
            f"dataset.stats.data_stats() counts all"
        )
    return {
        "columns": [
            {"bytes": each, "size": size(each), "share": each / total if total else 0}
            for each in scaled
        ],
        "rest": {"bytes": rest, "size": size(rest), "share": rest / total if total else 0},
        "total": size(total),
        "note": note,
    }


def _sample(snapshot: Snapshot) -> tuple[Snapshot, float]:
    """Return the version, or one with a part of its fragments, and how much of all bytes it has."""
    manifest = snapshot.manifest
    summary = manifest.summary
    if summary.files <= MAX_FILES:
        return snapshot, 1.0
    step = -(-summary.fragments * max(summary.files // summary.fragments, 1) // MAX_FILES)
    few = tuple(manifest.fragments[i] for i in range(0, summary.fragments, step))
    part = sum(file.size_bytes or 0 for each in few for file in each.files)
    return snapshot.at(
        replace(manifest, fragments=few)
    ), part / summary.size_bytes if summary.size_bytes else 0.0


def _column_bytes(snapshot: Snapshot) -> list[int]:
    fields = snapshot.manifest.schema.fields[:MAX_SHOWN_COLUMNS]
    if storage_version(snapshot.manifest) != V0_1:
        by_field = {
            each.id: each.bytes_on_disk for each in LanceStats(snapshot).data_stats().fields
        }
        return [sum(by_field[part.id] for part in field.walk()) for field in fields]
    fragments = snapshot.manifest.fragments
    pages = [
        [column_pages(snapshot, f, each, encodings=False) for each in fragments] for f in fields
    ]
    return [sum(each.size_bytes for each in column if each is not None) for column in pages]


# --- indices and warnings -------------------------------------------------------------------------


def read_health(dataset: LanceDataset) -> Json:
    """Return the indices and the warnings of a version; folders of indices are listed."""
    rows = dataset.count_rows()
    indices, damage = [], ""
    try:
        indices = dataset.describe_indices()
    except (LanceError, OSError) as error:
        damage = printable(str(error))
    return {
        "indices": [_index(each, rows) for each in indices],
        "warnings": [
            {"text": text, "advice": advice} for text, advice in _warnings(dataset, indices, damage)
        ],
    }


def _index(index: IndexDescription, rows: int) -> Json:
    left = max(rows - index.num_rows_indexed, 0)
    return {
        "name": printable(index.name),
        "kind": printable(index.index_type),
        "columns": [printable(each) for each in index.field_names],
        "rows": f"{index.num_rows_indexed:,}",
        "left": f"{left:,}" if left else "",
        "segments": len(index.segments),
        "size": "" if index.total_size_bytes is None else size(index.total_size_bytes),
        "unused": printable(str(index.details.get("not_asked", ""))),
    }


def _warnings(
    dataset: LanceDataset, indices: list[IndexDescription], damage: str
) -> Iterator[tuple[str, str]]:
    """Yield what slows the table down, or is broken, each with the command that helps."""
    numbers = Fragments.of(dataset.snapshot.manifest.fragments).sizes()
    count, rows = len(numbers), dataset.count_rows()
    small = int((numbers[:, 0] < SMALL_ROWS).sum()) if count else 0
    if count > 8 and small > count // 4:
        text = f"{small:,} of {count:,} fragments have fewer than {SMALL_ROWS:,} rows: scans open many small files"
        yield text, "pennon compact TABLE"
    deleted = dataset.snapshot.manifest.summary.deleted_rows
    if deleted > rows // 10 and deleted:
        share = deleted / (deleted + rows)
        yield (
            f"{share:.0%} of the stored rows are deleted: scans read them all the same",
            "pennon compact TABLE",
        )
    if damage:
        yield f"the indices cannot be described: {damage}", ""
    for each in indices:
        if "not_asked" in each.details:
            why = printable(str(each.details["not_asked"]))
            yield f"queries do not use index {printable(each.name)}: {why}", ""
    behind = [e for e in indices if e.fields and 0 < e.num_rows_indexed < rows - rows // 10]
    if behind:
        names = ", ".join(
            f"{printable(e.name)} ({rows - e.num_rows_indexed:,} rows)" for e in behind[:5]
        )
        text = f"rows that an index does not cover are read one by one: {names}"
        yield text, "dataset.optimize.optimize_indices()"
    if not dataset.count_rows() and not count:
        yield "the table has no rows", ""
