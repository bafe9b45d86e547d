"""Times that choose a version, as users say them, and the time zone that they mean."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Final

from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE: Final = "spark.sql.session.timeZone"
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")


def parse_moment(text: str) -> datetime:
    """Return a time that is given as text; raises ArgumentError for text that is none."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError as error:
        message = f"option asof is an ISO time such as 2026-01-31T12:00:00, not {text!r}"
        raise ArgumentError(message) from error


def moment_in(spark: SparkSession, given: str | datetime | None) -> datetime | None:
    """Return a time that may be given as text, which means the session's time zone if it says none.

    A ``datetime`` stays as it is.  Raises ArgumentError for text that is no time, and for a zone that Python lacks.
    """
    return parse_in_session(spark, given) if isinstance(given, str) else given


def parse_in_session(spark: SparkSession, text: str) -> datetime:
    """Return a time that is given as text; see `moment_in`."""
    moment = parse_moment(text)
    if moment.tzinfo is not None:
        return moment
    return moment.replace(tzinfo=_zone(str(spark.conf.get(_ZONE))))


def _zone(name: str) -> tzinfo:
    """Return a time zone by Spark's name for it: Asia/Tokyo, Z, +09:00, GMT+9."""
    found = _OFFSET.fullmatch(name)
    if found is not None:
        sign, hours, minutes, seconds = found.groups(default="0")
        offset = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(-offset if sign == "-" else offset)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # saves zoneinfo, which few workers need

    try:
        return UTC if name == "Z" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        message = f"Python has no time zone {name!r} ({_ZONE}); say the time with one: 2026-01-31T12:00:00+00:00"
        raise ArgumentError(message) from error
