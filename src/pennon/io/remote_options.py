"""``storage_options``: the keys that pylance takes, and what becomes of them.

pylance hands its options to the Rust crate object_store, and so does obstore.  Keys are the same
with and without the prefix of their cloud (``aws_region``, ``region``), in any case.  A few keys
are Lance's own.  Environment variables (``AWS_ACCESS_KEY_ID``, ...) are read by obstore.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import timedelta

from pennon.core.fast_dataclass import dataclass
from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError
from pennon.io.retry_reads import Patience

_RENAMED = {"google_storage_token": "google_bearer_token"}
_NOT_NEEDED = frozenset(
    {
        *("expires_at_millis", "use_opendal", "dynamodb_endpoint", "download_retry_count"),
        "durability",  # of local folders
    }
)
_COMMON = (
    *("endpoint", "region", "allow_http", "timeout", "connect_timeout", "skip_signature"),
    *("access_key_id", "secret_access_key", "client_max_retries", "client_retry_timeout"),
    *(
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "aws_endpoint",
        "aws_region",
    ),
    *(
        "aws_virtual_hosted_style_request",
        "azure_storage_account_name",
        "azure_storage_account_key",
    ),
    *("azure_storage_sas_token", "azure_storage_endpoint", "google_service_account"),
)
"""Options that users spell most; one that is near one of them is told so."""
_NOT_SECRET = frozenset({"true", "false", "disabled", "etag"})
_SECRET_LENGTH = 8


@dataclass(frozen=True, slots=True)
class RemoteOptions:
    """Storage options sorted by their consumers; ``repr`` shows none of them."""

    config: dict[str, str] = field(default_factory=dict, repr=False)
    max_retries: int = 10
    retry_timeout_s: int = 180

    @property
    def retry_config(self) -> dict[str, object]:
        """Return what obstore calls by this name."""
        return {
            "max_retries": self.max_retries,
            "retry_timeout": timedelta(seconds=self.retry_timeout_s),
        }

    @property
    def patience(self) -> Patience:
        """Return the same for what Pennon asks for again itself."""
        return Patience(self.max_retries, self.retry_timeout_s)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return the values that no message may show: all that are long enough to be one."""
        long = (v for v in self.config.values() if len(v) >= _SECRET_LENGTH)
        return tuple(v for v in long if v.lower() not in _NOT_SECRET and "://" not in v)


def parse_options(options: Mapping[str, str], knows: Callable[[str, str], bool]) -> RemoteOptions:
    """Sort storage options; ``knows(key, value)`` tells whether obstore takes a key.

    A key that nobody knows is left out, as pylance does, but with a warning.  Raises ArgumentError
    if a number is none.
    """
    lowered = {key.lower(): str(value) for key, value in options.items()}
    config = {}
    for key, value in lowered.items():
        name = _RENAMED.get(key, key)
        if name in _NOT_NEEDED or name in {"client_max_retries", "client_retry_timeout"}:
            continue
        if knows(name, value):
            config[name] = value
        else:
            hint = did_you_mean(key, _COMMON)
            warnings.warn(f"storage option {key!r} is not known and not used{hint}", stacklevel=2)
    return RemoteOptions(
        config,
        _number(lowered, "client_max_retries", 10),
        _number(lowered, "client_retry_timeout", 180),
    )


def _number(options: Mapping[str, str], key: str, default: int) -> int:
    try:
        return int(options.get(key, default))
    except ValueError:
        message = f"storage option {key!r} must be a whole number"
        raise ArgumentError(message) from None
