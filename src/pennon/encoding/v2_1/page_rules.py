"""The rules for pages in which file versions 2.1 and 2.2 differ."""

from __future__ import annotations

from typing import Final

from pennon.core.fast_dataclass import dataclass
from pennon.schema.version import V2_1, FileVersion


@dataclass(frozen=True, slots=True)
class PageRules:
    """The rules for the pages of a file version; readers of a version refuse the other's.

    ``wide_chunks``: the words of mini-block chunks have 32 bits, and so has the size of a value
    buffer in a chunk (ledger F-76).
    ``constant_values``: a page may have one value for all, and its levels may be encoded (F-84, F-85).
    ``level_runs``: levels may be runs.
    ``free_dictionaries``: values of all widths of whole bytes may have a dictionary that their type
    does not ask for, its items may be encoded, and the indices have any width.
    """

    wide_chunks: bool
    constant_values: bool
    level_runs: bool
    free_dictionaries: bool


RULES_OF_2_1: Final = PageRules(
    wide_chunks=False, constant_values=False, level_runs=False, free_dictionaries=False
)
RULES_OF_2_2: Final = PageRules(
    wide_chunks=True, constant_values=True, level_runs=True, free_dictionaries=True
)


_RULES: Final = {V2_1: RULES_OF_2_1}


def rules_of(version: FileVersion) -> PageRules:
    """Return what the pages of a file of that version are like: those of 2.2, unless it has others."""
    return _RULES.get(version, RULES_OF_2_2)
