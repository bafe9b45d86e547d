"""Write the tables of docs/conflicts.md from the rules that commits go by.

``python scripts/conflicts.py`` rewrites the page; ``make docs`` checks that it is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pennon.table.commit.conflict_matrix import COLUMNS, LETTERS, RULES

PAGE = Path(__file__).parents[1] / "docs" / "conflicts.md"
START, END = "<!-- written by scripts/conflicts.py -->\n", "<!-- end -->\n"


def tables() -> str:
    """Return the matrix and the meaning of its letters."""
    names = list(COLUMNS.values())
    lines = [f"| this ↓, the other → | {' | '.join(COLUMNS)} |", "|---" * (len(names) + 1) + "|"]
    for mine in dict.fromkeys(mine for mine, _ in RULES):
        letters = (RULES[mine, other] for other in names)
        lines.append(f"| `{mine}` | {' | '.join(letters)} |")
    short = ", ".join(f"{column} = `{name}`" for column, name in COLUMNS.items())
    lines += ["", f"{short}.", "", "| letter | meaning |", "|---|---|"]
    lines += [f"| `{letter}` | {text} |" for letter, (text, _) in LETTERS.items()]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """Return the page with its tables written anew."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}{tables()}{END}{after}"


def main() -> int:
    """Rewrite the page; return the exit code."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
