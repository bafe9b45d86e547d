"""Tables in Spark 4.0 and 3.5: reads, writes, changes, upkeep and searches."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pennon.spark
from pennon.spark import LanceTable


def values(frame: DataFrame) -> list[Any]:
    """Return the rows in the order of their first column."""
    return sorted(map(tuple, frame.collect()))


def test_write_and_read_of_all_types_give_the_same_rows(
    spark: SparkSession, rows: DataFrame, uri: str
) -> None:
    found = pennon.spark.read(spark, uri)
    assert found.schema.simpleString() == rows.schema.simpleString()
    assert values(found) == values(rows)


def test_reads_of_columns_filters_limits_and_aggregates(spark: SparkSession, uri: str) -> None:
    read = pennon.spark.read
    assert read(spark, uri, ["part.a"]).columns == ["part"]
    assert read(spark, uri, ["id"], filter="n > 100").count() == 49
    assert read(spark, uri, ["id"], filter="id = 7").collect()[0][0] == 7
    assert len(read(spark, uri, ["id"], limit=3).collect()) == 3
    sums = read(spark, uri, aggregate={"n": ["sum", "max"], "*": "count"}).collect()
    assert list(map(list, sums)) == [[9900, 198, 100]]
    assert read(spark, uri, aggregate={"*": "count"}).collect()[0][0] == 100


def test_appends_overwrites_and_growing_schemas(
    spark: SparkSession, rows: DataFrame, uri: str
) -> None:
    write = pennon.spark.write
    assert write(rows.where("id < 3").withColumn("id", sf.col("id") + 1000), uri, "append") == 2
    assert write(rows.where("id = 3"), uri, "overwrite", where="id < 10") == 3
    assert write(rows.where("id = 50"), uri, "overwrite", overwrite_by=["id"]) == 4
    wider = rows.where("id = 4").withColumn("late", sf.expr("true"))
    assert write(wider, uri, "append", merge_schema=True) == 5
    found = pennon.spark.read(spark, uri, ["id", "late"])
    assert found.count() == 95
    assert found.where("late").count() == 1


def test_delete_update_and_merge_change_rows(rows: DataFrame, table: LanceTable) -> None:
    assert [*table.delete("id = 5").collect()[0]] == [1]
    assert [*table.delete(sf.upper("name") == "NAME 6").collect()[0]] == [1]
    assert [*table.update("id = 7", {"n": "n + 1"}).collect()[0]] == [1]
    source = rows.where("id BETWEEN 95 AND 99").withColumn("id", sf.col("id") + 2)
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
    done = merge.whenNotMatchedBySourceDelete("t.id = 1").execute()
    assert [*done.collect()[0]] == [6, 3, 1, 2]
    wider = rows.where("id = 8").withColumn("late", sf.lit(1))
    merge = table.alias("t").merge(wider.alias("s"), "t.id = s.id").withSchemaEvolution()
    merge.whenMatchedUpdateAll().execute()
    assert table.toDF().where("late = 1").count() == 1
    assert table.count() == 99
    kinds = table.changes(1).groupBy("_change_type").count()
    assert dict(values(kinds)) == {"delete": 8, "insert": 7}


def test_compaction_clustering_columns_and_old_versions(
    spark: SparkSession, rows: DataFrame, uri: str, table: LanceTable
) -> None:
    table.optimize().executeCompaction()
    table.optimize().executeZOrderBy("n", "id")
    table.addColumns({"half": "n / 2"})
    table.addColumns({"twice": sf.col("n") * 2})
    assert table.toDF().where("twice = 2 * n AND half = id").count() == 100
    assert table.history().count() >= 4
    assert table.detail().collect()[0]["format"] == "lance"
    table.restoreToVersion(1)
    assert values(table.toDF()) == values(rows)
    pennon.spark.convert(spark, uri, "2.2")
    assert values(pennon.spark.read(spark, uri)) == values(rows)
    pennon.spark.view(spark, uri, "shown", ["id"])
    assert spark.table("shown").count() == 100


def test_indices_and_searches(spark: SparkSession, table: LanceTable) -> None:
    queries = spark.sql("SELECT array(float(33), float(5)) AS vector, 'name' AS words")
    found = table.nearest(queries, 1, "vector", columns=["id"])
    assert [row["id"] for row in found.collect()] == [33]
    table.createIndex("id", "BTREE")
    table.createIndex("name", "INVERTED")
    table.createIndex("vector", "IVF_FLAT", num_partitions=2)
    found = table.nearest(queries, 2, "vector", columns=["id"], nprobes=2)
    assert [row["id"] for row in found.collect()][:1] == [33]
    both = table.hybrid(queries, 3, vector="vector", words="words", columns=["id"])
    assert both.count() == 3
    assert table.toDF().where("id = 7").count() == 1
