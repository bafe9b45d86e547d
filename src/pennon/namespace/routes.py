"""The operations of the REST specification: the path, the body and the answer of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Body(Enum):
    """The body of a request or an answer: JSON, nothing, a number, or Arrow data."""

    JSON = "json"
    NONE = "none"
    NUMBER = "number"
    ARROW = "arrow"


@dataclass(frozen=True, slots=True)
class Route:
    """An operation: ``/v1/{kind}/{id}/{verb}``.

    ``sends`` NONE is a GET, whose options are in the query, as are those beside Arrow data.  ``response`` is the name of
    the class of the answer.
    """

    kind: str
    verb: str
    response: str
    sends: Body = Body.JSON
    gives: Body = Body.JSON


def _table(verb: str, response: str, sends: Body = Body.JSON, gives: Body = Body.JSON) -> Route:
    return Route("table", verb, response, sends, gives)


ROUTES: Final[dict[str, Route]] = {
    "list_namespaces": Route("namespace", "list", "ListNamespacesResponse", Body.NONE),
    "describe_namespace": Route("namespace", "describe", "DescribeNamespaceResponse"),
    "create_namespace": Route("namespace", "create", "CreateNamespaceResponse"),
    "drop_namespace": Route("namespace", "drop", "DropNamespaceResponse"),
    "namespace_exists": Route("namespace", "exists", "NamespaceExistsResponse", gives=Body.NONE),
    "list_tables": Route("namespace", "table/list", "ListTablesResponse", Body.NONE),
    "describe_table": _table("describe", "DescribeTableResponse"),
    "table_exists": _table("exists", "TableExistsResponse", gives=Body.NONE),
    "declare_table": _table("declare", "DeclareTableResponse"),
    "register_table": _table("register", "RegisterTableResponse"),
    "deregister_table": _table("deregister", "DeregisterTableResponse"),
    "drop_table": _table("drop", "DropTableResponse"),
    "rename_table": _table("rename", "RenameTableResponse"),
    "create_table": _table("create", "CreateTableResponse", Body.ARROW),
    "insert_into_table": _table("insert", "InsertIntoTableResponse", Body.ARROW),
    "merge_insert_into_table": _table("merge_insert", "MergeInsertIntoTableResponse", Body.ARROW),
    "count_table_rows": _table("count_rows", "CountTableRowsResponse", gives=Body.NUMBER),
    "update_table": _table("update", "UpdateTableResponse"),
    "delete_from_table": _table("delete", "DeleteFromTableResponse"),
    "query_table": _table("query", "QueryTableResponse", gives=Body.ARROW),
    "list_table_versions": _table("version/list", "ListTableVersionsResponse"),
    "restore_table": _table("restore", "RestoreTableResponse"),
    "list_table_tags": _table("tags/list", "ListTableTagsResponse"),
    "get_table_tag_version": _table("tags/version", "GetTableTagVersionResponse"),
    "create_table_tag": _table("tags/create", "CreateTableTagResponse"),
    "update_table_tag": _table("tags/update", "UpdateTableTagResponse"),
    "delete_table_tag": _table("tags/delete", "DeleteTableTagResponse"),
    "alter_table_drop_columns": _table("drop_columns", "AlterTableDropColumnsResponse"),
}


def request_name(operation: str) -> str:
    """Return the name of the class of an operation's request."""
    return "".join(each.title() for each in operation.split("_")) + "Request"
