"""An extension of griffe: examples in docstrings (``>>>``) become code blocks, names in back-ticks stay code."""

from __future__ import annotations

import re
from typing import Any

import griffe

PROMPT = re.compile(r"^>>> ")


class Examples(griffe.Extension):
    """Put each example of a docstring into a fenced block, which Markdown shows as code."""

    def on_object(self, *, obj: griffe.Object, **_kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring whose examples are fenced blocks; an example ends with a blank line."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and PROMPT.match(line):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines)
