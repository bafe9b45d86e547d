# cython: language_level=3
"""Scoring documents of posting lists: any of some tokens, all, all in a row.  See best_documents.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from pennon.index.kernels.text.document_bits cimport Members, keep_members, open_members, rank_of

cdef extern from *:
    int __builtin_ctzll(unsigned long long) nogil

cdef enum:
    BLOCK = 128
    WINDOW = 2048
    NEAR = 8

# Sums of floats come out a little different by their order.
cdef float SLACK = <float>1.00001


cdef PostingList* open_lists(list docs, list shares, list tops, const float[::1] weights) except NULL:
    """Return the lists, which the caller frees and whose arrays he keeps."""
    cdef Py_ssize_t number, count = len(docs)
    cdef const uint32_t[::1] some_docs
    cdef const float[::1] some_shares
    cdef const float[::1] some_tops
    cdef PostingList* lists
    if not count or len(shares) != count or len(tops) != count or weights.shape[0] != count:
        raise ValueError("posting lists, their scores and weights differ in number")
    lists = <PostingList*>calloc(count, sizeof(PostingList))
    if lists == NULL:
        raise MemoryError
    try:
        for number in range(count):
            some_docs, some_shares, some_tops = docs[number], shares[number], tops[number]
            if (
                some_shares.shape[0] != some_docs.shape[0]
                or some_tops.shape[0] != (some_docs.shape[0] + BLOCK - 1) // BLOCK
            ):
                raise ValueError("documents and scores differ in number")
            if some_docs.shape[0]:
                lists[number].docs = &some_docs[0]
                lists[number].shares = &some_shares[0]
                lists[number].tops = &some_tops[0]
            lists[number].count = some_docs.shape[0]
            lists[number].weight = weights[number]
    except BaseException:
        free(lists)
        raise
    return lists


cdef int64_t reach(const uint32_t* docs, int64_t at, int64_t count, int64_t doc) noexcept nogil:
    """Return the first place from ``at`` on whose document is not below one: some steps, which then double."""
    cdef int64_t step = 1, low, high = min(at + NEAR, count), middle
    while at < high and docs[at] < doc:
        at += 1
    if at < high or at >= count:
        return at
    if docs[at] >= doc:
        return at
    low = at
    while low + step < count and docs[low + step] < doc:
        low += step
        step *= 2
    high = min(low + step, count)
    low += 1
    while low < high:
        middle = (low + high) // 2
        if docs[middle] < doc:
            low = middle + 1
        else:
            high = middle
    return low


cdef void find_top(PostingList* each, float factor) noexcept nogil:
    """Find the most that a document may get of a list, so many times; no less than nothing."""
    cdef int64_t block
    for block in range((each.count + BLOCK - 1) // BLOCK):
        each.top = max(each.top, each.tops[block])
    each.top = max(each.top * each.weight * factor, <float>0)


cdef float most_of(PostingList* each, int64_t end) noexcept nogil:
    """Return the most that a document from the list's place on, and before ``end``, may get of it."""
    cdef int64_t block = each.at // BLOCK, last
    cdef float found = 0
    if each.at >= each.count or each.docs[each.at] >= end:
        return 0
    while True:
        found = max(found, each.tops[block])
        last = min((block + 1) * BLOCK, each.count)
        if last == each.count or each.docs[last] >= end:
            return found * each.weight
        block += 1


cdef int64_t take_of_one(
    PostingList* each, Limit* limit, int64_t documents, int64_t room
) noexcept nogil:
    """Look at the documents of the only list; return where to go on."""
    cdef int64_t block, last, k
    while each.at < each.count and each.docs[each.at] < documents:
        block = each.at // BLOCK
        last = min((block + 1) * BLOCK, each.count)
        if limit.filled + BLOCK > room:
            return each.docs[each.at]
        if may_be(limit, each.tops[block] * each.weight):
            for k in range(each.at, last):
                if each.docs[k] < documents:
                    take(limit, each.docs[k], each.shares[k] * each.weight)
        each.at = last
    return documents


cdef float sum_of(PostingList* lists, Py_ssize_t first, Py_ssize_t end, int64_t doc) noexcept nogil:
    """Return what lists give a document, which is not below the last one that was asked for."""
    cdef PostingList* each
    cdef Py_ssize_t number
    cdef float score = 0
    for number in range(first, end):
        each = &lists[number]
        each.probe = reach(each.docs, each.probe, each.count, doc)
        if each.probe < each.count and each.docs[each.probe] == doc:
            score += each.weight * each.shares[each.probe]
    return score


cdef float leave_out(PostingList* lists, Py_ssize_t count, Limit* limit) noexcept nogil:
    """Mark the lists that together give no document enough, the lesser ones first; return what they give."""
    cdef float rest = 0, most
    cdef Py_ssize_t number, least
    for number in range(count):
        if lists[number].is_left_out:
            rest += lists[number].top
    while True:
        least = -1
        for number in range(count):
            if not lists[number].is_left_out and (least < 0 or lists[number].top < lists[least].top):
                least = number
        if least < 0:
            return rest
        most = 0
        for number in range(count):
            if lists[number].is_left_out or number == least:
                most += lists[number].top
        if may_be(limit, most * SLACK):
            return rest
        lists[least].is_left_out = True
        rest = most


cdef int64_t take_of_windows(
    PostingList* lists, Py_ssize_t count, Py_ssize_t beside, float factor, Limit* limit, int64_t low,
    int64_t documents, int64_t room,
) noexcept nogil:
    """Look at the documents of lists, a window after the other; return where to go on.

    The last ``beside`` of them are left out from the start: they change scores, and add no documents.
    """
    cdef PostingList* each
    cdef Py_ssize_t number
    cdef int64_t end, k, word, place
    cdef float most, rest, score
    cdef float scores[WINDOW]
    cdef uint64_t found[32]  # a bit for each
    memset(found, 0, sizeof(found))
    while low < documents and limit.filled + WINDOW <= room:
        rest = leave_out(lists, count, limit)
        end = documents
        for number in range(count):
            each = &lists[number]
            if not each.is_left_out and each.at < each.count and each.docs[each.at] < end:
                end = each.docs[each.at]
        low = max(low, end)
        if low >= documents:
            break
        end = min(low + WINDOW, documents)
        most = rest
        for number in range(count):
            if not lists[number].is_left_out:
                most += most_of(&lists[number], end)
        if not may_be(limit, most * SLACK):
            for number in range(count):
                each = &lists[number]
                if not each.is_left_out:
                    each.at = reach(each.docs, each.at, each.count, end)
            low = end
            continue
        memset(scores, 0, 4 * (end - low))
        for number in range(count):
            each = &lists[number]
            if each.is_left_out:
                continue
            each.probe = k = each.at
            while k < each.count and each.docs[k] < end:
                place = each.docs[k] - low
                if place >= 0:
                    found[place >> 6] |= <uint64_t>1 << (place & 63)
                    scores[place] += each.weight * each.shares[k]
                k += 1
            each.at = k
        for word in range((end - low + 63) >> 6):
            while found[word]:
                place = (word << 6) + __builtin_ctzll(found[word])
                found[word] &= found[word] - 1
                if rest == 0 and beside == 0:
                    take(limit, low + place, scores[place])
                elif may_be(limit, (scores[place] + rest) * SLACK):
                    score = sum_of(lists, 0, count - beside, low + place)
                    if beside:
                        score += factor * sum_of(lists, count - beside, count, low + place)
                    take(limit, low + place, score)
        low = end
    return low


def score_any(
    list docs, list shares, list tops, const float[::1] weights, int64_t start, int64_t documents,
    float least, const uint8_t[::1] seen, float[::1] heap, bint first_wins, uint32_t[::1] out_docs,
    float[::1] out_scores, Py_ssize_t beside=0, float factor=1,
):
    """See best_documents.pyi."""
    cdef PostingList* lists
    cdef PostingList* each
    cdef Py_ssize_t number, count = len(docs)
    cdef int64_t room = out_docs.shape[0], end
    if not 0 <= beside < max(count, 1):
        raise ValueError("no list has documents to be found")
    cdef Limit limit
    if room < WINDOW or out_scores.shape[0] != room:
        raise ValueError("no room for the documents of a window")
    if start < 0 or documents >> 32 or not (seen.shape[0] == 0 or seen.shape[0] >= documents):
        raise ValueError("no such documents")
    memset(&limit, 0, sizeof(Limit))
    limit.least = least
    limit.most = heap.shape[0]
    limit.heap = &heap[0] if limit.most else NULL
    limit.first_wins = first_wins
    limit.seen = &seen[0] if seen.shape[0] else NULL
    limit.docs, limit.scores = &out_docs[0], &out_scores[0]
    lists = open_lists(docs, shares, tops, weights)
    with nogil:
        for number in range(count):
            each = &lists[number]
            each.at = each.probe = reach(each.docs, 0, each.count, start)
            each.is_left_out = number >= count - beside
            find_top(each, factor if each.is_left_out else <float>1)
        if count == 1:
            end = take_of_one(&lists[0], &limit, documents, room)
        else:
            end = take_of_windows(
                lists, count, beside, factor, &limit, start, documents, room
            )
    free(lists)
    return end, limit.filled


cdef void by_length(PostingList* lists, Py_ssize_t count, Py_ssize_t* order) noexcept nogil:
    """Put the numbers of lists into the order of their lengths."""
    cdef Py_ssize_t number, at
    for number in range(count):
        at = number
        while at and lists[order[at - 1]].count > lists[number].count:
            order[at] = order[at - 1]
            at -= 1
        order[at] = number


cdef struct Reached:
    uint32_t* places
    int64_t room


cdef enum:
    NOT_IN_A_ROW = 0
    IN_A_ROW = 1
    NO_PLACES = 2
    NO_MEMORY = 3


cdef inline bint has_places(PostingList* each) noexcept nogil:
    """Tell whether the positions of the document that a list is at lie within those of the list."""
    return 0 <= each.ends[each.at] <= each.ends[each.at + 1] <= each.place_count


cdef int is_in_a_row(
    PostingList* lists, Py_ssize_t count, const int64_t* steps, int64_t slop, Reached* reached
) noexcept nogil:
    """Tell whether the document that the lists are at has their tokens in order.

    Of each token those places are kept that one of the token before leads to.
    """
    cdef PostingList* each = &lists[0]
    cdef int64_t k, place, before, kept, at, most
    cdef Py_ssize_t number
    cdef void* made
    if not has_places(each):
        return NO_PLACES
    before = most = each.ends[each.at + 1] - each.ends[each.at]
    for number in range(1, count):
        each = &lists[number]
        if not has_places(each):
            return NO_PLACES
        most = max(most, each.ends[each.at + 1] - each.ends[each.at])
    if 2 * most > reached.room:
        made = realloc(reached.places, 8 * most)
        if made == NULL:
            return NO_MEMORY
        reached.places, reached.room = <uint32_t*>made, 2 * most
    each = &lists[0]
    for k in range(before):
        reached.places[k] = each.places[each.ends[each.at] + k]
    for number in range(1, count):
        each = &lists[number]
        kept = at = 0
        for k in range(each.ends[each.at], each.ends[each.at + 1]):
            place = <int64_t>each.places[k] - steps[number]
            while at + 1 < before and reached.places[at + 1] <= place:
                at += 1
            if (
                place >= 0 and at < before and reached.places[at] <= place
                and place - reached.places[at] <= slop
            ):
                # what is written lies behind what is read no more: one place for one of this list
                reached.places[before + kept] = each.places[k]
                kept += 1
        for k in range(kept):
            reached.places[k] = reached.places[before + k]
        before = kept
        if not kept:
            return NOT_IN_A_ROW
    return IN_A_ROW


def score_every(
    list docs, list shares, list tops, const float[::1] weights, int64_t documents, float least,
    const uint8_t[::1] seen, float[::1] heap, bint first_wins, list ends, list places,
    const int64_t[::1] steps, int64_t slop, uint32_t[::1] out_docs, float[::1] out_scores,
    list bits, list ranks,
):
    """See best_documents.pyi."""
    cdef PostingList* lists
    cdef PostingList* each
    cdef PostingList* first
    cdef Py_ssize_t number, turn, held, place, count = len(docs)
    cdef Py_ssize_t* order = NULL
    cdef int64_t k, doc, block
    cdef uint8_t places_held[BLOCK]
    cdef Members* members = NULL
    cdef bint in_order = len(ends) > 0, has_all
    cdef int state = IN_A_ROW
    cdef float score, rest = 0
    cdef Limit limit
    cdef Reached reached
    cdef const int64_t[::1] some_ends
    cdef const uint32_t[::1] some_places
    if documents >> 32 or not (seen.shape[0] == 0 or seen.shape[0] >= documents):
        raise ValueError("no such documents")
    if in_order and (len(ends) != count or len(places) != count or steps.shape[0] != count):
        raise ValueError("posting lists and their positions differ in number")
    memset(&reached, 0, sizeof(Reached))
    lists = open_lists(docs, shares, tops, weights)
    try:
        members = open_members(bits, ranks, count, documents)
        order = <Py_ssize_t*>calloc(count, sizeof(Py_ssize_t))
        if order == NULL:
            raise MemoryError
        by_length(lists, count, order)
        first = &lists[order[0]]
        if out_docs.shape[0] < first.count or out_scores.shape[0] != out_docs.shape[0]:
            raise ValueError("no room for the documents")
        for number in range(count if in_order else 0):
            some_ends, some_places = ends[number], places[number]
            if some_ends.shape[0] != lists[number].count + 1:
                raise ValueError("positions are not those of the documents")
            lists[number].ends = &some_ends[0]
            lists[number].place_count = some_places.shape[0]
            if some_places.shape[0]:
                lists[number].places = &some_places[0]
        memset(&limit, 0, sizeof(Limit))
        limit.least, limit.most, limit.first_wins = least, heap.shape[0], first_wins
        limit.heap = &heap[0] if limit.most else NULL
        limit.seen = &seen[0] if seen.shape[0] else NULL
        if out_docs.shape[0]:
            limit.docs, limit.scores = &out_docs[0], &out_scores[0]
        with nogil:
            for number in range(count):
                find_top(&lists[number], 1)
            for turn in range(count - 1, 0, -1):
                lists[order[turn]].others = rest
                rest += lists[order[turn]].top
            for block in range((first.count + BLOCK - 1) // BLOCK):
                if not may_be(&limit, (first.tops[block] * first.weight + rest) * SLACK):
                    continue
                k = block * BLOCK
                held = min(<int64_t>BLOCK, first.count - k)
                for place in range(held):
                    places_held[place] = <uint8_t>place
                for turn in range(1, count):
                    if members[order[turn]].words != NULL:
                        held = keep_members(
                            &members[order[turn]], &first.docs[k], places_held, held, documents
                        )
                for place in range(held):
                    first.at = k + places_held[place]
                    doc = first.docs[first.at]
                    # with each list that is asked, less is possible: most documents are out before the last
                    score = first.weight * first.shares[first.at]
                    has_all = doc < documents and may_be(&limit, (score + rest) * SLACK)
                    turn = 1
                    while has_all and turn < count:
                        each = &lists[order[turn]]
                        if members[order[turn]].words != NULL:
                            each.at = rank_of(&members[order[turn]], doc)
                        else:
                            each.at = reach(each.docs, each.at, each.count, doc)
                        has_all = each.at < each.count and each.docs[each.at] == doc
                        if has_all:
                            score += each.weight * each.shares[each.at]
                            has_all = may_be(&limit, (score + each.others) * SLACK)
                        turn += 1
                    if not has_all:
                        continue
                    score = 0
                    for number in range(count):
                        score += lists[number].weight * lists[number].shares[lists[number].at]
                    if not may_be(&limit, score) or (limit.seen != NULL and not limit.seen[doc]):
                        continue
                    if in_order:
                        state = is_in_a_row(lists, count, &steps[0], slop, &reached)
                        if state > IN_A_ROW:
                            break
                        if state == NOT_IN_A_ROW:
                            continue
                    take(&limit, doc, score)
                if state > IN_A_ROW:
                    break
        if state == NO_PLACES:
            raise ValueError("positions are not those of the documents")
        if state == NO_MEMORY:
            raise MemoryError
    finally:
        free(lists)
        free(order)
        free(members)
        free(reached.places)
    return limit.filled
