"""A driver that is killed before or after its last commit: ``python -m tests.spark.driver_kills WHEN NAME URI``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any
from unittest.mock import patch

from pennon.ops import commit as commits
from pennon.spark import LanceTable
from pennon.table.commit import loop
from pennon.table.operations import ReserveFragments
from tests.spark.changes import OPERATIONS
from tests.spark.modes import start


def main() -> None:
    """Make a table, and change it; this does not return."""
    when, name, uri = sys.argv[1:]
    spark = start("local[2]")
    OPERATIONS[name].make(uri)
    commit = loop.commit

    def deadly(store: Any, transaction: Any, *others: Any) -> Any:
        if isinstance(transaction.operation, ReserveFragments):
            return commit(store, transaction, *others)
        if when == "after":
            commit(store, transaction, *others)
        os.kill(os.getpid(), signal.SIGKILL)
        return None

    with patch.object(commits, "commit", deadly):
        OPERATIONS[name].run(LanceTable.forPath(spark, uri))


if __name__ == "__main__":
    main()
