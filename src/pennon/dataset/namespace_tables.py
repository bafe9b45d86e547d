"""Tables that a client of ``lance_namespace`` names: where they are, and the options of their store."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pennon.errors import ArgumentError, UnsupportedError


def place_of_table(
    uri: Any,
    options: Mapping[str, Any],
    storage_options: dict[str, str] | None,
    mode: str | None = "append",
) -> tuple[Any, dict[str, str] | None]:
    """Return the place of a table and its storage options: as given, or as ``namespace_client`` says.

    ``options`` may have ``namespace_client`` and ``table_id``, a list of names.  The client is asked once, and
    its storage options go before those given.  With the mode ``create`` it declares the table.

    Raises ArgumentError unless there is either a URI or both options; UnsupportedError if the
    namespace makes the versions itself.
    """
    client, table_id = options.get("namespace_client"), options.get("table_id")
    if client is None and table_id is None:
        if uri is None:
            message = "a table needs a uri, or namespace_client and table_id"
            raise ArgumentError(message)
        return uri, storage_options
    if uri is not None:
        message = (
            "a table is named either by its uri or by namespace_client and table_id, not by both"
        )
        raise ArgumentError(message)
    if client is None or table_id is None:
        message = "namespace_client and table_id go together"
        raise ArgumentError(message)
    answer = _ask(client, list(table_id), mode)
    if not answer.location:
        message = f"the namespace gave no location of the table {'.'.join(table_id)!r}"
        raise ArgumentError(message)
    if getattr(answer, "managed_versioning", None) is True:
        message = f"the namespace makes the versions of {'.'.join(table_id)!r} itself, which is not supported yet"
        raise UnsupportedError(message)
    known = {**(storage_options or {}), **(answer.storage_options or {})}
    return answer.location, known or None


def _ask(client: Any, table_id: list[str], mode: str | None) -> Any:
    models = import_module("lance_namespace")
    if mode is None or mode.lower() == "create":
        return client.declare_table(models.DeclareTableRequest(id=table_id, location=None))
    return client.describe_table(models.DescribeTableRequest(id=table_id, version=None))
