"""The columns of a data file's fields, derived without column indices in the manifest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import pennon
from pennon.core.thread_places import processors
from pennon.core.thread_pools import MIN_THREADS
from pennon.core.units import FieldId
from pennon.scan.read.file_columns import FileColumns
from pennon.table.fragment import DataFileRef


@pytest.mark.parametrize(
    ("ids", "numbers", "columns"),
    [
        ((0, 1, 2), (0, 0), {0: 0, 1: 1, 2: 2}),
        ((4, 6), (0, 2), {4: 0, 6: 2}),
        ((-2, 5, 6), (0, 1), {5: 1, 6: 2}),
        ((-2,), (0, 1), {}),
        ((6, 1, 3), (0, 2), {6: 5, 1: 0, 3: 2}),
        ((4, 6), (0, 3), {4: 0, 6: 1}),
        ((4, -2, 6), (2, 0), {4: 0, 6: 2}),
    ],
)
def test_file_columns_without_column_indices_are_derived(
    ids: tuple[int, ...], numbers: tuple[int, int], columns: dict[int, int]
) -> None:
    ref = DataFileRef("a.lance", tuple(map(FieldId, ids)), (), *numbers, None)
    assert FileColumns.of(ref).column_of == columns


@pytest.mark.parametrize(
    ("ids", "gone", "left"),
    [
        ((0, 1, 2), {0}, (-2, 1, 2)),
        ((0, 1, 2), {1}, (0, -2, 2)),
        ((0, 3, 4), {0}, (-2, -2, -2, 3, 4)),
        ((2, 4), {2}, (-2, -2, 4)),
        ((0, 3), {0, 3}, (-2, -2)),
    ],
)
def test_file_columns_keep_their_positions_after_drops(
    ids: tuple[int, ...], gone: set[int], left: tuple[int, ...]
) -> None:
    """In version 0.1 the place of the first id that lives tells which row of the page table it has."""
    ref = DataFileRef("a.lance", tuple(map(FieldId, ids)), (), 0, 2, None)
    rest = ref.without({FieldId(each) for each in gone})
    assert rest.field_ids == left
    known = FileColumns.of(ref).column_of
    assert FileColumns.of(rest).column_of == {i: c for i, c in known.items() if i not in gone}


@pytest.mark.parametrize("condition", [None, "c1 >= 0"])
def test_file_columns_are_computed_once_per_file(
    condition: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, columns, rows = 2, 500, 300
    numbers = np.random.default_rng(4).integers(0, 1 << 62, (columns, files * rows))
    table = pa.table({f"c{n}": each for n, each in enumerate(numbers)})
    pennon.write_dataset(table, tmp_path / "t", max_rows_per_file=rows)
    made, real = [], FileColumns.of

    def of(ref: DataFileRef) -> FileColumns:
        made.append(ref.path)
        return real(ref)

    monkeypatch.setattr(FileColumns, "of", of)
    assert pennon.dataset(tmp_path / "t").to_table(filter=condition).equals(table)
    assert len(set(made)) == files
    assert len(made) <= files * max(processors(), MIN_THREADS)  # threads may begin side by side
