"""From a location and its options to an obstore client.

obstore is imported here and nowhere else at module level, and this module is imported only when a
remote store does its first call: ``import pennon`` does not pay for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, TypeAlias

from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

from pennon.errors import ArgumentError
from pennon.io.paths import Location
from pennon.io.remote_errors import masked
from pennon.io.remote_options import RemoteOptions, parse_options

Client: TypeAlias = S3Store | GCSStore | AzureStore | HTTPStore
KIND_OF_SCHEME = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "az": "az",
    "abfs": "az",
    "abfss": "az",
    "http": "http",
    "https": "http",
}


@lru_cache(maxsize=64)
def connect(
    location: Location, options: tuple[tuple[str, str], ...]
) -> tuple[Client, RemoteOptions]:
    """Return the client rooted at ``location``, and its options as they were understood.

    No request is made.  Raises ArgumentError if obstore finds fault with the options.
    """
    parsed = parse_options(dict(options), lambda key, value: _knows(location, key, value))
    try:
        return _build(location, parsed), parsed
    except (BaseError, OSError, ValueError) as error:
        message = f"cannot open a {location.scheme} store: {masked(str(error), parsed.secrets)}"
    raise ArgumentError(message)


def _build(location: Location, options: RemoteOptions) -> Client:
    kind = KIND_OF_SCHEME[location.scheme]
    retry: Any = options.retry_config
    if kind == "http":
        url = f"{location.scheme}://{location.authority}/{location.path}"
        client: Any = {"allow_http": "true", **options.config}
        return HTTPStore(url, client_options=client, retry_config=retry)
    config: Any = dict(options.config)
    prefix = location.path or None
    if kind == "s3":
        return S3Store(location.authority, prefix=prefix, config=config, retry_config=retry)
    if kind == "gs":
        return GCSStore(location.authority, prefix=prefix, config=config, retry_config=retry)
    container, _, account = location.authority.partition("@")
    if account and not {"account_name", "azure_storage_account_name"} & config.keys():
        config["azure_storage_account_name"] = account.partition(".")[0]
    return AzureStore(container, prefix=prefix, config=config, retry_config=retry)


_TAKEN: Final[dict[tuple[str, str], bool]] = {}
"""Whether obstore takes an option, by kind of store and name: to find out, `_is_taken` makes a client."""


def _knows(location: Location, key: str, value: str) -> bool:
    """Tell whether obstore takes an option of this name, be its value good or not."""
    known = KIND_OF_SCHEME[location.scheme], key
    found = _TAKEN.get(known)
    if found is None:
        found = _TAKEN[known] = _is_taken(location, key, value)
    return found


def _is_taken(location: Location, key: str, value: str) -> bool:
    try:
        _build(location, RemoteOptions({key: value}))
    except UnknownConfigurationKeyError:
        return False
    except (BaseError, OSError, ValueError) as error:
        return not str(error).startswith("Invalid key")
    return True
