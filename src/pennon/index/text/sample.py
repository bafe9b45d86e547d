"""Look up texts of a sample in an index: each of their first tokens must name the row."""

from __future__ import annotations

from typing import Final

import numpy as np

from pennon.index.kind import Sample
from pennon.index.row_set import Numbers
from pennon.index.text.documents import Reader, is_json
from pennon.index.text.inverted import Inverted

_TOKENS: Final = 4
"""Tokens of a text that are looked up."""


def finds(sample: Sample) -> list[bool]:
    """Return which documents a segment finds by their tokens."""
    opened = Inverted(sample.files)
    reader = Reader(opened.parameters, is_json(sample.type), opened.by_item)
    there = []
    for document in reader.documents(sample.values.values):
        tokens = dict.fromkeys(token for token, *_ in document.tokens)
        row = sample.values.rows[document.row]
        named = (sample.present(_rows_of_token(opened, each)) for each in list(tokens)[:_TOKENS])
        there.append(all(bool((rows == row).any()) for rows, _ in named))
    return there


def _rows_of_token(opened: Inverted, token: str) -> Numbers:
    """Return the rows, by the index's numbers, that have a token."""
    named = [np.empty(0, np.uint64)]
    for partition in opened.partitions:
        number = partition.tokens.find(token)
        if number is not None:
            lists = partition.lists(number, number + 1, places=False)
            named.append(partition.row_ids[lists.docs])
    return np.concatenate(named)
