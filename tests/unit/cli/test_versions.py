"""``--at`` and ``--branch``: versions, tags, branches and times, in commands that read and that write."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, LanceError, NotFoundError
from tests.unit.cli.commands import done, from_json, run

VECTOR = pa.list_(pa.float32(), 2)


def rows(*numbers: int) -> pa.Table:
    vectors = pa.array([[float(n), 0.0] for n in numbers], VECTOR)
    return pa.table({"n": numbers, "word": [f"word{n}" for n in numbers], "vec": vectors})


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version 1 has row 1, version 2 rows 1 and 2; branch trial left at 1, and has row 3, too."""
    uri = str(tmp_path / "t.lance")
    ds = pennon.write_dataset(rows(1), uri)
    ds.tags.create("first")
    trial = ds.create_branch("trial")
    trial.insert(rows(3))
    ds.insert(rows(2))
    return uri


def numbers(uri: str, at: str) -> list[int]:
    return [each["n"] for each in from_json("head", uri, "-c", "n", "--at", at)]


def test_at_takes_versions_tags_branches_and_their_versions(table: str) -> None:
    assert numbers(table, "1") == [1]
    assert numbers(table, "2") == [1, 2]
    assert numbers(table, "first") == [1]
    assert numbers(table, "main") == [1, 2]
    assert numbers(table, "main:1") == [1]
    assert numbers(table, "trial") == [1, 3]
    assert numbers(table, "trial:latest") == [1, 3]
    assert numbers(table, "trial:1") == [1]


def test_at_takes_times_of_the_main_line_and_of_branches(table: str) -> None:
    made = pennon.dataset(table).versions()
    first = made[0]["timestamp"].isoformat()
    assert numbers(table, first) == [1]
    utc = datetime.fromisoformat(first).astimezone(UTC).isoformat()
    assert numbers(table, utc) == [1]
    assert numbers(table, "2999-01-01") == [1, 2]
    assert numbers(table, "trial:2999-01-01T00:00:00Z") == [1, 3]


def test_tag_precedes_branch_and_time_of_the_same_name(table: str) -> None:
    ds = pennon.dataset(table)
    ds.tags.create("trial", 2)
    ds.tags.create("2999-01-01", 1)
    assert numbers(table, "trial") == [1, 2]
    assert numbers(table, "trial:latest") == [1, 3]
    assert numbers(table, "2999-01-01") == [1]


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        ("9", NotFoundError),
        ("nix", NotFoundError),
        ("nix:1", NotFoundError),
        ("trial:9", NotFoundError),
        ("trial:soon", ArgumentError),
        ("trial:", ArgumentError),
        ("2024-13-45", ArgumentError),
        ("1999-01-01", NotFoundError),
        ("../../etc", NotFoundError),
        ("../x:1", NotFoundError),
        ("", NotFoundError),
        ("9" * 30, NotFoundError),
        ("²", NotFoundError),
    ],
)
def test_at_without_a_version_is_an_error(table: str, at: str, kind: type[LanceError]) -> None:
    assert isinstance(run("head", table, "--at", at).exception, kind)


def test_commands_that_read_take_a_branch(table: str, tmp_path: Path) -> None:
    assert from_json("info", table, "--at", "trial")["branch"] == "trial"
    assert from_json("count", table, "--at", "trial")["rows"] == 2
    assert [each["version"] for each in from_json("history", table, "--at", "trial")] == [2, 1]
    assert [each["version"] for each in from_json("versions", table, "--at", "trial:1")] == [1]
    assert len(from_json("fragments", table, "--at", "trial")) == 2
    assert from_json("stats", table, "--at", "trial", "--values")["columns"][0]["max"] == 3
    done("export", table, str(tmp_path / "x.csv"), "--at", "trial", "-c", "n")
    assert (tmp_path / "x.csv").read_text() == "n\n1\n3\n"
    done("blob", table, "word", "--row", "1", "--at", "trial", "-o", str(tmp_path / "b"))
    assert (tmp_path / "b").read_bytes() == b"word3"


def test_search_of_a_branch_uses_its_own_index(table: str) -> None:
    assert from_json("index create", table, "word", "--kind", "FTS", "--branch", "trial")[
        "branch"
    ] == ("trial")
    from_json("index create", table, "n", "--kind", "btree", "--branch", "trial")
    assert len(from_json("index list", table, "--at", "trial")) == 2
    assert from_json("index list", table) == []
    found = from_json("search", table, "word3", "--at", "trial", "-c", "n")
    assert [each["n"] for each in found] == [3]
    near = from_json("search", table, "--row", "1", "--at", "trial", "-n", "1", "-c", "n")
    assert near == [{"n": 3, "_distance": 0.0}]
    both = ("search", "word3", "--vector", "[1,0]", "--at", "trial", "-c", "n", "-n", "2")
    found = from_json(both[0], table, *both[1:])
    assert {each["n"] for each in found} == {1, 3}
    assert "_relevance_score" in found[0]
    assert "MatchQuery" in done("search", table, *both[1:], "--explain")
    filtered = from_json("search", table, "word3", "--at", "trial", "--where", "n < 3")
    assert filtered == []
    assert from_json("index optimize", table, "--branch", "trial")["branch"] == "trial"
    assert from_json("index drop", table, "n_idx", "--branch", "trial")["branch"] == "trial"


def test_commands_that_write_take_a_branch(table: str, tmp_path: Path) -> None:
    done("export", table, str(tmp_path / "one.arrow"), "-n", "1")
    written = from_json(
        "ingest", str(tmp_path / "one.arrow"), table, "--mode", "append", "--branch", "trial"
    )
    assert (written["branch"], written["rows"]) == ("trial", 3)
    assert from_json("compact", table, "--branch", "trial")["fragments_removed"] == 3
    assert from_json("count", table)["rows"] == 2
    restored = from_json("restore", table, "--at", "trial:1")
    assert (restored["branch"], restored["restored_version"]) == ("trial", 1)
    assert numbers(table, "trial") == [1]
    for words in (("compact", table, "--branch", "nix"), ("compact", table, "--branch", "first")):
        assert isinstance(run(*words).exception, NotFoundError)


def test_tags_and_branches_begin_at_a_version(table: str) -> None:
    from_json("tags create", table, "there", "--at", "trial:2")
    assert numbers(table, "there") == [1, 3]
    from_json("branches create", table, "of-trial", "--at", "trial")
    assert numbers(table, "of-trial") == [1, 3]
    listed = {each["name"]: each for each in from_json("branches list", table)}
    assert listed["of-trial"]["parent_branch"] == "trial"
    assert isinstance(run("branches", "delete", table, "trial").exception, LanceError)
