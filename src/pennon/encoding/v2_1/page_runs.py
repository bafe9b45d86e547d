"""Whole pages that follow one another, decoded as if they were one.

pylance cuts columns of lists into pages of some 100 KB, and a page costs as many calls as one that
is ten times as large.  If neighbours are encoded alike, nothing tells the chunks of one from those of
the next: their chunk indices are joined, their bytes laid side by side, and every kernel runs once.

Indices into the dictionaries of several pages are looked up at once; pages whose strings have symbol tables of their
own stay alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from pennon.core.byte_ranges import Gather
from pennon.core.fast_dataclass import dataclass
from pennon.encoding.arrow_buffers import Bytes, as_bytes
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps, together
from pennon.encoding.search_cache import Slot
from pennon.encoding.v2_1.chunk_index import join_indices
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.dictionary import are_like, join_dictionaries, kind_of_items
from pennon.encoding.v2_1.layouts import Layout, MiniBlock
from pennon.encoding.v2_1.mini_block import data_of, decode_all, read_known
from pennon.encoding.v2_1.page import PageValues
from pennon.errors import FormatError


@dataclass(frozen=True, slots=True)
class WholePage:
    """A mini-block page that is read whole."""

    layout: MiniBlock
    buffers: PageBuffers
    slot: Slot


def kinship(layout: Layout) -> Hashable:
    """Return what neighbours that are decoded together have in common; None if this one cannot be."""
    if not isinstance(layout, MiniBlock):
        return None
    if layout.dictionary is None:
        return layout.kin
    kind = kind_of_items(layout.dictionary)
    return None if kind is None else (layout.kin, kind)


def read_neighbours(pages: Sequence[WholePage]) -> Steps[PageValues]:
    """Return the steps that read all rows of pages of one `kinship`, in one round."""
    extents = [data_of(page.buffers) for page in pages]
    ends = np.cumsum([extent.size_bytes for extent in extents], dtype=np.int64)
    starts = np.array([extent.position for extent in extents], np.int64)
    to_know = [(page.layout, page.buffers, page.slot) for page in pages]
    readers: list[Steps[Any]] = [read_known(to_know, CODECS)]
    readers.append(_gathered(Gather(starts, starts + np.diff(ends, prepend=0))))
    known, data = yield from together(readers)
    indices = [page.index for page in known]
    firsts = [0, *ends[:-1].tolist()]
    places = [index.offsets[:-1] + first for index, first in zip(indices, firsts, strict=True)]
    values = decode_all(
        pages[0].layout, join_indices(indices), data, np.concatenate(places), CODECS
    )
    dictionaries = [index.dictionary for index in indices if index.dictionary is not None]
    if not dictionaries:
        return values
    if not are_like(dictionaries):
        message = "dictionaries of other items than their pages say"
        raise FormatError(message)
    ends_of_values = np.cumsum([int(index.first_values[-1]) for index in indices], dtype=np.int64)
    return join_dictionaries(values, dictionaries, ends_of_values)


def _gathered(request: Gather) -> Steps[Bytes]:
    (answer,) = yield [request]
    return as_bytes(answer)
