"""Shared by commands that change a table: the branch to change, and progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pennon.cli.at import open_at
from pennon.cli.named_versions import open_branch
from pennon.dataset.lance_dataset import LanceDataset
from pennon.ops.bars import reporting


def open_to_write(uri: str, branch: str | None, options: Mapping[str, str]) -> LanceDataset:
    """Open the newest version of a table, or of a branch of it.  Raises NotFoundError."""
    snapshot = open_at(uri, None, options)
    if branch is not None:
        snapshot = open_branch(snapshot, branch)
    return LanceDataset.of_snapshot(uri, snapshot, options)


@contextmanager
def watched(quiet: bool) -> Iterator[None]:
    """Let long work show bars on a terminal, unless it is to be quiet."""
    if not quiet:
        yield
        return
    with reporting(_tell_no_one):
        yield


def _tell_no_one(_what: str, _done: int, _total: int) -> None:
    """Take no note of progress."""
