"""A commit's operation as a value: pylance's ``LanceOperation`` and ``Transaction``."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from pennon.compat.not_implemented import Unfinished
from pennon.dataset.metadata import DataFile, FragmentMetadata
from pennon.schema.lance_schema import LanceSchema

LANCE_COMMIT_MESSAGE_KEY = "__lance_commit_message"


def _check_fragments(fragments: Any) -> None:
    """Raise TypeError unless this is a list of FragmentMetadata."""
    if not isinstance(fragments, list):
        message = f"fragments must be a list of FragmentMetadata, got {type(fragments).__name__}"
        raise TypeError(message)
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            name = type(fragment).__name__
            message = f"fragments must be a list of FragmentMetadata, but there is a {name} in it"
            raise TypeError(message)


@dataclass
class IndexFile:
    """A file of an index: its path in the index's folder, and its size.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> entry = ds.create_index_uncommitted("id", "BTREE", fragment_ids=[0])
    >>> sorted(file.path for file in entry.files)
    ['page_data.lance', 'page_lookup.lance']
    """

    path: str
    size_bytes: int


@dataclass
class Index:
    """An index of the table, or one segment of it.

    ``wire`` is its message as it was read, so that what Pennon does not show is not lost.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> entry = ds.create_index_uncommitted("id", "BTREE", fragment_ids=[0])
    >>> entry.name, sorted(entry.fragment_ids)
    ('id_idx', [0])
    """

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: Iterable[int]
    index_version: int
    created_at: datetime | None = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)
    wire: bytes = field(default=b"", repr=False, compare=False)


class LanceOperation(metaclass=Unfinished):
    """The operations that a transaction may hold.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> files = pennon.fragment.write_fragments(pa.table({"id": [4]}), ds)
    >>> append = pennon.LanceOperation.Append(files)
    >>> pennon.LanceDataset.commit(ds, append, read_version=1).count_rows()
    4
    """

    class BaseOperation:
        """The base class of all operations; users make its subclasses only."""

    @dataclass
    class Append(BaseOperation):
        """Add the fragments to the table; their ids are given at the commit."""

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.fragments)

    @dataclass
    class Overwrite(BaseOperation):
        """Replace schema and fragments of the table, or make a new one."""

        new_schema: pa.Schema | LanceSchema
        fragments: list[FragmentMetadata]
        initial_bases: list[Any] | None = None

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.fragments)

    @dataclass
    class Delete(BaseOperation):
        """Delete rows: fragments with new deletion files, and fragments that are gone."""

        updated_fragments: list[FragmentMetadata]
        deleted_fragment_ids: list[int]
        predicate: str

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.updated_fragments)

    @dataclass
    class Update(BaseOperation):
        """Change rows: away from old fragments and into new ones, or columns written anew.

        ``update_mode``: ``rewrite_rows``, ``rewrite_columns`` or nothing.
        ``updated_fragment_offsets``: the rows of fragments whose columns were written anew, each a
        serialized roaring bitmap.  ``adds_keys``, of Pennon only: rows are added because the table has
        none with their keys, so nobody else may have added any since; it is not written into files.
        """

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None
        adds_keys: bool = field(default=False, repr=False, compare=False)

        def __post_init__(self) -> None:
            """Check the fragments."""
            _check_fragments(self.updated_fragments)
            _check_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """Add columns: all fragments with their further files, and the new schema."""

        fragments: list[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            """Check the fragments."""
            if isinstance(self.schema, pa.Schema):
                message = "give Merge a LanceSchema: a pyarrow.Schema has no field ids"
                warnings.warn(message, DeprecationWarning, stacklevel=2)
            _check_fragments(self.fragments)

    @dataclass
    class Project(BaseOperation):
        """Drop, rename or reorder columns: a new schema over the same files."""

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class Restore(BaseOperation):
        """Make an old version the newest again."""

        version: int

    @dataclass
    class Clone(BaseOperation):
        """Begin a table as a version of another."""

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class RewriteGroup:
        """Fragments, and those that hold their rows now."""

        old_fragments: list[FragmentMetadata]
        new_fragments: list[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index that was made anew for rewritten fragments."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Put the same rows into other fragments."""

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex]

        def __post_init__(self) -> None:
            """Check the fragments."""
            for group in self.groups:
                _check_fragments(group.old_fragments)
                _check_fragments(group.new_fragments)

    @dataclass
    class CreateIndex(BaseOperation):
        """Add indices and take others away."""

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class DataReplacementGroup:
        """A file for columns of a fragment."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Put other files in place of those with the same columns."""

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class UpdateMap:
        """Changes of a map; None takes a key away, ``replace`` all that is not named."""

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change config, and metadata of the table, the schema or of fields, by field id."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class Other(BaseOperation):
        """An operation that users do not make, by its name in transaction.proto."""

        name: str
        message: bytes = field(default=b"", repr=False)


@dataclass
class Transaction:
    """One commit: an operation, and the version that it was planned against.

    >>> ds = pennon.write_dataset(pa.table({"id": [1, 2, 3]}), uri)
    >>> transaction = ds.read_transaction(1)
    >>> transaction.read_version, type(transaction.operation).__name__
    (0, 'Overwrite')
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
