"""Spark: ``format("lance")`` and functions over a session.

A name is imported when it is first used: Spark starts its Python workers anew again and again, and one
that reads needs nothing of what writes (140 ms of 310 that the imports took).
"""

import os
import shutil
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pennon.core.extras import not_installed

if TYPE_CHECKING:
    from pennon.spark.session import activate as activate
    from pennon.spark.session import local_session as local_session
    from pennon.spark.source.data_source import LanceDataSource as LanceDataSource
    from pennon.spark.source.table_functions import register as register
    from pennon.spark.statements.run import sql as sql
    from pennon.spark.statements.session import AttachedCatalog as AttachedCatalog
    from pennon.spark.statements.session import attach as attach
    from pennon.spark.table.batches import upsert_batches as upsert_batches
    from pennon.spark.table.functions import ingest as ingest
    from pennon.spark.table.functions import read as read
    from pennon.spark.table.functions import write as write
    from pennon.spark.table.lance_table import LanceTable as LanceTable
    from pennon.spark.table.operations import convert as convert
    from pennon.spark.table.views import LanceView as LanceView
    from pennon.spark.table.views import view as view

__all__ = [
    "AttachedCatalog",
    "LanceDataSource",
    "LanceTable",
    "LanceView",
    "activate",
    "attach",
    "convert",
    "ingest",
    "local_session",
    "read",
    "register",
    "sql",
    "upsert_batches",
    "view",
    "write",
]

_HOMES: Final = {
    "AttachedCatalog": "pennon.spark.statements.session",
    "LanceDataSource": "pennon.spark.source.data_source",
    "LanceTable": "pennon.spark.table.lance_table",
    "LanceView": "pennon.spark.table.views",
    "activate": "pennon.spark.session",
    "attach": "pennon.spark.statements.session",
    "convert": "pennon.spark.table.operations",
    "ingest": "pennon.spark.table.functions",
    "local_session": "pennon.spark.session",
    "read": "pennon.spark.table.functions",
    "register": "pennon.spark.source.table_functions",
    "sql": "pennon.spark.statements.run",
    "upsert_batches": "pennon.spark.table.batches",
    "view": "pennon.spark.table.views",
    "write": "pennon.spark.table.functions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            home = import_module(_HOMES[name])
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "pyspark":
                raise not_installed("pyspark", f"pennon.spark.{name}") from error
            raise
        return getattr(home, name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _name_python() -> None:
    """Let Spark start its Python workers with this interpreter, if its JVM is still to come.

    Spark takes the first ``python3`` on PATH, which is another one where the environment is not activated (an IDE, a
    notebook, cron): it has no Pennon, and ``format("lance")`` ends in DATA_SOURCE_NOT_FOUND.
    """
    context = sys.modules.get("pyspark.core.context")
    runs = context is not None and context.SparkContext._gateway is not None  # noqa: SLF001 - PySpark has no other way
    if runs or "PYSPARK_PYTHON" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    first = shutil.which("python3")
    if first is None or _folder(first) != _folder(sys.executable):
        os.environ["PYSPARK_PYTHON"] = sys.executable


def _folder(program: str) -> str:
    return os.path.dirname(os.path.abspath(program))  # noqa: PTH100, PTH120 - pathlib is not imported yet


_name_python()
