# cython: language_level=3
"""Posting lists of full-text indices, many at a time: read, thinned out and put in order.  See posting_lists.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from pennon.index.kernels.text.postings cimport check_ends, full_block, tail

from pennon.errors import FormatError


def order_of_numbers(
    const uint32_t[::1] numbers, int64_t[::1] ends, int64_t[::1] order,
):
    """See posting_lists.pyi."""
    cdef Py_ssize_t k, count = numbers.shape[0], limit = ends.shape[0] - 1
    cdef bint is_right = order.shape[0] == count and limit >= 0
    if not is_right:
        raise ValueError("no room for the order of numbers")
    for k in range(ends.shape[0]):
        ends[k] = 0
    with nogil:
        for k in range(count):
            if numbers[k] >= limit:
                is_right = False
                break
            ends[numbers[k] + 1] += 1
        if is_right:
            for k in range(limit):
                ends[k + 1] += ends[k]
            # ends[n] is where the next place of number n goes; behind the loop, where its last one ended
            for k in range(count):
                order[ends[numbers[k]]] = k
                ends[numbers[k]] += 1
            for k in range(limit, 0, -1):
                ends[k] = ends[k - 1]
            ends[0] = 0
    if not is_right:
        raise ValueError("a number is too great for the room")


def gather_runs(
    const uint32_t[::1] values, const int64_t[::1] starts, const uint32_t[::1] counts,
    const int64_t[::1] order, uint32_t[::1] out,
):
    """See posting_lists.pyi."""
    cdef Py_ssize_t k, at, runs = starts.shape[0], room = out.shape[0]
    cdef int64_t filled = 0, count
    cdef bint is_right = counts.shape[0] == runs
    with nogil:
        for k in range(order.shape[0]):
            at = order[k]
            if not is_right or at < 0 or at >= runs:
                is_right = False
                break
            count = counts[at]
            if starts[at] < 0 or starts[at] > values.shape[0] - count or count > room - filled:
                is_right = False
                break
            if count:
                memcpy(&out[filled], &values[starts[at]], 4 * count)
                filled += count
    if not is_right or filled != room:
        raise ValueError("runs of values do not fit their room")


def keep_documents(
    int64_t[::1] ends, uint32_t[::1] docs, uint32_t[::1] frequencies, uint32_t[::1] positions,
    const int64_t[::1] numbers,
):
    """See posting_lists.pyi."""
    cdef Py_ssize_t token, tokens = ends.shape[0] - 1, k
    cdef int64_t start = 0, kept = 0, place = 0, held = 0, each
    cdef bint has_positions = positions.shape[0] > 0, is_right
    is_right = (
        tokens >= 0 and frequencies.shape[0] == docs.shape[0] and ends[tokens] == docs.shape[0]
        and ends[0] == 0
    )
    if not is_right:
        raise ValueError("documents and frequencies differ in number")
    with nogil:
        for token in range(tokens):
            if ends[token + 1] < start or ends[token + 1] > docs.shape[0]:
                is_right = False
                break
            for k in range(start, ends[token + 1]):
                if docs[k] >= numbers.shape[0]:
                    is_right = False
                    break
                if has_positions and frequencies[k] > positions.shape[0] - place:
                    is_right = False
                    break
                if numbers[docs[k]] >= 0:
                    if has_positions:
                        for each in range(frequencies[k]):
                            positions[held + each] = positions[place + each]
                        held += frequencies[k]
                    docs[kept] = <uint32_t>numbers[docs[k]]
                    frequencies[kept] = frequencies[k]
                    kept += 1
                if has_positions:
                    place += frequencies[k]
            if not is_right:
                break
            start = ends[token + 1]
            ends[token + 1] = kept
    if not is_right:
        raise ValueError("posting lists name documents that are not there, or have too few positions")
    return kept, held


def sort_places(
    const uint32_t[::1] tokens, const uint32_t[::1] lengths, const uint32_t[::1] positions,
    int64_t[::1] ends, uint32_t[::1] docs, uint32_t[::1] frequencies, uint32_t[::1] placed,
):
    """See posting_lists.pyi."""
    cdef int64_t k, document, place = 0, count = tokens.shape[0], limit = ends.shape[0] - 1, total = 0
    cdef int64_t start, end, kept = 0, token, at
    cdef bint has_positions = positions.shape[0] > 0, is_right
    for document in range(lengths.shape[0]):
        total += lengths[document]
    is_right = (
        total == count and limit >= 0 and docs.shape[0] == count and frequencies.shape[0] == count
        and placed.shape[0] == positions.shape[0] and (not has_positions or positions.shape[0] == count)
    )
    if not is_right:
        raise ValueError("documents, tokens and positions differ in number, or there is no room for them")
    for k in range(ends.shape[0]):
        ends[k] = 0
    with nogil:
        for k in range(count):
            if tokens[k] >= limit:
                is_right = False
                break
            ends[tokens[k] + 1] += 1
        if is_right:
            for k in range(limit):
                ends[k + 1] += ends[k]
            # ends[n] is where the next place of token n goes
            for document in range(lengths.shape[0]):
                for k in range(place, place + lengths[document]):
                    at = ends[tokens[k]]
                    ends[tokens[k]] = at + 1
                    docs[at] = <uint32_t>document
                    if has_positions:
                        placed[at] = positions[k]
                place += lengths[document]
            # a document that has a token more than once is one
            start = 0
            for token in range(limit):
                end = ends[token]
                ends[token] = kept
                for k in range(start, end):
                    if k > start and docs[k] == docs[kept - 1]:
                        frequencies[kept - 1] += 1
                    else:
                        docs[kept] = docs[k]
                        frequencies[kept] = 1
                        kept += 1
                start = end
            ends[limit] = kept
    if not is_right:
        raise ValueError("a token is too great for the room")
    return kept


def decode_lists(
    const uint8_t[::1] data, const int64_t[::1] blobs, const int64_t[::1] lists,
    const int64_t[::1] counts, int size, bint is_varint, int64_t limit, uint32_t[::1] docs,
    uint32_t[::1] frequencies,
):
    """See posting_lists.pyi."""
    cdef Py_ssize_t number, block, tokens = counts.shape[0], bad = -1
    cdef int64_t at = 0, count, left, k
    cdef int head = 4 if size == 128 else 0
    cdef const uint8_t* begin
    cdef const uint8_t* end
    cdef bint is_whole
    check_ends(data, blobs, blobs.shape[0] - 1)
    if size not in (128, 256) or docs.shape[0] != frequencies.shape[0] or lists.shape[0] != tokens + 1:
        raise ValueError("no such blocks, or no room for them")
    with nogil:
        for number in range(tokens):
            left = counts[number]
            block = lists[number]
            if (
                left < 0 or left > docs.shape[0] - at or block < 0
                or lists[number + 1] > blobs.shape[0] - 1
                or lists[number + 1] - block != (left + size - 1) // size
            ):
                bad = number
                break
            for block in range(lists[number], lists[number + 1]):
                count = min(left, <int64_t>size)
                begin = end = NULL
                is_whole = blobs[block + 1] - blobs[block] > head
                if is_whole:
                    begin = &data[0] + blobs[block] + head
                    end = &data[0] + blobs[block + 1]
                    if count == size:
                        is_whole = full_block(begin, end, size, &docs[at], &frequencies[at])
                    else:
                        is_whole = tail(begin, end, count, is_varint, &docs[at], &frequencies[at])
                if is_whole:
                    for k in range(at if left == counts[number] else at - 1, at + count - 1):
                        if docs[k + 1] <= docs[k]:
                            is_whole = False
                            break
                if not is_whole or docs[at + count - 1] >= limit:
                    bad = number
                    break
                at += count
                left -= count
            if bad >= 0:
                break
    if bad >= 0:
        raise FormatError(f"posting list {bad} of {tokens} is damaged")
    if at != docs.shape[0]:
        raise ValueError("the posting lists do not fill the target")
