"""pyarrow's dataset classes, as bases of ours.

DuckDB and Polars recognise a dataset by these classes.  Our methods have pylance's signatures, which
are not pyarrow's, so for the type checker the bases are plain objects.

No method of pyarrow's may be left as it is: they stand on a C++ object that ours do not have.  What
makes no sense for a table of ours is refused here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pennon.errors import UnsupportedError

if TYPE_CHECKING:
    _Dataset = object
    ArrowFragment = object
    ArrowScanner = object
else:
    from pyarrow.dataset import Dataset as _Dataset
    from pyarrow.dataset import Fragment as ArrowFragment
    from pyarrow.dataset import Scanner as ArrowScanner

__all__ = ["ArrowDataset", "ArrowFragment", "ArrowScanner"]


class ArrowDataset(_Dataset):
    """The methods of pyarrow's datasets that a table does not support."""

    @property
    def partition_expression(self) -> Any:
        """Refuse; tables have no partitions."""
        message = "tables have no partition expression"
        raise UnsupportedError(message)

    def replace_schema(self, schema: pa.Schema) -> Any:
        """Refuse; the schema is the table's."""
        message = "the schema of a table cannot be replaced"
        raise UnsupportedError(message)

    def filter(self, expression: Any) -> Any:
        """Refuse; scans take the filter."""
        message = "give the filter to scanner() or to_table()"
        raise UnsupportedError(message)

    def join(self, *_: Any, **__: Any) -> Any:
        """Refuse; tables join."""
        message = "read the table (to_table()) and join that"
        raise UnsupportedError(message)

    join_asof = join
    sort_by = join
