"""The answer to a search: its source of rows, which the search names, behind the one pipeline."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any

from pennon.scan.answer import Answer
from pennon.scan.plan.query import ScanOptions
from pennon.scan.snapshot import Snapshot


def answer_search(snapshot: Snapshot, options: ScanOptions) -> Answer[Any]:
    """Return the answer to the search of a scan.  Raises ArgumentError for one that cannot be answered.

    A search of texts loads nothing that compares vectors, and the other way round.
    """
    search = options.search
    if search is None:
        message = "a scan without a search has no source of rows"
        raise ValueError(message)
    module, _, name = search.source.partition(":")
    source = attrgetter(name)(import_module(f"pennon.scan.search.{module}"))
    return Answer(snapshot, options, partial(source, asked=search))
