"""Data files in other places than the table's own, written and read by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, UntrustedPathError

ROWS = pa.table({"a": [1, 2, 3]})
CUT: dict[str, Any] = {"max_rows_per_file": 1, "data_storage_version": "2.2"}


def places(lib: Any, folder: Path) -> list[Any]:
    return [
        lib.DatasetBasePath(str(folder / "one"), name="one", id=4),
        lib.DatasetBasePath(str(folder / "two"), name="two", is_dataset_root=True, id=7),
    ]


def files_of(folder: Path) -> dict[str, int]:
    """Return how many data files lie in each folder."""
    found: dict[str, int] = {}
    for path in folder.rglob("*.lance"):
        if path.is_file():
            where = str(path.parent.relative_to(folder))
            found[where] = found.get(where, 0) + 1
    return found


def ids_of(dataset: Any) -> list[int | None]:
    return [file.base_id for f in dataset.get_fragments() for file in f.data_files()]


def write(lib: Any, folder: Path, **trusted: Any) -> tuple[dict[str, int], list[int | None]]:
    """Make a table whose files lie in several places, and append to it."""
    uri = str(folder / "t")
    bases = places(lib, folder)
    lib.write_dataset(ROWS, uri, initial_bases=bases, target_bases=["one"], **CUT)
    handle = lib.dataset(uri, **trusted)
    lib.write_dataset(ROWS, handle, mode="append", target_bases=["two", "one"], **CUT)
    lib.write_dataset(ROWS, uri, mode="append", target_bases=[str(folder / "two")], **CUT)
    made = lib.write_dataset(
        ROWS, lib.dataset(uri, **trusted), mode="append", target_all_bases=True, **CUT
    )
    return files_of(folder), ids_of(made)


def test_base_path_tables_equal_those_of_pylance(tmp_path: Path) -> None:
    ours = write(pennon, tmp_path / "ours", trusted_bases=[tmp_path / "ours"])
    theirs = write(lance, tmp_path / "theirs")
    assert ours == theirs
    assert ours[0] == {"one": 5, "two/data": 6, "t/data": 1}
    for name in ("ours", "theirs"):
        uri = str(tmp_path / name / "t")
        mine = pennon.dataset(uri, trusted_bases=[tmp_path])
        assert lance.dataset(uri).to_table() == mine.to_table()
        assert mine.count_rows() == 12


def test_changes_of_base_path_tables_write_to_the_root(tmp_path: Path) -> None:
    """What is changed is written into the table's own folder."""
    write(pennon, tmp_path, trusted_bases=[tmp_path])
    uri = str(tmp_path / "t")
    dataset = pennon.dataset(uri, trusted_bases=[tmp_path])
    dataset.delete("a = 1")
    dataset.update({"a": "a + 10"}, where="a = 2")
    dataset.add_columns({"b": "a * 2"})
    expected = {"a": [3, 12] * 4, "b": [6, 24] * 4}
    for _ in range(2):
        for found in (dataset, lance.dataset(uri)):
            rows = found.to_table().sort_by("a").to_pydict()
            assert {name: sorted(column) for name, column in rows.items()} == {
                name: sorted(column) for name, column in expected.items()
            }
        dataset.optimize.compact_files()
    assert set(ids_of(dataset)) == {None}


def test_base_paths_in_wrong_combinations_are_refused(tmp_path: Path) -> None:
    uri, bases = str(tmp_path / "t"), places(pennon, tmp_path)
    with pytest.raises(ArgumentError, match="no base path 'x'; its base paths are: 'one', 'two'"):
        pennon.write_dataset(ROWS, uri, initial_bases=bases, target_bases=["x"])
    with pytest.raises(ArgumentError, match="clashes"):
        pennon.write_dataset(ROWS, uri, initial_bases=[bases[0], bases[0]])
    with pytest.raises(ArgumentError, match="not both"):
        pennon.write_dataset(
            ROWS, uri, initial_bases=bases, target_bases=["one"], target_all_bases=True
        )
    assert not Path(uri).exists()
    pennon.write_dataset(ROWS, uri, initial_bases=bases)
    for mode in ("append", "overwrite"):
        with pytest.raises(ArgumentError, match="only a new table"):
            pennon.write_dataset(ROWS, uri, mode=mode, initial_bases=bases)
    strict = pennon.dataset(uri, trusted_bases=[])
    with pytest.raises(UntrustedPathError, match="trusted_bases"):
        pennon.write_dataset(ROWS, strict, mode="append", target_bases=["one"])
    assert files_of(tmp_path) == {"t/data": 1}


def test_base_paths_added_by_this_process_are_trusted(tmp_path: Path) -> None:
    """By name or path, from the table's making on; what another process named is read only."""
    uri, bases = str(tmp_path / "t"), places(pennon, tmp_path)
    pennon.write_dataset(ROWS, uri, initial_bases=bases[:1], target_bases=["one"])
    pennon.dataset(uri).add_bases(bases[1:])
    made = pennon.write_dataset(ROWS, uri, mode="append", target_bases=["two"])
    assert made.count_rows() == pennon.dataset(uri).to_table().num_rows == 6
    foreign = str(tmp_path / "foreign")
    lance.write_dataset(
        ROWS, foreign, initial_bases=places(lance, tmp_path), target_bases=["one"], **CUT
    )
    assert pennon.dataset(foreign).to_table().num_rows == 3
    with pytest.raises(UntrustedPathError, match="may not be written"):
        pennon.write_dataset(ROWS, foreign, mode="append", target_bases=["one"])
    with pytest.raises(UntrustedPathError, match="may not be read"):
        pennon.dataset(foreign, trusted_bases=[]).to_table()


def test_table_of_symbolic_links_is_read_and_extended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As caches of Hugging Face, DVC and git-annex have them: manifests and data files, too."""
    kept = tmp_path / "blobs"
    kept.mkdir()
    uri = str(tmp_path / "snapshot")
    lance.write_dataset(ROWS, uri)
    for number, path in enumerate(sorted(Path(uri).rglob("*"))):
        if path.is_file():
            path.rename(kept / f"{number}")
            path.symlink_to(kept / f"{number}")
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert pennon.dataset(uri).to_table() == ROWS
    assert pennon.dataset(uri, trusted_bases=[kept]).to_table() == ROWS
    with pytest.raises(UntrustedPathError):
        pennon.dataset(uri, trusted_bases=[])
    pennon.write_dataset(ROWS, uri, mode="overwrite").cleanup_old_versions(retain_versions=1)
    assert pennon.dataset(uri).to_table() == ROWS
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before
    monkeypatch.setenv("PENNON_TRUSTED_BASES", "")
    assert pennon.dataset(uri).to_table() == ROWS
