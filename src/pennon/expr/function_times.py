"""Functions of dates and times.  Parts of a timestamp with a zone are those of its wall clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast

Run = Callable[..., Datum]
Entry = tuple[Run, int, int | None]

_UNITS: Final = frozenset(
    (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    )
)


def _fraction(values: Datum, per_second: int) -> Datum:
    """Return seconds and their fraction, counted in parts of a second."""
    whole = pc.cast(pc.second(values), pa.float64())
    return pc.multiply(pc.add(whole, pc.subsecond(values)), float(per_second))


def _epoch(values: Datum) -> Datum:
    zone = values.type.tz if t.is_timestamp(values.type) else None
    nanos = pc.cast(pc.cast(values, pa.timestamp("us", zone)), pa.int64())
    return pc.divide(pc.cast(nanos, pa.float64()), 1e6)


_PARTS: Final[Mapping[str, Run]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "doy": pc.day_of_year,
    "dow": lambda values: pc.day_of_week(values, week_start=7),
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
    "millisecond": lambda values: _fraction(values, 1_000),
    "microsecond": lambda values: _fraction(values, 1_000_000),
    "nanosecond": lambda values: _fraction(values, 1_000_000_000),
    "epoch": _epoch,
}


def _part(name: Datum, values: Datum) -> Datum:
    run = _PARTS.get(_name(name).removesuffix("s"))
    if run is None:
        message = f"there is no part {_name(name)!r} of a time; the parts are {', '.join(_PARTS)}"
        raise pa.ArrowInvalid(message)
    found = run(values)
    return found if t.is_floating(found.type) else pc.cast(found, pa.int32())


def _truncated(unit: Datum, values: Datum) -> Datum:
    name = _name(unit)
    if name not in _UNITS:
        message = f"times are not cut to {name!r}; the units are {', '.join(sorted(_UNITS))}"
        raise pa.ArrowInvalid(message)
    times = values if t.is_timestamp(values.type) else cast(values, pa.timestamp("us"))
    return pc.floor_temporal(times, unit=name)


def _name(value: Datum) -> str:
    if isinstance(value, pa.Array):
        message = "the name of a part or unit must be a literal"
        raise pa.ArrowInvalid(message)
    return str(value.as_py()).lower()


def _to_timestamp(values: Datum) -> Datum:
    if t.is_integer(values.type):
        return cast(cast(values, pa.timestamp("s")), pa.timestamp("ns"))
    return cast(values, pa.timestamp("ns"))


def _to_date(values: Datum) -> Datum:
    return cast(values, pa.date32())


def _now() -> Datum:
    return pa.scalar(datetime.now(UTC), pa.timestamp("ns", "UTC"))


def _today() -> Datum:
    return pa.scalar(datetime.now(UTC).date(), pa.date32())


def _make_date(year: Datum, month: Datum, day: Datum) -> Datum:
    numbers = [each.as_py() for each in (year, month, day) if isinstance(each, pa.Scalar)]
    if len(numbers) != 3:
        message = "make_date takes literals"
        raise pa.ArrowInvalid(message)
    try:
        return pa.scalar(date(*numbers), pa.date32())
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from error


TIMES: Final[Mapping[str, Entry]] = {
    "date_part": (_part, 2, 2),
    "datepart": (_part, 2, 2),
    "date_trunc": (_truncated, 2, 2),
    "datetrunc": (_truncated, 2, 2),
    "to_timestamp": (_to_timestamp, 1, 1),
    "to_date": (_to_date, 1, 1),
    "now": (_now, 0, 0),
    "current_timestamp": (_now, 0, 0),
    "current_date": (_today, 0, 0),
    "today": (_today, 0, 0),
    "make_date": (_make_date, 3, 3),
}
