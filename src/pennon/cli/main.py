"""``pennon``: commands that make tables and files, look at them, and keep them in shape.

A command's module is imported when it runs, so that ``--help`` answers at once.  Exit codes: 0 when all is
done, 1 for an error, which is one line on stderr, 2 if the command line itself is wrong, 130 for Ctrl-C.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final, NamedTuple

import click

from pennon.cli.arguments import HELP
from pennon.cli.show import say
from pennon.errors import LanceError

INTERRUPTED: Final = 130


class Place(NamedTuple):
    """The place of a command: a module of this package, its name there, and its line in the list of commands."""

    module: str
    name: str
    help: str


COMMANDS: Final = {
    "ingest": Place("ingest", "ingest", "Write files as a Lance table."),
    "export": Place(
        "export", "export", "Write rows to a local FILE: CSV, JSON, JSON lines, Arrow or Parquet."
    ),
    "info": Place("table", "info", "Show what a table holds: rows, fragments, files, schema."),
    "schema": Place(
        "table", "schema", "Show the columns of a table, those in structs and lists too."
    ),
    "count": Place("rows", "count", "Count rows."),
    "head": Place("head", "head", "Show the first rows of a table."),
    "tail": Place(
        "rows", "tail", "Show the last rows of a table, in its order or that of --order-by."
    ),
    "sample": Place(
        "rows",
        "sample",
        "Show rows chosen at random, none twice; in the table's order unless --order-by is given.",
    ),
    "search": Place(
        "search", "search", "Find rows by a text, by the nearest vectors, or both, best first."
    ),
    "stats": Place(
        "column_stats",
        "stats",
        "Show the bytes of each column; with --values also NULLs, least and greatest values.",
    ),
    "fragments": Place("table", "fragments", "List the fragments of a table, with their files."),
    "versions": Place(
        "table", "versions", "List the versions of a table; those of a branch with --at BRANCH."
    ),
    "history": Place(
        "history",
        "history",
        "List what made each version of a table, the newest first; of a branch with --at BRANCH.",
    ),
    "diff": Place("diff", "diff", "Count the rows in which two versions differ, by key columns."),
    "restore": Place(
        "refs", "restore", "Make an older version the newest again, as a new version."
    ),
    "tags": Place(
        "refs",
        "tags",
        "List, create, move and delete tags: names of versions, which clean-up keeps.",
    ),
    "branches": Place("refs", "branches", "List, create and delete branches."),
    "view": Place(
        "view",
        "view",
        "Look at a table in a browser: rows with images and vectors, layout, versions.",
    ),
    "index": Place("index", "index", "List, create, drop and optimize indices."),
    "blob": Place(
        "blob", "blob", "Save the bytes of one cell to a file: of a blob, a binary value or a text."
    ),
    "compact": Place(
        "upkeep", "compact", "Rewrite small fragments, and those with deleted rows, into full ones."
    ),
    "clean": Place(
        "upkeep", "clean", "Delete old versions, the files that only they needed, and orphans."
    ),
    "doctor": Place(
        "doctor",
        "doctor",
        "Examine a table, and everything around it; exit code 3 if something is broken.",
    ),
    "verify": Place(
        "verify",
        "verify",
        "Compare what Pennon and pylance read of a table; exit code 3 if a column differs.",
    ),
    "convert": Place("convert", "convert", "Rewrite a table's data files in another file version."),
    "inspect": Place("inspect", "inspect", "Explain a data file of version 0.1 to 2.2."),
    "completion": Place("completion", "completion", "Print what a shell needs to complete names."),
}


class _Commands(click.Group):
    """The commands of `COMMANDS`, each imported when it is first used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the order of the list."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        found: click.Command = getattr(import_module(f"pennon.cli.{place.module}"), place.name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in COMMANDS.items()])


@click.group(cls=_Commands, context_settings=HELP)
@click.version_option(package_name="pennon", message="%(version)s", help="Show the version.")
def app() -> None:
    """Make Lance tables and files, and look at them.

    Wherever a TABLE is asked for, a path will do, or s3://, gs://, az://, ...
    """


def main() -> None:
    """Run the command line; the entry point of the ``pennon`` script."""
    try:
        code = app(prog_name="pennon", standalone_mode=False)
    except click.ClickException as error:
        place = getattr(getattr(error, "ctx", None), "command_path", "pennon")
        say(f"{place}: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        say("pennon: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except (LanceError, OSError, ValueError, ImportError, NotImplementedError) as error:
        fail(error)
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.", "pyarrow.")):
            raise
        fail(error)
    sys.exit(code if isinstance(code, int) else 0)


def fail(error: Exception) -> None:
    """Print an error as one line, and end with exit code 1."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    say(f"pennon: {lines[0] if lines else type(error).__name__}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
