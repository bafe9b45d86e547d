"""NGRAM indices as they are made: in runs, in files of runs, in windows of long texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.index.row_sets_wire import parse_treemap
from pennon.index.scalar.ngram import tokens_of

BUILD = "pennon.index.scalar.ngram_build"
LETTERS = list("abcABC01 -é中")


def texts_of(rows: int, letters: int, seed: int = 0) -> list[str | None]:
    random = np.random.default_rng(seed)
    lengths = random.integers(0, letters, rows).tolist()
    return [None if n % 17 == 5 else "".join(random.choice(LETTERS, n)) for n in lengths]


def index_of(uri: str) -> dict[int, list[int]]:
    """Return the rows of each token, of the only index of a table."""
    (folder,) = (Path(uri) / "_indices").iterdir()
    assert [each.name for each in folder.iterdir()] == ["ngram_postings.lance"]
    found = pennon.file.LanceFileReader(str(folder / "ngram_postings.lance")).read_all().to_table()
    tokens = found["tokens"].to_pylist()
    assert tokens == sorted(set(tokens))
    lists = found["posting_list"].to_pylist()
    return {
        token: parse_treemap(data).numbers().tolist()
        for token, data in zip(tokens, lists, strict=True)
    }


def expected(texts: list[str | None], rows_per_file: int) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row, text in enumerate(texts):
        address = (row // rows_per_file << 32) + row % rows_per_file
        plain = "" if text is None else text.lower().replace("é", "e")
        for token in {0} if text is None else tokens_of(plain):
            found.setdefault(token, []).append(address)
    return dict(sorted(found.items()))


def made(
    tmp_path: Path, texts: list[str | None], rows_per_file: int = 100, version: str = "2.1"
) -> Any:
    table = pa.table({"s": pa.array(texts, pa.string())})
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(
        table, uri, max_rows_per_file=rows_per_file, data_storage_version=version
    )
    ds.create_scalar_index("s", "NGRAM")
    return ds


SIZES = {
    "one run": {},
    "runs of few rows": {"RUN_ROWS": 7},
    "runs of few pairs": {"RUN_PAIRS": 50},
    "few rows at once": {"LIST_ROWS": 3, "RUN_PAIRS": 1000},
    "windows of texts": {"TEXT_BYTES": 5},
    "files of runs": {"HELD_PAIRS": 500, "RUN_PAIRS": 100, "LIST_ROWS": 200},
}


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_ngram_index_has_the_rows_of_each_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int], version: str
) -> None:
    for name, value in sizes.items():
        monkeypatch.setattr(f"{BUILD}.{name}", value)
    texts = texts_of(250, 30)
    ds = made(tmp_path, texts, version=version)
    assert index_of(ds.uri) == expected(texts, 100)


def test_ngram_index_of_text_longer_than_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{BUILD}.RUN_PAIRS", 100)
    monkeypatch.setattr(f"{BUILD}.TEXT_BYTES", 64)
    texts = [*texts_of(5, 20), "".join(np.random.default_rng(1).choice(LETTERS, 5000)), "abc"]
    ds = made(tmp_path, texts)
    assert index_of(ds.uri) == expected(texts, 100)


@pytest.mark.parametrize("texts", [[], [None, None], ["", "a", "ab"]], ids=str)
def test_ngram_index_of_no_tokens(tmp_path: Path, texts: list[str | None]) -> None:
    ds = made(tmp_path, [*texts, "abc"])
    assert index_of(ds.uri) == expected([*texts, "abc"], 100)


def test_ngram_segments_of_groups_are_merged_a_few_tokens_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pennon.ops.index.request.SEGMENT_BYTES", 1000)
    monkeypatch.setattr(f"{BUILD}.LIST_ROWS", 50)
    monkeypatch.setattr(f"{BUILD}.READ_TOKENS", 16)
    texts = texts_of(300, 30, seed=2)
    ds = made(tmp_path, texts, rows_per_file=50)
    folders = list((Path(ds.uri) / "_indices").iterdir())
    kept = {segment.uuid for each in ds.describe_indices() for segment in each.segments}
    for folder in folders:
        if folder.name not in kept:
            for each in folder.iterdir():
                each.unlink()
            folder.rmdir()
    assert len(folders) > 1
    assert index_of(ds.uri) == expected(texts, 50)
