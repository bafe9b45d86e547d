"""The loggers of the package: one for each topic, silent unless a program asks (`pennon.log`)."""

from __future__ import annotations

from logging import getLogger
from typing import Final

COMMIT: Final = getLogger("pennon.commit")
"""Commits: each version made (INFO), conflicts settled and operations done again (INFO), lost races (DEBUG)."""
IO: Final = getLogger("pennon.io")
"""Stores: requests that are sent again (INFO)."""
SCAN: Final = getLogger("pennon.scan")
"""Scans: table, version, columns and filter of each (DEBUG)."""
MAINTENANCE: Final = getLogger("pennon.maintenance")
"""Compactions, clean-ups, and indices built or brought up to date (INFO)."""
