"""The indices of a table: how much of them a commit must understand.

What an index answers is the business of `pennon.index`.  A commit that moves rows, changes a column or drops one
must see to it that an index is not believed where it is no longer right.  So an index is the message
of table.proto as it was written, and beside it what the rules need of that: its name and fields, the
fragments that it covers, and what kind it is.
"""

from __future__ import annotations

from dataclasses import field
from datetime import UTC, datetime
from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId, FragmentId
from pennon.errors import ArgumentError

FRAGMENT_REUSE = "__lance_frag_reuse"
"""The name of the index that says which fragments became which; it has no field."""

MEM_WAL = "__lance_mem_wal"
"""The name of the index that describes rows beside the table (`pennon.table.mem_wal`); it has no field."""

SYSTEM = frozenset({FRAGMENT_REUSE, MEM_WAL})
"""The names of indices that no user made."""

_RESERVED: Final = "__lance_"
"""The beginning of index names that pylance reserves: it trusts the name, and not the kind."""

_SYSTEM_KINDS: Final = frozenset({"FragmentReuseIndexDetails", "MemWalIndexDetails"})

_BY_ROW_IDS = frozenset(
    f"{kind}IndexDetails" for kind in ("Bitmap", "Inverted", "LabelList", "NGram", "Vector")
)
"""Kinds of indices that name rows by their stable ids, in tables that have them.

The others hold addresses there, too.  Source: ledger F-152 (measured on pylance 14.0.2).
"""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of an index: its path in the index's folder, and its size."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RewrittenIndex:
    """An index that was made anew for rewritten fragments; ``details`` is a protobuf Any."""

    old_id: str
    new_id: str
    details_url: str = ""
    details: bytes = field(default=b"", repr=False)
    index_version: int = 0
    new_files: tuple[IndexFile, ...] = ()
    unknown: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Index:
    """One index, or one segment of it.

    ``fragment_ids`` are the fragments that it covers, None where its writer did not say.  ``details``
    are a protobuf Any, which says what kind of index it is.  ``files`` is empty where its writer did not
    list them.  ``wire`` is its message, an IndexMetadata, which is written back as it is.
    """

    uuid: str
    name: str
    field_ids: tuple[FieldId, ...]
    fragment_ids: frozenset[FragmentId] | None
    dataset_version: int
    index_version: int = 0
    created_at_ms: int | None = None
    base_id: int | None = None
    details: tuple[str, bytes] | None = field(default=None, repr=False)
    files: tuple[IndexFile, ...] = ()
    wire: bytes = field(default=b"", repr=False)

    @property
    def type_name(self) -> str:
        """Return the name of the message of its details, e.g. ``VectorIndexDetails``, or nothing."""
        return "" if self.details is None else self.details[0].rpartition(".")[2]

    @property
    def created_at(self) -> datetime | None:
        """Return when it was made; None if its writer did not say, or says a time that no calendar has."""
        return None if self.created_at_ms is None else time_of(self.created_at_ms)

    @property
    def is_vector(self) -> bool:
        """Return whether it is an index of vectors."""
        return self.type_name.endswith("VectorIndexDetails")

    @property
    def goes_by_row_ids(self) -> bool:
        """Return whether it names rows by their stable ids, if the table has them."""
        return self.type_name in _BY_ROW_IDS

    @property
    def folder(self) -> str:
        """Return the folder of its files, as `pennon.table.base_paths` names places."""
        return self.own_folder if self.base_id is None else f"@{self.base_id}/{self.own_folder}"

    @property
    def own_folder(self) -> str:
        """Return the folder where its files lie if they do not lie in a base path, though its entry names one.

        pylance 14 keeps the base path of an index that it rewrites while it compacts a branch or a shallow clone,
        and writes the files into the table's own folder.
        """
        return f"_indices/{self.uuid}"


def time_of(milliseconds: int) -> datetime | None:
    """Return the time of milliseconds since 1970; None if no calendar has it."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def check_index_name(name: str, kind: str = "") -> None:
    """Raise ArgumentError for a reserved name of an index, unless it is of a kind that no user makes."""
    if name.startswith(_RESERVED) and kind not in _SYSTEM_KINDS:
        message = (
            f"the name {name!r} is reserved: names of indices that begin with {_RESERVED!r} are "
            "those of pylance's own indices; choose another name"
        )
        raise ArgumentError(message)
