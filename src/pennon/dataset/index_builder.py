"""An index of vectors made step by step (pylance's ``lance.indices.IndicesBuilder``)."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pennon import ops
from pennon.dataset.fragment import LanceFragment
from pennon.dataset.scanner_builder import ScannerBuilder
from pennon.dataset.vector_models import IvfModel, PqModel
from pennon.dataset.write import WriteOptions, write_version
from pennon.errors import ArgumentError, ColumnTypeError, NoColumnError, UnsupportedError
from pennon.index.vector.build.new_index import as_stored
from pennon.index.vector.kmeans import Centroids
from pennon.index.vector.metric import L2, metric_named
from pennon.index.vector.rows import as_array, as_floats, is_vector, usable, vector_type
from pennon.scan.read.tasks import live_row_count
from pennon.schema.types import storage_type
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase

_LEAST_RATE: Final = 2


class IndicesBuilder:
    """The steps of an IVF_PQ index on a column, for those who train once and code on many machines.

    `train_ivf` and `train_pq` (or `prepare_global_ivf_pq`) give the models.  Then either each machine calls
    `LanceDataset.create_index_uncommitted` with them for its fragments, and one merges and commits the segments; or
    each calls `transform_vectors`, and one `shuffle_transformed_vectors` and `load_shuffled_vectors`.
    `LanceDataset.create_index` does it all.

    ``column``: one of vectors of floats, or of bits for hamming.  Raises KeyError if it is not there, TypeError if
    it is of something else.

    >>> import numpy as np, pennon, tempfile
    >>> from pennon.indices import IndicesBuilder
    >>> from pennon.vector import vec_to_table
    >>> vectors = np.random.default_rng(1).normal(size=(600, 16))
    >>> table = pennon.write_dataset(vec_to_table(vectors), tempfile.mkdtemp() + "/t.lance")
    >>> builder = IndicesBuilder(table, "vector")
    >>> ivf = builder.train_ivf(4, sample_rate=100)
    >>> pq = builder.train_pq(ivf, 2, sample_rate=2)
    >>> table = table.create_index(
    ...     "vector", "IVF_PQ", num_partitions=4, num_sub_vectors=2,
    ...     ivf_centroids=ivf.centroids, pq_codebook=pq.codebook,
    ... )
    >>> table.index_statistics("vector_idx")["num_indexed_rows"]
    600
    """

    def __init__(self, dataset: DatasetBase, column: str | Sequence[str]) -> None:
        names = [column] if isinstance(column, str) else list(column)
        if len(names) != 1:
            message = f"an index is of one column, got {names}"
            raise ArgumentError(message)
        schema = dataset.schema
        if names[0] not in schema.names:
            message = f"{names[0]} not found in schema"
            raise NoColumnError(message)
        kind = storage_type(schema.field(names[0]).type)
        element = vector_type(kind).value_type if is_vector(kind) else None
        if element is None or not (
            pa.types.is_floating(element) or pa.types.is_unsigned_integer(element)
        ):
            message = (
                f"Vector column {names[0]} must be FixedSizeListArray, list<FixedSizeList> (multivector), or "
                f"1-dimensional FixedShapeTensorArray of floats or unsigned integers, got {kind}"
            )
            raise ColumnTypeError(message)
        self.dataset = dataset
        self.column = names
        self.dimension: int = vector_type(kind).list_size

    def train_ivf(
        self,
        num_partitions: int | None = None,
        *,
        distance_type: str = "l2",
        accelerator: Any = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        fragment_ids: Iterable[int] | None = None,
    ) -> IvfModel:
        """Train centroids on a sample of ``sample_rate`` vectors for each, of some fragments or all.

        ``num_partitions``: by default the root of the number of rows.  Raises ArgumentError for fewer rows than
        the sample has, and for a metric or a fragment that is not there.
        """
        _refuse(accelerator)
        fragments, rows = self._fragments(fragment_ids)
        partitions = round(math.sqrt(rows)) if num_partitions is None else num_partitions
        _check_rate(sample_rate)
        if partitions * sample_rate > rows:
            message = (
                f"There are not enough rows in the dataset to create IVF centroids with {partitions} partitions "
                f"and a sample rate of {sample_rate}. {partitions * sample_rate} rows needed and there are {rows}"
            )
            raise ArgumentError(message)
        metric = metric_named(distance_type)
        if metric is None:
            message = f"Distance type {distance_type} not supported."
            raise ArgumentError(message)
        arguments = {
            "metric": metric.name,
            "num_partitions": partitions,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
        }
        found = ops.train_centroids(self.dataset.snapshot, self.column[0], arguments, fragments)
        return IvfModel(as_array(found), metric.name)

    def train_pq(
        self,
        ivf_model: IvfModel,
        num_subvectors: int | None = None,
        *,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Iterable[int] | None = None,
    ) -> PqModel:
        """Train code words on what a sample of vectors is beside its centroids.

        ``num_subvectors``: by default one for 16 numbers of a vector, or for 8.  ``sample_rate``: vectors for each of
        the ``2 ** num_bits`` words.  Raises ArgumentError for fewer rows than that, and for parts that do not
        divide a vector.
        """
        fragments, rows = self._fragments(fragment_ids)
        parts = self._parts(num_subvectors)
        _check_rate(sample_rate)
        needed = (1 << num_bits) * sample_rate
        if needed > rows:
            message = (
                f"There are not enough rows in the dataset to create PQ codebook with a sample rate of {sample_rate} "
                f"and num_bits of {num_bits}.  {needed} rows needed and there are {rows}"
            )
            raise ArgumentError(message)
        arguments = {
            "metric": ivf_model.distance_type,
            "ivf_centroids": ivf_model.centroids,
            "num_sub_vectors": parts,
            "num_bits": num_bits,
            "sample_rate": sample_rate,
            "max_iters": max_iters,
        }
        found = ops.train_codebook(self.dataset.snapshot, self.column[0], arguments, fragments)
        return PqModel(parts, as_array(as_stored(found)), num_bits=num_bits)

    def prepare_global_ivf_pq(
        self,
        num_partitions: int | None = None,
        num_subvectors: int | None = None,
        *,
        distance_type: str = "l2",
        accelerator: Any = None,
        sample_rate: int = 256,
        max_iters: int = 50,
        num_bits: int = 8,
        fragment_ids: Iterable[int] | None = None,
    ) -> dict[str, Any]:
        """Train both, and return them as `LanceDataset.create_index_uncommitted` takes them.

        The keys are ``ivf_centroids`` and ``pq_codebook``; raises as `train_ivf` and `train_pq` do.
        """
        chosen = None if fragment_ids is None else list(fragment_ids)
        ivf = self.train_ivf(
            num_partitions,
            distance_type=distance_type,
            accelerator=accelerator,
            sample_rate=sample_rate,
            max_iters=max_iters,
            fragment_ids=chosen,
        )
        pq = self.train_pq(
            ivf,
            num_subvectors,
            sample_rate=sample_rate,
            max_iters=max_iters,
            num_bits=num_bits,
            fragment_ids=chosen,
        )
        return {"ivf_centroids": ivf.centroids, "pq_codebook": pq.codebook}

    def assign_ivf_partitions(
        self, ivf_model: IvfModel, accelerator: Any = None, *, output_uri: str | None = None
    ) -> str:
        """Write the partition of each vector to a table with the columns ``row_id`` and ``partition``; return its URI.

        ``output_uri``: by default a folder for temporary files.  Nothing else needs the table: `transform_vectors`
        finds the partitions as it goes.  Raises ArgumentError for centroids of other vectors than the column's, and
        UnsupportedError for an ``accelerator`` other than ``cpu``.
        """
        _refuse(None if accelerator == "cpu" else accelerator)
        stored = ivf_model.centroids
        stored = stored.storage if isinstance(stored, pa.ExtensionArray) else stored
        centroids, _ = usable(stored, np.arange(len(stored), dtype=np.uint64), L2)
        if centroids.shape[1] != self.dimension:
            message = (
                f"centroids of {centroids.shape[1]} numbers are none of vectors of {self.dimension}"
            )
            raise ArgumentError(message)
        metric = metric_named(ivf_model.distance_type)
        if metric is None:
            message = f"there is no distance_type {ivf_model.distance_type!r}"
            raise ArgumentError(message)
        schema = pa.schema([("row_id", pa.uint64()), ("partition", pa.uint32())])
        near = Centroids.of(as_floats(centroids)[None], by_product=metric.is_product)

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in self._vectors():
                rows, numbers = usable(batch.column(0), batch.column(1).to_numpy(), metric)
                parts = near.nearest(as_floats(rows))[0].ravel().astype(np.uint32)
                yield pa.RecordBatch.from_arrays(
                    [pa.array(numbers), pa.array(parts)], schema=schema
                )

        uri = output_uri or f"{tempfile.mkdtemp(prefix='pennon-partitions-')}/partitions.lance"
        reader = pa.RecordBatchReader.from_batches(schema, batches())
        write_version(reader, uri, None, WriteOptions())
        return uri

    def _vectors(self) -> Iterator[pa.RecordBatch]:
        """Yield the column's vectors behind each other, with the ids of their rows."""
        scan = ScannerBuilder(self.dataset).columns(self.column).with_row_id().to_scanner()
        for batch in scan.to_batches():
            values = batch.column(0)
            stored = values.storage if isinstance(values, pa.ExtensionArray) else values
            yield pa.RecordBatch.from_arrays([stored, batch.column(1)], ["vectors", "rows"])

    def transform_vectors(
        self,
        ivf: IvfModel,
        pq: PqModel,
        dest_uri: str,
        fragments: Sequence[LanceFragment] | None = None,
        partition_ds_uri: str | None = None,
    ) -> None:
        """Write the codes of the vectors of some fragments, by default of all, to a file.

        It has ``_rowid``, ``__ivf_part_id`` and ``__pq_code`` of each vector that is one.  ``partition_ds_uri``, what
        `assign_ivf_partitions` wrote, is not read: partitions are found again, which takes no longer.  Raises ArgumentError for no
        fragments, and for models of other vectors than the column's.
        """
        if fragments is not None and not fragments:
            message = "fragments must be a non-empty list or None"
            raise ArgumentError(message)
        chosen = None if fragments is None else [each.fragment_id for each in fragments]
        build = ops.plan_codes(
            self.dataset.snapshot,
            self.column[0],
            None,
            _arguments(ivf, pq),
            self._fragments(chosen)[0],
        )
        ops.write_codes(build, dest_uri)

    def shuffle_transformed_vectors(
        self,
        unsorted_filenames: Any,
        dir_path: str,
        ivf: IvfModel,
        shuffle_output_root_filename: str | None = "sorted",
    ) -> list[str]:
        """Sort such files by partition, into files of the same folder, and return their names."""
        if not isinstance(unsorted_filenames, list):
            message = "filenames must be a list of strings"
            raise ArgumentError(message)
        root = shuffle_output_root_filename or "sorted"
        found: list[str] = ops.sort_codes(unsorted_filenames, dir_path, ivf.num_partitions, root)
        return found

    def load_shuffled_vectors(
        self,
        filenames: Any,
        dir_path: str,
        ivf: IvfModel,
        pq: PqModel,
        index_name: str | None = None,
    ) -> None:
        """Make an index of sorted files, and commit it; `LanceDataset.checkout_latest` sees it.

        It covers the fragments whose rows are in the files, and stands for an index of that name on the column, by
        default ``<column>_idx``.  Raises ArgumentError for no files, and for one that is not sorted by partition.
        """
        if not isinstance(filenames, list):
            message = "filenames must be a list of strings"
            raise ArgumentError(message)
        arguments = _arguments(ivf, pq)
        build = ops.plan_codes(self.dataset.snapshot, self.column[0], index_name, arguments)
        ops.load_codes(build, filenames, dir_path)

    def _fragments(self, numbers: Iterable[int] | None) -> tuple[list[Fragment], int]:
        """Return some fragments, or all, and how many rows they have."""
        snapshot = self.dataset.snapshot
        if numbers is None:
            chosen = list(snapshot.manifest.fragments)
        else:
            numbers = list(numbers)
            known = {each.id for each in snapshot.manifest.fragments}
            for number in numbers:
                if number not in known:
                    message = f"Fragment id does not exist: {number}"
                    raise ArgumentError(message)
            chosen = ops.fragments_of(snapshot, numbers)
        return chosen, sum(live_row_count(snapshot, each) for each in chosen)

    def _parts(self, number: Any) -> int:
        """Return into how many parts a vector is cut."""
        dimension = self.dimension
        if number is None:
            width = next((width for width in (16, 8) if dimension % width == 0), None)
            if width is None:
                message = (
                    f"vector dimension {dimension} is not divisible by 16 or 8.  PQ performance will be poor.  "
                    "Cowardly refusing to create PQ model.  Please specify num_subvectors manually."
                )
                raise ArgumentError(message)
            return dimension // width
        if not isinstance(number, int):
            message = "num_subvectors must be an int"
            raise ArgumentError(message)
        if number < 1:
            message = "num_subvectors must be greater than 0"
            raise ArgumentError(message)
        if number > dimension:
            message = "num_subvectors must be less than or equal to the dimension of the vectors"
            raise ArgumentError(message)
        if dimension % number:
            message = f"dimension ({dimension}) must be divisible by num_subvectors ({number}) without remainder"
            raise ArgumentError(message)
        return int(number)


def _arguments(ivf: IvfModel, pq: PqModel) -> dict[str, Any]:
    """Return models as `create_index` takes them."""
    return {
        "metric": ivf.distance_type,
        "ivf_centroids": ivf.centroids,
        "pq_codebook": pq.codebook,
        "num_sub_vectors": pq.num_subvectors,
        "num_bits": pq.num_bits,
    }


def _refuse(accelerator: Any) -> None:
    if accelerator is not None:
        message = "accelerator: Pennon trains on the CPU; leave it out"
        raise UnsupportedError(message)


def _check_rate(rate: Any) -> None:
    if not isinstance(rate, int) or rate < _LEAST_RATE:
        message = f"The sample_rate must be an int greater than 1, got {rate}"
        raise ArgumentError(message)
