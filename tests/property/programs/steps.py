"""Steps of a random program, and how they are done: by the names that Pennon and pylance share.

Both processes import this module, pylance's too, so it imports nothing of Pennon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from itertools import pairwise
from typing import Any

import pyarrow as pa

from tests.property.programs.filters import expression_sql, to_sql
from tests.property.programs.kinds import KINDS, array_of

Values = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What a program is about, beside its steps."""

    version: str
    stable: bool
    naming: str
    indexed: bool = False
    """Whether it is about indices, and what is asked of them."""


@dataclass(frozen=True, slots=True)
class Step:
    """An operation, the library that does it, and what with.

    ``line``: the branch, None for the main line.  ``handle``: the number of a handle that was opened
    by a step ``hold`` before; None opens the newest version.
    """

    op: str
    library: str
    args: dict[str, Any] = field(default_factory=dict)
    line: str | None = None
    handle: int | None = None


def table_of(data: dict[str, Any]) -> pa.Table:
    """Return the rows of a step: columns (name, kind, nullable), rows, and where batches begin."""
    schema = pa.schema([pa.field(n, KINDS[k].type, nullable) for n, k, nullable in data["columns"]])
    rows: Values = data["rows"]
    cuts = [0, *(cut for cut in data.get("cuts", ()) if 0 < cut < len(rows)), len(rows)]
    batches = []
    for start, end in pairwise(cuts):
        arrays = [
            array_of(kind, [row[i] for row in rows[start:end]])
            for i, (_, kind, _) in enumerate(data["columns"])
        ]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return pa.Table.from_batches(batches, schema)


CLONE = "@"
"""The first letter of a line that is a shallow clone, in a folder beside the table."""


def is_clone(line: str | None) -> bool:
    """Return whether a line is a shallow clone."""
    return line is not None and line.startswith(CLONE)


def place_of(uri: str, line: str | None) -> str:
    """Return where the table of a line lies."""
    return f"{uri}{line}" if is_clone(line) else uri


def open_line(module: Any, uri: str, line: str | None) -> Any:
    """Open the newest version of a branch, or of a clone."""
    if is_clone(line):
        return module.dataset(place_of(uri, line))
    dataset = module.dataset(uri)
    return dataset if line is None else dataset.checkout_version((line, None))


def create(module: Any, uri: str, dimensions: Dimensions, step: Step) -> None:
    """Make the table."""
    module.write_dataset(
        table_of(step.args),
        uri,
        data_storage_version=dimensions.version,
        enable_stable_row_ids=dimensions.stable,
        enable_v2_manifest_paths=dimensions.naming == "V2",
        max_rows_per_file=step.args["max_rows_per_file"],
        max_rows_per_group=step.args["max_rows_per_group"],
    )


def execute(dataset: Any, step: Step) -> Any:
    """Do a step on a dataset, and return what it counts, if it does."""
    return EXECUTE[step.op](dataset, **step.args)


def _append(dataset: Any, mode: str = "append", max_rows_per_file: int = 100, **data: Any) -> None:
    groups = data.pop("max_rows_per_group", 1024)
    dataset.insert(
        table_of(data), mode=mode, max_rows_per_file=max_rows_per_file, max_rows_per_group=groups
    )


def _overwrite(dataset: Any, **args: Any) -> None:
    _append(dataset, mode="overwrite", **args)


def _delete(dataset: Any, where: Any) -> Any:
    return dict(dataset.delete(to_sql(where)))


def _update(dataset: Any, values: Any, where: Any) -> Any:
    updates = {name: expression_sql(tree) for name, tree in values.items()}
    return dict(dataset.update(updates, where=None if where is None else to_sql(where)))


def _merge(
    dataset: Any,
    matched: str,
    condition: Any,
    inserts: bool,
    deletes: Any,
    in_place: bool,
    **data: Any,
) -> Any:
    builder = dataset.merge_insert("k")
    if matched == "update":
        text = None if condition is None else to_sql(condition[1], f"{condition[0]}.")
        builder = builder.when_matched_update_all(text)
    elif matched == "delete":
        builder = builder.when_matched_delete()
    elif matched == "fail":
        builder = builder.when_matched_fail()
    if inserts:
        builder = builder.when_not_matched_insert_all()
    if deletes is not None:
        text = None if deletes == ("constant", True) else to_sql(deletes)
        builder = builder.when_not_matched_by_source_delete(text)
    if in_place:
        builder = builder.write_mode("rewrite_columns")
    found = builder.execute(table_of(data))
    return {name: found[name] for name in sorted(found) if name in COUNTS}


COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


def _add_sql(dataset: Any, values: Any) -> None:
    dataset.add_columns({name: expression_sql(tree) for name, (tree, _) in values.items()})


def _add_data(dataset: Any, **data: Any) -> None:
    dataset.add_columns(table_of(data).to_reader())


def _add_nulls(dataset: Any, name: str, kind: str) -> None:
    dataset.add_columns(pa.field(name, KINDS[kind].type))


def _drop(dataset: Any, columns: Any) -> None:
    dataset.drop_columns(list(columns))


def _rename(dataset: Any, names: Any) -> None:
    dataset.alter_columns(*({"path": old, "name": new} for old, new in names.items()))


def _nullable(dataset: Any, name: str, nullable: bool) -> None:
    dataset.alter_columns({"path": name, "nullable": nullable})


def _cast(dataset: Any, name: str, kind: str) -> None:
    dataset.alter_columns({"path": name, "data_type": KINDS[kind].type})


def _compact(dataset: Any, **options: Any) -> None:
    dataset.optimize.compact_files(**options)


def _cleanup(dataset: Any, retain: int | None) -> None:
    dataset.cleanup_old_versions(
        older_than=None if retain else timedelta(0),
        retain_versions=retain,
        error_if_tagged_old_versions=False,
    )


def _restore(dataset: Any, version: int, branch: str | None) -> None:
    point: Any = version if branch is None else (branch, version)
    dataset.checkout_version(point).restore()


def _tag(dataset: Any, name: str, version: int, branch: str | None) -> None:
    dataset.tags.create(name, version if branch is None else (branch, version))


def _untag(dataset: Any, name: str) -> None:
    dataset.tags.delete(name)


def _branch(dataset: Any, name: str, version: int, parent: str | None) -> None:
    dataset.create_branch(name, version if parent is None else (parent, version))


def _unbranch(dataset: Any, name: str) -> None:
    dataset.branches.delete(name)


def _config(dataset: Any, values: Any) -> None:
    dataset.update_config(dict(values))


def _index(
    dataset: Any,
    column: str,
    kind: str,
    name: str,
    parameters: Any,
    replace: bool,
    **_: Any,
) -> None:
    if "metric" in parameters:
        dataset.create_index(column, kind, name=name, replace=replace, **parameters)
    else:
        dataset.create_scalar_index(column, kind, name=name, replace=replace, **parameters)


def _unindex(dataset: Any, name: str) -> None:
    dataset.drop_index(name)


def _optimize(dataset: Any, **options: Any) -> None:
    dataset.optimize.optimize_indices(**options)


def _clone(dataset: Any, name: str, version: int) -> None:
    dataset.shallow_clone(f"{dataset.uri}{name}", version)


def _cluster(dataset: Any, columns: Any, *, curved: bool, target_rows_per_fragment: int) -> None:
    """Put rows in order, as Spark's tasks do; only Pennon has this."""
    from tests.property.programs.cluster import cluster

    cluster(dataset, columns, curved=curved, target_rows_per_fragment=target_rows_per_fragment)


EXECUTE: dict[str, Any] = {
    "append": _append,
    "overwrite": _overwrite,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "add_sql": _add_sql,
    "add_data": _add_data,
    "add_nulls": _add_nulls,
    "drop": _drop,
    "rename": _rename,
    "nullable": _nullable,
    "cast": _cast,
    "compact": _compact,
    "cleanup": _cleanup,
    "restore": _restore,
    "tag": _tag,
    "untag": _untag,
    "branch": _branch,
    "unbranch": _unbranch,
    "config": _config,
    "index": _index,
    "unindex": _unindex,
    "optimize": _optimize,
    "clone": _clone,
    "cluster": _cluster,
}

# --- looking --------------------------------------------------------------------------------------

VERSIONS_OF_ROWS = ("_row_created_at_version", "_row_last_updated_at_version")
SYSTEM = "__lance"
"""How the names of indices begin that libraries keep for themselves."""


def look(dataset: Any, *, stable: bool) -> dict[str, Any]:
    """Return all that a version of the table is: its rows, and what is said of it."""
    dataset.validate()
    extra = ["_rowid", *VERSIONS_OF_ROWS] if stable else ["_rowid"]
    table = dataset.to_table(columns=[*dataset.schema.names, *extra])
    return {
        "version": dataset.version,
        "schema": dataset.schema,
        "rows": table,
        "count": dataset.count_rows(),
        "versions": [ref["version"] for ref in dataset.version_refs()],
        "config": dataset.config(),
        "tags": {
            name: (tag["branch"], tag["version"]) for name, tag in dataset.tags.list().items()
        },
        "branches": sorted(dataset.branches.list()),
        "indices": sorted(
            {i["name"] for i in dataset.list_indices() if not i["name"].startswith(SYSTEM)}
        ),
    }


def _keys(table: pa.Table) -> list[int]:
    keys: list[int] = table.column("k").to_pylist()
    return keys


def text_query(dataset: Any, question: tuple[Any, ...]) -> Any:
    """Return a full-text query as an object of the library that a dataset is of."""
    queries = import_module(f"{type(dataset).__module__.partition('.')[0]}.query")
    match question:
        case ("match", column, operator, tokens):
            return queries.MatchQuery(
                " ".join(tokens), column, operator=queries.FullTextOperator[operator]
            )
        case ("phrase", column, tokens):
            return queries.PhraseQuery(" ".join(tokens), column)
        case ("boolean", *parts):
            return queries.BooleanQuery(
                [(queries.Occur[occur], text_query(dataset, inner)) for occur, inner in parts]
            )
    raise ValueError(question)


def ask(dataset: Any, query: tuple[Any, ...]) -> Any:
    """Return the answer to a query: a table, or a number."""
    match query:
        case ("filter", tree, columns):
            return dataset.to_table(columns=list(columns), filter=to_sql(tree))
        case ("count", tree):
            return dataset.count_rows(to_sql(tree))
        case ("take", indices, columns):
            return dataset.take(list(indices), columns=list(columns))
        case ("take ids", ids, columns):
            return dataset._take_rows(list(ids), columns=list(columns))
        case ("page", offset, limit, columns):
            return dataset.to_table(columns=list(columns), offset=offset, limit=limit)
        case ("filtered page", tree, offset, limit, columns):
            sql = to_sql(tree)
            return dataset.to_table(columns=list(columns), filter=sql, offset=offset, limit=limit)
        case ("keys", tree):
            return sorted(_keys(dataset.to_table(columns=["k"], filter=to_sql(tree))))
        case ("nearest", search, tree, prefilter):
            where = None if tree is None else to_sql(tree)
            found = dataset.to_table(
                columns=["k", "_distance"],
                nearest=dict(search),
                filter=where,
                prefilter=prefilter,
            )
            return sorted(zip(_keys(found), found.column("_distance").to_pylist(), strict=True))
        case ("text", question, tree, prefilter):
            where = None if tree is None else to_sql(tree)
            found = dataset.to_table(
                columns=["k"],
                full_text_query=text_query(dataset, question),
                filter=where,
                prefilter=prefilter,
                limit=100_000,
            )
            return sorted(_keys(found))
    raise ValueError(query)
