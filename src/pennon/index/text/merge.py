"""Merge full-text index segments, and remap or drop rows.

A partition all of whose rows are there, and that is written as new ones are, is copied, but for its documents.
Others are decoded: small ones become one together, of a large one some tokens at a time.  Tokens that no
document has any more are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, starmap
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.errors import ArgumentError
from pennon.index.files import IndexFile, IndexFiles
from pennon.index.kernels.text.posting_lists import gather_runs, keep_documents, order_of_numbers
from pennon.index.new_files import NewFiles, OldIndex
from pennon.index.row_map import RowMap
from pennon.index.row_set import NONE, Numbers
from pennon.index.text.arrays import Words
from pennon.index.text.choices import TextChoices
from pennon.index.text.documents import is_json
from pennon.index.text.inverted import Inverted
from pennon.index.text.new_partition import (
    Documents,
    TextFormat,
    posting_file,
    write_documents,
    write_metadata,
    write_partition,
    write_tokens,
)
from pennon.index.text.partition import BlockPartition, StoredPartition
from pennon.index.text.postings import TokenLists
from pennon.index.text.token_set import FstTokens

_TOGETHER: Final = 1 << 23
"""Partitions of no more tokens than this become one."""
_AT_ONCE: Final = 1 << 22
"""Of a larger one about so many tokens of documents are decoded at once."""


def inverted_parameters(files: IndexFiles) -> dict[str, Any]:
    """Return what has to be chosen for an index like one that is there."""
    return chosen_for(Inverted(files))


def chosen_for(opened: Inverted) -> dict[str, Any]:
    """Return what has to be chosen for an index like one that was opened."""
    return TextChoices(opened.parameters, opened.by_item, opened.format_version).to_chosen()


def rewrite_inverted(old: Sequence[OldIndex], kind: pa.DataType, new: NewFiles) -> None:
    """Write one index of several; holds one large partition's documents, or some small partitions."""
    opened = ((Inverted(each.files), each.moves) for each in old)
    write_joined(opened, new, is_json=is_json(kind))


def write_joined(old: Iterable[tuple[Inverted, RowMap]], new: NewFiles, *, is_json: bool) -> None:
    """Write one index of several that were opened, and where their rows are now; as `rewrite_inverted`."""
    choices = TextChoices.of(new.parameters)
    written = choices.format
    number = 0
    for group in _groups(starmap(_carried, old)):
        whole = group[0].copied(written) if len(group) == 1 else None
        if whole is not None:
            group[0].copy(new, number, whole)
        elif len(group) == 1:
            _write_one(group[0], number, written, new)
        else:
            _write_together(group, number, written, new)
        number += 1
    write_metadata(new, written, choices.parameters, range(number), is_json=is_json)


def merge_parts(parts: IndexFiles, settings: Sequence[str], new: NewFiles) -> None:
    """Write one index of parts (`pennon.index.text.parts`), whose files with settings are named.

    All their rows stay.  Raises ArgumentError if the parts were made with different settings, FormatError if one is damaged.
    """
    opened = [Inverted(parts, name) for name in settings]
    filled = [each for each in opened if each.partitions] or opened[:1]
    new.parameters = chosen_for(filled[0])
    for each, name in zip(opened, settings, strict=True):
        if each.partitions and (
            chosen_for(each) != new.parameters or each.parameters != filled[0].parameters
        ):
            message = f"the parts of an index were made with different settings, {name} and {settings[0]} in {parts.folder}"
            raise ArgumentError(message)
    is_json = filled[0].parameters.lance_tokenizer == "json"
    every = RowMap.keeping(NONE.complement())
    write_joined(((each, every) for each in opened), new, is_json=is_json)


@dataclass(frozen=True, slots=True, eq=False)
class _Carried:
    """A partition, and its documents that are there yet."""

    partition: StoredPartition
    there: npt.NDArray[np.bool_]
    documents: Documents

    @classmethod
    def of(cls, partition: StoredPartition, moves: RowMap) -> _Carried:
        rows, there = moves.numbers(partition.row_ids)
        items = partition.items
        lengths = partition.exact_lengths[there]
        return cls(
            partition, there, Documents(rows, lengths, None if items is None else items[there])
        )

    def numbers(self, first: int) -> Int64Array:
        """Return the new number of each old document, from ``first`` on; -1 of one that is gone."""
        return np.where(self.there, np.cumsum(self.there) + (first - 1), -1)

    def lists(self, low: int, high: int, numbers: Int64Array, *, places: bool) -> TokenLists:
        """Return posting lists by the new numbers."""
        lists = self.partition.lists(low, high, places=places)
        ends, docs, frequencies = lists.ends.copy(), lists.docs, lists.frequencies
        kept, held = keep_documents(ends, docs, frequencies, lists.positions, numbers)
        return TokenLists(ends, docs[:kept], frequencies[:kept], lists.positions[:held])

    def copied(self, written: TextFormat) -> tuple[IndexFile, IndexFile] | None:
        """Return the files that are right as they are; None if there are none."""
        partition = self.partition
        if not isinstance(partition, BlockPartition) or not self.there.all():
            return None
        if not isinstance(partition.tokens, FstTokens):
            return None
        said = {
            name: partition.invert.data.schema_metadata.get(name, b"").decode()
            for name in written.metadata
        }
        has_places = any("position" in name for name in partition.invert.names)
        if said != written.metadata or has_places != written.with_position:
            return None
        return partition.invert, partition.token_file

    def copy(self, new: NewFiles, number: int, files: tuple[IndexFile, IndexFile]) -> None:
        """Copy posting lists and tokens."""
        write_documents(new, number, self.documents)
        invert, tokens = files
        new.copy(f"part_{number}_invert.lance", invert.source)
        new.copy(f"part_{number}_tokens.lance", tokens.source)


def _carried(old: Inverted, moves: RowMap) -> Iterator[_Carried]:
    for partition in old.partitions:
        carried = _Carried.of(partition, moves)
        if len(carried.documents.row_ids):
            yield carried


def _groups(found: Iterator[Iterator[_Carried]]) -> Iterator[list[_Carried]]:
    """Yield partitions that become one together."""
    group: list[_Carried] = []
    tokens = 0
    for partitions in found:
        for each in partitions:
            more = each.partition.token_count
            if group and tokens + more > _TOGETHER:
                yield group
                group, tokens = [], 0
            group.append(each)
            tokens += more
    if group:
        yield group


def _write_one(carried: _Carried, number: int, written: TextFormat, new: NewFiles) -> None:
    """Write a partition of one, some tokens at a time, which keep their order."""
    partition, numbers = carried.partition, carried.numbers(0)
    write_documents(new, number, carried.documents)
    names = np.full(partition.list_count, -1, np.int64)
    count = 0
    with posting_file(new, number, written, carried.documents) as write:
        for low, high in _ranges(partition):
            lists = carried.lists(low, high, numbers, places=written.with_position)
            filled = np.diff(lists.ends) > 0
            names[low:high][filled] = np.arange(count, count + int(filled.sum()))
            count += int(filled.sum())
            ends = np.append(lists.ends[:-1][filled], lists.ends[-1])
            write(TokenLists(ends, lists.docs, lists.frequencies, lists.positions))
    known = ((key, int(names[token])) for key, token in partition.tokens.items())
    write_tokens(new, number, {key: token for key, token in known if token >= 0})


def _ranges(partition: StoredPartition) -> Iterator[tuple[int, int]]:
    """Yield ranges of tokens, of about as many places each as are decoded at once."""
    sums = np.cumsum(partition.list_lengths(), dtype=np.int64)
    if not len(sums):
        return
    # a token is in a document more than once: in all documents alike, as far as anybody knows
    places = sums * max(partition.token_count / max(int(sums[-1]), 1), 1.0)
    cuts = np.flatnonzero(np.diff((places / _AT_ONCE).astype(np.int64))) + 1
    borders = [0, *cuts.tolist(), len(sums)]
    yield from pairwise(borders)


def _write_together(
    group: Sequence[_Carried], number: int, written: TextFormat, new: NewFiles
) -> None:
    """Write a partition of several."""
    tokens: dict[bytes, int] = {}
    found: list[tuple[Words, TokenLists]] = []
    first = 0
    for carried in group:
        partition = carried.partition
        names = np.zeros(partition.list_count, np.uint32)
        for key, token in partition.tokens.items():
            names[token] = tokens.setdefault(key, len(tokens))
        numbers, places = carried.numbers(first), written.with_position
        lists = carried.lists(0, partition.list_count, numbers, places=places)
        found.append((np.repeat(names, np.diff(lists.ends)), lists))
        first += len(carried.documents.row_ids)
    lists = _in_order(len(tokens), found)
    filled = np.diff(lists.ends) > 0
    kept = np.cumsum(filled) - 1
    lists = TokenLists(
        np.append(lists.ends[:-1][filled], lists.ends[-1]),
        lists.docs,
        lists.frequencies,
        lists.positions,
    )
    left = {key: int(kept[tokens[key]]) for key in sorted(tokens) if filled[tokens[key]]}
    documents = _joined([each.documents for each in group])
    write_partition(new, number, written, documents, left, [lists])


def _in_order(tokens: int, found: Sequence[tuple[Words, TokenLists]]) -> TokenLists:
    """Return posting lists by their tokens; of one token, in the order that they come."""
    frequencies = np.concatenate([each.frequencies for _, each in found])
    ends, order = np.zeros(tokens + 1, np.int64), np.empty(len(frequencies), np.int64)
    order_of_numbers(np.concatenate([names for names, _ in found]), ends, order)
    positions = np.concatenate([each.positions for _, each in found])
    placed = np.empty_like(positions)
    if len(positions):
        starts = np.cumsum(frequencies, dtype=np.int64) - frequencies
        gather_runs(positions, starts, frequencies, order, placed)
    docs = np.concatenate([each.docs for _, each in found])
    return TokenLists(ends, docs[order], frequencies[order], placed)


def _joined(documents: Sequence[Documents]) -> Documents:
    items = [each.items for each in documents if each.items is not None]
    rows: Numbers = np.concatenate([each.row_ids for each in documents])
    lengths: Words = np.concatenate([each.lengths for each in documents])
    return Documents(rows, lengths, np.concatenate(items) if items else None)
