"""Pages of long listings: names after a token, at most so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pennon.namespace.failures import INVALID, failure


def page_of(names: Sequence[str], request: Any) -> tuple[list[str], str | None]:
    """Return the names of a request's page, in order, and the token of the next page: the last name of this one."""
    token, limit = getattr(request, "page_token", None), getattr(request, "limit", None)
    if limit is not None and limit < 1:
        message = f"limit must be at least 1, not {limit}"
        raise failure(INVALID, message)
    left = sorted(each for each in names if not token or each > token)
    if limit is None or len(left) <= limit:
        return left, None
    return left[:limit], left[limit - 1]
