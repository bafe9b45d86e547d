"""Arrays of a record batch whose buffers hold their own rows only, through the Arrow C data interface."""

from pennon.core.byte_ranges import Int64Array

class ExactColumns:
    """A record batch on its way to arrays that begin at offset 0.

    Export a batch to ``address``, `cut` it, and import each column from its address.  Columns that
    nobody imports are released with this object.
    """

    def __init__(self, columns: int) -> None:
        """Make room for a batch of so many columns."""

    @property
    def address(self) -> int:
        """Return where the batch is exported to, as an ``ArrowArray``."""

    def cut(self, layout: Int64Array, held_bytes: int, share: int) -> None:
        """Cut all columns to the rows of the batch.

        ``layout``: three numbers for each type, a column's before its children's: what it is, the
        bytes of a value or the items of a list, and how many children it has.

        ========  =================================  ========  =============================
        0         NULL                               5, 6      lists, offsets of 32, 64 bits
        1         values of whole bytes              7         fixed-size lists
        2         bits                               8         structs
        3, 4      bytes, offsets of 32, 64 bits      9         any other: comes out as it is
        ========  =================================  ========  =============================

        ``held_bytes`` is the size of the buffers that the batch was cut from.  If its own bytes are
        less than one ``share``-th of that, columns are copied, except those that lie in memory maps.
        Raises FormatError for offsets that leave their items, ValueError for a layout that does not fit.
        """

    def addresses(self) -> list[int]:
        """Return the addresses of the columns' ``ArrowArray`` structs, to import each once."""
