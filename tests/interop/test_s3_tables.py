"""Tables in a bucket, written and read by Pennon and pylance; and their requests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import IncompatibleConflict
from pennon.io import open_store
from pennon.table.naming import Naming
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3

ROWS = pa.table(
    {
        "a": np.arange(30_000),
        "b": [f"text number {n}" for n in range(30_000)],
        "c": [None if n % 5 == 0 else n / 7 for n in range(30_000)],
        "d": [[n] * (n % 3) for n in range(30_000)],
        "e": np.random.default_rng(2).random(30_000),
    }
)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving_s3() as one:
        yield one


@pytest.fixture
def s3(server: S3Server) -> S3Server:
    server.requests.clear()
    return server


@pytest.fixture
def uri() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}/t.lance"


def asked(s3: S3Server) -> list[str]:
    """Return what was asked for so far, in short, and forget it."""
    found = []
    for method, path, _ in s3.requests:
        folder = path.rpartition("/")[0].rpartition("/")[2]
        found.append(f"{method} {folder}" if folder.startswith(("_", "data")) else f"{method} list")
    s3.requests.clear()
    return found


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_s3_table_is_written_and_read_by_both(s3: S3Server, uri: str, version: Any) -> None:
    options = s3.options
    pennon.write_dataset(
        ROWS.slice(0, 20_000),
        uri,
        storage_options=options,
        max_rows_per_file=7000,
        data_storage_version=version,
    )
    pennon.write_dataset(ROWS.slice(20_000), uri, mode="append", storage_options=options)
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.to_table() == ROWS
    theirs.delete("a % 100 = 7")
    lance.write_dataset(ROWS.slice(0, 10), uri, mode="append", storage_options=options)
    expected = lance.dataset(uri, storage_options=options).to_table()
    mine = pennon.dataset(uri, storage_options=options)
    assert mine.to_table() == expected
    assert mine.version == 4
    rows = np.random.default_rng(1).permutation(len(expected))[:100]
    assert mine.take(rows) == expected.take(pa.array(rows))
    assert mine.to_table(filter="a > 29000 AND c IS NULL")["a"].to_pylist() == [
        n for n in range(29_001, 30_000) if n % 5 == 0 and n % 100 != 7
    ]
    assert mine.checkout_version(1).count_rows() == 20_000
    assert pa.Table.from_batches(mine.to_batches(columns=["b"])) == expected.select(["b"])
    with pytest.raises(OSError, match="already"):
        pennon.write_dataset(ROWS, uri, storage_options=options)
    pennon.write_dataset(ROWS.slice(5, 5), uri, mode="overwrite", storage_options=options)
    assert lance.dataset(uri, storage_options=options).to_table() == ROWS.slice(5, 5)


@pytest.mark.parametrize("naming", Naming)
def test_opening_lists_once_and_reads_one_manifest(s3: S3Server, uri: str, naming: Naming) -> None:
    options = s3.options
    for number in range(12):
        lance.write_dataset(
            ROWS.slice(number, 1),
            uri,
            mode="append" if number else "create",
            storage_options=options,
            enable_v2_manifest_paths=naming is Naming.V2,
        )
    s3.requests.clear()
    dataset = pennon.dataset(uri, storage_options=options)
    assert dataset.version == 12
    assert asked(s3) == ["GET list", "GET _versions"]
    assert dataset.count_rows() == 12
    assert dataset.schema == ROWS.schema
    assert asked(s3) == []
    assert pennon.dataset(uri, version=7, storage_options=options).version == 7
    assert asked(s3) == ["GET list", "GET _versions"]


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_the_first_row_costs_five_requests(s3: S3Server, uri: str, version: Any) -> None:
    """The listing, the manifest, the end of the file, and two for the row; then two a row."""
    options = s3.options
    pennon.write_dataset(ROWS, uri, storage_options=options, data_storage_version=version)
    s3.requests.clear()
    dataset = pennon.dataset(uri, storage_options=options)
    assert dataset.take([3], columns=["b"])["b"].to_pylist() == ["text number 3"]
    requests = asked(s3)
    assert requests[:3] == ["GET list", "GET _versions", "GET data"]
    assert len(requests) <= 5
    assert dataset.take([17], columns=["b"])["b"].to_pylist() == ["text number 17"]
    assert len(asked(s3)) <= 2


def test_s3_append_of_one_file_counts_requests(s3: S3Server, uri: str) -> None:
    """The manifest that the append was planned on is not read again: the listing says that it is the same."""
    options = s3.options
    pennon.write_dataset(ROWS.slice(0, 10), uri, storage_options=options)
    s3.requests.clear()
    pennon.write_dataset(ROWS.slice(10, 10), uri, mode="append", storage_options=options)
    requests = asked(s3)
    assert requests[:3] == ["GET list", "GET _versions", "PUT data"]
    assert sorted(requests[3:5]) == ["GET list", "PUT _transactions"]
    assert requests[5:] == ["PUT _versions"]


def test_s3_new_table_of_one_file_counts_requests(s3: S3Server, uri: str) -> None:
    pennon.write_dataset(ROWS.slice(0, 10), uri, storage_options=s3.options)
    s3.requests.clear()
    pennon.write_dataset(ROWS.slice(0, 10), f"{uri}2", storage_options=s3.options)
    requests = asked(s3)
    assert sorted(requests[:2]) == ["GET list", "GET list"], "the other one is _latest.manifest"
    assert requests[2] == "PUT data"
    assert sorted(requests[3:5]) == ["GET list", "PUT _transactions"]
    assert requests[5:] == ["PUT _versions"]


def test_s3_append_to_recreated_table_is_a_conflict(s3: S3Server, uri: str) -> None:
    options = s3.options
    pennon.write_dataset(ROWS.slice(0, 10), uri, storage_options=options)
    handle = pennon.dataset(uri, storage_options=options)
    store = open_store(uri, options)
    for each in list(store.list("")):
        store.delete(each.path)
    pennon.write_dataset(ROWS.slice(10, 10), uri, storage_options=options)
    with pytest.raises(IncompatibleConflict, match="dropped and made anew"):
        pennon.write_dataset(ROWS.slice(20, 10), handle, mode="append", storage_options=options)
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.to_table() == ROWS.slice(10, 10)
    assert pennon.dataset(uri, storage_options=options).to_table() == ROWS.slice(10, 10)
