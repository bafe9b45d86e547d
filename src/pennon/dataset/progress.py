"""Progress of writes (pylance's ``lance.progress``)."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from pennon.dataset.metadata import FragmentMetadata
from pennon.ops.index.progress import IndexProgress as IndexProgress


class FragmentWriteProgress(ABC):
    """Is called when a fragment is begun and when it is complete; make a class of your own."""

    @abstractmethod
    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Take note that a fragment is begun; it has neither id nor files yet."""

    @abstractmethod
    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Take note that a fragment is written; it gets its id at the commit."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Does nothing."""

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Leaves ``fragment_N.json`` in a folder, and ``fragment_N.in_progress`` until it is done."""

    PROGRESS_EXT = ".in_progress"

    def __init__(self, base_uri: str, metadata: dict[str, str] | None = None) -> None:
        """Take the folder, and further values for the ``.in_progress`` files."""
        self._base = Path(os.fspath(base_uri).removeprefix("file://"))
        self._metadata = metadata or {}

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Write both files."""
        self._base.mkdir(parents=True, exist_ok=True)
        state = {"fragment_id": fragment.id, "metadata": self._metadata}
        self._in_progress(fragment).write_text(json.dumps(state))
        whole = self._base / f"fragment_{fragment.id}.json"
        whole.write_text(json.dumps(fragment.to_json()))

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Remove the ``.in_progress`` file."""
        self._in_progress(fragment).unlink()

    def _in_progress(self, fragment: FragmentMetadata) -> Path:
        return self._base / f"fragment_{fragment.id}{self.PROGRESS_EXT}"
