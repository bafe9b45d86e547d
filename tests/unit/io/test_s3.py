"""A bucket: requests on the wire, conditional writes, faults, secrets."""

from __future__ import annotations

import os
import pickle
import threading
import traceback
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.byte_ranges import ByteRange, Gather
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io import open_store, remote_forks
from pennon.io import remote as remote_module
from pennon.io.paths import parse_uri
from pennon.io.remote import RemoteStore
from pennon.io.remote_client import connect
from pennon.io.store import Store
from tests.unit.forks import CHILDREN, exit_codes

SECRET = "c0nfidential-key"
BODY = np.random.default_rng(5).integers(0, 256, 20_000_000, np.uint8).tobytes()


def test_open_makes_one_request_or_none_with_known_size(s3: Any, bucket_store: Store) -> None:
    bucket_store.put("data/x", b"0123456789")
    s3.requests.clear()
    assert bucket_store.open("data/x").size_bytes == 10
    assert [method for method, _, _ in s3.requests] == ["HEAD"]
    s3.requests.clear()
    reader = bucket_store.open("data/x", 10)
    assert s3.requests == []
    reader.read([ByteRange(0, 3), ByteRange(5, 2)])
    assert [sent for _, _, sent in s3.requests] == ["bytes=0-6"]


def test_large_object_is_uploaded_and_read_in_parts(s3: Any, bucket_store: Store) -> None:
    with bucket_store.open_writer("data/x") as writer:
        for start in range(0, len(BODY), 1_000_003):
            writer.write(BODY[start : start + 1_000_003])
    sent = [method for method, _, _ in s3.requests]
    assert sent == ["POST", "PUT", "PUT", "PUT", "POST"]
    s3.requests.clear()
    reader = bucket_store.open("data/x", len(BODY))
    starts = np.array([19_000_000, 5], np.int64)
    whole, some = reader.read([ByteRange(0, len(BODY)), Gather(starts, starts + 3)])
    assert whole.to_pybytes() == BODY
    assert some.to_pybytes() == BODY[19_000_000:19_000_003] + BODY[5:8]
    assert len(s3.requests) == 3


def test_server_without_conditional_put_is_refused(
    s3: Any, bucket_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(environ: dict[str, Any], _: object) -> None:
        environ.pop("HTTP_IF_NONE_MATCH", None)

    s3.fault = forget
    monkeypatch.setattr(remote_module, "_PROVEN", set())
    monkeypatch.setattr(remote_module, "_REFUSED", set())
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="overwrites"):
            bucket_store.put_if_absent("_versions/1.manifest", b"1")
    assert [method for method, _, _ in s3.requests] == ["PUT", "PUT", "POST"]
    assert list(bucket_store.list("")) == []


def test_a_store_is_put_to_the_test_once(
    s3: Any, bucket_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_module, "_PROVEN", set())
    bucket_store.put_if_absent("_versions/1.manifest", b"1")
    assert [method for method, _, _ in s3.requests] == ["PUT", "PUT", "POST", "PUT"]
    s3.requests.clear()
    bucket_store.put_if_absent("_versions/2.manifest", b"1")
    assert [method for method, _, _ in s3.requests] == ["PUT"]
    assert [found.path for found in bucket_store.list("")] == [
        "_versions/1.manifest",
        "_versions/2.manifest",
    ]


def test_put_if_absent_with_conditional_put_disabled_is_refused(s3: Any) -> None:
    store = open_store("s3://bucket/u.lance", {**s3.options, "aws_conditional_put": "disabled"})
    with pytest.raises(UnsupportedError):
        store.put_if_absent("_versions/1.manifest", b"1")
    assert list(store.list("")) == []


def test_throttling_is_waited_out(s3: Any, bucket_store: Store) -> None:
    bucket_store.put("data/x", b"0123")
    left = [2]

    def slow_down(environ: dict[str, Any], _: object) -> str | None:
        left[0] -= 1
        return "503 Slow Down" if left[0] >= 0 else None

    s3.fault = slow_down
    assert bucket_store.open("data/x", 4).read([ByteRange(0, 4)])[0].to_pybytes() == b"0123"
    assert left[0] == -1


def test_a_lost_answer_to_a_commit_is_never_reported_as_a_clean_failure(
    s3: Any, bucket_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upload lands, the answer is a 500: the retry meets our own object."""
    monkeypatch.setattr(RemoteStore, "_probe", lambda *_: None)
    lost = [1]

    def apply_then_fail(environ: dict[str, Any], work: Any) -> str | None:
        if environ["REQUEST_METHOD"] == "PUT" and lost:
            lost.pop()
            work()
            return "500 Internal Server Error"
        return None

    s3.fault = apply_then_fail
    with pytest.raises(AlreadyExistsError):
        bucket_store.put_if_absent("_versions/1.manifest", b"mine")
    reader = bucket_store.open("_versions/1.manifest")
    assert reader.read([ByteRange(0, 4)])[0].to_pybytes() == b"mine"


def test_short_response_body_is_refused(s3: Any, bucket_store: Store) -> None:
    bucket_store.put("data/x", b"0123")
    with pytest.raises(StoreError, match="4 of 9 bytes"):
        bucket_store.open("data/x", 9).read([ByteRange(0, 9)])
    with pytest.raises(NotFoundError):
        bucket_store.open("data/none", 9).read([ByteRange(0, 9)])


def test_s3_errors_and_reprs_hide_secrets(s3: Any, bucket_store: Store) -> None:
    options = {
        **s3.options,
        "client_max_retries": "0",
        "aws_session_token": f"token-{SECRET}",
    }
    store = open_store("s3://bucket/v.lance", options)

    def refuse(environ: dict[str, Any], _: object) -> str:
        return "403 Forbidden"

    s3.fault = refuse
    reader = store.open("x", 5)
    shown = [repr(store), str(store), store.uri, repr(reader)]
    for verb in (
        lambda: store.open("x"),
        lambda: reader.read([ByteRange(0, 5)]),
        lambda: store.put("x", b""),
        lambda: list(store.list("x")),
        lambda: store.delete("x"),
        lambda: store.open_writer("x").close(),
    ):
        with pytest.raises(LanceError) as caught:
            verb()
        assert caught.value.__context__ is None
        shown += ["".join(traceback.format_exception(caught.value)), repr(caught.value)]
    assert not [text for text in shown if SECRET in text]
    bad = {**s3.options, "aws_conditional_put": f"nonsense {SECRET}"}
    with pytest.raises(ArgumentError) as caught:
        open_store("s3://bucket/w.lance", bad).open("x")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_unknown_storage_options_warn_and_are_ignored(s3: Any) -> None:
    store = open_store("s3://bucket/o.lance", {**s3.options, "aws_regoin": "x"})
    with pytest.warns(UserWarning, match="aws_regoin"):
        store.put("x", b"1")
    assert pickle.loads(pickle.dumps(store)).open("x").size_bytes == 1


def test_storage_option_with_invalid_number_is_refused(s3: Any) -> None:
    store = open_store("s3://bucket/o.lance", {**s3.options, "client_max_retries": "many"})
    with pytest.raises(ArgumentError, match="client_max_retries"):
        store.open("x")


def test_children_of_a_fork_read_and_write(s3: Any, bucket_store: Store) -> None:
    """obstore's threads stay behind with the parent; each child, and its child, has its own."""
    bucket_store.put("data/x", b"0123")
    reader = bucket_store.open("data/x")
    upload = bucket_store.open_writer("data/never")

    def check() -> bool:
        with pytest.raises(StoreError, match="before a fork"):
            upload.write(b"x")
        bucket_store.put(f"data/{os.getpid()}", b"45")
        again = bucket_store.open(f"data/{os.getpid()}").read([ByteRange(1, 1)])
        both = [*reader.read([ByteRange(2, 2)]), *again]
        return [part.to_pybytes() for part in both] == [b"23", b"5"]

    assert exit_codes(check) == [0] * CHILDREN
    assert exit_codes(lambda: check() and exit_codes(check, 1) == [0], 1) == [0]
    assert reader.read([ByteRange(0, 2)])[0].to_pybytes() == b"01"
    upload.abort()


@pytest.mark.parametrize("rounds", [1, pytest.param(25, marks=pytest.mark.slow)])
def test_children_read_a_table_in_a_bucket_at_once(
    s3: Any, bucket_store: Store, rounds: int
) -> None:
    """The parent has read it, and threads of the parent read it while it forks."""
    rows = pa.table({"n": range(2_000), "w": [f"word {n}" for n in range(2_000)]})
    table = pennon.write_dataset(
        rows, bucket_store.uri, storage_options=s3.options, max_rows_per_file=500
    )
    done = threading.Event()

    def reads_right() -> bool:
        return bool(table.to_table() == rows and table.take([7, 1_999]) == rows.take([7, 1_999]))

    def read_on() -> None:
        while not done.is_set():
            assert reads_right()

    assert reads_right()
    thread = threading.Thread(target=read_on)
    thread.start()
    try:
        for _ in range(rounds):
            assert exit_codes(reads_right) == [0] * CHILDREN
    finally:
        done.set()
        thread.join()


def test_remote_store_after_fork_without_reload_is_refused(
    bucket_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket_store.put("data/x", b"0123")
    monkeypatch.setattr(remote_forks, "_LIBRARY", "pennon.io")

    def check() -> bool:
        with pytest.raises(StoreError, match="spawn"):
            bucket_store.open("data/x")
        return True

    assert exit_codes(check, 1) == [0]


def test_a_plain_http_server_is_read_only(s3: Any, bucket_store: RemoteStore) -> None:
    bucket_store.put("data/x y", b"0123456789")
    root = f"http://127.0.0.1:{s3.port}/bucket/{bucket_store.location.path}"
    s3.make_public(f"/bucket/{bucket_store.location.path}/data/x%20y")
    store = open_store(root)
    reader = store.open("data/x y")
    assert reader.size_bytes == 10
    assert reader.read([ByteRange(2, 3)])[0].to_pybytes() == b"234"
    with pytest.raises(NotFoundError):
        store.open("data/none")
    for verb in (
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: store.open_writer("a"),
        lambda: store.delete("data/x y"),
    ):
        with pytest.raises(UnsupportedError, match="read-only"):
            verb()
    with pytest.raises(LanceError):
        list(store.list("data"))


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        (
            "s3://b/t",
            {"AWS_REGION": "eu-west-1", "access_key_id": "a", "secret_access_key": "b"},
        ),
        (
            "s3a://b/t",
            {"aws_virtual_hosted_style_request": "true", "endpoint": "http://h"},
        ),
        ("gs://b/t", {"google_storage_token": "t"}),
        ("gs://b/t", {"google_skip_signature": "true", "timeout": "30s"}),
        (
            "az://c/t",
            {"azure_storage_account_name": "n", "azure_storage_sas_token": "s=1"},
        ),
        ("abfss://c@n.dfs.core.windows.net/t", {"account_key": "aGVsbG8="}),
        ("https://h/t", {"connect_timeout": "5s", "client_retry_timeout": "9"}),
        ("s3://b/t", {"expires_at_millis": "1", "download_retry_count": "3"}),
    ],
)
def test_storage_options_of_pylance_are_accepted_by_every_cloud(
    uri: str, options: dict[str, str], recwarn: pytest.WarningsRecorder
) -> None:
    client, parsed = connect(parse_uri(uri), tuple(options.items()))
    assert "t" in repr(client)
    assert not recwarn.list
    assert repr(parsed).startswith("RemoteOptions(max_retries=")
