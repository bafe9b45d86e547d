"""The JSON of compaction plans, tasks and results, which is pylance's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

from pennon.dataset.metadata import FragmentMetadata
from pennon.errors import ArgumentError
from pennon.ops.compact.options import CompactOptions

_MODES: Final = {
    "reencode": "Reencode",
    "try_binary_copy": "TryBinaryCopy",
    "force_binary_copy": "ForceBinaryCopy",
}
_UNUSED_OPTIONS: Final = {
    "index_remap_mode": "Direct",
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "max_overlays_per_fragment": 10,
    "has_eager_remappable_index": None,
}
"""Options of pylance's JSON that mean nothing here."""


def fragment_to_json(fragment: FragmentMetadata) -> dict[str, Any]:
    """Return a fragment; what it does not have is left out."""
    found = fragment.to_json()
    if not found["overlays"]:
        del found["overlays"]
    return {name: value for name, value in found.items() if value is not None}


def parse_fragments(found: list[dict[str, Any]]) -> list[FragmentMetadata]:
    """Return the fragments of a list."""
    return [FragmentMetadata.from_json(json.dumps(each)) for each in found]


def options_to_json(options: CompactOptions) -> dict[str, Any]:
    """Return options, each by its name there."""
    found = asdict(options)
    found["excluded_fragment_ids"] = list(options.excluded_fragment_ids)
    mode = found["compaction_mode"]
    found["compaction_mode"] = None if mode is None else _MODES[mode]
    return {**_UNUSED_OPTIONS, **found}


def parse_options(found: Mapping[str, Any]) -> CompactOptions:
    """Return the options that mean something here; raises ArgumentError for one that makes no sense."""
    known = CompactOptions.__dataclass_fields__
    given = {name: value for name, value in found.items() if name in known}
    names = {theirs: ours for ours, theirs in _MODES.items()}
    if given.get("compaction_mode") is not None:
        given["compaction_mode"] = names.get(given["compaction_mode"], given["compaction_mode"])
    return CompactOptions.of(given, {})


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raise ArgumentError for JSON that is no such thing."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"this text is no {what}: {error}"
        raise ArgumentError(message) from error
