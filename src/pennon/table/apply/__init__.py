"""Apply a transaction to a table: the next manifest.  Pure; no I/O.

Fragment ids are never used twice, also not by an overwrite, so that nothing that remembers a
fragment by its id (an index, a cache) can mistake another for it.  The highest id ever used is
``max_fragment_id``, and it never goes down; nor does ``next_row_id``.
"""

from pennon.table.apply.checks import missing_field as missing_field
from pennon.table.apply.context import ApplyContext as ApplyContext
from pennon.table.apply.context import Complete as Complete
from pennon.table.apply.next_manifest import apply as apply
from pennon.table.apply.next_manifest import create as create
