"""Changes of config and metadata as messages of transaction.proto, both ways.

Old writers said them in other fields of the same message (1 to 4): keys to set and keys to delete
of the config, and whole maps in place of the metadata of the schema and of fields.
"""

from __future__ import annotations

from typing import Any

from pennon.core.units import FieldId
from pennon.proto import transaction_pb2
from pennon.table.message_wire import unknown_fields
from pennon.table.operations import MapUpdate, UpdateConfig

_Proto = transaction_pb2.Transaction


def parse_update_config(message: _Proto.UpdateConfig) -> UpdateConfig:
    """Return what a message changes, whichever way it says it."""
    fields = {
        FieldId(number): _parse_map(update)
        for number, update in message.field_metadata_updates.items()
    }
    for number, old in message.field_metadata.items():
        fields.setdefault(FieldId(number), MapUpdate(dict(old.metadata), replace=True))
    return UpdateConfig(
        _parse_config(message),
        _optional(message, "table_metadata_updates"),
        _parse_schema_metadata(message),
        fields,
        unknown_fields(message),
    )


def serialize_update_config(it: UpdateConfig, message: _Proto.UpdateConfig) -> None:
    """Put the changes into a message, the way of today."""
    if it.config is not None:
        message.config_updates.CopyFrom(_serialize_map(it.config))
    if it.table_metadata is not None:
        message.table_metadata_updates.CopyFrom(_serialize_map(it.table_metadata))
    if it.schema_metadata is not None:
        message.schema_metadata_updates.CopyFrom(_serialize_map(it.schema_metadata))
    for number, update in it.fields.items():
        message.field_metadata_updates[number].CopyFrom(_serialize_map(update))


def _parse_config(message: _Proto.UpdateConfig) -> MapUpdate | None:
    new = _optional(message, "config_updates")
    if not message.upsert_values and not message.delete_keys:
        return new
    gone: dict[str, str | None] = dict.fromkeys(message.delete_keys)
    old = {**gone, **message.upsert_values}
    return MapUpdate(old) if new is None else MapUpdate({**old, **new.entries}, new.replace)


def _parse_schema_metadata(message: _Proto.UpdateConfig) -> MapUpdate | None:
    update = _optional(message, "schema_metadata_updates")
    if update is None and message.schema_metadata:
        return MapUpdate(dict(message.schema_metadata), replace=True)
    return update


def _optional(message: Any, name: str) -> MapUpdate | None:
    return _parse_map(getattr(message, name)) if message.HasField(name) else None


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
