"""The options of ``.option(...)``, parsed once, with messages that list the existing ones.

Keys that start with ``storage.`` are handed to the object store without the prefix, for example
``.option("storage.aws_region", "eu-west-1")``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pennon.errors import ArgumentError, UnsupportedError
from pennon.spark.moments import parse_moment

STORAGE_PREFIX = "storage."
READ_KEYS = (
    "path",
    "version",
    "versionasof",
    "tag",
    "branch",
    "asof",
    "timestampasof",
    "columns",
    "batch_size",
    "with_row_id",
    "with_row_address",
    "max_partition_bytes",
    "push_filters",
    "readChangeFeed",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
)
WRITE_KEYS = (
    "path",
    "fixed_size_list",
    "max_rows_per_file",
    "max_bytes_per_file",
    "data_storage_version",
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "overwrite_by",
    "enable_stable_row_ids",
)
NO_CATALOG_TABLES = (
    "this is a table of Spark's catalog, or there is no path: Spark tells a source in Python the path of a "
    "catalog table neither to read nor to write it.  Use CREATE TEMPORARY VIEW name USING lance OPTIONS "
    "(path '...'), pennon.spark.view(spark, uri, name), .load(uri) or .save(uri); DROP TABLE takes a "
    "table out of the catalog that CREATE TABLE or saveAsTable put there"
)
"""Whatever Spark does with such a table it calls the source without options, but to infer a schema."""
DEFAULT_PARTITION_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of ``spark.read.format("lance")``; ``columns`` None means all."""

    uri: str
    version: int | str | None = None
    asof: datetime | None = None
    branch: str | None = None
    columns: tuple[str, ...] | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    max_partition_bytes: int = DEFAULT_PARTITION_BYTES
    push_filters: bool = False
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    changes: ChangeRange | None = None
    """The versions of a change feed; None: rows are read."""


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The versions whose changes a feed has, both ends among them: by number or by time; no end is the newest."""

    first: int | datetime
    last: int | datetime | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of ``df.write.format("lance")``; None leaves the choice to the writer."""

    uri: str
    fixed_size_lists: Mapping[str, int] = field(default_factory=dict)
    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    data_storage_version: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    merge_schema: bool = False
    overwrite_schema: bool = False
    where: str | None = None
    overwrite_by: tuple[str, ...] = ()
    stable_row_ids: bool = False
    case_sensitive: bool = False
    """``spark.sql.caseSensitive``, which the data source cannot ask."""


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises ArgumentError for an unknown key or a value that makes no sense.

    Keys of both directions pass: a temporary view hands the same options to SELECT and INSERT.
    """
    given = _known(options)
    columns = given.get("columns")
    return ReadOptions(
        uri=_path(given),
        version=_version(given),
        asof=_moment(given),
        branch=given.get("branch"),
        columns=None if columns is None else tuple(_split(columns)),
        batch_size=_positive(given, "batch_size"),
        with_row_id=_flag(given, "with_row_id"),
        with_row_address=_flag(given, "with_row_address"),
        max_partition_bytes=_positive(given, "max_partition_bytes") or DEFAULT_PARTITION_BYTES,
        push_filters=_flag(given, "push_filters"),
        storage_options=_storage_options(options),
        changes=_changes(given),
    )


def _changes(given: Mapping[str, str]) -> ChangeRange | None:
    """Return the versions of the change feed that options ask for; Delta has the same options."""
    first = _version_or_moment(given, "starting")
    last = _version_or_moment(given, "ending")
    if not _flag(given, "readchangefeed"):
        if first is not None or last is not None:
            message = (
                "startingVersion, endingVersion and their timestamps are for readChangeFeed=true"
            )
            raise ArgumentError(message)
        return None
    if first is None:
        message = (
            "readChangeFeed needs startingVersion or startingTimestamp; version 1 is the first one"
        )
        raise ArgumentError(message)
    pins = sorted({"version", "versionasof", "tag", "asof", "timestampasof"} & given.keys())
    if pins:
        message = f"a change feed ends at endingVersion or endingTimestamp, not at {pins[0]}"
        raise ArgumentError(message)
    return ChangeRange(first, last)


def _version_or_moment(given: Mapping[str, str], which: str) -> int | datetime | None:
    keys = f"{which}version", f"{which}timestamp"
    key, text = _one_of(given, keys)
    if text is None:
        return None
    return _positive(given, key) if key == keys[0] else _moment_of(key, text)


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises ArgumentError for an unknown key or a value that makes no sense."""
    given = _known(options)
    return WriteOptions(
        uri=_path(given),
        fixed_size_lists=parse_fixed_size_lists(given.get("fixed_size_list", "")),
        max_rows_per_file=_positive(given, "max_rows_per_file"),
        max_bytes_per_file=_positive(given, "max_bytes_per_file"),
        data_storage_version=given.get("data_storage_version"),
        storage_options=_storage_options(options),
        merge_schema=_flag(given, "mergeschema"),
        overwrite_schema=_flag(given, "overwriteschema"),
        where=given.get("replacewhere"),
        overwrite_by=tuple(_split(given.get("overwrite_by", ""))),
        stable_row_ids=_flag(given, "enable_stable_row_ids"),
    )


def parse_fixed_size_lists(text: str) -> dict[str, int]:
    """``"embedding:768, b.c:3"`` -> ``{"embedding": 768, "b.c": 3}``."""
    sizes = {}
    for part in _split(text):
        name, _, size = part.rpartition(":")
        if not name or not size.strip().isdecimal() or int(size) == 0:
            message = f"fixed_size_list wants 'column:dimension, ...', not {part!r}"
            raise ArgumentError(message)
        sizes[name.strip()] = int(size)
    return sizes


def _known(options: Mapping[str, str]) -> dict[str, str]:
    given = {k.lower(): v for k, v in options.items() if not k.lower().startswith(STORAGE_PREFIX)}
    if not given or "provider" in given:
        raise UnsupportedError(NO_CATALOG_TABLES)
    unknown = sorted(set(given) - {key.lower() for key in (*READ_KEYS, *WRITE_KEYS)})
    if "partitionoverwritemode" in unknown:
        message = (
            "partitionOverwriteMode: a Lance table has no partitions; name the columns whose values "
            "the new rows replace: option overwrite_by"
        )
        raise ArgumentError(message)
    if unknown:
        keys = ", ".join([*READ_KEYS, *WRITE_KEYS[1:], "storage.*"])
        message = f"unknown option {', '.join(unknown)}; there are {keys}"
        raise ArgumentError(message)
    return given


def _storage_options(options: Mapping[str, str]) -> dict[str, str]:
    size = len(STORAGE_PREFIX)
    return {k[size:]: v for k, v in options.items() if k.lower().startswith(STORAGE_PREFIX)}


def _path(given: Mapping[str, str]) -> str:
    path = given.get("path")
    if not path:
        message = "no path: use .load(uri), .save(uri) or OPTIONS (path '...')"
        raise ArgumentError(message)
    return path


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _flag(given: Mapping[str, str], key: str) -> bool:
    text = given.get(key, "false").strip().lower()
    if text not in ("true", "false"):
        message = f"option {key} is true or false, not {text!r}"
        raise ArgumentError(message)
    return text == "true"


def _positive(given: Mapping[str, str], key: str) -> int | None:
    text = given.get(key)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        message = f"option {key} is a positive whole number, not {text!r}"
        raise ArgumentError(message)
    return int(text)


def _version(given: Mapping[str, str]) -> int | str | None:
    """Return a version's number, or the name of its tag."""
    key, text = _one_of(given, ("version", "versionasof", "tag"))
    if key == "tag" or (text is not None and not text.strip().isdecimal()):
        return text
    return _positive(given, key)


def _moment(given: Mapping[str, str]) -> datetime | None:
    key, text = _one_of(given, ("asof", "timestampasof"))
    return None if text is None else _moment_of(key, text)


def _moment_of(key: str, text: str) -> datetime:
    moment = parse_moment(text)
    if moment.tzinfo is None:
        message = (
            f"option {key}: {text!r} has no time zone, and a data source cannot ask the session for its own; say "
            "one, as in 2026-01-31T12:00:00+00:00, or use pennon.spark.read(spark, uri, asof=...), which takes "
            "the session's"
        )
        raise ArgumentError(message)
    return moment


def _one_of(given: Mapping[str, str], keys: Sequence[str]) -> tuple[str, str | None]:
    """Return the option that is given of those that mean the same, and its value."""
    found = [key for key in keys if key in given]
    if len(found) > 1:
        message = f"give one of the options {', '.join(found)}, which name the same thing"
        raise ArgumentError(message)
    return (found[0], given[found[0]]) if found else (keys[0], None)
