"""Times that choose a version: text without a zone is in the session's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from pennon.errors import ArgumentError
from pennon.spark.moments import moment_in

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def session(zone: str) -> Any:
    """The doors that know a time zone."""
    settings = {"spark.sql.session.timeZone": zone}
    return SimpleNamespace(conf=SimpleNamespace(get=settings.__getitem__))


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("Asia/Tokyo", 9),
        ("+09:00", 9),
        ("GMT-3", -3),
        ("UTC+05:30", 5.5),
        ("-0130", -1.5),
    ],
)
def test_timestamp_text_without_zone_uses_the_session_zone(zone: str, hours: float) -> None:
    here = (NOON + timedelta(hours=hours)).replace(tzinfo=None)
    assert moment_in(session(zone), f" {here.isoformat(' ')} ") == NOON


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31 21:00:00+09:00"])
def test_timestamp_text_with_zone_ignores_the_session_zone(text: str) -> None:
    assert moment_in(session("America/New_York"), text) == NOON


def test_datetimes_and_none_are_unchanged() -> None:
    naive = datetime(2026, 1, 31, 12)
    assert moment_in(session("Asia/Tokyo"), naive) is naive
    assert moment_in(session("Asia/Tokyo"), None) is None


def test_unknown_zone_and_invalid_timestamp_text_are_refused() -> None:
    with pytest.raises(ArgumentError, match="no time zone 'Moon/Far'"):
        moment_in(session("Moon/Far"), "2026-01-31")
    with pytest.raises(ArgumentError, match="ISO time"):
        moment_in(session("UTC"), "yesterday")
