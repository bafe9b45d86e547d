"""Output on a terminal: control characters are escaped, and cut columns are named."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import Breadcrumb, FormatError

EVIL = "a\x1b[2J\r\u202eb"
"""A name that clears the screen, goes back to the line's start, and turns what follows around."""
COMMAND = [sys.executable, "-m", "pennon.cli.main"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("terminal") / "evil\x1b[31m.lance")
    rows = pa.table({EVIL: ["é\x9b3Jx", "ü"], "n": [1, 2]})
    pennon.write_dataset(rows, uri)
    return uri


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *words], capture_output=True, check=False, env={**os.environ, **environment}
    )


def data_file(table: str) -> str:
    return str(next((Path(table) / "data").iterdir()))


@pytest.mark.parametrize("command", ["info", "head", "versions", "clean", "inspect"])
def test_control_characters_are_escaped_in_output(table: str, command: str) -> None:
    place = data_file(table) if command == "inspect" else table
    done = run(command, place, PYTHONIOENCODING="utf-8")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert all(line.isprintable() for line in shown.splitlines()), ascii(shown)
    if command in {"info", "head", "inspect"}:
        assert "a\\x1b[2J\\r\\u202eb" in shown


def test_control_characters_are_escaped_in_errors(table: str) -> None:
    broken = Path(table) / "data" / "x\x1b[2J.lance"
    broken.write_bytes(b"no data file at all, but of some length")
    try:
        for words in (
            ("inspect", str(broken)),
            ("head", table, "-c", "x\x9b1m"),
            ("info", "/\x1b[0m"),
        ):
            done = run(*words, PYTHONIOENCODING="utf-8")
            assert done.returncode == 1
            assert done.stderr.decode().rstrip("\n").isprintable(), done.stderr
    finally:
        broken.unlink()


def test_the_text_of_an_error_has_no_control_characters() -> None:
    error = FormatError("the column \x1b[2J\nlies", where=Breadcrumb(file="data/\x9b.lance"))
    assert str(error) == "the column \\x1b[2J\\nlies [file data/\\x9b.lance]"
    assert error.message == "the column \x1b[2J\nlies"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
@pytest.mark.parametrize("command", ["info", "head", "inspect"])
def test_a_terminal_may_lack_characters(table: str, command: str, encoding: str) -> None:
    place = data_file(table) if command == "inspect" else table
    done = run(command, place, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding)
    assert "----" in shown
    if command == "head":
        assert ("\\xfc" if encoding == "ascii" else "ü") in shown


def test_command_with_closed_pipe_ends_quietly(table: str) -> None:
    many = str(Path(table).parent / "many.lance")
    pennon.write_dataset(pa.table({"n": range(50_000)}), many)
    for words in (("head", many, "-n", "50000"), ("info", table)):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, check=False
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")


def on_a_terminal(columns: int, *words: str) -> str:
    """Return what a command shows on a terminal of some width."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen([*COMMAND, *words], stdout=its, env=environment)
    os.close(its)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
    os.close(ours)
    assert process.wait() == 0
    return shown.decode()


def test_head_names_columns_beyond_the_terminal_width(tmp_path: Path) -> None:
    uri = str(tmp_path / "wide.lance")
    pennon.write_dataset(pa.table({f"column_{n:02}": [n] for n in range(20)}), uri)
    lines = on_a_terminal(60, "head", uri).splitlines()
    assert all(len(line) <= 60 for line in lines[:3])
    assert lines[0].endswith("…")
    assert lines[3].startswith("(cut where the terminal ends: column_05, column_06, ")
    assert lines[3].endswith(" column_14 and 5 more; | less -S shows all)")
    assert "cut" not in on_a_terminal(400, "head", uri)


@pytest.mark.parametrize("format", ["table", "json", "jsonl", "csv"])
def test_rows_in_every_format_are_escaped_on_a_terminal(table: str, format: str) -> None:
    shown = on_a_terminal(400, "head", table, "--format", format)
    assert all(line.isprintable() for line in shown.splitlines()), ascii(shown)
    assert "\\u202e" in shown


@pytest.mark.parametrize(
    "words", [("schema",), ("stats", "--values"), ("fragments",), ("history",)]
)
def test_names_of_columns_are_escaped_by_commands_that_list(
    table: str, words: tuple[str, ...]
) -> None:
    for as_json in ([], ["--json"]):
        done = run(words[0], table, *words[1:], *as_json, PYTHONIOENCODING="utf-8")
        assert done.returncode == 0, done.stderr
        assert all(line.isprintable() for line in done.stdout.decode().splitlines())


def test_csv_in_a_pipe_has_the_values_as_they_are(table: str) -> None:
    shown = run("head", table, "-f", "csv", PYTHONIOENCODING="ascii").stdout.decode()
    assert EVIL.replace("\r", "\r") in shown
    assert "é\x9b3Jx" in shown


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_binary_rows_are_refused_by_a_terminal(table: str, format: str) -> None:
    ours, its = pty.openpty()
    command = [*COMMAND, "head", table, "--format", format]
    done = subprocess.run(command, stdout=its, stderr=subprocess.PIPE, check=False)
    os.close(its)
    os.close(ours)
    assert done.returncode == 1
    assert b"does not go to a terminal" in done.stderr


def test_usage_errors_are_one_line_and_exit_code_2(table: str) -> None:
    for words in (("nix\x1b[2J",), ("head",), ("head", table, "-n", "\x1b[2J"), ("index", "nix")):
        done = run(*words)
        assert done.returncode == 2
        assert done.stderr.startswith(b"pennon")
        assert done.stderr.decode().rstrip("\n").isprintable(), done.stderr


def test_binary_rows_to_a_closed_pipe_end_quietly(table: str) -> None:
    for format in ("arrow", "csv", "json"):
        reading, writing = os.pipe()
        os.close(reading)
        command = [*COMMAND, "head", table, "-f", format]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b""), format
