"""Takes from many mapped fragments: all of them in one go, and the same rows as one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.errors import FormatError
from pennon.file.open import read_across
from pennon.io import map_budget as resident
from pennon.scan.read import fragment_reader
from pennon.scan.run import take

ROWS = 6_000
FRAGMENTS = 6
RANDOM = np.random.default_rng(8)


def _some(array: pa.Array, share: float = 0.2) -> pa.Array:
    mask = pa.array(RANDOM.random(len(array)) < share)
    return pa.compute.if_else(mask, pa.scalar(None, array.type), array)


def _lists(items: pa.Array, rows: int) -> pa.Array:
    cuts = np.sort(RANDOM.integers(0, len(items) + 1, rows + 1)).astype(np.int32)
    cuts[0], cuts[-1] = 0, len(items)
    return pa.ListArray.from_arrays(pa.array(cuts), items, mask=pa.array(RANDOM.random(rows) < 0.1))


NUMBERS = pa.array(RANDOM.integers(0, 1 << 40, ROWS))
WORDS = pa.array([f"some words {n % 700} and {n}" for n in range(ROWS)])
TABLE = pa.table(
    {
        "number": NUMBERS,
        "flag": _some(pa.array(RANDOM.random(ROWS) < 0.5)),
        "word": _some(WORDS),
        "tag": pa.array([f"tag {n % 9}" for n in range(ROWS)]),
        "list": _lists(pa.array(RANDOM.integers(0, 99, 3 * ROWS)), ROWS),
        "words": _lists(pa.array([f"w{n}" for n in range(2 * ROWS)]), ROWS),
        "point": pa.StructArray.from_arrays([_some(NUMBERS), WORDS], ["x", "name"]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(RANDOM.random(4 * ROWS)), 4),
        "image": pa.array([RANDOM.bytes(5000 if n % 50 == 0 else 9) for n in range(ROWS)]),
        "nothing": pa.nulls(ROWS),
        "half": pa.concat_arrays([NUMBERS.slice(0, 2_500), _some(NUMBERS.slice(2_500))]),
    }
)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("across") / "t.lance")
    pennon.write_dataset(TABLE, path, max_rows_per_file=ROWS // FRAGMENTS)
    return path


@pytest.fixture(params=["whole maps", "a full account"])
def _account(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Account is kept of what is read of maps once these are larger than the budget."""
    if request.param == "a full account":
        monkeypatch.setattr(resident._OfProcess, "resident", resident.Resident(1 << 16))


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Tell which fields were read from all fragments at once."""
    seen: dict[str, bool] = {}
    real = read_across

    def note(readers: Any, rows: Any) -> Any:
        found = real(readers, rows)
        seen[readers[0]._field.name] = found is not None
        return found

    monkeypatch.setattr(fragment_reader, "read_across", note)
    return seen


def rows_of(seed: int) -> np.ndarray:
    """Return rows in any order, some twice, of one fragment or many."""
    random = np.random.default_rng(seed)
    rows = random.integers(0, ROWS, int(random.integers(1, 300)))
    return np.concatenate([rows, rows[: seed % 5]])


@pytest.mark.usefixtures("_account")
def test_take_across_fragments_equals_arrow(uri: str, spy: dict[str, bool]) -> None:
    dataset = pennon.dataset(uri)
    for seed in range(12):
        rows = rows_of(seed)
        assert dataset.take(rows).equals(TABLE.take(pa.array(rows)))
    together = {name for name, done in spy.items() if done}
    assert {"number", "flag", "word", "list", "words", "point", "vector"} <= together
    assert "nothing" not in together


@pytest.mark.parametrize("columns", [["number"], ["number", "image"]])
def test_take_across_fragments_of_wide_rows(
    uri: str, spy: dict[str, bool], columns: list[str]
) -> None:
    """More rows than a thread reads alone in any case."""
    dataset = pennon.dataset(uri)
    rows = np.random.default_rng(2).integers(0, ROWS, take.FEW_ROWS + 500)
    expected = TABLE.select(columns).take(pa.array(rows))
    assert dataset.take(rows, columns=columns).equals(expected)
    assert not spy  # the file has too many bytes a row


def test_take_across_fragments_of_small_files(tmp_path: Path, spy: dict[str, bool]) -> None:
    table = TABLE.select(["number", "flag"])
    pennon.write_dataset(table, tmp_path / "t.lance", max_rows_per_file=ROWS // FRAGMENTS)
    rows = np.random.default_rng(2).integers(0, ROWS, take.FEW_ROWS + 500)
    assert pennon.dataset(tmp_path / "t.lance").take(rows).equals(table.take(pa.array(rows)))
    assert spy == {"number": True, "flag": True}


@pytest.mark.usefixtures("_account")
def test_take_across_fragments_skips_deleted_rows(tmp_path: Path, spy: dict[str, bool]) -> None:
    path = str(tmp_path / "t.lance")
    pennon.write_dataset(TABLE, path, max_rows_per_file=ROWS // FRAGMENTS)
    lance.dataset(path).delete("number % 7 = 0")
    dataset = pennon.dataset(path)
    numbers = dataset.to_table(columns=["number"])["number"]
    left = TABLE.filter(pa.compute.is_in(TABLE["number"], value_set=numbers))
    assert len(left) == len(dataset.to_table()) < ROWS
    for seed in range(6):
        rows = np.random.default_rng(seed).integers(0, len(left), 200)
        assert dataset.take(rows).equals(left.take(pa.array(rows)))
    assert spy["number"]


def test_take_across_fragments_by_address(uri: str) -> None:
    dataset = pennon.dataset(uri)
    per = ROWS // FRAGMENTS
    for seed in range(4):
        rows = rows_of(seed)
        addresses = (rows // per) << 32 | rows % per
        found = dataset._take_rows(addresses.tolist())
        assert found.equals(TABLE.take(pa.array(rows)))


def _damage(path: Path, spoil: Callable[[bytearray], None]) -> None:
    data = bytearray(path.read_bytes())
    spoil(data)
    path.write_bytes(bytes(data))


def test_take_across_fragments_names_the_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    table = TABLE.select(["number"])
    pennon.write_dataset(table, str(path), max_rows_per_file=ROWS // FRAGMENTS)
    files = {
        f.fragment_id: f.data_files()[0].path for f in pennon.dataset(str(path)).get_fragments()
    }

    def spoil(data: bytearray) -> None:
        data[0:600] = b"\xff" * 600

    _damage(path / "data" / files[3], spoil)
    dataset = pennon.dataset(str(path))
    with pytest.raises(FormatError, match=files[3]):
        dataset.take(list(range(0, ROWS, 10)))
    rows = [0, 1, 2001, ROWS - 1]
    assert dataset.take(rows).equals(table.take(pa.array(rows)))
