"""The messages at the end of a data file of version 0.1: to values, and back.

::

    Metadata     row groups, positions of the page table and of the manifest, statistics
    statistics   their own schema, and the position of their page table
    Manifest     of which only the schema counts; a field says where its dictionary lies

Source: seeds 000 and 002; measured (Lance 0.7.5 to 14.0.2); the manifest that is written is pylance's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from google.protobuf.message import DecodeError, Message

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import FieldId
from pennon.encoding.v0_1.values import DictionaryPlace
from pennon.errors import FormatError
from pennon.proto import file_pb2, table_pb2
from pennon.schema.field import Schema
from pennon.schema.version import V0_1
from pennon.schema.wire import parse_fields, serialize_fields, serialize_metadata


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsPlace:
    """The position of the statistics: rows of a page table, one for each field of their ``schema``."""

    page_table: int
    message: file_pb2.Metadata.StatisticsMetadata

    @property
    def schema(self) -> Schema:
        """Return the schema of the statistics, parsed again each time."""
        return parse_fields(self.message.schema, {})


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """The metadata of a file, checked as far as possible without the rest of the file."""

    borders: Int64Array
    """Row group g has the rows ``[borders[g], borders[g + 1])``."""
    page_table: int
    """Position of the page table."""
    manifest: int
    """Position of the manifest, 0 if there is none."""
    statistics: StatisticsPlace | None

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self.borders[-1])

    @property
    def num_groups(self) -> int:
        """Return the number of row groups."""
        return len(self.borders) - 1


def parse_file_metadata(data: bytes) -> Metadata:
    """Return the metadata.  Raises FormatError if it is damaged."""
    parsed = file_pb2.Metadata()
    _parse(parsed, data)
    statistics = None
    if parsed.HasField("statistics"):
        place = parsed.statistics
        statistics = StatisticsPlace(place.page_table_position, place)
    borders = _borders(parsed.batch_offsets)
    return Metadata(borders, parsed.page_table_position, parsed.manifest_position, statistics)


def _borders(offsets: object) -> Int64Array:
    """Return the borders of the row groups.  Raises FormatError if they fall."""
    borders = np.array(offsets or [0], np.int64)
    if borders[0] != 0 or (borders[1:] < borders[:-1]).any():
        message = "row groups that do not begin at row 0, or end before they begin"
        raise FormatError(message)
    return borders


@dataclass(frozen=True, slots=True, eq=False)
class FileManifest:
    """The fields in the manifest of a file; parsed on demand."""

    message: file_pb2.Schema

    @property
    def schema(self) -> Schema:
        """Return the schema.  Raises FormatError if it is damaged."""
        return parse_fields(self.message.fields, self.message.metadata)

    @property
    def dictionaries(self) -> Mapping[int, DictionaryPlace]:
        """Return where the values of dictionaries lie, by field id."""
        return {
            field.id: DictionaryPlace(field.dictionary.offset, field.dictionary.length)
            for field in self.message.fields
            if field.HasField("dictionary")
        }


def parse_file_manifest(data: bytes) -> FileManifest:
    """Return the manifest.  Raises FormatError if it is damaged."""
    message = file_pb2.Schema()  # a manifest has the same field numbers
    _parse(message, data)
    return FileManifest(message)


def _parse(message: Message, data: bytes) -> None:
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        text = f"not a valid {type(message).__name__.lower()} message: {error}"
        raise FormatError(text) from error


# --- values to bytes ------------------------------------------------------------------------------


def serialize_file_metadata(metadata: Metadata) -> bytes:
    """Return the message of a file's metadata."""
    message = file_pb2.Metadata(
        page_table_position=metadata.page_table, manifest_position=metadata.manifest
    )
    if metadata.num_groups:
        message.batch_offsets.extend(metadata.borders.tolist())
    if metadata.statistics is not None:
        message.statistics.CopyFrom(metadata.statistics.message)
    return message.SerializeToString(deterministic=True)


def place_statistics(schema: Schema, page_table: int) -> StatisticsPlace:
    """Return the place of statistics that have this schema."""
    message = file_pb2.Metadata.StatisticsMetadata(
        schema=serialize_fields(schema),
        fields=[each.id for each in schema.walk()],
        page_table_position=page_table,
    )
    return StatisticsPlace(page_table, message)


def serialize_file_manifest(
    schema: Schema, dictionaries: Mapping[FieldId, DictionaryPlace]
) -> bytes:
    """Return the manifest that a data file holds of itself."""
    fields = serialize_fields(schema)
    for message in fields:
        place = dictionaries.get(FieldId(message.id))
        if place is not None:
            message.dictionary.offset = place.position
            message.dictionary.length = place.length
    manifest = table_pb2.Manifest(fields=fields, version=1)
    for key, value in serialize_metadata(schema).items():
        manifest.schema_metadata[key] = value
    manifest.data_format.file_format = "lance"
    manifest.data_format.version = str(V0_1)
    return manifest.SerializeToString(deterministic=True)
