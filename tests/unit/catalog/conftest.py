"""A server that speaks S3, for catalogs in a bucket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.io.s3_server import S3Server, serving_s3


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        yield server
