"""From storage options to a DynamoDB client, which is botocore's.

botocore is an extra (``pennon[dynamodb]``), and this module is imported with the first call: who opens
a table elsewhere does not load it.  It finds credentials
where the AWS tools have them, unless the storage options hold some.  docs/decisions/014 says why not
something smaller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError, StoreError
from pennon.io.remote_errors import masked
from pennon.io.remote_options import RemoteOptions

_ATTEMPTS = 6
_TIMEOUT_SECONDS = 20
_NAMES = {
    "aws_access_key_id": ("access_key_id", "aws_access_key_id"),
    "aws_secret_access_key": ("secret_access_key", "aws_secret_access_key"),
    "aws_session_token": ("session_token", "aws_session_token", "token", "aws_token"),
    "region_name": ("region", "aws_region", "default_region", "aws_default_region"),
}


class DynamoError(StoreError):
    """A refusal or a failure of DynamoDB; ``code`` is its name for that, or botocore's."""

    code = ""


@dataclass(frozen=True, slots=True)
class DynamoClient:
    """A client of botocore's whose errors show nothing secret."""

    client: Any = field(repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def ask(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        """Return the answer; raises DynamoError, to which botocore's is not chained."""
        try:
            answer: Mapping[str, Any] = getattr(self.client, verb)(**arguments)
        except (BotoCoreError, ClientError) as error:
            failure = DynamoError(f"DynamoDB: {masked(str(error), self.secrets)}")
            failure.code = _code_of(error)
        else:
            return answer
        raise failure


def connect(endpoint: str | None, options: tuple[tuple[str, str], ...]) -> DynamoClient:
    """Return this process's client; no request is made.

    Raises ArgumentError if botocore makes no client of the options.
    """
    return _connect(endpoint, options, os.getpid())


@lru_cache(maxsize=16)
def _connect(
    endpoint: str | None,
    options: tuple[tuple[str, str], ...],
    process: int,  # noqa: ARG001 - sockets do not survive a fork: a child has clients of its own
) -> DynamoClient:
    secrets = RemoteOptions(dict(options)).secrets
    try:
        return DynamoClient(_build(endpoint, options), secrets)
    except (BotoCoreError, ValueError) as error:
        message = f"cannot make a DynamoDB client: {masked(str(error), secrets)}"
    raise ArgumentError(message)


def _build(endpoint: str | None, options: tuple[tuple[str, str], ...]) -> Any:
    config = Config(
        retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
        connect_timeout=_TIMEOUT_SECONDS,
        read_timeout=_TIMEOUT_SECONDS,
    )
    known = _known(options)
    session = Session()
    if endpoint is not None and session.get_config_variable("region") is None:
        known = {"region_name": "us-east-1", **known}
    return session.create_client("dynamodb", endpoint_url=endpoint, config=config, **known)


def _known(options: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the options that botocore takes, by its names."""
    lowered = {key.lower(): value for key, value in options}
    found = {}
    for name, keys in _NAMES.items():
        value = next((lowered[key] for key in keys if lowered.get(key)), None)
        if value is not None:
            found[name] = value
    return found


def _code_of(error: Any) -> str:
    """Return DynamoDB's name for an error; botocore's where there was no answer."""
    answer = getattr(error, "response", None) or {}
    return str(answer.get("Error", {}).get("Code", type(error).__name__))
