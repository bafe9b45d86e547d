"""The methods of `LanceDataset` that describe indices and read them into memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from pennon.dataset.base import DatasetBase
from pennon.errors import ArgumentError

if TYPE_CHECKING:
    from pennon.dataset.index_descriptions import IndexDescription
    from pennon.dataset.vector_models import IvfModel


class IndexInformation(TypedDict):
    """One segment of an index, as `LanceDataset.list_indices` shows it.

    >>> from pennon.dataset import IndexInformation
    >>> sorted(IndexInformation.__annotations__)
    ['base_id', 'fields', 'fragment_ids', 'name', 'type', 'uuid', 'version']
    """

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: set[int]
    base_id: int | None


class DatasetIndexReads(DatasetBase):
    """The methods of `LanceDataset` that describe indices and read them into memory."""

    def describe_indices(self) -> list[IndexDescription]:
        """Return all indices, ordered by name; their folders are listed for the sizes.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> [(index.name, index.index_type) for index in ds.describe_indices()]
        [('id_idx', 'BTree')]
        """
        found: list[IndexDescription] = descriptions().describe(self._snapshot)
        return found

    def list_indices(self) -> list[IndexInformation]:
        """Return all segments of all indices, with a warning of those that are not asked.

        `describe_indices` says more.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> [index["name"] for index in ds.list_indices()]
        ['id_idx']
        """
        message = "list_indices is deprecated, by pylance too: use describe_indices"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        described = self.describe_indices()
        for index in described:
            if "not_asked" in index.details:
                message = f"index {index.name!r} is not asked: {index.details['not_asked']}"
                warnings.warn(message, UserWarning, stacklevel=2)
        return [
            IndexInformation(
                name=index.name,
                type=index.index_type,
                uuid=segment.uuid,
                fields=index.field_names,
                version=segment.dataset_version_at_last_update,
                fragment_ids=segment.fragment_ids,
                base_id=segment.base_id,
            )
            for index in described
            for segment in index.segments
        ]

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index: covered and uncovered rows, and those of its segments.

        Raises KeyError if there is none of that name.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.index_statistics("id_idx")["num_indexed_rows"]
        3
        """
        found: dict[str, Any] = descriptions().statistics_of(self._snapshot, index_name)
        return found

    def get_ivf_model(self, index_name: str) -> IvfModel | None:
        """Return the centroids and the metric of an index of vectors; None if it is not trained yet.

        Raises IndexNotFoundError if there is none of that name, ArgumentError if it is of something else.

        >>> from pennon.vector import vec_to_table
        >>> ds = pennon.write_dataset(vec_to_table([[float(n), 1.0] for n in range(300)]), uri)
        >>> ds = ds.create_index("vector", "IVF_FLAT", num_partitions=2)
        >>> ds.get_ivf_model("vector_idx").num_partitions
        2
        """
        found: IvfModel | None = descriptions().ivf_model_of(self._snapshot, index_name)
        return found

    def centroids(self, *, index_name: str | None = None, column: str | None = None) -> Any:
        """Return the centroids of an index of vectors, named or the first of a column, as fixed-size lists.

        Raises KeyError for a column without such an index, and as `get_ivf_model` does.

        >>> from pennon.vector import vec_to_table
        >>> ds = pennon.write_dataset(vec_to_table([[float(n), 1.0] for n in range(300)]), uri)
        >>> ds = ds.create_index("vector", "IVF_FLAT", num_partitions=2)
        >>> len(ds.centroids(column="vector"))
        2
        """
        if index_name is None:
            if column is None:
                message = "Must provide 'index_name' or 'column'."
                raise ArgumentError(message)
            index_name = descriptions().vector_index_of(self._snapshot, column)
        found = self.get_ivf_model(index_name)
        return None if found is None else found.centroids

    def prewarm_index(
        self,
        name: str,
        *,
        with_position: bool = False,
        index_segments: Iterable[str | UUID] | None = None,
    ) -> None:
        """Read an index, or some segments of it, into the memory of the session, as far as that allows.

        Raises IndexNotFoundError if there is none of that name, ArgumentError for ``with_position`` where it
        has no positions.

        >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.prewarm_index("id_idx")
        """
        chosen = None if index_segments is None else frozenset(map(str, index_segments))
        descriptions().warm(self._snapshot, name, chosen, with_position=with_position)


def descriptions() -> Any:
    """Return the module that describes indices; it loads operations, which opening a table must not."""
    from pennon.dataset import index_descriptions  # noqa: PLC0415 - saves operations at open

    return index_descriptions
