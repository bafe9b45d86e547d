"""Functions of dates and times.  Parts of a timestamp with a zone are those of its wall clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.functions.datetime_format import date_bin, to_char
from pennon.expr.functions.function import Function
from pennon.expr.rowwise import Entry, Run, by_row, check_types
from pennon.expr.types import is_number, is_text

_NANOS: Final = 10**9
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": _NANOS}

_SHORTER_THAN_DAYS: Final = frozenset(
    ("hour", "minute", "second", "millisecond", "microsecond", "nanosecond")
)
_UNITS: Final = _SHORTER_THAN_DAYS | {"year", "quarter", "month", "week", "day"}


# --- parts of a time ------------------------------------------------------------------------------


def _fraction(values: Datum, per_second: int) -> Datum:
    """Return seconds and their fraction, counted in parts of a second, the rest cut."""
    parts = pc.multiply(pc.cast(pc.second(values), pa.int64()), per_second)
    for run, each in ((pc.millisecond, 10**3), (pc.microsecond, 10**6), (pc.nanosecond, _NANOS)):
        if per_second >= each:
            parts = pc.add(parts, pc.multiply(pc.cast(run(values), pa.int64()), per_second // each))
    return parts


def _epoch(values: Datum) -> Datum:
    zone = values.type.tz if t.is_timestamp(values.type) else None
    nanos = pc.cast(pc.cast(values, pa.timestamp("us", zone)), pa.int64())
    return pc.divide(pc.cast(nanos, pa.float64()), 1e6)


_PARTS: Final[Mapping[str, Run]] = {
    "year": pc.year,
    "isoyear": pc.iso_year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": lambda values: pc.day_of_week(values, week_start=7),
    "isodow": lambda values: pc.day_of_week(values, week_start=1, count_from_zero=False),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": partial(_fraction, per_second=10**3),
    "microsecond": partial(_fraction, per_second=10**6),
    "nanosecond": partial(_fraction, per_second=_NANOS),
    "epoch": _epoch,
}


def _part(name: Datum, values: Datum) -> Datum:
    part = _name(name).removesuffix("s")
    run = _PARTS.get(part)
    if run is None:
        message = f"there is no part {_name(name)!r} of a time; the parts are {', '.join(_PARTS)}"
        raise pa.ArrowInvalid(message)
    found = run(cast(values, pa.timestamp("s")) if t.is_date(values.type) else values)
    if part == "nanosecond" or t.is_floating(found.type):
        return found
    return pc.cast(found, pa.int32())


def _truncated(unit: Datum, values: Datum) -> Datum:
    name = _name(unit)
    if name not in _UNITS:
        message = f"times are not cut to {name!r}; the units are {', '.join(sorted(_UNITS))}"
        raise pa.ArrowInvalid(message)
    times = values if t.is_timestamp(values.type) else cast(values, pa.timestamp("ns"))
    if not times.type.tz:
        return pc.floor_temporal(times, unit=name)
    local = pc.local_timestamp(times)
    floor = pc.floor_temporal(local, unit=name)
    if name in _SHORTER_THAN_DAYS:  # an hour that comes twice stays the one that it is
        return pc.subtract(times, pc.subtract(local, floor))
    return cast(floor, times.type)


def _name(value: Datum) -> str:
    if isinstance(value, pa.Array):
        message = "the name of a part or unit must be a literal"
        raise pa.ArrowInvalid(message)
    return str(value.as_py()).lower()


# --- conversions ----------------------------------------------------------------------------------


def _to_timestamp(values: Datum, unit: str = "ns", number_unit: str | None = None) -> Datum:
    """Return times, of numbers, texts or other times; a number counts ``number_unit`` from 1970."""
    check_types([values], [lambda kind: is_number(kind) or is_text(kind) or t.is_temporal(kind)])
    kind = pa.timestamp(unit)
    if t.is_integer(values.type) or t.is_null(values.type):
        counts = pc.cast(values, pa.int64())
        return cast(pc.cast(counts, pa.timestamp(number_unit or unit)), kind)
    if is_number(values.type):
        if number_unit is None:
            message = f"argument 1 cannot be {values.type}"
            raise pa.ArrowInvalid(message)
        return _of_seconds(values, unit)
    if t.is_timestamp(values.type) and values.type.tz:  # the moment as a clock in UTC shows it
        values = pc.cast(values, pa.timestamp(values.type.unit, "UTC"))
    return cast(values, kind)


def _of_seconds(values: Datum, unit: str) -> Datum:
    """Return the times of seconds with a fraction; what is too far away is at the limit."""
    per = _PER_SECOND[unit]
    least, most = -(1 << 63), (1 << 63) - 1

    def count(seconds: float) -> int:
        return 0 if seconds != seconds else max(min(int(seconds * per), most), least)  # noqa: PLR0124

    floats = pc.cast(values, pa.float64())
    limited = pc.if_else(pc.is_inf(floats), pc.multiply(pc.sign(floats), 1e12), floats)
    return pc.cast(by_row(count, pa.int64())(limited), pa.timestamp(unit))


def _with_zone(kind: pa.DataType, unit: str) -> pa.DataType:
    return pa.timestamp(unit, kind.tz) if t.is_timestamp(kind) else pa.timestamp(unit)


def _to_unixtime(values: Datum) -> Datum:
    """Return the seconds since 1970."""
    if is_number(values.type):
        return pc.cast(values, pa.int64(), safe=False)
    return pc.cast(cast(values, _with_zone(values.type, "s")), pa.int64())


def _from_unixtime(values: Datum, zone: Datum | None = None) -> Datum:
    check_types([values], [t.is_integer])
    times = pc.cast(pc.cast(values, pa.int64()), pa.timestamp("s"))
    return times if zone is None else pc.cast(times, pa.timestamp("s", str(zone.as_py())))


def _to_local_time(values: Datum) -> Datum:
    """Return the wall clock's time, without a zone."""
    check_types([values], [t.is_timestamp])
    return pc.local_timestamp(values) if values.type.tz else values


def _to_date(values: Datum) -> Datum:
    if t.is_integer(values.type):
        return pc.cast(pc.cast(values, pa.int32()), pa.date32())
    check_types([values], [lambda kind: is_text(kind) or t.is_temporal(kind)])
    return cast(values, pa.date32())


def _now() -> Datum:
    """Return the time in UTC, without a zone, as the reference does."""
    return pa.scalar(datetime.now(UTC).replace(tzinfo=None), pa.timestamp("ns"))


def _today() -> Datum:
    return pa.scalar(datetime.now(UTC).date(), pa.date32())


def _day_number(year: int, month: int, day: int) -> int:
    """Return the days from 1970 on; years may be any, as in the reference."""
    era = 400  # years, after which weekdays and leap years come again
    eras, inside = divmod(year, era)
    if abs(year) > 262_142:
        message = f"the year {year} is too far away"
        raise pa.ArrowInvalid(message)
    days = date(inside + era, month, day).toordinal() - date(1970, 1, 1).toordinal()
    return days + (eras - 1) * 146_097


def _make_date(year: Datum, month: Datum, day: Datum) -> Datum:
    whole = by_row(_day_number, pa.int32(), t.is_integer)(year, month, day)
    return pc.cast(whole, pa.date32())


def _converting(unit: str, number_unit: str | None = None) -> Entry:
    return partial(_to_timestamp, unit=unit, number_unit=number_unit), 1, 1


_CHAR: Entry = (to_char, 2, 2)
_PART: Entry = (_part, 2, 2)
_TRUNCATED: Entry = (_truncated, 2, 2)
_NOW: Final = Function(_now, 0, 0, is_constant=False)
_TODAY: Final = Function(_today, 0, 0, is_constant=False)

TIMES: Final[Mapping[str, Entry | Function]] = {
    "date_part": _PART,
    "datepart": _PART,
    "date_trunc": _TRUNCATED,
    "datetrunc": _TRUNCATED,
    "date_bin": (date_bin, 2, 3),
    "to_char": _CHAR,
    "date_format": _CHAR,
    "to_timestamp": _converting("ns", "s"),
    "to_timestamp_seconds": _converting("s"),
    "to_timestamp_millis": _converting("ms"),
    "to_timestamp_micros": _converting("us"),
    "to_timestamp_nanos": _converting("ns"),
    "to_unixtime": (_to_unixtime, 1, 1),
    "from_unixtime": (_from_unixtime, 1, 2),
    "to_local_time": (_to_local_time, 1, 1),
    "to_date": (_to_date, 1, 1),
    "now": _NOW,
    "current_timestamp": _NOW,
    "current_date": _TODAY,
    "today": _TODAY,
    "make_date": (_make_date, 3, 3),
}
