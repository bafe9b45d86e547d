"""The options that cut a data file into pages; each file version takes its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

import pyarrow as pa

from pennon.core.byte_ranges import Int64Array
from pennon.core.fast_dataclass import dataclass
from pennon.core.units import MIB, FieldId

DEFAULT_CACHE_BYTES: Final = 8 * MIB
DEFAULT_MAX_PAGE_BYTES: Final = 32 * MIB
MAX_ROWS_PER_GROUP: Final = 1024


@dataclass(frozen=True, slots=True)
class PageLimits:
    """The size at which a page of a column is cut, and the most that a page may hold.

    Files of version 2.0 may have zone maps of their columns, by which Pennon skips rows; no release
    of pylance reads such a file.
    """

    cache_bytes: int = DEFAULT_CACHE_BYTES
    max_page_bytes: int = DEFAULT_MAX_PAGE_BYTES
    rows_per_zone: int | None = None
    """Columns of values get a zone map of so many rows a zone (version 2.0)."""


@dataclass(frozen=True, slots=True, eq=False)
class RowGroups:
    """The row groups of a file of version 0.1, and the dictionaries that it shares with others.

    ``borders``: row group g has the rows ``[borders[g], borders[g + 1])``; None: each has
    ``max_rows``, but for the last.  ``dictionaries`` are those of the files of this write so far, by
    field id; the file adds to them, unless they are ``fixed``, which are those of the table.
    """

    max_rows: int = MAX_ROWS_PER_GROUP
    borders: Int64Array | None = None
    fixed: Mapping[FieldId, pa.Array] = field(default_factory=dict)
    dictionaries: dict[FieldId, pa.Array] = field(default_factory=dict)
