"""The kinds of searches, and the source of rows that runs each."""

from __future__ import annotations

from functools import partial
from typing import Any

from pennon.scan.answer import Answer
from pennon.scan.plan.query import ScanOptions
from pennon.scan.plan.row_search import TextSearch
from pennon.scan.snapshot import Snapshot


def answer_search(snapshot: Snapshot, options: ScanOptions) -> Answer[Any]:
    """Return the answer to the search of a scan.  Raises ArgumentError for one that cannot be answered."""
    search = options.search
    if isinstance(search, TextSearch):
        from pennon.scan.search.full_text import TextSource  # noqa: PLC0415 - saves what searches vectors

        return Answer(snapshot, options, partial(TextSource.of, asked=search))
    from pennon.scan.search.nearest import NearestSource, VectorSearch  # noqa: PLC0415 - saves what searches texts

    if isinstance(search, VectorSearch):
        return Answer(snapshot, options, partial(NearestSource, asked=search))
    from pennon.scan.search.fusion import HybridSearch, HybridSource  # noqa: PLC0415 - saves what searches texts

    if isinstance(search, HybridSearch):
        return Answer(snapshot, options, partial(HybridSource, asked=search))
    message = f"a scan searches for a vector or a text, and not for a {type(search).__name__}"
    raise TypeError(message)
