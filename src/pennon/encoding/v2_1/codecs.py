"""The mappings from the encodings of file versions 2.1 and 2.2 to their decoders.

`Dictionary` is in none of them: a page has its dictionary beside its values
(`pennon.encoding.v2_1.mini_block`), and no writer puts one inside them.
"""

from __future__ import annotations

from pennon.encoding.v2_1 import encodings as e
from pennon.encoding.v2_1.bitpacked import decode_inline, decode_out_of_line
from pennon.encoding.v2_1.byte_stream_split import decode_byte_stream_split
from pennon.encoding.v2_1.constant import decode_constant, decode_constant_values
from pennon.encoding.v2_1.dispatch import Codecs
from pennon.encoding.v2_1.fixed_size_list import (
    decode_fixed_size_list,
    decode_fixed_size_list_values,
)
from pennon.encoding.v2_1.flat import decode_flat, decode_flat_values
from pennon.encoding.v2_1.fsst import decode_fsst, decode_fsst_values
from pennon.encoding.v2_1.general import (
    decode_general,
    decode_general_blocks,
    decode_general_values,
)
from pennon.encoding.v2_1.packed_struct import (
    decode_packed_struct,
    decode_packed_struct_values,
    decode_variable_packed_struct,
)
from pennon.encoding.v2_1.rle import decode_rle, decode_rle_blocks
from pennon.encoding.v2_1.variable import (
    decode_variable,
    decode_variable_blocks,
    decode_variable_values,
)

CODECS = Codecs(
    chunks={
        e.Flat: decode_flat,
        e.Variable: decode_variable,
        e.Constant: decode_constant,
        e.OutOfLineBitpacking: decode_out_of_line,
        e.InlineBitpacking: decode_inline,
        e.Fsst: decode_fsst,
        e.Rle: decode_rle,
        e.ByteStreamSplit: decode_byte_stream_split,
        e.General: decode_general,
        e.FixedSizeList: decode_fixed_size_list,
        e.PackedStruct: decode_packed_struct,
    },
    blocks={
        e.Flat: decode_flat,
        e.Variable: decode_variable_blocks,
        e.Constant: decode_constant,
        e.OutOfLineBitpacking: decode_out_of_line,
        e.InlineBitpacking: decode_inline,
        e.Rle: decode_rle_blocks,
        e.General: decode_general_blocks,
    },
    values={
        e.Flat: decode_flat_values,
        e.Variable: decode_variable_values,
        e.Constant: decode_constant_values,
        e.Fsst: decode_fsst_values,
        e.General: decode_general_values,
        e.FixedSizeList: decode_fixed_size_list_values,
        e.PackedStruct: decode_packed_struct_values,
        e.VariablePackedStruct: decode_variable_packed_struct,
    },
)
