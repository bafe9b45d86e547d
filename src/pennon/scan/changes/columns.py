"""The columns of a change feed beside those of the table."""

from __future__ import annotations

from enum import Enum
from typing import Final

import pyarrow as pa

CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"


class ChangeType(Enum):
    """The kind of a change; an update is two rows, as it was before and as it is behind the version."""

    INSERT = "insert"
    BEFORE_UPDATE = "update_preimage"
    AFTER_UPDATE = "update_postimage"
    DELETE = "delete"


def change_columns() -> list[pa.Field]:
    """Return the columns that a change has beside those of its row."""
    return [
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
        pa.field(COMMIT_TIMESTAMP, pa.timestamp("us", "UTC"), nullable=False),
    ]
