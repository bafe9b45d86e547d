"""Hooks of mkdocs: pages from outside of docs/, a navigation that waits for pages to come, and links between both.

Pages link to each other as files of the repository, so that links work there, too.  `CONTRIBUTING.md` and the tables of
measurements become pages of the site, and a link to a file that is no page becomes its text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    **{
        f"bench/tables/{each.name}": f"measurements/{each.name}"
        for each in sorted((ROOT / "bench/tables").glob("*.md"))
    },
}
"""Files of the repository that are pages of the site, and their places there."""
ALIASES = {"README.md": "index.md", "docs/decisions": "decisions/index.md"}
"""Targets of links that other pages of the site stand for."""
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\]|`[^`]*`)*)\]\(([^)#\s:]*)(#[^)\s]*)?\)")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
INSIDE = re.compile(r"measurements/|decisions/|contributing|changelog|format\.md|delta\.md")
"""Pages that a search lists behind the guides."""
SOURCES = {site: source for source, site in OUTSIDE.items()}


def on_config(config: Any) -> Any:
    """Complete the navigation by the lists of decisions and measurements."""
    config.nav = _entries(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside of docs/, and the list of decisions."""
    for source, site in OUTSIDE.items():
        path = ROOT / source
        if path.is_file():
            files.append(File.generated(config, site, content=path.read_text(encoding="utf-8")))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, **_rest: Any) -> str:
    """Let links name pages of the site; a link to a file that is no page becomes its text."""
    site = page.file.src_uri
    source = SOURCES.get(site, DOCS + site)
    if INSIDE.match(site):
        page.meta["search"] = {"boost": 0.2}

    def moved(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if not target:
            return match[0]
        found = _site_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
        if found is None:
            return text
        return f"[{text}]({posixpath.relpath(found, posixpath.dirname(site) or '.')}{anchor})"

    return "".join(
        part if part.startswith("```") else LINK.sub(moved, part) for part in FENCE.split(markdown)
    )


def _site_path(path: str) -> str | None:
    """Return the page of the site for a path in the repository; None if there is none."""
    if path in ALIASES:
        return ALIASES[path]
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)  # mkdocs warns if it does not exist
    if (ROOT / path).exists():
        return None
    raise PluginError(f"a link leads to {path}, which does not exist")


def _entries(nav: list[Any]) -> list[Any]:
    """Return a part of the navigation with its lists made."""
    found: list[Any] = []
    for entry in nav:
        title, target = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(target, list):
            found.append({title: _entries(target)})
        elif target == "DECISIONS":
            pages = [f"decisions/{each.name}" for each in _decision_files()]
            found.append({title: ["decisions/index.md", *pages]})
        elif target == "MEASUREMENTS":
            found.append(
                {title: [each for each in OUTSIDE.values() if each.startswith("measurements/")]}
            )
        else:
            found.append(entry)
    return found


def _decision_files() -> list[Path]:
    return sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))


def _decisions() -> str:
    """Return the page that lists all decisions by their titles."""
    lines = [
        "# Decisions",
        "",
        "Choices that were not obvious, each with its reasons and with what would change it.",
        "",
    ]
    for path in _decision_files():
        title = TITLE.search(path.read_text(encoding="utf-8"))
        lines.append(f"- [{title[1] if title else path.stem}]({path.name})")
    return "\n".join(lines) + "\n"
