"""Log messages: what is logged, and how the environment and `set_logger` configure it."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.io.retry_reads import BrokenAnswerError, Patience
from pennon.log import LOGGER, get_log_level, set_logger

ROWS = pa.table({"id": [1, 2, 3]})
PROGRAM = "import pennon, pyarrow\npennon.write_dataset(pyarrow.table({'x': [1]}), 'memory://t')"


@pytest.fixture(autouse=True)
def same_handlers() -> Iterator[None]:
    """Take handlers away again that a test adds."""
    before, level = list(LOGGER.handlers), LOGGER.level
    yield
    LOGGER.handlers[:] = before
    LOGGER.setLevel(level)


def messages(caplog: pytest.LogCaptureFixture, logger: str) -> list[str]:
    """Return the messages of a logger, without the table."""
    found = [each for each in caplog.records if each.name == logger]
    return [each.getMessage().partition("t.lance: ")[2] for each in found]


def run(**environment: str) -> str:
    """Write a table in a process with these variables; return its error output."""
    path = {"PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=path, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_log_of_commits_names_table_version_and_operation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pennon.commit")
    pennon.write_dataset(ROWS, "memory://log-commit/t.lance")
    pennon.write_dataset(ROWS, "memory://log-commit/t.lance", mode="append")
    assert messages(caplog, "pennon.commit") == [
        "version 1 committed (Overwrite)",
        "version 2 committed (Append)",
    ]


def test_log_of_a_settled_conflict_names_the_versions_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    mine = pennon.write_dataset(ROWS, "memory://log-settled/t.lance")
    pennon.write_dataset(ROWS, "memory://log-settled/t.lance", mode="append")
    caplog.set_level(logging.INFO, "pennon.commit")
    mine.delete("id = 1")
    wanted = "Delete planned on version 1 has no conflict with versions 2 to 2"
    assert wanted in caplog.text


def test_log_of_a_repeated_operation_has_the_conflict(caplog: pytest.LogCaptureFixture) -> None:
    mine = pennon.write_dataset(ROWS, "memory://log-again/t.lance")
    pennon.dataset("memory://log-again/t.lance").update({"id": "7"}, where="id = 2")
    caplog.set_level(logging.INFO, "pennon.commit")
    mine.update({"id": "8"}, where="id = 2 or id = 3")
    assert "attempt 1 met a conflict, again: " in caplog.text


def test_log_of_a_read_sent_again_names_the_failure(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    answers: Iterator[object] = iter([BrokenAnswerError("lost after 7 bytes"), b"all"])

    def read() -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    caplog.set_level(logging.INFO, "pennon.io")
    assert Patience().wait_out(read) == b"all"
    assert re.search(r"read 1 broke off, again after 0\.\d s: lost after 7 bytes", caplog.text)


def test_log_of_maintenance_counts_fragments_files_and_indices(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.INFO, "pennon.maintenance")
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance")
    table = pennon.write_dataset(ROWS, tmp_path / "t.lance", mode="append")
    table.create_scalar_index("id", "BTREE")
    table.optimize.compact_files()
    table.insert(ROWS)
    table.optimize.optimize_indices()
    table.cleanup_old_versions(timedelta(0))
    found = messages(caplog, "pennon.maintenance")
    assert found[0] == "version 3 has a new index id_idx (BTREE)"
    assert found[1] == "version 5 has 1 fragments in the place of 2"
    assert found[2] == "version 7 has indices brought up to date: id_idx"
    assert re.match(r"clean-up at version 7 removed \d+ files of \d+ bytes \(6 manif", found[3])


def test_log_of_scans_is_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    table = pennon.write_dataset(ROWS, "memory://log-scan/t.lance")
    caplog.set_level(logging.INFO, "pennon.scan")
    table.to_table(columns=["id"])
    assert not messages(caplog, "pennon.scan")
    caplog.set_level(logging.DEBUG, "pennon.scan")
    table.to_table(columns=["id"])
    assert messages(caplog, "pennon.scan") == ["scan of version 1, columns ('id',)"]


@pytest.mark.parametrize(
    ("value", "level"),
    [
        ("debug", "DEBUG"),
        ("", "INFO"),
        ("trace", "DEBUG"),
        ("warn", "WARNING"),
        ("pennon.scan=debug,error", "ERROR"),
        ("no such level", "INFO"),
        ("info,debug", "INFO"),
    ],
)
def test_log_level_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, value: str, level: str
) -> None:
    monkeypatch.setenv("LANCE_LOG", value)
    assert get_log_level() == level


def test_log_goes_to_standard_error_with_lance_log_set() -> None:
    lines = run(LANCE_LOG="info", LANCE_LOG_TS_PRECISION="us").splitlines()
    assert len(lines) == 1
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    assert re.fullmatch(rf"\[{time} INFO pennon\.commit\] memory://t.*: version 1 .*", lines[0])
    assert run() == ""
    assert run(LANCE_LOG="error") == ""
    assert "version 1" in run(LANCE_LOG="error,pennon.commit=info")


def test_log_file_of_the_environment_is_made_with_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "nested" / "pennon.log"
    assert run(LANCE_LOG_FILE=str(file)) == ""
    assert "version 1 committed" in file.read_text()


def test_log_file_that_cannot_be_written_falls_back_to_standard_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines = run(LANCE_LOG_FILE=str(tmp_path / "file" / "below.log")).splitlines()
    assert lines[0].startswith("pennon: LANCE_LOG_FILE=")
    assert "version 1 committed" in lines[1]


def test_set_logger_adds_a_file_or_a_handler(tmp_path: Path) -> None:
    set_logger(str(tmp_path / "a.log"), level=logging.INFO, format_string="%(name)s: %(message)s")
    pennon.write_dataset(ROWS, "memory://log-file/t.lance")
    assert (tmp_path / "a.log").read_text().startswith("pennon.commit: memory://log-file")
    handler = logging.NullHandler()
    set_logger(name="pennon.io", level="DEBUG", log_handler=handler)
    assert handler in logging.getLogger("pennon.io").handlers
    logging.getLogger("pennon.io").removeHandler(handler)
