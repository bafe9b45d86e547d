"""INVERTED: which documents have which tokens, for search in text.

The folder of a segment has ``metadata.lance``, whose metadata are the settings and the numbers of its partitions;
releases up to 0.25.2 have none, and one partition in files without numbers.
Source: reference index-scalar, 13.2 and 13.6.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from pennon.errors import FormatError, NotFoundError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.row_set import RowSet
from pennon.index.text.parameters import METADATA, TextParameters
from pennon.index.text.partition import BlockPartition, StoredPartition
from pennon.index.text.row_partition import RowPartition

_MOST_PARTITIONS = 1 << 20
_AT_ONCE = 4096
"""So many posting lists are read at once."""


class Inverted:
    """An open segment of a full-text index."""

    def __init__(self, files: IndexFiles, settings: str = METADATA) -> None:
        """Open all partitions that a file with settings names.  Raises FormatError if the files are damaged."""
        self.partitions: tuple[StoredPartition, ...]
        self.format_version = 1
        try:
            metadata = files.file(settings)
        except NotFoundError:
            self.parameters, self.partitions = _open_rows(files)
            return
        values = metadata.data.schema_metadata
        self.parameters = TextParameters.parse(values.get("params", b"{}"))
        self.format_version = metadata.number("format_version", 1)
        numbers = _partitions(metadata)
        self.partitions = tuple(BlockPartition(files, f"part_{number}_") for number in numbers)

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return sum(each.size_bytes for each in self.partitions)

    @property
    def documents(self) -> int:
        """Return how many documents there are, those of rows that are gone among them."""
        return sum(len(each.row_ids) for each in self.partitions)

    @property
    def tokens(self) -> int:
        """Return how many tokens the documents have."""
        return sum(each.token_count for each in self.partitions)

    @property
    def by_item(self) -> bool:
        """Return whether documents are items of lists, and not rows."""
        return any(each.items is not None for each in self.partitions)

    @property
    def statistics(self) -> dict[str, Any]:
        """Return the answer of `LanceDataset.index_statistics`; an empty one without documents."""
        if not self.partitions:
            return {}
        return {
            "params": self.parameters.to_dict(),
            "num_tokens": sum(each.list_count for each in self.partitions),
            "num_docs": self.documents,
        }

    def warm(self, *, places: bool = False) -> None:
        """Read all posting lists, with positions if ``places``, as far as they are remembered."""
        for each in self.partitions:
            for low in range(0, each.list_count, _AT_ONCE):
                numbers = range(low, min(low + _AT_ONCE, each.list_count))
                each.postings(numbers, places=places)


def rows_named(files: IndexFiles) -> RowSet:
    """Return all rows that an index names: those that have a document."""
    found = [each.row_ids for each in Inverted(files).partitions]
    return RowSet.of(np.concatenate([np.empty(0, np.uint64), *found]))


def _open_rows(files: IndexFiles) -> tuple[TextParameters, tuple[StoredPartition, ...]]:
    partition = RowPartition(files)
    text = files.file("tokens.lance").data.schema_metadata.get("tokenizer", b"{}")
    return replace(TextParameters.parse(text), with_position=partition.has_positions), (partition,)


def _partitions(metadata: IndexFile) -> list[int]:
    text = metadata.data.schema_metadata.get("partitions", b"")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    is_right = isinstance(found, list) and len(found) <= _MOST_PARTITIONS
    if not is_right or not all(type(each) is int and 0 <= each < 1 << 64 for each in found):
        message = f"{metadata.source.path} does not say which partitions there are: {text[:80]!r}"
        raise FormatError(message)
    return list(found)
