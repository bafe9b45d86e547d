"""Aggregates and joins in SQL over Lance tables: made where the tables are read, they give the rows of Spark over the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pennon
import pennon.spark
from pennon.spark.frames import driver_reads

ROWS: Final = 3000
GROUPED: Final = (
    "SELECT a, count(*) AS n FROM {t} GROUP BY a HAVING count(*) > 10 ORDER BY n DESC, a LIMIT 2",
    "SELECT count(*), count(a), sum(a), avg(a), min(b), max(b), min(c), max(c) FROM {t} HAVING count(*) > 0",
    "SELECT sum(e), avg(e), min(e), max(d) x FROM {t} WHERE a > 1 AND d < DATE '2021-12-31' - INTERVAL '3' MONTH HAVING true",
    "SELECT year(d) AS y, sum(e * (1 - e)) AS q, avg(s + 1) AS v FROM {t} WHERE a >= 1 GROUP BY year(d) ORDER BY 1",
    "SELECT sum(e * (1 - e) * (1 + e)) AS q, sum(s + 1), sum(0.5 * e) AS h, sum(f * 2 - s) BETWEEN 0 AND 1e18 AS i FROM {t}",
    "SELECT b, count(DISTINCT a) AS n, sum(s) FROM {t} GROUP BY b ORDER BY b",
    "SELECT DISTINCT a, b FROM {t} ORDER BY a, b",
    """SELECT x.b, x.n + 1 AS m FROM (SELECT u.b, count(*) AS n FROM {t} u GROUP BY u.b) x
    JOIN (SELECT b, max(l) AS g FROM {t} WHERE s < 50 GROUP BY b) y ON x.b = y.b ORDER BY 1""",
    "WITH w AS (SELECT a, sum(s) AS s FROM {t} GROUP BY a) SELECT max(s), count(*) FROM w",
    "SELECT a, b, sum(s) AS z FROM {t} GROUP BY CUBE(a, b) ORDER BY a, b, z",
    "SELECT avg(length(b)) AS m, max(S) FROM {t} HAVING true",
    "SELECT count(*) AS n, sum(s) AS m, avg(e) AS o FROM {t} WHERE a = 99 HAVING true",
    "SELECT CASE WHEN a = 1 THEN 'one' ELSE b END AS k, max(d) FROM {t} GROUP BY k ORDER BY k",
    "SELECT a FROM {t} GROUP BY 1 ORDER BY 1",
    "SELECT sum(s) AS s FROM {t} HAVING s > 3",
    "SELECT b, sum(s + 1) FROM {t} GROUP BY ALL ORDER BY sum(s + 1)",
    "SELECT c, count(*) AS n FROM {t} GROUP BY c ORDER BY n DESC, c LIMIT 3",
    "SELECT count(*) AS a FROM {t} WHERE b = 'x' UNION ALL SELECT sum(s) FROM {t} ORDER BY 1",
    "SELECT Sum( s ) /* of */ FROM {t} WHERE b LIKE 'x%' GROUP BY a, b ORDER BY a",
)
"""Queries whose aggregates are made where the table is read."""
NOT_GROUPED: Final = (
    "SELECT sum(s) OVER (PARTITION BY a) AS w FROM {t} ORDER BY 1 LIMIT 3",
    "SELECT a, sum(s) FILTER (WHERE b = 'x') AS f FROM {t} GROUP BY a ORDER BY a",
    "SELECT a, array_sort(collect_set(b)) AS f FROM {t} GROUP BY a ORDER BY a",
    "SELECT sum(s) + count(*) FROM {t}",
    "SELECT a, count(*) AS n FROM {t} WHERE b IN (SELECT b FROM {t} WHERE s = 3) GROUP BY a ORDER BY a",
    "SELECT sum(s) AS m FROM {t} WHERE round(c) = 1 GROUP BY a ORDER BY m",
    "SELECT sum(e / 3) AS m FROM {t}",
    "SELECT u.a, count(*) AS n FROM {t} u JOIN {t} v ON u.l = v.l GROUP BY u.a ORDER BY u.a",
    "SELECT st.x AS x, count(*) AS n FROM {t} GROUP BY st.x ORDER BY 1",
)
"""Queries in which Spark aggregates the rows."""


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The names of one table of 3,000 rows in Lance, with deleted ones, and of a view of the same rows in Spark."""
    rng = random.Random(5)
    days = [date(2020, 1, 1) + timedelta(rng.randrange(900)) for _ in range(ROWS)]
    table = pa.table(
        {
            "a": pa.array([rng.choice([None, 1, 2, 3]) for _ in range(ROWS)], pa.int32()),
            "b": [rng.choice([None, "x", "y", "ü", ""]) for _ in range(ROWS)],
            "c": [
                rng.choice([None, float("nan"), 1.5, -0.0, 0.0, rng.random()]) for _ in range(ROWS)
            ],
            "d": pa.array(days),
            "e": pa.array(
                [Decimal(rng.randrange(-(10**6), 10**6)).scaleb(-2) for _ in range(ROWS)],
                pa.decimal128(12, 2),
            ),
            "f": [float(rng.randrange(1000)) for _ in range(ROWS)],
            "l": pa.array(
                [rng.choice([None, rng.randrange(2**40)]) for _ in range(ROWS)], pa.int64()
            ),
            "s": pa.array([rng.randrange(100) for _ in range(ROWS)], pa.int16()),
            "st": [{"x": rng.randrange(3)} for _ in range(ROWS)],
        }
    )
    root = tmp_path_factory.mktemp("grouping")
    ds = pennon.write_dataset(table, root / "t.lance", max_rows_per_file=700)
    ds.delete("s = 41")
    attached = pennon.spark.attach(spark, str(root), name="grouping")
    spark.createDataFrame(ds.to_table()).createOrReplaceTempView("same_rows")
    yield {"lance": "grouping.t", "spark": "same_rows"}
    attached.detach()
    spark.catalog.dropTempView("same_rows")


def seen(frame: DataFrame) -> tuple[list[str], list[str], list[tuple[str, ...]]]:
    """Return the names and types of columns, and the rows as text, for NaN does not equal itself."""
    kinds = [str(field.dataType) for field in frame.schema]
    return frame.columns, kinds, [tuple(map(str, row)) for row in frame.collect()]


def parts_of(spark: SparkSession, text: str) -> str:
    """Return what the scan of a query's tables does."""
    lines = pennon.spark.sql(spark, text, explain=True).collect()
    return " | ".join(line[2] for line in lines if line[1] == "scan")


@pytest.mark.parametrize("reader", ["driver", "tasks"])
@pytest.mark.parametrize("text", GROUPED)
def test_aggregates_made_by_the_scan_equal_those_of_spark(
    spark: SparkSession,
    both: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    reader: str,
) -> None:
    if reader == "tasks":
        monkeypatch.setattr(driver_reads, "MOST_TESTED_BYTES", -1)
    own = text.replace("{t}", both["lance"])
    assert "partial aggregates" in parts_of(spark, own)
    expected = seen(spark.sql(text.replace("{t}", both["spark"])))
    assert seen(pennon.spark.sql(spark, own)) == expected


@pytest.mark.parametrize("most", [0, 200, 10_000])
def test_groups_of_a_small_table_are_merged_without_a_shuffle(
    spark: SparkSession, both: dict[str, str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Few groups are found by the driver, and many by one task."""
    monkeypatch.setattr(driver_reads, "MOST_GROUPS", most)
    text = "SELECT b, l, count(*) AS n, max(c) AS m FROM {t} GROUP BY b, l ORDER BY b, l"
    found = pennon.spark.sql(spark, text.replace("{t}", both["lance"]))
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "hashpartitioning" not in plan
    assert ("MapInArrow" in plan) is (most < 10_000)
    assert seen(found) == seen(spark.sql(text.replace("{t}", both["spark"])))


@pytest.mark.parametrize("text", NOT_GROUPED)
def test_aggregates_that_spark_makes_of_rows_stay_its_own(
    spark: SparkSession, both: dict[str, str], text: str
) -> None:
    own = text.replace("{t}", both["lance"])
    assert "partial aggregates" not in parts_of(spark, own)
    expected = seen(spark.sql(text.replace("{t}", both["spark"])))
    assert seen(pennon.spark.sql(spark, own)) == expected


def test_sum_that_leaves_its_type_is_an_error_where_the_table_is_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    pennon.write_dataset(
        pa.table({"n": pa.array([1, 2**31 - 1], pa.int32())}), tmp_path / "t.lance"
    )
    text = f"SELECT sum(n + 1) AS s FROM lance.`{tmp_path / 't.lance'}`"
    frame = pennon.spark.sql(spark, text)
    with pytest.raises(Exception, match="leaves the type int"):
        frame.collect()


# --- keys of joins --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def joined(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Orders of customers of countries, NULLs and keys without a partner among them, in Lance and as Spark's views."""
    rng = random.Random(7)
    tables = {
        "countries": pa.table(
            {"code": ["br", "kr", None], "title": ["Brazil", "Korea", "nowhere"]}
        ),
        "customers": pa.table(
            {
                "cid": pa.array([None, *range(1, 1500)], pa.int64()),
                "country": [rng.choice(["br", "kr", "xx", None]) for _ in range(1500)],
            }
        ),
        "orders": pa.table(
            {
                "oid": pa.array(range(4000), pa.int64()),
                "buyer": pa.array(
                    [rng.choice([None, rng.randrange(1, 2000)]) for _ in range(4000)], pa.int64()
                ),
                "narrow": pa.array([rng.randrange(1, 2000) for _ in range(4000)], pa.int32()),
            }
        ),
    }
    root = tmp_path_factory.mktemp("joined")
    for name, rows in tables.items():
        pennon.write_dataset(rows, root / f"{name}.lance", max_rows_per_file=1000)
        spark.createDataFrame(rows).createOrReplaceTempView(name)
    attached = pennon.spark.attach(spark, str(root), name="shop")
    yield
    attached.detach()
    for name in tables:
        spark.catalog.dropTempView(name)


LIMITED: Final = {
    "SELECT o.oid FROM shop.orders o, shop.customers c, shop.countries k "
    "WHERE o.buyer = c.cid AND c.country = k.code AND k.title = 'Korea'": 2,
    "SELECT o.oid, c.cid FROM shop.orders o JOIN shop.customers c ON c.cid = o.buyer WHERE c.country = 'kr' AND c.cid < 700": 1,
    "SELECT o.oid FROM shop.orders o JOIN shop.customers c ON c.cid = o.buyer AND c.cid < 0": 1,
    "SELECT o.oid, c.cid FROM shop.orders o LEFT JOIN shop.customers c ON c.cid = o.buyer AND c.country = 'kr'": 0,
    "SELECT o.oid, c.cid FROM shop.orders o RIGHT JOIN shop.customers c ON c.cid = o.buyer WHERE c.cid < 50": 0,
    "SELECT o.oid, c.cid FROM shop.orders o FULL JOIN shop.customers c ON c.cid = o.buyer WHERE c.cid < 50": 0,
    "SELECT o.oid FROM shop.orders o, shop.customers c WHERE (o.buyer = c.cid OR o.oid = 3) AND c.cid < 50": 0,
    "SELECT o.oid FROM shop.orders o, shop.customers c WHERE o.narrow = c.cid AND c.cid < 50": 0,
    "SELECT o.oid FROM shop.orders o, shop.customers c WHERE o.buyer = c.cid AND c.cid > 3": 0,
    "SELECT o.oid FROM shop.orders o WHERE NOT EXISTS (SELECT 1 FROM shop.customers c WHERE o.buyer = c.cid AND c.cid < 50)": 0,
    "SELECT o.oid FROM shop.orders o ANTI JOIN shop.customers c ON o.buyer = c.cid AND c.cid < 50": 0,
    "SELECT o.oid FROM shop.orders o WHERE o.buyer IN (SELECT cid FROM shop.customers WHERE cid < 50)": 1,
    "SELECT o.oid FROM shop.orders o WHERE o.buyer NOT IN (SELECT cid FROM shop.customers WHERE cid < 50)": 0,
    "SELECT o.oid FROM shop.orders o WHERE o.oid < 900 AND o.buyer NOT IN (SELECT cid FROM shop.customers)": 0,
    "SELECT o.oid FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.customers WHERE cid = buyer AND cid < 50)": 1,
    "SELECT o.oid FROM shop.orders o WHERE EXISTS (SELECT count(*) FROM shop.customers WHERE cid = buyer AND cid < 50)": 0,
    "SELECT oid FROM shop.orders o WHERE EXISTS (SELECT 1 FROM shop.customers WHERE cid = buyer AND cid < 50) OR oid < 3": 0,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND NOT EXISTS (SELECT 1 FROM shop.orders WHERE buyer = c.cid)": 1,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND 2 > (SELECT count(*) FROM shop.orders o WHERE o.buyer = cid)": 1,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND c.cid IN "
    "(SELECT buyer FROM shop.orders GROUP BY buyer HAVING count(*) > 1)": 1,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND c.cid NOT IN "
    "(SELECT buyer FROM shop.orders WHERE buyer IS NOT NULL)": 0,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND c.cid IN (SELECT max(buyer) FROM shop.orders GROUP BY oid)": 0,
    "SELECT c.cid, o.oid FROM shop.customers c LEFT JOIN shop.orders o ON c.cid = o.buyer WHERE c.cid < 50": 1,
    "SELECT c.cid FROM shop.customers c ANTI JOIN shop.orders o ON c.cid = o.buyer WHERE c.cid < 50": 1,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND EXISTS "
    "(SELECT 1 FROM shop.orders a, shop.orders b WHERE a.buyer = c.cid AND b.oid = a.oid)": 2,
    "SELECT c.cid FROM shop.customers c WHERE c.cid < 50 AND EXISTS "
    "(SELECT 1 FROM shop.orders o, (SELECT 3 AS cid) d WHERE o.buyer = cid)": 0,
    "WITH few AS (SELECT o.oid, c.cid FROM shop.orders o, shop.customers c WHERE o.buyer = c.cid AND c.cid < 50) "
    "SELECT a.oid, b.oid FROM few a JOIN few b ON a.cid = b.cid": 1,
    "SELECT cid FROM shop.customers c WHERE cid < 50 UNION ALL "
    "SELECT o.buyer FROM shop.orders o, shop.customers c WHERE o.buyer = c.cid": 0,
}
"""Joins, and how many tables of each are limited by the keys of another one."""


@pytest.mark.parametrize(("text", "limited"), LIMITED.items())
@pytest.mark.usefixtures("joined")
def test_joins_limited_by_keys_give_the_rows_of_spark(
    spark: SparkSession, text: str, limited: int
) -> None:
    assert parts_of(spark, text).count(" keys of ") == limited
    found = pennon.spark.sql(spark, text).collect()
    expected = spark.sql(text.replace("shop.", "")).collect()
    assert sorted(map(str, found)) == sorted(map(str, expected))
