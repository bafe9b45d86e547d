"""From a page's layout to the steps that read it."""

from __future__ import annotations

from pennon.encoding.page import PageBuffers
from pennon.encoding.read_protocol import Steps
from pennon.encoding.rows import Rows
from pennon.encoding.search_cache import Slot
from pennon.encoding.v2_1.blob_page import blobs_of
from pennon.encoding.v2_1.codecs import CODECS
from pennon.encoding.v2_1.constant_page import read_constant_page
from pennon.encoding.v2_1.full_zip import read_full_zip
from pennon.encoding.v2_1.layouts import BlobPage, FullZip, Layout, MiniBlock
from pennon.encoding.v2_1.mini_block import read_mini_block
from pennon.encoding.v2_1.page import PageValues


def read_page(layout: Layout, page: PageBuffers, rows: Rows, slot: Slot) -> Steps[PageValues]:
    """Return the steps that read ``rows`` of a page, which lie within ``page.rows``.

    Of a blob page these are the descriptions, with the levels that stand in them.
    """
    if isinstance(layout, MiniBlock):
        return (yield from read_mini_block(layout, page, rows, CODECS, slot))
    if isinstance(layout, FullZip):
        return (yield from read_full_zip(layout, page, rows, CODECS))
    if isinstance(layout, BlobPage):
        inner = yield from read_page(layout.inner, page, rows, slot)
        return PageValues(inner.values, None, blobs_of(inner.values, layout.layers).levels)
    return (yield from read_constant_page(layout, page, rows, CODECS, slot))
