"""The known name that a misspelt one was meant to be; all messages that ask "did you mean" ask here."""

from __future__ import annotations

from collections.abc import Iterable


def near_names(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the known names that a name is nearly equal to, the nearest first; letters of either case are equal."""
    from difflib import get_close_matches  # noqa: PLC0415 - saves difflib at open

    names = list(known)
    by_small_letters = {each.lower(): each for each in reversed(names)}
    found = get_close_matches(name.lower(), by_small_letters, most)
    return [by_small_letters[each] for each in found]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is not known: nothing, or the nearest known one."""
    near = near_names(name, known)
    return f"; did you mean {near[0]!r}?" if near else ""
