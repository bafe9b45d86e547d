from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator

import pytest

import pennon
from pennon.errors import ArgumentError, FormatError, LanceError, StoreError, UnsupportedError
from pennon.table.external import Entry
from pennon.table.external.dynamodb import DynamoManifests
from pennon.table.external.dynamodb_client import _connect
from tests.unit.io import dynamodb_tables
from tests.unit.io.dynamodb_tables import TABLE, dynamodb
from tests.unit.io.s3_server import BUCKET, SECRET, S3Server, serving_s3

BASE = "a/t.lance"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with serving_s3() as one:
        dynamodb_tables.create_table(one)
        yield one


@pytest.fixture
def s3(server: S3Server) -> Iterator[S3Server]:
    yield server
    server.fault = None


def manifests(s3: S3Server, table: str = TABLE, **options: str) -> DynamoManifests:
    known = {**s3.options, **options}
    endpoint = s3.options["aws_endpoint"]
    return DynamoManifests(table, BUCKET, BASE, endpoint, tuple(sorted(known.items())))


@pytest.mark.parametrize(
    "keys",
    [
        {"base_uri": ("HASH", "S")},
        {"uri": ("HASH", "S"), "version": ("RANGE", "N")},
        {"version": ("HASH", "N"), "base_uri": ("RANGE", "S")},
    ],
)
def test_dynamodb_table_with_other_keys_is_refused(
    s3: S3Server, keys: dict[str, tuple[str, str]]
) -> None:
    name = "keys-" + "-".join(keys)
    dynamodb_tables.create_table(s3, name, keys)
    with pytest.raises(StoreError, match="partition key base_uri"):
        manifests(s3, name).get_latest()


def test_missing_dynamodb_table_is_a_store_error(s3: S3Server) -> None:
    with pytest.raises(StoreError, match=r"not found|non-existent"):
        manifests(s3, "no-such-table").get(1)


ITEMS = [
    {"path": {"S": f"{BASE}/_versions/9.manifest"}, "bucket": {"S": "another"}},
    {"path": {"S": "b/t.lance/_versions/9.manifest"}},
    {"path": {"N": "9"}},
    {},
]


@pytest.mark.parametrize("item", ITEMS)
def test_invalid_dynamodb_items_are_refused(s3: S3Server, item: dict[str, dict[str, str]]) -> None:
    keys = {"base_uri": {"S": BASE}, "version": {"N": "9"}}
    dynamodb(s3).put_item(TableName=TABLE, Item={**keys, **item})
    for read in (manifests(s3).get_latest, lambda: manifests(s3).get(9)):
        with pytest.raises(FormatError, match=r"two tables share|no version or no path"):
            read()
    dynamodb(s3).delete_item(TableName=TABLE, Key=keys)


def test_dynamodb_errors_hide_secrets(s3: S3Server, capfd: pytest.CaptureFixture[str]) -> None:
    """Nor does any object: each answer of trouble, and trouble before there is any answer."""
    token = "t0ken-of-a-session"
    mine = manifests(s3, aws_session_token=token)
    mine.get(1)
    nowhere = DynamoManifests(TABLE, BUCKET, BASE, "http://127.0.0.1:1", mine.options)
    shown = [repr(mine), repr(nowhere)]
    for status in ("400 Bad Request", "403 Forbidden", "500 Internal Error"):
        s3.fault = lambda *_, status=status: status
        shown += _shown(mine)
    s3.fault = None
    shown += _shown(nowhere)
    assert len(shown) == 14
    text = "\n".join([*shown, *capfd.readouterr()])
    assert SECRET not in text
    assert token not in text


def _shown(mine: DynamoManifests) -> list[str]:
    shown = []
    entry = Entry(1, "_versions/1.manifest", 1)
    for act in (lambda: mine.get(1), mine.get_latest, lambda: mine.put_if_not_exists(entry)):
        with pytest.raises(StoreError) as caught:
            act()
        assert not isinstance(caught.value, FormatError)
        assert caught.value.__cause__ is None
        shown.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
    return shown


def test_dynamodb_without_botocore_names_the_extra(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "botocore.exceptions", None)
    monkeypatch.delitem(sys.modules, _connect.__module__)
    with pytest.raises(UnsupportedError, match=r"pennon\[dynamodb\]"):
        manifests(s3).get(1)


def test_dynamodb_without_region_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    with pytest.raises(ArgumentError, match="region"):
        DynamoManifests(TABLE, BUCKET, BASE).get(1)


def test_dynamodb_client_works_after_fork(s3: S3Server) -> None:
    mine = manifests(s3)
    assert mine.get(100) is None
    child = os.fork()
    if child == 0:
        try:
            mine.put_if_not_exists(Entry(100, "_versions/100.manifest", 1))
        except LanceError:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert mine.get(100) == Entry(100, "_versions/100.manifest", 1)


def test_dynamodb_commit_writes_no_secret(s3: S3Server) -> None:
    options = dynamodb_tables.options(s3)
    uri = f"s3+ddb://{BUCKET}/secrets/t.lance?ddbTableName={TABLE}"
    dataset = pennon.write_dataset({"a": [1]}, uri, storage_options=options)
    store = dataset.snapshot.store
    assert SECRET not in repr(store) + repr(dataset)
    for found in store.list(""):
        assert SECRET.encode() not in store.read_whole(found.path).to_pybytes()
    items = dynamodb(s3).scan(TableName=TABLE)["Items"]
    assert any(item["base_uri"]["S"] == "secrets/t.lance" for item in items)
    assert SECRET not in str(items)
