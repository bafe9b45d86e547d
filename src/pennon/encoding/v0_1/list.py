"""Lists: rows + 1 offsets into the page of the items.

    [[A, B], NULL, [], [C]]        offsets   0 2 2 2 3         32 bits; 64 in a large list
                                   items     A B C             the child's page of the same row group

Offsets begin at 0 in every row group.  A NULL list is an empty one: the page cannot tell.

Source: seeds 000 and 002; measured (pylance 14.0.2).
"""

from __future__ import annotations

from pennon.encoding.steps import Steps
from pennon.encoding.v0_1.binary import Spans, read_spans
from pennon.encoding.v0_1.pages import Pages
from pennon.encoding.v0_1.picks import Picks
from pennon.ranges import Int64Array


def decode_list(
    pages: Pages, picks: Picks, item_counts: Int64Array, *, large: bool
) -> Steps[tuple[Spans, Picks]]:
    """Return the steps that read the offsets of lists, in one round, and which items these have.

    Page p of the items has ``item_counts[p]`` of them.  Raises FormatError if offsets fall or exceed
    that.
    """
    limits = item_counts[picks.pages]
    width = 8 if large else 4
    spans = yield from read_spans(pages, picks, width, limits, mark_empty=False, wide=large)
    return spans, Picks.between(picks.pages, spans.starts, spans.ends)
