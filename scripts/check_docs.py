"""Check the documents: links, ledger numbers, named tests and named files exist; sentences begin with their subject."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import conflicts

LEDGER = Path("docs/format.md")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FACT = re.compile(r"^\| F-(\d+) \|", re.MULTILINE)
NAMED_FACT = re.compile(r"\b(?:ledger |ledger: )F-(\d+)")
NAMED_FILE = re.compile(r"`((?:[\w.]+/)+[\w.]+\.(?:py|pyx|pyi|md|sh|toml))`")
ROOTS = (Path(), Path("src"), Path("src/pennon"))
"""Where a path in a document may begin; a decision tells of its day, and its paths may be gone."""
TABLES = Path("bench/tables")
FIGURE = re.compile(r"\b\d+\.\d+\b")
BLOCK = re.compile(r"^```.*?^```$|^<!-- written by.*?<!-- end -->$", re.MULTILINE | re.DOTALL)
ITEM = re.compile(r"\n\s*\n|\n *(?:[-*#>]|\d+\.) ")
SENTENCE = re.compile(r"(?<=[.!?])[*)]* +(?=[*`A-Z])")
RIDDLE = re.compile(
    r"\**(Of|What|Whoever|Whatever|So many|Being|Nobody|Nothing|None of|No one)\b.*[^?]$"
)
"""A sentence whose subject comes late, or is a negation; a question may begin so."""
NAMED_TEST = re.compile(r"`(tests/[\w/.-]+?\.py)(?:::(\w+))?`")


def documents() -> list[Path]:
    """Return every document."""
    folders = (Path("docs"), TABLES)
    return [
        *sorted(Path().glob("*.md")),
        *(page for each in folders for page in sorted(each.rglob("*.md"))),
    ]


def anchors(document: Path) -> set[str]:
    """Return the anchors of the headings of a document."""
    headings = HEADING.findall(BLOCK.sub("", document.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def broken_links(document: Path) -> list[str]:
    """Return the relative links of a document to files and headings that do not exist."""
    found = []
    for name, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        target = document.parent / name if name else document
        if not target.exists():
            found.append(f"{document}: the link {name} leads nowhere")
        elif anchor and anchor not in anchors(target):
            found.append(f"{document}: {target} has no heading {anchor}")
    return found


def missing_files(document: Path) -> list[str]:
    """Return the files that a document names and that do not exist."""
    if document.parent.name == "decisions" or document == Path("CHANGELOG.md"):
        return []
    named = dict.fromkeys(NAMED_FILE.findall(document.read_text(encoding="utf-8")))
    return [
        f"{document}: no such file: {name}"
        for name in named
        if not any((root / name).exists() for root in ROOTS)
    ]


def riddles(document: Path) -> list[str]:
    """Return the sentences of a document that hide their subject; of a decision, those of its first paragraph."""
    text = BLOCK.sub("", document.read_text(encoding="utf-8"))
    items = [" ".join(each.split()) for each in ITEM.split(text) if not each.startswith("|")]
    if document.parent.name == "decisions":
        items = items[:2]
    return [
        f"{document}: begin with the subject: {sentence[:60]}"
        for item in items
        for sentence in SENTENCE.split(item)
        if RIDDLE.match(sentence)
    ]


def missing_tests() -> list[str]:
    """Return the tests that the ledger names and that do not exist."""
    found = []
    for name, function in NAMED_TEST.findall(LEDGER.read_text(encoding="utf-8")):
        path = Path(name)
        if not path.exists():
            found.append(f"{LEDGER}: no such test file: {name}")
        elif function and f"def {function}(" not in path.read_text(encoding="utf-8"):
            found.append(f"{LEDGER}: {name} has no test {function}")
    return found


def ledger_faults() -> list[str]:
    """Return numbers that occur twice, and numbers that code names but the ledger lacks."""
    numbers = FACT.findall(LEDGER.read_text(encoding="utf-8"))
    found = [f"{LEDGER}: F-{n} stands twice" for n in sorted(set(numbers)) if numbers.count(n) > 1]
    listing = subprocess.run(
        ["git", "ls-files", "src", "tests"], check=True, capture_output=True, text=True
    )
    for name in listing.stdout.split():
        if name.endswith((".py", ".pyx", ".pyi", ".md")) and Path(name).is_file():
            named = NAMED_FACT.findall(Path(name).read_text(encoding="utf-8"))
            found += [f"{name}: names F-{n}, not in the ledger" for n in named if n not in numbers]
    return found


def stale_figures() -> list[str]:
    """Return the figures of docs/performance.md that no table of bench/tables has."""
    page = Path("docs/performance.md")
    rows = [row for row in page.read_text(encoding="utf-8").splitlines() if row.startswith("|")]
    tables = "\n".join(each.read_text(encoding="utf-8") for each in TABLES.glob("*.md"))
    measured = set(FIGURE.findall(tables))
    figures = dict.fromkeys(FIGURE.findall("\n".join(rows)))
    return [
        f"{page}: {each} is in no table of {TABLES}" for each in figures if each not in measured
    ]


def stale_pages() -> list[str]:
    """Return the pages that are made from code and are not up to date."""
    text = conflicts.PAGE.read_text(encoding="utf-8")
    if text == conflicts.page(text):
        return []
    return ["docs/conflicts.md: run scripts/conflicts.py"]


def main() -> int:
    """Print the faults; return the exit code."""
    found = [fault for document in documents() for fault in broken_links(document)]
    found += [fault for document in documents() for fault in missing_files(document)]
    found += [fault for document in documents() for fault in riddles(document)]
    found += missing_tests() + ledger_faults() + stale_figures() + stale_pages()
    print(
        "\n".join(found) if found else "docs: links, named files, ledger, tests and figures agree"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
