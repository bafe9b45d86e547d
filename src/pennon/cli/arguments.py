"""Arguments that several commands take, and the forms in which a user writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

from pennon.cli.complete import complete_columns, complete_tables, complete_versions
from pennon.errors import ArgumentError

HELP = {"help_option_names": ["-h", "--help"]}
ROW_FORMATS: Final = ("table", "json", "jsonl", "csv", "arrow", "parquet")

uri = click.argument("uri", metavar="TABLE", shell_complete=complete_tables)
at = click.option(
    "--at",
    metavar="VERSION",
    shell_complete=complete_versions,
    help="A version's number, a tag, a branch (trial, trial:3), or a time; the newest if not given.",
)
branch = click.option(
    "--branch",
    metavar="NAME",
    shell_complete=complete_versions,
    help="The branch to change; the main line if not given.",
)
storage_option = click.option(
    "--storage-option", "-s", multiple=True, metavar="KEY=VALUE", help="Given to the object store."
)
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress, no summary.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
columns = click.option(
    "--columns",
    "-c",
    metavar="NAMES",
    shell_complete=complete_columns,
    help="Only these, e.g. a,b.c; names with commas or quotes in double quotes.",
)
where = click.option("--where", "-w", metavar="SQL", help="Only rows that pass this condition.")
order_by = click.option(
    "--order-by",
    metavar="NAMES",
    shell_complete=complete_columns,
    help='Sort by these columns, e.g. "a, b desc nulls first".',
)
blobs = click.option(
    "--blobs",
    type=click.Choice(["descriptions", "bytes"]),
    default="descriptions",
    show_default=True,
    help="Blob columns as their sizes and places, or with their bytes.",
)
master_help = "local[N], spark://host:port, or sc://host for Connect."

_DIRECTION: Final = re.compile(
    r"(?P<name>.*?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)


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
    """Return ``a,b.c`` as a list of names, None as None.

    A name with a comma stands in double quotes, those within it doubled, as in CSV.
    Raises ArgumentError for a quote that is not closed.

    >>> parse_names('a, b.c,"d,e"')
    ['a', 'b.c', 'd,e']
    """
    return None if names is None else [name for name, _ in split_names(names) if name]


def split_names(names: str) -> list[tuple[str, str]]:
    """Return each name of a list with commas, and the words behind its closing quote.

    >>> split_names('a desc, "b,c" desc')
    [('a desc', ''), ('b,c', 'desc')]
    """
    found: list[tuple[str, str]] = []
    rest = names.strip()
    while rest:
        if rest.startswith('"'):
            quoted = re.match(r'"((?:[^"]|"")*)"([^,]*)(?:,|$)', rest)
            if quoted is None:
                message = f"a double quote is not closed in {names!r}"
                raise ArgumentError(message)
            found.append((quoted[1].replace('""', '"'), quoted[2].strip()))
            rest = rest[quoted.end() :].strip()
        else:
            name, _, rest = rest.partition(",")
            found.append((name.strip(), ""))
            rest = rest.strip()
    return found


def parse_order(text: str | None) -> list[tuple[str, bool, bool]] | None:
    """Return ``a, b desc nulls first`` as (name, is ascending, are NULLs first); None as None.

    >>> parse_order("a, b desc nulls first")
    [('a', True, False), ('b', False, True)]
    """
    if text is None:
        return None
    found = []
    for name, words in split_names(text):
        parsed = _DIRECTION.fullmatch(f"x {words}" if words else name)
        if parsed is None or not name:
            message = f"--order-by {text!r} is not a list such as 'a, b desc nulls first'"
            raise ArgumentError(message)
        column = name if words else parsed["name"]
        if words and parsed["name"] != "x":
            message = (
                f"{words!r} behind {name!r} is no direction: asc, desc, nulls first, nulls last"
            )
            raise ArgumentError(message)
        is_ascending = (parsed["direction"] or "asc").lower() == "asc"
        found.append((column, is_ascending, (parsed["nulls"] or "last").lower() == "first"))
    return found
