"""The one mapping from the array encodings of file version 2.0 to their decoders.

List and SimpleStruct are not in it: they describe a column, not values, and `pennon.file.v2_0.reader`
takes them apart.
"""

from __future__ import annotations

from pennon.encoding.v2_0 import encodings as e
from pennon.encoding.v2_0.binary import decode_binary
from pennon.encoding.v2_0.bitpacked import decode_bitpacked, decode_bitpacked_for_non_neg
from pennon.encoding.v2_0.constant import decode_constant
from pennon.encoding.v2_0.dictionary import decode_dictionary
from pennon.encoding.v2_0.dispatch import Codecs
from pennon.encoding.v2_0.fixed_size_binary import decode_fixed_size_binary
from pennon.encoding.v2_0.fixed_size_list import decode_fixed_size_list
from pennon.encoding.v2_0.flat import decode_flat
from pennon.encoding.v2_0.fsst import decode_fsst
from pennon.encoding.v2_0.nullable import decode_all_nulls, decode_no_nulls, decode_some_nulls
from pennon.encoding.v2_0.packed_struct import decode_packed_struct

CODECS = Codecs(
    {
        e.Flat: decode_flat,
        e.NoNulls: decode_no_nulls,
        e.SomeNulls: decode_some_nulls,
        e.AllNulls: decode_all_nulls,
        e.FixedSizeList: decode_fixed_size_list,
        e.Binary: decode_binary,
        e.Dictionary: decode_dictionary,
        e.Fsst: decode_fsst,
        e.PackedStruct: decode_packed_struct,
        e.Bitpacked: decode_bitpacked,
        e.BitpackedForNonNeg: decode_bitpacked_for_non_neg,
        e.FixedSizeBinary: decode_fixed_size_binary,
        e.Constant: decode_constant,
    }
)
