"""Tables of old releases, which lie here in archives."""

from __future__ import annotations

import tarfile
from pathlib import Path


def unpack(archive: Path, folder: Path) -> None:
    """Unpack one of this project's own archives; Python has filters for what is unpacked since 3.11.4."""
    filters = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
    with tarfile.open(archive) as opened:
        opened.extractall(folder, **filters)  # type: ignore[arg-type]
