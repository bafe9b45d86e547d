"""Spark: ``format("lance")`` and functions over a session.

A name is imported when it is first used: Spark starts its Python workers anew again and again, and one
that reads needs nothing of what writes (140 ms of 310 that the imports took).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pennon.spark.functions import ingest as ingest
    from pennon.spark.functions import read as read
    from pennon.spark.functions import write as write
    from pennon.spark.operations import convert as convert
    from pennon.spark.session import activate as activate
    from pennon.spark.session import local_session as local_session
    from pennon.spark.source import LanceDataSource as LanceDataSource
    from pennon.spark.table import LanceTable as LanceTable
    from pennon.spark.table_functions import register as register
    from pennon.spark.views import LanceView as LanceView
    from pennon.spark.views import view as view

__all__ = [
    "LanceDataSource",
    "LanceTable",
    "LanceView",
    "activate",
    "convert",
    "ingest",
    "local_session",
    "read",
    "register",
    "view",
    "write",
]

_HOMES: Final = {
    "LanceDataSource": "pennon.spark.source",
    "LanceTable": "pennon.spark.table",
    "LanceView": "pennon.spark.views",
    "activate": "pennon.spark.session",
    "convert": "pennon.spark.operations",
    "ingest": "pennon.spark.functions",
    "local_session": "pennon.spark.session",
    "read": "pennon.spark.functions",
    "register": "pennon.spark.table_functions",
    "view": "pennon.spark.views",
    "write": "pennon.spark.functions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
