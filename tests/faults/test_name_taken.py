"""A folder or a pipe at the path of the next manifest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError

SECOND = "18446744073709551613.manifest"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_commit_with_folder_or_pipe_at_manifest_path_fails_at_once(
    make: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_wait(seconds: float) -> None:
        message = f"waits {seconds} s"
        raise AssertionError(message)

    rows = pa.table({"a": [1]})
    table = pennon.write_dataset(rows, tmp_path / "t")
    taken = tmp_path / "t/_versions" / SECOND
    make(str(taken))
    monkeypatch.setattr("time.sleep", no_wait)
    for _ in range(2):
        with pytest.raises(FormatError, match=f"no file has this name.*{SECOND}"):
            pennon.write_dataset(rows, tmp_path / "t", mode="append")
    assert pennon.dataset(tmp_path / "t").version == table.version
    taken.rmdir() if taken.is_dir() else taken.unlink()
    assert pennon.write_dataset(rows, tmp_path / "t", mode="append").count_rows() == 2
