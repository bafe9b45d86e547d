"""Delta's methods that a Lance table cannot support: they exist, and say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pennon.errors import UnsupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class DeltaMethods:
    """The methods of Delta's table that `LanceTable` refuses."""

    __slots__ = ()

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> NoReturn:
        """Refuse: a name leads to no path."""
        message = (
            f"forName({tableOrViewName!r}): Spark hands the tables of its catalog to no source in Python; "
            "use forPath(spark, path)"
        )
        raise UnsupportedError(message)

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
    ) -> NoReturn:
        """Refuse: Parquet files cannot be files of a Lance table, so there is no conversion in place."""
        message = (
            f"convertToDelta({identifier!r}): a Lance table cannot take Parquet files as they are; "
            "convertToLance(spark, identifier, location=path) copies the rows"
        )
        raise UnsupportedError(message)

    def generate(self, mode: str) -> None:
        """Refuse: there are no manifests for other engines to generate."""
        message = f"generate({mode!r}): a Lance table's manifests are its own, none are generated"
        raise UnsupportedError(message)

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Refuse: Lance's flags are set by what is written."""
        message = (
            f"upgradeTableProtocol({readerVersion}, {writerVersion}): a Lance table has no protocol to "
            "upgrade; what its readers must know is written by what is used"
        )
        raise UnsupportedError(message)

    def addFeatureSupport(self, featureName: str) -> None:
        """Refuse: as `upgradeTableProtocol`."""
        message = f"addFeatureSupport({featureName!r}): a Lance table has no features to turn on"
        raise UnsupportedError(message)

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Refuse: as `upgradeTableProtocol`."""
        message = f"dropFeatureSupport({featureName!r}): a Lance table has no features to turn off"
        raise UnsupportedError(message)
