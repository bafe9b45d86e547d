"""Arguments that several commands take, and the forms in which a user writes them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from pennon.errors import ArgumentError

HELP = {"help_option_names": ["-h", "--help"]}

uri = click.argument("uri", metavar="TABLE")
at = click.option("--at", type=int, help="The version to look at; the newest if not given.")
storage_option = click.option(
    "--storage-option", "-s", multiple=True, metavar="KEY=VALUE", help="Given to the object store."
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress, no summary.")


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` words as a dict.  Raises ArgumentError for a word without ``=``."""
    found = {}
    for number, pair in enumerate(pairs, 1):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            # the word is not repeated: it may be half a secret
            message = f"word {number} of {len(pairs)} that were given is not KEY=VALUE"
            raise ArgumentError(message)
        found[key] = value
    return found


def parse_names(names: str | None) -> list[str] | None:
    """Return ``a,b.c`` as a list of names, None as None."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
