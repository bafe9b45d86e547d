"""From a URI to a store."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from pennon.io.durability import Durability
from pennon.io.local import LocalStore
from pennon.io.memory import MemoryStore
from pennon.io.paths import TRUSTED_BASES, parse_uri
from pennon.io.store import Store

Opener: TypeAlias = Callable[[str, Mapping[str, str]], Store]
"""From a URI and storage options to a store."""

_KIND = re.compile(r"[A-Za-z0-9.\-]+\+([A-Za-z0-9.\-]+):/")
_OPENERS: dict[str, Opener | str] = {
    "ddb": "pennon.table.external.uris:open_dynamodb",
    "sqlite": "pennon.table.external.uris:open_sqlite",
}
"""Who opens ``scheme+kind://``, by kind; a name stands for what is imported when it is needed."""


def register(kind: str, opener: Opener) -> None:
    """Let ``opener`` open all URIs of the form ``scheme+kind://``, in this process.

    So a further manifest store becomes known, for which ``opener`` returns a
    `pennon.table.external.ExternalStore`.
    """
    _OPENERS[kind.lower()] = opener


def open_store(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    trusted: Sequence[str | os.PathLike[str]] | None = None,
) -> Store:
    """Return the store whose root is ``uri``; nothing is opened or asked yet.

    Plain paths, ``file://`` and ``memory://`` (without a name: a new store every time, as with
    pylance; its ``uri`` names it); ``s3://``, ``gs://``, ``az://``, ``abfss://`` and
    ``http(s)://`` through obstore, with the ``storage_options`` that pylance takes;
    ``hf://`` through huggingface_hub (`pennon.io.hub`); and ``s3+ddb://``, ``…+sqlite://`` (`pennon.table.external.uris`).  ``trusted``: the only places that links
    in a local folder may lead to, as `pennon.io.trust` says; the environment's list counts, too.  The option
    ``durability`` counts for local folders (`pennon.io.durability`).

    Raises ArgumentError for an unknown scheme or durability.  An unknown option gives a warning on first use.
    """
    store = _open(os.fspath(uri), storage_options or {})
    if trusted is None and TRUSTED_BASES not in os.environ:
        return store
    from pennon.io.trust import Trust, kept_to  # noqa: PLC0415 - saves what strict readers need

    return kept_to(store, Trust.given(trusted, None))


def _open(uri: str, storage_options: Mapping[str, str]) -> Store:
    opener = _opener_of(uri)
    if opener is not None:
        return opener(uri, storage_options)
    location = parse_uri(uri)
    if location.scheme == "file":
        return LocalStore(location.path, uri, durability=Durability.chosen(storage_options))
    if location.scheme == "memory":
        return MemoryStore(location.authority or uuid.uuid4().hex, location.path)
    if location.scheme == "hf":
        from pennon.io.hub import open_hub  # noqa: PLC0415 - saves huggingface_hub

        return open_hub(uri, storage_options)
    from pennon.io.remote import open_remote  # noqa: PLC0415 - saves obstore

    return open_remote(location, uri, storage_options)


def _opener_of(uri: str) -> Opener | None:
    """Return the opener of a URI whose scheme has a plus; None if there is no plus, or no opener."""
    found = _KIND.match(uri)
    opener = _OPENERS.get(found.group(1).lower()) if found else None
    if isinstance(opener, str):
        module, _, name = opener.partition(":")
        made: Opener = getattr(import_module(module), name)
        return made
    return opener
