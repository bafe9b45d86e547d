"""Lance tables as datasets of Hugging Face, and back; needs the package ``datasets``.

`save_dataset` writes a dataset with its features (images, audio, class labels, sequences), `load_dataset`
reads a table as a dataset in memory-mapped files or as a stream.  With `pennon.install_as_lance`
``datasets.load_dataset("x.lance")`` works as well; `load_dataset` of this module has what that lacks: a filter, a version,
columns without their names in the features, and stored features of columns.
"""

from __future__ import annotations

from pennon.hf.load import load_dataset
from pennon.hf.save import save_dataset

__all__ = ["load_dataset", "save_dataset"]
