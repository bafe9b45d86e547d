"""What a file version has a writer put into pages, where 2.1 and 2.2 differ."""

from __future__ import annotations

from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.schema.version import V2_2, FileVersion


@dataclass(frozen=True, slots=True)
class PageRules:
    """What the pages of a file version are like; readers of a version refuse the other's.

    ``wide_chunks``: the words of mini-block chunks have 32 bits, and so has the size of a value
    buffer in a chunk (ledger F-76).
    """

    wide_chunks: bool


RULES_OF_2_1: Final = PageRules(wide_chunks=False)
RULES_OF_2_2: Final = PageRules(wide_chunks=True)


def rules_of(version: FileVersion) -> PageRules:
    """Return what the pages of a file of that version are like."""
    return RULES_OF_2_1 if version < V2_2 else RULES_OF_2_2
