"""Names of versions, ``pennon tags`` and ``pennon branches``, and ``pennon restore``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from pennon import ops
from pennon.cli.arguments import as_json, at, parse_pairs, quiet, storage_option, uri
from pennon.cli.at import open_at
from pennon.cli.complete import complete_versions
from pennon.cli.show import print_table, say, say_json
from pennon.table.refs.files import Tag

_name = click.argument("name", shell_complete=complete_versions)


@click.group
def tags() -> None:
    """List, create, move and delete tags: names of versions, which clean-up keeps."""


@tags.command("list")
@uri
@as_json
@storage_option
def list_tags(uri: str, as_json: bool, storage_option: Sequence[str]) -> None:
    """List the tags of a table."""
    snapshot = open_at(uri, None, parse_pairs(storage_option))
    found = [_tag(name, tag) for name, tag in sorted(ops.tags_of(snapshot).items())]
    if as_json:
        say_json(found)
        return
    rows = [
        (each["name"], each["branch"] or "main", str(each["version"]), each["created"] or "")
        for each in found
    ]
    print_table(("tag", "branch", "version", "created"), rows, (2,))


@tags.command("create")
@uri
@click.argument("name")
@at
@as_json
@storage_option
@quiet
def create_tag(
    uri: str, name: str, at: str | None, as_json: bool, storage_option: Sequence[str], quiet: bool
) -> None:
    """Name a version, the newest one by default."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    ops.tag_version(snapshot, name, None)
    _tell("created", uri, name, ops.tags_of(snapshot)[name], as_json, quiet)


@tags.command("move")
@uri
@_name
@at
@as_json
@storage_option
@quiet
def move_tag(
    uri: str, name: str, at: str | None, as_json: bool, storage_option: Sequence[str], quiet: bool
) -> None:
    """Give the name to another version, the newest one by default."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    ops.move_tag(snapshot, name, None)
    _tell("moved", uri, name, ops.tags_of(snapshot)[name], as_json, quiet)


@tags.command("delete")
@uri
@_name
@as_json
@storage_option
@quiet
def delete_tag(
    uri: str, name: str, as_json: bool, storage_option: Sequence[str], quiet: bool
) -> None:
    """Take a name away; the version stays until a clean-up."""
    snapshot = open_at(uri, None, parse_pairs(storage_option))
    tag = ops.tags_of(snapshot).get(name)
    ops.drop_tag(snapshot, name)
    _tell("deleted", uri, name, tag, as_json, quiet)


@click.group
def branches() -> None:
    """List, create and delete branches."""


@branches.command("list")
@uri
@as_json
@storage_option
def list_branches(uri: str, as_json: bool, storage_option: Sequence[str]) -> None:
    """List the branches of a table, with the versions that they left."""
    snapshot = open_at(uri, None, parse_pairs(storage_option))
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "parent_branch": branch.parent_branch,
            "parent_version": branch.parent_version,
            "created": _moment(datetime.fromtimestamp(branch.created_at, UTC)),
            "metadata": dict(branch.metadata),
        }
        for name, branch in sorted(ops.branches_of(snapshot).items())
    ]
    if as_json:
        say_json(found)
        return
    rows = [
        (
            each["name"],
            f"{each['parent_branch'] or 'main'}:{each['parent_version']}",
            each["created"],
        )
        for each in found
    ]
    print_table(("branch", "left", "created"), rows, ())


@branches.command("create")
@uri
@click.argument("name")
@at
@as_json
@storage_option
@quiet
def create_branch(
    uri: str, name: str, at: str | None, as_json: bool, storage_option: Sequence[str], quiet: bool
) -> None:
    """Make a branch that leaves at a version, the newest one by default."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    made = ops.make_branch(snapshot, name, None).manifest
    found = {"table": uri, "name": name, "version": made.version, "action": "created"}
    if as_json:
        say_json(found)
    elif not quiet:
        say(f"{uri}: branch {name} begins at version {made.version}; --at {name} reads it")


@branches.command("delete")
@uri
@_name
@as_json
@storage_option
@quiet
def delete_branch(
    uri: str, name: str, as_json: bool, storage_option: Sequence[str], quiet: bool
) -> None:
    """Delete a branch and its own files."""
    snapshot = open_at(uri, None, parse_pairs(storage_option))
    ops.drop_branch(snapshot, name)
    if as_json:
        say_json({"table": uri, "name": name, "version": None, "action": "deleted"})
    elif not quiet:
        say(f"{uri}: branch {name} was deleted")


@click.command
@uri
@click.option(
    "--at",
    required=True,
    metavar="VERSION",
    shell_complete=complete_versions,
    help="The version to restore: a number, a tag, a time; trial:3 is one of a branch, restored there.",
)
@as_json
@storage_option
@quiet
def restore(uri: str, at: str, as_json: bool, storage_option: Sequence[str], quiet: bool) -> None:
    """Make an older version the newest again, as a new version."""
    snapshot = open_at(uri, at, parse_pairs(storage_option))
    old, made = snapshot.manifest, ops.restore(snapshot)
    found = {
        "table": uri,
        "branch": made.branch,
        "version": made.version,
        "restored_version": old.version,
    }
    if as_json:
        say_json(found)
    elif not quiet:
        say(f"{uri}: version {made.version} has the rows of version {old.version}")


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _tag(name: str, tag: Tag) -> dict[str, Any]:
    return {
        "name": name,
        "branch": tag.branch,
        "version": tag.version,
        "created": _moment(tag.created_at),
        "updated": _moment(tag.updated_at),
        "metadata": dict(tag.metadata),
    }


def _tell(action: str, uri: str, name: str, tag: Tag | None, as_json: bool, quiet: bool) -> None:
    version = None if tag is None else tag.version
    branch = None if tag is None else tag.branch
    if as_json:
        found = {"table": uri, "name": name, "branch": branch, "version": version, "action": action}
        say_json(found)
    elif not quiet:
        say(f"{uri}: tag {name} was {action}; version {branch or 'main'}:{version}")
