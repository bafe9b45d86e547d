"""The rows of ``__manifest``, the Lance table that lists the tables and namespaces of a folder.

::

    object_id      train$images              unique: the unenforced primary key
    object_type    table                     or namespace; others are preserved, but not used
    location       1f2e3d4c_train$images     of a table: its folder below the root
    metadata       {"owner": "ann"}          properties as JSON; text, or of the type JSON in newer tables

Other columns are preserved, but not used.  Source: the lance-namespace specification, "Lance Directory Catalog";
``__manifest`` as pylance 14.0.2 writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from pennon.catalog.object_ids import DELIMITER
from pennon.errors import Breadcrumb, FormatError
from pennon.table.manifest import Manifest

NAMESPACE: Final = "namespace"
TABLE: Final = "table"
_KEY: Final = {"lance-schema:unenforced-primary-key:position": "0"}
SCHEMA: Final = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False, metadata=_KEY),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.field("object_id", pa.string()))),
    ]
)
"""The schema of a new ``__manifest``, as pylance 14.0.2 makes it."""


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One object of ``__manifest``: its id, its type, the folder of a table, and its properties as JSON."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str | None = None

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties; raises FormatError for JSON that is no object of texts."""
        if self.metadata is None:
            return {}
        try:
            found = json.loads(self.metadata)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            message = f"the properties of {self.object_id[:100]!r} in __manifest are no JSON object of texts"
            raise FormatError(message)
        return found


def metadata_of(properties: Mapping[str, str] | None) -> str | None:
    """Return properties as ``__manifest`` holds them: compact JSON, None if there are none."""
    if not properties:
        return None
    texts = {str(key): str(value) for key, value in properties.items()}
    return json.dumps(texts, separators=(",", ":"), ensure_ascii=False)


@dataclass(frozen=True)
class ManifestRows:
    """All rows of one version of ``__manifest``; ``manifest`` is None where there is no such table yet."""

    table: pa.Table
    manifest: Manifest | None = field(default=None, repr=False)

    @classmethod
    def none(cls) -> ManifestRows:
        """Return the rows of a ``__manifest`` that is not there."""
        return cls(pa.Table.from_batches([], SCHEMA))

    @cached_property
    def ids(self) -> list[str | None]:
        """Return the object id of each row."""
        return self._texts("object_id")

    @cached_property
    def types(self) -> list[str | None]:
        """Return the type of the object of each row."""
        return self._texts("object_type")

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {each: number for number, each in enumerate(self.ids) if each is not None}

    def find(self, object_id: str) -> ManifestRow | None:
        """Return the object of an id; None if there is none."""
        number = self._numbers.get(object_id)
        if number is None:
            return None
        kind, location, metadata = (
            self._texts(name, number)[0] for name in ("object_type", "location", "metadata")
        )
        return ManifestRow(object_id, kind or "", location, metadata)

    def find_table(self, object_id: str) -> ManifestRow | None:
        """Return the table of an id; None if there is none."""
        found = self.find(object_id)
        return found if found is not None and found.object_type == TABLE else None

    def has_namespace(self, object_id: str) -> bool:
        """Return whether a namespace with this object id exists; the root, whose id is empty, always does."""
        found = self.find(object_id) if object_id else None
        return not object_id or (found is not None and found.object_type == NAMESPACE)

    def has_below(self, object_id: str) -> bool:
        """Return whether a namespace holds any object, at any depth."""
        start = object_id + DELIMITER
        return any(each is not None and each.startswith(start) for each in self.ids)

    def names_in(self, namespace: str, kind: str) -> list[str]:
        """Return the names of the objects of a type directly in a namespace, sorted."""
        start = namespace + DELIMITER if namespace else ""
        return sorted(
            each[len(start) :]
            for each, its_kind in zip(self.ids, self.types, strict=True)
            if its_kind == kind
            and each is not None
            and each.startswith(start)
            and DELIMITER not in each[len(start) :]
        )

    def versions_of(self, object_id: str) -> frozenset[str]:
        """Return the ids of the versions of a table that a catalog keeps track of."""
        start = object_id + DELIMITER
        pairs = zip(self.ids, self.types, strict=True)
        return frozenset(
            each
            for each, kind in pairs
            if kind == "table_version" and each is not None and each.startswith(start)
        )

    def _texts(self, name: str, number: int | None = None) -> list[str | None]:
        """Return the texts of a column, or of one of its rows."""
        if name not in self.table.column_names:
            raise _damaged(f"it has no column {name!r}")
        column = self.table.column(name)
        chosen = column if number is None else column.slice(number, 1)
        found: list[str | None] = chosen.to_pylist()
        if not all(each is None or isinstance(each, str) for each in found):
            raise _damaged(f"its column {name!r} holds {column.type}, not text")
        return found


def changed(
    rows: ManifestRows,
    added: Sequence[ManifestRow],
    removed: frozenset[str],
    renamed: Mapping[str, str],
) -> pa.Table:
    """Return the rows without those removed, with other ids for those renamed, and with those added.

    All columns are preserved.
    """
    table, ids = rows.table, rows.ids
    kept = pa.array([each not in removed for each in ids], pa.bool_())
    names = [each if each is None else renamed.get(each, each) for each in ids]
    place = table.schema.get_field_index("object_id")
    key = table.schema.field(place)
    table = table.set_column(place, key, pa.chunked_array([pa.array(names, key.type)]))
    return pa.concat_tables([table.filter(kept), new_rows(table.schema, added)])


def new_rows(schema: pa.Schema, rows: Iterable[ManifestRow]) -> pa.Table:
    """Return rows for a ``__manifest`` of some schema; columns that are not ours are NULL."""
    listed = list(rows)
    columns = list(_columns(schema, listed))
    return pa.Table.from_arrays(columns, schema=schema)


def _columns(schema: pa.Schema, rows: Sequence[ManifestRow]) -> Iterator[pa.Array[Any]]:
    for column in schema:
        values = [getattr(row, column.name, None) for row in rows] if column.name in _OURS else None
        if values is None:
            yield pa.nulls(len(rows), column.type)
        elif isinstance(column.type, pa.BaseExtensionType):
            storage = pa.array(values, column.type.storage_type)
            yield pa.ExtensionArray.from_storage(column.type, storage)
        else:
            yield pa.array(values, column.type)


_OURS: Final = frozenset({"object_id", "object_type", "location", "metadata"})


def _damaged(fault: str) -> FormatError:
    message = f"__manifest is no list of tables: {fault}"
    return FormatError(message, where=Breadcrumb(file="__manifest"))
