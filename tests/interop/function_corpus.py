"""Expressions that pylance computes as well: functions, operators, casts, each with edge values.

All are over the columns of `tests.interop.filter_corpus.filter_table`.
"""

from __future__ import annotations

_TEXTS = """
    asinh(f64); cbrt(f64); cosh(f64); degrees(f64); factorial(u8 % 10); gcd(i32, 12); lcm(i32, 12)
    pi(); radians(f64); sinh(f64); tanh(f64); trunc(f64, 1); round(f64, -1); round(dec, 1)
    round(i32, -1); log(2.0, f64); power(f64, 2); power(i32, 2); abs(dec); abs(u8); signum(f64)
    signum(dec); exp(i32); isnan(i32); iszero(i32); nanvl(f32, 1.0); atan2(f64, 2.0)
    atan2(f32, f64); greatest(i32, i64); greatest(s, ls); greatest(f64, 1.0); least(f64, 1.0)
    greatest(null, i32); greatest(d, date '2020-01-15'); ascii(s); chr(u8 + 60)
    split_part(s, 'o', 1); split_part(s, 'o', 2); split_part(s, 'o', -1); split_part(s, '', 1)
    substr_index(s, 'o', 1); substring_index(s, 'b', -1); translate(s, 'abo', 'xy'); to_hex(i32)
    to_hex(i64); levenshtein(s, 'Bob'); find_in_set(s, 'a,b,Bob'); position('o', s); sha224(s)
    sha256(s); sha384(s); sha512(s); digest(s, 'md5'); digest(s, 'sha256'); digest(s, 'blake2b')
    encode(bin, 'hex'); encode(bin, 'base64'); encode(s, 'base64'); encode(s, 'hex')
    decode('6162', 'hex'); decode(encode(s, 'base64'), 'base64'); regexp_count(s, 'b')
    regexp_count(s, 'b', 2); regexp_count(s, 'B', 1, 'i'); regexp_instr(s, 'o')
    regexp_instr(s, 'b', 2); regexp_like(s, 'b', 'i'); regexp_match(s, 'b')
    regexp_match(s, '(.)o(.)'); regexp_match(s, '(B)', 'i'); regexp_replace(s, 'b', 'X', 'g')
    regexp_replace(s, '(b)', '[$1]', 'gi'); regexp_replace(s, '(b)', '[\\1]', 'g')
    concat(s, i32, 'x'); concat(s, f64); s || i32; s || ls; concat_ws(',', s, i32)
    concat_ws(s, 'a', 'b'); initcap(s); lpad(s, 5); lpad(s, 2, 'xy'); lpad(s, 6, 'xy')
    rpad(s, 6, 'xy'); rpad(s, 6, ''); lpad(s, i32, 'x'); lpad(s, 0); lpad(s, -1); repeat(s, 3)
    repeat(s, i32); repeat(s, -1); replace(s, 'o', ''); replace(s, '', 'x'); reverse(s)
    rtrim(s, 'b'); ltrim(s, 'B'); btrim(s, 'Bb'); strpos(s, ''); strpos(s, ls); instr(s, 'b')
    starts_with(s, ls); ends_with(s, s); contains(s, ls); contains_tokens(s, 'Bob');
    contains_tokens(ls, 'a'); length(ls); bit_length(s)
    character_length(s); lower(ls); upper(s); arrow_typeof(i32); arrow_typeof(tz); arrow_typeof(li)
    arrow_cast(i32, 'Int64'); arrow_cast(s, 'LargeUtf8'); arrow_cast(i32, 'Float32')
    arrow_cast(ts, 'Timestamp(Second, None)')
    arrow_cast(ts, 'Timestamp(Millisecond, Some("UTC"))'); arrow_cast(i32, 'Decimal128(10, 2)')
    arrow_cast(d, 'Date64'); arrow_cast(li, 'LargeList(Int64)'); struct(i32, s)
    arrow_cast(NULL, 'FixedSizeList(3, Float32)')
    named_struct('a', i32, 'b', s); row(i32, s); named_struct('a', i32)['a']; struct(i32, s)['c0']
    get_field(st, 'y'); st; st['x']; coalesce(i32, i64); coalesce(s, ls); coalesce(null, null)
    coalesce(f32, i32); nullif(i32, i64); nullif(s, 'a'); nvl(s, 'zz'); nvl2(s, 'a', 'b')
    ifnull(i8, 1); date_bin('1 day', ts); date_bin('15 minutes', ts); date_bin('1 month', ts)
    date_bin(interval '15 minutes', ts); date_bin('7 days', ts, timestamp '2020-01-01')
    date_bin('1 day', d); date_bin('1 day', tz); date_trunc('year', ts); date_trunc('quarter', ts)
    date_trunc('month', tsn); date_trunc('week', ts); date_trunc('day', ts); date_trunc('hour', tz)
    date_trunc('day', tz); date_trunc('month', tz); date_trunc('minute', ts)
    date_trunc('second', ts); date_trunc('millisecond', ts); date_trunc('microsecond', tsn)
    date_trunc('month', d); date_trunc('hour', d); date_trunc('MONTH', ts); date_part('year', d)
    date_part('isoyear', d); date_part('quarter', ts); date_part('month', ts)
    date_part('week', ts); date_part('day', ts); date_part('dow', ts); date_part('isodow', ts)
    date_part('doy', ts); date_part('hour', ts); date_part('minute', ts); date_part('second', ts)
    date_part('second', tsn); date_part('millisecond', ts); date_part('milliseconds', tsn)
    date_part('microsecond', ts); date_part('nanosecond', tsn); date_part('nanosecond', ts)
    date_part('epoch', ts); date_part('epoch', d); date_part('epoch', tz); date_part('hour', tz)
    date_part('hour', d); date_part('second', d); date_part('YEAR', d); date_part('years', d)
    make_date(2020, 1, 1); make_date(i32, 1, 1); to_date('2020-01-01'); to_date(i32); to_date(ts)
    to_date(d); to_timestamp('2020-01-01'); to_timestamp('2020-01-01T00:00:00Z')
    to_timestamp('2020-01-01 01:02:03.123456789'); to_timestamp('2020-01-01T00:00:00+02:00')
    to_timestamp(i32); to_timestamp(i64); to_timestamp(f64); to_timestamp(ts); to_timestamp(tz)
    to_timestamp(dec); to_timestamp_seconds(i32); to_timestamp_millis(i32)
    to_timestamp_micros(i64); to_timestamp_nanos(i64); to_timestamp_seconds(ts)
    to_timestamp_millis('2020-01-01T00:00:00.5'); to_unixtime(ts); to_unixtime(d)
    to_unixtime('2020-01-01'); to_unixtime(i32); from_unixtime(i32); from_unixtime(i64)
    from_unixtime(i64, 'America/New_York'); to_char(d, '%Y'); to_char(ts, '%Y-%m-%d %H:%M:%S')
    to_char(ts, '%d/%b/%Y %f'); to_char(ts, '%A %B %j %U %y %e %I %p'); to_char(d, '%H:%M')
    to_char(ts, null); date_format(ts, '%Y'); to_local_time(tz); to_local_time(ts); ts - ts; ts - d
    d - d; d - date '2020-01-01'; ts - timestamp '2020-01-01'; tz - tz; ts = tz; ts < tsn; ts < tz
    tz < tsn; d < ts; d < tz; tz = tz; tz > timestamp '2019-12-31 19:00:00'
    tz > timestamp '2020-01-01 00:00:00Z'; ts > timestamp '2020-01-01 00:00:00Z'
    ts > timestamp '2020-01-01T00:00:00+02:00'
    tz = arrow_cast('2020-01-01T00:00:00Z', 'Timestamp(Microsecond, Some("UTC"))')
    cast(tz as timestamp); cast(ts as timestamp(3)); cast(ts as timestamp(0))
    try_cast(s as timestamp); cast('2020-01-01' as timestamp)
    cast('2020-01-01T00:00:00Z' as timestamp); cast(d as timestamp); cast(ts as date)
    cast(tz as date); cast(tz as string); cast(ts as string); cast(tsn as string)
    cast(d as string); cast(d as int); cast(ts as bigint); cast(i32 as date)
    cast(i64 as timestamp); timestamp '2020-01-01'; timestamp '2020-01-01T12:00:00.123456'
    date '2020-01-01'; date '0001-01-01'; array_append(li, 9); array_append(li, i32)
    array_append(li, null); array_push_back(li, 9); list_append(lst, 'z'); list_append(lst, s)
    array_prepend(9, li); array_prepend(null, li); list_prepend(s, lst); array_push_front(1, li)
    array_concat(li, li); array_cat(li, [1, 2]); list_concat(lst, ['z']); array_contains(li, i32)
    array_has(li, i32); array_has([1,2,3], i32); array_has(li, null); array_has_any(li, li)
    array_has_any(li, [1, null]); array_has_any(li, []); array_has_all(li, [])
    array_has_all(li, [1, null]); arrays_overlap(li, [1]); array_dims(li); array_ndims(li)
    array_distance([1.0, 2.0], [2.0, 4.0]); array_distinct(li); array_distinct(lst)
    list_distinct([1, 1, 2]); array_element(li, 1); array_element(li, i32); array_extract(li, 2)
    list_element(lst, -1); li[1]; li[-1]; li[0]; li[9]; li[i32]; lst[2]; array_empty(li)
    empty(lst); array_except(li, [1]); array_except(lst, lst); array_intersect(li, [1, 3, null])
    array_intersect(lst, ['a']); array_union(li, [1, 7]); array_union(lst, lst)
    array_join(lst, '-'); array_join(lst, '-', '?'); array_to_string(li, ',')
    array_to_string(li, ',', 'x'); array_length(li); array_length(li, 1); array_length(li, 2)
    array_max(li); array_max(lst); array_min(li); array_min(lst); list_max(li); array_any_value(li)
    array_pop_back(li); array_pop_front(li); array_position(li, 2); array_position(li, null)
    array_indexof(lst, 'b'); array_positions(li, 5); array_positions(li, null); array_remove(li, 5)
    array_remove(li, null); array_remove_n(li, 5, 2); array_remove_all(li, 5); array_repeat(i32, 2)
    array_repeat(s, 3); array_repeat(i32, i8); array_repeat(li, 2); array_replace(li, 5, 6)
    array_replace_n(li, 5, 6, 2); array_replace_all(li, 5, 6); array_replace_all(li, null, 6)
    array_resize(li, 2); array_resize(li, 2, 0); array_resize(li, 0); array_reverse(li)
    array_reverse(lst); array_slice(li, 1, 2); array_slice(li, 2, -1); array_slice(li, -2, -1)
    array_slice(li, 1, 3, 2); array_slice(li, 0, 2); array_slice(li, 3, 1)
    array_slice(li, -1, -3, -1); array_sort(li); array_sort(li, 'DESC')
    array_sort(li, 'ASC', 'NULLS LAST'); array_sort(lst, 'DESC', 'NULLS LAST'); cardinality(li)
    cardinality(lst); flatten(li); flatten([[1],[2,3]]); generate_series(1, 3); range(3)
    range(1, i8); generate_series(1, i8); make_array(1, 2); make_array(i32, 2)
    make_array(i32, i64); make_array(s, 'x'); make_array(1, null); make_array(1, 1.5); make_array()
    [1, 2]; make_list(1); string_to_array(s, 'o'); string_to_array(s, '')
    string_to_array(s, 'o', 'B'); string_to_list(s, 'b'); li = [1]; li = [1, 2]; li != [1]
    lst = ['a', 'b']; li = li; st = st; li is null; array_length([1,2]); array_has(['a','b'], s)
    array_max([1,2]); array_sort([3,1,2]); i32 << 1; i32 >> 1; i32 << 1 = 2
    i32 is distinct from i64; i32 is not distinct from null; s is distinct from ls
    f64 is distinct from f64; li is distinct from [1]; s ilike 'B_b'; s not ilike 'B_b'; s like ls
    s like s; s like 'a\\%%'; s ilike 'A\\%%' escape '\\'; dic like 'B%'; dic ilike 'b%'; b is true
    b is not null; i8 + i16; i8 + u8; u8 + u16; i64 + u64; u64 + 1; u64 - 1; u8 - u8; u8 - 1
    i8 * i8; i8 % 3; u8 % 3; f32 + 1; f32 + i32; f32 + i64; f32 + 1.5; f32 + f64; f32 / 0
    dec + dec; dec - 1; dec * 2; dec / 2; dec % 2; dec + i8; dec + i64; dec + u64; dec * i32
    dec + f32; dec > i64; -dec; -f32; -i8; - i64; - -1; 1 + 1; 1 + 1.5; 1 / 2; 7 % 3; 1.0 / 0
    cast(i32 as tinyint); try_cast(i32 as tinyint); try_cast(u8 as tinyint); try_cast(f64 as int)
    try_cast(f64 as bigint); cast(f64 as float); cast(f64 as string); cast(f32 as string)
    cast(i32 as string); cast(b as string); cast(b as double); cast(dec as string)
    cast(dec as int); cast(dec as decimal(5,1)); try_cast(dec as decimal(3,2))
    try_cast(f64 as decimal(10,2)); cast(s as string); try_cast(s as boolean)
    try_cast(s as double); try_cast(bin as string); cast(null as int); cast('1' as int)
    try_cast('x' as int); cast(1.5 as int); cast(-1.5 as int); cast(2.5 as int); cast(true as int)
    cast(1 as boolean); cast(dic as string); i32 in (1, 2); i32 in (i64, 1); i32 in (null)
    s in ('a', null); f64 in (0.0); f64 in (1.5, 0.0); f32 in (0.1); dec in (1, 2)
    d in (date '2020-01-01'); ts in (timestamp '2020-01-01'); b in (true, null)
    i32 between i8 and i64; i32 not between 1 and 5; s between 'a' and 'c'; i32 between 5 and 1
    null; true; 1; 'a'; 1.5; 1e3; x'61'; -1; null + 1; null and true; null or true; not null
    `odd name`; "odd name"; Cap; cap; `Cap`; st.x; st.`x`; `st`.`x`; ABS(i32); Abs(i32)
    f64 > 1e400; isnan(f64); i64 = 9223372036854775807; u64 = 18446744073709551615; u64 > 0; b = b
    b < true; b > false; bin < x'61'; s < 'b'; ls > s; dic = s; dic < 'b'; dic in ('a')
    dic is null; length(dic); strpos(ls, 'o'); octet_length(ls); levenshtein(ls, 'a')
    translate(ls, 'a', 'b'); split_part(ls, 'o', 1); lpad(ls, 4); repeat(ls, 2); reverse(ls)
    upper(ls); ascii(ls); encode(ls, 'hex'); find_in_set(ls, 'a,b'); regexp_count(ls, 'o')
    replace(ls, 'o', 'x'); btrim(ls, 'B'); initcap(ls); string_to_array(ls, 'o'); chr(0)
    to_hex(u8); to_hex(-5); cast(f64 * 1e16 as string); cast(f64 * 1e20 as string)
    cast(f64 / 1000.0 as string); cast(f64 / 100000.0 as string); cast(f64 / 1e7 as string)
    cast(f32 * 1e10 as string); cast(f32 / 3 as string); cast(i64 / 3.0 as string)
    array_slice(li, -1, -1, -1); array_slice(li, 3, 1, -1); array_slice(li, 3, 1, -2)
    array_slice(li, -5, -2); array_slice(li, 5, 9); array_slice(li, 2, 99); array_slice(li, -1, 99)
    array_slice(li, null, 2); array_slice(li, i8, 2); array_except(li, [3, null])
    array_except(li, null); array_union(li, null); array_union(li, [null])
    array_intersect(lst, ['b', 'a', null]); array_intersect(li, [5, 5, 1])
    array_intersect([1, 3, 5], li); array_concat(li); array_concat(li, li, [7])
    array_append([1], 2); array_append(li, 1.5); array_append(lst, null); array_position(li, i32)
    array_position([3, 2, 1], i32); array_positions(li, i32); array_positions(lst, 'a')
    array_remove(lst, 'a'); array_remove(li, i32); array_remove_all(li, i32)
    array_remove_n(li, 5, 0); array_remove_n(li, 5, -1); array_replace(li, null, 0)
    array_replace(li, i32, 0); array_replace(lst, 'a', null); array_replace_n(li, 5, 6, -1)
    array_resize(lst, 3, 'z'); array_repeat(null, 2); array_repeat(s, 0); array_repeat(s, -1)
    array_repeat(s, null); array_max([null]); array_max(make_array(f64, 1.0))
    array_min(make_array(f64, 1.0)); array_sort(make_array(f64, 1.0, 0.5))
    array_sort(make_array(f64, 1.0, 0.5), 'DESC'); array_distinct(make_array(f64, f64, 0.5))
    array_has(make_array(f64, 1.0), f64); array_has_any(lst, make_array(s))
    array_has_all(lst, lst); array_has_all(li, [5]); array_has_all(lst, ['a', 'b'])
    array_has_any(li, make_array(i32)); array_has_any(li, null); array_has(null, 1)
    array_length([]); array_to_string([1, 2], ','); array_to_string(li, null)
    array_to_string(make_array(f64, 1.0), ','); array_to_string(make_array(d), ',')
    array_to_string(make_array(b), ','); array_distance(make_array(f64, 1.0), [1.0, 2.0])
    array_reverse([1, 2]); array_dims([1, 2]); array_ndims([1]); array_any_value(lst)
    array_pop_back(lst); array_pop_front([1]); array_element(lst, 1); array_element([1, 2], 2)
    array_element(li, null); generate_series(1, 10, 3); generate_series(10, 1, -3); range(10, 1)
    range(i8, 3); range(0, i8, 20); generate_series(i8, i32); date_part('hour', ts) + 1
    date_bin('1 day 6 hours', ts); date_bin('2 months', ts); date_bin('1 year', ts)
    date_bin('1 week', ts); date_bin('1 hour', tsn)
    date_bin('5 seconds', ts, timestamp '2020-01-01 00:00:01'); date_trunc('week', d)
    date_trunc('quarter', tz); date_trunc('week', tz); date_trunc('second', tsn); to_char(ts, '')
    to_char(ts, '%%'); to_char(ts, '%F %T'); to_char(ts, '%D'); to_char(ts, '%s')
    to_char(ts, '%.3f'); to_char(ts, '%3f'); to_char(ts, '%V %G %u %w'); to_char(ts, '%C')
    to_char(ts, '%l %k %P'); to_char(ts, '%-d/%-m'); to_char(ts, '%c'); to_char(ts, '%x')
    to_char(tz, '%s'); to_unixtime(tz); to_unixtime('2020-01-01T00:00:01Z'); to_date(null)
    make_date(null, 1, 1); make_date(1, 1, 1); to_timestamp(null)
    to_timestamp('2020-01-01T00:00:00.123'); to_timestamp_seconds('2020-01-01')
    to_timestamp_micros(tsn); to_timestamp_nanos(ts); to_timestamp_seconds(tz); gcd(0, 0)
    gcd(i64, -12); lcm(i64, 0); lcm(i8, i32); trunc(f64, -1); trunc(i32); round(dec)
    round(dec, -1); round(dec, 5); trunc(dec, 1); log(0, 5); ln(-1.0); power(2, 0.5)
    power(-8, 1.0/3); exp(1000); abs(-128); signum(u8); degrees(i32); isnan(f32); iszero(-0.0)
    nanvl(f64, f32); nanvl(f64, null); atan2(i32, 2); greatest(i32, f64); greatest(s, 'b')
    greatest(dec, 2); coalesce(dec, 2); coalesce(i32, 1.5); coalesce(f32, 1.5); coalesce(i8, 1)
    coalesce(st, st); nullif(f64, 1.5); nullif(d, date '2020-01-01'); nvl2(i32, i64, 1.5)
    struct(i32, 1, 'a'); named_struct('x', st); named_struct('x', li)['x'][1]; st['x'] + 1
    regexp_like(s, null); regexp_like(null, 'a'); regexp_replace(s, '(.)', '$1$1', 'g')
    regexp_replace(s, '.', '\\\\'); regexp_match(s, '[(]b'); regexp_match(s, '\\(b')
    regexp_count(s, '.', 2); regexp_count(s, null); regexp_instr(s, 'b', 3); regexp_instr(s, '☃')
    regexp_instr(s, 'w|☃'); split_part(s, s, 1); split_part(s, null, 1); substr_index(s, 'o', 0)
    substr_index(s, '', 1); substr_index(s, 'o', -5); translate(s, 'aa', 'xy')
    translate(s, '', 'xy'); translate(s, 'abc', ''); levenshtein(s, null); find_in_set('a', '')
    find_in_set('', 'a,,b'); find_in_set(s, null); string_to_array(s, null)
    string_to_array('a,b', ',', 'b'); concat(s); concat(i32, d); concat(b, ts); concat_ws(',', s)
    repeat(s, null); lpad(s, null); lpad(null, 3); rpad(s, 2); btrim(s, ls); starts_with(s, '')
    contains(s, ''); strpos(s, null); replace(s, null, 'x'); i32 + i64 * 2 - u8; (i32 + 1) * 2
    i32 + 1 + 1; 1 + i32 + 1; i8 + 1 + i16; f32 + 1.5 + 1; dec + 1 + 1; dec * 2 + i32; dec / 3 + 1
    i32 / 2 * 2; abs(i32) + 1; length(s) + 1; length(s) * 2.5; length(s) > 2; length(s) / 2
    round(f64) + 1; sqrt(u8) * 2; date_part('year', ts) - 1; coalesce(i32, 0) + 1
    coalesce(i8, i16, 1); coalesce(s, 'x') || 'y'; nullif(i32, 1) + 1; nullif(i8, 1); nullif(s, ls)
    greatest(i8, 1, 2.5); least(i32, 2, null); greatest(u8, i8); st.x + i32; st.x / 2; st.x % 3
    -st.x; -(i32 + 1); - dec; i32 between 1 and 3 and b; (i32 > 1) = b; b = (s = 'a')
    not (s like 'a%'); s in ('a', 'b') or b; i32 in (1, 2) is true; i32 % 2 = 0; i64 % 3 + 1
    f64 % 1; f64 / 0; -f64 / 0; f32 / 3; f32 * f32; f32 - f64; u8 % 7; u32 + i32; u64 / 2; u64 * 2
    i64 * i64; u64 - i64; dec - dec; dec * f32; dec = i32; dec between 1 and 3; d = ts; d > ts
    ts - tsn; tsn - ts; tz - ts; date_trunc('day', ts) = d; cast(ts as date) = d
    d between date '2020-01-01' and date '2020-06-01'; cast(d as timestamp) = ts
    to_timestamp('2020-01-01T00:00:00') = ts; s || ls || 'x'; s || null; concat(s, s, s)
    upper(lower(s)); reverse(reverse(s)); left(s, 2) = 'Bo'; length(left(s, 2))
    strpos(s, 'o') + length(s); split_part(s, 'o', 1) = s; array_length(li) + 1
    array_length(li) > 1; array_max(li) + i32; array_has(li, 5) or array_has(li, 1); li[1] + li[2]
    li[1] = i32; array_append(li, 1)[1]; array_concat(li, li)[2]; array_sort(array_append(li, 4))
    array_distinct(array_concat(li, li)); array_length(string_to_array(s, 'o'))
    array_to_string(array_append(lst, s), '|'); cardinality(array_distinct(li))
    named_struct('a', i32)['a'] + 1; struct(s)['c0'] = 'a'; get_field(st, 'x') + 1
    arrow_cast(i32, 'Int64') * 2; arrow_typeof(i32 + i64); arrow_typeof(i32 + 1)
    arrow_typeof(f32 + i32); arrow_typeof(dec * dec); arrow_typeof(st); arrow_typeof(ts - ts)
    arrow_typeof(null); arrow_typeof(d - d); regexp_match(s, 'o')[1]; regexp_match(s, '(.)(o)')[2]
    encode(sha256(s), 'hex'); encode(decode(encode(s, 'hex'), 'hex'), 'base64'); to_hex(ascii(s))
    chr(ascii(s)); md5(s) = md5('a'); substr_index(s, 'o', 1) || 'z'; isnan(f64) and f64 > 1
    isnan(f64) or f64 < 1; nanvl(f64, 0.0) + 1; is_valid(s); is_valid(i32 + i64)
    i32 is null and s is not null; (i32 is null) is true; b is not distinct from true
    f64 is not distinct from f32; s is distinct from 'a'; li is not distinct from [1]; st is null
    Cap + `odd name`; cap = 5 and CAP < 9; cast(ts as datetime(3)); cast(ts as datetime)
    cast(i32 as integer); radians(f32); degrees(f32); radians(f64); degrees(f64); radians(i8 / f32)
    degrees(f32 * 3.7); to_char(to_timestamp_micros(i64), '%H:%M:%S %6f'); to_char(tsn, '%H:%M:%S')
    to_char(tz, '%H:%M:%S'); date_part('second', to_timestamp_micros(i64))
    date_part('microsecond', to_timestamp_micros(i64))
    date_part('epoch', to_timestamp_millis(i64)); to_unixtime(to_timestamp_millis(i64))
    cast(to_timestamp_micros(i64) as timestamp(0)); cast(to_timestamp_micros(i64) as date)
    date_bin('1 day', to_timestamp_micros(i64)); date_trunc('second', to_timestamp_micros(i64))
    date_part('week', to_timestamp_seconds(i64 * 100000000))
    date_part('isoyear', to_timestamp_seconds(i64 * 100000000))
    to_char(to_timestamp_seconds(i64 * 100000000), '%Y %G %V %j %C %y')
    cast(to_timestamp_micros(i64) as string); cast(to_timestamp_nanos(i64) as string)
    cast(to_timestamp_millis(i64 * 10) as string)
    cast(to_timestamp_nanos(i64 * 1000000) as string); cast(ts as string); cast(tsn as string)
    cast(tz as string); cast(cast(ts as timestamp(0)) as string)
    concat(to_timestamp_micros(i64 * 1000), 'x')
    cast(arrow_cast(tz, 'Timestamp(Millisecond, Some("UTC"))') as string)
    to_char(to_timestamp_millis(i64), '%.3f %9f'); to_char(date '2020-01-01', '%Y')
    list_has(['a', null], ls); array_has(['a', 'Bob'], s); array_has([1, 2, null], i32)
    array_to_string(make_array(to_timestamp_nanos(i64)), ',')
    array_to_string(make_array(ts, ts), ',', '?'); array_to_string(make_array(tz), ',')
    array_to_string(make_array(d, d), '-'); array_to_string(li, ',', 'x')
    array_to_string(make_array(f64, 1.5), ',')
    arrays_zip(li, li); arrays_zip(li, lst); arrays_zip(li); arrays_zip(li, [1, 2, 3])
    list_zip(li, lst); arrays_zip(li, lst, li); arrays_zip(li, null); arrays_zip([], li)
    arrays_zip(arrow_cast(li, 'LargeList(Int32)'), li); cast(li as string); cast(lst as string)
    cast(make_array(f64, 1.5) as string); cast(make_array(d) as string)
    cast(make_array(ts) as string); cast(make_array(b) as string); cast(make_array(dec) as string)
    cast(make_array(li) as string); cast(make_array(tz) as string); cast(make_array(bin) as string)
    cast(make_array(f32) as string); cast(arrow_cast(li, 'LargeList(Int32)') as string)
    arrow_cast(li, 'Utf8'); arrow_cast(li, 'LargeUtf8'); make_array(li, li); make_array(li, [1])
    make_array(li); make_array(lst, lst); make_array(li, null); make_array(st); make_array(st, st)
    make_array(li, arrow_cast(li, 'List(Int64)')); array_length(make_array(li, li))
    array_has(make_array(li, [9]), li); flatten(make_array(li, li)); make_array(li, li)[1]
    make_array(li, li)[2][1]; array_append(make_array(li), li); array_append(make_array(li), [1])
    array_concat(make_array(li), make_array(li)); array_prepend([1], make_array(li))
    array_distinct(make_array(li, li)); array_dims(make_array(li, li)); array_ndims(make_array(li))
    array_reverse(make_array(li, [7])); array_slice(make_array(li, [7], [8]), 1, 2)
    array_position(make_array(li, [1]), [1]); array_remove(make_array(li, [1]), [1])
    array_repeat(li, 2); array_union(make_array(li), make_array([1]))
    _cast_list_f16(make_array(f32, f32)); _cast_list_f16(make_array(f32))
    _cast_list_f16(arrow_cast(make_array(f32, f32), 'FixedSizeList(2, Float32)'))
    array_length(make_array(li, [7]), 2); cardinality(make_array(li, [7])); least(tz, ts)
    greatest(b, true); least(b, false); greatest(bin, x'61'); greatest(dec, i32); least(s, null)
    regexp_count(s, '', 1); regexp_count(s, 'ï'); regexp_count(s, '.', 3)
"""


def expressions() -> list[str]:
    """Return the texts, each once."""
    lines = _TEXTS.splitlines()
    return list(
        dict.fromkeys(text.strip() for line in lines for text in line.split("; ") if text.strip())
    )
