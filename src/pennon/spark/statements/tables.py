"""From the name of a table in a statement to the table: the place, the version, the handle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from pennon.errors import ArgumentError, NotFoundError
from pennon.ops.versions.branches import branches_of
from pennon.ops.versions.refs import tags_of
from pennon.spark.moments import moment_in
from pennon.spark.source.scan_task import open_snapshot
from pennon.spark.statements.session import Place, check_known, find_place
from pennon.spark.statements.words import Cursor, Name
from pennon.spark.table.lance_table import LanceTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot

_NUMBERED: Final = re.compile(r"[vV]?(\d+)")
_IN_REF: Final = frozenset(("-", ".", "/"))
_MICROS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """The version that a statement asks for: a number, a time, or a tag or branch (``ref``); none of them: the newest."""

    number: int | None = None
    moment: datetime | None = None
    ref: str | None = None

    def __str__(self) -> str:
        if self.number is not None:
            return f"version {self.number}"
        if self.moment is not None:
            return f"version of {self.moment.isoformat()}"
        return "newest version" if self.ref is None else f"@{self.ref}"


NEWEST: Final = VersionChoice()


def open_place(place: Place, choice: VersionChoice = NEWEST) -> Snapshot:
    """Open a version of a table.  Raises NotFoundError if there is none."""
    uri, options = place.entry.location, place.entry.storage_options
    ref = choice.ref if choice.ref is not None else place.ref
    if choice.number is not None or choice.moment is not None:
        branch = None if place.ref is None else place.ref
        return open_snapshot(uri, options, choice.number, choice.moment, branch)
    if ref is None:
        return open_snapshot(uri, options, place.pin)
    return _open_ref(place, ref)


def _open_ref(place: Place, ref: str) -> Snapshot:
    uri, options = place.entry.location, place.entry.storage_options
    newest = open_snapshot(uri, options)
    if ref in tags_of(newest):
        return open_snapshot(uri, options, ref)
    if ref == "main" or ref in branches_of(newest):
        return open_snapshot(uri, options, branch=ref)
    numbered = _NUMBERED.fullmatch(ref)
    if numbered is None:
        message = f"table {place.title} has no tag and no branch {ref!r}"
        raise NotFoundError(message)
    return open_snapshot(uri, options, int(numbered.group(1)))


def table_at(spark: SparkSession, place: Place) -> LanceTable:
    """Return a table that a statement changes, on its branch if there is one in its name.

    Raises ArgumentError for a tag, which never changes.
    """
    table = LanceTable.forPath(spark, place.entry.location, place.entry.storage_options)
    if place.ref is None:
        return table
    if place.ref in tags_of(table.snapshot()):
        message = f"{place.title}@{place.ref}: a tag names one version, which never changes; name a branch"
        raise ArgumentError(message)
    return table.branches.checkout(place.ref)


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a statement is about: its name there, and where it is."""

    name: Name
    place: Place
    alias: str | None = None

    @property
    def shown(self) -> str:
        """Return the name that conditions may use for the table."""
        return self.name.parts[-1] if self.alias is None else self.alias


def read_target(spark: SparkSession, cursor: Cursor) -> Target | None:
    """Read the name of a table, and ``@branch`` behind it; None if it is none of Lance."""
    name = cursor.name()
    ref = read_ref(cursor)
    place = find_place(spark, name)
    if place is None:
        check_known(spark, name)
        return None
    if ref is not None:
        place = Place(place.title, place.entry, place.attached, ref)
    return Target(name, place)


def read_ref(cursor: Cursor) -> str | None:
    """Read ``@name``, a tag, branch or version behind a table's name; None if there is none."""
    if cursor.peek() != "@":
        return None
    cursor.at += 1
    if cursor.is_done:
        raise cursor.wrong("a tag or a branch")
    word = cursor.words[cursor.at]
    if word.is_quoted or word.is_text:
        cursor.at += 1
        return word.text
    found = ""
    end = word.start
    while not cursor.is_done:
        word = cursor.words[cursor.at]
        if word.start != end or not (word.is_name or word.is_number or word.text in _IN_REF):
            break
        found += cursor.statement.text[word.start : word.end]
        end = word.end
        cursor.at += 1
    if not found:
        raise cursor.wrong("a tag or a branch")
    return found


def read_version(spark: SparkSession, cursor: Cursor) -> VersionChoice | None:
    """Read ``VERSION AS OF 3`` or ``TIMESTAMP AS OF '2026-01-31'``; None if there is none."""
    start = cursor.at
    cursor.takes("FOR")
    kind = cursor.takes_any("VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME")
    if not kind or not cursor.takes("AS", "OF"):
        cursor.at = start
        return None
    if kind.endswith("VERSION"):
        return read_version_value(cursor)
    return VersionChoice(moment=_read_moment(spark, cursor))


def read_version_value(cursor: Cursor) -> VersionChoice:
    """Read the number of a version, or a tag or a branch in quotes."""
    word = None if cursor.is_done else cursor.words[cursor.at]
    if word is not None and word.is_text:
        text = cursor.text_literal()
        return VersionChoice(int(text)) if text.isdecimal() else VersionChoice(ref=text)
    if word is not None and word.is_name and not word.is_number:
        return VersionChoice(ref=cursor.identifier())
    return VersionChoice(cursor.number())


def _read_moment(spark: SparkSession, cursor: Cursor) -> datetime:
    """Read a time: a text, microseconds since 1970, or an expression of Spark in parentheses or a call."""
    word = None if cursor.is_done else cursor.words[cursor.at]
    if word is None:
        raise cursor.wrong("a time")
    if word.is_text:
        text = cursor.text_literal()
        if not _MICROS.fullmatch(text):
            found = moment_in(spark, text)
            if found is None:
                raise cursor.wrong("a time")
            return found
        return _moment_of(spark, text)
    first = cursor.at
    if word.is_number:
        cursor.at += 1
    elif cursor.peek() in ("TIMESTAMP", "DATE") and cursor.peek(1) == "":
        cursor.at += 2
    else:
        cursor.name_if_any()
        if cursor.peek() == "(":
            cursor.group()
    expression = cursor.statement.slice(first, cursor.at)
    if not expression:
        raise cursor.wrong("a time")
    return _moment_of(spark, expression)


def _moment_of(spark: SparkSession, expression: str) -> datetime:
    """Return the time that an expression of Spark is; a whole number is microseconds since 1970."""
    number = (
        expression if expression.isdecimal() else f"unix_micros(CAST({expression} AS TIMESTAMP))"
    )
    row = spark.sql(f"SELECT {number}").first()
    if row is None or row[0] is None:
        message = f"{expression} is no time"
        raise ArgumentError(message)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(row[0]))
