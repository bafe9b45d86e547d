"""Where a table is, as a Spark session means it: storage options of Hadoop's settings."""

from __future__ import annotations

import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from pennon.io import open_store
from pennon.spark.table_place import place_of, s3_options

KEYS = {
    "spark.hadoop.fs.s3a.access.key": "id",
    "spark.hadoop.fs.s3a.secret.key": "secret-of-all",
    "spark.hadoop.fs.s3a.session.token": "token",
}
IDENTITY = {
    "aws_access_key_id": "id",
    "aws_secret_access_key": "secret-of-all",
    "aws_session_token": "token",
}


def settings(**more: str) -> dict[str, str]:
    """Return settings of s3a, by their names with _ for a dot."""
    return {f"spark.hadoop.fs.s3a.{key.replace('_', '.')}": value for key, value in more.items()}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        (KEYS, IDENTITY),
        (settings(endpoint_region="eu-west-1"), {"aws_region": "eu-west-1"}),
        (settings(endpoint="https://minio:9000"), {"aws_endpoint": "https://minio:9000"}),
        (
            settings(endpoint="http://minio:9000"),
            {"aws_endpoint": "http://minio:9000", "allow_http": "true"},
        ),
        (settings(endpoint="minio:9000"), {"aws_endpoint": "https://minio:9000"}),
        (
            settings(endpoint="minio:9000", connection_ssl_enabled="false"),
            {"aws_endpoint": "http://minio:9000", "allow_http": "true"},
        ),
        (settings(endpoint="s3.amazonaws.com"), {}),
        (settings(endpoint="https://s3.eu-west-1.amazonaws.com"), {}),
        (settings(path_style_access="true"), {"aws_virtual_hosted_style_request": "false"}),
        (settings(path_style_access="false"), {}),
        (
            settings(
                aws_credentials_provider="org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
            ),
            {"aws_skip_signature": "true"},
        ),
    ],
)
def test_s3a_settings_become_storage_options(
    given: dict[str, str], expected: dict[str, str]
) -> None:
    assert s3_options(given, "bucket", {}) == expected


def test_s3a_settings_of_a_bucket_stand_above_the_others() -> None:
    own = {"spark.hadoop.fs.s3a.bucket.mine.access.key": "my id"}
    assert s3_options(KEYS | own, "mine", {}) == IDENTITY | {"aws_access_key_id": "my id"}
    assert s3_options(KEYS | own, "other", {}) == IDENTITY


@pytest.mark.parametrize(
    "given", [{"aws_access_key_id": "x"}, {"ACCESS_KEY_ID": "x"}, {"token": "x"}]
)
def test_s3a_keys_are_not_mixed_with_keys_of_storage_options(given: dict[str, str]) -> None:
    region = settings(endpoint_region="eu-west-1")
    assert s3_options(KEYS | region, "bucket", given) == {"aws_region": "eu-west-1"}


def test_storage_options_of_the_caller_stand_above_settings() -> None:
    spark: Any = SimpleNamespace(
        conf=SimpleNamespace(getAll=settings(endpoint="http://minio:9000", endpoint_region="a"))
    )
    given = {"aws_region": "b", "endpoint": "http://other"}
    uri = "s3a://bucket/t.lance"
    assert place_of(spark, uri, given) == (uri, given)
    assert place_of(spark, "s3://bucket/t.lance") == (
        "s3://bucket/t.lance",
        {"aws_endpoint": "http://minio:9000", "allow_http": "true", "aws_region": "a"},
    )
    assert place_of(spark, "gs://bucket/t.lance") == ("gs://bucket/t.lance", {})
    assert place_of(spark, "/t.lance", {"a": "b"}) == ("/t.lance", {"a": "b"})


def test_storage_options_of_settings_are_known_to_the_store() -> None:
    every = KEYS | settings(
        endpoint="http://minio:9000", path_style_access="true", endpoint_region="a"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = open_store("s3://bucket/t.lance", s3_options(every, "bucket", {}))
    assert "secret-of-all" not in repr(store)
