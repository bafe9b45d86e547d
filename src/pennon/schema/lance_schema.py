"""A schema with its field ids, as pylance shows it: ``LanceSchema`` and ``LanceField``.

Inside Pennon a schema is a `pennon.schema.field.Schema`; these classes have pylance's methods.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa

from pennon.core.fast_dataclass import dataclass
from pennon.schema.arrow import field_to_arrow, schema_from_arrow, schema_to_arrow
from pennon.schema.field import Field, Schema
from pennon.schema.project import parse_path
from pennon.schema.wire import PRIMARY_KEY, parse_field_messages

CLUSTERING_KEY: Final = "lance-schema:unenforced-clustering-key"
"""The key of a field's metadata that makes it part of the clustering key."""


@dataclass(frozen=True, slots=True, repr=False)
class LanceField:
    """A field of a schema."""

    field: Field

    def name(self) -> str:
        """Return the name, without those of the fields above."""
        return self.field.name

    def id(self) -> int:
        """Return the id, -1 if it has none yet."""
        return self.field.id

    def children(self) -> list[LanceField]:
        """Return the fields directly below."""
        return [LanceField(child) for child in self.field.children]

    @property
    def metadata(self) -> dict[str, str]:
        """Return the field's metadata as text."""
        return _text(self.field.metadata)

    def to_arrow(self) -> pa.Field:
        """Return the field without its id."""
        return field_to_arrow(self.field)

    def is_unenforced_primary_key(self) -> bool:
        """Return whether the field is, or belongs to, an unenforced primary key."""
        return self._is_key(PRIMARY_KEY)

    def unenforced_primary_key_position(self) -> int | None:
        """Return the place of the field in the primary key, from 1 on; 0 if it has none of its own, None for no key."""
        return self._key_position(PRIMARY_KEY)

    def is_unenforced_clustering_key(self) -> bool:
        """Return whether the field is, or belongs to, an unenforced clustering key."""
        return self._is_key(CLUSTERING_KEY)

    def unenforced_clustering_key_position(self) -> int | None:
        """Return the place of the field in the clustering key; as `unenforced_primary_key_position`."""
        return self._key_position(CLUSTERING_KEY)

    def _is_key(self, key: str) -> bool:
        return self._key_position(key) is not None

    def _key_position(self, key: str) -> int | None:
        position = self.metadata.get(f"{key}:position", "")
        if position.isascii() and position.isdigit():
            return int(position)
        return 0 if self.metadata.get(key, "").lower() in {"true", "1", "yes"} else None

    def __repr__(self) -> str:
        """Return name, id and type."""
        below = f", children: {self.children()}" if self.field.children else ""
        return (
            f'Field {{ name: "{self.field.name}", id: {self.field.id}, '
            f'logical_type: "{self.field.logical_type}", '
            f"nullable: {str(self.field.nullable).lower()}{below} }}"
        )


@dataclass(frozen=True, slots=True, repr=False)
class LanceSchema:
    """A schema whose fields have ids.  It pickles.

    >>> ds = pennon.write_dataset(pa.table({"id": [1], "name": ["a"]}), uri)
    >>> [(field.name(), field.id()) for field in ds.lance_schema.fields()]
    [('id', 0), ('name', 1)]
    """

    schema: Schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Return the schema with ids from 0, depth first."""
        return LanceSchema(schema_from_arrow(schema))

    @staticmethod
    def _from_protos(metadata_json: str, *field_protos: bytes) -> LanceSchema:
        """Return the schema that pylance pickled: its metadata as JSON of bytes, and its fields as messages."""
        metadata = {key: bytes(value) for key, value in json.loads(metadata_json).items()}
        return LanceSchema(parse_field_messages(field_protos, metadata))

    def to_pyarrow(self) -> pa.Schema:
        """Return the schema without ids."""
        return schema_to_arrow(self.schema)

    def unenforced_primary_key(self) -> list[LanceField]:
        """Return the fields of the primary key, in its order; no writer enforces it.

        >>> key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
        >>> ds = pennon.write_dataset(pa.table({"id": [1]}, schema=pa.schema([key])), uri)
        >>> [field.name() for field in ds.lance_schema.unenforced_primary_key()]
        ['id']
        """
        return self._key(LanceField.unenforced_primary_key_position)

    def unenforced_clustering_key(self) -> list[LanceField]:
        """Return the fields of the clustering key, in its order."""
        return self._key(LanceField.unenforced_clustering_key_position)

    def _key(self, position: Callable[[LanceField], int | None]) -> list[LanceField]:
        found = [LanceField(field) for top in self.schema.fields for field in top.walk()]
        keys = [each for each in found if position(each) is not None]
        return sorted(keys, key=lambda each: (position(each) == 0, position(each)))

    def fields(self) -> list[LanceField]:
        """Return the top-level fields."""
        return [LanceField(field) for field in self.schema.fields]

    def field(self, name: str) -> LanceField | None:
        """Return the field at a path such as ``point.x``, or None."""
        return self._find(name, ignore_case=False)

    def field_case_insensitive(self, name: str) -> LanceField | None:
        """Return the field at a path, compared without case, or None."""
        return self._find(name, ignore_case=True)

    def _find(self, name: str, *, ignore_case: bool) -> LanceField | None:
        fields, found = self.schema.fields, None
        for part in parse_path(name):
            found = _named(fields, part, ignore_case=ignore_case)
            if found is None:
                return None
            fields = found.children
        return None if found is None else LanceField(found)

    def __repr__(self) -> str:
        """Return fields and metadata."""
        return f"Schema {{ fields: {self.fields()}, metadata: {_text(self.schema.metadata)} }}"


def _named(fields: tuple[Field, ...], name: str, *, ignore_case: bool) -> Field | None:
    for field in fields:
        if field.name == name or (ignore_case and field.name.lower() == name.lower()):
            return field
    return None


def _text(metadata: Mapping[str, bytes]) -> dict[str, str]:
    return {key: bytes(value).decode(errors="replace") for key, value in metadata.items()}
