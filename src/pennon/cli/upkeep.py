"""``pennon compact`` and ``pennon clean``: keeping a table in shape."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from pennon.cli.arguments import as_json, branch, parse_pairs, quiet, storage_option, uri
from pennon.cli.show import print_table, say, say_json
from pennon.cli.writing import open_to_write, watched
from pennon.display.cells import size

if TYPE_CHECKING:
    from pennon.dataset.cleanup import CleanupExplanation, CleanupStats

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SHOWN_FILES = 20
_LISTED_FILES = 100_000


class _Age(click.ParamType):  # type: ignore[type-arg] # generic in the stubs only
    """Text like ``14d`` or ``12h``, as a timedelta."""

    name = "age"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """Parse the text."""
        found = re.fullmatch(r"(\d+)([smhdw])", str(value))
        if found is None:
            self.fail(f"{value!r} must be an age like 30m, 12h or 14d", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.command
@uri
@click.option(
    "--target-rows", type=click.IntRange(1), help="Rows of a full fragment; 1,048,576 if not given."
)
@click.option(
    "--deleted",
    type=click.FloatRange(0),
    help="The share of deleted rows that alone makes a fragment worth it; 0.1 if not given.",
)
@click.option("--threads", type=click.IntRange(1), help="Fragments rewritten at once.")
@branch
@as_json
@storage_option
@quiet
def compact(
    uri: str,
    target_rows: int | None,
    deleted: float | None,
    threads: int | None,
    branch: str | None,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Rewrite small fragments, and those with deleted rows, into full ones.

    Makes one new version of the table.  Older versions, and their files, stay: see `clean`.
    """
    started = time.monotonic()
    table = open_to_write(uri, branch, parse_pairs(storage_option))
    with watched(quiet):
        metrics = table.optimize.compact_files(
            target_rows_per_fragment=target_rows,
            materialize_deletions_threshold=deleted,
            num_threads=threads,
        )
    if as_json:
        found = {"table": uri, "branch": table.branch, "version": table.version}
        say_json({**found, **asdict(metrics)})
        return
    if quiet:
        return
    if not metrics.fragments_removed:
        say(f"{uri}: nothing to compact")
        return
    seconds = time.monotonic() - started
    say(
        f"{uri}: version {table.version} has {metrics.fragments_added} fragments in the place of "
        f"{metrics.fragments_removed}, {seconds:.1f} s"
    )


@click.command
@uri
@click.option(
    "--older-than",
    type=_Age(),
    metavar="AGE",
    help="Versions of that age, e.g. 12h or 30d; 14d if neither this nor --retain is given.",
)
@click.option("--retain", type=click.IntRange(1), metavar="N", help="Keep the last N versions.")
@click.option("--delete", is_flag=True, help="Do it.  Without this, only tell what would go.")
@click.option(
    "--unverified",
    is_flag=True,
    help="Orphans go at once, not after 7 days.  Only while nobody writes to the table.",
)
@as_json
@storage_option
@quiet
def clean(
    uri: str,
    older_than: timedelta | None,
    retain: int | None,
    delete: bool,
    unverified: bool,
    as_json: bool,
    storage_option: Sequence[str],
    quiet: bool,
) -> None:
    """Delete old versions, the files that only they needed, and orphans.

    What a tag names or a branch left stays.  Nothing is deleted unless --delete is given.
    """
    table = open_to_write(uri, None, parse_pairs(storage_option))
    if delete:
        with watched(quiet):
            stats = table.cleanup_old_versions(
                older_than, retain, delete_unverified=unverified, error_if_tagged_old_versions=False
            )
        if as_json:
            say_json({"table": uri, "deleted": True, **asdict(stats), "files": None})
        elif not quiet:
            say(f"{uri}: deleted {_describe(stats)}")
        return
    explained = table.explain_cleanup_old_versions(
        older_than,
        retain,
        delete_unverified=unverified,
        error_if_tagged_old_versions=False,
        include_files=True,
        max_files=_LISTED_FILES if as_json else _SHOWN_FILES,
    )
    if as_json:
        files = [
            {"path": each.path, "kind": each.kind, "size_bytes": each.size_bytes}
            for each in explained.candidate_files
        ]
        say_json({"table": uri, "deleted": False, **asdict(explained.stats), "files": files})
        return
    say(f"{uri}: would delete {_describe(explained.stats)}; --delete does it")
    if not quiet:
        _show(explained)


def _show(explained: CleanupExplanation) -> None:
    files = explained.candidate_files
    if files:
        rows = ((each.path, each.kind, size(each.size_bytes)) for each in files)
        print_table(("file", "kind", "size"), rows, (2,))
    if explained.candidate_files_truncated:
        say(f"... these are the first {len(files)}")


def _describe(stats: CleanupStats) -> str:
    files = (
        stats.data_files_removed
        + stats.deletion_files_removed
        + stats.index_files_removed
        + stats.transaction_files_removed
    )
    text = f"{stats.old_versions} versions, {files} files, {size(stats.bytes_removed)}"
    return text if not stats.failed_deletes else f"{text}; {stats.failed_deletes} deletes failed"
