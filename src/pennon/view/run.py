"""The page of a table, started: served until Ctrl-C, or written into a file."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from pathlib import Path

from pennon.dataset.lance_dataset import LanceDataset
from pennon.view import export
from pennon.view.opened import ViewedTable
from pennon.view.server import PageServer


def serve(
    dataset: LanceDataset, port: int, show: Callable[[str], None], *, opens: bool = False
) -> None:
    """Serve the page of a version until Ctrl-C; ``show`` gets its link, and so does a browser if ``opens``.

    Port 0 is a free one.  Raises OSError if the port is taken.
    """
    with PageServer(ViewedTable(dataset), port) as server:
        show(server.link)
        if opens:
            webbrowser.open(server.link)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


def write(dataset: LanceDataset, path: Path) -> int:
    """Write the page of a version as one HTML file, and return its size in bytes."""
    return export.write_page(dataset, path)
