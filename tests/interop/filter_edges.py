"""Filters that go to the edges: NULL, overflow, NaN and zeros, zones, patterns, names, odd syntax.

The oracle refuses some of them, and Pennon all that is no SQL.
"""

# ruff: noqa: RUF001 - letters that look alike are the point

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal

import pyarrow as pa

ROWS = 24
_MOMENTS = [
    dt.datetime(2020, 3, 8, 6, 59, 59),
    dt.datetime(2020, 3, 8, 7),
    dt.datetime(2020, 11, 1, 5, 30),
    dt.datetime(2020, 11, 1, 6, 30),
    dt.datetime(2020, 7, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2020, 1, 1),
]
"""Around the hours that are skipped and that come twice in New York."""
_WALL_CLOCK = [
    dt.datetime(2020, 3, 8, 1, 59, 59),
    dt.datetime(2020, 3, 8, 2, 30),
    dt.datetime(2020, 3, 8, 3),
    dt.datetime(2020, 11, 1, 1, 30),
    dt.datetime(2020, 7, 1),
    dt.datetime(1969, 12, 31, 18, 59, 59, 999_999),
    dt.datetime(2019, 12, 31, 19),
]
_WORDS = [
    "",
    "%",
    "_",
    "a%b",
    "a_b",
    "a\\b",
    "Straße",
    "STRASSE",
    "İ",
    "ı",
    "ſ",
    "K",
    "k",
    "\u212a",
]
_WORDS += ["naïve", "NAÏVE", "a\nb", "it's", '"q"', "Σίσυφος", "ΣΊΣΥΦΟΣ"]


def edge_table() -> pa.Table:
    """Return rows of the least and the greatest values, and of NULLs at every depth."""
    columns: dict[str, pa.Array] = {}

    def add(name: str, kind: pa.DataType, values: Sequence[object], every: int = 7) -> None:
        shift = len(columns)
        shown = [
            None if (row + shift) % every == 0 else values[row % len(values)] for row in range(ROWS)
        ]
        columns[name] = pa.array(shown, kind)

    add("i8", pa.int8(), [-128, 127, 0, -1, 1])
    add("u8", pa.uint8(), [0, 255, 1, 128, 127])
    add("i64", pa.int64(), [-(2**63), 2**63 - 1, 0, -1, 1, 2**53 + 1])
    add("u64", pa.uint64(), [0, 2**64 - 1, 2**63, 1, 2**63 - 1])
    add("i32", pa.int32(), [-(2**31), 2**31 - 1, 0, 7, -7])
    nan, inf = float("nan"), float("inf")
    add("f", pa.float64(), [0.0, -0.0, nan, inf, -inf, 1.5, 5e-324, 2.0**53])
    add("g", pa.float32(), [-0.0, 0.0, nan, 1.5, inf, 0.1, 16777217.0])
    add("h", pa.float16(), [0.5, -0.0, nan])
    numbers = ("1.5", "-1.5", "0.0", "99999.9", "1.4")
    add("d1", pa.decimal128(6, 1), [Decimal(each) for each in numbers])
    numbers = ("1.500", "-1.499", "0.001", "99.999", "1.400")
    add("d3", pa.decimal128(8, 3), [Decimal(each) for each in numbers])
    add("dbig", pa.decimal128(38, 0), [Decimal("9" * 38), Decimal(-1), Decimal(0)])
    add("s", pa.string(), _WORDS)
    add("bin", pa.binary(), [b"", b"\x00", b"a", b"\xff"])
    add("fsb", pa.binary(2), [b"ab", b"\x00\xff"])
    add("lb", pa.large_binary(), [b"x", b""])
    add("b", pa.bool_(), [True, False, None])
    add("c", pa.bool_(), [True, None, False, False])
    add("ts", pa.timestamp("us"), _WALL_CLOCK)
    second, micros = 1_577_836_800, 10**6
    add("tsn", pa.timestamp("ns"), [second * 10**9 + row * 500 for row in range(ROWS)])
    add("tsu", pa.timestamp("us"), [second * micros + row // 2 for row in range(ROWS)])
    add("tss", pa.timestamp("s"), [second + row for row in range(ROWS)])
    add("ny", pa.timestamp("us", "America/New_York"), _MOMENTS, every=5)
    add("utc", pa.timestamp("us", "UTC"), _MOMENTS, every=4)
    add("ber", pa.timestamp("ms", "Europe/Berlin"), _MOMENTS, every=4)
    days = [dt.date(2020, 3, 8), dt.date(2020, 1, 1), dt.date(1969, 12, 31), dt.date(2020, 11, 1)]
    add("da", pa.date32(), days)
    add("d64", pa.date64(), days[:2])
    add("t32", pa.time32("s"), [dt.time(1, 2, 3), dt.time(23, 59, 59)])
    add("t64", pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(0)])
    add("du", pa.duration("us"), [dt.timedelta(seconds=1), dt.timedelta(days=-1)])
    _add_nested(add, nan)
    for name in ("select", "Case", "null", "has space", "ünï"):
        add(name, pa.int32(), range(ROWS))
    add("order", pa.string(), ["asc", "desc"])
    add("dic", pa.string(), ["x", "y", ""])
    columns["dic"] = columns["dic"].dictionary_encode()
    return pa.table(columns)


def _add_nested(add: Callable[..., None], nan: float) -> None:
    inner = pa.struct([("b", pa.int32()), ("l", pa.list_(pa.int32()))])
    structs = [
        {"a": {"b": 1, "l": [1, 2]}, "n": 1.5},
        {"a": None, "n": None},
        None,
        {"a": {"b": None, "l": None}, "n": nan},
        {"a": {"b": 3, "l": []}, "n": -0.0},
    ]
    add("st", pa.struct([("a", inner), ("n", pa.float64())]), structs)
    add("li", pa.list_(pa.int32()), [[], [1], [None], [1, None, 3], [-1, 2**31 - 1]])
    add("ll", pa.list_(pa.list_(pa.int32())), [[], [[1, 2], None], [[]], [[3], [4, None]]])
    pair = pa.struct([("x", pa.int32()), ("y", pa.string())])
    add("ls", pa.list_(pair), [[], *([{"x": row, "y": str(row)}, None] for row in range(1, ROWS))])
    add("fsl", pa.list_(pa.float32(), 2), [[float(row), -0.0] for row in range(ROWS)], every=5)


_TEXTS = r"""
    b and c; b or c; not b and c; not (b and c); not (b or c); b = c; b != c; b is null or c
    (b or c) is null; (b and c) is null; not (b is null); b is not true; b is not false
    (b = c) is not true; b is true and c is false; not not b; b in (true, null)
    b not in (false); b not in (false, null); b is distinct from c; b is not distinct from c
    null and b; (null and b) is null; (null or b) is null; b or null; not (null or b); b < c
    b >= c; b between false and true; coalesce(b, c); coalesce(b, c, true); nullif(b, c)
    (b is null) = (c is null); (i8 > 0) is null; (i8 > 0) = b; i8 in (1, null)
    i8 not in (1, null); i8 not in (1, 127); not (i8 in (1, null)); i8 in (null)
    i8 not in (null); i8 in (i8); i8 in (u8, 1); null in (1, 2); null in (i8); i8 in (1.0)
    i8 in (1.5); i8 in (1.5, 1); f in (1); f in (0.0); f in (-0.0); f in (0.0, null)
    f not in (0.0); f not in (0.0, null); g in (0.1); g not in (0.1); s in ('', null)
    s not in ('%', null); dic in ('x', null); dic not in ('x', null); d1 in (1.5); d3 in (1.5)
    d1 in (1); li in ([1]); bin in (x'00', x''); fsb in (x'6162'); lb in (x'78')
    da in (date '2020-01-01', null); ts in (timestamp '2020-07-01')
    ny in (timestamp '2020-07-01'); i8 between 1 and null; i8 between null and 1
    i8 not between 1 and null; i8 not between null and 0; i8 between 127 and -128
    not (i8 between 0 and 1); i8 between symmetric 127 and 0; s between null and 'z'
    f between -0.0 and 0.0; f between 0.0 and 'x'; f not between 0 and 1; i8 between u8 and i64
    ts between date '2020-01-01' and date '2020-12-31'
    ny between timestamp '2020-03-08 03:00:00' and timestamp '2020-11-01 01:30:00'
    s between '' and 'b'; i8 + 1 > 0; i8 - 1 < 0; i8 * 2 = -2; -i8 = -128; -i8 = 128
    abs(i8) = 128; i8 + i8 = -2; u8 - 1 = 255; u8 + 1 = 0; u8 + 1 = 256; u8 + u8 = 254
    u8 - u8 = 0; u8 * u8 = 1; i64 + 1 < 0; i64 - 1 > 0; i64 * 2 = 0; -i64 = i64; u64 + 1 = 0
    u64 - 1 = 18446744073709551615; u64 + u64 = 0; i32 + 1 < 0; i32 * i32 = 0
    i32 + 1 = 2147483648; i32 * 2 = 4294967294; i8 / -1 = -128; i64 / -1 = i64; i8 % -1 = 0
    i32 % -7 = 0; i32 % 4 = -3; i32 / 2 = -3; i32 / 0 = 1; i32 % 0 = 1; f / 0 = f; f % 0 = f
    1 / 0 = 1; i8 << 1 = -2; i8 >> 1 = -64; u8 << 1 = 254; i32 >> 31 = -1; i64 = u64; i64 < u64
    i64 > u64; u64 > 9223372036854775807; u64 = 18446744073709551615; u64 < -1; u64 > -1
    u8 > -1; u8 = -1; u8 = 256; i8 < 128; i8 > 127; i8 >= -128; i8 = 1e2; i8 < 1.5; i8 = 1.0
    i8 = '1'; i64 = 9007199254740993; i64 = 9007199254740992; f = 9007199254740993
    f = 9007199254740992; i64 = f; i64 < f; u64 = f; i64 > 9223372036854775808
    i64 < -9223372036854775808; i64 = -9223372036854775808; u64 = 18446744073709551616; i8 = i64
    i8 = u8; u8 > i64; i64 = 1e18; g = 0.1; g = 16777217; cast(g as double) = 0.1
    g = cast(0.1 as float); f = 0.0; f = -0.0; f < 0.0; f <= -0.0; f > -0.0; f >= 0; f != 0
    f = f; f != f; f < f; f <= f; f is distinct from f; f > 1e308; f < -1e308; f = 'NaN'
    isnan(f); f > 1.5; f >= 1.5; not (f < 1.5); f = 1e400; f < 1e400; f > -1e400
    f = cast('NaN' as double); f >= cast('NaN' as double); f < cast('NaN' as double)
    f in (cast('NaN' as double)); f not in (cast('NaN' as double)); f = cast('inf' as double)
    f = cast('-inf' as double); g != g; g < 0; f + g = 0; f * 0 = 0; f - f = 0; abs(f) = 0
    -f = 0; signum(f) = 0; f = 5e-324
    f between cast('-inf' as double) and cast('inf' as double); h = 0.5; h < 1; h = 0; h is null
    isnan(h); d1 = d3; d1 < d3; d1 <= d3; d1 != d3; d1 = 1.5; d1 = 1.50; d1 = 1.55; d1 < 1.55
    d1 > 1.45; d3 = 1.5; d3 > 1.4; d1 = 1; d1 > 1; d1 = '1.5'; d1 + d3 = 3; d1 - d3 = 0
    d1 * d3 = 2.25; d1 / d3 = 1; d1 % 1 = 0.5; d3 % d1 = 0; d1 = f; d1 < f; d3 = g; d1 > i8
    d1 = u64; dbig = 99999999999999999999999999999999999999; dbig > 1e37; dbig * 2 > 0
    dbig = -1; dbig < d3; d1 between 1.4 and d3; d1 in (1.5, 99999.9); -d1 = 1.5; abs(d1) = 1.5
    cast(d1 as int) = 2; cast(d3 as decimal(4,1)) = 1.5; cast(f as decimal(5,1)) = 1.5
    round(d3) = 1; d1 = decimal(10,5) '1.50000'; d1 is not distinct from d3
    coalesce(d1, d3) = 1.5; d1 >= decimal(38,10) '1.5'; s like ''; s like '%'; s like '_'
    s like '\%'; s like '\_'; s like 'a\%b'; s like 'a\_b'; s like 'a\\b'; s like 'a_b'
    s like 'a%b'; s like '%\\%'; s like 'a\b'; s like '\'; s like 'a\nb'; s like 'a%'
    s like '%b'; s like '%''%'; s like "%""%"; s like "it's"; s ilike 'stra_e'; s ilike 'straße'
    s ilike 'STRASSE'; s ilike 'straSSe'; s ilike 'naïve'; s ilike 'NAÏVE'; s ilike 'i'
    s ilike 'I'; s ilike 'İ'; s ilike 'ı'; s ilike 's'; s ilike 'S'; s ilike 'k'; s ilike 'K'
    s ilike 'σίσυφος'; s ilike 'ΣΊΣΥΦΟΣ'; s ilike '%Σ'; s ilike 'σ%'; s not like '%'
    s not ilike '%a%'; s like null; s not like null; s like s; s ilike s; null like 'a'
    s like 'a%b' escape '\'; s like 'a!%b' escape '!'; s not like 'a\%b'; s like '%_'
    s like '__'; s like '___'; dic like 'x'; dic ilike 'X'; dic not like '_'; st.n like 'a'
    bin like 'a'; lower(s) = 'straße'; upper(s) = 'STRASSE'; lower(s) = 'i̇'; upper(s) = 'I'
    s < 'a'; s > 'Z'; s = 'K'; s = "it's"; s = 'it''s'; s = '"q"'; length(s) = 1
    starts_with(s, 'a%'); contains(s, '%'); contains(s, ''); contains_tokens(s, 'k');
    contains_tokens(s, 'STRASSE straße'); contains_tokens(s, ''); not contains_tokens(s, 'a b'); contains_tokens(s, '%_-');
    contains_tokens(s, 'b_a'); contains_tokens(s, 'ΣΊΣΥΦΟΣ'); s = ''; st.a.b = 1; st.a.b is null
    st.a is null; st is null; st.a.l[1] = 1; st.a.l[2] = 2; st.a.l[-1] = 2; st.a.l is null
    st.a.l = [1, 2]; st.a.l = []; st['a']['b'] = 3; st['a'].b = 3; st.n = 0; st.n != st.n
    st.n is null; isnan(st.n); st.`a`.`b` = 1; `st`.`a`.b = 1; st.a.b in (1, null)
    st.a.b not in (1); array_has(st.a.l, 1); array_length(st.a.l) = 0; coalesce(st.a.b, 0) = 0
    st.a = st.a; get_field(st, 'n') = 1.5; get_field(get_field(st, 'a'), 'b') = 1
    st.a.b between 1 and 2; st.a.b + 1 = 2; st.a.b is distinct from 1; not (st.a.b = 1)
    st.zz = 1; st.a.b.c = 1; li[1] = 1; li[1] is null; li[2] is null; li[0] is null
    li[99] is null; li[-3] = 1; li = [1]; li = []; li = [null]; li != [1]; li is null
    array_has(li, null); array_has(li, 1) is null; not array_has(li, 1)
    array_has_any(li, [1, 3]); array_has_all(li, []); array_length(li) = 0; empty(li)
    cardinality(li) = 0; array_max(li) = 2147483647; array_min(li) is null; array_sum(li) = 1
    ll[1][1] = 1; ll[1] = [1, 2]; ll[2] is null; ll[1][2] is null; array_length(ll) = 2
    array_length(ll[1]) = 2; flatten(ll) = [1, 2]; array_has(ll, [3]); ls[1].x = 1
    ls[1]['x'] = 1; ls[1]['y'] = '5'; ls[2] is null; ls[2]['x'] is null
    get_field(ls[1], 'x') > 3; array_length(ls) = 2; fsl[1] = 1; fsl[2] = 0
    array_length(fsl) = 2; fsl is null; array_to_string(li, ',', 'N') = '1,N,3'
    array_position(li, 3) = 3; case when b then 1 end = 1; case when b then 1 end is null
    case when b then c end; case i8 when 1 then true when null then false end
    case i8 when 1 then 'x' else null end = 'x'; case when i8 > 0 then i8 else u8 end = 127
    case when null then true else false end; case when b then 1 else 1.5 end = 1.5
    case when b then d1 else d3 end = 1.5; case when false then 1/0 else 1 end = 1
    case when b then s end like 'a%'; case b when c then true end; `select` = 5; order = 'asc'
    `order` = 'asc'; `a.b` = 7; a.b = 7; `Case` = 3; `case` = 3; `null` = 1; null = 1
    `has space` = 2; `HAS SPACE` = 2; `ünï` = 1; ünï = 1; `ÜNÏ` = 1; `tick``` = 1; I8 = 1
    `I8` = 1; "i8" = 1; 'i8' = 1; "i8" = 'i8'; i8=1; i8 =-1; i8=- 1; i8 = +1; i8 = --1
    ts = timestamp '2020-07-01'; ts = timestamp '2020-07-01 00:00:00'
    ts = timestamp '2020-07-01T00:00:00'; ts = timestamp '2020-07-01T00:00:00Z'
    ts = timestamp '2020-07-01T02:00:00+02:00'; ts = '2020-07-01'; ts > '2020-03-08 02:00:00'
    ny = timestamp '2020-07-01'; ny = timestamp '2020-06-30 20:00:00'
    ny = timestamp '2020-07-01T00:00:00Z'; ny > timestamp '2020-03-08 01:59:58'
    ny >= timestamp '2020-03-08 02:30:00'; ny = timestamp '2020-03-08 03:00:00'
    ny = timestamp '2020-11-01 01:30:00'; ny > timestamp '2020-11-01 01:30:00'
    ny < date '2020-03-09'; ny = date '2020-07-01'; utc = timestamp '2020-07-01'; utc = ny
    utc < ny; utc = ber; ber = ny; ber > timestamp '2020-07-01'
    ber = timestamp '2020-07-01 02:00:00'; utc = ts; ts = ny; ts < ny; ts > ny; ts = da; da = ts
    da < ts; ny = da; utc >= da; d64 = da; d64 < ts; tsn < tsu; tss = tsn; tss = tsu; tss <= tsn
    tsn > timestamp '2020-01-01 00:00:00.000001'; tsn = timestamp '2020-01-01 00:00:00.000001'
    tss > timestamp '2020-01-01 00:00:01.5'; tsu = date '2020-01-01'; da = date '2020-01-01'
    da > '2020-01-01'; da = timestamp '2020-01-01 00:00:00'
    da < timestamp '2020-01-01 00:00:01'; d64 = date '2020-01-01'; d64 > timestamp '2020-01-01'
    date_part('hour', ny) = 3; date_part('hour', ny) = 1; date_part('dow', ny) = 0
    date_trunc('day', ny) = timestamp '2020-03-08'; date_trunc('hour', ny) = ny
    cast(ny as date) = date '2020-06-30'; cast(ny as timestamp) = ts; cast(ts as date) = da
    ts::date = date '2020-03-08'; to_date(ts) = da; ts - ts = interval '0 seconds'
    ts + interval '1 day' > ts; da + interval '1 day' = date '2020-01-02'
    ny + interval '1 day' > ny; ts > now(); ts < current_timestamp; ts is null; t32 = '01:02:03'
    t32 > t64; t64 < time '01:00:00'; t32 is null; du > interval '0 seconds'
    du = interval '1 second'; du is null; to_timestamp('2020-07-01') = ts
    ts in (timestamp '2020-07-01', null); ts not in (timestamp '2020-07-01', null)
    extract(year from ny) = 2019; date_part('epoch', utc) < 0; date_part('year', ts) = 1969
    date_part('second', utc) >= 59; cast(s as int) = 1; try_cast(s as int) is null
    cast(i8 as boolean); cast(i8 as string) = '-1'; cast(f as int) = 1; try_cast(f as int) = 0
    cast(f as string) = 'NaN'; cast(f as string) = '-0.0'; try_cast(u64 as bigint) is null
    cast(i64 as double) = 9223372036854775807; cast(bin as string) = 'a'
    cast(s as binary) = x'25'; cast(b as string) = 'true'; cast(ny as string) like '%-05:00'
    try_cast(i8 as tinyint unsigned) is null; cast(da as string) = '2020-01-01'
    cast(d1 as string) = '1.5'; cast(st as string) is null; cast(li as string) = '[1, , 3]'
    cast(null as int) is null; i8::string = '1'; cast('2020-01-01' as date) = da
    cast('1.5' as decimal(3,1)) = d1; 1 = 1; 1 = 2; null = null; null is null; 'a' = 'a'; true
    false; not true; null; 1; 'true'; i8; i8 and b; s and b; b and 1; i8 = 1 = true
    b = true = true; 1 < i8 < 5; i8 = 1 or; (i8 = 1; i8 == 1; i8 <> 1; i8 ! = 1; i8 & 1 = 1
    i8 | 1 = 1; i8 ^ 1 = 1; ~i8 = 1; s ~ 'a'; s !~ 'a'; s ~* 'A'; i8 = any(li); exists(select 1)
    i8 in (select 1); (i8, u8) = (1, 1); i8 is 1; i8 isnull; i8 notnull; i8 is unknown
    b is unknown; b is not unknown; s rlike 'a'; s similar to 'a'; s regexp 'a'; i8 div 2 = 0
    i8 mod 2 = 1; mod(i8, 2) = 1; concat(s) = ''; s || null is null; s || 'x' = 'x'
    if(b, 1, 2) = 1; iff(b, 1, 2) = 1; decode(s, 'a') = 'b'; /* x */ i8 = 1; i8 = 1 -- x
    count(*) = 1; sum(i8) = 1; row_number() over () = 1; i8 = $1; i8 = ?; @x = 1; i8 = 0x1F
    i8 = .5; i8 = 5.; d1 = 1.5e0; i8 = 01; E'a' = s; N'a' = s; U&'a' = s; b'1' = bin
    X'00' = bin; x'0' = bin; date '2020-13-01' = da; date '2020-02-30' = da; timestamp 'x' = ts
    interval '1' = du; interval '1 fortnight' = du; current_date = da; current_timestamp > ts
    localtime is null; pi() > 3; random() >= 0; uuid() is not null
"""


def edges() -> list[str]:
    """Return the filters."""
    lines = _TEXTS.splitlines()
    return [text.strip() for line in lines for text in line.split("; ") if text.strip()]
