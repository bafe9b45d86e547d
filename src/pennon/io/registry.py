"""From a URI to a store."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping

from pennon.io.local import LocalStore
from pennon.io.memory import MemoryStore
from pennon.io.paths import parse_uri
from pennon.io.store import Store


def open_store(
    uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> Store:
    """Return the store whose root is ``uri``; nothing is opened or asked yet.

    Plain paths, ``file://`` and ``memory://`` (without a name: a new store every time, as with
    pylance; its ``uri`` names it); ``s3://``, ``gs://``, ``az://``, ``abfss://`` and
    ``http(s)://`` through obstore, with the ``storage_options`` that pylance takes.

    Raises ArgumentError for an unknown scheme.  An unknown option gives a warning on first use.
    """
    location = parse_uri(uri)
    if location.scheme == "file":
        return LocalStore(location.path, os.fspath(uri))
    if location.scheme == "memory":
        return MemoryStore(location.authority or uuid.uuid4().hex, location.path)
    from pennon.io.remote import open_remote  # noqa: PLC0415 - obstore is loaded when it is needed

    return open_remote(location, os.fspath(uri), storage_options or {})
