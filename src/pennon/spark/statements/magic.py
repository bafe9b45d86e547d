"""The magic ``%%lance`` of notebooks: ``%load_ext pennon.spark.statements.magic``, then a cell of SQL.

::

    %%lance result
    SELECT carrier, count(*) FROM lake.flights WHERE origin = :origin GROUP BY carrier

``:origin`` is the variable of that name in the notebook.  The result is shown, and kept under the name behind the
magic, if there is one.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from pennon.errors import ArgumentError
from pennon.spark.statements.run import sql
from pennon.spark.statements.values import markers
from pennon.spark.statements.words import Statement


def load_ipython_extension(shell: Any) -> None:
    """Give a notebook the magics ``%%lance`` and ``%lance``; IPython calls this."""

    def lance(line: str, cell: str | None = None) -> DataFrame:
        return run_cell(
            shell.user_ns, line if cell is not None else "", cell if cell is not None else line
        )

    shell.register_magic_function(lance, magic_kind="line_cell", magic_name="lance")


def run_cell(variables: dict[str, Any], line: str, cell: str) -> DataFrame:
    """Run the SQL of a cell in the active session; parameters are variables of the notebook.

    ``line``: the name that the result gets among the variables.  Raises ArgumentError if there is no session, or no
    variable for a parameter.
    """
    spark = _session(variables)
    names = {name for name, _ in markers(Statement.of(cell)) if name is not None}
    missing = sorted(names - variables.keys())
    if missing:
        message = f"the notebook has no variable {', '.join(missing)}"
        raise ArgumentError(message)
    values = {name: variables[name] for name in names}
    found = sql(spark, cell, values or None, many=True)
    name = line.strip()
    if name:
        if not name.isidentifier():
            message = f"%%lance takes the name of a variable, not {name!r}"
            raise ArgumentError(message)
        variables[name] = found
    return found


def _session(variables: dict[str, Any]) -> SparkSession:
    given = variables.get("spark")
    if given is not None and hasattr(given, "sql"):
        session: SparkSession = given
        return session
    found = SparkSession.getActiveSession()
    if found is None:
        raise ArgumentError("there is no active Spark session: pennon.spark.local_session()")
    return found
