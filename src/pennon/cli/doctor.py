"""``pennon doctor``: what is damaged, wrong or worth a change in a table; and one version without it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import pennon
from pennon.cli.arguments import at, parse_pairs, storage_option, uri
from pennon.cli.at import is_number, open_at
from pennon.cli.show import say, say_all, say_json
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pennon.doctor import Repair, Report


@click.command
@uri
@at
@click.option(
    "--deep", is_flag=True, help="Decode every page of every column, and all of the indices."
)
@click.option(
    "--repair", is_flag=True, help="Tell what a version without what is broken would lose."
)
@click.option("--apply", "do_apply", is_flag=True, help="With --repair: make that version.")
@click.option(
    "--restore-deleted",
    is_flag=True,
    help="With --repair: where a deletion file is lost, keep the rows; deleted ones come back.",
)
@click.option(
    "--drop-lost",
    is_flag=True,
    help="With --repair: where values are lost, take the rows away instead of setting the column to NULL.",
)
@click.option(
    "--trust", multiple=True, metavar="PLACE", help="Read files there, outside of the table."
)
@click.option("--threads", type=click.IntRange(1), help="Fragments looked at side by side.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@storage_option
def doctor(
    uri: str,
    at: str | None,
    deep: bool,
    repair: bool,
    do_apply: bool,
    restore_deleted: bool,
    drop_lost: bool,
    trust: Sequence[str],
    threads: int | None,
    as_json: bool,
    storage_option: Sequence[str],
) -> None:
    """Examine a table, and everything around it; exit code 3 if something is broken.

    Nothing is written or deleted, except by --repair --apply, which makes one new version.
    """
    engine = pennon.doctor  # imported when it is first named
    stores, places = parse_pairs(storage_option) or None, list(trust) or None
    if do_apply and not repair:
        message = "--apply goes with --repair"
        raise ArgumentError(message)
    if repair and at is not None:
        message = "--repair goes without --at: it looks at the newest version"
        raise ArgumentError(message)
    if not repair:
        report = engine.examine(
            *_place(uri, at, stores),
            deep=deep,
            storage_options=stores,
            trusted_bases=places,
            threads=threads,
        )
        _show_report(uri, report, as_json=as_json)
        sys.exit(0 if report.count(engine.Severity.ERROR) == 0 else 3)
    plan = engine.repair(
        uri,
        restore_deleted=restore_deleted,
        lost_columns="drop" if drop_lost else "null",
        storage_options=stores,
        trusted_bases=places,
        threads=threads,
    )
    made = plan.apply() if do_apply and plan.steps and plan.why_not is None else None
    _show_repair(uri, plan, made, as_json=as_json)
    sys.exit(0 if plan.why_not is None else 3)


def _place(uri: str, at: str | None, options: dict[str, str] | None) -> tuple[str, int | None]:
    """Return where the version lies that ``--at`` names, and its number; no manifest is read for a number."""
    if at is None or is_number(at):
        return uri, None if at is None else int(at)
    found = open_at(uri, at, options)
    return found.store.uri, int(found.manifest.version)


def _show_report(uri: str, report: Report, *, as_json: bool) -> None:
    if as_json:
        say_json(
            {"table": uri}
            | {name: value for name, value in report.to_dict().items() if name != "uri"}
        )
        return
    say_all(map(str, report))
    say(f"{uri}: {report.summary}")


def _show_repair(uri: str, plan: Repair, made: int | None, *, as_json: bool) -> None:
    if as_json:
        say_json({"table": uri, **plan.to_dict(), "version_made": made})
        return
    say_all(map(str, plan.steps))
    say(f"{uri}: {plan.summary}")
    if made is not None:
        say(f"{uri}: version {made} is without what was broken; older versions stay as they are")
    elif plan.steps:
        say(f"{uri}: nothing was written; --apply makes this version")
