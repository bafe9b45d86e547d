"""Changing the columns of one fragment, for a commit that follows (``lance.fragment``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon import ops
from pennon.core.units import FragmentId
from pennon.dataset.base import DatasetBase
from pennon.dataset.metadata import FragmentMetadata
from pennon.io.durability import hands_over
from pennon.schema.lance_schema import LanceSchema
from pennon.table.fragment import Fragment

if TYPE_CHECKING:
    from pennon.dataset.new_columns import NewColumns
    from pennon.table.fragment import Fragment


class FragmentColumns:
    """The methods of `LanceFragment` that write columns; none commits."""

    _ds: DatasetBase
    _fragment: Fragment

    def merge_columns(
        self,
        value_func: Any,
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Write new columns of this fragment; see `LanceDataset.add_columns`.

        Returns the fragment with its new file, and the schema of the table with the new columns, for
        a `LanceOperation.Merge` of all fragments.
        """
        from pennon.dataset.new_columns import plan_fragment_columns  # noqa: PLC0415 - saves writers and SQL

        planned = plan_fragment_columns(
            self._ds.snapshot, self._fragment, value_func, columns, reader_schema, batch_size
        )
        return self._run(planned)

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: Any = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Write the columns of other data, joined by a key; see `LanceDataset.merge`.

        Returns what `merge_columns` does.
        """
        from pennon.dataset.new_columns import NewColumns  # noqa: PLC0415 - as above

        snapshot = self._ds.snapshot
        return self._run(NewColumns.merged(snapshot, data_obj, left_on, right_on, schema))

    @hands_over
    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: Any = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Write columns anew, with the values of other data where that has a row's key.

        Returns the fragment and the ids of the fields that were written, for a
        `LanceOperation.Update`; ``with_offsets``: also the physical offsets of the rows found, as a
        Roaring bitmap.

        Raises NotFoundError for a key or column that is not there, SchemaMismatchError for types.
        """
        key = left_on if right_on is None else right_on
        reader = ops.as_reader(data_obj, schema)
        updated = ops.update_columns(self._ds.snapshot, self._number(), reader, left_on, key)
        shown = self._shown(updated.fragment), [int(each) for each in updated.fields_modified]
        if not with_offsets:
            return shown
        return (*shown, updated.serialize_offsets())

    @staticmethod
    def create_from_file(filename: str, dataset: DatasetBase, fragment_id: int) -> FragmentMetadata:
        """Return the fragment that a data file in the table's ``data/`` makes.

        Raises NotFoundError if it is not there, SchemaMismatchError if it does not fit the table.
        """
        fragment = ops.adopt_file(dataset.snapshot, filename, FragmentId(fragment_id))
        return FragmentMetadata.from_fragment(fragment)

    @hands_over
    def _run(self, planned: NewColumns) -> tuple[FragmentMetadata, LanceSchema]:
        fragment = planned.run_one(self._number())
        return self._shown(fragment), LanceSchema(planned.plan.schema)

    def _shown(self, fragment: Fragment) -> FragmentMetadata:
        deleted = len(self._ds.snapshot.deleted(self._fragment))
        return FragmentMetadata.from_fragment(fragment, num_deleted_rows=deleted)

    def _number(self) -> int:
        """Return the number of the fragment among those of its table."""
        fragments = self._ds.snapshot.manifest.fragments
        return [fragment.id for fragment in fragments].index(self._fragment.id)
