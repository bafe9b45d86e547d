"""Temporary views of tables, which one call brings to the newest version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from pennon.compat.arguments import check_options
from pennon.spark.keywords import ReadKeywords
from pennon.spark.moments import moment_in
from pennon.spark.source.scan_task import open_snapshot
from pennon.spark.table.functions import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class LanceView:
    """A temporary view of a table; it shows one version until `refresh`.

    ``options`` are those of `pennon.spark.read`.

    >>> view = pennon.spark.view(spark, path, "small")
    >>> _ = table.delete("value = 1")
    >>> view.refresh(), spark.table("small").count()
    (2, 2)
    """

    spark: SparkSession
    uri: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    version: int = 0
    """The version that the view shows; on a branch, that of the branch."""

    def refresh(self) -> int:
        """Make the view anew, and return the version that it shows now.

        That is the newest one, of a branch if there is one, unless the view was made of a version, a tag
        (which may have moved) or a time.
        """
        shown = dict(self.options)
        snapshot = open_snapshot(
            self.uri,
            shown.get("storage_options") or {},
            shown.get("version") if shown.get("tag") is None else shown["tag"],
            moment_in(self.spark, shown.get("asof")),
            shown.get("branch"),
        )
        if shown.get("tag") is None and not isinstance(shown.get("version"), str):
            shown.update(version=snapshot.manifest.version, asof=None)
        read(self.spark, self.uri, **shown).createOrReplaceTempView(self.name)
        self.version = snapshot.manifest.version
        return self.version


def view(
    spark: SparkSession,
    uri: str,
    name: str,
    columns: Sequence[str] | None = None,
    **options: Unpack[ReadKeywords],
) -> LanceView:
    """Make a temporary view of a table, or of a part of it: the options are those of `read`.

    The view stays at the version that it is made of.  `LanceView.refresh`, or the same call once more, makes it
    anew.  Rows are inserted by `write`, or through a view of ``CREATE TEMPORARY VIEW … USING lance``.

    >>> _ = pennon.spark.view(spark, path, "keys", ["key"])
    >>> spark.sql("SELECT max(key) AS last FROM keys").first()
    Row(last='c')
    """
    check_options(options, read, "view")
    made = LanceView(spark, uri, name, {"columns": columns, **options})
    made.refresh()
    return made
