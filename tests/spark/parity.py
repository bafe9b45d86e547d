"""Programs of table operations in two forms: by `LanceTable`, and by the API that pylance and Pennon share.

A step of the second kind may be several operations where that API has no one for it; the rows are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import lance
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import pennon.spark
from pennon.spark import LanceTable

ROWS: Final = 24
KEYS: Final = (0, 1, 2, 3, 6, 10, 12, 30, 31, 32, 33)
"""The ids of what is merged: of them those below 24 are in the table."""

Rows = tuple[list[tuple[str, str]], Counter[str]]


def old_rows() -> pa.Table:
    """What each table begins with: NULLs, NaN, negative zero, lists, structs and vectors among it."""
    ids = range(ROWS)
    doubles = [None, float("nan"), -0.0, 1.5, float("inf"), -7.25]
    return _rows(
        id=list(ids),
        name=[None if n % 7 == 0 else f"n{n % 5}" for n in ids],
        n=[None if n % 11 == 0 else n % 6 for n in ids],
        v=[doubles[n % 6] for n in ids],
        tags=[None if n % 4 == 0 else [f"t{m}" for m in range(n % 3)] for n in ids],
        at=[{"x": n, "y": None if n % 3 == 0 else f"y{n}"} for n in ids],
        vec=[[float(n), -float(n)] for n in ids],
    )


def new_rows() -> pa.Table:
    """What is merged."""
    return _rows(
        id=list(KEYS),
        name=[None if n == 31 else f"new {n}" for n in KEYS],
        n=[place % 5 for place, _ in enumerate(KEYS)],
        v=[None if n == 12 else n + 0.5 for n in KEYS],
        tags=[[] if n % 2 else ["new", None] for n in KEYS],
        at=[{"x": -n, "y": "new"} for n in KEYS],
        vec=[[float(n), 0.5] for n in KEYS],
    )


def _rows(**columns: list[Any]) -> pa.Table:
    kinds = {
        "id": pa.int64(),
        "name": pa.string(),
        "n": pa.int32(),
        "v": pa.float64(),
        "tags": pa.list_(pa.string()),
        "at": pa.struct([("x", pa.int64()), ("y", pa.string())]),
        "vec": pa.list_(pa.float32(), 2),
    }
    return pa.table({name: pa.array(column, kinds[name]) for name, column in columns.items()})


def make(uri: str, version: Any, *, stable: bool) -> None:
    """Let pylance write the table, as four fragments."""
    lance.write_dataset(
        old_rows(),
        uri,
        max_rows_per_file=ROWS // 4,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )


def seen(uri: str) -> dict[str, Rows]:
    """The rows that pylance reads, of the newest version and of all tags and branches."""
    table = lance.dataset(uri)
    table.validate()
    branches = {f"branch {name}": (name, None) for name in table.branches.list()}
    tags = {f"tag {name}": name for name in table.tags.list()}
    places: Mapping[str, Any] = {**branches, **tags}
    others = {name: _seen(table.checkout_version(place)) for name, place in places.items()}
    return {"newest": _seen(table), **others}


def _seen(table: Any) -> Rows:
    rows = table.to_table()
    columns = [(field.name, str(field.type)) for field in rows.schema]
    assert table.count_rows() == rows.num_rows
    return columns, Counter(map(repr, zip(*rows.to_pydict().values(), strict=True)))


def ids_of_rows(uri: str) -> dict[int, int]:
    """The column id of each row that was there at first, by its row id; those of new rows may differ."""
    rows = lance.dataset(uri).to_table(columns=["id"], with_row_id=True).to_pydict()
    return {k: v for k, v in zip(rows["_rowid"], rows["id"], strict=True) if k < ROWS}


@dataclass(frozen=True)
class Step:
    """One change, on Spark and by the API of ``lance`` and ``pennon``."""

    spark: Callable[[LanceTable], object]
    plain: Callable[[Any], object]
    """Takes a dataset of either."""


# --- rows -------------------------------------------------------------------------------------------


def delete(condition: str) -> Step:
    """The same condition in both SQLs."""
    return Step(lambda table: table.delete(condition), lambda ds: ds.delete(condition))


def update(condition: str | None, values: dict[str, str]) -> Step:
    """The same condition and values in both SQLs."""
    return Step(
        lambda table: table.update(condition, values),
        lambda ds: ds.update(values, where=condition),
    )


def source(table: LanceTable) -> DataFrame:
    """The rows to merge, as ``s``."""
    return table.spark.createDataFrame(new_rows()).alias("s")


def merge(clauses: Callable[[Any], Any], plain: Callable[[Any], object]) -> Step:
    """A merge of the new rows by their ids; ``clauses`` gives a builder its clauses."""
    return Step(
        lambda table: clauses(table.alias("t").merge(source(table), "t.id = s.id")).execute(), plain
    )


def _chosen(*places: int) -> pa.Table:
    """The new rows whose n is one of some."""
    table = new_rows()
    return table.take([at for at, n in enumerate(table["n"].to_pylist()) if n in places])


def _old_keys() -> str:
    return ", ".join(str(key) for key in KEYS)


def _every_clause(builder: Any) -> Any:
    return (
        builder.whenMatchedUpdate("s.n = 0", {"v": "s.v", "at.y": "s.name || '!'"})
        .whenMatchedDelete("s.n = 1")
        .whenMatchedUpdateAll("s.n < 4")
        .whenNotMatchedInsert("s.n = 2", {"id": "s.id", "name": "upper(s.name)", "at": "s.at"})
        .whenNotMatchedInsertAll("s.n <> 3")
        .whenNotMatchedBySourceUpdate("t.id % 2 = 0", {"v": "t.v + 1", "n": "9"})
        .whenNotMatchedBySourceDelete("t.id % 5 = 0")
    )


def _every_clause_by_parts(ds: Any) -> None:
    """Do the same with one operation for each clause; which of the new rows match is known."""
    others = f"id NOT IN ({_old_keys()})"
    ds.update({"v": "v + 1", "n": "9"}, where=f"{others} AND id % 2 = 0")
    ds.delete(f"{others} AND id % 2 <> 0 AND id % 5 = 0")
    matched = {n: [k for at, k in enumerate(KEYS) if at % 5 == n and k < ROWS] for n in range(5)}
    rows = {row["id"]: row for row in new_rows().to_pylist()}
    shown = {row["id"]: row for row in ds.to_table(columns=["id", "at"]).to_pylist()}
    parts = [
        {
            "id": k,
            "v": rows[k]["v"],
            "at": {"x": shown[k]["at"]["x"], "y": rows[k]["name"] + "!"},
        }
        for k in matched[0]
    ]
    kinds = new_rows().schema
    partial = pa.schema([kinds.field("id"), kinds.field("v"), kinds.field("at")])
    ds.merge_insert("id").when_matched_update_all().execute(
        pa.Table.from_pylist(parts, schema=partial)
    )
    ds.delete(f"id IN ({', '.join(map(str, matched[1]))})")
    whole = [rows[k] for k in (*matched[2], *matched[3])]
    ds.merge_insert("id").when_matched_update_all().execute(
        pa.Table.from_pylist(whole, schema=kinds)
    )
    new = {n: [k for at, k in enumerate(KEYS) if at % 5 == n and k >= ROWS] for n in range(5)}
    added = [
        {"id": k, "name": rows[k]["name"] and rows[k]["name"].upper(), "at": rows[k]["at"]}
        for k in new[2]
    ]
    added += [rows[k] for n in (0, 1, 4) for k in new[n]]
    ds.insert(pa.Table.from_pylist(added, schema=kinds))


UPSERT = merge(
    lambda b: b.whenMatchedUpdateAll().whenNotMatchedInsertAll(),
    lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(new_rows())
    ),
)
UPDATE_IF = merge(
    lambda b: b.whenMatchedUpdateAll("s.v > t.v AND s.n > 0"),
    lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all("source.v > target.v AND source.n > 0")
        .execute(new_rows())
    ),
)
INSERT_NEW = merge(
    lambda b: b.whenNotMatchedInsertAll(),
    lambda ds: ds.merge_insert("id").when_not_matched_insert_all().execute(new_rows()),
)
DELETE_MATCHED = merge(
    lambda b: b.whenMatchedDelete(),
    lambda ds: ds.merge_insert("id").when_matched_delete().execute(new_rows()),
)
REPLACE = merge(
    lambda b: b.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete(),
    lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
        .execute(new_rows())
    ),
)
DELETE_OTHERS = merge(
    lambda b: b.whenMatchedUpdateAll().whenNotMatchedBySourceDelete("t.n > 2"),
    lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_by_source_delete("n > 2")
        .execute(new_rows())
    ),
)
PARTIAL = merge(
    lambda b: b.whenMatchedUpdate(set={"v": "s.v", "name": "s.name"}),
    lambda ds: (
        ds.merge_insert("id")
        .when_matched_update_all()
        .execute(new_rows().select(["id", "name", "v"]))
    ),
)
EVERY_CLAUSE = merge(_every_clause, _every_clause_by_parts)


def _evolving(table: LanceTable) -> None:
    rows = source(table).withColumn("extra", sf.col("id") * 10).alias("s")
    merge = table.alias("t").merge(rows, "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def _evolving_by_parts(ds: Any) -> None:
    ds.add_columns(pa.field("extra", pa.int64()))
    rows = new_rows()
    rows = rows.append_column("extra", pa.array([10 * k for k in KEYS], pa.int64()))
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows)


EVOLVE = Step(_evolving, _evolving_by_parts)


def _replace_where(table: LanceTable) -> None:
    rows = source(table).where("n < 3").withColumn("n", sf.lit(3))
    pennon.spark.write(rows, table.uri, "overwrite", where="n = 3")


def _replace_where_by_parts(ds: Any) -> None:
    ds.delete("n = 3")
    rows = [{**row, "n": 3} for row in new_rows().to_pylist() if row["n"] < 3]
    ds.insert(pa.Table.from_pylist(rows, schema=new_rows().schema))


def _replace_keys(table: LanceTable) -> None:
    rows = source(table).withColumn("name", sf.expr("IF(n < 2, NULL, concat('n', n))"))
    pennon.spark.write(rows, table.uri, "overwrite", overwrite_by=["name"])


def _replace_keys_by_parts(ds: Any) -> None:
    ds.delete("name IS NULL OR name IN ('n2', 'n3', 'n4')")
    rows = [
        {**row, "name": None if row["n"] < 2 else f"n{row['n']}"} for row in new_rows().to_pylist()
    ]
    ds.insert(pa.Table.from_pylist(rows, schema=new_rows().schema))


REPLACE_WHERE = Step(_replace_where, _replace_where_by_parts)
REPLACE_KEYS = Step(_replace_keys, _replace_keys_by_parts)


# --- columns ----------------------------------------------------------------------------------------


def _labels() -> pa.Table:
    keys = [*range(0, ROWS, 3), 99]
    labels = pa.array([f"l{k}" for k in keys], pa.string())
    return pa.table({"id": pa.array(keys, pa.int64()), "label": labels})


def _renamed(table: LanceTable) -> None:
    table.renameColumn("v", "value")
    table.renameColumn("at.y", "z")


def _doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    twice = [None if v is None else 2 * v for v in batch.column("v").to_pylist()]
    return pa.RecordBatch.from_pydict({"twice": pa.array(twice, pa.float64())})


ADD_SQL = Step(
    lambda t: t.addColumns({"total": "id * 3 + CAST(n AS bigint)", "loud": "upper(name)"}),
    lambda ds: ds.add_columns({"total": "id * 3 + CAST(n AS bigint)", "loud": "upper(name)"}),
)
ADD_FUNCTION = Step(
    lambda t: t.addColumns(_doubled, readColumns=["v"]),
    lambda ds: ds.add_columns(_doubled, read_columns=["v"]),
)
ADD_BY_KEY = Step(
    lambda t: t.addColumns(t.spark.createDataFrame(_labels()), on="id"),
    lambda ds: ds.merge(_labels(), "id"),
)
DROP = Step(
    lambda t: t.dropColumns("tags", "name"),
    lambda ds: ds.drop_columns(["tags", "name"]),
)
RENAME = Step(
    _renamed,
    lambda ds: ds.alter_columns({"path": "v", "name": "value"}, {"path": "at.y", "name": "z"}),
)
WIDEN = Step(
    lambda t: t.alterColumn("n", dataType="bigint"),
    lambda ds: ds.alter_columns({"path": "n", "data_type": pa.int64()}),
)


# --- layout and versions ----------------------------------------------------------------------------

COMPACT = Step(
    lambda t: t.optimize().executeCompaction(),
    lambda ds: ds.optimize.compact_files(),
)
Z_ORDER = Step(lambda t: t.optimize().executeZOrderBy("n", "v"), lambda ds: None)
SORT = Step(lambda t: t.optimize().executeSortBy("name", "id"), lambda ds: None)
RESTORE = Step(lambda t: t.restoreToVersion(1), lambda ds: ds.checkout_version(1).restore())


def _on_branch(change: Step) -> Step:
    return Step(
        lambda t: change.spark(t.branches.checkout("side")),
        lambda ds: change.plain(ds.checkout_version(("side", None))),
    )


TAG = Step(lambda t: t.tags.create("good"), lambda ds: ds.tags.create("good", ds.version))
MOVE_TAG = Step(lambda t: t.tags.update("good"), lambda ds: ds.tags.update("good", ds.version))
BRANCH = Step(
    lambda t: t.branches.create("side", 1), lambda ds: ds.create_branch("side", (None, 1))
)


PROGRAMS: Final = {
    "rows": [
        delete("id % 5 = 4 AND n > 1"),
        update("name = 'n2'", {"v": "-1.5"}),
        update("id > 4 AND n IS NOT NULL", {"n": "n + 1", "name": "name || '!'"}),
        UPSERT,
        delete("name IS NULL"),
        COMPACT,
        update(None, {"v": "0.5"}),
    ],
    "clauses": [EVERY_CLAUSE, PARTIAL, DELETE_OTHERS],
    "merges": [UPDATE_IF, INSERT_NEW, DELETE_MATCHED, UPSERT, REPLACE, EVOLVE],
    "columns": [
        ADD_SQL,
        delete("id IN (3, 4, 5, 6, 7, 8, 9, 10, 11)"),
        ADD_FUNCTION,
        ADD_BY_KEY,
        RENAME,
        WIDEN,
        DROP,
        update("id > 20", {"value": "value + 1", "twice": "0.0"}),
        COMPACT,
    ],
    "layout": [delete("id % 6 = 5"), Z_ORDER, UPSERT, SORT, COMPACT, RESTORE, Z_ORDER],
    "overwrites": [REPLACE_WHERE, REPLACE_KEYS, delete("id % 2 = 0"), REPLACE_WHERE, COMPACT],
    "names": [
        delete("id = 1"),
        TAG,
        BRANCH,
        _on_branch(delete("id > 20")),
        UPSERT,
        _on_branch(UPSERT),
        MOVE_TAG,
        _on_branch(ADD_SQL),
        RESTORE,
        update("id = 2", {"name": "'last'"}),
    ],
}
