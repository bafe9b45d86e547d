"""The indices of a dataset: made, merged, committed, dropped; `pennon.scan.plan.index_lookup` asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from pennon import ops
from pennon.compat.option_types import (
    IndexOptions,
    MetricName,
    ScalarIndexKind,
    ScalarIndexOptions,
    VectorIndexKind,
)
from pennon.dataset.index_arguments import (
    METRIC,
    ROW,
    chosen_kind,
    one_column,
    present,
    text_options,
)
from pennon.dataset.index_arguments import IndexConfig as IndexConfig
from pennon.dataset.index_reads import DatasetIndexReads, descriptions
from pennon.errors import ArgumentError, UnsupportedError
from pennon.io.durability import hands_over, sync_now
from pennon.table.indices import MEM_WAL
from pennon.table.indices_wire import parse_indices

if TYPE_CHECKING:
    from pennon.dataset.operation import Index
    from pennon.ops.index.progress import IndexProgress
    from pennon.table import indices as table_indices


class DatasetIndices(DatasetIndexReads):
    """The methods of `LanceDataset` that make, merge and drop indices."""

    def create_scalar_index(
        self,
        column: str,
        index_type: ScalarIndexKind | IndexConfig,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | None = None,
        progress_callback: Any = None,
        format_version: int | str | None = None,
        document_granularity: Any = ROW,
        **parameters: Unpack[ScalarIndexOptions],
    ) -> None:
        """Make an index of a column, and turn the handle to the version that has it.

        ``index_type``: ``BTREE`` (comparisons, prefixes), ``BITMAP`` (columns of few values), ``LABEL_LIST``
        (which lists have an item), ``NGRAM`` (parts of texts), ``ZONEMAP`` and ``BLOOMFILTER`` (small; for columns
        whose rows are in some order, and for values that most zones lack), ``INVERTED`` or ``FTS`` (search in
        texts); or an `IndexConfig` with parameters.
        ``column``: a name, or the path of a field in a struct; names with dots stand in back-ticks: ``st.`a.b` ``.
        Without ``name`` it is ``<column>_idx``; names that begin with ``__lance_`` are refused.  ``train=False``: an index that covers no row yet, see
        `DatasetOptimizer.optimize_indices`.  ``index_uuid``: the name of its folder.  ``fragment_ids``, for INVERTED and BTREE:
        only parts for these are made, in that folder, and nothing is committed; see `merge_index_metadata`.
        `progress_callback` has no effect.

        Raises KeyError for a column that is not there, TypeError for one of a type that the kind does not
        take, IndexExistsError for a name in use (``replace=False``, or another column's), UnsupportedError
        for other kinds.

        >>> import pennon, pyarrow as pa, tempfile
        >>> uri = tempfile.mkdtemp() + "/t.lance"
        >>> table = pennon.write_dataset(pa.table({"id": range(1000)}), uri)
        >>> table.create_scalar_index("id", "BTREE")
        >>> table.to_table(filter="id = 7").num_rows
        1
        """
        options = {**parameters, **text_options(format_version, document_granularity)}
        kind, chosen = chosen_kind(index_type, options)
        if ops.is_vector_kind(kind):
            message = f"create_scalar_index makes no index of kind {kind!r}; create_index does"
            raise UnsupportedError(message)
        if fragment_ids is not None:
            fragments = ops.fragments_of(self._snapshot, fragment_ids)
            ops.build_parts(self._snapshot, column, kind, name, chosen, fragments, index_uuid)
            sync_now()
            return
        self._turn_to(
            ops.create_index(
                self._snapshot,
                column,
                kind,
                name,
                replace=replace,
                train=train,
                parameters=chosen,
                index_uuid=index_uuid,
            )
        )

    def create_index(
        self,
        column: str | Sequence[str],
        index_type: VectorIndexKind | ScalarIndexKind,
        name: str | None = None,
        metric: MetricName = "L2",
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        progress_callback: Callable[[IndexProgress], None] | None = None,
        **kwargs: Unpack[IndexOptions],
    ) -> Self:
        """Make an index of a column of vectors, turn the handle to the version that has it, and return it.

        ``index_type``: IVF_FLAT (the vectors themselves), IVF_PQ (``num_sub_vectors`` bytes of each, or half as many
        with ``num_bits=4``), IVF_SQ (a byte for each number), IVF_RQ (``num_bits`` for each), and IVF_HNSW_FLAT, _PQ and
        _SQ, which have a graph of near rows in each partition (``m``, ``ef_construction``, ``max_level``); kinds of
        scalar indices are made by `create_scalar_index`.  ``metric``: l2, cosine, dot, or hamming for uint8.  ``num_partitions``: into how
        many parts vectors are put, each around a centroid; by default one for some 4096 or 8192 of them, which
        ``target_partition_size`` says otherwise.  ``ivf_centroids`` and ``pq_codebook`` were trained elsewhere.
        Others train on a sample: ``sample_rate`` vectors for each centroid and code word, of 1 GiB at most as
        numbers of 4 bytes, in ``max_iters`` rounds, with a ``seed``.  Vectors with NULL, NaN or infinity are left out, with cosine zeros, too.

        ``train=False``, and too few vectors to train on: an index that covers no row yet, see
        `DatasetOptimizer.optimize_indices`.  ``fragment_ids``: files for these are made, and nothing is committed;
        `create_index_uncommitted` says which.  How pylance shuffles has no effect.

        ``progress_callback`` is called with an `IndexProgress` when centroids (``train_ivf``, by iterations) or code words
        (``train_quantizer``, by sub-vectors) are trained, vectors coded (``shuffle``) and segments merged
        (``merge_partitions``); on a terminal a bar shows what takes a while.

        Raises KeyError for a column that is not there, TypeError for one that is none of vectors,
        IndexExistsError for a name in use (without ``replace``), ArgumentError, UnsupportedError.

        >>> from pennon.vector import vec_to_table
        >>> ds = pennon.write_dataset(vec_to_table([[float(n), 1.0] for n in range(300)]), uri)
        >>> ds = ds.create_index("vector", "IVF_FLAT", num_partitions=2)
        >>> near = {"column": "vector", "q": [7.0, 1.0], "k": 1}
        >>> ds.to_table(nearest=near)["vector"].to_pylist()
        [[7.0, 1.0]]
        """
        given = {**ops.given_arguments(locals()), **present(kwargs)}
        only = one_column(column)
        if ops.is_scalar_kind(index_type):
            scalar: dict[str, Any] = {**kwargs, "index_type": index_type, "name": name}
            scalar |= {"replace": replace, "train": train}
            scalar |= {"fragment_ids": fragment_ids, "index_uuid": index_uuid}
            self.create_scalar_index(only, **scalar)
            return self
        if fragment_ids is not None:
            self.create_index_uncommitted(
                only, index_type, name, fragment_ids=fragment_ids, index_uuid=index_uuid, **given
            )
            return self
        self._turn_to(
            ops.create_index(
                self._snapshot,
                only,
                ops.vector_kind(index_type),
                name,
                replace=replace,
                train=train,
                parameters=given,
                index_uuid=index_uuid,
                watch=progress_callback,
            )
        )
        return self

    @hands_over
    def create_index_uncommitted(
        self,
        column: str | Sequence[str],
        index_type: VectorIndexKind | ScalarIndexKind | IndexConfig,
        name: str | None = None,
        metric: MetricName = METRIC,
        replace: bool = False,
        num_partitions: int | None = None,
        ivf_centroids: Any = None,
        pq_codebook: Any = None,
        num_sub_vectors: int | None = None,
        accelerator: Any = None,
        index_cache_size: int | None = None,
        shuffle_partition_batches: int | None = None,
        shuffle_partition_concurrency: int | None = None,
        ivf_centroids_file: str | None = None,
        precomputed_partition_dataset: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        filter_nan: bool = True,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | None = None,
        *,
        target_partition_size: int | None = None,
        streaming_sample_rate: int | None = None,
        streaming_coreset_rate: int | None = None,
        streaming_refine_passes: int | None = None,
        skip_transpose: bool = False,
        rabitq_model: str | None = None,
        format_version: int | str | None = None,
        document_granularity: Any = ROW,
        **parameters: Unpack[IndexOptions],
    ) -> Index:
        """Make a segment of an index for some fragments, and return its entry; nothing is committed.

        Segments are merged by `merge_existing_index_segments`, and committed by
        `commit_existing_index_segments`.  ``index_uuid`` names the folder of this one.  The other arguments are those of
        `create_index` and `create_scalar_index`.  ``replace`` has no effect: the commit says which segments go.  Raises
        as `create_scalar_index` does, and UnsupportedError for ``train=False``.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> parts = [ds.create_index_uncommitted("id", "BTREE", fragment_ids=[n]) for n in (0, 1)]
        >>> [part.fragment_ids for part in parts]
        [{0}, {1}]
        """
        if fragment_ids is None:
            message = "create_index_uncommitted requires fragment_ids for distributed index build"
            raise ArgumentError(message)
        if not train:
            message = "create_index_uncommitted(train=False): a segment without rows is not made; leave the call out"
            raise UnsupportedError(message)
        only = one_column(column)
        options = {**parameters, **text_options(format_version, document_granularity)}
        vectors = {**ops.given_arguments(locals()), "rabitq_model": rabitq_model}
        kind = index_type if isinstance(index_type, str) else index_type.index_type
        if not ops.is_vector_kind(kind) and metric == METRIC:
            del vectors["metric"]
        kind, chosen = chosen_kind(index_type, {**present(vectors), **options})
        fragments = ops.fragments_of(self._snapshot, fragment_ids)
        build = ops.plan_index(self._snapshot, only, kind, name, chosen, fragments)
        if ops.is_vector_kind(kind):
            ops.check_name(self._snapshot, build, replace=False)
        if index_uuid is not None:
            build = ops.in_folder(build, index_uuid)
        return _shown(ops.build_index(build))

    @hands_over
    def merge_existing_index_segments(self, segments: Iterable[Index]) -> Index:
        """Make one segment of several, and return its entry; nothing is committed.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri, max_rows_per_file=2)
        >>> parts = [ds.create_index_uncommitted("id", "BTREE", fragment_ids=[n]) for n in (0, 1)]
        >>> ds.merge_existing_index_segments(parts).fragment_ids
        {0, 1}
        """
        return _shown(ops.merge_segments(self._snapshot, _entries(segments)))

    @hands_over
    def merge_index_metadata(
        self,
        index_uuid: str,
        index_type: str,
        batch_readhead: int | None = None,
        progress_callback: Any = None,
    ) -> None:
        """Merge the parts of a full-text index, or of a BTREE, that were made in the folder ``index_uuid``.

        Parts are made by `create_scalar_index` with ``fragment_ids``, on as many machines as like.  When the index is
        written, its parts are deleted.  Nothing is committed: that is done by `LanceDataset.commit` with a
        `LanceOperation.CreateIndex`.  `batch_readhead` and `progress_callback` have no effect.

        Raises ArgumentError for other kinds, which have `create_index_uncommitted`, and for parts with different
        settings; NotFoundError if there are none.

        >>> from uuid import uuid4
        >>> ds = pennon.write_dataset(pa.table({"t": ["a fox", "a whale"]}), uri)
        >>> folder = str(uuid4())
        >>> ds.create_scalar_index("t", "INVERTED", fragment_ids=[0], index_uuid=folder)
        >>> ds.merge_index_metadata(folder, "INVERTED")
        """
        ops.merge_parts(self._snapshot, index_uuid, index_type)

    def commit_existing_index_segments(
        self, index_name: str, column: str, segments: Iterable[Index]
    ) -> Self:
        """Make segments part of the index of that name, and turn the handle to the version that has it.

        They replace those segments of it that share a fragment with them.  Raises ArgumentError for segments of another
        column, and for a kind that is not that of the segments that stay.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> segment = ds.create_index_uncommitted("id", "BTREE", fragment_ids=[0])
        >>> ds.commit_existing_index_segments("id_idx", "id", [segment]).has_index
        True
        """
        self._turn_to(ops.commit_segments(self._snapshot, index_name, column, _entries(segments)))
        return self

    def mem_wal_index_details(self) -> None:
        """Return None, for a table without rows beside it (MemWAL); raises UnsupportedError for one with them.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.mem_wal_index_details() is None
        True
        """
        entries = parse_indices(self._snapshot.manifest.indices)
        if any(each.name == MEM_WAL for each in entries):
            message = "the table has a MemWAL, whose details are not read yet"
            raise UnsupportedError(message)

    def drop_index(self, name: str) -> None:
        """Drop an index, and turn the handle to the version made; its files go at clean-up.

        Raises IndexNotFoundError if there is none of that name.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.drop_index("id_idx")
        """
        self._turn_to(ops.drop_index(self._snapshot, name))


def _shown(index: table_indices.Index) -> Index:
    shown: Index = descriptions().from_index(index)
    return shown


def _entries(segments: Iterable[Index]) -> Sequence[table_indices.Index]:
    return [descriptions().to_index(each) for each in segments]
