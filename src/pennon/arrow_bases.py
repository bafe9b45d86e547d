"""pyarrow's dataset classes, as bases of ours.

DuckDB and Polars recognise a dataset by these classes.  Our methods have pylance's signatures, which
are not pyarrow's, so for the type checker the bases are plain objects.

No method of pyarrow's may be left as it is: they stand on a C++ object that ours do not have.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    ArrowDataset = object
    ArrowFragment = object
    ArrowScanner = object
else:
    from pyarrow.dataset import Dataset as ArrowDataset
    from pyarrow.dataset import Fragment as ArrowFragment
    from pyarrow.dataset import Scanner as ArrowScanner

__all__ = ["ArrowDataset", "ArrowFragment", "ArrowScanner"]
