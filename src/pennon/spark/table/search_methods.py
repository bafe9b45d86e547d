"""Searching a `pennon.spark.LanceTable` for many queries at once; Delta's table has no such thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from pennon.scan.search.fusion import Fusion
from pennon.spark.frames.search import RowOptions, hybrid_frame, nearest_frame
from pennon.spark.keywords import NearestKeywords
from pennon.spark.table.handle import TableHandle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SearchMethods:
    """Joins of queries with the rows that searches find for them."""

    __slots__ = ()

    def nearest(
        self: TableHandle,
        queries: DataFrame,
        k: int = 10,
        column: str | None = None,
        vector: str | None = None,
        *,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        prefilter: bool = False,
        fast_search: bool = False,
        with_row_id: bool = False,
        with_row_address: bool = False,
        use_scalar_index: bool = True,
        **search: Unpack[NearestKeywords],
    ) -> DataFrame:
        """Return each query beside the ``k`` rows whose vectors are nearest to its own.

        ``column``: the table's vectors, by default its only column of such; ``vector``: those of ``queries``, arrays
        of numbers, by default of the same name, or the only ones.  Beside the columns of the queries come
        ``columns`` of the table (names, or a dict of new names to columns or SQL; by default all but the vectors),
        ``_distance``, and ``_rank``, 1 for the nearest.  Of rows at equal distance the one with the lower row id comes
        first.  Queries that are NULL, or have a NULL in them, find nothing and do not come out.

        All other arguments are those of `pennon.LanceDataset.scanner` and of its ``nearest``: ``filter`` in the SQL of all
        scans, behind the search unless ``prefilter``; ``metric``, ``nprobes``, ``refine_factor``, ``ef``,
        ``distance_range``, ``use_index``, ...

        The version is pinned now, and an index asked for the rows that it covers.  Executors search, each a part of
        the table, or a share of the queries where an index covers all.  The driver sees neither queries nor rows.

        >>> from pennon.vector import vec_to_table
        >>> vectors = vec_to_table({"x": [0.0, 1.0], "y": [9.0, 1.0]}, names=["id", "vec"])
        >>> _ = pennon.write_dataset(vectors, path + ".2")
        >>> queries = spark.createDataFrame([(7, [8.0, 1.0])], "query long, vec array<float>")
        >>> found = LanceTable.forPath(spark, path + ".2").nearest(queries, 1, columns=["id"])
        >>> found.select("query", "id", "_rank").collect()
        [Row(query=7, id='y', _rank=1)]

        Raises ArgumentError for what the table or the queries do not have; a task does where a query has
        another number of dimensions.
        """
        chosen = RowOptions.among(locals())
        return nearest_frame(queries, self.snapshot(), k, column, vector, chosen, search)

    def hybrid(
        self: TableHandle,
        queries: DataFrame,
        k: int = 10,
        column: str | None = None,
        vector: str | None = None,
        *,
        words: str,
        text_columns: Sequence[str] | None = None,
        candidates: int | None = None,
        constant: float = 60,
        columns: Sequence[str] | Mapping[str, str] | None = None,
        filter: str | None = None,
        prefilter: bool = False,
        fast_search: bool = False,
        with_row_id: bool = False,
        with_row_address: bool = False,
        use_scalar_index: bool = True,
        **search: Unpack[NearestKeywords],
    ) -> DataFrame:
        """Return each query beside the ``k`` rows that fit its vector and its words best.

        ``words``: the column of ``queries`` with what is looked for in ``text_columns`` of the table, by default in all that
        have a full-text index.  Ranks of both searches are summed as in `pennon.LanceDataset.hybrid_search`, which has
        ``candidates`` and ``constant``; ``_distance``, ``_score`` and ``_relevance_score`` come out, and ``_rank``.  A query
        whose vector or words are NULL is searched by the other.  All else is as in `nearest`.

        >>> vectors = pa.array([[0.0, 1.0], [1.0, 0.0]], pa.list_(pa.float32(), 2))
        >>> texts = pa.table({"text": ["a red fox", "a blue whale"], "vec": vectors})
        >>> _ = pennon.write_dataset(texts, path + ".2")
        >>> queries = spark.createDataFrame([([0.0, 1.0], "fox")], "vec array<float>, words string")
        >>> table = LanceTable.forPath(spark, path + ".2")
        >>> found = table.hybrid(queries, 1, words="words", text_columns=["text"], columns=["text"])
        >>> found.first().text
        'a red fox'

        Raises ArgumentError for what the table or the queries do not have.
        """
        chosen = RowOptions.among(locals())
        fusion = Fusion.of(k, candidates, constant)
        return hybrid_frame(
            queries,
            self.snapshot(),
            k,
            column,
            vector,
            chosen,
            search,
            words=words,
            text_columns=text_columns,
            fusion=fusion,
        )
