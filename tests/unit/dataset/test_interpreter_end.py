"""A table that is used in a `__del__` after the end of the interpreter's imports."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import pennon

PROGRAM = """
import atexit, builtins, sys
import pyarrow as pa
import pennon

uri, where = sys.argv[1:]
ds = pennon.dataset(uri)
batch = pa.table({"a": [9]})
scanner = ds.scanner(columns=["a"])
append = pennon.LanceOperation.Append([])

class Last:
    def __init__(self, name, act):
        self.name, self.act = name, act

    def __del__(self):
        try:
            self.act()
        except pennon.errors.LanceError as error:
            print(self.name, type(error).__name__, "atexit" in str(error))
        except BaseException as error:
            print(self.name, repr(error))

acts = [
    Last("open", lambda: pennon.dataset(uri)),
    Last("write", lambda: pennon.write_dataset(batch, uri, mode="append")),
    Last("commit", lambda: pennon.LanceDataset.commit(uri, append, read_version=1)),
    Last("delete", lambda: ds.delete("a = 1")),
    Last("scan", ds.to_table),
    Last("take", lambda: ds.take([0])),
    Last("count", lambda: ds.count_rows("a > 1")),
    Last("scanner", scanner.to_table),
    Last("fragment", ds.get_fragments()[0].to_table),
]
if where == "kept":
    builtins.kept = acts
    del acts
atexit.register(lambda: ds.delete("a = 3"))
"""


def test_table_used_at_interpreter_end_raises_typed_error(tmp_path: Path) -> None:
    """It was an ImportError of whatever came first (`Last` in a module), and worked where all had been imported."""
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(pa.table({"a": [1, 2, 3]}), uri)
    for where in ("module", "kept"):
        run = [sys.executable, "-c", PROGRAM, uri, where]
        done = subprocess.run(run, check=True, timeout=60, capture_output=True, text=True)
        names = [
            "open",
            "write",
            "commit",
            "delete",
            "scan",
            "take",
            "count",
            "scanner",
            "fragment",
        ]
        assert sorted(done.stdout.splitlines()) == sorted(
            f"{n} InterpreterEndError True" for n in names
        )
        assert not done.stderr
    assert pennon.dataset(uri).to_table()["a"].to_pylist() == [1, 2]
    assert pennon.dataset(uri).version == 3
