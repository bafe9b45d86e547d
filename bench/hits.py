"""A wide table of page views, its rows made by Spark's own expressions, and 43 queries of the kinds that ClickBench has.

The columns are of ClickBench's kinds, in words and names of our own: numbers with few and with many values, long texts, texts
that are mostly empty, times.  The rows are the same for the same number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

QUERIES: Final = Path(__file__).with_name("hits.sql")
FLAGS, TIMINGS, CODES, TAGS = 24, 18, 18, 18
"""How many further columns there are of each kind, which no query but ``SELECT *`` reads."""
SITES: Final = ("example", "google", "market", "news", "video", "weather", "maps", "forum")
WORDS: Final = (
    "cheap", "red", "fast", "new", "house", "car", "phone", "film", "song", "ticket", "train", "city", "sea", "garden",
    "game", "price", "photo", "map", "Google", "recipe", "shoes", "school", "winter", "summer",
)  # fmt: skip


def drawn(count: int, number: int) -> str:
    """Return an expression of evenly spread values below a count; each number gives others."""
    return f"pmod(xxhash64(id, {number}), {count})"


def skewed(count: int, number: int) -> str:
    """Return an expression of values below a count, of which small ones come far more often."""
    return f"CAST(pow({drawn(1_000_000, number)} / 1000000D, 4) * {count} AS BIGINT)"


def one_of(values: tuple[str, ...], number: str) -> str:
    """Return an expression of one of some texts, by an expression of its place."""
    listed = ", ".join(f"'{each}'" for each in values)
    return f"element_at(array({listed}), CAST(pmod({number}, {len(values)}) + 1 AS INT))"


def words(count: int, number: str) -> str:
    """Return an expression of a text of some words; it is the same for the same value of an expression."""
    parts = (one_of(WORDS, f"shiftright(xxhash64({number}, {at}), 3)") for at in range(count))
    return f"concat_ws(' ', {', '.join(parts)})"


def columns() -> Mapping[str, str]:
    """Return the expressions of all columns over the ``id`` of a range."""
    page, phrase = skewed(40_000, 1), skewed(6_000, 2)
    site = one_of(SITES, f"xxhash64({skewed(300, 3)})")
    found = {
        "view_id": "xxhash64(id)",
        "user_id": f"xxhash64({skewed(120_000, 4)})",
        "viewed_at": f"timestamp_seconds(1372636800 + {drawn(31 * 86_400, 5)})",
        "viewed_on": f"CAST(timestamp_seconds(1372636800 + {drawn(31 * 86_400, 5)}) AS DATE)",
        "counter": f"CAST({skewed(6_000, 6)} AS INT)",
        "region": f"CAST({skewed(9_000, 7)} AS INT)",
        "client_ip": f"CAST({skewed(1_000_000_000, 8)} AS INT)",
        "url": f"concat('https://', {site}, '.test/', {page}, '/', replace({words(3, page)}, ' ', '-'))",
        "title": words(6, page),
        "referrer": f"IF({drawn(5, 9)} = 0, '', concat('http://www.', {site}, '.test/', {drawn(50_000, 10)}))",
        "url_hash": f"xxhash64({page})",
        "referrer_hash": f"xxhash64({site})",
        "width": f"CAST(320 + 16 * {drawn(140, 11)} AS SMALLINT)",
        "height": f"CAST(240 + 8 * {drawn(140, 12)} AS SMALLINT)",
        "window_width": f"CAST(300 + {drawn(2_000, 13)} AS SMALLINT)",
        "window_height": f"CAST(200 + {drawn(1_200, 14)} AS SMALLINT)",
        "phone": f"CAST(IF({drawn(8, 15)} = 0, {drawn(90, 16)} + 1, 0) AS SMALLINT)",
        "phone_model": f"IF({drawn(8, 15)} = 0, concat('model ', {skewed(200, 17)}), '')",
        "search_engine": f"CAST(IF({drawn(7, 18)} = 0, {drawn(60, 19)} + 1, 0) AS SMALLINT)",
        "search_phrase": f"IF({drawn(7, 18)} = 0, {words(3, phrase)}, '')",
        "advert": f"CAST(IF({drawn(50, 20)} = 0, {drawn(30, 21)} + 1, 0) AS SMALLINT)",
        "traffic": f"CAST({drawn(10, 22)} - 1 AS SMALLINT)",
        "is_refresh": f"CAST({drawn(10, 23)} = 0 AS SMALLINT)",
        "is_link": f"CAST({drawn(12, 24)} = 0 AS SMALLINT)",
        "is_download": f"CAST({drawn(40, 25)} = 0 AS SMALLINT)",
        "is_counted": f"CAST({drawn(30, 26)} <> 0 AS SMALLINT)",
        "language": f"substring('enfrdeesitplrutr', CAST(1 + 2 * {drawn(8, 27)} AS INT), 2)",
        "price": f"CAST({drawn(100_000, 28)} / 100D AS DECIMAL(10, 2))",
    }
    found |= {f"flag_{at:02}": f"CAST({drawn(2, 100 + at)} AS SMALLINT)" for at in range(FLAGS)}
    found |= {
        f"timing_{at:02}": f"CAST({skewed(60_000, 200 + at)} AS INT)" for at in range(TIMINGS)
    }
    found |= {f"code_{at:02}": f"xxhash64({skewed(1000, 300 + at)})" for at in range(CODES)}
    return found | {
        f"tag_{at:02}": f"IF({drawn(20, 400 + at)} = 0, {words(2, drawn(5000, 500 + at))}, '')"
        for at in range(TAGS)
    }


def make_hits(spark: SparkSession, rows: int, files: int) -> DataFrame:
    """Return the table, of as many rows in as many partitions."""
    expressions = [f"{text} AS {name}" for name, text in columns().items()]
    return spark.range(0, rows, 1, files).selectExpr(*expressions)


def read_queries(path: Path = QUERIES) -> list[str]:
    """Return the statements of a file, without the semicolons between them."""
    return [each.strip() for each in path.read_text(encoding="utf-8").split(";\n") if each.strip()]
