"""The files of tags and branches: JSON, in camel case as Lance writes it, read in either form."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Final

from pennon.core.fast_dataclass import dataclass
from pennon.errors import FormatError

_SNAKE = re.compile(r"_([a-z])")
KEEPS_LATER: Final = ("pennon.keeps", "later versions")
"""The metadata of a tag that keeps its version, and all later ones, from clean-ups: a reader has still to come there."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for a version.  ``branch`` is None for the main line."""

    branch: str | None
    version: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    manifest_size: int = 0
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps_later(self) -> bool:
        """Return whether it keeps all later versions, too."""
        key, value = KEEPS_LATER
        return self.metadata.get(key) == value


@dataclass(frozen=True, slots=True)
class Branch:
    """A line of versions that left its parent after ``parent_version``.

    ``identifier`` names, from the main line on, each version that was left and the branch made
    there, so that a branch that is dropped and made again is another.  ``created_at`` is in seconds
    since 1970.
    """

    parent_branch: str | None
    parent_version: int
    created_at: int
    manifest_size: int = 0
    identifier: tuple[tuple[int, str], ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


def parse_tag(data: bytes) -> Tag:
    """Return the tag in a file; raises FormatError."""
    found = _Found(data)
    return Tag(
        branch=found.text_or_none("branch"),
        version=found.number("version"),
        created_at=found.time("createdAt"),
        updated_at=found.time("updatedAt"),
        manifest_size=found.number("manifestSize", 0),
        metadata=found.texts("metadata"),
    )


def serialize_tag(tag: Tag) -> bytes:
    """Return the bytes of a tag's file."""
    return _serialize(
        {
            "branch": tag.branch,
            "version": tag.version,
            "createdAt": _iso(tag.created_at),
            "updatedAt": _iso(tag.updated_at),
            "manifestSize": tag.manifest_size,
            "metadata": dict(tag.metadata),
        }
    )


def parse_branch(data: bytes) -> Branch:
    """Return the branch in a file; raises FormatError."""
    found = _Found(data)
    return Branch(
        parent_branch=found.text_or_none("parentBranch"),
        parent_version=found.number("parentVersion"),
        created_at=found.number("createAt", 0),
        manifest_size=found.number("manifestSize", 0),
        identifier=found.identifier(),
        metadata=found.texts("metadata"),
    )


def serialize_branch(branch: Branch) -> bytes:
    """Return the bytes of a branch's file."""
    return _serialize(
        {
            "parentBranch": branch.parent_branch,
            "identifier": {"version_mapping": [list(each) for each in branch.identifier]},
            "parentVersion": branch.parent_version,
            "createAt": branch.created_at,
            "manifestSize": branch.manifest_size,
            "metadata": dict(branch.metadata),
        }
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The JSON object of a file, asked for one key after the other."""

    values: Mapping[str, Any]

    def __init__(self, data: bytes) -> None:
        try:
            values = json.loads(data)
        except (ValueError, RecursionError) as error:
            message = f"the {len(data)} bytes of a tag or branch file are not JSON"
            raise FormatError(message) from error
        if not isinstance(values, dict):
            message = f"a ref is a JSON object, not a {type(values).__name__}"
            raise FormatError(message)
        camel = {_SNAKE.sub(lambda m: m.group(1).upper(), key): values[key] for key in values}
        object.__setattr__(self, "values", camel)

    def number(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
            raise self._wrong(key, "a number")
        return value

    def text_or_none(self, key: str) -> str | None:
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def texts(self, key: str) -> dict[str, str]:
        value = self.values.get(key) or {}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise self._wrong(key, "an object of texts")
        return value

    def time(self, key: str) -> datetime | None:
        value = self.text_or_none(key)
        if value is None:
            return None
        try:
            # Lance writes nanoseconds; a datetime holds microseconds
            moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", value))
        except ValueError:
            raise self._wrong(key, "a time") from None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def identifier(self) -> tuple[tuple[int, str], ...]:
        """Return the versions and ids that lead to a branch; old files have none."""
        value = self.values.get("identifier") or {}
        pairs = value.get("version_mapping", []) if isinstance(value, dict) else None
        if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
            raise self._wrong("identifier", "a list of versions and ids")
        return tuple((version, identity) for version, identity in pairs)

    def _wrong(self, key: str, kind: str) -> FormatError:
        message = f"{key} of a ref is {kind}, not {str(self.values.get(key))[:100]!r}"
        return FormatError(message)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], int)
        and isinstance(value[1], str)
    )


def _iso(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _serialize(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=2, ensure_ascii=False).encode()
