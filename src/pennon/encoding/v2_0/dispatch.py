"""From an encoding (a value) to the function that decodes it.

The mapping itself is built in one place, `pennon.encoding.v2_0.codecs`.  It is passed down to every
decoder, so that decoders which hold other encodings inside need not import their siblings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pennon.core.fast_dataclass import dataclass
from pennon.encoding.block import Block
from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.v2_0.encodings import ArrayEncoding
from pennon.errors import FormatError


class Decoder(Protocol):
    """Decodes some rows of a page; ``encoding`` is of the one class that the decoder is for."""

    def __call__(
        self, encoding: Any, page: PageBuffers, rows: Rows, codecs: Codecs, /
    ) -> Steps[Block]:
        """Return the steps that read and decode ``rows``, which lie within ``page.rows``."""


@dataclass(frozen=True, slots=True)
class Codecs:
    """All decoders of a file version, by the class of the encoding."""

    decoders: Mapping[type[Any], Decoder]

    def decode(self, encoding: ArrayEncoding, page: PageBuffers, rows: Rows) -> Steps[Block]:
        """Return the steps that decode ``rows`` of ``page``.

        Raises FormatError if the encoding cannot stand where it stands.
        """
        decoder = self.decoders.get(type(encoding))
        if decoder is None:
            message = f"encoding {type(encoding).__name__} holds no values of its own"
            raise FormatError(message)
        return decoder(encoding, page, rows, self)
