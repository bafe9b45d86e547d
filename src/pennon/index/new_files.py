"""The files of an index that is being made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pennon.errors import ArgumentError
from pennon.file.container.writer import DataFileWriter
from pennon.file.open import create_container_file
from pennon.index.files import IndexFiles
from pennon.index.row_map import RowMap
from pennon.io.store import Store
from pennon.schema.arrow import schema_from_arrow
from pennon.schema.version import FileVersion
from pennon.table.indices import IndexFile


@dataclass(frozen=True, slots=True)
class OldIndex:
    """An index that another one is made of, and where its rows are now."""

    files: IndexFiles
    moves: RowMap


@dataclass(slots=True)
class NewFiles:
    """The folder of a new index; what was written there is put down in ``written``.

    ``version`` is that of its files, ``parameters`` are what its maker chose.
    """

    store: Store
    folder: str
    version: FileVersion
    parameters: Mapping[str, Any] = field(default_factory=dict)
    written: list[IndexFile] = field(default_factory=list)

    @contextmanager
    def file(self, name: str, *columns: pa.Field[Any]) -> Iterator[DataFileWriter]:
        """Give a file to write to, which is finished at the end of the block, or given up."""
        schema = schema_from_arrow(pa.schema(columns))
        sink = self.store.open_writer(f"{self.folder}/{name}")
        with create_container_file(sink, schema, self.version, may_be_reserved=True) as writer:
            yield writer
            self.written.append(IndexFile(name, writer.finish().size_bytes))

    def number(self, key: str, default: int) -> int:
        """Return a number that the maker chose.  Raises ArgumentError for one below 1."""
        found = self.parameters.get(key)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 1 << 32:
            message = f"{key} of an index must be a positive number, got {found!r}"
            raise ArgumentError(message)
        return found
