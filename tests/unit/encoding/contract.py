"""The shipped contract of encodings, run on one page."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from pennon.encoding.v2_0.encodings import ArrayEncoding
from pennon.testing import EncodedPage, EncodingContract


def check_contract(
    encoding: ArrayEncoding, buffers: Sequence[bytes], expected: pa.Array, *, rounds: int = 1
) -> None:
    page = EncodedPage(encoding, buffers, expected, rounds)

    class OnePage(EncodingContract):
        def page(self) -> EncodedPage:
            return page

    contract = OnePage()
    for name in dir(contract):
        if name.startswith("test_"):
            getattr(contract, name)()
