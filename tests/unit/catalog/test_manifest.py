"""``__manifest``: many writers, damaged bytes, and rows that lie."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import pennon
from pennon.catalog import DirectoryCatalog
from pennon.errors import AlreadyExistsError, FormatError, LanceError, NotFoundError
from tests.unit.catalog.catalog_contract import ROWS

COLUMNS = ["object_id", "object_type", "location", "metadata"]


def manifest(folder: Path, *rows: tuple[str | None, ...]) -> DirectoryCatalog:
    """A catalog whose ``__manifest`` was written by hand."""
    columns = [pa.array([row[at] for row in rows], pa.string()) for at in range(4)]
    pennon.write_dataset(pa.table(columns, COLUMNS), folder / "__manifest", mode="overwrite")
    return DirectoryCatalog(folder)


# --- many writers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["folder", "memory"])
def test_names_declared_by_many_threads_are_all_listed(scheme: str, tmp_path: Path) -> None:
    root = str(tmp_path) if scheme == "folder" else f"memory://{uuid.uuid4().hex}"
    DirectoryCatalog(root).create_namespace(("ns",))

    def work(writer: int) -> int:
        catalog = DirectoryCatalog(root)
        won = 0
        for number in range(6):
            catalog.declare_table(("ns", f"own_{writer}_{number}"))
            try:
                catalog.declare_table(("ns", f"shared_{number}"))
                won += 1
            except AlreadyExistsError:
                pass
        catalog.rename_table(("ns", f"own_{writer}_0"), ("ns", f"new_{writer}"))
        catalog.drop_table(("ns", f"own_{writer}_1"))
        return won

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 6
    own = {f"own_{writer}_{number}" for writer in range(6) for number in range(2, 6)}
    expected = own | {f"shared_{n}" for n in range(6)} | {f"new_{n}" for n in range(6)}
    catalog = DirectoryCatalog(root)
    assert catalog.list_tables(("ns",)) == sorted(expected)
    assert all(catalog.describe_table(("ns", name)).declared for name in expected)


WRITER = """
import sys
from pennon.catalog import DirectoryCatalog
from pennon.errors import AlreadyExistsError

root, writer = sys.argv[1:]
catalog = DirectoryCatalog(root)
catalog.create_namespace(("ns",), exist_ok=True)
for number in range(8):
    catalog.declare_table(("ns", f"own_{writer}_{number}"))
    try:
        catalog.declare_table(("ns", f"shared_{number}"))
        print("won", number)
    except AlreadyExistsError:
        pass
"""


def test_names_declared_by_many_processes_are_all_listed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    started = [
        subprocess.Popen([*command, str(writer)], stdout=subprocess.PIPE, text=True)
        for writer in range(3)
    ]
    said = [each.communicate()[0] for each in started]
    assert [each.returncode for each in started] == [0, 0, 0]
    won = sorted(line for text in said for line in text.splitlines())
    assert won == [f"won {number}" for number in range(8)]
    own = {f"own_{writer}_{number}" for writer in range(3) for number in range(8)}
    expected = sorted(own | {f"shared_{number}" for number in range(8)})
    assert DirectoryCatalog(tmp_path).list_tables(("ns",)) == expected


def test_namespace_dropped_while_tables_are_declared_in_it_leaves_no_orphans(
    tmp_path: Path,
) -> None:
    """Either the table is first, and the namespace is not empty, or there is no namespace for it."""
    for number in range(12):
        root = tmp_path / str(number)
        DirectoryCatalog(root).create_namespace(("ns",))

        def drop(root: Path = root) -> bool:
            try:
                DirectoryCatalog(root).drop_namespace(("ns",))
            except LanceError:
                return False
            return True

        def declare(root: Path = root) -> bool:
            try:
                DirectoryCatalog(root).declare_table(("ns", "t"))
            except NotFoundError:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            dropped, declared = pool.submit(drop), pool.submit(declare)
            assert dropped.result() != declared.result()
        spaces = DirectoryCatalog(root).list_namespaces()
        assert spaces == (["ns"] if declared.result() else [])


def test_many_changes_keep_few_files(tmp_path: Path) -> None:
    catalog = DirectoryCatalog(tmp_path)
    catalog.create_namespace(("ns",))
    for number in range(70):
        catalog.create_namespace(("ns", f"n{number}"))
    assert len(catalog.list_namespaces(("ns",))) == 70
    assert len(pennon.dataset(tmp_path / "__manifest").get_fragments()) <= 33


def test_ten_thousand_tables_of_a_namespace_are_listed(tmp_path: Path) -> None:
    rows: list[tuple[str | None, ...]] = [("ns", "namespace", None, None)]
    rows += [
        (f"ns$t{number}", "table", f"{number:08x}_ns$t{number}", None) for number in range(10_000)
    ]
    assert len(manifest(tmp_path, *rows).list_tables(("ns",))) == 10_000


# --- rows that lie --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "../outside",
        "/etc",
        "a/../../outside",
        "%2e%2e/outside",
        "file:///etc",
        "s3://bucket/t",
        "",
        None,
        ".",
        "..",
        "a\\b",
        "a\0b",
        "__manifest",
        "__manifest/data",
    ],
)
def test_location_in_the_manifest_that_leaves_the_root_raises(
    location: str | None, tmp_path: Path
) -> None:
    pennon.write_dataset(ROWS, tmp_path / "outside")
    catalog = manifest(
        tmp_path / "root", ("ns", "namespace", None, None), ("ns$t", "table", location, None)
    )
    assert catalog.list_tables(("ns",)) == ["t"]
    for work in (catalog.describe_table, catalog.drop_table, catalog.deregister_table):
        with pytest.raises(FormatError):
            work(("ns", "t"))
    assert pennon.dataset(tmp_path / "outside").count_rows() == 3
    assert catalog.list_namespaces() == ["ns"]


@pytest.mark.parametrize(
    "metadata", ["{", "[]", "7", '{"a": 1}', '"text"', "[" * 100_000, "", "null"]
)
def test_properties_in_the_manifest_without_texts_raise(metadata: str, tmp_path: Path) -> None:
    catalog = manifest(
        tmp_path, ("ns", "namespace", None, metadata), ("ns$t", "table", "t", metadata)
    )
    with pytest.raises(FormatError, match="properties"):
        catalog.describe_namespace(("ns",))
    with pytest.raises(FormatError, match="properties"):
        catalog.describe_table(("ns", "t"))
    assert catalog.list_tables(("ns",)) == ["t"]


def test_manifest_rows_without_id_or_of_unknown_type_are_kept_and_not_listed(
    tmp_path: Path,
) -> None:
    rows: tuple[tuple[str | None, ...], ...] = (
        (None, "table", "x", None),
        ("view", "view", None, None),
        ("", "namespace", None, None),
        ("ns", "namespace", None, None),
        ("ns$t$00000000000000000001", "table_version", None, "{}"),
        ("ns$t", "table", "t", None),
        ("ns$", "table", "empty", None),
        ("ns$$x", "table", "odd", None),
        (None, None, None, None),
    )
    catalog = manifest(tmp_path, *rows)
    assert catalog.list_namespaces() == ["", "ns"]
    assert catalog.list_tables(("ns",)) == ["", "t"]
    with pytest.raises(NotFoundError):
        catalog.describe_table(("ns", "view"))
    catalog.create_namespace(("more",))
    catalog.drop_namespace(("more",))
    assert pennon.dataset(tmp_path / "__manifest").count_rows() == len(rows)
    with pytest.raises(LanceError, match="keeps track of the versions"):
        catalog.rename_table(("ns", "t"), ("ns", "u"))
    catalog.deregister_table(("ns", "t"))
    assert pennon.dataset(tmp_path / "__manifest").count_rows() == len(rows) - 2


def test_manifest_of_other_columns_raises(tmp_path: Path) -> None:
    pennon.write_dataset(ROWS, tmp_path / "__manifest")
    pennon.write_dataset(ROWS, tmp_path / "t.lance")
    catalog = DirectoryCatalog(tmp_path)
    with pytest.raises(FormatError, match="no column 'object_id'"):
        catalog.list_namespaces()
    wrong = pa.table({name: [1] for name in COLUMNS})
    pennon.write_dataset(wrong, tmp_path / "__manifest", mode="overwrite")
    with pytest.raises(FormatError, match="holds int64"):
        catalog.list_namespaces()
    assert catalog.list_tables() == ["t"]
    assert catalog.describe_table(("t",)).properties == {}


def test_damaged_manifests_give_typed_errors_and_leave_root_tables(tmp_path: Path) -> None:
    """Each file of ``__manifest`` is cut, emptied, or gets random bytes."""
    pennon.write_dataset(ROWS, tmp_path / "t.lance")
    catalog = DirectoryCatalog(tmp_path)
    catalog.create_namespace(("ns",), {"k": "v"})
    catalog.declare_table(("ns", "t"))
    rng = Random(7)
    for path in sorted((tmp_path / "__manifest").rglob("*")):
        if path.is_file():
            whole = path.read_bytes()
            for bad in _damaged(whole, rng):
                path.write_bytes(bad)
                _list_all(DirectoryCatalog(tmp_path))
            path.write_bytes(whole)
    assert DirectoryCatalog(tmp_path).list_tables(("ns",)) == ["t"]


def _damaged(whole: bytes, rng: Random) -> Iterator[bytes]:
    yield b""
    yield whole[: len(whole) // 2]
    for _ in range(25):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        yield bytes(bad)


def _list_all(catalog: DirectoryCatalog) -> None:
    assert catalog.list_tables() == ["t"]
    for work in (
        catalog.list_namespaces,
        lambda: catalog.list_tables(("ns",)),
        lambda: catalog.describe_namespace(("ns",)),
        lambda: catalog.describe_table(("ns", "t")),
    ):
        with suppress(LanceError):
            work()
    assert catalog.describe_table(("t",)).name == ("t",)
