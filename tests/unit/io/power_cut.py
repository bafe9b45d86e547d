"""A disk that loses what was not synced: the state of a folder at each sync of what is written in it.

The calls of `os` that make and sync files are watched.  Bytes are durable when their file was synced, and
a name when its folder was synced, and nothing else is: real file systems keep more.  Each `Cut` gives two
folders that the power cut may leave: one in which everything that was not synced is gone, and one in which all
names are there, and files that were not synced are torn.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Cut:
    """The files of a folder in the moment of a power cut, by path."""

    lost: dict[str, bytes]
    torn: dict[str, bytes]

    def leave(self, kind: str, folder: Path) -> None:
        """Write what the cut leaves, ``lost`` or ``torn``, into a folder."""
        files: dict[str, bytes] = getattr(self, kind)
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)


@dataclass
class Disk:
    """What is durable of the files below a folder, by their numbers (inodes)."""

    root: Path
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    cuts: list[Cut] = field(default_factory=list)
    synced: list[Path] = field(default_factory=list)
    """The files and folders that were synced, by their paths below the folder."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def sync_all(self) -> None:
        """Make durable all that is there, as if it was written long ago."""
        self._sync_names(self.root)
        for path in self.root.rglob("*"):
            if path.is_dir():
                self._sync_names(path)
            else:
                self.contents[path.stat().st_ino] = path.read_bytes()

    def sync(self, fd: int) -> None:
        """Note what the power would leave before a sync, then make the file or folder durable."""
        with self.lock:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            self.cuts.append(self.cut())
            self.synced.append(path.relative_to(self.root))
            if path.is_dir():
                self._sync_names(path)
            else:
                self.contents[path.stat().st_ino] = path.read_bytes()

    def one_at_a_time(self, change: Callable[..., None]) -> Callable[..., None]:
        """Return a function that changes names, but not while those of a cut are looked at."""

        def call(*args: Any, **more: Any) -> None:
            with self.lock:
                change(*args, **more)

        return call

    def forget(self, fd: int) -> None:
        """Note that a file is new: its number may be that of one that was deleted."""
        with self.lock:
            self.contents.pop(os.fstat(fd).st_ino, None)

    def cut(self) -> Cut:
        """Return what a power cut would leave now."""
        lost: dict[str, bytes] = {}
        self._durable(self.root.stat().st_ino, "", lost)
        torn = {}
        for path in self.root.rglob("*"):
            if path.is_file():
                now = path.read_bytes()
                if self.contents.get(path.stat().st_ino) != now:
                    now = now[: len(now) // 2] + bytes(len(now) - len(now) // 2)
                torn[str(path.relative_to(self.root))] = now
        return Cut(lost, torn)

    def _sync_names(self, folder: Path) -> None:
        found = {each.name: each.stat().st_ino for each in folder.iterdir()}
        self.names[folder.stat().st_ino] = found

    def _durable(self, folder: int, above: str, found: dict[str, bytes]) -> None:
        """Collect the files whose names are durable, and all names above them."""
        for name, number in self.names.get(folder, {}).items():
            path = f"{above}{name}"
            if number in self.names or (self.root / path).is_dir():
                self._durable(number, f"{path}/", found)
            else:
                found[path] = self.contents.get(number, b"")


@contextmanager
def watched_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """Watch what is written below a folder, all of which is durable at the beginning."""
    disk = Disk(root)
    disk.sync_all()
    real_open = os.open

    def open_file(path: str, flags: int, mode: int = 0o777, **more: int) -> int:
        fd = real_open(path, flags, mode, **more)
        if flags & os.O_CREAT:
            disk.forget(fd)
        return fd

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", open_file)
        patch.setattr(os, "fsync", disk.sync)
        for name in ("replace", "link", "unlink", "mkdir"):
            patch.setattr(os, name, disk.one_at_a_time(getattr(os, name)))
        yield disk
    disk.cuts.append(disk.cut())
