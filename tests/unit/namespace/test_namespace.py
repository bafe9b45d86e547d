"""Namespaces under the interface of lance_namespace: a folder, and a REST server in front of it."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance_namespace as api
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError
from pennon.namespace import (
    CatalogNamespace,
    DirectoryNamespace,
    DynamicContextProvider,
    RestAdapter,
    RestNamespace,
    connect,
)
from pennon.namespace.routes import ROUTES, request_name
from pennon.namespace.schema_json import schema_to_json
from tests.examples import run_examples

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


def stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


@pytest.fixture(params=["directory", "rest"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "directory":
        yield DirectoryNamespace(root=str(tmp_path))
        return
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as server:
        yield RestNamespace(uri=f"http://127.0.0.1:{server.port}")


@pytest.fixture
def images(tables: Any) -> Any:
    """A namespace with the table ``ns.t``."""
    tables.create_namespace(api.CreateNamespaceRequest(id=["ns"], properties={"k": "v"}))
    made = tables.create_table(
        api.CreateTableRequest(id=["ns", "t"], properties={"p": "ü"}), stream(ROWS)
    )
    assert made.version == 1
    return tables


@pytest.mark.parametrize(
    "name",
    [
        "CatalogNamespace",
        "DirectoryNamespace",
        "DynamicContextProvider",
        "RestAdapter",
        "RestNamespace",
        "connect",
    ],
)
def test_the_example_of_a_public_name_of_namespace_runs(name: str) -> None:
    uri = f"memory://{uuid.uuid4().hex}/root"
    value = getattr(pennon.namespace, name)
    run_examples(name, value, {"pennon": pennon, "pa": pa, "uri": uri})


def test_routes_name_methods_and_models_of_the_package() -> None:
    for operation, route in ROUTES.items():
        assert hasattr(api.LanceNamespace, operation)
        assert hasattr(api, request_name(operation))
        assert hasattr(api, route.response)
        assert operation in vars(CatalogNamespace)
        assert operation in vars(RestNamespace)


def test_module_hands_on_the_models_of_the_package() -> None:
    assert pennon.namespace.ListTablesRequest is api.ListTablesRequest
    with pytest.raises(AttributeError):
        _ = pennon.namespace.NoSuchRequest


def test_errors_are_those_of_the_package(images: Any) -> None:
    cases: list[tuple[type[Exception], str, Any]] = [
        (api.NamespaceNotFoundError, "describe_namespace", api.DescribeNamespaceRequest(id=["no"])),
        (api.NamespaceNotFoundError, "namespace_exists", api.NamespaceExistsRequest(id=["no"])),
        (api.NamespaceNotFoundError, "list_tables", api.ListTablesRequest(id=["no"])),
        (api.NamespaceNotFoundError, "declare_table", api.DeclareTableRequest(id=["no", "t"])),
        (
            api.NamespaceAlreadyExistsError,
            "create_namespace",
            api.CreateNamespaceRequest(id=["ns"]),
        ),
        (api.NamespaceNotEmptyError, "drop_namespace", api.DropNamespaceRequest(id=["ns"])),
        (api.TableNotFoundError, "describe_table", api.DescribeTableRequest(id=["ns", "no"])),
        (api.TableNotFoundError, "table_exists", api.TableExistsRequest(id=["no"])),
        (api.TableNotFoundError, "drop_table", api.DropTableRequest(id=["ns", "no"])),
        (api.TableNotFoundError, "count_table_rows", api.CountTableRowsRequest(id=["ns", "no"])),
        (api.TableAlreadyExistsError, "declare_table", api.DeclareTableRequest(id=["ns", "t"])),
        (api.InvalidInputError, "describe_table", api.DescribeTableRequest(id=[])),
        (api.InvalidInputError, "describe_table", api.DescribeTableRequest(id=["a\nb"])),
        (
            api.InvalidInputError,
            "create_namespace",
            api.CreateNamespaceRequest(id=["x"], mode="odd"),
        ),
        (api.InvalidInputError, "list_tables", api.ListTablesRequest(id=["ns"], limit=0)),
        (
            api.InvalidInputError,
            "delete_from_table",
            api.DeleteFromTableRequest(id=["ns", "t"], predicate="no such"),
        ),
        (
            api.UnsupportedOperationError,
            "get_table_stats",
            api.GetTableStatsRequest(id=["ns", "t"]),
        ),
    ]
    for error, operation, request in cases:
        with pytest.raises(error):
            getattr(images, operation)(request)


def test_listings_come_in_pages(images: Any) -> None:
    for name in ("a", "b", "c"):
        images.declare_table(api.DeclareTableRequest(id=["ns", name]))
    first = images.list_tables(api.ListTablesRequest(id=["ns"], limit=3))
    assert (first.tables, first.page_token) == (["a", "b", "c"], "c")
    rest = images.list_tables(api.ListTablesRequest(id=["ns"], page_token="c", limit=3))
    assert (rest.tables, rest.page_token) == (["t"], None)
    written = images.list_tables(api.ListTablesRequest(id=["ns"], include_declared=False))
    assert written.tables == ["t"]
    assert images.list_namespaces(api.ListNamespacesRequest(id=[], limit=1)).namespaces == ["ns"]


def test_description_has_properties_version_and_schema(images: Any) -> None:
    found = images.describe_table(
        api.DescribeTableRequest(id=["ns", "t"], load_detailed_metadata=True)
    )
    assert (found.table, found.namespace, found.version) == ("t", ["ns"], 1)
    assert (found.properties, found.is_only_declared) == ({"p": "ü"}, False)
    fields = [(each.name, each.type.type) for each in found.var_schema.fields]
    assert fields == [("id", "int64"), ("name", "utf8")]
    assert pennon.dataset(found.location).count_rows() == 3


def test_create_table_modes(images: Any) -> None:
    def create(mode: str, rows: pa.Table = ROWS) -> Any:
        return images.create_table(api.CreateTableRequest(id=["ns", "t"], mode=mode), stream(rows))

    with pytest.raises(api.TableAlreadyExistsError):
        create("Create")
    assert create("ExistOk").location
    assert create("exist_ok").version is None
    assert create("Overwrite", ROWS.slice(1)).version == 2
    assert images.count_table_rows(api.CountTableRowsRequest(id=["ns", "t"])).count == 2
    with pytest.raises(api.InvalidInputError, match="no mode"):
        create("replace")


def test_create_table_with_damaged_data_takes_no_name(images: Any) -> None:
    for data in (b"", b"no stream", stream(ROWS)[:-50]):
        with pytest.raises(api.InvalidInputError, match="Arrow IPC"):
            images.create_table(api.CreateTableRequest(id=["ns", "u"]), data)
    bad = pa.table({"x": [1], "y": [2]}).rename_columns(["x", "x"])
    with pytest.raises(api.LanceNamespaceError):
        images.create_table(api.CreateTableRequest(id=["ns", "u"]), stream(bad))
    assert images.list_tables(api.ListTablesRequest(id=["ns"])).tables == ["t"]


def test_rows_are_inserted_merged_updated_deleted_and_queried(images: Any) -> None:
    name = ["ns", "t"]
    added = images.insert_into_table(api.InsertIntoTableRequest(id=name), stream(ROWS.slice(0, 1)))
    assert (added.num_inserted_rows, added.version) == (1, 2)
    assert (
        images.count_table_rows(api.CountTableRowsRequest(id=name, predicate="id = 1")).count == 2
    )
    assert images.count_table_rows(api.CountTableRowsRequest(id=name, version=1)).count == 3
    images.delete_from_table(api.DeleteFromTableRequest(id=name, predicate="id = 1"))
    changed = images.update_table(
        api.UpdateTableRequest(id=name, predicate="id = 2", updates=[["name", "'z'"]])
    )
    assert changed.updated_rows == 1
    request = api.MergeInsertIntoTableRequest(
        id=name, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True
    )
    rows = pa.table({"id": [3, 4], "name": ["new", "more"]})
    merged = images.merge_insert_into_table(request, stream(rows))
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 1)
    vector = api_model("QueryTableRequestVector")()
    query = api.QueryTableRequest(id=name, k=10, filter="id > 2", vector=vector)
    found = pa.ipc.open_file(images.query_table(query).data).read_all()
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 3, "name": "new"},
        {"id": 4, "name": "more"},
    ]
    overwritten = images.insert_into_table(
        api.InsertIntoTableRequest(id=name, mode="Overwrite"), stream(ROWS)
    )
    assert overwritten.num_inserted_rows == 3
    assert images.count_table_rows(api.CountTableRowsRequest(id=name)).count == 3


def api_model(name: str) -> Any:
    from lance_namespace_urllib3_client import models

    return getattr(models, name)


def test_query_for_nearest_vectors_and_columns(tables: Any) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 1, 5, 5], pa.float32()), 2)
    rows = pa.table({"id": [0, 1, 2], "v": vectors})
    tables.create_table(api.CreateTableRequest(id=["vectors"]), stream(rows))
    query = api.QueryTableRequest(
        id=["vectors"],
        k=2,
        vector=api_model("QueryTableRequestVector")(single_vector=[4.0, 4.0]),
        vector_column="v",
        columns=api_model("QueryTableRequestColumns")(column_names=["id"]),
    )
    found = pa.ipc.open_file(tables.query_table(query).data).read_all()
    assert found["id"].to_pylist() == [2, 1]


def test_versions_tags_and_columns(images: Any) -> None:
    name = ["ns", "t"]
    images.insert_into_table(api.InsertIntoTableRequest(id=name), stream(ROWS))
    versions = images.list_table_versions(api.ListTableVersionsRequest(id=name, descending=True))
    assert [each.version for each in versions.versions] == [2, 1]
    assert versions.versions[0].manifest_path.startswith("_versions/")
    images.create_table_tag(api.CreateTableTagRequest(id=name, tag="first", version=1))
    images.update_table_tag(api.UpdateTableTagRequest(id=name, tag="first", version=2))
    assert (
        images.get_table_tag_version(api.GetTableTagVersionRequest(id=name, tag="first")).version
        == 2
    )
    assert images.list_table_tags(api.ListTableTagsRequest(id=name)).tags["first"].version == 2
    images.delete_table_tag(api.DeleteTableTagRequest(id=name, tag="first"))
    assert images.list_table_tags(api.ListTableTagsRequest(id=name)).tags == {}
    images.restore_table(api.RestoreTableRequest(id=name, version=1))
    assert images.count_table_rows(api.CountTableRowsRequest(id=name)).count == 3
    images.alter_table_drop_columns(api.AlterTableDropColumnsRequest(id=name, columns=["name"]))
    location = images.describe_table(api.DescribeTableRequest(id=name)).location
    assert pennon.dataset(location).schema.names == ["id"]


def test_tables_are_declared_renamed_deregistered_and_registered(images: Any) -> None:
    images.declare_table(api.DeclareTableRequest(id=["ns", "d"]))
    images.create_table(api.CreateTableRequest(id=["ns", "d"]), stream(ROWS))
    images.rename_table(api.RenameTableRequest(id=["ns", "d"], new_table_name="e"))
    place = images.deregister_table(api.DeregisterTableRequest(id=["ns", "e"])).location
    folder = place.rpartition("/")[2]
    images.register_table(api.RegisterTableRequest(id=["ns", "f"], location=folder))
    assert images.list_tables(api.ListTablesRequest(id=["ns"])).tables == ["f", "t"]
    for name in ("f", "t"):
        images.drop_table(api.DropTableRequest(id=["ns", name]))
    images.drop_namespace(api.DropNamespaceRequest(id=["ns"]))
    images.drop_namespace(api.DropNamespaceRequest(id=["ns"], mode="Skip"))


def test_properties_of_a_namespace_are_never_printed(tmp_path: Path) -> None:
    properties = {"root": str(tmp_path), "storage.aws_secret_access_key": "hidden"}
    tables = connect("dir", properties)
    assert "hidden" not in f"{tables!r} {tables.namespace_id()}"
    with pytest.raises(api.TableNotFoundError) as caught:
        tables.describe_table(api.DescribeTableRequest(id=["t"]))
    assert "hidden" not in str(caught.value)
    rest = connect("rest", {"uri": "http://127.0.0.1:1", "header.Authorization": "Bearer hidden"})
    with pytest.raises(api.LanceNamespaceError, match="did not answer") as failed:
        rest.list_tables(api.ListTablesRequest(id=[]))
    assert "hidden" not in f"{rest!r} {failed.value}"


@pytest.mark.parametrize("impl", ["nothing", "os.path.join", "no.such.Module", "pathlib.Path", ""])
def test_connect_to_a_class_that_is_none_raises(impl: str) -> None:
    with pytest.raises(ArgumentError):
        connect(impl, {})
    with pytest.raises(ArgumentError, match="root"):
        connect("dir", {})
    with pytest.raises(ArgumentError, match="uri"):
        connect("rest", {})


class Tokens(DynamicContextProvider):
    """Counts requests in a header."""

    def __init__(self, first: str) -> None:
        self.count = int(first)
        self.infos: list[dict[str, str]] = []

    def provide_context(self, info: dict[str, str]) -> dict[str, str]:
        self.infos.append(info)
        self.count += 1
        return {"headers.X-Count": str(self.count), "other": "x"}


def test_context_provider_gives_headers_to_each_request(tmp_path: Path) -> None:
    provider = Tokens("6")
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as server:
        client = RestNamespace(uri=f"http://127.0.0.1:{server.port}", context_provider=provider)
        client.create_namespace(api.CreateNamespaceRequest(id=["ns"]))
        client.list_tables(api.ListTablesRequest(id=["ns"]))
    assert provider.count == 8
    assert provider.infos[0] == {"operation": "create_namespace", "object_id": "ns"}
    named = {
        "dynamic_context_provider.impl": f"{__name__}.Tokens",
        "dynamic_context_provider.first": "1",
    }
    assert RestNamespace(uri="http://127.0.0.1:1", **named)._provider.count == 1
    with pytest.raises(ArgumentError, match="Failed to import"):
        RestNamespace(uri="http://x", **{"dynamic_context_provider.impl": "no.such.Class"})


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/table/%24/describe", b"{}", 400),
        ("/v1/table/t/describe", b"{", 400),
        ("/v1/table/t/describe", b"[]", 400),
        ("/v1/table/t/describe", b"[" * 100_000, 400),
        ("/v1/table/t/describe", b'{"version": "x"}', 400),
        ("/v1/table/..%2F..%2Fetc/describe", b"{}", 400),
        ("/v1/table/t", b"{}", 501),
        ("/v2/table/t/describe", b"{}", 501),
        ("/", b"{}", 501),
        ("/v1/namespace/ns/list", b"{}", 501),
        ("/v1/table/t/__init__", b"{}", 501),
        ("/v1/namespace//describe", b"{}", 400),
    ],
)
def test_adapter_answers_bad_requests_with_an_error(
    path: str, body: bytes, status: int, tmp_path: Path
) -> None:
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as server:
        url = f"http://127.0.0.1:{server.port}{path}"
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(urllib.request.Request(url, body, method="POST"))
        assert caught.value.code == status
        assert set(json.loads(caught.value.read())) == {"error", "code"}


def test_schema_as_json_of_nested_types() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.list_(pa.field("item", pa.int32())), metadata={"k": "v"}),
            pa.field("b", pa.struct([pa.field("c", pa.float64(), nullable=False)])),
            pa.field("d", pa.list_(pa.float16(), 4)),
            pa.field("e", pa.binary(3)),
            pa.field("f", pa.timestamp("us", "UTC")),
        ],
        metadata={"x": "y"},
    )
    found = schema_to_json(schema)
    kinds = [each["type"]["type"] for each in found["fields"]]
    assert kinds[:4] == ["list", "struct", "fixed_size_list", "fixed_size_binary"]
    assert (found["fields"][2]["type"]["length"], found["metadata"]) == (4, {"x": "y"})
    assert found["fields"][0]["metadata"] == {"k": "v"}
    assert api_model("JsonArrowSchema").from_dict(found).fields[1].type.fields[0].nullable is False
