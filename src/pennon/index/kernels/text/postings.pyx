# cython: language_level=3
"""Posting lists of full-text indices: their blocks, positions and bounds.  See postings.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pennon.errors import FormatError


cdef inline uint32_t word_at(const uint8_t* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef inline const uint8_t* read_varint(
    const uint8_t* at, const uint8_t* end, uint64_t* value
) noexcept nogil:
    """Read a number of at most 35 bits; return what is behind it, NULL if it does not end."""
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 35:
        value[0] |= <uint64_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            return at + 1
        at += 1
        shift += 7
    return NULL


cdef void unpack(const uint8_t* source, int bits, int lanes, uint32_t* out) noexcept nogil:
    """Unpack 32 rows of ``lanes`` values; value k lies in lane k mod lanes, row k div lanes."""
    cdef uint32_t mask = <uint32_t>((<uint64_t>1 << bits) - 1)
    cdef int row, lane, bit, word, shift
    cdef uint32_t value
    for row in range(32):
        bit = row * bits
        word = bit >> 5
        shift = bit & 31
        for lane in range(lanes):
            value = 0
            if bits:
                value = word_at(source + 4 * (word * lanes + lane)) >> shift
                if shift + bits > 32:
                    value |= word_at(source + 4 * ((word + 1) * lanes + lane)) << (32 - shift)
            out[row * lanes + lane] = value & mask


cdef bint full_block(
    const uint8_t* at, const uint8_t* end, int size, uint32_t* docs, uint32_t* frequencies,
) noexcept nogil:
    """Decode a block behind its score; tell whether it is whole and no longer than that."""
    cdef int lanes = size // 32, bits, exceptions = 0, k, place
    cdef uint64_t value, doc
    if end - at < 5 or at[4] > 32:
        return False
    doc = word_at(at)
    bits = at[4]
    at += 5
    if end - at < 4 * lanes * bits + 1:
        return False
    unpack(at, bits, lanes, docs)
    at += 4 * lanes * bits
    bits = at[0]
    at += 1
    if bits > 32:
        return False
    if size == 256:
        if end - at < 1:
            return False
        exceptions = at[0]
        at += 1
    if end - at < 4 * lanes * bits:
        return False
    unpack(at, bits, lanes, frequencies)
    at += 4 * lanes * bits
    for k in range(exceptions):
        if end - at < 1 or bits >= 32:
            return False
        place = at[0]
        at = read_varint(at + 1, end, &value)
        if at == NULL or value >> (32 - bits):
            return False
        frequencies[place] |= <uint32_t>(value << bits)
    for k in range(32 * lanes):
        doc += docs[k]
        if doc >> 32:
            return False
        docs[k] = <uint32_t>doc
    return at == end


cdef bint tail(
    const uint8_t* at, const uint8_t* end, int64_t count, bint is_varint,
    uint32_t* docs, uint32_t* frequencies,
) noexcept nogil:
    """Decode the last block behind its score."""
    cdef int64_t k
    cdef uint64_t value, doc = 0
    if not is_varint:
        if end - at != 8 * count:
            return False
        memcpy(docs, at, 4 * count)
        memcpy(frequencies, at + 4 * count, 4 * count)
        return True
    for k in range(count):
        at = read_varint(at, end, &value)
        doc += value
        if at == NULL or doc >> 32:
            return False
        docs[k] = <uint32_t>doc
    for k in range(count):
        at = read_varint(at, end, &value)
        if at == NULL or value >> 32:
            return False
        frequencies[k] = <uint32_t>value
    return at == end


def first_docs(
    const uint8_t[::1] data, const int64_t[::1] ends, int size, bint is_varint, bint ends_whole,
    uint32_t[::1] firsts,
):
    """See postings.pyi."""
    cdef Py_ssize_t block, blocks = firsts.shape[0], bad = -1
    cdef int64_t start, end
    cdef int head = 4 if size == 128 else 0
    cdef uint64_t value
    check_ends(data, ends, blocks)
    with nogil:
        for block in range(blocks):
            start, end = ends[block] + head, ends[block + 1]
            if block == blocks - 1 and is_varint and not ends_whole:
                if end <= start or read_varint(&data[0] + start, &data[0] + end, &value) == NULL \
                        or value >> 32:
                    bad = block
                    break
                firsts[block] = <uint32_t>value
            elif end - start < 4:
                bad = block
                break
            else:
                firsts[block] = word_at(&data[0] + start)
            if block and firsts[block] <= firsts[block - 1]:
                bad = block
                break
    if bad >= 0:
        raise FormatError(f"block {bad} of {blocks} of a posting list has no first document")


cdef check_ends(const uint8_t[::1] data, const int64_t[::1] ends, Py_ssize_t blocks):
    """Raise FormatError unless ``ends`` bound so many blobs within ``data``."""
    cdef Py_ssize_t at
    cdef bint is_right = ends.shape[0] == blocks + 1 and ends[0] >= 0
    if is_right:
        for at in range(blocks):
            is_right = is_right and ends[at] <= ends[at + 1]
        is_right = is_right and ends[blocks] <= data.shape[0]
    if not is_right:
        raise FormatError(f"the {blocks} blocks of a posting list do not lie within its {data.shape[0]} bytes")


def decode_blocks(
    const uint8_t[::1] data, const int64_t[::1] ends, const int64_t[::1] chosen, int size,
    int64_t last_count, bint is_varint, int64_t limit, uint32_t[::1] docs, uint32_t[::1] frequencies,
):
    """See postings.pyi."""
    cdef Py_ssize_t number, block, blocks = ends.shape[0] - 1, bad = -1
    cdef int64_t at = 0, count, k, start
    cdef int head = 4 if size == 128 else 0
    cdef const uint8_t* begin
    cdef const uint8_t* end
    cdef bint is_whole
    check_ends(data, ends, blocks)
    if size not in (128, 256) or not 0 < last_count <= size or docs.shape[0] != frequencies.shape[0]:
        raise ValueError("no such blocks, or no room for them")
    with nogil:
        for number in range(chosen.shape[0]):
            block = chosen[number]
            if block < 0 or block >= blocks:
                bad = block
                break
            count = last_count if block == blocks - 1 else size
            if count > docs.shape[0] - at or ends[block + 1] - ends[block] < head:
                bad = block
                break
            begin = &data[0] + ends[block] + head
            end = &data[0] + ends[block + 1]
            if count == size:
                is_whole = full_block(begin, end, size, &docs[at], &frequencies[at])
            else:
                is_whole = tail(begin, end, count, is_varint, &docs[at], &frequencies[at])
            if is_whole:
                for k in range(at if at else 1, at + count):
                    if docs[k] <= docs[k - 1]:
                        is_whole = False
                        break
            if not is_whole or docs[at + count - 1] >= limit:
                bad = block
                break
            at += count
    if bad >= 0:
        raise FormatError(f"block {bad} of {blocks} of a posting list is damaged")
    if at != docs.shape[0]:
        raise ValueError("the blocks do not fill the target")


cdef inline float norm(uint32_t length, float average) noexcept nogil:
    return <float>1.2 * (<float>0.25 + <float>0.75 * <float>length / average)


def add_scores(
    const uint32_t[::1] docs, const uint32_t[::1] frequencies, const uint32_t[::1] lengths,
    float weight, float average, float[::1] scores,
):
    """See postings.pyi."""
    cdef Py_ssize_t k
    cdef int64_t documents = min(scores.shape[0], lengths.shape[0])
    cdef float frequency
    if docs.shape[0] != frequencies.shape[0]:
        raise ValueError("documents and frequencies differ in number")
    with nogil:
        for k in range(docs.shape[0]):
            if docs[k] < documents:
                frequency = <float>frequencies[k]
                scores[docs[k]] += weight * (
                    <float>2.2 * frequency / (frequency + norm(lengths[docs[k]], average))
                )


def find_frequencies(
    const uint32_t[::1] there, const uint32_t[::1] frequencies, const uint32_t[::1] docs,
    uint32_t[::1] found,
):
    """See postings.pyi."""
    cdef Py_ssize_t k, at = 0, count = there.shape[0]
    if frequencies.shape[0] != count or found.shape[0] != docs.shape[0]:
        raise ValueError("documents and frequencies differ in number")
    with nogil:
        for k in range(docs.shape[0]):
            while at < count and there[at] < docs[k]:
                at += 1
            found[k] = frequencies[at] if at < count and there[at] == docs[k] else 0


def decode_positions(
    const uint8_t[::1] data, const int64_t[::1] ends, const int64_t[::1] counts,
    const uint32_t[::1] frequencies, uint32_t[::1] positions,
):
    """See postings.pyi."""
    cdef Py_ssize_t block, blocks = counts.shape[0], bad = -1
    cdef int64_t document = 0, at = 0, each, left, k, total
    cdef uint64_t value
    cdef uint32_t packed[128]
    cdef const uint8_t* here
    cdef const uint8_t* end
    cdef int bits
    check_ends(data, ends, blocks)
    with nogil:
        for block in range(blocks):
            total = 0
            if counts[block] < 0 or counts[block] > frequencies.shape[0] - document:
                bad = block
                break
            for k in range(document, document + counts[block]):
                total += frequencies[k]
            left = total
            if left > positions.shape[0] - at or (left and ends[block] == ends[block + 1]):
                bad = block
                break
            here = end = NULL
            if left:
                here, end = &data[0] + ends[block], &data[0] + ends[block + 1]
            while left >= 128:
                if end - here < 1 or here[0] > 32 or end - here < 1 + 16 * here[0]:
                    bad = block
                    break
                bits = here[0]
                unpack(here + 1, bits, 4, packed)
                memcpy(&positions[at + total - left], packed, 512)
                here += 1 + 16 * bits
                left -= 128
            if bad >= 0:
                break
            while left:
                here = read_varint(here, end, &value)
                if here == NULL or value >> 32:
                    bad = block
                    break
                positions[at + total - left] = <uint32_t>value
                left -= 1
            if bad >= 0 or here != end:
                bad = block
                break
            for each in range(document, document + counts[block]):
                value = 0
                for k in range(frequencies[each]):
                    value += positions[at + k]
                    if value >> 32:
                        bad = block
                        break
                    positions[at + k] = <uint32_t>value
                at += frequencies[each]
            if bad >= 0:
                break
            document += counts[block]
    if bad >= 0:
        raise FormatError(f"the positions of block {bad} of {blocks} of a posting list are damaged")
    if at != positions.shape[0]:
        raise FormatError(f"a posting list has {at} positions, not {positions.shape[0]}")


def decode_position_lists(
    const uint8_t[::1] data, const int64_t[::1] blobs, const int64_t[::1] lists,
    const uint32_t[::1] frequencies, uint32_t[::1] positions,
):
    """See postings.pyi."""
    cdef Py_ssize_t document, documents = frequencies.shape[0], bad = -1
    cdef int64_t at = 0, blob, left, size, k
    cdef uint64_t value
    cdef const uint8_t* here
    cdef int bits
    check_ends(data, blobs, blobs.shape[0] - 1)
    if lists.shape[0] != documents + 1:
        raise ValueError("documents and their positions differ in number")
    with nogil:
        for document in range(documents):
            left = frequencies[document]
            blob = lists[document]
            if (
                blob < 0 or lists[document + 1] > blobs.shape[0] - 1 or blob >= lists[document + 1]
                or blobs[blob + 1] - blobs[blob] != 4 or left > positions.shape[0] - at
                or word_at(&data[0] + blobs[blob]) != left
            ):
                bad = document
                break
            for blob in range(blob + 1, lists[document + 1]):
                size = blobs[blob + 1] - blobs[blob]
                if left == 0 or size < 4:
                    bad = document
                    break
                here = &data[0] + blobs[blob]
                if left >= 128:
                    bits = here[4] if size >= 5 else 33
                    if bits > 32 or size != 5 + 16 * bits:
                        bad = document
                        break
                    value = word_at(here)
                    unpack(here + 5, bits, 4, &positions[at])
                    for k in range(128):
                        value += positions[at + k]
                        positions[at + k] = <uint32_t>value
                    at += 128
                    left -= 128
                else:
                    if size != 4 * left:
                        bad = document
                        break
                    memcpy(&positions[at], here, size)
                    at += left
                    left = 0
            if bad >= 0 or left:
                bad = document
                break
    if bad >= 0:
        raise FormatError(f"the positions of document {bad} of a posting list are damaged")
    if at != positions.shape[0]:
        raise FormatError(f"a posting list has {at} positions, not {positions.shape[0]}")
