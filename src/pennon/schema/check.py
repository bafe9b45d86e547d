"""The types that a file version can hold: refusals before the first byte is written.

Each message names the column, its type and the file version that would hold it.

Source: format-facts 0.1 (types by version), measured with pylance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from pennon.errors import Breadcrumb, InvalidSchemaError, UnsupportedError
from pennon.schema.arrow import storage_field
from pennon.schema.blob_parts import BLOB_PARTS
from pennon.schema.field import Field, Schema
from pennon.schema.types import BLOB_V2, EXTENSION_NAME, NESTED, arrow_type
from pennon.schema.version import DEFAULT_VERSION, WRITABLE, Ability, FileVersion, oldest_with

RESERVED_NAMES = frozenset(
    ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version")
)
BLOB = "lance-encoding:blob"
_STRUCT_LIST = "fixed_size_list:struct:"
_LISTS = ("list", "list.struct", "large_list", "large_list.struct", "map")
_PACKED = ("packed", "lance-encoding:packed")
_DICTIONARY_VALUES = tuple(
    f"dict:{values}:"
    for values in (
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("string", "large_string", "binary", "large_binary"),
    )
)
_NEEDED = {
    "map": (Ability.MAPS, "{} can"),
    "fixed_size_binary:0": (Ability.NO_BYTES, "{} holds values of no bytes"),
}
_VARIABLE = ("string", "large_string", "binary", "large_binary", "json")


def check_writable(schema: Schema, version: FileVersion, *, may_be_reserved: bool = False) -> None:
    """Raise if a file of ``version`` cannot hold the schema.

    ``may_be_reserved``: columns may have the names of row ids and the like, as those of index files do.

    Raises UnsupportedError for types, InvalidSchemaError for names.
    NULL structs depend on the rows: the writer finds them, see `null_struct_error`.
    """
    check_names(schema, may_be_reserved=may_be_reserved)
    for top in schema.fields:
        for path, field, in_list in _walk(top):
            _check_field(path, field, version)
            if in_list:
                _check_item(path, field, version)


def default_version(schema: Schema) -> FileVersion:
    """Return the version of new data files of a schema when the caller asks for none.

    That is the default, and the newest one for types that only the newest can hold.
    Raises InvalidSchemaError for names.

    Source: decision 021.
    """
    newest = WRITABLE[-1]
    needed = not _holds(DEFAULT_VERSION, schema) and _holds(newest, schema)
    return newest if needed else DEFAULT_VERSION


def _holds(version: FileVersion, schema: Schema) -> bool:
    try:
        check_writable(schema, version)
    except UnsupportedError:
        return False
    return True


def is_packed(field: Field) -> bool:
    """Say whether the metadata asks for a packed struct: all fields of a row side by side."""
    return field.logical_type == "struct" and any(
        field.metadata.get(key, b"").lower() == b"true" for key in _PACKED
    )


def is_blob(field: Field) -> bool:
    """Say whether the metadata asks for a blob column: values out of line, descriptors in it."""
    return field.metadata.get(BLOB, b"").lower() == b"true"


def is_blob_v2(field: Field) -> bool:
    """Say whether a field holds blobs of version 2, as a table's schema has them."""
    return field.metadata.get(EXTENSION_NAME) == BLOB_V2


def null_struct_error(path: str, null_count: int, version: FileVersion) -> UnsupportedError:
    """Return the error for NULL rows in a struct column of a version that cannot hold them."""
    message = (
        f"column {path!r} has {null_count} NULL struct(s); file version {version} does not "
        f"keep the validity of a struct, {oldest_with(Ability.NULL_STRUCTS)} does"
    )
    return UnsupportedError(message, where=Breadcrumb(column=path))


def check_names(schema: Schema, *, may_be_reserved: bool = False) -> None:
    """Raise InvalidSchemaError for top-level names that are reserved, dotted or given twice."""
    for name, times in Counter(f.name for f in schema.fields).items():
        if times > 1:
            message = f"{times} columns are named {name!r}; names must be unique"
            raise InvalidSchemaError(message)
        if name in RESERVED_NAMES and not may_be_reserved:
            message = f"the column name {name!r} is reserved"
            raise InvalidSchemaError(message)
        if "." in name:
            message = f"the column name {name!r} has a dot, which is how nested fields are named"
            raise InvalidSchemaError(message)


def _walk(
    field: Field, prefix: str = "", *, in_list: bool = False
) -> Iterator[tuple[str, Field, bool]]:
    """Yield path and field of ``field`` and all below it, and whether there is a list above."""
    path = f"{prefix}{field.name}"
    yield path, field, in_list
    below = in_list or field.logical_type in _LISTS
    for child in field.children:
        yield from _walk(child, f"{path}.", in_list=below)


def _check_field(path: str, field: Field, version: FileVersion) -> None:
    """Raise UnsupportedError if ``version`` cannot hold this field."""
    logical = field.logical_type
    if "\0" in field.name:
        message = f"the column name {path!r} has a zero byte, which no name may have"
        raise InvalidSchemaError(message)
    if logical == "struct" and not field.children:
        _need(Ability.EMPTY_STRUCTS, path, field, version, "{} holds structs without fields")
    if logical.startswith("dict:") and not logical.startswith(_DICTIONARY_VALUES):
        hint = "{} can; here values are integers, text or bytes"
        _need(Ability.ALL_DICTIONARIES, path, field, version, hint)
    if logical in _NEEDED:
        ability, hint = _NEEDED[logical]
        _need(ability, path, field, version, hint)
    if logical.startswith("fixed_size_list:"):
        _check_fixed_size_list(path, field, version)
    if logical == "map" or logical.startswith("fixed_size_list:"):
        _check_no_blobs(path, field, version)
    if is_packed(field) and version.holds(Ability.PACKED_STRUCTS):
        _check_packed(path, field, version)
    if is_blob(field) and logical != "large_binary":
        raise _refusal(path, field, version, "a blob column must be of type large_binary")
    if field.metadata and is_blob_v2(field):
        _check_blob_v2(path, field, version)


def _check_no_blobs(path: str, field: Field, version: FileVersion) -> None:
    """Refuse blobs where pylance writes none."""
    if any(each.metadata and is_blob_v2(each) for each in field.walk()):
        hint = "blobs in structs and lists can, those in maps and fixed-size lists cannot"
        raise _refusal(path, field, version, hint)


def _check_blob_v2(path: str, field: Field, version: FileVersion) -> None:
    """Refuse blobs of version 2 in older files, and those whose parts are not as `BLOB_PARTS`."""
    _need(Ability.BLOBS_V2, path, field, version, "blobs of version 2 need {}")
    parts = tuple((child.name, child.logical_type) for child in field.children)
    if field.logical_type != "struct" or parts not in {BLOB_PARTS[:2], BLOB_PARTS}:
        wanted = ", ".join(f"{name}: {kind}" for name, kind in BLOB_PARTS)
        raise _refusal(path, field, version, f"a blob column has the parts {wanted}")


def _check_item(path: str, field: Field, version: FileVersion) -> None:
    """Refuse what lists cannot keep in this version, though another version or place can."""
    if is_blob(field):
        _need(Ability.BLOB_ITEMS, path, field, version, "{} holds blobs in lists")
    if field.logical_type.startswith(_STRUCT_LIST):
        hint = "no version can in a list or map; a list would do in place of the fixed-size one"
        raise _refusal(path, field, version, hint)
    if field.logical_type == "struct" and not field.children:
        hint = "{} holds structs without fields in lists"
        _need(Ability.EMPTY_STRUCT_ITEMS, path, field, version, hint)


def _check_fixed_size_list(path: str, field: Field, version: FileVersion) -> None:
    """Refuse fixed-size lists of anything but fixed-width values, and those of no items."""
    _, _, rest = field.logical_type.partition(":")
    inner, _, size = rest.rpartition(":")
    while inner.startswith("fixed_size_list:") and size != "0":
        inner, _, size = inner.removeprefix("fixed_size_list:").rpartition(":")
    if ":null:" in field.logical_type:
        _need(Ability.FIXED_LISTS_OF_NULLS, path, field, version, "{} can")
    if size == "0":
        raise _refusal(path, field, version, "no version can (a fixed-size list of 0 items)")
    if inner == "struct":
        _need(Ability.FIXED_LISTS_OF_STRUCTS, path, field, version, "{} can")
    if inner in _VARIABLE:
        hint = "no version can; a list or large_list would do"
        raise _refusal(path, field, version, hint)
    if inner.startswith("dict:") or inner == "fixed_size_binary:0":
        raise _refusal(path, field, version, "no version can")


def _check_packed(path: str, field: Field, version: FileVersion) -> None:
    """Refuse packed structs whose fields have no fixed width of whole bytes, unless text may be there.

    In 2.1 pylance neither writes nor reads fixed-size lists there.
    """
    may_be_list = version.holds(Ability.PACKED_FIXED_LISTS)
    may_be_text = version.holds(Ability.PACKED_TEXT)
    for child in field.children:
        if not may_be_list and child.logical_type.startswith("fixed_size_list:"):
            reason = f"its field {child.name!r} is a fixed-size list; an unpacked struct can"
            raise _refusal(path, field, version, reason)
        if child.logical_type in _VARIABLE and may_be_text:
            continue
        if child.children or not _has_whole_bytes(child):
            which = "an unpacked struct can"
            if child.logical_type in _VARIABLE:
                which = f"{oldest_with(Ability.PACKED_TEXT)} can"
            reason = f"its field {child.name!r} has no fixed width in whole bytes; {which}"
            raise _refusal(path, field, version, reason)
    if not field.children:
        raise _refusal(path, field, version, "an unpacked struct can")


def _has_whole_bytes(field: Field) -> bool:
    """Say whether a value of the field takes a fixed number of whole bytes."""
    if field.logical_type in NESTED:
        return False
    t = arrow_type(field.logical_type)
    while pa.types.is_fixed_size_list(t):
        t = t.value_type
    if pa.types.is_dictionary(t) or pa.types.is_null(t) or pa.types.is_boolean(t):
        return False
    if pa.types.is_fixed_size_binary(t):
        return bool(t.byte_width)
    return bool(pa.types.is_primitive(t) or pa.types.is_decimal(t))


def _need(ability: Ability, path: str, field: Field, version: FileVersion, hint: str) -> None:
    """Refuse a field unless the version has an ability; ``hint`` has a place for one that does."""
    if not version.holds(ability):
        raise _refusal(path, field, version, hint.format(oldest_with(ability)))


def _refusal(path: str, field: Field, version: FileVersion, which: str) -> UnsupportedError:
    """Return the error that names the column, the type and what would hold it."""
    message = (
        f"column {path!r} of type {storage_field(field).type} cannot be written to file "
        f"version {version}; {which}"
    )
    return UnsupportedError(message, where=Breadcrumb(column=path))
