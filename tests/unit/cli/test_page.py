"""The examples of docs/command-line.md run, and the page has every command."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from pennon.cli.main import COMMANDS
from tests.documents import ROOT, blocks
from tests.unit.cli.commands import done

PAGE = ROOT / "docs" / "command-line.md"
WITH_SPARK = ("pennon diff ", "pennon ingest s3://")
"""Run by tests/spark, or without a bucket here."""


def examples() -> list[str]:
    return [line for block in blocks(PAGE, "sh") for line in block.text.splitlines()]


def test_the_page_has_an_example_of_every_command() -> None:
    shown = {shlex.split(line)[1] for line in examples()}
    assert shown == set(COMMANDS)


def test_the_page_names_every_command_in_its_table() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert all(any(f"`{name}`" in row for row in rows) for name in COMMANDS)


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["carrier,flight,dep_delay,remark", "UA,1,90,late crew", "UA,2,,", "B6,3,5,on time"]
    Path("flights.csv").write_text("\n".join(lines) + "\n")
    Path("more.json").write_text('{"flight": 4, "carrier": "AA", "dep_delay": 1, "remark": null}')
    Path("pictures").mkdir()
    Path("pictures/1.png").write_bytes(b"\x89PNG")
    Path("vectors.json").write_text('[{"id": 0, "vec": [1.0, 0]}, {"id": 1, "vec": [0.0, 1]}]')
    Path("query.json").write_text("[0.5, 0.5]")
    run = 0
    for line in examples():
        assert line.startswith("pennon "), line
        if line.startswith(WITH_SPARK):
            continue
        words = shlex.split(line, comments=True)[1:]
        if "*" in words[-1]:
            words = [*words[:-1], str(next(Path().glob(words[-1])))]
        done(*words)
        run += 1
    assert run > 35
    assert Path("late.csv").read_text() == 'carrier,flight\n"UA",1\n'
    assert Path("picture.png").read_bytes() == b"\x89PNG"
