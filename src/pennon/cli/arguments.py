"""Arguments that several commands take, and the forms in which a user writes them."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from pennon.errors import ArgumentError

Uri: TypeAlias = Annotated[str, typer.Argument(help="The table: a path, s3://, gs://, az://, ...")]
TableVersion: TypeAlias = Annotated[
    int | None, typer.Option("--at", help="The version to look at; the newest if not given.")
]
StorageOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--storage-option", "-s", metavar="KEY=VALUE", help="Given to the object store."),
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]


def parse_pairs(pairs: list[str] | None) -> dict[str, str]:
    """Return ``KEY=VALUE`` words as a dict.  Raises ArgumentError for a word without ``=``."""
    found = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            message = f"{pair!r} is not KEY=VALUE"
            raise ArgumentError(message)
        found[key] = value
    return found


def parse_names(names: str | None) -> list[str] | None:
    """Return ``a,b.c`` as a list of names, None as None."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
