"""The default number of rows of a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.scan.read.tasks import BATCH_ROWS_VARIABLE, default_batch_rows

MIB = 1 << 20


def test_wide_rows_make_small_batches() -> None:
    widths = {0: 8192, 8: 8192, 2048: 8192, 4096: 4096, 20_000: 838, 16 * MIB: 1, 1 << 40: 1}
    assert {width: default_batch_rows(width) for width in widths} == widths


def test_batch_size_of_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BATCH_ROWS_VARIABLE, "5000")
    assert default_batch_rows(1 << 30) == 5000


def test_batch_sizes_count_projected_columns_only(tmp_path: Path) -> None:
    rows = 2000
    images = [bytes([n % 251]) * 20_000 for n in range(rows)]
    vectors = pa.FixedSizeListArray.from_arrays(np.zeros(rows * 2048), 2048)
    table = pa.table({"id": range(rows), "image": images, "vector": vectors})
    pennon.write_dataset(table, tmp_path / "t", data_storage_version="2.0")
    dataset = pennon.dataset(tmp_path / "t")

    def sizes(**options: Any) -> list[int]:
        return [batch.num_rows for batch in dataset.to_batches(**options)]

    assert sizes(columns=["id"]) == [2000]
    assert sizes(columns=["vector"]) == [1024, 976]
    assert max(sizes(columns=["image"])) < 1000
    assert sizes(columns=["image"], batch_size=1500) == [1500, 500]
    assert sum(sizes(columns=["image"], strict_batch_size=True)) == 2000
