"""SQL filters, with the oracle: the same rows, in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

import pennon
from pennon.errors import ArgumentError
from tests.interop.equality import difference
from tests.interop.filter_corpus import filter_table, filters
from tests.interop.oracle import Oracle, OracleError

TEXTS = list(dict.fromkeys(filters()))


def test_the_same_rows(newest: Oracle, tmp_path: Path) -> None:
    """Where the oracle refuses (it is strict about types), ours gives rows or refuses as well."""
    uri = tmp_path / "t"
    dataset = pennon.write_dataset(filter_table(), uri)
    asked = {"op": "scan", "uri": str(uri), "out": True, "columns": [], "with_row_address": True}
    answers = newest.run([{**asked, "filter": text} for text in TEXTS])
    found, wrong = 0, []
    for text, answer in zip(TEXTS, answers, strict=True):
        try:
            rows = dataset.to_table(columns=[], filter=text, with_row_address=True)
        except ArgumentError as error:
            ours: object = str(error)
        else:
            ours = rows["_rowaddr"].to_pylist()
        if isinstance(answer, OracleError):
            continue
        found += 1
        if ours != answer["_rowaddr"].to_pylist():
            wrong.append((text, answer["_rowaddr"].to_pylist()[:12], ours))
    assert not wrong, "\n".join(map(str, wrong))
    assert found >= 400


@pytest.mark.parametrize("text", ["i32 > 1", "s like 'B%' or b"])
def test_everything_that_takes_a_filter(tmp_path: Path, text: str) -> None:
    dataset = pennon.write_dataset(filter_table(), tmp_path / "t", max_rows_per_file=100)
    kept = dataset.to_table(filter=text)
    assert kept.num_rows == dataset.count_rows(text) == dataset.scanner(filter=text).count_rows()
    assert difference(dataset.to_table(filter=text, batch_size=7), kept) is None
    some = dataset.to_table(filter=text, limit=5, offset=3)
    assert difference(some, kept.slice(3, 5)) is None
    parts = [fragment.count_rows(text) for fragment in dataset.get_fragments()]
    assert sum(parts) == kept.num_rows
    renamed = dataset.to_table(columns={"i32": "s", "n": "i64"}, filter=text)
    assert renamed["i32"].to_pylist() == kept["s"].to_pylist()
    assert f"Filter: {text}" in dataset.scanner(filter=text).explain_plan()
