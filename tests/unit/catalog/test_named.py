"""A dict of names and places as a catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

import pennon
from pennon.catalog import Catalog, NamedTables, TableName
from pennon.errors import ArgumentError, NotFoundError
from tests.unit.catalog.catalog_contract import ROWS, CatalogContract


class TestNamedTables(CatalogContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def new_catalog(self) -> Catalog:
        return NamedTables()

    def place(self, name: TableName) -> str | None:
        return str(self.folder / f"{abs(hash(name))}.lance")


def test_named_tables_of_a_dict_nest_by_dots(tmp_path: Path) -> None:
    pennon.write_dataset(ROWS, tmp_path / "t.lance")
    catalog = NamedTables(
        {
            "t": tmp_path / "t.lance",
            "a.b.`c.d`": str(tmp_path / "t.lance"),
            ("x", "y"): "s3://bucket/y.lance",
        }
    )
    assert catalog.list_tables() == ["t"]
    assert catalog.list_namespaces() == ["a", "x"]
    assert catalog.list_namespaces(("a",)) == ["b"]
    assert catalog.list_tables(("a", "b")) == ["c.d"]
    assert pennon.dataset(catalog.describe_table(("a", "b", "c.d")).location).count_rows() == 3
    assert catalog.describe_table(("x", "y")).location == "s3://bucket/y.lance"


def test_named_tables_never_print_their_options() -> None:
    catalog = NamedTables({"t": "s3://bucket/t.lance"}, {"aws_secret_access_key": "hidden-key"})
    entry = catalog.describe_table(("t",))
    assert entry.storage_options == {"aws_secret_access_key": "hidden-key"}
    assert "hidden" not in f"{catalog!r} {entry!r}"


def test_named_tables_declare_without_a_place_raises(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="give its location"):
        NamedTables().declare_table(("t",))
    with pytest.raises(NotFoundError, match="no table to register"):
        NamedTables().register_table(("t",), str(tmp_path / "none.lance"))
