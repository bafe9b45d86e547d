"""Commands on a bucket, with storage options."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from tests.unit.cli.commands import done, from_json, run
from tests.unit.io.s3_server import BUCKET, SECRET, S3Server, serving_s3


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with serving_s3() as server:
        yield server


def test_commands_work_on_a_bucket_with_storage_options(s3: S3Server, tmp_path: Path) -> None:
    uri = f"s3://{BUCKET}/commands.lance"
    stores = [word for key, value in s3.options.items() for word in ("-s", f"{key}={value}")]
    (tmp_path / "a.csv").write_text("id,word\n1,a\n2,b\n")
    assert from_json("ingest", str(tmp_path / "a.csv"), uri, *stores)["rows"] == 2
    assert from_json("head", uri, *stores, "-n", "1") == [{"id": 1, "word": "a"}]
    assert from_json("tail", uri, *stores, "-n", "1", "-c", "id") == [{"id": 2}]
    assert len(from_json("sample", uri, *stores)) == 2
    assert from_json("count", uri, *stores, "--where", "id > 1")["rows"] == 1
    assert from_json("branches create", uri, "trial", *stores)["version"] == 1
    assert from_json("tags create", uri, "v1", "--at", "trial", *stores)["branch"] == "trial"
    from_json("index create", uri, "id", "--kind", "btree", "--branch", "trial", *stores)
    assert len(from_json("index list", uri, "--at", "trial", *stores)) == 1
    assert from_json("info", uri, "--at", "trial", *stores)["indices"] == ["id_idx"]
    assert from_json("schema", uri, *stores)["version"] == 1
    assert len(from_json("fragments", uri, "--at", "v1", *stores)) == 1
    assert from_json("stats", uri, "--values", *stores)["rows"] == 2
    assert len(from_json("versions", uri, *stores)) == 1
    assert len(from_json("history", uri, *stores)) == 1
    assert from_json("restore", uri, "--at", "1", *stores)["version"] == 2
    assert from_json("export", uri, str(tmp_path / "b.parquet"), *stores)["rows"] == 2
    done("blob", uri, "word", "--row", "1", "-o", str(tmp_path / "cell"), *stores)
    assert (tmp_path / "cell").read_bytes() == b"b"
    assert from_json("compact", uri, *stores)["fragments_removed"] == 0
    assert from_json("clean", uri, *stores, "--retain", "1")["old_versions"] == 0
    assert from_json("convert", uri, "--to", "2.2", *stores)["version"] == 3
    file = next(iter(pennon.dataset(uri, storage_options=s3.options).get_fragments())).data_files()
    assert from_json("inspect", f"{uri}/data/{file[0].path}", *stores)["rows"] == 2


def test_credentials_stay_out_of_errors(s3: S3Server) -> None:
    stores = [word for key, value in s3.options.items() for word in ("-s", f"{key}={value}")]
    for words in (("head", f"s3://{BUCKET}/nix.lance"), ("info", "s3://no-bucket/commands.lance")):
        result = run(*words, *stores)
        assert result.exception is not None
        assert SECRET not in str(result.exception) + repr(result.exception) + result.output


def test_search_on_a_bucket(s3: S3Server) -> None:
    uri = f"s3://{BUCKET}/commands-vectors.lance"
    vectors = pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": [1, 2], "vec": vectors})
    pennon.write_dataset(rows, uri, storage_options=s3.options)
    stores = [word for key, value in s3.options.items() for word in ("-s", f"{key}={value}")]
    found = from_json("search", uri, "--row", "1", "-n", "1", "-c", "id", *stores)
    assert found == [{"id": 2, "_distance": 0.0}]
