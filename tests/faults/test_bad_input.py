"""Errors for bad arguments, damaged files and unknown flags name the fault, and leave the table unchanged.

A failed operation may leave data files, which clean-up takes for orphans, but no manifest, tag or
branch; and it changes and deletes no file that was there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    CommitError,
    FormatError,
    InvalidRefError,
    LanceError,
    NotFoundError,
    UnsupportedError,
)
from pennon.table.manifest import Manifest
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming
from pennon.table.versions import read_manifest

Do = Callable[[Any], object]
ROWS = pa.table(
    {
        "id": pa.array(range(20), pa.int64()),
        "text": [f"t{number}" for number in range(20)],
        "point": [{"x": number, "y": None} for number in range(20)],
        "list": [[number] for number in range(20)],
    },
    pa.schema(
        [
            ("id", pa.int64()),
            ("text", pa.string()),
            ("point", pa.struct([("x", pa.int64()), ("y", pa.string())])),
            ("list", pa.list_(pa.int64())),
        ]
    ),
)
HIDDEN = ("data/", "_deletions/", "_transactions/", "tree/")
"""Where files lie that count for nothing until a manifest, or a branch's file, names them."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table of two fragments and two versions, a tag, and a branch."""
    path = tmp_path_factory.mktemp("bad") / "t.lance"
    dataset = pennon.write_dataset(ROWS, path, max_rows_per_file=10)
    dataset.delete("id IN (3, 13)")
    dataset.tags.create("first", 1)
    dataset.create_branch("side")
    return path


@pytest.fixture
def path(base: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copytree(base, tmp_path / "t.lance"))
    shutil.rmtree(tmp_path)


def contents(path: Path) -> dict[str, bytes]:
    """Return all files but those that were not finished."""
    files = [file for file in path.rglob("*") if file.is_file() and ".tmp_" not in file.name]
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@dataclass(frozen=True)
class Seen:
    """What is there, and what readers see of it."""

    files: dict[str, bytes]
    version: int
    tags: list[str]
    branches: list[str]

    @classmethod
    def of(cls, path: Path) -> Seen:
        dataset = pennon.dataset(path)
        tags, branches = dataset.tags.list(), dataset.branches.list()
        return cls(contents(path), dataset.version, list(tags), list(branches))


def check_refused(path: Path, do: Do, named: str, error: type[Exception] = LanceError) -> None:
    """Check that something fails with an error that holds a text, and leaves no trace to be seen."""
    before = Seen.of(path)
    with pytest.raises(error) as caught:
        do(pennon.dataset(path))
    assert named in str(caught.value)
    after = Seen.of(path)
    assert {name: after.files.get(name) for name in before.files} == before.files
    new = after.files.keys() - before.files.keys()
    assert all(name.startswith(HIDDEN) for name in new)
    assert (after.version, after.tags, after.branches) == (
        before.version,
        before.tags,
        before.branches,
    )


def merge(on: str | list[str], data: pa.Table) -> Do:
    def run(dataset: Any) -> None:
        builder = dataset.merge_insert(on).when_matched_update_all()
        builder.when_not_matched_insert_all().execute(data)

    return run


def alter(path: str, **change: Any) -> Do:
    return lambda dataset: dataset.alter_columns({"path": path, **change})


TWO = ROWS.slice(1, 2)
REFUSED: dict[str, tuple[Do, str]] = {
    "delete: no such column": (lambda d: d.delete("nope = 1"), "nope"),
    "delete: no SQL": (lambda d: d.delete("id = = 1"), "id = = 1"),
    "delete: no condition": (lambda d: d.delete("id + 1"), "id + 1"),
    "delete: types": (lambda d: d.delete("id = 'abc'"), "id = 'abc'"),
    "delete: two statements": (lambda d: d.delete("true; false"), "true; false"),
    "update: no such column": (lambda d: d.update({"nope": "1"}), "nope"),
    "update: no such source": (lambda d: d.update({"id": "nope"}), "nope"),
    "update: another type": (lambda d: d.update({"id": "text"}), "'id'"),
    "update: a list": (lambda d: d.update({"id": "list"}), "'id'"),
    "update: a struct": (lambda d: d.update({"point": "id"}), "'point'"),
    "update: too large": (lambda d: d.update({"id": "9223372036854775808"}), "'id'"),
    "update: by zero": (lambda d: d.update({"id": "1 / (id - id)"}), "'id'"),
    "update: part of a struct": (lambda d: d.update({"point.x": "1"}), "point.x"),
    "update: row ids": (lambda d: d.update({"_rowid": "1"}), "_rowid"),
    "merge: no such key": (merge("nope", TWO), "nope"),
    "merge: data lacks the key": (merge("id", TWO.drop_columns(["id"])), "'id'"),
    "merge: key of another type": (merge("id", TWO.set_column(0, "id", TWO["text"])), "'id'"),
    "merge: column of another type": (merge("id", TWO.set_column(1, "text", TWO["id"])), "'text'"),
    "merge: a column too many": (merge("id", TWO.append_column("more", TWO["id"])), "'more'"),
    "merge: two for one row": (merge("id", pa.concat_tables([TWO, TWO])), "id = 1"),
    "merge: by a struct": (merge("point", TWO), "'point'"),
    "append: another type": (lambda d: d.insert(TWO.set_column(0, "id", TWO["text"])), "id"),
    "add: taken": (lambda d: d.add_columns({"id": "1"}), "id"),
    "add: no such source": (lambda d: d.add_columns({"a": "1", "b": "nope"}), "nope"),
    "add: values": (lambda d: d.add_columns({"a": "CAST(text AS INT)"}), "'a'"),
    "add: reserved": (lambda d: d.add_columns({"_rowid": "1"}), "_rowid"),
    "add: a zero byte": (lambda d: d.add_columns({"a\0b": "1"}), "a\\x00b"),
    "add: too few rows": (
        lambda d: d.add_columns(TWO.select([]).append_column("n", TWO["id"])),
        "",
    ),
    "drop: no such column": (lambda d: d.drop_columns(["id", "nope"]), "nope"),
    "drop: no such field": (lambda d: d.drop_columns(["point.z"]), "point.z"),
    "drop: all": (lambda d: d.drop_columns(ROWS.column_names), "all"),
    "alter: no such column": (alter("nope", name="more"), "nope"),
    "alter: taken": (alter("id", name="text"), "text"),
    "alter: another kind": (alter("text", data_type=pa.int64()), "text"),
    "alter: values": (alter("id", data_type=pa.int8(), nullable=True), ""),
    "alter: NULLs": (alter("point.y", nullable=False), "point.y"),
    "join: no such column": (lambda d: d.merge(TWO, "nope", "id"), "nope"),
    "join: no such key": (lambda d: d.merge(TWO, "id", "nope"), "nope"),
    "join: taken": (lambda d: d.merge(TWO, "id"), "text"),
    "metadata: no such field": (lambda d: d.update_field_metadata({"nope": {"a": "b"}}), "nope"),
    "checkout: no such version": (lambda d: d.checkout_version(99), "99"),
    "checkout: no such tag": (lambda d: d.checkout_version("nope"), "nope"),
    "checkout: no such branch": (lambda d: d.checkout_version(("nope", 1)), "nope"),
    "tag: taken": (lambda d: d.tags.create("first", 2), "first"),
    "tag: no such version": (lambda d: d.tags.create("new", 99), "99"),
    "tag: no such tag": (lambda d: d.tags.update("nope", 1), "nope"),
    "tag: to no version": (lambda d: d.tags.update("first", 99), "99"),
    "tag: drop none": (lambda d: d.tags.delete("nope"), "nope"),
    "branch: taken": (lambda d: d.create_branch("side"), "side"),
    "branch: of no tag": (lambda d: d.create_branch("new", "nope"), "nope"),
    "branch: drop none": (lambda d: d.branches.delete("nope"), "nope"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_are_refused_with_names(path: Path, name: str) -> None:
    do, named = REFUSED[name]
    if name == "alter: values":
        pennon.dataset(path).update({"id": "id * 1000"})
    check_refused(path, do, named)


NAMES: list[Any] = [
    *("../x", "..", ".", "", "/a", "a/", "a//b", "a\\b", "a b", "a\0b", "a\nb", "%2e%2e%2fx", "C:"),
    *("x.lock", "x..y", "\ud800", "a" * 251, "ä" * 42, "x" * 100_000, None, 5, b"x", ("a",)),
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:20])
def test_invalid_tag_and_branch_names_are_refused(path: Path, name: Any) -> None:
    outside = contents(path.parent)
    shown = repr(name[:100] if isinstance(name, str) else name).strip("'")
    for do in (lambda d: d.tags.create(name, 1), lambda d: d.create_branch(name)):
        check_refused(path, do, shown, InvalidRefError)
    assert contents(path.parent) == outside
    for do in (
        lambda d: d.tags.delete(name),
        lambda d: d.tags.get_version(name),
        lambda d: d.branches.delete(name),
    ):
        check_refused(path, do, "")


@pytest.mark.parametrize("what", ["tag", "branch"])
def test_tag_and_branch_metadata_of_other_types_is_refused(path: Path, what: str) -> None:
    dataset = pennon.dataset(path)
    names = dataset.tags if what == "tag" else dataset.branches
    name = "first" if what == "tag" else "side"
    for wrong in ({"a": 5}, {5: "a"}, {"a": None}):
        do: Do = partial(lambda it, _: names.replace_metadata(name, it), wrong)
        check_refused(path, do, "text", TypeError)


USES: dict[str, Do] = {
    "read": lambda d: d.to_table(),
    "take": lambda d: d.take([0, 12]),
    "delete": lambda d: d.delete("id < 15"),
    "update": lambda d: d.update({"id": "id + 1"}),
    "merge": merge("id", ROWS),
    "add": lambda d: d.add_columns({"more": "id + 1"}),
    "cast": alter("id", data_type=pa.int32()),
    "compact": lambda d: d.optimize.compact_files(),
    "copy": lambda d: d.deep_clone(Path(d.uri).parent / "copy.lance"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("folder", ["data", "_deletions"])
def test_missing_or_truncated_data_and_deletion_files_are_refused(
    path: Path, folder: str, use: str
) -> None:
    file = min((path / folder).iterdir())
    data = file.read_bytes()
    for damage in (None, b"", data[: len(data) // 2]):
        if use == "copy" and damage is not None:
            continue  # whose bytes are copied as they are
        file.unlink(missing_ok=True)
        if damage is not None:
            file.write_bytes(damage)
        error = NotFoundError if damage is None else FormatError
        check_refused(path, USES[use], f"{folder}/{file.name}", error)


def rewrite(path: Path, version: int, change: Callable[[Manifest], Manifest]) -> None:
    """Write a version's manifest anew."""
    manifest = change(read_manifest(pennon.dataset(path).snapshot.store, version))
    (path / Naming.V2.manifest_path(version)).write_bytes(serialize_manifest_file(manifest))


CHANGES: dict[str, Do] = {
    "append": lambda d: d.insert(ROWS),
    "overwrite": lambda d: d.insert(ROWS, mode="overwrite"),
    "delete": lambda d: d.delete("id = 1"),
    "update": lambda d: d.update({"id": "1"}),
    "merge": merge("id", ROWS),
    "add": lambda d: d.add_columns({"more": "1"}),
    "drop": lambda d: d.drop_columns(["text"]),
    "rename": alter("id", name="number"),
    "config": lambda d: d.update_config({"a": "b"}),
    "metadata": lambda d: d.update_schema_metadata({"a": "b"}),
    "compact": lambda d: d.optimize.compact_files(),
    "truncate": lambda d: d.truncate_table(),
    "restore": lambda d: d.checkout_version(1).restore(),
    "branch": lambda d: d.create_branch("new"),
    "clone": lambda d: d.shallow_clone(Path(d.uri).parent / "clone.lance"),
    "copy": lambda d: d.deep_clone(Path(d.uri).parent / "copy.lance"),
    "clean up": lambda d: d.cleanup_old_versions(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_unknown_writer_feature_flag_is_refused(path: Path, change: str) -> None:
    rewrite(path, 2, lambda it: replace(it, writer_flags=it.writer_flags | 1 << 40))
    check_refused(path, CHANGES[change], f"flag {1 << 40}", UnsupportedError)


@pytest.mark.parametrize("change", ["restore", "branch", "clone", "copy"])
def test_restore_branch_and_clone_of_version_with_unknown_writer_flag_are_refused(
    path: Path, change: str
) -> None:
    """What is made of it would lose the flag, but not what the flag is about."""
    rewrite(path, 1, lambda it: replace(it, writer_flags=it.writer_flags | 1 << 40))
    do = {
        "restore": lambda d: d.checkout_version(1).restore(),
        "branch": lambda d: d.create_branch("new", 1),
        "clone": lambda d: d.shallow_clone(Path(d.uri).parent / "clone.lance", 1),
        "copy": lambda d: d.deep_clone(Path(d.uri).parent / "copy.lance", 1),
    }[change]
    check_refused(path, do, f"version 1 of this table, but not write to it: it uses flag {1 << 40}")


GARBAGE = {
    "empty": b"",
    "random": bytes(range(1, 200)),
    "huge": b"\x0a\xff\xff\xff\xff\x0f",
    "zeros": b"\0" * 100,
    "unknown": b"\x08\x01\x12\x04none\xfa\x7f\x02\x08\x01",
    "missing": None,
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_damaged_transaction_file_conflicts_with_older_writers_only(
    path: Path, garbage: str
) -> None:
    """They stand in the way of who planned before them, and of nobody else."""
    found = read_manifest(pennon.dataset(path).snapshot.store, 2).transaction_file
    assert found is not None
    file = path / "_transactions" / found
    rewrite(path, 2, lambda it: replace(it, transaction=None))
    file.unlink()
    data = GARBAGE[garbage]
    if data is not None:
        file.write_bytes(data)
    stale = pennon.dataset(path, version=1)
    check_refused(path, lambda _: stale.insert(ROWS), "version 2", CommitError)
    if garbage in {"random", "huge", "zeros"}:
        check_refused(path, lambda d: d.read_transaction(2), file.name, FormatError)
    pennon.dataset(path).insert(ROWS)
    assert pennon.dataset(path).count_rows() == 38
