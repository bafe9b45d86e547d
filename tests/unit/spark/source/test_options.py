"""Options of the data source."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pennon.errors import ArgumentError, UnsupportedError
from pennon.spark.source.options import (
    parse_fixed_size_lists,
    parse_read_options,
    parse_write_options,
)
from pennon.spark.table.functions import guess_format


def test_read_option_names_ignore_case() -> None:
    options = parse_read_options(
        {
            "path": "/t",
            "Version": "3",
            "columns": "a, b.c",
            "WITH_ROW_ID": "True",
            "storage.aws_region": "eu-west-1",
        }
    )
    assert (options.uri, options.version, options.columns) == ("/t", 3, ("a", "b.c"))
    assert (options.with_row_id, options.with_row_address) == (True, False)
    assert options.storage_options == {"aws_region": "eu-west-1"}
    moment = parse_read_options({"path": "/t", "asof": "2026-01-31T12:00:00+00:00"}).asof
    assert moment == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "version"),
    [
        ({"versionAsOf": "3"}, 3),
        ({"version": "v1.0"}, "v1.0"),
        ({"tag": "2024"}, "2024"),
        ({"branch": "try/it", "version": "2"}, 2),
        ({}, None),
    ],
)
def test_read_options_accept_versions_tags_and_branches(
    given: dict[str, str], version: object
) -> None:
    options = parse_read_options({"path": "/t", **given})
    assert (options.version, options.branch) == (version, given.get("branch"))


def test_read_option_timestamp_as_of() -> None:
    options = parse_read_options({"path": "/t", "timestampAsOf": "2026-01-31 12:00:00Z"})
    assert options.asof == datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2026-01-31 12:00:00", "2026-01-31"])
@pytest.mark.parametrize("key", ["timestampAsOf", "asof"])
def test_the_data_source_refuses_a_time_without_a_zone(key: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"{key.lower()}.*no time zone.*pennon.spark.read"):
        parse_read_options({"path": "/t", key: text})


@pytest.mark.parametrize("options", [{}, {"path": "file:/t", "provider": "lance", "owner": "me"}])
def test_tables_of_the_catalog_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(UnsupportedError, match=r"catalog.*pennon.spark.view.*DROP TABLE"):
        parse_read_options(options)
    with pytest.raises(UnsupportedError, match="catalog"):
        parse_write_options(options)


def test_write_options_are_parsed() -> None:
    options = parse_write_options({"path": "/t", "max_rows_per_file": "7"})
    assert (options.max_rows_per_file, options.max_bytes_per_file) == (7, None)
    assert (options.merge_schema, options.where, options.overwrite_by) == (False, None, ())
    said = {"mergeSchema": "true", "REPLACEWHERE": "a = 1", "overwrite_by": "a, b"}
    options = parse_write_options({"path": "/t", "enable_stable_row_ids": "true", **said})
    assert (options.merge_schema, options.overwrite_schema) == (True, False)
    assert (options.where, options.overwrite_by) == ("a = 1", ("a", "b"))
    assert options.stable_row_ids
    assert parse_fixed_size_lists("a:3, b.c:4") == {"a": 3, "b.c": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"storage.region": "x", "columns": "a"}, "no path"),
        ({"path": "/t", "verison": "1"}, "unknown option verison; there are path, version"),
        ({"path": "/t", "version": "0"}, "version is a positive whole number"),
        (
            {"path": "/t", "version": "1", "versionAsOf": "1"},
            "one of the options version, versionas",
        ),
        (
            {"path": "/t", "asof": "2026-01-01", "timestampAsOf": "2026-01-01"},
            "asof, timestampasof",
        ),
        ({"path": "/t", "timestampAsOf": "yesterday"}, "an ISO time"),
        ({"path": "/t", "with_row_id": "yes"}, "true or false"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_read_options(options)


@pytest.mark.parametrize("text", ["a", "a:", "a:x", ":3", "a:0"])
def test_a_fixed_size_list_has_a_name_and_a_dimension(text: str) -> None:
    with pytest.raises(ArgumentError, match="column:dimension"):
        parse_fixed_size_lists(text)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", "csv"), ("s3://b/x.json.gz", "json"), ("p.PARQUET", "parquet"), ("d.jsonl", "json")],
)
def test_file_formats_are_guessed_from_file_names(name: str, kind: str) -> None:
    assert guess_format(name) == kind
