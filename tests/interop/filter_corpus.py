"""Filters for a table of all types, made by rules: every type with every operator, and functions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import product

import pyarrow as pa

ROWS = 240


def filter_table() -> pa.Table:
    """Return rows of all types; every seventh value of a column is NULL, shifted by column."""
    day, moment = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
    words = ["", "a", "A", "Bob", "bob", "a%b_c", "naïve", "snow ☃", "zz", "10"]
    columns: dict[str, pa.Array] = {}

    def add(name: str, kind: pa.DataType, values: Sequence[object]) -> None:
        shift = len(columns)
        shown = [
            None if (row + shift) % 7 == 0 else values[row % len(values)] for row in range(ROWS)
        ]
        columns[name] = pa.array(shown, kind)

    whole = [0, 1, 2, 3, 5, 8, 13, 100, 127]
    for bits in (8, 16, 32, 64):
        add(f"i{bits}", pa.type_for_alias(f"int{bits}"), [*whole, -1, -4, -128])
        add(f"u{bits}", pa.type_for_alias(f"uint{bits}"), [*whole, 200, 255])
    floats = [0.0, -0.0, 1.5, 2.5, -3.25, 100.0, float("inf"), float("-inf"), float("nan")]
    add("f32", pa.float32(), [*floats, 0.1])
    add("f64", pa.float64(), [*floats, 0.1])
    add("b", pa.bool_(), [True, False])
    add("s", pa.string(), words)
    add("ls", pa.large_string(), words[::-1])
    add("bin", pa.binary(), [b"", b"a", b"\x00\x01", b"\xff"])
    add("dec", pa.decimal128(10, 2), [Decimal(x) for x in ("0", "1.50", "-4.00", "99.99", "0.10")])
    add("d", pa.date32(), [day + dt.timedelta(days) for days in (0, 1, 59, 366, -20_000)])
    steps = (0, 1, 3600, 86_400, 5_184_000, -(10**9))
    times = [moment + dt.timedelta(seconds=x, microseconds=x % 7) for x in steps]
    add("ts", pa.timestamp("us"), times)
    add("tsn", pa.timestamp("ns"), times)
    add("tz", pa.timestamp("us", "America/New_York"), times)
    add("li", pa.list_(pa.int32()), [[], [1], [1, 2], [None, 3], [5, 5, 5]])
    add("lst", pa.list_(pa.string()), [[], ["a"], ["a", "b"], [None, "c"]])
    add("odd name", pa.int64(), whole)
    add("Cap", pa.int64(), whole)
    inner = [{"x": 1, "y": "q"}, {"x": None, "y": "r"}, {"x": 8, "y": None}]
    columns["st"] = pa.array(
        [inner[row % 3] for row in range(ROWS)], pa.struct([("x", pa.int32()), ("y", pa.string())])
    )
    columns["dic"] = columns["s"].dictionary_encode()
    return pa.table(columns)


_LITERALS = {
    **{f"{sign}{bits}": ["0", "1", "13", "127"] for sign in "iu" for bits in (8, 16, 32, 64)},
    "f32": ["0", "0.0", "1.5", "-3.25", "0.1", "1e300"],
    "f64": ["0", "0.0", "1.5", "-3.25", "0.1", "1e300"],
    "s": ["''", "'Bob'", "'zz'", "'naïve'"],
    "ls": ["''", "'Bob'", "'zz'"],
    "bin": ["x'61'", "x'0001'", "x'ff'"],
    "dec": ["1", "decimal(10,2) '1.50'", "decimal(8,3) '0.1'"],
    "d": ["date '2020-01-01'", "date '2020-02-29'"],
    "ts": ["timestamp '2020-01-01 00:00:00'", "timestamp '2020-01-02'", "date '2020-01-01'"],
    "tsn": ["timestamp '2020-01-01 00:00:01.000001'"],
    "tz": ["timestamp '2019-12-31 19:00:00'", "timestamp '2020-01-01 00:00:00'"],
    "st.x": ["1", "8"],
    "st.y": ["'q'"],
    "`odd name`": ["5"],
    "dic": ["'Bob'", "''"],
}
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_CONDITIONS = (
    "i32 > 1",
    "b",
    "s like '%b%'",
    "f64 < 2",
    "d is null",
    "ts > timestamp '2020-01-01'",
)
_PATTERNS = ("''", "'%'", "'_'", "'b%'", "'%b'", "'%o%'", "'a\\%%'", "'_ob'", "'%\\_%'", "'B_b'")
_SINGLES = """
    1 = 1; true; false; null is null; not null; b; not b; b is true; b is not true; b is false
    i64 > 3 is true; i64 = 5 is not null; b = b is null; not i64 < 3 is true; i64 > 3 is true = b
    i64 + i32 > 9 is not false
    b is not false; b = true; b != false; s = "Bob"; S = 'Bob'; cap = 5; Cap > 5; 1 < i32; 'zz' = s
    i32 in (1, 2, null); i32 not in (1, 2); i32 not in (1, null); s in ('a', 'zz'); s not in ('a')
    f64 in (1.5, 2.5); d in (date '2020-01-01'); dic in ('a', 'Bob'); b in (true); not i32 in (1)
    i32 between 1 and 5; i32 not between 1 and 5; f64 between 0 and 3; i32 between null and 5
    ts between timestamp '2020-01-01' and timestamp '2020-12-31'; i32 is distinct from 1
    i32 is not distinct from null; i32 = null; i32 = i8; i32 < i64; u8 > i8; i64 = u8; i32 < f64
    f32 = f64; f32 < f64; dec > i32; dec < f64; s = ls; s < ls; dic = s; f64 = f64; f64 != f64
    i32 + 1 = 2; i32 + i64 > 3; i32 * 2 > 10; i32 - u8 < 0; u8 - 2 > 0; u8 * 2 > 300; i8 + 1 = 128
    i32 / 2 = 1; i32 / 2 = 0; i32 % 2 = 1; i32 % 3 = -1; f64 % 2 = 0.5; f64 / 2 > 1; f64 * 0 = 0; -i32 = 4
    -f64 = 1.5; i32 * 1.5 = 3; dec + 1 = 2.5; dec * dec > 2; dec - 1 < 0; i32 + f64 > 3
    9223372036854775807 + i64 > 0; cast(i32 as string) = '1'; cast(i32 as double) = 1
    cast(f64 as string) = '1.5'; cast(b as int) = 1; cast(i32 as boolean); cast(i32 as float) = 1
    cast(i32 as decimal(10,2)) = decimal(10,2) '1.00'; cast(d as string) = '2020-01-01'
    cast(ts as date) = date '2020-01-01'; cast(ts as string) = '2020-01-01T00:00:00'
    cast(s as binary) = x'61'; i64::string = '1'; cast(dec as double) = 1.5; try_cast(s as int) = 10
    try_cast(s as double) is null; try_cast(s as date) is null; st is null; st is not null
    st['x'] = 1; st.x is null; st.x + 1 = 2; get_field(st, 'x') = 1; li[1] = 1; li[2] is null
    li[-1] = 3; li[0] = 1; lst[1] = 'a'; li is null; li = [1]; array_has(li, 1); array_has(lst, 'a')
    array_has(lst, 'a') is null; array_contains(li, 5); array_has_any(li, [1, 5])
    array_has_any(lst, ['b', 'z']); array_has_all(lst, ['a', 'b']); list_contains(li, 3)
    array_has_all(li, make_array(1, 2)); array_length(li) = 2; array_length(lst) > 0
    array_length(li) is null; cardinality(li) = 1; empty(li); array_to_string(lst, ',') = 'a,b'
    coalesce(i32, 0) = 0; coalesce(null, i32, 2) = 2; nullif(i32, 1) is null; nvl(i32, 0) = 0
    ifnull(i32, 0) = 0; nvl2(i32, 1, 0) = 0; greatest(i32, 2) = 2; least(i32, 2) = 1; abs(i32) = 4
    abs(f64) = 3.25; round(f64) = 2; round(f64, 1) = 0.1; trunc(f64) = 1; signum(i32) = -1
    sqrt(u8) = 1; exp(i32) > 1; ln(u8) > 1; log2(u8) = 3; log10(u8) = 2; log(10, u8) = 2
    power(i32, 2) = 16; pow(i32, 2) = 4; sin(i32) > 0; cos(i32) > 0; isnan(f64); not isnan(f64)
    iszero(f64); nanvl(f64, 1.0) = 1; lower(s) = 'bob'; upper(s) = 'BOB'; length(s) = 0
    length(s) = 5; char_length(s) = 3; octet_length(s) = 6; bit_length(s) = 8; length(bin) = 1
    concat(s, 'x') = 'ax'; concat(s, null) = 'a'; s || 'x' = 'ax'; concat_ws('-', s, 'x') = 'a-x'
    starts_with(s, 'B'); ends_with(s, 'b'); contains(s, 'o'); btrim(s) = 'a'; ltrim(s) = 'a'
    rtrim(s) = 'a'; replace(s, 'B', 'b') = 'bob'; reverse(s) = 'boB'; left(s, 1) = 'B'
    right(s, 1) = 'b'; lpad(s, 3, 'x') = 'xxa'; rpad(s, 3, 'x') = 'axx'; repeat(s, 2) = 'aa'
    strpos(s, 'o') = 2; strpos(s, 'x') = 0; instr(s, 'o') = 2; initcap(s) = 'Bob'
    regexp_match(s, 'b'); regexp_like(s, '^B'); regexp_like(s, '[0-9]+'); not regexp_like(s, '^.o')
    regexp_replace(s, 'o', '0') = 'B0b'; regexp_like(s, '^b', 'i'); s ilike 'BOB'; s not ilike 'b%'
    dic like 'B%'; ls like '%b'; s like null; s not like '%b%'; date_part('year', ts) = 2020
    date_part('month', d) = 2; date_part('day', ts) = 2; date_part('dow', d) = 3
    date_part('doy', d) = 60; date_part('hour', ts) = 1; date_part('minute', ts) = 46
    date_part('week', d) = 1; date_part('quarter', d) = 1; date_part('epoch', ts) > 0
    date_part('hour', tz) = 19; date_trunc('year', ts) = timestamp '2020-01-01'
    date_trunc('month', d) = date '2020-02-01'; date_trunc('hour', ts) = ts; to_date('2020-01-01') = d
    to_timestamp('2020-01-01') = ts; make_date(2020, 1, 1) = d; now() > tz; current_date() > d
    ts < d; ts >= d; tz < ts; tz = ts; d = ts; _rowid = 1; _rowid in (3, 4); _rowaddr < 5; i32 is null or s is null
    i32 > 1 and(s='a' or b); ((((i32 = 1)))); (i32 > 1) is null; (i32 > 1) = (i64 > 1)
    not (i32 > 1 and b); not (i32 > 1 or b); b and i32 > 1 or s = 'a'; b or null; b and null
"""


def filters() -> Iterator[str]:
    """Yield every filter of the corpus, each once."""
    for column, literals in _LITERALS.items():
        for operator, literal in product(_COMPARISONS, literals):
            yield f"{column} {operator} {literal}"
        yield f"{column} is null"
        yield f"{column} is not null"
        yield f"{column} in ({', '.join(literals[:2])})"
    for column, pattern in product(("s", "ls", "st.y"), _PATTERNS):
        yield f"{column} like {pattern}"
        yield f"{column} ilike {pattern}"
    for left, right in product(_CONDITIONS, _CONDITIONS):
        yield f"{left} and {right}"
        yield f"{left} or not ({right})"
    for line in _SINGLES.splitlines():
        yield from (text.strip() for text in line.split("; ") if text.strip())
