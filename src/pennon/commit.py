"""Errors of concurrent commits, and locks around commits (``lance.commit``)."""

from __future__ import annotations

from pennon.errors import ConflictError as CommitConflictError
from pennon.table.commit.lock import CommitLock

__all__ = ["CommitConflictError", "CommitLock"]
