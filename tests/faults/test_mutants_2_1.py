"""Damaged files of 2.1 and 2.2: typed errors or valid rows, whatever part of a page is hit.

The oracle writes one file for each group of layouts and encodings; what is damaged are the begins of
pages (chunk tables, headers, levels, indices), all of the pages, and the metadata with the encodings.
`mutants.py` says how, and judges in a process of its own.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.test_mutants import Job, check, run_child

MUTANTS = 400
_HEAD_BYTES = 256

WRITE = """
import sys
import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

name, version, path = sys.argv[1:]
n = 3000
rng = np.random.default_rng(1)
ids = np.arange(n)
few = ids % 7

def holes(values):
    return [None if i % 5 == 2 else value for i, value in enumerate(values)]

def made(values, meta=None, t=None):
    array = values if isinstance(values, pa.Array) else pa.array(values, t)
    prefixed = {f"lance-encoding:{k}": v for k, v in (meta or {}).items()}
    return pa.field("c", array.type, metadata=prefixed or None), array

packed = pa.struct([("a", pa.int32()), ("b", pa.float64())])
waves = np.sin(ids / 100)
text = [f"text {i} {i * 7919 % 997}" for i in ids]
lists = holes([list(range(i % 4)) for i in ids])
structs = holes([{"a": int(i), "b": [str(i)] * (i % 3)} for i in ids])
groups = {
    "packed": [made(ids), made(holes(ids.tolist())), made(ids.astype("u1")), made(few > 3)],
    "runs": [made(ids // 40, {"rle-threshold": "1.0"}, pa.int32()), made(few), made([9] * n)],
    "general": [
        made(waves, {"compression": "zstd", "bss": "on"}),
        made(waves, {"compression": "lz4", "bss": "on"}),
        made(text, {"compression": "zstd"}),
    ],
    "text": [made(holes(text)), made([f"w{i}" for i in few]), made(text, {"compression": "none"})],
    "lists": [made(lists, None, pa.list_(pa.int32())), made(structs)],
    "full-zip": [
        made(holes(text), {"structural-encoding": "fullzip"}),
        made(text[:300], {"structural-encoding": "fullzip", "compression": "zstd"}),
        made(lists, {"structural-encoding": "fullzip"}, pa.list_(pa.int32())),
        made(holes([[i, None, 3] for i in ids]), {"structural-encoding": "fullzip"},
             pa.list_(pa.int32(), 3)),
    ],
    "constant": [
        made([None] * n, None, pa.int32()),
        made([None if i % 2 else [] for i in ids], None, pa.list_(pa.int8())),
        made(holes(["tail"] * n)),
    ],
    "rows": [
        made([{"a": int(i), "b": 1.5} for i in ids], {"packed": "true"}, packed),
        made(holes([b"%d" % i for i in ids]), {"blob": "true"}, pa.large_binary()),
    ],
}
if version == "2.2":
    wide = pa.struct([("a", pa.int32()), ("b", pa.string())])
    groups["rows"].append(
        made(holes([{"a": int(i), "b": str(i)} for i in ids]), {"packed": "true"}, wide)
    )
    maps = holes([[(f"k{j}", j) for j in range(i % 3)] for i in ids])
    groups["lists"].append(made(maps, None, pa.map_(pa.string(), pa.int32())))
columns = [(f.with_name(f"c{i}"), a[:300]) for i, (f, a) in enumerate(groups[name])]
if name in ("packed", "runs", "lists"):
    columns = [(f.with_name(f"c{i}"), a) for i, (f, a) in enumerate(groups[name])]
schema = pa.schema([f for f, _ in columns])
with LanceFileWriter(path, schema, version=version) as writer:
    writer.write_batch(pa.table([a for _, a in columns], schema=schema))
"""
GROUPS = ["packed", "runs", "general", "text", "lists", "full-zip", "constant", "rows"]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", GROUPS)
def test_damaged_files(name: str, version: str, tmp_path: Path) -> None:
    path = tmp_path / "x.lance"
    arguments = [sys.executable, "-c", WRITE, name, version, str(path)]
    subprocess.run(arguments, check=True, env={**os.environ, "RUST_BACKTRACE": "0"})
    job = Job("file", str(path), {path.name: _regions(path.read_bytes())}, MUTANTS)
    # Most of a page are values, and any bits are a valid value.
    check(run_child(tmp_path, job, tmp_path / "plan.json"), job.count, least_refused=0.08)


def _regions(data: bytes) -> list[tuple[int, int]]:
    """Return the begin of the pages, the pages, and twice the metadata, for encodings stand there."""
    metadata, offsets, _ = struct.unpack_from("<QQQ", data, len(data) - 40)
    pages = [(0, min(_HEAD_BYTES, metadata)), (0, metadata)] if metadata else []
    return [*pages, (metadata, offsets), (metadata, offsets)]
