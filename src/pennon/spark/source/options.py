"""The options of ``.option(...)``, parsed once, with messages that list the existing ones.

Keys that start with ``storage.`` are handed to the object store without the prefix, for example
``.option("storage.aws_region", "eu-west-1")``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pennon.core.near_names import did_you_mean
from pennon.errors import ArgumentError, UnknownOptionError, UnsupportedError
from pennon.spark.moments import parse_moment
from pennon.table.transaction import AppVersion

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
    "readChangeData",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "netChanges",
)
STREAM_READ_KEYS = (
    "filter",
    "maxFilesPerTrigger",
    "maxRowsPerTrigger",
    "maxBytesPerTrigger",
    "ignoreDeletes",
    "skipChangeCommits",
    "leaseTag",
)
"""Options of ``readStream`` beside those of ``read``."""
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
    "txnAppId",
    "txnVersion",
)
STREAM_WRITE_KEYS = ("mergeOn", "autoCompact", "checkpointLocation", "queryName")
"""Options of ``writeStream`` beside those of ``write``; Spark hands over the last two."""
ALL_KEYS = (*READ_KEYS, *STREAM_READ_KEYS, *WRITE_KEYS[1:], *STREAM_WRITE_KEYS)
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
    """The versions whose changes a feed has, both ends among them: by number or by time; no end is the newest.

    ``net``: of rows that several versions changed only what came of them.
    """

    first: int | datetime
    last: int | datetime | None = None
    net: bool = False


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
    app: AppVersion | None = None
    """The application and the number of its batch, for a write that is made once however often it is run."""


def parse_read_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises ArgumentError for an unknown key or a value that makes no sense.

    Keys of both directions pass: a temporary view hands the same options to SELECT and INSERT.
    """
    given = known_options(options)
    check_not_of_stream(given, STREAM_READ_KEYS, "readStream")
    return replace(_read_options(given, options), changes=_changes(given))


def parse_shown_options(options: Mapping[str, str]) -> ReadOptions:
    """Return what options say of the table and its columns, of a read or of a stream.

    Of a change feed the versions are left open.  Raises as `parse_read_options`.
    """
    given = known_options(options)
    feed = ChangeRange(1) if asks_for_changes(given) else None
    return replace(_read_options(given, options), changes=feed)


def check_not_of_stream(given: Mapping[str, str], keys: Sequence[str], stream: str) -> None:
    """Raise ArgumentError if an option is given that only streams have."""
    wrong = [key for key in keys if key.lower() in given]
    if wrong:
        message = f"option {wrong[0]} is for {stream}"
        raise ArgumentError(message)


def _read_options(given: Mapping[str, str], options: Mapping[str, str]) -> ReadOptions:
    columns = given.get("columns")
    return ReadOptions(
        uri=_path(given),
        version=_version(given),
        asof=_moment(given),
        branch=given.get("branch"),
        columns=None if columns is None else tuple(split(columns)),
        batch_size=positive(given, "batch_size"),
        with_row_id=flag(given, "with_row_id"),
        with_row_address=flag(given, "with_row_address"),
        max_partition_bytes=positive(given, "max_partition_bytes") or DEFAULT_PARTITION_BYTES,
        push_filters=flag(given, "push_filters"),
        storage_options=_storage_options(options),
    )


def _changes(given: Mapping[str, str]) -> ChangeRange | None:
    """Return the versions of the change feed that options ask for; Delta has the same options."""
    first = _version_or_moment(given, "starting")
    last = _version_or_moment(given, "ending")
    net = flag(given, "netchanges")
    if not asks_for_changes(given):
        if first is not None or last is not None or net:
            message = "startingVersion, endingVersion, their timestamps and netChanges are for readChangeFeed=true"
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
    return ChangeRange(first, last, net)


def _version_or_moment(given: Mapping[str, str], which: str) -> int | datetime | None:
    keys = f"{which}version", f"{which}timestamp"
    key, text = one_of(given, keys)
    if text is None:
        return None
    return positive(given, key) if key == keys[0] else moment_of(key, text)


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Raises ArgumentError for an unknown key or a value that makes no sense."""
    given = known_options(options)
    return WriteOptions(
        uri=_path(given),
        fixed_size_lists=parse_fixed_size_lists(given.get("fixed_size_list", "")),
        max_rows_per_file=positive(given, "max_rows_per_file"),
        max_bytes_per_file=positive(given, "max_bytes_per_file"),
        data_storage_version=given.get("data_storage_version"),
        storage_options=_storage_options(options),
        merge_schema=flag(given, "mergeschema"),
        overwrite_schema=flag(given, "overwriteschema"),
        where=given.get("replacewhere"),
        overwrite_by=tuple(split(given.get("overwrite_by", ""))),
        stable_row_ids=flag(given, "enable_stable_row_ids"),
        app=_app_version(given),
    )


def _app_version(given: Mapping[str, str]) -> AppVersion | None:
    """Return the application and its batch; Delta has the same options."""
    app, version = given.get("txnappid"), given.get("txnversion")
    if app is None and version is None:
        return None
    if app is None or version is None or not version.strip().isdecimal():
        message = (
            "txnAppId and txnVersion, a whole number, go together: they name an application and its batch, which is "
            "written once however often it is run"
        )
        raise ArgumentError(message)
    return AppVersion(app, int(version))


def parse_fixed_size_lists(text: str) -> dict[str, int]:
    """``"embedding:768, b.c:3"`` -> ``{"embedding": 768, "b.c": 3}``."""
    sizes = {}
    for part in split(text):
        name, _, size = part.rpartition(":")
        if not name or not size.strip().isdecimal() or int(size) == 0:
            message = f"fixed_size_list wants 'column:dimension, ...', not {part!r}"
            raise ArgumentError(message)
        sizes[name.strip()] = int(size)
    return sizes


def known_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options by their names in lower case, without those of the store.

    Raises ArgumentError for a name that is no option, UnsupportedError for a table of Spark's catalog.
    """
    given = {k.lower(): v for k, v in options.items() if not k.lower().startswith(STORAGE_PREFIX)}
    if not given or "provider" in given:
        raise UnsupportedError(NO_CATALOG_TABLES)
    unknown = sorted(set(given) - {key.lower() for key in ALL_KEYS})
    if "partitionoverwritemode" in unknown:
        message = (
            "partitionOverwriteMode: a Lance table has no partitions; name the columns whose values "
            "the new rows replace: option overwrite_by"
        )
        raise ArgumentError(message)
    if unknown:
        keys = ", ".join([*ALL_KEYS, "storage.*"])
        hint = did_you_mean(unknown[0], ALL_KEYS)
        message = f"unknown option {', '.join(unknown)}; there are {keys}{hint}"
        raise UnknownOptionError(message)
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


def split(text: str) -> list[str]:
    """Return the parts of a list with commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def asks_for_changes(given: Mapping[str, str]) -> bool:
    """Tell whether a change feed is asked for, by the option's name or its older one in Delta."""
    return flag(given, "readchangefeed") or flag(given, "readchangedata")


def flag(given: Mapping[str, str], key: str) -> bool:
    """Return an option that is true or false; false if it is not given."""
    text = given.get(key, "false").strip().lower()
    if text not in ("true", "false"):
        message = f"option {key} is true or false, not {text!r}"
        raise ArgumentError(message)
    return text == "true"


def positive(given: Mapping[str, str], key: str) -> int | None:
    """Return an option that is a positive whole number; None if it is not given."""
    text = given.get(key)
    if text is None:
        return None
    if not text.strip().isdecimal() or int(text) == 0:
        message = f"option {key} is a positive whole number, not {text!r}"
        raise ArgumentError(message)
    return int(text)


def _version(given: Mapping[str, str]) -> int | str | None:
    """Return a version's number, or the name of its tag."""
    key, text = one_of(given, ("version", "versionasof", "tag"))
    if key == "tag" or (text is not None and not text.strip().isdecimal()):
        return text
    return positive(given, key)


def _moment(given: Mapping[str, str]) -> datetime | None:
    key, text = one_of(given, ("asof", "timestampasof"))
    return None if text is None else moment_of(key, text)


def moment_of(key: str, text: str) -> datetime:
    """Return an option that is a time with its zone."""
    moment = parse_moment(text)
    if moment.tzinfo is None:
        message = (
            f"option {key}: {text!r} has no time zone, and a data source cannot ask the session for its own; say "
            "one, as in 2026-01-31T12:00:00+00:00, or use pennon.spark.read(spark, uri, asof=...), which takes "
            "the session's"
        )
        raise ArgumentError(message)
    return moment


def one_of(given: Mapping[str, str], keys: Sequence[str]) -> tuple[str, str | None]:
    """Return the option that is given of those that mean the same, and its value."""
    found = [key for key in keys if key in given]
    if len(found) > 1:
        message = f"give one of the options {', '.join(found)}, which name the same thing"
        raise ArgumentError(message)
    return (found[0], given[found[0]]) if found else (keys[0], None)
