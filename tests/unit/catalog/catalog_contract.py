"""The tests that each catalog passes that can change."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import pennon
from pennon.catalog import Catalog, TableName
from pennon.errors import AlreadyExistsError, ArgumentError, NotFoundError

ROWS = pa.table({"id": [1, 2, 3]})


class CatalogContract:
    """Subclasses say what a new catalog is, and where a table of a name may be written."""

    def new_catalog(self) -> Catalog:
        raise NotImplementedError

    def place(self, name: TableName) -> str | None:
        """The location that is given for a new table; None lets the catalog choose."""
        return None

    def written(self, catalog: Catalog, name: TableName) -> str:
        """Make a table of a name, and return its location."""
        entry = catalog.declare_table(name, location=self.place(name))
        pennon.write_dataset(ROWS, entry.location)
        return entry.location

    def test_namespaces_nest_and_have_properties(self) -> None:
        catalog = self.new_catalog()
        assert catalog.list_namespaces() == []
        catalog.create_namespace(("b",), {"owner": "Ann ü \"'"})
        catalog.create_namespace(("a",))
        catalog.create_namespace(("b", "c.d"))
        assert catalog.list_namespaces() == ["a", "b"]
        assert catalog.list_namespaces(("b",)) == ["c.d"]
        assert catalog.list_namespaces(("b", "c.d")) == []
        assert catalog.describe_namespace(("b",)) == {"owner": "Ann ü \"'"}
        assert catalog.describe_namespace(("b", "c.d")) == {}
        assert catalog.describe_namespace(()) == {}

    def test_create_namespace_that_exists_or_has_no_parent_raises(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("a",), {"k": "v"})
        with pytest.raises(AlreadyExistsError):
            catalog.create_namespace(("a",))
        catalog.create_namespace(("a",), {"k": "w"}, exist_ok=True)
        assert catalog.describe_namespace(("a",)) == {"k": "v"}
        with pytest.raises(NotFoundError, match="no namespace b"):
            catalog.create_namespace(("b", "c"))
        with pytest.raises(AlreadyExistsError):
            catalog.create_namespace(())
        catalog.create_namespace((), exist_ok=True)

    def test_drop_namespace_that_is_full_or_missing_raises(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("a",))
        catalog.create_namespace(("a", "b"))
        with pytest.raises(ArgumentError, match="not empty"):
            catalog.drop_namespace(("a",))
        self.written(catalog, ("a", "b", "t"))
        with pytest.raises(ArgumentError, match="not empty"):
            catalog.drop_namespace(("a", "b"))
        catalog.drop_table(("a", "b", "t"))
        catalog.drop_namespace(("a", "b"))
        catalog.drop_namespace(("a",))
        assert catalog.list_namespaces() == []
        catalog.drop_namespace(("a",), missing_ok=True)
        for name in (("a",), ("a", "b")):
            with pytest.raises(NotFoundError):
                catalog.drop_namespace(name)
        with pytest.raises(ArgumentError):
            catalog.drop_namespace(())

    def test_missing_names_raise_not_found(self) -> None:
        catalog = self.new_catalog()
        for name in (("t",), ("ns", "t")):
            for verb in ("describe_table", "deregister_table", "drop_table"):
                with pytest.raises(NotFoundError, match="no table"):
                    getattr(catalog, verb)(name)
            with pytest.raises(NotFoundError, match="no table"):
                catalog.rename_table(name, ("u",))
        for verb in ("list_namespaces", "list_tables", "describe_namespace"):
            with pytest.raises(NotFoundError, match="no namespace"):
                getattr(catalog, verb)(("ns",))
        with pytest.raises(NotFoundError, match="no namespace"):
            catalog.declare_table(("ns", "t"), location=self.place(("ns", "t")))

    def test_declared_table_is_written_and_read_by_its_entry(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        for name in (("t",), ("ns", "t"), ("ns", "with.dot"), ("ns", "bit`ter"), ("ns", "ünï")):
            location = self.written(catalog, name)
            entry = catalog.describe_table(name)
            assert (entry.name, entry.location, entry.declared) == (name, location, False)
            assert pennon.dataset(entry.location).count_rows() == 3
            with pytest.raises(AlreadyExistsError):
                catalog.declare_table(name, location=self.place(name))
        assert catalog.list_tables() == ["t"]
        assert catalog.list_tables(("ns",)) == ["bit`ter", "t", "with.dot", "ünï"]
        assert catalog.list_namespaces(("ns",)) == []

    def test_properties_of_tables_are_described(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        for name in (("t",), ("ns", "t")):
            catalog.declare_table(name, location=self.place(name), properties={"a": "ü", "b": ""})
            assert catalog.describe_table(name).properties == {"a": "ü", "b": ""}

    def test_drop_table_deletes_its_files_and_frees_its_name(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        for name in (("t",), ("ns", "t")):
            location = self.written(catalog, name)
            assert catalog.drop_table(name).location == location
            with pytest.raises(ValueError):
                pennon.dataset(location)
            with pytest.raises(NotFoundError):
                catalog.describe_table(name)
            assert catalog.list_tables(name[:-1]) == []
            self.written(catalog, name)

    def test_deregistered_table_keeps_its_files_and_is_registered_again(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        for name in (("t",), ("ns", "t")):
            location = self.written(catalog, name)
            assert catalog.deregister_table(name).location == location
            assert catalog.list_tables(name[:-1]) == []
            with pytest.raises(NotFoundError):
                catalog.describe_table(name)
            assert pennon.dataset(location).count_rows() == 3
            assert catalog.register_table(name, location).location == location
            assert catalog.describe_table(name).location == location
            with pytest.raises(AlreadyExistsError):
                catalog.register_table(name, location)

    def test_rename_of_a_table_in_a_namespace_leaves_its_files(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        catalog.create_namespace(("ns", "deep"))
        location = self.written(catalog, ("ns", "t"))
        self.written(catalog, ("ns", "taken"))
        assert catalog.rename_table(("ns", "t"), ("ns", "deep", "u")).location == location
        assert catalog.describe_table(("ns", "deep", "u")).location == location
        assert catalog.list_tables(("ns",)) == ["taken"]
        assert catalog.rename_table(("ns", "taken"), ("ns", "taken")).name == ("ns", "taken")
        with pytest.raises(AlreadyExistsError):
            catalog.rename_table(("ns", "deep", "u"), ("ns", "taken"))
        with pytest.raises(NotFoundError, match="no namespace"):
            catalog.rename_table(("ns", "deep", "u"), ("nowhere", "u"))
        assert pennon.dataset(location).count_rows() == 3

    def test_names_that_no_catalog_holds_raise(self) -> None:
        catalog = self.new_catalog()
        for name in ((), ("",), ("a", ""), ("a\0b",), ("line\nbreak",), ("\ud800",)):
            with pytest.raises(ArgumentError):
                catalog.describe_table(name)
            with pytest.raises(ArgumentError):
                catalog.declare_table(name, location=self.place(("x",)))
        with pytest.raises(ArgumentError):
            catalog.create_namespace(("a\0",))

    def test_catalog_pickles(self) -> None:
        catalog = self.new_catalog()
        catalog.create_namespace(("ns",))
        self.written(catalog, ("ns", "t"))
        other = pickle.loads(pickle.dumps(catalog))
        assert other.list_tables(("ns",)) == ["t"]
