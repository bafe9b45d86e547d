"""The rules by which the server of the page lets a request through, and the headers of all answers.

Other programs and other users of this machine, and web pages in the same browser, can reach a port of 127.0.0.1.  So

- data need the token, which only the link in the terminal has.  It stands behind the ``#``, which browsers send to nobody,
  and comes back in a header.  A cookie would go to every server on 127.0.0.1, whatever its port.
- ``Host`` must be this server: a page of another name that resolves to 127.0.0.1 gets nothing (DNS rebinding).
- ``Origin`` and ``Sec-Fetch-Site`` must be of this page, where a browser sends them.
- only GET is answered; no request changes anything.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Final

TOKEN_HEADER: Final = "X-Pennon-Token"  # noqa: S105 - a name

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing from outside, no inline script or style, and no text that a script could turn into markup."""

DATA_POLICY: Final = "default-src 'none'; sandbox; frame-ancestors 'none'"
"""The policy of values and JSON, should somebody open their address as a page."""

HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status, and a sentence that says what to do."""

    status: HTTPStatus
    message: str


@dataclass(frozen=True, slots=True)
class Guard:
    """The rules of one server: its port, and the token that its link has."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def link(self) -> str:
        """Return the address of the page, with the token."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def refuse(self, method: str, headers: Message, *, needs_token: bool) -> Refusal | None:
        """Return why a request is not answered; None if it is."""
        if method != "GET":
            return Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED, "this page only reads: GET is all it answers"
            )
        host = headers.get("Host", "").lower()
        if host not in self._hosts:
            return Refusal(
                HTTPStatus.FORBIDDEN,
                f"open the page as {self._hosts[0]}, the address in the terminal",
            )
        origin = headers.get("Origin")
        if origin is not None and origin.lower() != f"http://{host}":
            return Refusal(HTTPStatus.FORBIDDEN, "another page must not read this one")
        site = headers.get("Sec-Fetch-Site", "none")
        if needs_token and site not in ("same-origin", "none"):
            return Refusal(HTTPStatus.FORBIDDEN, "another page must not read this one")
        given = headers.get(TOKEN_HEADER, "").encode("utf-8", "replace")
        if needs_token and not secrets.compare_digest(given, self.token.encode()):
            return Refusal(
                HTTPStatus.UNAUTHORIZED,
                "open the link that `pennon view` printed: it has the token",
            )
        return None

    @property
    def _hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"
