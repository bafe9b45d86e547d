"""A folder of tables is one catalog: Pennon and pylance's DirectoryNamespace change it by turns, and see the same."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import unquote

import lance
import lance_namespace as api
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace

import pennon
from pennon.catalog import DirectoryCatalog, TableName
from tests.seeds import each_seed

STEPS = 25
PARTS = ["a", "b", "Train", "data_2", "with space", "x.y", "semi;colon", "it's", "+", "(1)"]
DEEP = ["", "ns", "Other", "with space", "ns"]


def stream(table: pa.Table) -> bytes:
    """The bytes of a table as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def path_of(location: str | None) -> str:
    """A location as a plain path."""
    assert location is not None
    return unquote(location.removeprefix("file://")) if "://" in location else location


class Program:
    """A random program on one folder, and the tables and namespaces that there must be."""

    def __init__(self, seed: int, root: Path) -> None:
        self.rng = Random(seed)
        self.root = root
        self.theirs = DirectoryNamespace(root=str(root))
        self.ours = DirectoryCatalog(root)
        self.namespaces: dict[TableName, dict[str, str]] = {}
        self.tables: dict[TableName, int | None] = {}
        self.properties: dict[TableName, dict[str, str]] = {}
        self.forgotten: dict[TableName, tuple[str, int | None]] = {}
        self.count = 0

    # --- choices ----------------------------------------------------------------------------------

    @property
    def is_ours(self) -> bool:
        return self.rng.random() < 0.5

    def new_table(self, *, nested: bool | None = None) -> TableName:
        spaces = (
            [(), *self.namespaces] if nested is None else list(self.namespaces) if nested else [()]
        )
        while True:
            space = self.rng.choice(spaces)
            # In the root, pylance writes markers of names with other letters into folders of its own.
            parts = PARTS if space else PARTS[:6]
            name = (*space, self.rng.choice(parts) + self.rng.choice(["", "2", "3"]))
            if (
                name not in self.tables
                and name not in self.namespaces
                and name not in self.forgotten
            ):
                return name

    def a_table(self, *, nested: bool | None = None) -> TableName | None:
        found = sorted(name for name in self.tables if nested is None or (len(name) > 1) == nested)
        return self.rng.choice(found) if found else None

    def some_properties(self) -> dict[str, str]:
        return self.rng.choice([{}, {}, {"owner": "Ann", "note": 'quo"te, ü'}])

    # --- steps ------------------------------------------------------------------------------------

    def make_namespace(self) -> None:
        parents = [(), *(each for each in self.namespaces if len(each) < 3)]
        name = (*self.rng.choice(parents), self.rng.choice(["ns", "Other", "with space", "n.s"]))
        if name in self.namespaces or name in self.tables:
            return
        properties = self.some_properties()
        if self.is_ours:
            self.ours.create_namespace(name, properties)
        else:
            self.theirs.create_namespace(
                api.CreateNamespaceRequest(id=list(name), properties=properties)
            )
        self.namespaces[name] = properties

    def drop_namespace(self) -> None:
        if not self.namespaces:
            return
        name = self.rng.choice(sorted(self.namespaces))
        objects = [*self.namespaces, *self.tables]
        is_full = any(each[: len(name)] == name and each != name for each in objects)
        if self.is_ours:
            self.refuses(is_full, ValueError, lambda: self.ours.drop_namespace(name))
        else:
            request = api.DropNamespaceRequest(id=list(name))
            self.refuses(is_full, Exception, lambda: self.theirs.drop_namespace(request))
        if not is_full:
            del self.namespaces[name]

    def make_table(self) -> None:
        name, rows = self.new_table(), pa.table({"n": [self.count]})
        properties = self.some_properties() if len(name) > 1 else {}
        if self.is_ours:
            entry = self.ours.declare_table(name, properties=properties)
            pennon.write_dataset(rows, entry.location)
        else:
            request = api.CreateTableRequest(id=list(name), properties=properties or None)
            self.theirs.create_table(request, stream(rows))
        self.tables[name], self.properties[name] = self.count, properties

    def declare_table(self) -> None:
        name = self.new_table()
        if self.is_ours:
            assert self.ours.declare_table(name).declared
        else:
            self.theirs.declare_table(api.DeclareTableRequest(id=list(name)))
        self.tables[name], self.properties[name] = None, {}

    def fill_declared(self) -> None:
        found = sorted(name for name, value in self.tables.items() if value is None)
        if found:
            name = self.rng.choice(found)
            library = self.rng.choice([pennon, lance])
            location = self.ours.describe_table(name).location
            library.write_dataset(pa.table({"n": [self.count]}), location)
            self.tables[name] = self.count

    def drop_table(self) -> None:
        name = self.a_table()
        if name is None:
            return
        if self.is_ours:
            self.ours.drop_table(name)
        else:
            self.theirs.drop_table(api.DropTableRequest(id=list(name)))
        del self.tables[name]

    def deregister(self) -> None:
        """Forget a name, and perhaps give the table another one in a namespace."""
        name = self.a_table(nested=True)
        if name is None or self.tables[name] is None:
            return
        if self.is_ours:
            place = Path(path_of(self.ours.deregister_table(name).location)).name
        else:
            request = api.DeregisterTableRequest(id=list(name))
            place = Path(path_of(self.theirs.deregister_table(request).location)).name
        self.forgotten[name] = place, self.tables.pop(name)

    def register(self) -> None:
        if not self.forgotten or not self.namespaces:
            return
        old = self.rng.choice(sorted(self.forgotten))
        place, value = self.forgotten.pop(old)
        name = self.new_table(nested=True)
        if self.is_ours:
            self.ours.register_table(name, place)
        else:
            self.theirs.register_table(api.RegisterTableRequest(id=list(name), location=place))
        self.tables[name], self.properties[name] = value, {}

    def hide_root_table(self) -> None:
        """Forget a name of the root namespace, and take it back."""
        name = self.a_table(nested=False)
        if name is not None and self.tables[name] is not None:
            location = self.ours.deregister_table(name).location
            value = self.tables.pop(name)
            self.check()
            self.ours.register_table(name, location)
            self.tables[name], self.properties[name] = value, {}

    def rename(self) -> None:
        """Give a table another name, which pylance cannot."""
        name = self.a_table()
        if name is not None:
            new_name = self.new_table()
            self.ours.rename_table(name, new_name)
            self.tables[new_name] = self.tables.pop(name)
            self.properties[new_name] = self.properties[name]

    def refuses(self, is_full: bool, error: type[Exception], work: Callable[[], object]) -> None:
        if is_full:
            with pytest.raises(error):
                work()
        else:
            work()

    def step(self) -> None:
        self.count += 1
        steps = [
            self.make_namespace,
            self.drop_namespace,
            self.make_table,
            self.make_table,
            self.make_table,
            self.declare_table,
            self.fill_declared,
            self.drop_table,
            self.deregister,
            self.register,
            self.hide_root_table,
            self.rename,
        ]
        self.rng.choice(steps)()

    # --- what both see ----------------------------------------------------------------------------

    def check(self) -> None:
        theirs = self.rng.choice([self.theirs, DirectoryNamespace(root=str(self.root))])
        ours = self.rng.choice([self.ours, DirectoryCatalog(self.root)])
        for space in [(), *self.namespaces]:
            names = sorted(each[-1] for each in self.namespaces if each[:-1] == space)
            assert ours.list_namespaces(space) == names
            spaces = theirs.list_namespaces(api.ListNamespacesRequest(id=list(space)))
            assert sorted(spaces.namespaces) == names
            names = sorted(each[-1] for each in self.tables if each[:-1] == space)
            assert ours.list_tables(space) == names
            assert sorted(theirs.list_tables(api.ListTablesRequest(id=list(space))).tables) == names
        for space, properties in self.namespaces.items():
            assert ours.describe_namespace(space) == properties
            request = api.DescribeNamespaceRequest(id=list(space))
            assert (theirs.describe_namespace(request).properties or {}) == properties
        for name, value in self.tables.items():
            self.check_table(ours, theirs, name, value)

    def check_table(
        self, ours: DirectoryCatalog, theirs: Any, name: TableName, value: int | None
    ) -> None:
        entry = ours.describe_table(name)
        request = api.DescribeTableRequest(id=list(name), check_declared=True)
        found = theirs.describe_table(request)
        assert path_of(found.location) == path_of(entry.location)
        assert (entry.declared, found.is_only_declared) == (value is None, value is None)
        if len(name) > 1:
            assert entry.properties == (found.properties or {}) == self.properties[name]
        if value is not None:
            assert pennon.dataset(entry.location).to_table().to_pylist() == [{"n": value}]
            assert lance.dataset(found.location).to_table().to_pylist() == [{"n": value}]


@each_seed(6)
def test_catalog_changed_by_pennon_and_pylance_in_turns_is_one(seed: int, tmp_path: Path) -> None:
    program = Program(seed, tmp_path / str(seed))
    (tmp_path / str(seed)).mkdir()
    program.namespaces[("first",)] = {}
    if seed % 2:
        program.ours.create_namespace(("first",))
    else:
        program.theirs.create_namespace(api.CreateNamespaceRequest(id=["first"]))
    for _ in range(STEPS):
        program.step()
        program.check()


@pytest.mark.slow
def test_long_programs_of_two_writers_of_one_catalog(tmp_path: Path) -> None:
    for seed in range(100, 140):
        test_catalog_changed_by_pennon_and_pylance_in_turns_is_one.__wrapped__(  # type: ignore[attr-defined]
            seed=seed, tmp_path=tmp_path
        )


# --- two writers at once --------------------------------------------------------------------------


def test_entries_of_both_libraries_that_write_at_once_are_all_listed(tmp_path: Path) -> None:
    """Each change of pylance is an overwrite of the version that it read: put if absent, and tried again."""
    root = str(tmp_path)
    DirectoryCatalog(root).create_namespace(("ns",))

    def ours(writer: int) -> None:
        catalog = DirectoryCatalog(root)
        for number in range(8):
            catalog.declare_table(("ns", f"ours_{writer}_{number}"))
        catalog.drop_table(("ns", f"ours_{writer}_0"))

    def theirs(writer: int) -> None:
        tables = DirectoryNamespace(root=root)
        for number in range(8):
            tables.declare_table(api.DeclareTableRequest(id=["ns", f"theirs_{writer}_{number}"]))
        tables.drop_table(api.DropTableRequest(id=["ns", f"theirs_{writer}_0"]))

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(work, writer) for work in (ours, theirs) for writer in range(2)]
        for job in jobs:
            job.result()
    names = [f"{who}_{n}_{k}" for who in ("ours", "theirs") for n in range(2) for k in range(1, 8)]
    assert DirectoryCatalog(root).list_tables(("ns",)) == sorted(names)
    found = DirectoryNamespace(root=root).list_tables(api.ListTablesRequest(id=["ns"])).tables
    assert sorted(found) == sorted(names)


# --- facts about pylance 14.0.2 -------------------------------------------------------------------


def test_root_tables_of_pylance_are_found_by_folder_and_not_by_row(tmp_path: Path) -> None:
    theirs = DirectoryNamespace(root=str(tmp_path))
    pennon.write_dataset(pa.table({"n": [1]}), tmp_path / "folder.lance")
    theirs.register_table(api.RegisterTableRequest(id=["other"], location="folder.lance"))
    assert theirs.list_tables(api.ListTablesRequest(id=[])).tables == ["folder"]
    with pytest.raises(api.TableNotFoundError):
        theirs.describe_table(api.DescribeTableRequest(id=["other"]))
    with pytest.raises(api.TableNotFoundError):  # to drop one needs its row
        theirs.drop_table(api.DropTableRequest(id=["folder"]))
    catalog = DirectoryCatalog(tmp_path)
    catalog.register_table(("folder",), "folder.lance")
    theirs.drop_table(api.DropTableRequest(id=["folder"]))
    assert not (tmp_path / "folder.lance").exists()


def test_deregistered_root_table_of_pylance_stays_listed(tmp_path: Path) -> None:
    theirs, ours = DirectoryNamespace(root=str(tmp_path)), DirectoryCatalog(tmp_path)
    request = api.CreateTableRequest(id=["t"])
    theirs.create_table(request, stream(pa.table({"n": [1]})))
    theirs.deregister_table(api.DeregisterTableRequest(id=["t"]))
    assert theirs.list_tables(api.ListTablesRequest(id=[])).tables == ours.list_tables() == ["t"]
    ours.deregister_table(("t",))
    assert theirs.list_tables(api.ListTablesRequest(id=[])).tables == ours.list_tables() == []


def test_tables_of_pylance_in_a_missing_namespace_are_listed(tmp_path: Path) -> None:
    theirs, ours = DirectoryNamespace(root=str(tmp_path)), DirectoryCatalog(tmp_path)
    theirs.create_table(api.CreateTableRequest(id=["no", "t"]), stream(pa.table({"n": [1]})))
    assert (ours.list_namespaces(), ours.list_tables(("no",))) == ([], ["t"])
    assert pennon.dataset(ours.describe_table(("no", "t")).location).count_rows() == 1
    ours.create_namespace(("no",))
    assert ours.list_namespaces() == ["no"]


@pytest.mark.parametrize("mark", list('"#%<>?[]^`{|}~*é'))
def test_root_table_with_a_mark_is_not_found_by_pylance(mark: str, tmp_path: Path) -> None:
    theirs, ours = DirectoryNamespace(root=str(tmp_path)), DirectoryCatalog(tmp_path)
    name = f"a{mark}b"
    pennon.write_dataset(pa.table({"n": [1]}), ours.declare_table((name,)).location)
    assert theirs.list_tables(api.ListTablesRequest(id=[])).tables == ours.list_tables() == [name]
    with pytest.raises(api.TableNotFoundError):
        theirs.describe_table(api.DescribeTableRequest(id=[name]))
    ours.create_namespace(("ns",))
    pennon.write_dataset(pa.table({"n": [1]}), ours.declare_table(("ns", name)).location)
    found = theirs.describe_table(api.DescribeTableRequest(id=["ns", name])).location
    assert path_of(found) == ours.describe_table(("ns", name)).location
