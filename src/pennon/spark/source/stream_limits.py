"""The reader of a stream that this Spark can use: since version 4.2 it gives a source limits.

One class cannot serve both: Spark counts the parameters of ``latestOffset``.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from pennon.scan.changes.stream import NO_LIMITS, Position
from pennon.spark.pyspark_classes import ds
from pennon.spark.source.stream_source import (
    LanceStreamReader,
    Offset,
    StreamOptions,
    UnlimitedStreamReader,
)

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxBytes,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # Spark 4.1

    def stream_reader(options: Mapping[str, str], schema: StructType) -> ds.DataSourceStreamReader:
        """Return the reader of a stream."""
        return UnlimitedStreamReader(StreamOptions.parse(options), schema)

else:

    def stream_reader(options: Mapping[str, str], schema: StructType) -> ds.DataSourceStreamReader:
        """Return the reader of a stream."""
        return LimitedStreamReader(StreamOptions.parse(options), schema)

    class LimitedStreamReader(LanceStreamReader, SupportsTriggerAvailableNow):
        """Reads a table as a stream, in batches of the size that its options say."""

        _last: int | None = None
        """The last version that a query reads with the trigger ``availableNow``."""

        def getDefaultReadLimit(self) -> ReadLimit:
            """Return one of the limits of the options; `latestOffset` sees to all of them."""
            limits = self._options.limits
            if limits.fragments is not None:
                return ReadMaxFiles(limits.fragments)
            if limits.rows is not None:
                return ReadMaxRows(limits.rows)
            if limits.size_bytes is not None:
                return ReadMaxBytes(limits.size_bytes)
            return ReadAllAvailable()

        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
            """Return where the batch ends that begins at ``start``."""
            newest = self._stream.newest() if self._last is None else self._last
            limits = NO_LIMITS if isinstance(limit, ReadAllAvailable) else self._options.limits
            return self._after(start, newest, limits)

        def reportLatestOffset(self) -> Offset:
            """Return the end of the table, for the progress of the query."""
            return Position(self._stream.newest() + 1).to_json()

        def prepareForTriggerAvailableNow(self) -> None:
            """Note the newest version: what comes later is not read."""
            self._last = self._stream.newest()
