"""``--json`` of every command, validated against the committed schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import jsonschema
import pyarrow as pa
import pytest

import pennon
from pennon.cli.main import COMMANDS, app
from tests.unit.cli.commands import SCHEMAS, done, from_json, run

PRINT_NO_JSON = {"completion", "view"}
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "text": ["a red fox", None, "a blue whale"],
        "vec": pa.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]], pa.list_(pa.float32(), 2)),
        "data": pa.array([b"\x00\xff", b"", None], pa.binary()),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(ROWS, uri, max_rows_per_file=2)
    return uri


def commands() -> Iterator[str]:
    context = click.Context(app)
    for name in COMMANDS:
        command = app.get_command(context, name)
        if isinstance(command, click.Group):
            yield from (f"{name} {inner}" for inner in command.commands)
        else:
            yield name


def test_the_schema_is_one_and_has_every_command() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMAS)
    shared = {"rows", "field", "value"}
    assert set(SCHEMAS["$defs"]) - shared == set(commands()) - PRINT_NO_JSON


def test_json_is_an_option_of_every_command() -> None:
    context = click.Context(app)
    for name in set(commands()) - PRINT_NO_JSON:
        command = app
        for word in name.split():
            found = command.get_command(context, word)
            assert found is not None
            command = found  # type: ignore[assignment]
        assert any("--json" in each.opts for each in command.params), name


def test_list_of_commands_has_the_first_line_of_each_help() -> None:
    context = click.Context(app)
    for name, place in COMMANDS.items():
        command = app.get_command(context, name)
        assert command is not None
        first = (command.help or "").partition("\n")[0].rstrip(".")
        assert place.help.rstrip(".") == first, name
    listed = done("--help")
    assert all(f"  {name} " in listed for name in COMMANDS)


def test_json_of_commands_that_look_at_a_table(table: str) -> None:
    pennon.dataset(table).delete("id = 2")
    assert from_json("info", table)["rows"] == 2
    columns = from_json("schema", table)["columns"]
    assert [each["name"] for each in columns] == ROWS.schema.names
    assert from_json("count", table, "--where", "id > 1")["rows"] == 1
    stats = from_json("stats", table, "--values")
    assert (stats["columns"][0]["min"], stats["columns"][0]["max"]) == (1, 3)
    assert "min" not in from_json("stats", table)["columns"][0]
    fragments = from_json("fragments", table)
    assert [(each["rows"], each["deleted_rows"]) for each in fragments] == [(1, 1), (1, 0)]
    assert fragments[0]["deletion_file"].startswith("_deletions/0-1-")
    assert [each["rows"] for each in from_json("versions", table)] == [3, 2]
    history = from_json("history", table)
    assert [each["operation"] for each in history] == ["delete", "overwrite"]
    assert len(from_json("history", table, "-n", "1")) == 1
    file = next((Path(table) / "data").iterdir())
    assert from_json("inspect", str(file))["file_version"] == "2.1"
    assert "pages" not in from_json("inspect", str(file), "--no-pages", "--no-ranges")


def test_json_of_rows_is_an_array_of_objects(table: str) -> None:
    first = {"id": 1, "text": "a red fox", "vec": [0.0, 1.0], "data": "AP8="}
    assert from_json("head", table, "-n", "1") == [first]
    assert from_json("tail", table, "-n", "1", "-c", "id") == [{"id": 3}]
    assert len(from_json("sample", table, "-n", "2")) == 2
    assert from_json("head", table, "-n", "0") == []


def test_json_of_tags_branches_and_restore(table: str) -> None:
    assert from_json("tags create", table, "first")["version"] == 1
    assert from_json("branches create", table, "trial")["version"] == 1
    assert from_json("tags move", table, "first", "--at", "trial")["branch"] == "trial"
    assert [each["name"] for each in from_json("tags list", table)] == ["first"]
    assert [each["parent_version"] for each in from_json("branches list", table)] == [1]
    assert from_json("tags delete", table, "first")["action"] == "deleted"
    assert from_json("branches delete", table, "trial")["action"] == "deleted"
    assert from_json("restore", table, "--at", "1")["restored_version"] == 1


def test_json_of_indices_and_search(table: str) -> None:
    assert from_json("index create", table, "id", "--kind", "btree")["name"] == "id_idx"
    from_json("index create", table, "text", "--kind", "FTS")
    assert [each["kind"] for each in from_json("index list", table)] == ["BTree", "Inverted"]
    assert [each["id"] for each in from_json("search", table, "whale")] == [3]
    assert from_json("index optimize", table)["action"] == "unchanged"
    pennon.write_dataset(ROWS, table, mode="append")
    assert from_json("index list", table)[0]["unindexed_rows"] == 3
    assert from_json("index optimize", table, "--name", "id_idx")["action"] == "optimized"
    assert [each["unindexed_rows"] for each in from_json("index list", table)] == [0, 3]
    assert from_json("index drop", table, "id_idx")["action"] == "dropped"


def test_json_of_commands_that_write_files(table: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.csv")
    assert from_json("export", table, out)["format"] == "csv"
    assert from_json("ingest", out, str(tmp_path / "u.lance"))["rows"] == 3
    cell = from_json("blob", table, "data", "--row", "0", "-o", str(tmp_path / "cell"))
    assert cell["size_bytes"] == 2
    assert (tmp_path / "cell").read_bytes() == b"\x00\xff"


def test_json_of_compact_clean_and_convert(table: str) -> None:
    assert from_json("compact", table)["fragments_removed"] == 2
    listed = from_json("clean", table, "--retain", "1")
    assert (listed["deleted"], listed["old_versions"]) == (False, 2)
    assert {each["kind"] for each in listed["files"]} >= {"data", "manifest"}
    assert from_json("clean", table, "--retain", "1", "--delete")["old_versions"] == 2
    assert from_json("convert", table, "--to", "2.2")["file_version"] == "2.2"


def test_json_stays_json_where_stdout_has_no_unicode(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    pennon.write_dataset(pa.table({"é\x1b": ["ü\x9b\x7f"]}), uri)
    command = [sys.executable, "-m", "pennon.cli.main", "head", uri, "--json"]
    shown = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    ).stdout
    assert shown.isascii()
    assert b"\x1b" not in shown
    assert b"\x7f" not in shown
    assert run("head", uri, "--json").stdout.count("\\u001b") == 1


def test_json_of_doctor_has_findings_or_steps_of_a_repair(table: str) -> None:
    assert from_json("doctor", table, "--deep")["is_sound"]
    pennon.dataset(table).tags.create("first", 1)
    assert from_json("doctor", table, "--at", "first")["version"] == 1
    path = pennon.dataset(table).get_fragments()[0].data_files()[0].path
    Path(table, "data", path).unlink()
    shown = json.loads(run("doctor", table, "--json").stdout)
    jsonschema.validate(shown, {**SCHEMAS, "$ref": "#/$defs/doctor"})
    assert shown["errors"] == 1
    made = from_json("doctor", table, "--repair", "--apply")
    assert (made["rows_lost"], made["version_made"]) == (2, 2)


def test_json_of_verify_has_a_verdict_on_each_column(table: str) -> None:
    pennon.dataset(table).delete("id = 2")
    found = from_json("verify", table, "--against", "pylance")
    assert (found["equal"], found["version"]) == (True, 2)
    assert {each["verdict"] for each in found["columns"].values()} == {"same"}
    pennon.dataset(table).create_branch("trial", 1)
    assert from_json("verify", table, "--against", "pylance", "--at", "trial")["equal"]
