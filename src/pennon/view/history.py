"""The versions of a table for the page: what each did, and how two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final

import pyarrow as pa
from pyarrow import types as t

from pennon.core.thread_pools import map_all
from pennon.dataset.lance_dataset import LanceDataset
from pennon.display.cells import size
from pennon.errors import LanceError, printable
from pennon.scan.plan.moved_rows import indices_now
from pennon.schema.arrow import field_to_arrow
from pennon.schema.field import Field
from pennon.schema.project import join_path, walk_paths
from pennon.table import operations as op
from pennon.table.fragment import Fragment
from pennon.table.manifest import Manifest
from pennon.table.transaction_wire import find_transaction
from pennon.table.versions import ManifestLocation, read_manifest_at
from pennon.view.asked import Asked
from pennon.view.cells import Json
from pennon.view.opened import ViewedTable
from pennon.view.rows import shown

MAX_VERSIONS: Final = 50
MAX_ENTRIES: Final = 100
MAX_CHANGED_ROWS: Final = 25
MAX_CHANGED_COLUMNS: Final = 12

_VERBS: Final[Mapping[str, str]] = {
    "rewrite": "compact",
    "create_index": "index",
    "update_config": "config",
    "project": "alter columns",
    "merge": "add columns",
    "reserve_fragments": "reserve ids",
    "data_replacement": "replace files",
    "update_bases": "add bases",
}
"""Names of operations for people, where those of transaction.proto are not theirs."""


def read_versions(viewed: ViewedTable, asked: Asked) -> Json:
    """Return the versions up to ``last``, newest first: time, rows, bytes, and what each did."""
    every = viewed.locations()
    last = asked.number("last", 1 << 62, 1 << 62)
    most = asked.number("limit", 25, MAX_VERSIONS)
    until = [each for each in every if each.version <= last]
    page, before = until[-most:], until[: len(until) - most][-1:]
    lines = map_all(
        lambda each: _line(viewed, each), [*before, *page], viewed.dataset.snapshot.pool_spec
    )
    for one, next_one in pairwise(lines):
        _compare_lines(one, next_one)
    shown_lines = lines[len(before) :]
    return {
        "count": len(every),
        "oldest": every[0].version if every else 0,
        "newest": every[-1].version if every else 0,
        "next": before[0].version if before else 0,
        "versions": [*reversed(shown_lines)],
    }


def _line(viewed: ViewedTable, location: ManifestLocation) -> Json:
    """Return one version in a few words; damage is part of them."""
    key = ("version", location.version, location.path, location.tag)
    return dict(viewed.remember(key, lambda: _read_line(viewed.dataset, location)))


def _read_line(dataset: LanceDataset, location: ManifestLocation) -> Json:
    store = dataset.snapshot.store
    try:
        manifest = read_manifest_at(store, location)
    except (LanceError, OSError) as error:
        return {
            "version": location.version,
            "did": "unreadable",
            "detail": printable(str(error)),
            "damaged": True,
        }
    summary = manifest.summary
    rows = summary.physical_rows - summary.deleted_rows
    did, detail = _did(dataset, manifest)
    return {
        "version": location.version,
        "time": f"{summary.timestamp.astimezone():%Y-%m-%d %H:%M:%S}",
        "did": did,
        "detail": detail,
        "rows": rows,
        "rows_text": f"{rows:,}",
        "bytes": summary.size_bytes,
        "size": size(summary.size_bytes),
        "fragments": f"{summary.fragments:,}",
        "writer": ""
        if manifest.writer is None
        else printable(f"{manifest.writer.library} {manifest.writer.version}"),
    }


def _compare_lines(one: Json, next_one: Json) -> None:
    """Note in a line how many rows and bytes its version has more, or fewer, than the one before."""
    if "rows" in one and "rows" in next_one:
        rows, more = next_one["rows"] - one["rows"], next_one["bytes"] - one["bytes"]
        next_one["rows_change"] = f"{rows:+,}" if rows else ""
        next_one["bytes_change"] = ("+" if more > 0 else "−") + size(abs(more)) if more else ""


def _did(dataset: LanceDataset, manifest: Manifest) -> tuple[str, str]:
    """Return what made a version: a verb, and a few words of what."""
    try:
        found = find_transaction(dataset.snapshot.store, manifest)
    except (LanceError, OSError) as error:
        return "unknown", printable(str(error))[:300]
    if found is None:
        return "unknown", "its transaction was not kept"
    name = op.operation_name(found.operation) or "unknown"
    return _VERBS.get(name, name), printable(_detail(found.operation))[:300]


def _detail(done: op.Operation) -> str:
    """Return what an operation did in a few words."""
    match done:
        case op.Append() | op.Overwrite():
            return _count(done.fragments, "fragment")
        case op.Delete():
            return f"where {done.predicate}" if done.predicate else _count(done.updated, "fragment")
        case op.Update():
            return f"{_count(done.new, 'new fragment')}, {_count(done.updated, 'fragment')} changed"
        case op.Rewrite():
            old, new = sum(len(g.old) for g in done.groups), sum(len(g.new) for g in done.groups)
            return f"{old:,} fragments into {new:,}"
        case op.CreateIndex():
            made, gone = (
                ", ".join(i.name for i in done.new),
                ", ".join(i.name for i in done.removed),
            )
            return made or f"dropped {gone}"
        case op.Restore():
            return f"version {done.version}"
        case op.Project() | op.Merge():
            return _count(done.schema.fields, "column") + " now"
        case op.UpdateConfig():
            maps = [m for m in (done.config, done.table_metadata, done.schema_metadata) if m]
            return ", ".join(key for each in maps for key in each.entries)
        case op.Clone():
            return f"of {done.ref_path}, version {done.ref_version}"
        case _:
            return ""


def _count(things: tuple[object, ...], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


# --- two versions ---------------------------------------------------------------------------------


def read_difference(viewed: ViewedTable, asked: Asked) -> Json:
    """Return how two versions differ in files, rows, columns, indices and settings; only manifests are read."""
    old, new = _two(viewed, asked)
    before, after = old.snapshot.manifest, new.snapshot.manifest
    return {
        "before": before.version,
        "after": after.version,
        "facts": list(_file_facts(before, after)),
        "columns": list(_schema_changes(before, after)),
        "indices": _changes(_indices(old), _indices(new)),
        "settings": _changes(_settings(before), _settings(after)),
    }


def _two(viewed: ViewedTable, asked: Asked) -> tuple[LanceDataset, LanceDataset]:
    before, after = asked.number("before", 0, 1 << 62), asked.number("after", 0, 1 << 62)
    return viewed.at(min(before, after)), viewed.at(max(before, after))


def _file_facts(before: Manifest, after: Manifest) -> Iterator[list[str]]:
    old, new = _files(before), _files(after)
    added, removed = new.keys() - old.keys(), old.keys() - new.keys()
    kept = old.keys() & new.keys()
    for label, names, sizes in (
        ("data files added", added, new),
        ("data files removed", removed, old),
        ("data files of both", kept, new),
    ):
        if names:
            yield [label, f"{len(names):,}", size(sum(sizes[name] for name in names))]
    one, other = {f.id: f for f in before.fragments}, {f.id: f for f in after.fragments}
    came = [other[k] for k in other.keys() - one.keys()]
    went = [one[k] for k in one.keys() - other.keys()]
    both = [(one[k], other[k]) for k in one.keys() & other.keys()]
    deleted = sum((b.num_deleted_rows or 0) - (a.num_deleted_rows or 0) for a, b in both)
    if came:
        yield ["rows in new fragments", f"{_rows(came):,}", _count(tuple(came), "fragment")]
    if went:
        yield ["rows in removed fragments", f"{_rows(went):,}", _count(tuple(went), "fragment")]
    if deleted:
        yield ["rows deleted in other fragments", f"{deleted:,}", ""]
    yield ["rows", f"{_rows(before.fragments):,} → {_rows(after.fragments):,}", ""]
    sizes_text = f"{size(before.summary.size_bytes)} → {size(after.summary.size_bytes)}"
    yield ["size", sizes_text, ""]


def _files(manifest: Manifest) -> dict[str, int]:
    return {f.store_path: f.size_bytes or 0 for each in manifest.fragments for f in each.files}


def _rows(fragments: Iterable[Fragment]) -> int:
    return sum((each.physical_rows or 0) - (each.num_deleted_rows or 0) for each in fragments)


def _schema_changes(before: Manifest, after: Manifest) -> Iterator[list[str]]:
    """Yield columns that came, went, or changed their name or type; fields are known by their ids."""
    old = {field.id: (path, field) for path, field in walk_paths(before.schema)}
    new = {field.id: (path, field) for path, field in walk_paths(after.schema)}
    lines = []
    for key in [*old, *(k for k in new if k not in old)]:
        if key not in new:
            lines.append(["removed", old[key][0], _kind(old[key][1])])
        elif key not in old:
            lines.append(["added", new[key][0], _kind(new[key][1])])
        else:
            (path, field), (path_now, field_now) = old[key], new[key]
            if (path, _kind(field)) != (path_now, _kind(field_now)):
                lines.append(
                    ["changed", f"{path} → {path_now}", f"{_kind(field)} → {_kind(field_now)}"]
                )
    for line in lines[:MAX_ENTRIES]:
        yield [printable(each) for each in line]


def _kind(field: Field) -> str:
    return f"{field_to_arrow(field).type}{'' if field.nullable else ' not null'}"


def _indices(dataset: LanceDataset) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for index in indices_now(dataset.snapshot):
        found.setdefault(index.name, []).append(index.uuid)
    return {
        k: f"{len(v):,} segment{'' if len(v) == 1 else 's'} ({v[0][:8]} …)"
        for k, v in found.items()
    }


def _settings(manifest: Manifest) -> dict[str, str]:
    return {**manifest.config, **manifest.table_metadata}


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> list[list[str]]:
    lines = []
    for key in sorted(old.keys() | new.keys()):
        if key not in old:
            lines.append(["added", key, new[key][:400]])
        elif key not in new:
            lines.append(["removed", key, old[key][:400]])
        elif old[key] != new[key]:
            lines.append(["changed", key, f"{old[key][:200]} → {new[key][:200]}"])
    return [[printable(each) for each in line] for line in lines[:MAX_ENTRIES]]


def read_changed_rows(viewed: ViewedTable, asked: Asked) -> Json:
    """Return the first rows that the versions after one, up to another, inserted, updated or deleted.

    Columns of numbers, times and texts are shown, the first `MAX_CHANGED_COLUMNS` of them.
    """
    old, new = _two(viewed, asked)
    fields = [each for each in new.snapshot.manifest.schema.fields if _is_small(each)]
    columns = [join_path([each.name]) for each in fields[:MAX_CHANGED_COLUMNS]]
    names = ["_change_type", "_commit_version"]
    rows: list[list[Json]] = []
    more = False
    with new.changes(old.version, new.version, columns=columns) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch]).slice(0, MAX_CHANGED_ROWS - len(rows))
            picked = [table[name] for name in (*names, *batch.schema.names[: len(columns)])]
            rows += [[shown(column[i]) for column in picked] for i in range(table.num_rows)]
            if len(rows) >= MAX_CHANGED_ROWS:
                more = True
                break
    heads = ["change", "version", *(printable(each.name) for each in fields[:MAX_CHANGED_COLUMNS])]
    return {"columns": heads, "rows": rows, "more": more}


def _is_small(field: Field) -> bool:
    kind = field_to_arrow(field).type
    return bool(t.is_primitive(kind) or t.is_boolean(kind) or t.is_string(kind))
