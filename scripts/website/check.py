"""Check a built website: each link leads to a page and an anchor of it, nothing is loaded from outside, words are found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

WORDS = (
    "merge",
    "time travel",
    "nearest neighbours",
    "exactly once",
    "upsert",
    "vacuum",
    "schema evolution",
    "ANN",
    "embedding",
)
"""Users' words, which the search must find."""
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
"""Elements that a browser loads, and the attribute that names the address."""
CSS_ADDRESS = re.compile(r"url\(\s*['\"]?(?:https?:)?//|@import\s+['\"](?:https?:)?//")


@dataclass(slots=True)
class Report:
    """The numbers of pages and of links that were checked, and the faults found."""

    pages: int = 0
    links: int = 0
    faults: list[str] = field(default_factory=list)


class Page(HTMLParser):
    """The links, the anchors and the loaded addresses of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, loads, or is called."""
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and "canonical" not in found.get("rel", ""):
            self.loaded.append(found.get("href", ""))
        elif tag in LOADED and LOADED[tag] in found:
            self.loaded.append(found[LOADED[tag]])


def check_site(site: Path) -> Report:
    """Check all pages and style sheets below a folder."""
    pages = {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }
    report = Report(len(pages))
    for name, page in pages.items():
        base = site if name == "404.html" else (site / name).parent
        for link in page.links:
            _check_link(report, site, pages, name, base, link)
        for address in page.loaded:
            report.links += 1
            parts = urlsplit(address)
            if parts.netloc or parts.scheme not in {"", "data"}:
                report.faults.append(f"{name}: a browser loads {address} from outside")
            elif not parts.scheme and not _file(site, base, parts.path).exists():
                report.faults.append(f"{name}: {address} does not exist")
    for path in site.rglob("*.css"):
        if CSS_ADDRESS.search(path.read_text(encoding="utf-8")):
            report.faults.append(
                f"{path.relative_to(site)}: a browser loads an address from outside"
            )
    report.faults += [
        f"the search does not find {word!r}" for word in WORDS if not found_by_search(site, word)
    ]
    return report


def found_by_search(site: Path, words: str) -> list[str]:
    """Return the places of the search index that have words, those of titles first."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    pattern = re.compile(rf"\b{re.escape(words)}\b", re.IGNORECASE)
    titles = [each["location"] for each in index["docs"] if pattern.search(each["title"])]
    texts = [each["location"] for each in index["docs"] if pattern.search(each["text"])]
    return list(dict.fromkeys(titles + texts))


def _file(site: Path, base: Path, path: str) -> Path:
    return site / unquote(path).lstrip("/") if path.startswith("/") else base / unquote(path)


def _check_link(
    report: Report, site: Path, pages: dict[str, Page], name: str, base: Path, link: str
) -> None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return  # the reader decides whether to leave the site
    report.links += 1
    target = _file(site, base, parts.path).resolve() if parts.path else (site / name)
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        report.faults.append(f"{name}: the link {link} leads nowhere")
        return
    if parts.fragment and target.suffix == ".html":
        page = pages[target.resolve().relative_to(site.resolve()).as_posix()]
        if unquote(parts.fragment) not in page.anchors:
            report.faults.append(f"{name}: the link {link} has no anchor there")
