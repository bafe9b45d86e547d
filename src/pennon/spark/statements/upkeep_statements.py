"""Statements that keep tables in shape: OPTIMIZE, VACUUM, RESTORE."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from pennon.errors import ArgumentError
from pennon.ops.cleanup.file_kinds import Kind
from pennon.ops.cleanup.policy import Policy
from pennon.ops.cleanup.run import Removed, clean, preview
from pennon.spark.statements.commands import Changed, Command, text_frame
from pennon.spark.statements.tables import open_place, read_target, read_version
from pennon.spark.statements.words import Cursor, Statement
from pennon.table.versions import list_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pennon.scan.snapshot import Snapshot

_MILLIS: Final = ("before_timestamp_millis", "older_than_millis")
_NOT_HERE: Final = ("num_threads", "batch_size", "defer_index_remap", "max_source_fragments")
"""Options of lance-spark's OPTIMIZE that say how its threads work; here Spark's tasks do."""


def optimize(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``OPTIMIZE table [WHERE condition] [ZORDER BY (columns)] [WITH (options)]``."""
    cursor = Cursor(statement)
    cursor.needs("OPTIMIZE")
    cursor.takes("TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.takes("FULL")
    where = (
        changed.expression(cursor.until("ZORDER", "SORT", "WITH"))
        if cursor.takes("WHERE")
        else None
    )
    by = cursor.takes_any("ZORDER", "SORT")
    columns: list[str] = []
    if by:
        cursor.needs("BY")
        columns = cursor.names() if cursor.peek() == "(" else _listed(cursor)
    options = _options(cursor.properties()) if cursor.takes("WITH") else {}
    cursor.ends()

    def run() -> DataFrame:
        builder = changed.table.optimize()
        builder = builder if where is None else builder.where(where)
        if not by:
            return builder.executeCompaction(**options)
        chosen = [name.replace("`", "") for name in columns]
        run_by = builder.executeZOrderBy if by == "ZORDER" else builder.executeSortBy
        return run_by(*chosen, **options)

    how = f"{by} BY {columns}" if by else "executeCompaction"
    return changed.command("OPTIMIZE", f"{how}, where {where!r}, {options}", run)


def _listed(cursor: Cursor) -> list[str]:
    found = [".".join(cursor.name().parts)]
    while cursor.takes(","):
        found.append(".".join(cursor.name().parts))
    return found


def _options(given: Mapping[str, str]) -> dict[str, Any]:
    """Return options with numbers and truth values; those that only concern threads are left out."""
    found: dict[str, Any] = {}
    for key, text in given.items():
        name = key.lower()
        if name in _NOT_HERE:
            continue
        lower = text.lower()
        if lower in ("true", "false"):
            found[name] = lower == "true"
        else:
            found[name] = float(text) if "." in text else int(text) if text.isdecimal() else text
    return found


def vacuum(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``VACUUM table [RETAIN 168 HOURS] [DRY RUN] [WITH (before_version = 3, ...)]``."""
    cursor = Cursor(statement)
    cursor.needs("VACUUM")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.takes_any("FULL", "LITE")
    hours: float | None = None
    is_dry = False
    options: dict[str, Any] = {}
    while not cursor.is_done:
        if cursor.takes("RETAIN"):
            hours = _hours(cursor)
        elif cursor.takes("DRY", "RUN"):
            is_dry = True
        elif cursor.takes("WITH"):
            options = _options(cursor.properties())
        else:
            raise cursor.wrong("RETAIN n HOURS, DRY RUN or WITH (options)")
    asked = Vacuum(hours, options, is_dry=is_dry)
    return changed.command("VACUUM", asked.detail, lambda: _run_vacuum(changed, asked))


@dataclass(frozen=True, slots=True)
class Vacuum:
    """A VACUUM: how old versions are that stay, lance-spark's options, and whether nothing is deleted."""

    hours: float | None
    options: Mapping[str, Any]
    is_dry: bool

    @property
    def detail(self) -> str:
        """Return what is done, for ``explain=True``."""
        if self.options:
            return f"clean({dict(self.options)})"
        return f"vacuum({'' if self.hours is None else self.hours})" + (
            ", nothing is deleted" if self.is_dry else ""
        )

    def policy(self, snapshot: Snapshot) -> Policy:
        """Return which versions are old.  Raises ArgumentError for an option that is none."""
        known = {"before_version", *_MILLIS, "delete_unverified", "error_if_tagged_old_versions"}
        unknown = sorted(set(self.options) - known)
        if unknown:
            message = (
                f"VACUUM has no option {', '.join(unknown)}; it has {', '.join(sorted(known))}"
            )
            raise ArgumentError(message)
        age = None if self.hours is None else timedelta(hours=self.hours)
        for key in _MILLIS:
            if key in self.options:
                age = timedelta(milliseconds=max(time.time() * 1000 - float(self.options[key]), 0))
        versions = None
        if "before_version" in self.options:
            least = int(self.options["before_version"])
            versions = [
                each.version for each in list_versions(snapshot.store) if each.version < least
            ]
        if age is None and versions is None:
            age = timedelta(hours=168)
        return Policy.of(
            age,
            None,
            versions,
            delete_unverified=bool(self.options.get("delete_unverified", False)),
            error_if_tagged=bool(self.options.get("error_if_tagged_old_versions", False)),
        )


def _hours(cursor: Cursor) -> float:
    word = None if cursor.is_done else cursor.words[cursor.at]
    if word is None or not word.is_number:
        raise cursor.wrong("a number of hours")
    cursor.at += 1
    cursor.takes_any("HOURS", "HOUR")
    try:
        return float(word.text)
    except ValueError:
        raise cursor.wrong("a number of hours") from None


def _run_vacuum(changed: Changed, asked: Vacuum) -> DataFrame:
    table, spark = changed.table, changed.spark
    if asked.is_dry:
        plan, _ = preview(table.snapshot(), asked.policy(table.snapshot()))
        rows = [(each.info.path,) for each in (*plan.manifests, *plan.files)]
        return text_frame(spark, ["path"], rows)
    if not asked.options:
        return table.vacuum(asked.hours)
    removed: Removed = clean(table.snapshot(), asked.policy(table.snapshot()))
    row = [(removed.size_bytes, removed.count(Kind.MANIFEST))]
    return spark.createDataFrame(row, "bytes_removed bigint, old_versions bigint")


def restore(spark: SparkSession, statement: Statement) -> Command | None:
    """Read ``RESTORE [TABLE] table TO VERSION AS OF 3 | TIMESTAMP AS OF '2026-01-31'``."""
    cursor = Cursor(statement)
    cursor.needs("RESTORE")
    cursor.takes("TABLE")
    target = read_target(spark, cursor)
    if target is None:
        return None
    changed = Changed(spark, statement, target)
    cursor.needs("TO")
    choice = read_version(spark, cursor)
    if choice is None:
        raise cursor.wrong("VERSION AS OF, or TIMESTAMP AS OF")
    cursor.ends()

    def run() -> DataFrame:
        old = open_place(target.place, choice)
        return changed.table.restoreToVersion(int(old.manifest.version))

    return changed.command("RESTORE", f"restore to {choice}", run)
