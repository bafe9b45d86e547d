"""Tables with blobs of version 2 of every kind, and mutants of each file that they consist of.

Run as a program (``python -m tests.faults.blob_files MODULE FOLDER``) it lets ``lance`` or ``pennon`` write the
tables: blobs inline, packed, dedicated, in a base path and outside of all; alone, and in NULL structs.
"""

from __future__ import annotations

import random
import shutil
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pennon.proto import table_pb2
from tests.faults.damage import Damager, change, hit
from tests.faults.structure import Region

ROWS: Final = 60
SMALL: Final[dict[str, Any]] = {"inline_size_threshold": 8, "dedicated_size_threshold": 40}
"""Thresholds by which short values are of all kinds."""
COLUMNS: Final = {"alone": "b", "in-structs": "s.b"}
"""The blob column of each table."""

_OPTIONS: Final[dict[str, Any]] = {
    "data_storage_version": "2.2",
    "allow_external_blob_outside_bases": True,
}
_FOOTER: Final = 16
_DESCRIPTION: Final = "<BQQII"
_FIELDS: Final = (("kind", 0, 1), ("position", 1, 8), ("size", 9, 8), ("id", 17, 4), ("uri", 21, 4))
"""The parts of a description in its row: name, position, bytes.  The URI has its size in front."""


# --- tables ---------------------------------------------------------------------------------------


def write_tables(module: Any, folder: Path) -> None:
    """Let a library write the tables, and the files outside that some blobs lie in."""
    for place in ("base", "elsewhere"):
        (folder / place).mkdir()
        (folder / place / "a.bin").write_bytes(b"0123456789" * 7)
    field = module.blob_field("b", **SMALL)
    array = module.blob_array([_value(module, folder, row) for row in range(ROWS)])
    numbers = pa.array(range(ROWS))
    rows = pa.StructArray.from_arrays(
        [numbers, array],
        fields=[pa.field("n", pa.int64()), field],
        mask=pa.array([row % 11 == 5 for row in range(ROWS)]),
    )
    of = {
        "alone": pa.table([numbers, array], pa.schema([("n", pa.int64()), field])),
        "in-structs": pa.table([rows], pa.schema([pa.field("s", rows.type)])),
    }
    for name, table in of.items():
        base = module.DatasetBasePath(str(folder / "base"), "x")
        module.write_dataset(table, str(folder / name), initial_bases=[base], **_OPTIONS)


def _value(module: Any, folder: Path, row: int) -> Any:
    kinds = (
        b"%d" % row,
        None,
        b"",
        b"packed %d, " % row * 2,
        b"dedicated %d, " % row * 9,
        module.Blob.from_uri((folder / "base" / "a.bin").as_uri(), row, 7),
        (folder / "base" / "a.bin").as_uri(),
        module.Blob.from_uri((folder / "elsewhere" / "a.bin").as_uri(), 1, row + 1),
    )
    return kinds[row % len(kinds)] if row else b"first"


# --- mutants --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DamagedFile:
    """What becomes of one file: other bytes, or None if it is gone; which part was hit, and how."""

    path: Path
    part: str
    how: str
    data: bytes | None


class BlobDamager:
    """Makes the mutants of the files of one table, by number."""

    def __init__(self, uri: Path, descriptions: list[Any], seed: int) -> None:
        """``descriptions`` are what the sound table shows of its blobs."""
        name = f"{uri.parent.name}/{uri.name}"
        self._seed = f"{name}:{seed}"
        (self._file,) = (uri / "data").glob("*.lance")
        (self._manifest,) = (uri / "_versions").glob("*.manifest")
        self._beside = sorted(uri.glob("data/*/*.blob")) + sorted(uri.parent.glob("*/*.bin"))
        self._sound = {
            path: path.read_bytes() for path in (self._file, self._manifest, *self._beside)
        }
        data = self._sound[self._file]
        self._of_file = Damager(name, data, seed)
        self._descriptions = [
            region for each in descriptions if each for region in _regions(data, each)
        ]
        self._ways: tuple[Callable[[int, random.Random], DamagedFile], ...] = (
            self._data_file,
            self._description,
            self._description,
            self._manifest_message,
            self._data_file,
            self._description,
            self._base_path,
            self._file_beside,
        )

    def mutant(self, number: int) -> DamagedFile:
        """Return mutant ``number``; neighbours hit different parts."""
        rng = random.Random(f"{self._seed}:{number}")
        return self._ways[number % len(self._ways)](number // 4, rng)

    def restore(self, mutant: DamagedFile) -> None:
        """Put the sound file where a mutant was."""
        place(mutant.path, self._sound[mutant.path])

    def _data_file(self, number: int, _rng: random.Random) -> DamagedFile:
        found = self._of_file.mutant(number)
        return DamagedFile(self._file, found.part, found.how, found.data)

    def _description(self, _number: int, rng: random.Random) -> DamagedFile:
        region = rng.choice(self._descriptions)
        how, data = hit(self._sound[self._file], region, rng)
        return DamagedFile(self._file, region.name, how, data)

    def _manifest_message(self, _number: int, rng: random.Random) -> DamagedFile:
        return self._with_manifest("manifest", lambda manifest: change(manifest, rng))

    def _base_path(self, _number: int, rng: random.Random) -> DamagedFile:
        def edit(manifest: table_pb2.Manifest) -> None:
            if rng.random() < 0.1:
                del manifest.base_paths[:]
            else:
                change(rng.choice(manifest.base_paths), rng)

        return self._with_manifest("base path", edit)

    def _with_manifest(self, part: str, edit: Callable[[table_pb2.Manifest], None]) -> DamagedFile:
        data = self._sound[self._manifest]
        (at,) = struct.unpack_from("<Q", data, len(data) - _FOOTER)
        manifest = table_pb2.Manifest.FromString(data[at + 4 : len(data) - _FOOTER])
        edit(manifest)
        message = manifest.SerializeToString()
        made = data[:at] + struct.pack("<I", len(message)) + message + data[-_FOOTER:]
        return DamagedFile(self._manifest, part, "message", made)

    def _file_beside(self, _number: int, rng: random.Random) -> DamagedFile:
        path = rng.choice(self._beside)
        data = self._sound[path]
        part = "file of blobs" if path.suffix == ".blob" else "file outside"
        how = rng.choice(("gone", "cut", "cut", "empty", "longer"))
        made = {
            "gone": None,
            "cut": data[: rng.randrange(len(data))],
            "empty": b"",
            "longer": data * 2,
        }
        return DamagedFile(path, part, how, made[how])


def place(path: Path, data: bytes | None) -> None:
    """Put bytes where a file was; a reader may still map the old one, so it is never written into."""
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)


def _regions(data: bytes, shown: dict[str, Any]) -> list[Region]:
    """Return where the parts of a description lie in the data file."""
    uri = shown["blob_uri"].encode()
    numbers = [shown[name] for name in ("kind", "position", "size", "blob_id")]
    stored = struct.pack(_DESCRIPTION, *numbers, len(uri)) + uri
    start = data.find(stored)
    if start < 0:
        message = f"the description {shown} stands in no page"
        raise AssertionError(message)
    found = [Region(name, start + at, start + at + size, size) for name, at, size in _FIELDS]
    if uri:
        found.append(Region("text of the uri", start + 25, start + len(stored)))
    return found


def main(module: str, folder: Path) -> None:
    """Let a library write the tables."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_tables(import_module(module), folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
