"""The input types of blob columns of version 2: pylance's ``lance.blob_field``, ``lance.blob_array``.

Such a column is of the Arrow extension type ``lance.blob.v2``, whose storage says either the bytes of a
blob or where they lie::

    data: large_binary | uri: string | position: uint64 | size: uint64

One class can stand for an extension type in a process.  Where pylance was imported first, that is
pylance's, and all that is made here is of it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.schema.blob_parts import DEDICATED_THRESHOLD, INLINE_THRESHOLD, PACK_THRESHOLD, STORAGE
from pennon.schema.types import BLOB_V2, EXTENSION_METADATA, EXTENSION_NAME

_FEWEST_PARTS: Final = 2
_MOST: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Blob:
    """A blob to be written: bytes, or a URI and maybe a range of what lies there; None stands for NULL.

    Raises ArgumentError unless it is just one of these.

    >>> pennon.Blob.from_bytes(b"abc").data
    b'abc'
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        """Check that the parts make a blob."""
        why = self._wrong()
        if why is not None:
            raise ArgumentError(why)

    def _wrong(self) -> str | None:
        """Return what is wrong, in pylance's words."""
        has_range = self.position is not None or self.size is not None
        rules = (
            (self.data is not None and self.uri is not None, "Blob cannot have both data and uri"),
            (self.uri == "", "Blob uri cannot be empty"),
            (has_range and self.uri is None, "External packed blob must have a uri"),
            (
                (self.position is None) != (self.size is None),
                "External blob must set both position and size, or neither",
            ),
            (
                self.data is None and self.uri is None,
                "Blob must set `data` or `uri`; use None for a null blob",
            ),
            (self.size == 0, "External blob range size must be greater than zero"),
        )
        return next((text for broken, text in rules if broken), None)

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return a blob of bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a blob that lies at a URI, or a range there."""
        if (position is not None and position < 0) or (size is not None and size < 0):
            message = "External blob position and size must be non-negative"
            raise ArgumentError(message)
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """Return a blob without bytes, which is not NULL."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]  # pyarrow's stubs do not know it
    """The Arrow type of a blob column of version 2; its storage has two parts, or all four."""

    def __init__(self, storage_type: pa.DataType = STORAGE) -> None:
        """Take a storage type.  Raises TypeError for parts that are not those of blobs."""
        check_storage(storage_type)
        super().__init__(storage_type, BLOB_V2.decode())

    def __arrow_ext_serialize__(self) -> bytes:
        """Return the parameters: there are none."""
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        """Return the type with a storage type."""
        return cls(storage_type)

    def __arrow_ext_class__(self) -> type[BlobArray]:
        """Return the class of arrays of this type."""
        return BlobArray

    def __reduce__(self) -> tuple[type[BlobType], tuple[pa.DataType]]:
        """Pickle the storage type."""
        return type(self), (self.storage_type,)


def check_storage(storage: pa.DataType) -> None:
    """Raise TypeError unless a type can be the storage of blobs."""
    if not pa.types.is_struct(storage):
        message = "BlobType storage type must be a struct"
        raise TypeError(message)
    fields = list(storage)
    if len(fields) not in {_FEWEST_PARTS, STORAGE.num_fields}:
        message = (
            "BlobType storage struct must contain either data/uri or data/uri/position/size, "
            f"got {', '.join(field.name for field in fields)}"
        )
        raise TypeError(message)
    for number, (field, wanted) in enumerate(zip(fields, STORAGE, strict=False)):
        if (field.name, field.type) != (wanted.name, wanted.type):
            message = (
                f"BlobType storage field {number} must be {wanted.name}: {wanted.type}, got "
                f"{field.name}: {field.type}"
            )
            raise TypeError(message)
        if number < _FEWEST_PARTS and not field.nullable:
            message = f"BlobType storage field {field.name} must be nullable"
            raise TypeError(message)


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]  # as above
    """Blobs to be written; see `blob_array`.

    >>> type(pennon.blob_array([b"abc"])).__name__
    'BlobArray'
    """

    @classmethod
    def from_pylist(cls, values: list[Any]) -> pa.ExtensionArray:
        """Return an array of bytes, URIs (str), `Blob` and None (NULL)."""
        parts = [_parts(value) for value in values]
        children = [
            pa.array([part and part[number] for part in parts], field.type)
            for number, field in enumerate(STORAGE)
        ]
        mask = pa.array([part is None for part in parts], pa.bool_())
        storage = pa.StructArray.from_arrays(children, fields=list(STORAGE), mask=mask)
        return pa.ExtensionArray.from_storage(blob_type(), storage)


_Parts = tuple[bytes | None, str | None, int | None, int | None]


def _parts(value: Any) -> _Parts | None:
    """Return data, uri, position and size of a value; None for NULL."""
    if value is None:
        return None
    if isinstance(value, str):
        if not value:
            message = "Blob uri cannot be empty"
            raise ArgumentError(message)
        return None, value, None, None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), None, None, None
    if isinstance(value, Blob) or type(value).__name__ == "Blob":  # pylance's
        return value.data, value.uri, value.position, value.size
    message = f"BlobArray values must be bytes-like, str (URI), Blob, or None; got {type(value)}"
    raise TypeError(message)


def blob_array(values: list[Any]) -> pa.ExtensionArray:
    """Return an array for a blob column: of bytes, URIs (str), `Blob` and None (NULL).

    >>> column = pennon.blob_array([b"abc", None, pennon.Blob.empty()])
    >>> len(column), column.null_count
    (3, 1)
    """
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Return the Arrow field of a blob column; its files are chosen by size.

    Blobs of more bytes than ``dedicated_size_threshold`` get a file each, others of more than
    ``inline_size_threshold`` share files of up to ``pack_file_size_threshold`` bytes, and all else
    lies in the data file.  Raises TypeError, ArgumentError or OverflowError for what is no such size.

    >>> schema = pa.schema([pennon.blob_field("image", dedicated_size_threshold=1 << 20)])
    >>> rows = pa.table([pennon.blob_array([b"abc"])], schema)
    >>> ds = pennon.write_dataset(rows, uri, data_storage_version="2.2")
    >>> ds.read_blobs("image", indices=[0])
    [(0, b'abc')]
    """
    given = {
        INLINE_THRESHOLD: _size("inline_size_threshold", inline_size_threshold, least=0),
        DEDICATED_THRESHOLD: _size("dedicated_size_threshold", dedicated_size_threshold, least=1),
        PACK_THRESHOLD: _size("pack_file_size_threshold", pack_file_size_threshold, least=1),
    }
    metadata = {key.encode(): str(size).encode() for key, size in given.items() if size is not None}
    return pa.field(name, blob_type(), nullable=nullable, metadata=metadata or None)


def _size(name: str, value: int | None, *, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"{name} must be an int, got {type(value).__name__}"
        raise TypeError(message)
    if value < least:
        message = f"{name} must be {'positive' if least else 'non-negative'}"
        raise ArgumentError(message)
    if value > _MOST:
        message = f"{name} must fit in a Rust usize"
        raise OverflowError(message)
    return value


def blob_type() -> pa.ExtensionType:
    """Return the extension type as this process has it registered, by whomever."""
    metadata = {EXTENSION_NAME.encode(): BLOB_V2, EXTENSION_METADATA.encode(): b""}
    field = pa.field("blob", STORAGE, metadata=metadata)
    found: Any = pa.ipc.read_schema(pa.schema([field]).serialize()).field(0).type
    return found


def _register() -> None:
    with suppress(pa.ArrowKeyError):  # pylance was imported first
        pa.register_extension_type(BlobType())


_register()
