"""The handle that the parts of `pennon.spark.LanceTable` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pennon.scan.snapshot import Snapshot


class TableHandle(Protocol):
    """A table by its place; it stands at no version."""

    @property
    def spark(self) -> SparkSession:
        """Return the session."""

    @property
    def uri(self) -> str:
        """Return where the table is."""

    @property
    def storage_options(self) -> Mapping[str, str]:
        """Return the options of the object store."""

    @property
    def alias_name(self) -> str | None:
        """Return the name that conditions and expressions may use."""

    @classmethod
    def forPath(
        cls, sparkSession: SparkSession, path: str, hadoopConf: Mapping[str, str] | None = None
    ) -> Self:
        """Return the table at a path."""

    def snapshot(self) -> Snapshot:
        """Return the newest version."""
