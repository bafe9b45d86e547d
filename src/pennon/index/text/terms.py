"""The posting lists of a partition that a query needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pennon.core.fast_dataclass import dataclass
from pennon.index.text.partition import Partition
from pennon.index.text.postings import Postings
from pennon.index.text.tokenizer import Placed


@dataclass(frozen=True, slots=True)
class Fuzziness:
    """The edit distance that tokens may have from those of the query.

    ``edits``: None is by the length of each.  ``most``: tokens for all that are asked for together, in order.
    """

    edits: int | None = 0
    prefix: int = 0
    most: int = 50


EXACT = Fuzziness()


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A token that fits one of a query at a position, and its documents.

    Those of one position are alternatives: a word and its parts, and all windows of a text.
    """

    token: str
    position: int
    number: int
    """That of the token in its partition."""
    postings: Postings


def find_terms(
    partition: Partition, asked: Sequence[Placed], fuzziness: Fuzziness, *, places: bool = False
) -> list[Term]:
    """Return the terms of a partition, with their positions if ``places``."""
    found = list(_numbers(partition, asked, fuzziness))
    lists = partition.postings([number for *_, number in found], places=places)
    return [
        Term(token, position, number, postings)
        for (token, position, number), postings in zip(found, lists, strict=True)
    ]


def _numbers(
    partition: Partition, asked: Sequence[Placed], fuzziness: Fuzziness
) -> Iterator[tuple[str, int, int]]:
    tokens, left = partition.tokens, fuzziness.most
    for token, position in asked:
        if fuzziness.edits == 0:
            number = tokens.find(token)
            if number is not None:
                yield token, position, number
            continue
        edits = _edits(token) if fuzziness.edits is None else fuzziness.edits
        for each, number in tokens.near(token, edits, fuzziness.prefix, left):
            left -= 1
            yield each, position, number


def _edits(token: str) -> int:
    """Return the default edit distance for a token: a longer token gets a larger one."""
    return 0 if len(token) <= 2 else 1 if len(token) <= 5 else 2
