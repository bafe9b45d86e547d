"""Equality of tables, to the bit: NaN payloads and the sign of zero count, chunking does not.

Arrow's own ``equals`` says that NaN differs from NaN, that 0.0 is -0.0, and that two dictionary
arrays differ when only the order of their dictionaries does.  Here floats are compared as integers
of their bits, and dictionaries by what they stand for.
"""

from __future__ import annotations

import pyarrow as pa


def difference(got: pa.Table, wanted: pa.Table) -> str | None:
    """Return what is different, or None; names, types, order and values count, metadata not."""
    if got.schema.names != wanted.schema.names:
        return f"columns {got.schema.names} instead of {wanted.schema.names}"
    if got.num_rows != wanted.num_rows:
        return f"{got.num_rows} rows instead of {wanted.num_rows}"
    for who, table in (("got", got), ("wanted", wanted)):
        try:
            table.validate(full=True)
        except pa.lib.ArrowException as error:
            return f"the table that was {who} is broken: {error}"
    for name, mine, other in zip(got.schema.names, got.columns, wanted.columns, strict=True):
        found = _column_difference(mine, other)
        if found is not None:
            return f"column {name!r} of type {other.type}: {found}"
    return None


def _column_difference(got: pa.ChunkedArray, wanted: pa.ChunkedArray) -> str | None:
    """Return what is different in one column, or None."""
    if got.type != wanted.type:
        return f"type {got.type}"
    # A dictionary may hold the NULL itself, which Arrow does not count.
    if got.null_count != wanted.null_count and not pa.types.is_dictionary(got.type):
        return f"{got.null_count} NULLs instead of {wanted.null_count}"
    mine, other = _plain(got), _plain(wanted)
    if mine.equals(other):
        return None
    return _first_difference(mine, other, 0)


def _first_difference(got: pa.Array, wanted: pa.Array, start: int) -> str:
    """Return the first row where two unequal arrays differ, found by halving."""
    if len(got) == 1:
        return f"row {start} is {_shown(got)} instead of {_shown(wanted)}"
    half = len(got) // 2
    if got.slice(0, half).equals(wanted.slice(0, half)):
        return _first_difference(got.slice(half), wanted.slice(half), start + half)
    return _first_difference(got.slice(0, half), wanted.slice(0, half), start)


def _shown(one: pa.Array) -> str:
    text = " ".join(str(one).split())
    return text if len(text) < 200 else text[:200] + "..."


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array without offsets, extensions, dictionaries and floats."""
    chunks = [_bits(unsliced(chunk)) for chunk in column.chunks if len(chunk)]
    if not chunks:
        return pa.nulls(0)
    return pa.concat_arrays(chunks)


def unsliced(array: pa.Array) -> pa.Array:
    """Return the array with all offsets 0: how it looks after a journey through a stream."""
    batch = pa.RecordBatch.from_arrays([array], ["a"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch().column(0)


def _bits(array: pa.Array) -> pa.Array:
    """Return the array with floats as integers, dictionaries decoded, extensions as storage."""
    t = array.type
    if isinstance(t, pa.BaseExtensionType):
        return _bits(array.storage)
    if pa.types.is_dictionary(t):
        return _bits(array.dictionary_decode())
    if pa.types.is_floating(t):
        return array.view({16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[t.bit_width])
    if pa.types.is_nested(t) and not _is_bits(t):
        return _nested_bits(array)
    return array


def _nested_bits(array: pa.Array) -> pa.Array:
    """Return a nested array with its children as `_bits`."""
    t = array.type
    if pa.types.is_struct(t):
        children = [_bits(array.field(i)) for i in range(t.num_fields)]
        names = [f.name for f in t.fields]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())
    values = _bits(array.values)
    if pa.types.is_fixed_size_list(t):
        return pa.FixedSizeListArray.from_arrays(values, t.list_size, mask=array.is_null())
    kind = pa.LargeListArray if pa.types.is_large_list(t) else pa.ListArray
    return kind.from_arrays(array.offsets, values, mask=array.is_null())


def _is_bits(t: pa.DataType) -> bool:
    """Say whether nothing in a nested type needs to change."""
    if isinstance(t, pa.BaseExtensionType) or pa.types.is_dictionary(t) or pa.types.is_floating(t):
        return False
    return all(_is_bits(t.field(i).type) for i in range(t.num_fields))
