"""The page as one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import pennon
from pennon.cli.main import app
from pennon.view.export import page
from pennon.view.server import FILES, read_file
from tests.unit.view import tables
from tests.unit.view.conftest import Client


def test_view_html_writes_one_file_with_the_parts_of_the_page(
    gallery: Client, tmp_path: Path
) -> None:
    out = tmp_path / "out.html"
    done = CliRunner().invoke(app, ["view", gallery.server.viewed.uri, "--html", str(out)])
    assert done.exit_code == 0, done.output
    assert "written to" in done.output
    answers = answers_of(out.read_text())
    assert answers["/api/table|version=" + str(answers["version"])] == gallery.load("/api/table")
    assert {key.split("|")[0] for key in answers if key != "version"} == {
        "/api/table", "/api/columns", "/api/health", "/api/strip", "/api/rows", "/api/grid", "/api/versions", "/api/difference",
        "/api/pages", "/api/cell", "/api/media",
    }  # fmt: skip


def test_policy_of_the_file_has_hashes_of_script_and_style_and_no_address(
    gallery: Client,
) -> None:
    text = page(gallery.server.viewed.dataset)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for kind, part in (("script", script), ("style", style)):
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert not re.search(r"connect-src|unsafe|http", policy[1])
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert not re.search(r"^(?:import|export) ", script, re.MULTILINE)


def test_hostile_table_ends_no_element_of_the_file(tmp_path: Path) -> None:
    text = page(tables.hostile(str(tmp_path / "t")))
    assert text.count("<script") == 2
    assert text.count("</script") == 2
    assert text.count("<svg") == 0
    assert tables.SCRIPT in json.dumps(answers_of(text))
    assert "\u202e" not in text


def test_file_of_an_empty_table_has_all_parts(tmp_path: Path) -> None:
    ds = pennon.write_dataset([{"id": 1}], str(tmp_path / "t"))
    ds.delete("id = 1")
    answers = answers_of(page(ds))
    assert answers["/api/rows|limit=25|version=2"]["rows"] == []
    assert answers["/api/grid|limit=40|version=2"]["fragments"] == []


def test_scripts_import_only_those_before_them_and_share_no_name() -> None:
    names = [name for name in FILES if name.endswith(".js")]
    defined: set[str] = set()
    for number, name in enumerate(names):
        text = read_file(name).decode()
        for source in re.findall(r'^import .* from "\./(.*)";$', text, re.MULTILINE):
            assert source in names[:number], (name, source)
        mine = re.findall(
            r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE
        )
        assert not defined & set(mine), name
        defined |= set(mine)


def test_scripts_use_no_markup_from_text() -> None:
    for name in FILES:
        if name.endswith(".js"):
            text = read_file(name).decode()
            assert not re.search(
                r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|setTimeout\(\s*[\"']",
                text,
            )


def answers_of(text: str) -> Any:
    (held,) = re.findall(
        r'<script type="application/json" id="answers">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(held)
