"""An index is made in parts of bounded size: peak memory is measured, in a child."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

MIB = 1 << 20
BUILD_LIMIT_BYTES = 400 * MIB

BUILD = """
import json, sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc
import pennon
from tests.limits.peak import peak_bytes, start_peak

rows, letters, files = (int(each) for each in sys.argv[2:])
random = np.random.default_rng(2013)
word = pa.array(["".join(random.choice(list("abcdefghiklmnoprstuvwxyz"), 5)) for _ in range(20_000)])

def texts(count):
    count_words = letters // 6
    ends = pa.array(np.arange(count + 1, dtype=np.int32) * count_words)
    words = word.take(pa.array(random.integers(0, len(word), count * count_words)))
    return pa.record_batch([pc.binary_join(pa.ListArray.from_arrays(ends, words), " ")], ["s"])

step = max(3_000_000 // letters, 1)
batches = (texts(min(step, rows - start)) for start in range(0, rows, step))
schema = pa.schema([("s", pa.string())])
table = pennon.write_dataset(batches, sys.argv[1], schema, max_rows_per_file=rows // files)
start = start_peak()
table.create_scalar_index("s", "NGRAM")
print(json.dumps({"grown": peak_bytes() - start}))
"""


def grown(uri: Path, rows: int, letters: int, files: int) -> int:
    """Return by how much the memory of a process grows that makes an NGRAM index, in bytes."""
    child = subprocess.run(
        [sys.executable, "-c", BUILD, str(uri), str(rows), str(letters), str(files)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    found: int = json.loads(child.stdout)["grown"]
    return found


@pytest.mark.slow
def test_ngram_index_of_a_million_short_texts_takes_400_mb(tmp_path: Path) -> None:
    assert grown(tmp_path / "t.lance", 1_000_000, 60, 1) < BUILD_LIMIT_BYTES


def test_ngram_index_of_long_texts_takes_400_mb(tmp_path: Path) -> None:
    assert grown(tmp_path / "t.lance", 10_000, 4_000, 2) < BUILD_LIMIT_BYTES
