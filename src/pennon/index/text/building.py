"""Making a full-text index: texts become partitions, one at a time, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from pennon.index.base import Values
from pennon.index.new_files import NewFiles
from pennon.index.text.choices import TextChoices
from pennon.index.text.documents import Reader, is_json
from pennon.index.text.memory_partition import MemoryPartition
from pennon.index.text.new_partition import (
    Documents,
    NewFolder,
    TextFormat,
    write_metadata,
    write_partition,
)

_PLACE_BYTES: Final = 56
"""What a place of a token takes beside itself while posting lists are sorted and coded.  Measured."""


def write_inverted(parts: Iterable[Values], kind: pa.DataType, new: NewFiles) -> None:
    """Write the index of values: of texts, lists of texts, or JSON."""
    choices = TextChoices.of(new.parameters)
    builder = TextBuilder(new, choices, is_json=is_json(kind))
    for part in parts:
        builder.add(part)
    builder.finish()


class TextBuilder:
    """Makes a full-text index of values that come in batches."""

    def __init__(self, folder: NewFolder, choices: TextChoices, *, is_json: bool = False) -> None:
        """Write to a folder."""
        self._folder, self._choices = folder, choices
        self._reader = Reader(choices.parameters, is_json, choices.by_item)
        self._format = TextFormat(choices.format_version, choices.parameters.with_position)
        self._held = MemoryPartition()
        self._written = 0

    def add(self, values: Values) -> None:
        """Take the values of rows."""
        for document in self._reader.documents(values.values):
            self._held.add(int(values.rows[document.row]), document)
            held = self._held
            if held.size_bytes + _PLACE_BYTES * held.places > self._choices.partition_bytes:
                self._write()

    def finish(self) -> None:
        """Write what is held, and which partitions there are."""
        if len(self._held):
            self._write()
        parameters, is_json = self._choices.parameters, self._reader.is_json
        write_metadata(
            self._folder, self._format, parameters, range(self._written), is_json=is_json
        )

    def _write(self) -> None:
        held = self._held
        items = held.items if self._choices.by_item else None
        documents = Documents(held.row_ids, held.lengths, items)
        tokens = dict(held.tokens.items())
        write_partition(
            self._folder, self._written, self._format, documents, tokens, [held.lists()]
        )
        self._written += 1
        self._held = MemoryPartition()
