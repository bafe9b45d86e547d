"""The methods of `pennon.spark.LanceTable` about embeddings; Delta's table has none of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pennon.compat.arguments import check_options
from pennon.ops.embed.embed import EmbedRequest
from pennon.ops.embed.models import given_model, model_of
from pennon.ops.embed.refresh import RefreshRequest
from pennon.ops.embed.remembered import notes_of
from pennon.ops.embed.search import SearchPlan, SearchRequest, plan_search
from pennon.spark.changes.backfill import Backfill, backfill
from pennon.spark.changes.embeddings import refresh_embeddings
from pennon.spark.frames.found import found_frame
from pennon.spark.table.handle import TableHandle
from pennon.spark.table.merge_builder import count_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class EmbeddingMethods:
    """Vector columns that a model makes of another column, and searches by text."""

    __slots__ = ()

    def embed(
        self: TableHandle,
        source: str,
        model: Any,
        column: str | None = None,
        *,
        metric: str = "cosine",
        normalize: bool = False,
        trackChanges: bool = True,
        batchSize: int | None = None,
        checkpoint: str | None = None,
    ) -> DataFrame:
        """Add a column of vectors that a model makes of another column, as one version; return it, and what was written.

        Executors embed, a fragment a task.  The arguments are those of `pennon.LanceDataset.embed`; ``checkpoint`` is a
        folder, seen by all executors, where finished fragments are noted: the same call again embeds only the others.
        A callable goes to the executors as Spark pickles it.

        >>> _ = table.embed("key", lambda texts: [[ord(text), 1.0] for text in texts])
        >>> table.toDF().select("key", "key_vector").first()
        Row(key='a', key_vector=[97.0, 1.0])

        Raises NotFoundError for a column or a model that is not there, ArgumentError for a source of another type,
        InvalidSchemaError for a name that is taken.
        """
        request = EmbedRequest.of(
            source,
            model_of(model),
            column,
            metric,
            batchSize,
            normalize=normalize,
            track_changes=trackChanges,
        )
        wanted = Backfill(request, checkpoint=checkpoint, storage_options=self.storage_options)
        done = backfill(self.spark, self.snapshot(), wanted)
        numbers = [
            ("version", done.version),
            ("num_added_columns", done.columns),
            ("num_written_fragments", done.written),
            ("num_reused_fragments", done.reused),
        ]
        return count_frame(self.spark, numbers)

    def refreshEmbeddings(
        self: TableHandle,
        column: str | None = None,
        *,
        model: Any = None,
        source: str | None = None,
        check: Literal["sources", "vectors", "both", "all"] | None = None,
        batchSize: int | None = None,
        checkpoint: str | None = None,
    ) -> DataFrame:
        """Embed rows that came since, and rows whose source changed; return the version, and how many rows.

        The arguments are those of `pennon.LanceDataset.refresh_embeddings`; ``checkpoint`` as in `embed`.  If no row is
        stale, no version is made.

        >>> def letters(texts):
        ...     return [[ord(text), 1.0] for text in texts]
        >>> _ = table.embed("key", letters)
        >>> _ = table.update("key = 'a'", {"key": "'z'"})
        >>> table.refreshEmbeddings(model=letters).first().num_embedded_rows
        1

        Raises ArgumentError for a column that remembers no model, NotFoundError for a model that this process does not know.
        """
        request = RefreshRequest(column, given_model(model), source, check, batchSize)
        done = refresh_embeddings(
            self.spark, self.snapshot(), request, checkpoint, self.storage_options
        )
        numbers = [
            ("version", done.version),
            ("num_embedded_rows", done.rows),
            ("num_written_fragments", done.fragments),
        ]
        return count_frame(self.spark, numbers)

    def embeddings(self: TableHandle) -> dict[str, dict[str, Any]]:
        """Return the embedded columns, each with what is remembered of it.

        >>> _ = table.embed("key", lambda texts: [[ord(text), 1.0] for text in texts])
        >>> table.embeddings()["key_vector"]["source"]
        'key'
        """
        return notes_of(self.snapshot().manifest.schema)

    def search(
        self: TableHandle,
        query: Any,
        k: int = 10,
        *,
        mode: Literal["auto", "vector", "text", "hybrid"] = "auto",
        column: str | None = None,
        text_columns: Sequence[str] | None = None,
        model: Any = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        prefilter: bool = True,
        offset: int = 0,
        candidates: int | None = None,
        constant: float = 60,
        with_row_id: bool = False,
        with_row_address: bool = False,
        fast_search: bool = False,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
    ) -> DataFrame:
        """Return the ``k`` rows that fit a text best, best first, with their scores.

        The driver embeds the query and searches, as `pennon.LanceDataset.search` does, which has all arguments; for many
        queries at once on the executors: `nearest` and `hybrid`.

        >>> def letters(texts):
        ...     return [[ord(text), 1.0] for text in texts]
        >>> _ = table.embed("key", letters, metric="l2")
        >>> table.search("b", k=1, model=letters).collect()
        [Row(key='b', value=2, _distance=0.0)]

        Raises ArgumentError for a search that cannot be answered, NotFoundError for a model that this process does not know.
        """
        plan = _planned(self, locals())
        return found_frame(self.spark, plan.snapshot, plan.options)

    def explainSearch(self: TableHandle, query: Any, k: int = 10, **options: Any) -> str:
        """Return what `search` does for the same arguments: which columns, indices and models, and the plan.

        >>> def letters(texts):
        ...     return [[ord(text), 1.0] for text in texts]
        >>> _ = table.embed("key", letters, metric="l2")
        >>> print(table.explainSearch("b", model=letters).partition(", query")[0])
        vector: column 'key_vector', all vectors compared, metric l2
        """
        given = {"query": query, "k": k, **options}
        return _planned(self, given).explain(self.uri)


def _planned(table: TableHandle, given: Mapping[str, Any]) -> SearchPlan:
    options = {name: value for name, value in given.items() if name != "self"}
    check_options(options, EmbeddingMethods.search, "search")
    options["model"] = given_model(options.get("model"))
    plan = plan_search(table.snapshot(), SearchRequest(**options))
    return replace(plan, options=replace(plan.options, blobs_as_bytes=True))
