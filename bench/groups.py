"""The tables that are measured: one for each group of types, made from a seed.

A group is a few columns of one kind, so that a number says something about that kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Random = np.random.Generator


def fixed_width(rows: int, random: Random) -> pa.Table:
    """Numbers of 4 and 8 bytes, no NULLs."""
    return pa.table(
        {
            "i64": random.integers(0, 1 << 62, rows),
            "i32": random.integers(0, 100_000, rows, np.int32),
            "f64": random.random(rows),
            "f32": random.random(rows, np.float32),
        }
    )


def boolean(rows: int, random: Random) -> pa.Table:
    """Bits."""
    return pa.table({f"b{i}": random.random(rows) < 0.5 for i in range(4)})


def nullable(rows: int, random: Random) -> pa.Table:
    """Numbers of which some are NULL."""
    columns = {}
    for name, share in (("some", 0.1), ("half", 0.5), ("most", 0.99)):
        mask = random.random(rows) < share
        columns[name] = pa.array(random.integers(0, 1 << 40, rows), mask=mask)
    return pa.table(columns)


def string(rows: int, random: Random) -> pa.Table:
    """Strings of which most are different, some with NULLs."""
    numbers = random.integers(0, 1 << 40, rows)
    words = pa.array(numbers).cast(pa.string())
    mask = pa.array(random.random(rows) < 0.1)
    return pa.table(
        {"unique": words, "nulls": pc.if_else(mask, pa.scalar(None, pa.string()), words)}
    )


def category(rows: int, random: Random) -> pa.Table:
    """Strings of few values, which become dictionaries."""
    values = pa.array([f"category {i}" for i in range(20)])
    return pa.table({"few": values.take(pa.array(random.integers(0, 20, rows)))})


def vector(rows: int, random: Random) -> pa.Table:
    """Embeddings: 768 floats a row."""
    items = pa.array(random.random(rows * 768, np.float32))
    return pa.table({"embedding": pa.FixedSizeListArray.from_arrays(items, 768)})


def lists(rows: int, random: Random) -> pa.Table:
    """Lists of 0 to 7 numbers."""
    offsets = np.concatenate([[0], np.cumsum(random.integers(0, 8, rows))]).astype(np.int32)
    items = pa.array(random.integers(0, 1000, int(offsets[-1])))
    return pa.table({"list": pa.ListArray.from_arrays(pa.array(offsets), items)})


def struct(rows: int, random: Random) -> pa.Table:
    """A struct of two numbers and a string."""
    parts = [
        pa.array(random.random(rows)),
        pa.array(random.integers(0, 1 << 30, rows)),
        pa.array(random.integers(0, 1 << 20, rows)).cast(pa.string()),
    ]
    return pa.table({"point": pa.StructArray.from_arrays(parts, ["x", "n", "name"])})


def decimal_and_time(rows: int, random: Random) -> pa.Table:
    """Decimals, dates and timestamps with a zone."""
    start = int(datetime(2020, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)
    micros = pa.array(start + random.integers(0, 1 << 46, rows))
    cents = pa.array(random.integers(0, 10**9, rows))
    return pa.table(
        {
            "price": cents.cast(pa.decimal128(22, 2)),
            "time": micros.cast(pa.timestamp("us", "UTC")),
            "day": pa.array(random.integers(0, 20_000, rows, np.int32)).cast(pa.date32()),
        }
    )


def text(rows: int, random: Random) -> pa.Table:
    """Sentences of twelve words out of two hundred."""
    words = pa.array([f"{chr(97 + i % 26)}word{i}" for i in range(200)])
    parts = [words.take(pa.array(random.integers(0, 200, rows))) for _ in range(12)]
    return pa.table({"text": pc.binary_join_element_wise(*parts, " ")})


def wide_text(rows: int, random: Random) -> pa.Table:
    """Strings of 300 bytes and more, which no chunk holds many of."""
    sentences = text(rows * 5, random)["text"].combine_chunks()
    parts = [sentences.slice(i * rows, rows) for i in range(5)]
    return pa.table({"wide": pc.binary_join_element_wise(*parts, "; ")})


def binary(rows: int, random: Random) -> pa.Table:
    """Values of 40,000 bytes that cannot be compressed, as images are."""
    values = [random.bytes(40_000) for _ in range(rows)]
    return pa.table({"image": pa.array(values, pa.large_binary())})


def nested(rows: int, random: Random) -> pa.Table:
    """Lists of strings and lists of lists."""
    inner, tags = lists(rows * 3, random)["list"], string(rows * 3, random)["nulls"]
    offsets = pa.array(np.arange(0, rows * 3 + 1, 3, dtype=np.int32))
    return pa.table(
        {
            "tags": pa.ListArray.from_arrays(offsets, tags.combine_chunks()),
            "matrix": pa.ListArray.from_arrays(offsets, inner.combine_chunks()),
        }
    )


def null_struct(rows: int, random: Random) -> pa.Table:
    """The struct again, NULL in every fifth row; version 2.0 cannot hold it."""
    point = struct(rows, random)["point"].combine_chunks()
    mask = pa.array(random.random(rows) < 0.2)
    maybe = pa.StructArray.from_arrays(point.flatten(), ["x", "n", "name"], mask=mask)
    return pa.table({"maybe": maybe})


def images(rows: int, random: Random) -> pa.Table:
    """Values of 20,000 to 60,000 bytes that cannot be compressed, as pictures are."""
    values = [random.bytes(int(size)) for size in random.integers(20_000, 60_000, rows)]
    return pa.table({"image": pa.array(values, pa.binary())})


def vector_lists(rows: int, random: Random) -> pa.Table:
    """Lists of 1 to 5 vectors of 128 floats, as of the parts of a document."""
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 6, rows))]).astype(np.int32)
    items = pa.array(random.random(int(offsets[-1]) * 128, np.float32))
    vectors = pa.FixedSizeListArray.from_arrays(items, 128)
    return pa.table({"parts": pa.ListArray.from_arrays(pa.array(offsets), vectors)})


def only(make: Callable[[int, Random], pa.Table], column: str) -> Callable[[int, Random], pa.Table]:
    """Return a maker of one column of another table."""
    return lambda rows, random: make(rows, random).select([column])


@dataclass(frozen=True, slots=True)
class Group:
    """How a table is made, and which of its rows a filter on its own type keeps.

    ``filter`` and ``expression`` say the same, to Lance and to Parquet.
    """

    make: Callable[[int, Random], pa.Table]
    rows: int
    filter: str = ""
    expression: pc.Expression | None = None


GROUPS: dict[str, Group] = {
    "fixed-width": Group(fixed_width, 4_000_000, f"i64 < {1 << 60}", pc.field("i64") < 1 << 60),
    "bool": Group(boolean, 8_000_000, "b0 AND NOT b1", pc.field("b0") & ~pc.field("b1")),
    "nullable": Group(nullable, 3_000_000, "half < 1000000000", pc.field("half") < 1_000_000_000),
    "string": Group(string, 2_000_000, "nulls LIKE '12%'", pc.match_like(pc.field("nulls"), "12%")),
    "category": Group(category, 2_000_000, "few = 'category 7'", pc.field("few") == "category 7"),
    "vector": Group(vector, 40_000, "embedding IS NOT NULL", pc.field("embedding").is_valid()),
    "list": Group(
        lists, 1_500_000, "array_length(list) > 5", pc.list_value_length(pc.field("list")) > 5
    ),
    "struct": Group(struct, 1_500_000, "point.n < 1000000", pc.field("point", "n") < 1_000_000),
    "decimal, time": Group(
        decimal_and_time,
        2_000_000,
        "day < date '1980-01-01'",
        pc.field("day") < pa.scalar(date(1980, 1, 1)),
    ),
    "text": Group(
        text, 500_000, "text LIKE '%word7 %'", pc.match_like(pc.field("text"), "%word7 %")
    ),
    "wide text": Group(
        wide_text, 100_000, "wide LIKE '%word7 %'", pc.match_like(pc.field("wide"), "%word7 %")
    ),
    "binary": Group(binary, 4_000, "image IS NOT NULL", pc.field("image").is_valid()),
    "nested": Group(
        nested, 300_000, "array_length(tags) = 3", pc.list_value_length(pc.field("tags")) == 3
    ),
    "NULL struct": Group(null_struct, 1_500_000, "maybe IS NULL", pc.field("maybe").is_null()),
}
"""The groups of types, of which everything is measured."""

ACCESS: dict[str, Group] = {
    "scalar": Group(only(fixed_width, "i64"), 4_000_000),
    "date": Group(only(decimal_and_time, "day"), 4_000_000),
    "small string": Group(only(string, "unique"), 2_000_000),
    "large string": Group(wide_text, 100_000),
    "vectors": Group(vector, 40_000),
    "vector list": Group(vector_lists, 60_000),
    "nested list": Group(only(nested, "matrix"), 300_000),
    "image": Group(images, 4_000),
}
"""What the paper about Lance's random access reads rows of; only takes are measured of these."""

NOT_IN_2_0 = frozenset({"NULL struct"})
"""Nor are they in 0.1."""
KEY = "key"
KEYS = 1_000_000
"""Each table has a last column of random numbers below this, for filters that keep a share of it.

It is read by no other operation, and not written where writing is measured.
"""


def make_table(name: str, *, quick: bool) -> pa.Table:
    """Return the table of a group, the same for the same arguments; quick ones are a tenth."""
    group = GROUPS.get(name) or ACCESS[name]
    rows = group.rows // 10 if quick else group.rows
    random = np.random.default_rng(2013)
    table = group.make(rows, random)
    return table.append_column(KEY, pa.array(random.integers(0, KEYS, rows, np.int32)))
