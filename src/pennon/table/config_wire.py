"""Changes of config and metadata as messages of transaction.proto, both ways.

Old writers said them in other fields of the same message (1 to 4): keys to set and keys to delete
of the config, and whole maps in place of the metadata of the schema and of fields.  These are read,
and never written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pennon.core.units import FieldId
from pennon.proto import transaction_pb2
from pennon.table.message_wire import Converter, one, optional
from pennon.table.operations import MapUpdate

_Proto = transaction_pb2.Transaction


def _parse_map(message: _Proto.UpdateMap) -> MapUpdate:
    entries = {
        entry.key: entry.value if entry.HasField("value") else None
        for entry in message.update_entries
    }
    return MapUpdate(entries, message.replace)


def _serialize_map(update: MapUpdate) -> _Proto.UpdateMap:
    message = _Proto.UpdateMap(replace=update.replace)
    for key, value in update.entries.items():
        entry = message.update_entries.add(key=key)
        if value is not None:
            entry.value = value
    return message


MAP = optional(one(_parse_map, _serialize_map))
"""Changes of one map, or None."""


def _read_config(message: _Proto.UpdateConfig, field: str) -> MapUpdate | None:
    new: MapUpdate | None = MAP.read(message, field)
    if not message.upsert_values and not message.delete_keys:
        return new
    gone: dict[str, str | None] = dict.fromkeys(message.delete_keys)
    old = {**gone, **message.upsert_values}
    return MapUpdate(old) if new is None else MapUpdate({**old, **new.entries}, new.replace)


def _read_schema_metadata(message: _Proto.UpdateConfig, field: str) -> MapUpdate | None:
    update: MapUpdate | None = MAP.read(message, field)
    if update is None and message.schema_metadata:
        return MapUpdate(dict(message.schema_metadata), replace=True)
    return update


def _read_field_metadata(message: _Proto.UpdateConfig, field: str) -> dict[FieldId, MapUpdate]:
    updates = getattr(message, field)
    fields = {FieldId(number): _parse_map(update) for number, update in updates.items()}
    for number, old in message.field_metadata.items():
        fields.setdefault(FieldId(number), MapUpdate(dict(old.metadata), replace=True))
    return fields


def _put_field_metadata(message: Any, field: str, updates: Mapping[FieldId, MapUpdate]) -> None:
    for number, update in updates.items():
        getattr(message, field)[number].CopyFrom(_serialize_map(update))


CONFIG = Converter(_read_config, MAP.put)
SCHEMA_METADATA = Converter(_read_schema_metadata, MAP.put)
FIELD_METADATA = Converter(_read_field_metadata, _put_field_metadata)
