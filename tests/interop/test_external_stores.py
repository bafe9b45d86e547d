"""One table in S3 and DynamoDB, written by Pennon and pylance in turn; either finishes the other's."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import AlreadyExistsError, StoreError, UnsupportedError
from pennon.io import open_store, remote
from pennon.table.external import Entry, ExternalStore
from pennon.table.versions import latest_location
from tests.unit.io import dynamodb_tables
from tests.unit.io.dynamodb_tables import TABLE, dynamodb
from tests.unit.io.s3_server import BUCKET, S3Server, serving_s3


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving_s3() as one:
        dynamodb_tables.create_table(one)
        yield one


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    yield server
    server.fault = None


@pytest.fixture
def folder() -> str:
    return f"{uuid.uuid4().hex}/t.lance"


def uri_of(folder: str) -> str:
    return f"s3+ddb://{BUCKET}/{folder}?ddbTableName={TABLE}"


def rows(*numbers: int) -> pa.Table:
    return pa.table({"a": pa.array(numbers, pa.int64())})


def items(s3: S3Server, folder: str) -> dict[int, dict[str, Any]]:
    found = dynamodb(s3).query(
        TableName=TABLE,
        KeyConditionExpression="base_uri = :b",
        ExpressionAttributeValues={":b": {"S": folder}},
    )
    return {int(item["version"]["N"]): item for item in found["Items"]}


@pytest.mark.parametrize(("first", "v2"), [(0, False), (1, True)])
def test_external_commits_in_turn_with_pylance(
    s3: S3Server, folder: str, first: int, v2: bool
) -> None:
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    modules = [pennon, lance]
    expected: list[int] = []
    for number in range(8):
        writer, reader = modules[(number + first) % 2], modules[(number + first + 1) % 2]
        mode = "overwrite" if number == 5 else "append" if number else "create"
        expected = [number] if number == 5 else [*expected, number]
        writer.write_dataset(
            rows(number),
            uri,
            mode=mode,
            storage_options=options,
            enable_v2_manifest_paths=v2,
            data_storage_version="2.1",
        )
        for module in (writer, reader):
            dataset = module.dataset(uri, storage_options=options)
            assert dataset.version == number + 1
            assert dataset.to_table()["a"].to_pylist() == expected
    lance.dataset(uri, storage_options=options).delete("a = 6")
    mine = pennon.dataset(uri, storage_options=options)
    assert mine.to_table()["a"].to_pylist() == [5, 7]
    for version in (1, 5):
        for module in modules:
            dataset = module.dataset(uri, version=version, storage_options=options)
            assert dataset.to_table()["a"].to_pylist() == list(range(version))
    known = items(s3, folder)
    plain = open_store(f"s3://{BUCKET}/{folder}", s3.options)
    assert [path for path, _ in plain.list_names("_versions")] == sorted(
        item["path"]["S"].removeprefix(f"{folder}/") for item in known.values()
    )
    assert sorted(known) == list(range(1, 10))
    sizes = dict(plain.list_names("_versions"))
    for item in known.values():
        assert sizes[item["path"]["S"].removeprefix(f"{folder}/")] == int(item["size"]["N"])
    assert pennon.dataset(plain.uri, storage_options=s3.options).version == 9


def test_external_commit_left_by_pylance_is_finished(s3: S3Server, folder: str) -> None:
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    lance.write_dataset(rows(0), uri, storage_options=options, data_storage_version="2.1")

    def no_copies(environ: dict[str, Any], _: object) -> str | None:
        return "403 Forbidden" if "HTTP_X_AMZ_COPY_SOURCE" in environ else None

    s3.fault = no_copies
    with pytest.raises(OSError, match="unknown"):
        lance.write_dataset(rows(1), uri, mode="append", storage_options=options)
    s3.fault = None
    assert ".manifest-" in items(s3, folder)[2]["path"]["S"]
    mine = pennon.dataset(uri, storage_options=options)
    assert mine.to_table()["a"].to_pylist() == [0, 1]
    assert items(s3, folder)[2]["path"]["S"].endswith(".manifest")
    theirs = lance.dataset(uri, storage_options=options)
    assert (theirs.version, theirs.count_rows()) == (2, 2)


def test_external_commit_left_by_pennon_is_finished_by_pylance(s3: S3Server, folder: str) -> None:
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    pennon.write_dataset(rows(0), uri, storage_options=options)
    pennon.write_dataset(rows(1), uri, mode="append", storage_options=options)
    store = open_store(uri, options)
    assert isinstance(store, ExternalStore)
    done = store.manifests.get(2)
    assert done is not None
    staged = Entry(2, f"{done.path}-{uuid.uuid4()}", done.size_bytes)
    store.inner.put(staged.path, store.inner.read_whole(done.path).to_pybytes())
    store.inner.delete(done.path)
    store.manifests.put_if_exists(staged)
    theirs = lance.dataset(uri, storage_options=options)
    assert theirs.to_table()["a"].to_pylist() == [0, 1]
    assert store.manifests.get(2) == done
    assert latest_location(store.inner).version == 2


def test_external_commit_without_staged_manifest_is_refused(s3: S3Server, folder: str) -> None:
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    pennon.write_dataset(rows(0), uri, storage_options=options)
    store = open_store(uri, options)
    assert isinstance(store, ExternalStore)
    store.manifests.put_if_not_exists(Entry(2, "_versions/18446744073709551613.manifest-lost", 3))
    with pytest.raises(StoreError, match="version 2 is committed by half"):
        pennon.dataset(uri, storage_options=options)
    with pytest.raises(ValueError, match=r"not found"):
        lance.dataset(uri, storage_options=options)


def test_external_branches_are_read_and_extended_by_both(s3: S3Server, folder: str) -> None:
    """Whoever made one, the other reads it and adds to it, from the root and by its own URI."""
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    mine = pennon.write_dataset(rows(0), uri, storage_options=options)
    theirs = lance.dataset(uri, storage_options=options)
    branches: list[Any] = [mine.create_branch("mine"), theirs.create_branch("theirs")]
    for name, branch in zip(("mine", "theirs"), branches, strict=True):
        place = uri_of(f"{folder}/tree/{name}")
        assert branch.uri == place
        for number, module in enumerate((pennon, lance, pennon, lance), 1):
            module.write_dataset(rows(number), place, mode="append", storage_options=options)
        for module in (pennon, lance):
            found = module.dataset(place, storage_options=options)
            assert found.to_table()["a"].to_pylist() == [0, 1, 2, 3, 4]
        at_root = pennon.dataset(uri, storage_options=options).checkout_version((name, None))
        at_root.insert(rows(5))
        assert lance.dataset(place, storage_options=options).count_rows() == 6
        assert max(items(s3, f"{folder}/tree/{name}")) == at_root.version
    assert pennon.dataset(uri, storage_options=options).count_rows() == 1


def test_a_table_at_the_same_path_of_another_bucket(s3: S3Server, folder: str) -> None:
    """Both have one key in DynamoDB; neither may take the other's versions for its own."""
    options = dynamodb_tables.options(s3)
    s3.send("/elsewhere", {})
    other = f"s3+ddb://elsewhere/{folder}?ddbTableName={TABLE}"
    for writer in (pennon, lance):
        writer.write_dataset(rows(0), uri_of(folder), mode="append", storage_options=options)
        with pytest.raises((OSError, ValueError), match="two tables share"):
            pennon.dataset(other, storage_options=options)
        with pytest.raises((OSError, ValueError), match="two tables share"):
            pennon.write_dataset(rows(9), other, storage_options=options)
    assert pennon.dataset(uri_of(folder), storage_options=options).count_rows() == 2


def test_external_table_deleted_without_its_entries_is_refused(s3: S3Server, folder: str) -> None:
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    pennon.write_dataset(rows(0), uri, storage_options=options)
    with pytest.raises(AlreadyExistsError):
        pennon.write_dataset(rows(0), uri, storage_options=options)
    plain = open_store(f"s3://{BUCKET}/{folder}", s3.options)
    for found in list(plain.list("")):
        plain.delete(found.path)
    with pytest.raises(StoreError, match=r"knows version 1 .* gone"):
        pennon.write_dataset(rows(0), uri, storage_options=options)


def test_external_version_with_expired_item_is_read(s3: S3Server, folder: str) -> None:
    """An item that expired: the version is there all the same, and the next one follows it."""
    uri, options = uri_of(folder), dynamodb_tables.options(s3)
    for number in range(3):
        pennon.write_dataset(rows(number), uri, mode="append", storage_options=options)
    key = {"base_uri": {"S": folder}, "version": {"N": "3"}}
    dynamodb(s3).delete_item(TableName=TABLE, Key=key)
    assert pennon.dataset(uri, storage_options=options).count_rows() == 3
    pennon.write_dataset(rows(3), uri, mode="append", storage_options=options)
    assert sorted(items(s3, folder)) == [1, 2, 4]
    assert lance.dataset(uri, storage_options=options).to_table() == rows(0, 1, 2, 3)


def test_a_server_without_conditional_puts(
    s3: S3Server, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused for ``s3://``, and good enough beside a manifest store."""
    monkeypatch.setattr(remote, "_PROVEN", set())
    monkeypatch.setattr(remote, "_REFUSED", set())

    def forget(environ: dict[str, Any], _: object) -> None:
        environ.pop("HTTP_IF_NONE_MATCH", None)

    s3.fault = forget
    options = dynamodb_tables.options(s3)
    with pytest.raises(UnsupportedError, match="manifest store"):
        pennon.write_dataset(rows(0), f"s3://{BUCKET}/{folder}", storage_options=s3.options)
    for number, writer in enumerate((pennon, lance, pennon, lance)):
        writer.write_dataset(
            rows(number),
            uri_of(folder),
            mode="append",
            storage_options=options,
            data_storage_version="2.1",
        )
    found = pennon.dataset(uri_of(folder), storage_options=options).to_table()
    assert found == rows(0, 1, 2, 3)
