"""Times as text by a pattern, and times cut to a stride."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from pennon.expr.cast import Datum, cast
from pennon.expr.intervals import nanoseconds_of
from pennon.expr.rowwise import as_arrays, by_row, check_types, count_of, is_null, nulls_like
from pennon.expr.types import is_text

# --- text -----------------------------------------------------------------------------------------


def to_char(values: Datum, pattern: Datum) -> Datum:
    """Write times by a pattern: ``%Y-%m-%d %H:%M:%S%.f`` and the like."""
    check_types([values, pattern], [lambda kind: t.is_date(kind) or t.is_timestamp(kind), is_text])
    if is_null(pattern) or is_null(values):
        return nulls_like([values], pa.string())
    if isinstance(pattern, pa.Array):
        message = "the pattern must be a literal"
        raise pa.ArrowInvalid(message)
    times = cast(values, pa.timestamp("s")) if t.is_date(values.type) else values
    whole = cast(pc.floor_temporal(times, unit="second"), pa.timestamp("s", times.type.tz))
    parts = _parts(pattern.as_py())

    def write(moment: datetime, nanos: int) -> str:
        return "".join(_shown(part, moment, nanos) for part in parts)

    return by_row(write, pa.string())(whole, _nanos_of_second(times))


def _nanos_of_second(times: Datum) -> Datum:
    millis, micros = pc.millisecond(times), pc.microsecond(times)
    fine = pc.add(pc.multiply(micros, 1_000), pc.nanosecond(times))
    return pc.add(pc.multiply(millis, 1_000_000), fine)


def _parts(pattern: str) -> list[str]:
    found = re.findall(r"%[-_0]?[A-Za-z%+]|%\.?\d?f|%:?z|[^%]+|%", pattern)
    for part in found:
        if part.startswith("%") and part not in _WAYS and part[1:] not in _STRFTIME:
            message = f"{part!r} is no part of a pattern for times"
            raise pa.ArrowInvalid(message)
    return found


_STRFTIME: Final = frozenset(
    [
        "Y",
        "y",
        "m",
        "b",
        "B",
        "h",
        "d",
        "a",
        "A",
        "j",
        "H",
        "I",
        "M",
        "S",
        "p",
        "U",
        "W",
        "u",
        "w",
        "V",
        "G",
        "g",
        "C",
        "%",
        "D",
        "F",
        "T",
        "R",
    ]
)
_WAYS: Final[dict[str, str]] = {
    "%e": "{0.day:>2}",
    "%k": "{0.hour:>2}",
    "%l": "",
    "%c": "{0:%a %b} {0.day:>2} {0:%H:%M:%S %Y}",
    "%x": "{0:%m/%d/%y}",
    "%f": "{1:09}",
    "%P": "",
    "%Z": "",
    "%z": "",
    "%:z": "",
    "%s": "",
    "%-d": "{0.day}",
    "%-m": "{0.month}",
    "%-H": "{0.hour}",
    **dict.fromkeys(("%3f", "%6f", "%9f", "%.3f", "%.6f", "%.9f"), ""),
}


def _shown(part: str, moment: datetime, nanos: int) -> str:
    if not part.startswith("%"):
        return part
    way = _WAYS.get(part)
    if way is None:
        return moment.strftime(part.replace("%h", "%b"))
    if way:
        return way.format(moment, nanos)
    return _other(part, moment, nanos)


def _other(part: str, moment: datetime, nanos: int) -> str:
    if part.endswith("f"):
        point = "." if "." in part else ""
        return point + f"{nanos:09}"[: int(part[-2])]
    if part == "%l":
        return f"{(moment.hour - 1) % 12 + 1:>2}"
    if part == "%P":
        return moment.strftime("%p").lower()
    if part == "%s":
        return str(int(moment.timestamp()))
    offset = _offset(moment)
    if (part == "%Z" and moment.tzinfo is None) or offset is None:
        message = f"{part!r} is for times with a zone"
        raise pa.ArrowInvalid(message)
    return offset.replace(":", "") if part == "%z" else offset


def _offset(moment: datetime) -> str | None:
    distance = moment.utcoffset()
    if distance is None:
        return None
    minutes = distance // timedelta(minutes=1)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


# --- strides --------------------------------------------------------------------------------------


def date_bin(stride: Datum, values: Datum, origin: Datum | None = None) -> Datum:
    """Cut times to multiples of a stride, counted from ``origin`` (1970)."""
    check_types([values], [lambda kind: t.is_date(kind) or t.is_timestamp(kind)])
    if isinstance(stride, pa.Array) or isinstance(origin, pa.Array):
        message = "the stride and the origin must be literals"
        raise pa.ArrowInvalid(message)
    unit = values.type.unit if t.is_timestamp(values.type) else "ns"
    zone = values.type.tz if t.is_timestamp(values.type) else None
    kind = pa.timestamp("ns" if is_text(stride.type) else unit, zone)
    if is_null(stride) or is_null(values):
        return nulls_like([values], kind)
    first = 0 if origin is None else _nanos(origin)
    (times,) = as_arrays([cast(values, pa.timestamp("ns", zone))])
    counts = np.asarray(pc.fill_null(pc.cast(times, pa.int64()), 0))
    months, step = _stride(stride)
    cut = _cut_months(counts, months, first) if months else _cut(counts, step, first)
    found = pa.array(cut, pa.int64(), mask=np.asarray(pc.is_null(times)))
    cast_back = cast(pc.cast(found, pa.timestamp("ns", zone)), kind)
    return cast_back if count_of([values]) is not None else cast_back[0]


def _nanos(moment: pa.Scalar) -> int:
    zone = moment.type.tz if t.is_timestamp(moment.type) else None
    return int(pc.cast(cast(moment, pa.timestamp("ns", zone)), pa.int64()).as_py())


def _stride(stride: pa.Scalar) -> tuple[int, int]:
    """Return the months, or the nanoseconds, of a stride."""
    if is_text(stride.type):
        months, nanos = nanoseconds_of(stride.as_py())
    elif t.is_duration(stride.type):
        months, nanos = 0, int(pc.cast(cast(stride, pa.duration("ns")), pa.int64()).as_py())
    else:
        message = f"a stride cannot be {stride.type}"
        raise pa.ArrowInvalid(message)
    if (months > 0) == (nanos > 0) or months < 0 or nanos < 0:
        message = "a stride is a number of months, or of days and less"
        raise pa.ArrowInvalid(message)
    return months, nanos


def _cut(counts: Any, step: int, first: int) -> Any:
    return first + (counts - first) // step * step


def _cut_months(counts: Any, months: int, first: int) -> Any:
    if first:
        message = "strides of months begin in 1970"
        raise pa.ArrowInvalid(message)
    month = counts.astype("M8[ns]").astype("M8[M]").astype(np.int64)
    return (month // months * months).astype("M8[M]").astype("M8[ns]").astype(np.int64)
