"""Tables of old releases, changed by Pennon: appended to, deleted from, compacted, cleaned up.

What their writers left wrong is mended on the way, as pylance mends it, for whoever signs a manifest
vouches for what it says; and pylance reads the same rows after each step.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pennon
from pennon.errors import FormatError
from tests.golden.test_old_releases import DATASETS, READABLE

MIXED = "v0.16.0/wrong_data_version_no_fix.lance"
"""It has files of 0.1 and 2.0, which pylance 14 does not open, and two fragments of one id."""


@pytest.mark.parametrize("folder", [folder for folder, _, _ in READABLE])
def test_tables_of_old_releases_after_changes_are_read_by_pylance(
    folder: str, tmp_path: Path
) -> None:
    path = Path(shutil.copytree(DATASETS / folder, tmp_path / "table"))
    rows = pennon.dataset(path).to_table()
    more = pennon.write_dataset(rows[:2], path, mode="append")
    rows = pa.concat_tables([rows, rows[:2]])
    check(folder, path, rows)
    for fragment in more.get_fragments():
        assert fragment.metadata.num_rows == fragment.count_rows()
    if folder == MIXED:
        with pytest.raises(FormatError, match="two fragments have the id 1"):
            more.delete("foo = 1")
        with pytest.raises(FormatError, match="two fragments have the id 1"):
            more.optimize.compact_files()
    elif len(rows):
        condition = first_row(rows)
        more.delete(condition)
        rows = rows.filter(pc.invert(pc.fill_null(matches(rows, condition), fill_value=False)))
        check(folder, path, rows)
        more.optimize.compact_files()
        check(folder, path, rows)
    more.cleanup_old_versions(older_than=timedelta(0))
    assert len(more.versions()) == 1
    check(folder, path, rows)


def test_config_update_of_mixed_version_table_stays_readable_by_pylance(tmp_path: Path) -> None:
    """A mixture of 0.1 and 2.0, which it reads, gets no flag that says so, with which it would not."""
    path = Path(shutil.copytree(DATASETS / MIXED, tmp_path / "table"))
    pennon.dataset(path).update_config({"a": "b"})
    assert lance.dataset(path).to_table().equals(pennon.dataset(path).to_table())


def first_row(rows: pa.Table) -> str:
    """Return the condition of the first row's value in a column of plain values."""
    for field in rows.schema:
        value = rows[field.name][0].as_py()
        if isinstance(value, int) and not isinstance(value, bool):
            return f"{field.name} = {value}"
        if isinstance(value, str):
            return f"{field.name} = '{value}'"
    return "true"


def matches(rows: pa.Table, condition: str) -> pa.ChunkedArray:
    name, _, value = condition.partition(" = ")
    if not value:
        return pa.chunked_array([pa.array([True] * len(rows))])
    plain = value.strip("'") if value.startswith("'") else int(value)
    return pc.equal(rows[name], plain)


def check(folder: str, path: Path, rows: pa.Table) -> None:
    ours = pennon.dataset(path)
    assert ours.to_table().equals(rows)
    assert ours.count_rows() == len(rows)
    if folder == MIXED:
        return
    ours.validate()
    theirs = lance.dataset(path)
    theirs.validate()
    assert theirs.to_table().equals(rows)
    assert theirs.count_rows() == len(rows)


@pytest.mark.parametrize(
    ("folder", "column"),
    [("v0.8.14/corrupt_index", "vector"), ("v0.21.0/bad_index_fragment_bitmap", "vector")],
)
def test_wrong_index_bitmaps_of_old_releases_are_cleared_by_commits(
    folder: str, column: str, tmp_path: Path
) -> None:
    """Each row is found once, through indices that said too much."""
    path = Path(shutil.copytree(DATASETS / folder, tmp_path / "table"))
    rows = pennon.dataset(path).to_table()
    pennon.write_dataset(rows[:1], path, mode="append")
    theirs = lance.dataset(path)
    count = theirs.count_rows()
    vector = rows[column][0].as_py()
    nearest = {"column": column, "q": vector, "k": count, "nprobes": 1000, "refine_factor": 50}
    found = theirs.to_table(columns=[], nearest=nearest, with_row_id=True)["_rowid"].to_pylist()
    assert len(found) == len(set(found)) == count
