"""Merges and updates of structs, arrays, maps and variants: by name, checked value by value, and grown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.errors import ArgumentError, SchemaMismatchError
from pennon.spark import LanceTable


def write(spark: SparkSession, uri: str, query: str, **options: Any) -> LanceTable:
    pennon.spark.write(spark.sql(query), uri, **options)
    return LanceTable.forPath(spark, uri)


def upsert(table: LanceTable, rows: DataFrame, *, evolves: bool = False) -> None:
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    (merge.withSchemaEvolution() if evolves else merge).execute()


def rows_of(table: LanceTable) -> list[dict[str, Any]]:
    """The rows as Spark shows them; pylance reads the table through first."""
    lance.dataset(table.uri).validate()
    return [row.asDict(recursive=True) for row in table.toDF().orderBy("id").collect()]


# --- by name ------------------------------------------------------------------------------------------

INSIDE = {
    "value of a map": ("map('k', {})", lambda row: row["x"]["k"]),
    "key of a map": ("map({}, 'v')", lambda row: next(iter(row["x"]))),
    "map in an array": ("array(map('k', {}))", lambda row: row["x"][0]["k"]),
    "map in a struct": ("named_struct('m', map('k', {}))", lambda row: row["x"]["m"]["k"]),
    "array in a map": ("map('k', array({}))", lambda row: row["x"]["k"][0]),
    "struct in an array": ("array({})", lambda row: row["x"][0]),
}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nested_structs_in_merge_and_update_match_fields_by_name(
    spark: SparkSession, uri: str, version: str
) -> None:
    """C1: in another order than the table's, by a merge that updates and inserts, and by updates."""
    ordered, turned = "named_struct('a', 1, 'b', 2)", "named_struct('b', 20, 'a', 10)"
    shown = [f"{text.format(ordered)} AS x{n}" for n, (text, _) in enumerate(INSIDE.values())]
    given = [f"{text.format(turned)} AS x{n}" for n, (text, _) in enumerate(INSIDE.values())]
    query = f"SELECT id, {', '.join(shown)} FROM VALUES (1), (2), (3), (4) AS t(id)"
    table = write(spark, uri, query, data_storage_version=version)
    upsert(table, spark.sql(f"SELECT id, {', '.join(given)} FROM VALUES (1), (9) AS t(id)"))
    values = {f"x{n}": text.format(turned) for n, (text, _) in enumerate(INSIDE.values())}
    table.update("id + 0 = 2", values)
    found = {row["id"]: row for row in lance_rows(table)}
    wanted = {"a": 10, "b": 20}
    for n, (name, (_, part)) in enumerate(INSIDE.items()):
        for number in (1, 2, 9):
            row = {"x": found[number][f"x{n}"]}
            assert as_dict(part(row)) == wanted, (name, number)
        assert as_dict(part({"x": found[3][f"x{n}"]})) == {"a": 1, "b": 2}
    table.update(set=values)
    assert all(
        as_dict(part({"x": row[f"x{n}"]})) == wanted
        for row in lance_rows(table)
        for n, (_, part) in enumerate(INSIDE.values())
    )


def lance_rows(table: LanceTable) -> list[Any]:
    lance.dataset(table.uri).validate()
    return list(table.toDF().collect())


def as_dict(row: Any) -> Any:
    return row.asDict(recursive=True)


# --- checked ------------------------------------------------------------------------------------------

TYPED = pa.schema(
    [
        pa.field("id", pa.int32()),
        pa.field("st", pa.struct([pa.field("a", pa.int32()), pa.field("d", pa.decimal128(10, 2))])),
        pa.field("f", pa.struct([pa.field("x", pa.float64())])),
        pa.field("ns", pa.large_list(pa.int32())),
        pa.field("fs", pa.list_(pa.float32())),
        pa.field("m", pa.map_(pa.string(), pa.int16())),
        pa.field("vec", pa.list_(pa.float32(), 2)),
    ]
)
FITS = {
    "st": "named_struct('a', 2.0D, 'd', 3)",
    "f": "named_struct('x', 1 << 20)",
    "ns": "array(4L)",
    "fs": "array(0.5D)",
    "m": "map('k', 5L)",
    "vec": "array(0.1D, 2.0D)",
}


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_numbers_inside_of_values_are_checked_one_by_one(
    spark: SparkSession, uri: str, ansi: str
) -> None:
    """C2: what a merge or an update would lose is refused with its field's name; what fits is taken."""
    table = typed_table(spark, uri)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        rows = spark.sql("SELECT 1 AS id, named_struct('a', 1L << 40, 'd', 1) AS st").alias("s")
        merge = table.alias("t").merge(rows, "t.id = s.id")
        with pytest.raises(PySparkException, match=r"'st\.a' cannot become int32"):
            merge.whenMatchedUpdate(set={"st": "s.st"}).execute()
        with pytest.raises(PySparkException, match=r"'ns\.item' cannot become int32"):
            table.update("id + 0 = 1", {"ns": "array(1.9D)"})
        assert pennon.dataset(uri).version == 1
        takes_what_fits(spark, table)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def takes_what_fits(spark: SparkSession, table: LanceTable) -> None:
    given = ", ".join(f"{value} AS {name}" for name, value in FITS.items())
    upsert(table, spark.sql(f"SELECT 1 AS id, {given}"))
    pennon.spark.write(spark.sql(f"SELECT 2 AS id, {given}"), table.uri, "append")
    rows = rows_of(table)
    assert rows[0] == {**rows[1], "id": 1}
    narrow = pa.array([0.1], pa.float32())[0].as_py()
    assert rows[1] == {
        "id": 2,
        "st": {"a": 2, "d": Decimal("3.00")},
        "f": {"x": float(1 << 20)},
        "ns": [4],
        "fs": [0.5],
        "m": {"k": 5},
        "vec": [narrow, 2.0],
    }


def typed_table(spark: SparkSession, uri: str) -> LanceTable:
    row = {"id": 1, "st": None, "f": None, "ns": [1], "fs": None, "m": None, "vec": [0.0, 1.0]}
    pennon.write_dataset(pa.Table.from_pylist([row], TYPED), uri, data_storage_version="2.2")
    return LanceTable.forPath(spark, uri)


def test_merge_clauses_of_different_number_types_keep_exact_values(
    spark: SparkSession, uri: str
) -> None:
    """A long that no double is stays itself beside a clause whose value is a double."""
    table = write(spark, uri, "SELECT id, 0L AS v FROM VALUES (1), (2), (3) AS t(id)")
    rows = spark.sql("SELECT * FROM VALUES (1, 9007199254740993L), (2, 1L) AS s(k, n)")
    merge = table.merge(rows, "id = k").whenMatchedUpdate("k = 1", {"v": "n"})
    merge = merge.whenMatchedUpdate(set={"v": "2.0D"})
    merge.whenNotMatchedBySourceUpdate(set={"v": "CAST(3 AS TINYINT)"}).execute()
    assert [row["v"] for row in rows_of(table)] == [9007199254740993, 2, 3]


def test_update_of_date_by_timestamp_with_time_of_day_is_refused(
    spark: SparkSession, uri: str
) -> None:
    table = write(spark, uri, "SELECT 1 AS id, DATE'2026-01-01' AS d")
    table.update("id + 0 = 1", {"d": "TIMESTAMP'2026-02-03 00:00:00'"})
    assert str(rows_of(table)[0]["d"]) == "2026-02-03"
    with pytest.raises(
        PySparkException, match=r"'d' is date .*lose the time of day of 2026-02-03 01"
    ):
        table.update("id + 0 = 1", {"d": "TIMESTAMP'2026-02-03 01:00:00'"})


# --- fields of structs ----------------------------------------------------------------------------------


def test_update_of_field_in_null_struct_creates_the_struct(spark: SparkSession, uri: str) -> None:
    """C3: by updates with and without a condition, by matches and by inserts, and in nested structs."""
    query = (
        "SELECT id, IF(id = 1, named_struct('a', 1, 'i', named_struct('x', 1, 'y', 2)), NULL) AS st "
        "FROM VALUES (1L), (2L), (3L), (4L) AS t(id)"
    )
    table = write(spark, uri, query)
    assert table.update("id = 2", {"st.a": "7"}).first() == (1,)
    table.update("id = 3", {"st.i.x": "8"})
    rows = spark.sql("SELECT * FROM VALUES (4L, 9), (5L, 10) AS s(k, v)")
    merge = table.merge(rows, "id = k").whenMatchedUpdate(set={"st.i.y": "v"})
    merge.whenNotMatchedInsert(values={"id": "k", "st.a": "v"}).execute()
    assert [row["st"] for row in rows_of(table)] == [
        {"a": 1, "i": {"x": 1, "y": 2}},
        {"a": 7, "i": None},
        {"a": None, "i": {"x": 8, "y": None}},
        {"a": None, "i": {"x": None, "y": 9}},
        {"a": 10, "i": None},
    ]
    table.update(set={"`st`.i.`y`": "6", "ST.A": "st.a + 1"})
    assert [row["st"]["i"]["y"] for row in rows_of(table)] == [6] * 5
    assert [row["st"]["a"] for row in rows_of(table)] == [2, 8, None, None, 11]
    for values, words in [
        ({"st.a": "1", "st": "NULL"}, "'st' gets two values"),
        ({"st.i": "NULL", "st.i.x": "1"}, "'st.i.x' gets two values"),
        ({"st.z": "1"}, "'st' has no field 'z'.* it has a, i"),
        ({"id.z": "1"}, "'id.z' is no field of a struct: 'id' is bigint"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            table.update(set=values)


def test_required_fields_inside_are_merged_and_checked(spark: SparkSession, uri: str) -> None:
    """C6: the source's types say that fields may be NULL; only a NULL is refused."""
    item = pa.field("item", pa.float32(), nullable=False)
    fields = [
        pa.field("id", pa.int64()),
        pa.field("st", pa.struct([pa.field("a", pa.int32(), nullable=False)])),
        pa.field("l", pa.list_(item)),
    ]
    rows = [{"id": 1, "st": {"a": 1}, "l": [1.0]}]
    pennon.write_dataset(pa.Table.from_pylist(rows, pa.schema(fields)), uri)
    table = LanceTable.forPath(spark, uri)
    good = "SELECT id, named_struct('a', nullif(5, 6)) AS st, array(nullif(2F, 3F)) AS l FROM VALUES (1L), (2L) AS t(id)"
    upsert(table, spark.sql(good))
    assert [(row["st"], row["l"]) for row in rows_of(table)] == [({"a": 5}, [2.0])] * 2
    with pytest.raises(PySparkException, match=r"'st.a' is never NULL"):
        upsert(
            table,
            spark.sql("SELECT 1L AS id, named_struct('a', nullif(5, 5)) AS st, array(2F) AS l"),
        )
    with pytest.raises(
        SchemaMismatchError, match=r"'st' of the value lacks a, which the table requires"
    ):
        upsert(table, spark.sql("SELECT 1L AS id, named_struct() AS st, array(2F) AS l"))


def test_variants_are_merged_and_updated(spark: SparkSession, uri: str) -> None:
    """C7: at the top, in arrays, in structs and in maps."""
    shape = "parse_json({0}) AS v, array(parse_json({0})) AS vs, named_struct('v', parse_json({0})) AS sv"
    query = "SELECT id, {} FROM VALUES (1), (2), (3) AS t(id)"
    table = write(spark, uri, query.format(shape.format("'1'")))
    upsert(table, spark.sql(query.replace("(2), (3)", "(4)").format(shape.format("'{\"k\": 2}'"))))
    table.update(
        "id = 2",
        {"v": "parse_json('3')", "vs": "array(parse_json('3'))", "sv.v": "parse_json('3')"},
    )
    shown = table.toDF().selectExpr("id", "to_json(v)", "to_json(vs[0])", "to_json(sv.v)")
    found = {row[0]: set(row[1:]) for row in shown.collect()}
    assert found == {1: {'{"k":2}'}, 2: {"3"}, 3: {"1"}, 4: {'{"k":2}'}}
    table.update(set={"v": "parse_json('true')"})
    assert {row[0] for row in table.toDF().selectExpr("to_json(v)").collect()} == {"true"}


# --- grown --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("way", ["merge", "append"])
def test_schema_evolution_adds_fields_and_widens_numbers_at_any_depth(
    spark: SparkSession, uri: str, version: str, way: str
) -> None:
    """C8: by a merge with evolution what an append with mergeSchema brings, in one version."""
    query = (
        "SELECT id, named_struct('a', 1) AS st, array(named_struct('a', 1)) AS ar, 5 AS n, "
        "map('k', named_struct('a', 1)) AS m FROM VALUES (1), (2) AS t(id)"
    )
    table = write(spark, uri, query, data_storage_version=version, enable_stable_row_ids=True)
    new = "named_struct('b', 'x', 'A', 3L << 40)"
    given = f"{new} AS st, array({new}) AS ar, 1L << 40 AS n, map('k', {new}) AS m, 'w' AS extra"
    if way == "merge":
        news = spark.sql(f"SELECT id, {given} FROM VALUES (2), (3) AS t(id)")
        with pytest.raises(SchemaMismatchError, match=r"no field 'b'.*withSchemaEvolution"):
            upsert(table, news.drop("extra"))
        upsert(table, news, evolves=True)
    else:
        table.delete("id = 2")
        news = spark.sql(f"SELECT id, {given} FROM VALUES (2), (3) AS t(id)")
        pennon.spark.write(news, uri, "append", merge_schema=True)
    assert pennon.dataset(uri).version == (2 if way == "merge" else 3)
    old, grown = {"a": 1, "b": None}, {"a": 3 << 40, "b": "x"}
    rows = rows_of(table)
    assert rows[0] == {
        "id": 1, "st": old, "ar": [old], "n": 5, "m": {"k": old}, "extra": None,
    }  # fmt: skip
    whole = {"st": grown, "ar": [grown], "n": 1 << 40, "m": {"k": grown}, "extra": "w"}
    assert rows[1:] == [{"id": 2, **whole}, {"id": 3, **whole}]
    ids = lance.dataset(uri).to_table(["id"], with_row_id=True).to_pydict()
    known = dict(zip(ids["id"], ids["_rowid"], strict=True))
    assert known[1] == 0
    assert way == "append" or known[2] == 1


def test_schema_evolution_adds_only_assigned_fields(spark: SparkSession, uri: str) -> None:
    table = write(spark, uri, "SELECT id, named_struct('a', 1) AS st FROM VALUES (1), (2) AS t(id)")
    rows = spark.sql(
        "SELECT 1 AS id, named_struct('a', 9L, 'b', 'x', 'c', 'y') AS st, 5 AS `new col`"
    )
    merge = table.alias("t").merge(rows.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdate(set={"`t`.`st`.b": "s.st.b", "`new col`": "s.`new col`"}).execute()
    assert rows_of(table) == [
        {"id": 1, "st": {"a": 1, "b": "x"}, "new col": 5},
        {"id": 2, "st": {"a": 1, "b": None}, "new col": None},
    ]


def test_merge_of_structs_with_missing_fields_in_other_case(spark: SparkSession, uri: str) -> None:
    """C8: a merge without evolution takes what an append takes."""
    table = write(spark, uri, "SELECT 1 AS id, array(named_struct('a', 1, 'b', 2)) AS x")
    upsert(table, spark.sql("SELECT 1 AS id, array(named_struct('B', 7)) AS x"))
    assert rows_of(table) == [{"id": 1, "x": [{"a": None, "b": 7}]}]
    with pytest.raises(SchemaMismatchError, match=r"'x.item' of the value has two fields for 'b'"):
        upsert(table, spark.sql("SELECT 1 AS id, array(named_struct('B', 7, 'b', 8)) AS x"))


@pytest.mark.parametrize("way", ["append", "merge", "alter"])
def test_a_void_column_takes_the_type_of_its_first_values(
    spark: SparkSession, uri: str, way: str
) -> None:
    """C10: at the top, in a struct, in an array and in a map."""
    query = (
        "SELECT 1 AS id, NULL AS x, named_struct('v', NULL, 'w', 1) AS st, array(NULL) AS ar, "
        "map('k', NULL) AS m"
    )
    table = write(spark, uri, query)
    given = (
        "'t' AS x, named_struct('v', array(1), 'w', 2) AS st, array('e') AS ar, map('k', 1.5D) AS m"
    )
    news = spark.sql(f"SELECT 2 AS id, {given}")
    if way == "alter":
        table.alterColumn("x", dataType="string")
        table.alterColumn("st.v", dataType="array<int>")
        pennon.spark.write(news.drop("ar", "m"), uri, "append")
    elif way == "merge":
        with pytest.raises(
            SchemaMismatchError, match=r"'x' is void in the table and would get string"
        ):
            upsert(table, news)
        upsert(table, news, evolves=True)
    else:
        with pytest.raises(
            SchemaMismatchError, match=r"'x' is void .*mergeSchema gives it that type"
        ):
            pennon.spark.write(news, uri, "append")
        pennon.spark.write(news, uri, "append", merge_schema=True)
    first, second = rows_of(table)
    assert (first["x"], first["st"]) == (None, {"v": None, "w": 1})
    assert (second["x"], second["st"]) == ("t", {"v": [1], "w": 2})
    if way != "alter":
        assert (first["ar"], first["m"]) == ([None], {"k": None})
        assert (second["ar"], second["m"]) == (["e"], {"k": 1.5})


def test_empty_arrays_and_maps_and_nulls_inside_need_no_type(spark: SparkSession, uri: str) -> None:
    table = write(
        spark, uri, "SELECT 1 AS id, array(1) AS a, map('k', 1) AS m, named_struct('x', 1) AS s"
    )
    table.update("id + 0 = 1", {"a": "array()", "m": "map()", "s": "named_struct('x', NULL)"})
    assert rows_of(table) == [{"id": 1, "a": [], "m": {}, "s": {"x": None}}]
