"""The files of an index that is being made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange
from pennon.core.units import MIB
from pennon.errors import ArgumentError
from pennon.file.container.writer import DataFileWriter
from pennon.file.open import create_container_file
from pennon.index.files import IndexFiles
from pennon.index.row_map import RowMap
from pennon.io.store import ObjectReader, Store
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import FileVersion
from pennon.table.indices import IndexFile

_COPIED: Final = 8 * MIB
"""So many bytes of a file are copied at once."""


@dataclass(frozen=True, slots=True)
class OldIndex:
    """An index that another one is made of, and where its rows are now."""

    files: IndexFiles
    moves: RowMap


@dataclass(slots=True)
class NewFiles:
    """The folder of a new index; what was written there is put down in ``written``.

    ``version`` is that of its files, ``parameters`` are what its maker chose.  ``first_partition``: what is written
    are parts that will be merged, and this is the number of the first; None for a whole index.  ``is_segment``: it is
    merged with others at once, so that what a merge makes anew, as graphs, can be left out.
    """

    store: Store
    folder: str
    version: FileVersion
    parameters: Mapping[str, Any] = field(default_factory=dict)
    written: list[IndexFile] = field(default_factory=list)
    first_partition: int | None = None
    is_segment: bool = False

    @contextmanager
    def file(self, name: str, *columns: pa.Field[Any]) -> Iterator[DataFileWriter]:
        """Give a file to write to, which is finished at the end of the block, or given up."""
        schema = schema_from_arrow(pa.schema(columns))
        sink = self.store.open_writer(f"{self.folder}/{name}")
        with create_container_file(sink, schema, self.version, may_be_reserved=True) as writer:
            yield writer
            self.written.append(IndexFile(name, writer.finish().size_bytes))

    def copy(self, name: str, source: ObjectReader) -> None:
        """Write a file that has the bytes of another one."""
        size = source.size_bytes
        with self.store.open_writer(f"{self.folder}/{name}") as sink:
            for start in range(0, size, _COPIED):
                (data,) = source.read([ByteRange(start, min(_COPIED, size - start))])
                sink.write(data)
        self.written.append(IndexFile(name, size))

    def remove(self, name: str) -> None:
        """Delete a file that was written on the way to others."""
        self.store.delete(f"{self.folder}/{name}")
        self.written[:] = [each for each in self.written if each.path != name]

    def number(self, key: str, default: int) -> int:
        """Return a number that the maker chose.  Raises ArgumentError for one below 1."""
        found = self.parameters.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 1 << 32:
            message = f"{key} of an index must be a positive number, got {found!r}"
            raise ArgumentError(message)
        return found
