"""The one mapping from the array encodings of file version 2.0 to their decoders.

List and SimpleStruct are not in it: they describe a column, not values, and `pennon.file.columns`
takes them apart.
"""

from __future__ import annotations

from pennon.encoding.v2_0 import encodings as e
from pennon.encoding.v2_0.dispatch import Codecs

CODECS = Codecs({})
