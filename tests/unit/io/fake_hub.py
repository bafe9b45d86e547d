"""A module ``fsspec`` whose file system ``hf`` keeps the Hub's repositories in a local folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO


@dataclass
class Resolved:
    path: str

    def unresolve(self) -> str:
        return self.path


@dataclass
class FakeHub:
    """The verbs of huggingface_hub's file system that Pennon uses, and a count of them."""

    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def info(self, path: str) -> dict[str, Any]:
        self.calls.append("info")
        place = self.folder / path
        if not place.exists():
            raise FileNotFoundError(path)
        if place.is_dir():
            return {"name": path, "size": 0, "type": "directory"}
        return {"name": path, "size": place.stat().st_size, "type": "file", "blob_id": "1"}

    def find(self, path: str, *, detail: bool) -> dict[str, Any]:
        assert detail
        self.calls.append("find")
        files = [each for each in (self.folder / path).rglob("*") if each.is_file()]
        if not files:
            raise FileNotFoundError(path)
        names = [str(each.relative_to(self.folder)) for each in files]
        return {name: self.info(name) for name in names}

    def cat_file(self, path: str) -> bytes:
        self.calls.append("cat_file")
        return (self.folder / path).read_bytes()

    @contextmanager
    def open(self, path: str, mode: str, *, cache_type: str, size: int) -> Iterator[BinaryIO]:
        assert (mode, cache_type) == ("rb", "none")
        self.calls.append("open")
        with (self.folder / path).open("rb") as file:
            yield file

    def invalidate_cache(self, path: str) -> None:
        pass

    def resolve_path(self, path: str) -> Resolved:
        return Resolved(path)


class FakeFsspec(ModuleType):
    def __init__(self, hub: FakeHub) -> None:
        super().__init__("fsspec")
        self.hub = hub

    def filesystem(self, protocol: str, **options: Any) -> FakeHub:
        assert protocol == "hf"
        self.hub.options = options
        return self.hub
