"""Maps as they lie in files of version 2.1, which has no maps: a marked list of entries.

A Spark column ``map<string, bigint>`` is stored as

    list<entries: struct<key: string not null, value: int64> not null>

and its field carries the metadata ``pennon:logical-type`` = ``map``.  To every other reader of Lance
it is a list of structs; Spark sees the mark and shows a map.  The mark stands at the list's own
field, so maps in structs, in arrays (at the item), and in keys and values of maps each have theirs.

A mark is believed where it can be true: on a list of structs of two fields, where neither the
struct nor its first field is ever NULL.  Elsewhere the column is what its type says.

Source: ours; `tests/spark/test_maps.py` holds it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as pat

MARK = "pennon:logical-type"
MAP = "map"


def map_storage_field(name: str, key: pa.Field[Any], value: pa.Field[Any]) -> pa.Field[Any]:
    """Return the field, with its mark, in which a map of these keys and values is stored."""
    pair = [key.with_name("key").with_nullable(nullable=False), value.with_name("value")]
    entries = pa.field("entries", pa.struct(pair), nullable=False)
    return pa.field(name, pa.list_(entries), metadata={MARK: MAP})


def map_entries(field: pa.Field[Any]) -> tuple[pa.Field[Any], pa.Field[Any]] | None:
    """Return the fields of key and value if the column is a map, by type or by mark, else None."""
    if pat.is_map(field.type):
        return field.type.key_field, field.type.item_field
    if (field.metadata or {}).get(MARK.encode()) != MAP.encode():
        return None
    if not pat.is_list(field.type) and not pat.is_large_list(field.type):
        return None
    entries = field.type.value_field
    if entries.nullable or not pat.is_struct(entries.type) or entries.type.num_fields != 2:
        return None
    key, value = entries.type.field(0), entries.type.field(1)
    return None if key.nullable else (key, value)
