"""``pennon view``: a page of this machine to look at a table with, or the page as one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from pennon.cli.arguments import at, storage_option, uri
from pennon.cli.rows import open_table
from pennon.cli.show import say
from pennon.display.cells import size


@click.command
@uri
@at
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the page into this file, and end.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port; a free one if not given."
)
@click.option("--open", "opens", is_flag=True, help="Open the page in a browser, too.")
@storage_option
def view(
    uri: str,
    at: str | None,
    html: Path | None,
    port: int,
    opens: bool,
    storage_option: Sequence[str],
) -> None:
    """Look at a table in a browser: rows with images and vectors, layout, versions.

    A server on 127.0.0.1 shows the page until Ctrl-C ends it; it only reads.
    """
    from pennon.view import run  # saves the server and indices where --help is asked for

    table = open_table(uri, at, storage_option)
    if html is not None:
        say(f"{size(run.write(table, html))} written to {html}")
    else:
        say("Ctrl-C ends the page.", err=True)
        run.serve(table, port, say, opens=opens)
