"""Compaction options: the caller's, then those of the table's config, then defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pennon.core.near_names import did_you_mean
from pennon.core.units import MIB
from pennon.errors import ArgumentError, UnknownOptionError
from pennon.ops.write import FileLimits
from pennon.schema.version import FileVersion

CONFIG_PREFIX: Final = "lance.compaction."
MODES: Final = ("reencode", "try_binary_copy", "force_binary_copy")
_CONFIGURED: Final = frozenset(
    [
        "target_rows_per_fragment",
        "max_rows_per_group",
        "max_bytes_per_file",
        "materialize_deletions",
        "materialize_deletions_threshold",
        "defer_index_remap",
        "batch_size",
        "compaction_mode",
        "binary_copy_read_batch_bytes",
        "max_source_fragments",
        "max_source_rows",
        "max_source_bytes",
        "data_storage_version",
    ]
)
_AT_LEAST_ONE: Final = [
    "target_rows_per_fragment",
    "max_rows_per_group",
    "max_bytes_per_file",
    "num_threads",
    "batch_size",
    "io_buffer_size",
    "binary_copy_read_batch_bytes",
    "max_source_fragments",
    "max_source_rows",
    "max_source_bytes",
]


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of a compaction; pylance's names and defaults.

    A fragment with fewer physical rows than ``target_rows_per_fragment`` is compacted together with
    its neighbours, one with more than ``materialize_deletions_threshold`` of its rows deleted also
    alone.  ``max_source_*`` bound how much one compaction takes on.  Fragments of
    ``excluded_fragment_ids`` stay as they are.

    Files are always encoded anew: the modes of binary copies are accepted, and give the same rows.
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool = False
    compaction_mode: str | None = None
    binary_copy_read_batch_bytes: int = 16 * MIB
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: tuple[int, ...] = ()
    data_storage_version: str | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                message = f"{name} must be a whole number of at least 1, got {value!r}"
                raise ArgumentError(message)
        if self.compaction_mode not in (None, *MODES):
            message = f"there is no compaction mode {self.compaction_mode!r}; they are {MODES}"
            raise ArgumentError(message)
        if self.data_storage_version is not None:
            FileVersion.parse(self.data_storage_version)

    @classmethod
    def of(cls, given: Mapping[str, Any], config: Mapping[str, str]) -> CompactOptions:
        """Return options: what is given and not None, and for the rest what the config says.

        Raises ArgumentError for a name that is no option, or a value that makes no sense.
        """
        unknown = given.keys() - {field.name for field in fields(cls)}
        if unknown:
            hint = did_you_mean(min(unknown), [field.name for field in fields(cls)])
            message = f"Invalid compaction option: {', '.join(sorted(unknown))}{hint}"
            raise UnknownOptionError(message)
        chosen = _of_config(config)
        chosen.update((name, value) for name, value in given.items() if value is not None)
        chosen["excluded_fragment_ids"] = tuple(chosen.get("excluded_fragment_ids", ()))
        return cls(**chosen)

    @property
    def materializes(self) -> bool:
        """Tell whether deleted rows alone are a reason to rewrite a fragment."""
        return self.materialize_deletions and self.materialize_deletions_threshold < 1

    def limits(self) -> FileLimits:
        """Return the limits of the files; how many rows each gets is decided elsewhere."""
        most = FileLimits()
        return FileLimits(
            max_rows=2**62,
            max_bytes=self.max_bytes_per_file or most.max_bytes,
            max_rows_per_group=self.max_rows_per_group,
        )


def _of_config(config: Mapping[str, str]) -> dict[str, Any]:
    kinds = {field.name: str(field.type) for field in fields(CompactOptions)}
    found = {}
    for key, text in config.items():
        name = key.removeprefix(CONFIG_PREFIX)
        if name == key or name not in _CONFIGURED:
            continue
        parse = _PARSERS[kinds[name].partition(" ")[0]]
        try:
            found[name] = parse(text)
        except ValueError:
            message = f"the table's config has {key} = {text!r}; it must be a {kinds[name]}"
            raise ArgumentError(message) from None
    return found


def _parse_truth(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(text)
    return text.lower() == "true"


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "int": int,
    "float": float,
    "bool": _parse_truth,
    "str": str,
}
