"""The partitions of an index of vectors, read one by one (pylance's ``lance.dataset.VectorIndexReader``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pennon.dataset.index_descriptions import stored_vectors
from pennon.errors import ArgumentError
from pennon.index.vector.build.new_index import batch_of

if TYPE_CHECKING:
    from pennon.dataset.base import DatasetBase


class VectorIndexReader:
    """Reads the partitions of an index of vectors; raises ArgumentError for an index of something else.

    >>> import numpy as np, pennon, tempfile
    >>> from pennon.dataset import VectorIndexReader
    >>> from pennon.vector import vec_to_table
    >>> vectors = np.random.default_rng(1).normal(size=(100, 8))
    >>> table = pennon.write_dataset(vec_to_table(vectors), tempfile.mkdtemp() + "/t.lance")
    >>> reader = VectorIndexReader(table.create_index("vector", "IVF_FLAT", num_partitions=2), "vector_idx")
    >>> sum(reader.read_partition(number).num_rows for number in range(reader.num_partitions()))
    100
    """

    def __init__(self, dataset: DatasetBase, index_name: str) -> None:
        self.dataset = dataset
        self.index_name = index_name
        self._segments = stored_vectors(dataset.snapshot, index_name)
        if not self._segments:
            message = f"index {index_name!r} is not trained: it has no partitions"
            raise ArgumentError(message)

    def num_partitions(self) -> int:
        """Return the number of partitions, of the first segment."""
        return self._segments[0].model.partitions

    def read_partition(self, partition_id: int, *, with_vector: bool = False) -> pa.Table:
        """Return the rows of a partition, of all segments: ``_rowid``, and their codes if ``with_vector``.

        Codes are those of the rows beside them, however the files lay them out.  Rows that were deleted since are
        among them.  Raises IndexError if there is no such partition.
        """
        if not 0 <= partition_id < self.num_partitions():
            message = f"Partition id {partition_id} is out of range, expected 0 <= partition_id < {self.num_partitions()}"
            raise IndexError(message)
        found = []
        for each in self._segments:
            if partition_id < each.model.partitions:
                (coded,) = each.read(partition_id, partition_id + 1)
                batch = batch_of([coded], each.coder)
                found.append(batch if with_vector else batch.select([0]))
        return pa.Table.from_batches(found)
