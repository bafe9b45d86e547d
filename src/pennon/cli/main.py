"""``pennon``: ingest, convert, compact, clean, diff, doctor, info, head, versions, inspect and verify.

Each command imports what it needs when it runs, so that ``--help`` answers at once.  An error is
one line on stderr and exit code 1; how the command line itself was wrong, exit code 2.
"""

from __future__ import annotations

import sys

import click

from pennon.cli.arguments import HELP
from pennon.cli.convert import convert
from pennon.cli.diff import diff
from pennon.cli.doctor import doctor
from pennon.cli.ingest import ingest
from pennon.cli.inspect import inspect
from pennon.cli.show import say
from pennon.cli.table import head, info, versions
from pennon.cli.upkeep import clean, compact
from pennon.cli.verify import verify
from pennon.errors import LanceError


@click.group(context_settings=HELP)
@click.version_option(package_name="pennon", message="%(version)s", help="Show the version.")
def app() -> None:
    """Make Lance tables and files, and look at them.

    Wherever a TABLE is asked for, a path will do, or s3://, gs://, az://, ...
    """


for command in (
    ingest,
    convert,
    compact,
    clean,
    diff,
    doctor,
    info,
    head,
    versions,
    inspect,
    verify,
):
    app.add_command(command)


def main() -> None:
    """Run the command line; the entry point of the ``pennon`` script."""
    try:
        app()
    except (LanceError, OSError, ValueError, ImportError) as error:
        fail(error)
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        fail(error)


def fail(error: Exception) -> None:
    """Print an error as one line, and end with exit code 1."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    say(f"pennon: {lines[0] if lines else type(error).__name__}", err=True)
    sys.exit(1)


if __name__ == "__main__":
    main()
