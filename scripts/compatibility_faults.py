"""Faults found in releases of pylance: a program for each, which runs in each release when the page is made."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

RELEASES = ("0.19.2", "1.0.4", "2.0.1", "4.0.2", "8.0.1", "14.0.2")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: its title, its number in the ledger, a program up to the fault, the value to look at, and the right one."""

    title: str
    ledger: str
    program: str
    value: str
    right: str


FAULTS = (
    Fault(
        "A compaction after one with `defer_index_remap=True`, and another commit: a BTREE loses its rows.",
        "F-702",
        """ds = lance.write_dataset(pa.table({"id": range(400)}), "t", max_rows_per_file=100)
ds.create_scalar_index("id", "BTREE")
ds.optimize.compact_files(target_rows_per_fragment=200, defer_index_remap=True)
ds = lance.write_dataset(pa.table({"id": range(400, 500)}), "t", mode="append")
ds.optimize.compact_files(target_rows_per_fragment=1000)""",
        'lance.dataset("t").count_rows("id < 400")',
        "400",
    ),
    Fault(
        "A column in which a struct around a list is NULL in some pages only: no read of all rows.",
        "F-686",
        """from lance.file import LanceFileReader, LanceFileWriter
kind = pa.struct([("l", pa.list_(pa.int64()))])
schema = pa.schema([("s", kind)])
values = [{"l": [n, n + 1]} if n < 500 or n % 7 else None for n in range(1000)]
with LanceFileWriter("f.lance", schema, data_cache_bytes=0, version="2.1") as writer:
    for start in range(0, 1000, 100):
        part = pa.array(values[start : start + 100], kind)
        writer.write_batch(pa.record_batch([part], schema=schema))""",
        'LanceFileReader("f.lance").read_all().to_table()["s"].to_pylist() == values',
        "True",
    ),
    Fault(
        "The key of a map is dropped: the call succeeds, and the column cannot be read any more.",
        "compat.md",
        """kind = pa.map_(pa.string(), pa.int32())
ds = lance.write_dataset(pa.table({"id": [1], "m": pa.array([[("a", 1)]], kind)}), "t", data_storage_version="2.2")
ds.drop_columns(["m.entries.key"])""",
        'lance.dataset("t").to_table().num_rows',
        "1",
    ),
    Fault(
        "The type of a field in a struct is changed, in files of 2.0: the table cannot be read any more.",
        "compat.md",
        """rows = pa.table({"s": pa.array([{"a": 1, "b": 2}], pa.struct([("a", pa.int32()), ("b", pa.int32())]))})
ds = lance.write_dataset(rows, "t", data_storage_version="2.0")
ds.alter_columns({"path": "s.a", "data_type": pa.int64()})""",
        'lance.dataset("t").to_table().to_pylist()',
        "[{'s': {'a': 1, 'b': 2}}]",
    ),
    Fault(
        "A fixed-size list of structs beside another column: not read.",
        "F-411",
        """kind = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.int32())]), 2)
values = pa.array([[{"a": 1, "b": 2}, {"a": 3, "b": 4}]] * 3, kind)
lance.write_dataset(pa.table({"id": [1, 2, 3], "f": values}), "t", data_storage_version="2.2")""",
        'lance.dataset("t").to_table()["f"].to_pylist()[2][1]["b"]',
        "4",
    ),
    Fault(
        "`IndicesBuilder.shuffle_transformed_vectors`: the rows after the last multiple of 1024 are lost.",
        "F-615",
        """import os
import numpy as np
from lance.indices import IndicesBuilder
vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(1500 * 8, np.float32)), 8)
ds = lance.write_dataset(pa.table({"id": range(1500), "v": vectors}), "t")
builder = IndicesBuilder(ds, "v")
ivf = builder.train_ivf(num_partitions=2, sample_rate=16)
pq = builder.train_pq(ivf, num_subvectors=2, sample_rate=4)
builder.transform_vectors(ivf, pq, os.path.abspath("codes"))
files = builder.shuffle_transformed_vectors(["codes"], os.getcwd(), ivf, "runs")
builder.load_shuffled_vectors(files, os.getcwd(), ivf, pq)""",
        'lance.dataset("t").to_table(columns=["id"], nearest={"column": "v", "q": [0.0] * 8, "k": 1500, "nprobes": 2}).num_rows',
        "1500",
    ),
)

HEAD = f"""Each program ran in pylance {", ".join(RELEASES)} when this page was made, and in Pennon under
pylance's name, which has to give the right value, or to refuse the call. A release that cannot run a program (no such file version, no such call) is left out."""
RUNNER = """import sys
import pyarrow as pa
if sys.argv[1] == "pennon":
    import pennon
    pennon.install_as_lance()
import lance
program, value, right = sys.argv[2:]
names = {"pa": pa, "lance": lance}
try:
    exec(program, names)
except BaseException as error:
    print("cannot", type(error).__name__, str(error)[:100].replace(chr(10), " "))
    sys.exit()
try:
    found = eval(value, names)
except BaseException as error:
    print("fault", type(error).__name__)
else:
    print("right" if repr(found) == right else "fault " + repr(found)[:60])
"""


def outcome(python: str, fault: Fault, library: str = "lance") -> str:
    """Run a fault's program in an interpreter: ``right``, ``fault`` with what came, or ``cannot``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-c", RUNNER, library, fault.program, fault.value, fault.right]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
    return done.stdout.strip() or "fault: the process ended"


def parts(interpreter: Callable[[str], str]) -> list[str]:
    """Return the part of the page: each fault with its program, and the releases that have it."""
    found = [
        "## Faults found in other releases",
        HEAD,
    ]
    for number, fault in enumerate(FAULTS, 1):
        with ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda r, fault=fault: outcome(interpreter(r), fault), RELEASES))
        results = dict(zip(RELEASES, runs, strict=True))
        faulty = [
            f"{release} ({result.removeprefix('fault').strip(' :') or 'fault'})"
            for release, result in results.items()
            if result.startswith("fault")
        ]
        ours = outcome(sys.executable, fault, "pennon")
        if not ours.startswith(("right", "cannot")):
            message = f"Pennon has the fault, too: {fault.title}: {ours}"
            raise ValueError(message)
        right = [release for release, result in results.items() if result == "right"]
        source = (
            "[compat.md](compat.md#different-on-purpose)"
            if fault.ledger == "compat.md"
            else f"ledger [{fault.ledger}](format.md)"
        )
        found += [
            f"### {number}. {fault.title}",
            f"Right: `{fault.right}`. Faulty: {', '.join(faulty) or 'none'}. Right in: {', '.join(right) or 'none'}. Source: {source}.",
            f"```text\nimport lance, pyarrow as pa\n\n{fault.program}\nprint({fault.value})\n```",
        ]
    return found
