"""Batches of a stream that change rows: a function for ``foreachBatch``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pennon.errors import ArgumentError
from pennon.io import open_store
from pennon.spark.names import quoted
from pennon.spark.stream_query import query_of
from pennon.spark.table.functions import write
from pennon.spark.table.lance_table import LanceTable
from pennon.spark.table_place import place_of
from pennon.table.versions import read_newest_if_any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def upsert_batches(
    uri: str,
    on: Sequence[str],
    *,
    app: str | None = None,
    enable_stable_row_ids: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``foreachBatch`` that merges each batch into a table by key columns, once.

    A row of a batch takes the place of the row that has its values in the columns ``on`` (NULL equals NULL); a row that
    no row of the table matches is added.  The first batch makes the table.  This is what a query in the output mode
    ``update`` needs, which Spark gives to no sink in Python.

    ``app`` names the query, so that a batch that is run again is not merged again; by default its id does, which a
    session of Connect cannot tell.  ``enable_stable_row_ids`` counts when the table is made: its changes show updates then.
    Raises MatchError for a batch with two rows of one key.

    >>> counts = spark.readStream.format("lance").load(path).groupBy("key").count()
    >>> writer = counts.writeStream.outputMode("update").option("checkpointLocation", path + ".checkpoint")
    >>> upsert = pennon.spark.upsert_batches(path + ".counts", on=["key"])
    >>> writer.foreachBatch(upsert).trigger(availableNow=True).start().awaitTermination()
    >>> pennon.spark.read(spark, path + ".counts").count()
    3
    """
    if not on or isinstance(on, str):
        message = f"on is a list of the key columns, not {on!r}"
        raise ArgumentError(message)
    return _UpsertBatches(uri, tuple(on), app, enable_stable_row_ids, dict(storage_options or {}))


@dataclass(frozen=True, slots=True)
class _UpsertBatches:
    """See `upsert_batches`; it pickles, as Connect needs it."""

    uri: str
    on: tuple[str, ...]
    app: str | None
    stable_row_ids: bool
    storage_options: Mapping[str, str] = field(repr=False)

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Merge one batch."""
        app = self.app or query_of(batch.sparkSession)
        if app is None:
            message = "this session does not tell the id of the query: name it by upsert_batches(..., app='name')"
            raise ArgumentError(message)
        uri, options = place_of(batch.sparkSession, self.uri, self.storage_options)
        if read_newest_if_any(open_store(uri, options or None)) is None:
            write(
                batch,
                uri,
                enable_stable_row_ids=self.stable_row_ids,
                txn_app_id=app,
                txn_version=number,
                storage_options=options,
            )
            return
        table = LanceTable.forPath(batch.sparkSession, uri, options)
        same = " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self.on)
        merge = table.alias("t").merge(batch.alias("s"), same)
        merge = merge.whenMatchedUpdateAll().whenNotMatchedInsertAll()
        merge.execute(txnAppId=app, txnVersion=number)
