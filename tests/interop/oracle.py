"""Other releases of Lance to compare with, each in an interpreter and a process of its own.

    with Oracle.start("0.19.2", folder) as oracle:
        oracle.write("/tmp/x", table, data_storage_version="2.0")
        table = oracle.scan("/tmp/x", columns=["a"])

A process of its own also for the newest release: it must not share our process, because its threads
do not survive a fork.  Several calls go in one round trip with `Oracle.run`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

_REPOSITORY = Path(__file__).parents[2]
NEWEST = "14.0.2"
MIDDLE = "1.0.4"
OLDEST = "0.19.2"

Call = dict[str, Any]


class OracleError(Exception):
    """The oracle refused a call, or failed; ``kind`` is the name of its error class."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


def interpreter(release: str) -> str:
    """Return the Python that has this release of the oracle installed."""
    if release == NEWEST:
        return sys.executable
    default = _REPOSITORY / f".venv-oracle-{release}" / "bin" / "python"
    return os.environ.get(f"PENNON_ORACLE_{release.replace('.', '_')}", str(default))


@dataclass(slots=True)
class Oracle:
    """A running oracle, and the folder through which tables travel."""

    release: str
    folder: Path
    process: subprocess.Popen[str]
    _files: int = field(default=0)

    @classmethod
    def start(cls, release: str, folder: Path, module: str | None = None) -> Self:
        """Start the release's interpreter; ``folder`` must exist and be private to this oracle.

        ``module``: what it runs instead of ``oracle_server.py``, a module that knows more calls.
        """
        server = [str(Path(__file__).with_name("oracle_server.py"))]
        command = [interpreter(release), *(server if module is None else ["-m", module])]
        path = "" if module is None else str(_REPOSITORY)
        quiet = {**os.environ, "RUST_BACKTRACE": "0", "PYTHONPATH": path}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr.txt").open("w"),
            text=True,
            env=quiet,
        )
        return cls(release, folder, process)

    def __enter__(self) -> Self:
        """Return the oracle itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the process end."""
        self.close()

    def close(self) -> None:
        """End the process: it stops when its input does."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def run(self, calls: Sequence[Call]) -> list[Any]:
        """Run calls in order and return their values: tables where a call names ``out``.

        A call that fails has an `OracleError` as its value, so that the others are not lost.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        sent = [self._sendable(call) for call in calls]
        self.process.stdin.write(json.dumps(sent) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise OracleError("Died", (self.folder / "stderr.txt").read_text()[-2000:])
        return [self._value(*pair) for pair in zip(sent, json.loads(line), strict=True)]

    def call(self, op: str, **arguments: Any) -> Any:
        """Run one call; raises OracleError if it fails."""
        (value,) = self.run([{"op": op, **arguments}])
        if isinstance(value, OracleError):
            raise value
        return value

    def write(self, uri: str | Path, table: pa.Table, **options: Any) -> Any:
        """Write a table as a dataset and return the version."""
        return self.call("write", uri=str(uri), table=table, **options)

    def scan(self, uri: str | Path, **options: Any) -> pa.Table:
        """Scan a dataset."""
        return self.call("scan", uri=str(uri), out=True, **options)

    def take(
        self, uri: str | Path, indices: Sequence[int], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Take rows by number."""
        given = {"indices": list(indices), "columns": columns}
        return self.call("take", uri=str(uri), out=True, **given)

    def _sendable(self, call: Call) -> Call:
        """Return a call with its table written to a file, and a file named for the answer."""
        sent = dict(call)
        if isinstance(sent.get("table"), pa.Table):
            sent["table"] = self._next_file()
            _write_stream(call["table"], sent["table"])
        if sent.get("out") is True:
            sent["out"] = self._next_file()
        return sent

    def _next_file(self) -> str:
        self._files += 1
        return str(self.folder / f"{self._files}.arrow")

    def _value(self, call: Call, answer: dict[str, Any]) -> Any:
        """Return the value of one answer, its table read and the files of the call removed."""
        try:
            if "error" in answer:
                return OracleError(answer["error"], answer["message"])
            return _read_stream(call["out"]) if "out" in call else answer["value"]
        finally:
            for key in ("table", "out"):
                if key in call:
                    Path(call[key]).unlink(missing_ok=True)


def _write_stream(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def _read_stream(path: str) -> pa.Table:
    with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
        return reader.read_all()
