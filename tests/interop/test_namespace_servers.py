"""REST servers and clients of Pennon and pylance use one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance.namespace as theirs_module
import lance_namespace as api
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models.query_table_request_vector import (
    QueryTableRequestVector,
)

import pennon
import pennon.namespace
from pennon.catalog import DirectoryCatalog, RestCatalog
from pennon.errors import ArgumentError, UnsupportedError
from tests.interop.test_catalog import path_of, stream


def use(tables: Any, name: str) -> None:
    """Let a client make, fill, describe, read and drop what is in a namespace of its own.

    No name has a blank: pylance's client writes a plus for it in paths, which its server takes for a plus.
    """
    tables.create_namespace(api.CreateNamespaceRequest(id=[name], properties={"k": "ü"}))
    found = tables.describe_namespace(api.DescribeNamespaceRequest(id=[name]))
    assert found.properties == {"k": "ü"}
    tables.namespace_exists(api.NamespaceExistsRequest(id=[name]))
    rows = pa.table({"n": [1, 2, 3]})
    for part in ("a", "b-c"):
        request = api.CreateTableRequest(id=[name, part], properties={"p": "q"})
        assert tables.create_table(request, stream(rows)).version == 1
    tables.declare_table(api.DeclareTableRequest(id=[name, "d"]))
    assert tables.list_tables(api.ListTablesRequest(id=[name])).tables == ["a", "b-c", "d"]
    page = tables.list_tables(api.ListTablesRequest(id=[name], limit=2))
    assert (page.tables, page.page_token) == (["a", "b-c"], "b-c")
    asked = api.DescribeTableRequest(id=[name, "a"], load_detailed_metadata=True)
    found = tables.describe_table(asked)
    assert (found.table, found.namespace, found.version) == ("a", [name], 1)
    assert (found.properties, found.is_only_declared) == ({"p": "q"}, False)
    assert [(each.name, each.type.type) for each in found.var_schema.fields] == [("n", "int64")]
    tables.table_exists(api.TableExistsRequest(id=[name, "a"]))
    added = tables.insert_into_table(api.InsertIntoTableRequest(id=[name, "a"]), stream(rows))
    assert added.version == 2
    counted = tables.count_table_rows(api.CountTableRowsRequest(id=[name, "a"], predicate="n > 1"))
    assert counted.count == 4
    query = api.QueryTableRequest(id=[name, "a"], k=10, filter="n = 3", vector=NO_VECTOR)
    with pa.ipc.open_file(tables.query_table(query).data) as reader:
        assert reader.read_all().to_pylist() == [{"n": 3}, {"n": 3}]
    tables.create_table_tag(api.CreateTableTagRequest(id=[name, "a"], tag="one", version=1))
    tag = tables.get_table_tag_version(api.GetTableTagVersionRequest(id=[name, "a"], tag="one"))
    assert tag.version == 1
    with pytest.raises(api.TableNotFoundError):
        tables.describe_table(api.DescribeTableRequest(id=[name, "no"]))
    with pytest.raises(api.NamespaceNotFoundError):
        tables.describe_namespace(api.DescribeNamespaceRequest(id=["nowhere"]))
    with pytest.raises(api.NamespaceAlreadyExistsError):
        tables.create_namespace(api.CreateNamespaceRequest(id=[name]))
    with pytest.raises(api.TableAlreadyExistsError):
        tables.create_table(api.CreateTableRequest(id=[name, "a"]), stream(rows))
    with pytest.raises(api.NamespaceNotEmptyError):
        tables.drop_namespace(api.DropNamespaceRequest(id=[name]))
    for part in ("a", "b-c", "d"):
        tables.drop_table(api.DropTableRequest(id=[name, part]))
    tables.drop_namespace(api.DropNamespaceRequest(id=[name]))
    assert tables.list_namespaces(api.ListNamespacesRequest(id=[])).namespaces == []


NO_VECTOR = QueryTableRequestVector()


@pytest.mark.parametrize("delimiter", ["$", "@"])
def test_clients_of_both_use_servers_of_both(delimiter: str, tmp_path: Path) -> None:
    for server_of in (theirs_module, pennon.namespace):
        for client_of in (theirs_module, pennon.namespace):
            root = tmp_path / f"{server_of.__name__}-{client_of.__name__}"
            root.mkdir()
            with server_of.RestAdapter("dir", {"root": str(root)}, port=0) as server:
                uri = f"http://127.0.0.1:{server.port}"
                use(client_of.RestNamespace(uri=uri, delimiter=delimiter), "ns")


def test_directory_namespaces_of_both_behave_alike(tmp_path: Path) -> None:
    for library in (theirs_module, pennon.namespace):
        use(library.DirectoryNamespace(root=str(tmp_path)), "ns")


def test_rest_catalog_on_the_server_of_pylance(tmp_path: Path) -> None:
    with theirs_module.RestAdapter("dir", {"root": str(tmp_path)}, port=0) as server:
        catalog = RestCatalog(f"http://127.0.0.1:{server.port}")
        catalog.create_namespace(("ns",), {"k": "v"})
        catalog.create_namespace(("ns",), exist_ok=True)
        entry = catalog.declare_table(("ns", "t t"), properties={"p": "q"})
        assert entry.declared
        pennon.write_dataset(pa.table({"n": [1]}), entry.location)
        found = catalog.describe_table(("ns", "t t"))
        assert (found.location, found.declared) == (entry.location, False)
        assert (found.properties, catalog.list_tables(("ns",))) == ({"p": "q"}, ["t t"])
        with pytest.raises(UnsupportedError):
            catalog.rename_table(("ns", "t t"), ("ns", "u"))
        with pytest.raises(ArgumentError, match="not empty"):
            catalog.drop_namespace(("ns",))
        folder = Path(path_of(catalog.deregister_table(("ns", "t t")).location)).name
        assert catalog.register_table(("ns", "u"), folder).declared is False
        catalog.drop_table(("ns", "u"))
        catalog.drop_namespace(("ns",))
        assert DirectoryCatalog(tmp_path).list_namespaces() == catalog.list_namespaces() == []
