"""What a dataset says of its indices, and how one is dropped; `pennon.scan.index_lookup` asks them."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, TypedDict

from pennon import ops
from pennon.dataset.base import DatasetBase

if TYPE_CHECKING:
    from pennon.dataset.index_descriptions import IndexDescription


class IndexInformation(TypedDict):
    """One segment of an index, as `LanceDataset.list_indices` shows it."""

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: set[int]
    base_id: int | None


class DatasetIndices(DatasetBase):
    """The indices of a table."""

    def describe_indices(self) -> list[IndexDescription]:
        """Return all indices, ordered by name; their folders are listed for the sizes."""
        from pennon.dataset.index_descriptions import describe  # noqa: PLC0415 - saves operations at open

        return describe(self._snapshot)

    def list_indices(self) -> list[IndexInformation]:
        """Return all segments of all indices; `describe_indices` says more."""
        message = "list_indices is deprecated, by pylance too: use describe_indices"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
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
            for index in self.describe_indices()
            for segment in index.segments
        ]

    def drop_index(self, name: str) -> None:
        """Drop an index, and turn the handle to the version made; its files go at clean-up.

        Raises NotFoundError if there is none of that name.
        """
        self._turn_to(ops.drop_index(self._snapshot, name))
