"""Code blocks of the documents, and how the tests run them."""

from __future__ import annotations

import ast
import re
import tokenize
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page: its language, text, and the line where the text begins."""

    page: str
    language: str
    text: str
    line: int


def pages() -> list[Path]:
    """Return the pages for users and developers; a decision tells of its day."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    pages = [each for each in docs if each.parent.name != "decisions"]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages]


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """Return the blocks of a page, in their order; those of one language where it is given."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(page.name, each[1], each[2], text.count("\n", 0, each.start(2)) + 1)
        for each in FENCE.finditer(text)
    ]
    return [each for each in found if language in (None, each.language)]


def section(page: Path, first: str, last: str | None = None) -> list[Block]:
    """Return the Python blocks between two headings of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    begin = lines.index(first) + 1
    end = lines.index(last) + 1 if last else len(lines)
    return [each for each in blocks(page, "python") if begin < each.line <= end]


def run(block: Block, names: dict[str, Any]) -> None:
    """Run a Python block; a comment that is a literal must be the value of the expression before it.

    Raises AssertionError where a value is another one.  The line numbers of errors are those of the page.
    """
    padded = "\n" * (block.line - 1) + block.text
    results = _results(padded)
    for statement in ast.parse(padded, block.page).body:
        wanted = results.get(statement.end_lineno or 0)
        if isinstance(statement, ast.Expr) and wanted is not None:
            code = compile(ast.Expression(statement.value), block.page, "eval")
            _check(eval(code, names), wanted, f"{block.page}:{statement.lineno}")
        else:
            exec(compile(ast.Module([statement], []), block.page, "exec"), names)


def _results(text: str) -> dict[int, str]:
    """Return the comments that begin as a literal does, by their lines."""
    tokens = tokenize.generate_tokens(StringIO(text).readline)
    comments = {
        each.start[0]: each.string.lstrip("# ") for each in tokens if each.type == tokenize.COMMENT
    }
    return {line: text for line, text in comments.items() if _literal(text) is not None}


def _literal(comment: str) -> Any:
    """Return the value that a comment shows, a dict without what ``…`` stands for; None if it shows none."""
    value = re.match(r"'[^']*'|\d+$|(?:True|False)$|\{.*\}$|\[.*\]$", comment)
    try:
        return ast.literal_eval(value[0].replace(", …}", "}")) if value else None
    except (SyntaxError, ValueError):
        return None


def _check(value: Any, comment: str, place: str) -> None:
    wanted = _literal(comment)
    if comment.endswith(", …}"):
        value = {key: value[key] for key in wanted}
    if value != wanted:
        message = f"{place}: the page says {wanted!r}, the value is {value!r}"
        raise AssertionError(message)
