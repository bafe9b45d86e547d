"""Options that there are not: misspelt ones are a TypeError with the nearest name, later ones say so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.dataset import ScannerBuilder
from pennon.errors import ArgumentError, UnsupportedError

TABLE = pa.table({"a": [1, 2]})
LIB: Any = pennon
"""A type checker, too, finds what is misspelt here: tests/unit/test_typing_of_programs.py."""
Call = Callable[[str], Any]


def opened(uri: str) -> Any:
    return pennon.dataset(uri)


def first(uri: str) -> Any:
    return opened(uri).get_fragments()[0]


def data_file(uri: str) -> str:
    return str(next((Path(uri) / "data").iterdir()))


MISSPELT: list[tuple[str, str, Call]] = [
    ("verison", "version", lambda uri: LIB.dataset(uri, verison=1)),
    ("verison", "version", lambda uri: LIB.dataset(uri, verison=None)),
    ("verison", "version", lambda uri: LIB.LanceDataset(uri, verison=1)),
    ("mod", "mode", lambda uri: LIB.write_dataset(TABLE, uri, mod="append")),
    ("modes", "mode", lambda uri: LIB.fragment.write_fragments(TABLE, uri, modes="append")),
    ("modes", "mode", lambda uri: LIB.fragment.LanceFragment.create(uri, TABLE, modes="append")),
    ("max_rows_file", "max_rows_per_file", lambda uri: opened(uri).insert(TABLE, max_rows_file=1)),
    ("colums", "columns", lambda uri: opened(uri).scanner(colums=["a"])),
    ("colums", "columns", lambda uri: opened(uri).to_table(colums=["a"])),
    ("colums", "columns", lambda uri: opened(uri).to_batches(colums=["a"])),
    ("colums", "columns", lambda uri: opened(uri).head(1, colums=["a"])),
    ("filters", "filter", lambda uri: opened(uri).count_rows(filters="a > 1")),
    ("colums", "columns", lambda uri: first(uri).to_table(colums=["a"])),
    ("colums", "columns", lambda uri: first(uri).to_batches(colums=["a"])),
    (
        "max_retry",
        "max_retries",
        lambda uri: LIB.LanceDataset.commit(
            uri, LIB.LanceOperation.Append([]), read_version=1, max_retry=3
        ),
    ),
    (
        "max_retry",
        "max_retries",
        lambda uri: LIB.LanceDataset.commit_batch(uri, [], max_retry=3),
    ),
    (
        "metadata_cache_bytes",
        "metadata_cache_size_bytes",
        lambda _: LIB.Session(metadata_cache_bytes=1),
    ),
    (
        "index_name",
        "index_names",
        lambda uri: opened(uri).optimize.optimize_indices(index_name=["a"]),
    ),
    (
        "auto_cleanup_conf",
        "auto_cleanup_config",
        lambda uri: opened(uri).optimize.enable_auto_cleanup({}, auto_cleanup_conf={}),
    ),
    (
        "intervals",
        "interval",
        lambda uri: opened(uri).optimize.enable_auto_cleanup({"intervals": 3}),
    ),
    ("column", "columns", lambda uri: LIB.file.LanceFileReader(data_file(uri), column=["a"])),
    ("verison", "version", lambda uri: LIB.file.LanceFileWriter(f"{uri}.new", verison="2.0")),
]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    found = str(tmp_path / "t.lance")
    LIB.write_dataset(TABLE, found)
    return found


def test_a_misspelt_option_is_a_type_error_with_the_nearest_name(uri: str) -> None:
    for wrong, right, call in MISSPELT:
        with pytest.raises(TypeError) as caught:
            call(uri)
        said = str(caught.value)
        assert f"got an unexpected keyword argument {wrong!r}; did you mean {right!r}?" in said, (
            wrong
        )
    assert LIB.dataset(uri).count_rows() == 2


def test_unknown_option_error_names_the_function(uri: str) -> None:
    with pytest.raises(TypeError, match=r"^write_dataset\(\) got"):
        LIB.write_dataset(TABLE, uri, nothing_like_it=1)
    with pytest.raises(TypeError, match=r"^LanceFragment\.create\(\) got an .* 'xyz'$"):
        LIB.fragment.LanceFragment.create(uri, TABLE, xyz=1)


def test_unsupported_options_of_pylance_are_refused(uri: str) -> None:
    later: dict[str, Any] = {"base_store_params": {}}
    with pytest.raises(UnsupportedError, match="base_store_params' is not supported yet"):
        LIB.dataset(uri, **later)
    with pytest.raises(ArgumentError, match="not by both"):
        LIB.dataset(uri, namespace_client=object(), table_id=["t"])
    assert LIB.dataset(uri, namespace_client=None).count_rows() == 2
    with pytest.raises(UnsupportedError, match="'session' is not supported yet"):
        opened(uri).insert(TABLE, session=LIB.Session())


def test_unsupported_scan_option_error_names_the_option(uri: str) -> None:
    builder: Any = ScannerBuilder(opened(uri))
    with pytest.raises(UnsupportedError, match="the scan option 'substrait_aggregate' is not"):
        builder.substrait_aggregate(b"plan")
