"""The programs in docs/tables.md run, in their order, on a table like the one they speak of."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import pennon

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_programs_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": number, "word": None if number % 9 == 0 else f"w{number}"} for number in range(120)
    ]
    table = pa.Table.from_pylist(rows, pa.schema([("id", pa.int32()), ("word", pa.string())]))
    made = pennon.write_dataset(table, "words.lance", enable_stable_row_ids=True)
    made.insert(table.slice(0, 0))

    @pennon.batch_udf()
    def embed(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"embedding": [[1.0]] * batch.num_rows})

    names = {
        "pa": pa,
        "timedelta": timedelta,
        "table": table.slice(100, 10),
        "news": pa.table({"id": pa.array([5, 500], pa.int32()), "word": ["five", "new"]}),
        "more": pa.table({"id": pa.array([5], pa.int32()), "extra": ["x"]}),
        "embed": embed,
    }
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(programs) > 5
    for program in programs:
        exec(program.replace("/elsewhere/", f"{tmp_path}/elsewhere/"), names)
    found = pennon.dataset("words.lance")
    assert (found.count_rows(), found.schema.names) == (120 + 10, ["id", "word"])
