"""Embeddings: vector columns that a model makes of another column, and searches by text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pennon import ops
from pennon.compat.arguments import check_options
from pennon.dataset.base import DatasetBase

if TYPE_CHECKING:
    from pennon.ops.embed.makers import Progress


class DatasetEmbeddings(DatasetBase):
    """The methods of `LanceDataset` about embeddings; pylance has none of these."""

    def embed(
        self,
        source: str,
        model: Any,
        column: str | None = None,
        *,
        metric: str = "cosine",
        normalize: bool = False,
        track_changes: bool = True,
        batch_size: int | None = None,
        checkpoint_file: str | Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Add a column of vectors that a model makes of another column, as one version.

        ``source``: a column of texts or binary values (``a.b`` reaches into structs); NULL becomes NULL.  ``model``: a
        callable from a list of values to a vector for each, a SentenceTransformer, a `pennon.embeddings.EmbeddingModel`,
        or a name: one that was registered, or ``"wordllama"``, a package with its weights.  ``column``: by default
        ``{source}_vector``, of float32.  The model is remembered in the metadata of the column; so are ``metric``, by
        which `search` compares where no index says otherwise, and ``normalize``, which divides vectors by their lengths.

        ``track_changes``: a column ``{column}_hash`` has a fingerprint of each source, by which `refresh_embeddings`
        finds rows whose source changed.  ``batch_size``: rows that the model gets at once (1024).
        ``checkpoint_file``: results are kept there until all are committed; after a crash the same call goes on.
        ``progress``: is told how many rows are done, of how many.  Where other writers change rows meanwhile, only
        fragments that changed are embedded again.

        >>> ds = pennon.write_dataset(pa.table({"title": ["red fox", "whale", None]}), uri)
        >>> ds.embed("title", lambda texts: [[len(text), text.count(" ")] for text in texts])
        >>> ds.to_table()["title_vector"].to_pylist()
        [[7.0, 1.0], [5.0, 0.0], None]

        Raises NotFoundError for a column or a model that is not there, ArgumentError for a source of another type and
        vectors that do not fit, InvalidSchemaError for a name that is taken.
        """
        request = ops.EmbedRequest.of(
            source,
            ops.model_of(model),
            column,
            metric,
            batch_size,
            normalize=normalize,
            track_changes=track_changes,
        )
        checkpoint = ops.checkpoint_in(checkpoint_file)
        self._turn_to(ops.add_embedding(self._snapshot, request, checkpoint, progress))

    def refresh_embeddings(
        self,
        column: str | None = None,
        *,
        model: Any = None,
        source: str | None = None,
        check: Literal["sources", "vectors", "both", "all"] | None = None,
        batch_size: int | None = None,
        checkpoint_file: str | Path | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Embed rows that came since, and rows whose source changed; return how many, as one version.

        ``column``: an embedded column; not needed if there is one only.  ``model``: by default the remembered one; a
        callable that no name was registered for is passed again.  ``check``: which rows are stale.  ``sources``: those
        whose source is not what their vector was made from (by fingerprints, the default); ``vectors``: those without a
        vector, which reads the vectors (the default where changes are not tracked); ``both``; ``all``.
        ``source``: if the column was copied or renamed so that its source is not clear.

        If no row is stale, no version is made.  An index on the vectors finds these rows again after
        `optimize.optimize_indices`; until then they are compared.  Of a fragment that such an index covers, few stale rows are
        moved as an update moves them, so that it covers all others; else rows stay, and their columns are written anew.
        Where a table needs both, they are two versions.  The other arguments are those of `embed`.

        >>> def lengths(texts):
        ...     return [[len(text), 1.0] for text in texts]
        >>> ds = pennon.write_dataset(pa.table({"title": ["fox", "whale"]}), uri)
        >>> ds.embed("title", lengths)
        >>> _ = ds.insert(pa.table({"title": ["owl"]}))
        >>> _ = ds.update({"title": "'red fox'"}, where="title = 'fox'")
        >>> ds.refresh_embeddings(model=lengths), ds.refresh_embeddings(model=lengths)
        (2, 0)

        Raises ArgumentError for a column that remembers no model, or was made by another one, NotFoundError for a
        model that this process does not know.
        """
        request = ops.RefreshRequest(column, ops.given_model(model), source, check, batch_size)
        checkpoint = ops.checkpoint_in(checkpoint_file)
        manifest, count = ops.refresh_embedding(self._snapshot, request, checkpoint, progress)
        self._turn_to(manifest)
        return count

    def embeddings(self) -> dict[str, dict[str, Any]]:
        """Return the embedded columns, each with what is remembered of it.

        >>> ds = pennon.write_dataset(pa.table({"title": ["fox", "whale"]}), uri)
        >>> ds.embed("title", lambda texts: [[len(text), 1.0] for text in texts])
        >>> note = ds.embeddings()["title_vector"]
        >>> note["source"], note["dimension"], note["metric"]
        ('title', 2, 'cosine')
        """
        return ops.notes_of(self._snapshot.manifest.schema)

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        mode: Literal["auto", "vector", "text", "hybrid"] = "auto",
        column: str | None = None,
        text_columns: Sequence[str] | None = None,
        model: Any = None,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: Any = None,
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
    ) -> pa.Table:
        """Return the ``k`` rows that fit a text best, best first, with their scores.

        ``mode``: ``vector`` embeds the query by the model that the column remembers, and finds the nearest vectors
        (``_distance``); ``text`` is a full-text search (``_score``); ``hybrid`` fuses the ranks of both
        (``_relevance_score``, see `hybrid_search`).  ``auto`` does what can be done: hybrid if the table has an
        embedded column and a full-text index.  `explain_search` tells which it is.

        ``query``: a text; bytes for a model of images; or a vector.  ``column``: the vectors, if there are several;
        ``text_columns``: by default all with a full-text index.  ``model``: a model that no name was registered for in
        this process.  ``columns``: those to show, by default all but vectors and fingerprints.  ``filter`` limits what
        is searched, unless ``prefilter`` is False.  ``candidates``: rows asked of each of two searches, by default 4
        times as many as are wanted, 40 at least.  The other arguments are those of `scanner` and of its ``nearest``.

        >>> def letters(texts):
        ...     return [[text.count("o"), text.count("e")] for text in texts]
        >>> ds = pennon.write_dataset(pa.table({"title": ["fox", "bee", "owl"]}), uri)
        >>> ds.embed("title", letters)
        >>> ds.search("eel", k=1, model=letters).to_pydict()
        {'title': ['bee'], '_distance': [0.0]}

        Raises ArgumentError for a search that cannot be answered, NotFoundError for a model that this process does
        not know.
        """
        return self._planned(locals()).answer.read()

    def explain_search(self, query: Any, k: int = 10, **options: Any) -> str:
        """Return what `search` does for the same arguments: which columns, indices and models, and the plan.

        >>> def letters(texts):
        ...     return [[text.count("o"), text.count("e")] for text in texts]
        >>> ds = pennon.write_dataset(pa.table({"title": ["fox", "bee", "owl"]}), uri)
        >>> ds.embed("title", pennon.embeddings.EmbeddingModel(letters, "letters"))
        >>> print(ds.explain_search("eel", model=pennon.embeddings.EmbeddingModel(letters, "letters")))
        vector: column 'title_vector', all vectors compared, metric cosine, query embedded by 'letters'
        ...
        """
        return self._planned({"query": query, "k": k, **options}).explain(self._uri)

    def _planned(self, given: Mapping[str, Any]) -> ops.SearchPlan:
        options = {name: value for name, value in given.items() if name != "self"}
        check_options(options, self.search, "search")
        options["model"] = ops.given_model(options.get("model"))
        return ops.plan_search(self._snapshot, ops.SearchRequest(**options))
