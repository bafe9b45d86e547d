"""The website of the documents: built without warnings, its links checked, words of users found by its search."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pennon.names
from tests.documents import ROOT

PYTHON = ROOT / ".venv-docs" / "bin" / "python"
SCRIPTS = ROOT / "scripts" / "website"


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"website_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _site(folder: Path, body: str, words: str) -> Path:
    """Write a site of two pages, whose search index has some words."""
    (folder / "search").mkdir(parents=True)
    (folder / "index.html").write_text(f"<html><body>{body}</body></html>")
    (folder / "other.html").write_text('<h2 id="part">Part</h2>')
    index = {"docs": [{"location": "other.html#part", "title": "Part", "text": words}]}
    (folder / "search" / "search_index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture(scope="module")
def check() -> Any:
    return _script("check")


def test_links_of_a_whole_site_are_counted_and_right(tmp_path: Path, check: Any) -> None:
    site = _site(
        tmp_path,
        '<a href="other.html#part">b</a><a href="https://x.y/">out</a>',
        " ".join(check.WORDS),
    )
    report = check.check_site(site)
    assert (report.pages, report.links, report.faults) == (2, 1, [])


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="gone.html">a</a>', "the link gone.html leads nowhere"),
        ('<a href="other.html#gone">a</a>', "the link other.html#gone has no anchor there"),
        ('<a href="#gone">a</a>', "the link #gone has no anchor there"),
        ('<img src="gone.png">', "gone.png does not exist"),
        ('<script src="//cdn.x/y.js"></script>', "a browser loads //cdn.x/y.js from outside"),
        (
            '<link rel="stylesheet" href="https://x.y/z.css">',
            "loads https://x.y/z.css from outside",
        ),
    ],
)
def test_faults_of_a_page_name_page_and_link(
    tmp_path: Path, check: Any, body: str, fault: str
) -> None:
    report = check.check_site(_site(tmp_path, body, " ".join(check.WORDS)))
    (found,) = report.faults
    assert found.startswith("index.html: ")
    assert fault in found


def test_style_sheets_load_no_address_from_outside(tmp_path: Path, check: Any) -> None:
    site = _site(tmp_path, "", " ".join(check.WORDS))
    (site / "a.css").write_text("@import 'https://x.y/z.css'; a { background: url(b.png) }")
    assert check.check_site(site).faults == ["a.css: a browser loads an address from outside"]


def test_words_that_the_search_lacks_are_faults(tmp_path: Path, check: Any) -> None:
    report = check.check_site(_site(tmp_path, "", "merge, time travel"))
    assert "the search does not find 'exactly once'" in report.faults
    assert "the search does not find 'merge'" not in report.faults


def test_examples_of_docstrings_become_code_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    griffe = ModuleType("griffe")
    griffe.__dict__.update(Extension=object, Object=object)
    monkeypatch.setitem(sys.modules, "griffe", griffe)  # it is in the environment of the site only
    fenced = _script("docstrings").fenced
    text = "Add.\n\n>>> 1 + 1\n2\n\nMore."
    assert fenced(text) == "Add.\n\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert fenced("No example.") == "No example."


def test_each_page_of_the_documents_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    named = set(re.findall(r"([\w./-]+\.md)$", navigation, re.MULTILINE))
    docs = ROOT / "docs"
    pages = {each.relative_to(docs).as_posix() for each in docs.rglob("*.md")}
    assert {each for each in pages if not each.startswith("decisions/")} <= named


def test_scripts_named_by_the_makefile_exist() -> None:
    named = re.findall(r"scripts/[\w/]+\.(?:py|sh)", (ROOT / "Makefile").read_text())
    assert "scripts/website/build.py" in named
    assert [each for each in named if not (ROOT / each).exists()] == []


def test_each_public_name_is_in_the_reference() -> None:
    pages = "".join(each.read_text() for each in (ROOT / "docs" / "api").glob("*.md"))
    named = set(re.findall(r"^::: (\S+)$", pages, re.MULTILINE))
    public = {f"{home}.{name}" for name, home in pennon.names.HOMES.items()}
    assert public <= named


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_broken_links_and_finds_the_words_of_users(
    check: Any,
) -> None:
    assert PYTHON.exists(), "run scripts/setup.sh docs first"
    command = [str(PYTHON), str(SCRIPTS / "build.py")]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert re.search(r"\d+ pages, [\d,]+ links checked, 0 faults, 0 warnings", built.stdout)
    for words in ("merge", "time travel", "nearest neighbours", "exactly once"):
        assert check.found_by_search(ROOT / "build" / "site", words), words
