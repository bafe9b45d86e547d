"""Fetch limits by kind of store."""

from __future__ import annotations

import pytest

from pennon.io import open_store
from pennon.io.limits import EXPRESS, OBJECT_STORE, THREADS_VARIABLE, WEB_SERVER


@pytest.mark.parametrize(
    ("uri", "limits"),
    [
        ("s3://bucket/t", OBJECT_STORE),
        ("gs://bucket/t", OBJECT_STORE),
        ("az://container/t", OBJECT_STORE),
        ("s3://bucket--use1-az4--x-s3/t", EXPRESS),
        ("gs://bucket--x-s3/t", OBJECT_STORE),
        ("https://host/t", WEB_SERVER),
        ("http://host/t", WEB_SERVER),
    ],
)
def test_fetch_limits_by_kind_of_store(uri: str, limits: object) -> None:
    assert open_store(uri).limits == limits


def test_local_and_memory_stores_have_no_limits(tmp_path: object) -> None:
    assert open_store(str(tmp_path)).limits is None
    assert open_store("memory://").limits is None


@pytest.mark.parametrize(("value", "expected"), [("7", 7), ("1", 1), ("0", 8), ("-3", 8), ("x", 8)])
def test_fetch_concurrency_of_the_environment_variable(
    value: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, value)
    store = open_store("http://host/t")
    assert store.limits is not None
    assert store.limits.concurrency == expected
    assert store.limits.gap_bytes == WEB_SERVER.gap_bytes
