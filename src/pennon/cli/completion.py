"""``pennon completion``: the script that lets a shell complete commands, tables, columns and versions."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pennon.cli.show import write_text


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what a shell needs to complete names.

    For bash, into a file that the shell reads: pennon completion bash > ~/.pennon-complete.sh
    """
    made = get_completion_class(shell)
    if made is not None:
        write_text(
            made(context.find_root().command, {}, "pennon", "_PENNON_COMPLETE").source() + "\n"
        )
