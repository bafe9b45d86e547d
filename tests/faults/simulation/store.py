"""The disk of a run, and the store through which actors see it.

Each verb is a request: others may go first, and it may fail, lose its answer, take effect late, or find its
actor dead.  What was committed is written down by the disk itself, with who asked for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import partial
from typing import TypeVar

import pyarrow as pa

from pennon.core.byte_ranges import ByteRange, ByteRequest
from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.io.limits import FetchLimits
from pennon.io.mapped import MappedReader
from pennon.io.memory import MemoryWriter
from pennon.io.store import ObjectInfo
from pennon.table.external import Entry
from pennon.table.naming import Naming, parse_manifest_name
from tests.faults.simulation import seams
from tests.faults.simulation.scheduler import EPOCH, Actor, Scheduler

T = TypeVar("T")
MAIN = ""
_BORN = datetime.fromtimestamp(EPOCH, UTC)


class Fault(Enum):
    """What may become of a request."""

    FAIL = "is not carried out, and fails"
    LOST = "is carried out, and fails"
    ECHO = "is carried out, and is said to have been in its own way"
    LATE = "fails, and is carried out later"
    DIE_BEFORE = "its actor dies"
    DIE_AFTER = "is carried out, and its actor dies"
    DIE_LATE = "its actor dies, and it is carried out later"


@dataclass(frozen=True)
class Weather:
    """How likely each fault is, for a request that writes and for one that reads."""

    faults: dict[Fault, float] = field(default_factory=dict)
    reads: float = 0.0
    page: int | None = None
    """How many names a listing brings at once; others go on between two pages."""

    def draw(self, rng: random.Random, *, writes: bool, creates: bool) -> Fault | None:
        """Return the fault of a request, None for none."""
        drawn = rng.random()
        if not writes:
            return Fault.FAIL if drawn < self.reads else None
        for fault, chance in self.faults.items():
            if drawn < chance:
                return fault if creates or fault is not Fault.ECHO else Fault.FAIL
            drawn -= chance
        return None


CALM = Weather()


@dataclass(frozen=True)
class Stored:
    """An object."""

    data: bytes
    when: float
    number: int


@dataclass(eq=False)
class Version:
    """A version that was committed: what the disk saw, and on whose behalf."""

    line: str
    number: int
    naming: Naming
    body: bytes
    when: float
    by: object
    """The operation that the actor was about."""
    is_void: bool = False
    """Whether it does not count: made below the newest one, or under an old name too late."""


def line_of(path: str) -> tuple[str, Naming, int] | None:
    """Return the line, naming and version of a manifest's path; None if it is none's."""
    folder, _, name = path.rpartition("/")
    if not folder.endswith("_versions"):
        return None
    parsed = parse_manifest_name(f"_versions/{name}")
    line = folder.removesuffix("_versions").rstrip("/")
    return None if parsed is None else (line, parsed[0], int(parsed[1]))


class Disk:
    """All objects, all that ever were, and the history of versions."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.objects: dict[str, Stored] = {}
        self.archive: dict[str, bytes] = {}
        self.history: dict[str, list[Version]] = {}
        self.entries: dict[str, dict[int, Entry]] = {}
        self.is_external = False
        self.wrongs: list[str] = []
        self.before_delete: list[Callable[[str, Stored, object], None]] = []
        self._count = 0

    def put(self, path: str, data: bytes, by: object) -> None:
        """Write an object; a manifest is never to be another one's successor under its name."""
        at = line_of(path)
        old = self.objects.get(path)
        if at is not None and old is not None and old.data != data:
            self.wrongs.append(f"the manifest {path} was overwritten with another")
        self._count += 1
        self.objects[path] = Stored(data, self.scheduler.now, self._count)
        if at is None:
            self.archive.setdefault(path, data)
        elif not self.is_external:
            self._committed(*at, data, by)

    def create(self, path: str, data: bytes, by: object) -> None:
        """Write an object unless it is there."""
        if path in self.objects:
            message = "the name is taken"
            raise AlreadyExistsError(message, where=Breadcrumb(path))
        self.put(path, data, by)

    def grant(self, folder: str, entry: Entry, by: object) -> None:
        """Add an entry of the external manifest store, unless its version has one."""
        entries = self.entries.setdefault(folder, {})
        if entry.version in entries:
            message = "the version is taken"
            raise AlreadyExistsError(message, where=Breadcrumb(entry.path))
        entries[entry.version] = entry
        path = f"{folder}/{entry.path}".lstrip("/")
        final = line_of(f"{path.partition('.manifest')[0]}.manifest")
        staged = self.objects.get(path)
        if final is None or staged is None:
            self.wrongs.append(f"the manifest store granted {entry.path}, which is not there")
        else:
            self._committed(*final, staged.data, by)

    def delete(self, path: str, by: object) -> None:
        """Take an object away."""
        found = self.objects.get(path)
        if found is not None:
            for told in self.before_delete:
                told(path, found, by)
            del self.objects[path]

    def newest(self, line: str = MAIN) -> int:
        """Return the newest version that was ever committed."""
        return max((v.number for v in self.history.get(line, ()) if not v.is_void), default=0)

    def _committed(self, line: str, naming: Naming, number: int, body: bytes, by: object) -> None:
        versions = self.history.setdefault(line, [])
        same = [v for v in versions if v.number == number]
        if any(v.body == body for v in same):
            return  # a copy under the other name
        newest = self.newest(line)
        made = Version(line, number, naming, body, self.scheduler.now, by)
        if naming is Naming.V2 and same and all(v.naming is Naming.V1 for v in same):
            for version in same:
                version.is_void = True
        elif number <= newest:
            made.is_void = True
        elif versions and number != newest + 1:
            self.wrongs.append(f"version {number} of {line or 'main'} follows {newest}")
        versions.append(made)


@dataclass(eq=False)
class SimulatedStore:
    """The disk below a URI, as a `pennon.io.store.Store`.

    Nobody sleeps for hours inside of the commit request itself, or where it looks what became of it: against
    that only a store that fences could help.  ``creates``: it has put-if-absent.  ``late_manifests``: a write of a manifest may take effect when its
    writer has given up; where a lock is all that keeps two apart, nothing could help against that.
    """

    disk: Disk
    weather: Weather
    uri: str
    limits: FetchLimits | None = None
    creates: bool = True
    late_manifests: bool = True

    def request(
        self,
        verb: str,
        path: str,
        carry_out: Callable[[], T],
        *,
        writes: bool = False,
        creates: bool = False,
    ) -> T:
        """Carry out a request, or not."""
        scheduler = self.disk.scheduler
        is_commit = writes and ("_versions/" in path or verb.startswith("manifests"))
        is_look = verb == "read" and "_versions/" in path
        scheduler.step(verb, path, may_pause_long=not is_commit and not is_look)
        actor = seams.current()
        if not isinstance(actor, Actor):
            return carry_out()
        fault = self.weather.draw(scheduler.rng, writes=writes, creates=creates)
        if fault is None:
            return carry_out()
        if fault in {Fault.LATE, Fault.DIE_LATE} and not self._may_be_late(path, verb):
            fault = Fault.FAIL if fault is Fault.LATE else Fault.DIE_BEFORE
        scheduler.note(f"{verb} {path} {fault.value}")

        def quietly() -> None:
            with suppress(LanceError):
                carry_out()

        if fault in {Fault.LOST, Fault.ECHO, Fault.DIE_AFTER}:
            quietly()
        elif fault in {Fault.LATE, Fault.DIE_LATE}:
            scheduler.later(scheduler.rng.choice((0.1, 1.0, 20.0, 900.0)), quietly)
        if fault in {Fault.DIE_BEFORE, Fault.DIE_AFTER, Fault.DIE_LATE}:
            scheduler.die(actor)
        if fault is Fault.LOST:
            scheduler.step("no answer to", path, may_pause_long=False)
        message = f"the request {verb} {fault.value}"
        error = AlreadyExistsError if fault is Fault.ECHO else StoreError
        raise error(message, where=Breadcrumb(path))

    def _may_be_late(self, path: str, verb: str) -> bool:
        if path.startswith("_refs/"):
            return False  # names are free again when they are deleted: a late request would count twice
        return self.late_manifests or verb == "delete" or line_of(path) is None

    # --- the verbs --------------------------------------------------------------------------------

    def open(self, path: str, size_bytes: int | None = None) -> Reader:
        """Open an object; a request only if its size is not known."""
        if size_bytes is None:
            size_bytes = len(self.request("open", path, lambda: self._find(path)).data)
        return Reader(self, path, size_bytes)

    def read_whole(self, path: str) -> pa.Buffer:
        """Return the bytes of an object."""
        return pa.py_buffer(self.request("read", path, lambda: self._find(path)).data)

    def info(self, path: str) -> ObjectInfo:
        """Return size and time of an object, by a request."""
        found = self.request("open", path, lambda: self._find(path))
        return ObjectInfo(path, len(found.data), _BORN + timedelta(seconds=found.when))

    def identity(self, path: str, size_bytes: int | None = None) -> Hashable:
        """Return name and size, as object stores do."""
        return self.uri, path, size_bytes

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects under a folder, a page at a time."""
        start, last = f"{prefix}/" if prefix else "", ""
        while True:
            asked = partial(self._page, start, last)
            page = self.request("list", f"{prefix}>{last}", asked)
            yield from page
            if self.weather.page is None or len(page) < self.weather.page:
                return
            last = page[-1].path

    def list_names(self, prefix: str) -> Iterator[tuple[str, int | None]]:
        """Yield path and size of the objects under a folder."""
        return ((info.path, info.size_bytes) for info in self.list(prefix))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Yield the folders directly below a folder."""
        start = f"{prefix}/" if prefix else ""
        names = {info.path[len(start) :].partition("/") for info in self.list(prefix)}
        return iter(sorted(start + name for name, slash, _ in names if slash))

    def open_writer(self, path: str) -> MemoryWriter:
        """Start a new object, which is put when it is closed."""
        return MemoryWriter(self, path)  # type: ignore[arg-type]

    def put(self, path: str, data: bytes) -> None:
        """Write an object."""
        by = _doing()
        self.request("put", path, lambda: self.disk.put(path, bytes(data), by), writes=True)

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Write an object unless it is there."""
        if not self.creates:
            message = "this store cannot create only what is absent"
            raise UnsupportedError(message, where=Breadcrumb(path))
        by = _doing()
        self.request(
            "create",
            path,
            lambda: self.disk.create(path, bytes(data), by),
            writes=True,
            creates=True,
        )

    def delete(self, path: str) -> None:
        """Delete an object."""
        by = _doing()
        self.request("delete", path, lambda: self.disk.delete(path, by), writes=True)

    def _find(self, path: str) -> Stored:
        found = self.disk.objects.get(path)
        if found is None:
            message = "there is no such object"
            raise NotFoundError(message, where=Breadcrumb(path))
        return found

    def _page(self, start: str, last: str) -> Sequence[ObjectInfo]:
        names = sorted(p for p in self.disk.objects if p.startswith(start) and p > last)
        found = ((path, self.disk.objects[path]) for path in names[: self.weather.page])
        return [
            ObjectInfo(path, len(it.data), _BORN + timedelta(seconds=it.when)) for path, it in found
        ]


@dataclass(frozen=True, eq=False)
class Reader:
    """An object that is read by requests."""

    store: SimulatedStore
    path: str
    size_bytes: int
    is_mapped: bool = False

    def read(self, requests: Sequence[ByteRequest]) -> list[pa.Buffer]:
        """Answer one round of requests."""
        data = self.store.read_whole(self.path)
        if data.size != self.size_bytes:
            message = f"the object has {data.size} bytes, not {self.size_bytes}"
            raise StoreError(message, where=Breadcrumb(self.path))
        return MappedReader(self.store, self.path, data).read(requests)

    def whole(self) -> pa.Buffer:
        """Return all bytes."""
        return self.read([ByteRange(0, self.size_bytes)])[0]


@dataclass(frozen=True, eq=False)
class SimulatedManifests:
    """The external manifest store of a disk, asked by requests, too."""

    store: SimulatedStore
    folder: str = MAIN

    @property
    def _entries(self) -> dict[int, Entry]:
        return self.store.disk.entries.setdefault(self.folder, {})

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version."""
        return self.store.request("manifests get", str(version), lambda: self._entries.get(version))

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version."""
        return self.store.request(
            "manifests latest", "", lambda: max(self._entries.values(), key=_number, default=None)
        )

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry."""
        by = _doing()
        self.store.request(
            "manifests add",
            entry.path,
            lambda: self.store.disk.grant(self.folder, entry, by),
            writes=True,
            creates=True,
        )

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version."""
        self.store.request(
            "manifests flip", entry.path, lambda: self._replace(entry), writes=True, creates=False
        )

    def below(self, folder: str) -> SimulatedManifests:
        """Return the manifests of a branch."""
        return SimulatedManifests(self.store, f"{self.folder}/{folder}".lstrip("/"))

    def _replace(self, entry: Entry) -> None:
        if entry.version not in self._entries:
            message = f"the manifest store knows no version {entry.version}"
            raise NotFoundError(message, where=Breadcrumb(entry.path))
        self._entries[entry.version] = entry


def _number(entry: Entry) -> int:
    return entry.version


def _doing() -> object:
    """Return the operation that is going on."""
    return getattr(seams.current(), "doing", None)
