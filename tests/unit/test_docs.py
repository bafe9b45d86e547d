"""The programs of the documents run, in their order, on a table like the one they speak of."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import pennon

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tables.md"


def programs_of(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_programs_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## From Python") : text.index("## From Spark")]
    first, *rest = programs_of(section)
    assert rest
    names: dict[str, object] = {}
    exec(first, names)
    found = pennon.dataset("words.lance")
    assert found.schema.names == ["id", "word", "length"]
    for program in rest:
        exec(program, names)
    with pytest.raises(TypeError):
        pl.from_arrow(found)


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

    vectors = pa.array([[number / 9, 1.0] for number in range(9)], pa.list_(pa.float32(), 2))
    titles = ["a red fox", "a blue whale", "a grey seal"] * 3
    photos = pa.table({"id": range(9), "year": range(2015, 2024), "vec": vectors, "title": titles})
    names = {
        "photos": pennon.write_dataset(photos, "photos.lance"),
        "query": [0.5, 0.5],
        "queries": [[0.5, 0.5], [0.0, 1.0]],
        "pa": pa,
        "timedelta": timedelta,
        "table": table.slice(100, 10),
        "news": pa.table({"id": pa.array([5, 500], pa.int32()), "word": ["five", "new"]}),
        "more": pa.table({"id": pa.array([5], pa.int32()), "extra": ["x"]}),
        "embed": embed,
    }
    programs = programs_of(PAGE.read_text())
    assert len(programs) > 5
    for program in programs:
        exec(program.replace("/elsewhere/", f"{tmp_path}/elsewhere/"), names)
    found = pennon.dataset("words.lance")
    assert (found.count_rows(), found.schema.names) == (120 + 10, ["id", "word"])
