"""URIs of tables whose commits go through an external manifest store.

::

    s3+ddb://bucket/path?ddbTableName=T             as pylance writes it
    s3+sqlite://bucket/path?sqliteFile=/var/m.db    any scheme may stand before +sqlite
    file+sqlite:///mnt/t.lance?sqliteFile=/var/m.db

What follows the plus says which manifest store, the rest of the URI where the table lies.  A further
store is made known by `pennon.io.registry.register`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from pennon.errors import ArgumentError
from pennon.io.paths import Location, parse_uri
from pennon.io.registry import open_store
from pennon.table.external.dynamodb import DynamoManifests
from pennon.table.external.sqlite import SqliteManifests
from pennon.table.external.store import ExternalStore

_ENDPOINT = "dynamodb_endpoint"


def open_dynamodb(uri: str, options: Mapping[str, str]) -> ExternalStore:
    """Return the store of ``s3+ddb://bucket/path?ddbTableName=T``."""
    place, table = _taken_apart(uri, "ddbTableName")
    location = parse_uri(place)
    if location.scheme != "s3":
        message = f"+ddb goes with s3, as in s3+ddb://bucket/path, not with {location.scheme}"
        raise ArgumentError(message)
    lowered = {key.lower(): str(value) for key, value in options.items()}
    endpoint = lowered.pop(_ENDPOINT, None) or os.environ.get("DYNAMODB_ENDPOINT")
    manifests = DynamoManifests(
        table, location.authority, location.path, endpoint, tuple(sorted(lowered.items()))
    )
    return ExternalStore(open_store(place, options), manifests, uri)


def open_sqlite(uri: str, options: Mapping[str, str]) -> ExternalStore:
    """Return the store of ``{scheme}+sqlite://…?sqliteFile=F``."""
    place, file = _taken_apart(uri, "sqliteFile")
    manifests = SqliteManifests(str(Path(file).resolve()), _key(parse_uri(place)))
    return ExternalStore(open_store(place, options), manifests, uri)


def _key(location: Location) -> str:
    """Return what all URIs of one place have in common."""
    path = os.path.realpath(location.path) if location.scheme == "file" else f"/{location.path}"
    return f"{location.scheme}://{location.authority}{path}"


def _taken_apart(uri: str, name: str) -> tuple[str, str]:
    """Return the URI of the table alone, and the one argument that follows it."""
    head, _, query = uri.partition("?")
    arguments = parse_qsl(query, keep_blank_values=True)
    if [key for key, _ in arguments] != [name] or not arguments[0][1] or urlsplit(uri).fragment:
        message = (
            f"the URI ends in ?{name}=… and has no other argument, as in {head}?{name}=manifests"
        )
        raise ArgumentError(message)
    scheme, _, rest = head.partition("://")
    return f"{scheme.rpartition('+')[0]}://{rest}", arguments[0][1]
