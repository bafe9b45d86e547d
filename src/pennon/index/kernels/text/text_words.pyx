# cython: language_level=3
"""The words of texts, and a number for each that differs from the others.  See text_words.pyi."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

from cpython.bytes cimport PyBytes_FromStringAndSize

cdef enum:
    CLASSES = 0x110000 // 8


cdef inline uint32_t character(const uint8_t* text, int64_t at, int64_t end, int* size) noexcept nogil:
    """Return the character at a place of UTF-8, and how long it is; a byte that begins none is none."""
    cdef uint32_t first = text[at], found
    cdef int more = 0, k
    if first < 0x80:
        size[0] = 1
        return first
    if 0xC2 <= first < 0xE0:
        more, found = 1, first & 0x1F
    elif 0xE0 <= first < 0xF0:
        more, found = 2, first & 0x0F
    elif 0xF0 <= first < 0xF5:
        more, found = 3, first & 0x07
    if more == 0 or end - at <= more:
        size[0] = 1
        return 0xFFFFFFFF
    for k in range(1, more + 1):
        if text[at + k] & 0xC0 != 0x80:
            size[0] = 1
            return 0xFFFFFFFF
        found = found << 6 | (text[at + k] & 0x3F)
    size[0] = more + 1
    return found


cdef inline uint32_t hash_of(const uint8_t* word, int64_t size) noexcept nogil:
    cdef uint64_t found = 0xCBF29CE484222325ULL, part = 0
    cdef int64_t at = 0
    while size - at >= 8:
        memcpy(&part, word + at, 8)
        found = (found ^ part) * 0x9E3779B97F4A7C15ULL
        found ^= found >> 29
        at += 8
    part = 0
    memcpy(&part, word + at, size - at)
    found = (found ^ part ^ <uint64_t>size << 56) * 0x9E3779B97F4A7C15ULL
    return <uint32_t>(found >> 32)


cdef class WordTable:
    """See text_words.pyi."""

    cdef uint8_t* letters
    cdef int64_t* ends  # word i is letters[ends[i]:ends[i + 1]]
    cdef uint32_t* hashes
    cdef int64_t* slots  # a word's number and one more, or 0
    cdef int64_t letter_room, word_room, slot_count, count

    def __cinit__(self):
        self.word_room, self.letter_room, self.slot_count = 1 << 10, 1 << 14, 1 << 12
        self.letters = <uint8_t*>calloc(self.letter_room, 1)
        self.ends = <int64_t*>calloc(self.word_room + 1, 8)
        self.hashes = <uint32_t*>calloc(self.word_room, 4)
        self.slots = <int64_t*>calloc(self.slot_count, 8)
        if not (self.letters and self.ends and self.hashes and self.slots):
            raise MemoryError

    def __dealloc__(self):
        free(self.letters)
        free(self.ends)
        free(self.hashes)
        free(self.slots)

    def __len__(self):
        return self.count

    @property
    def size_bytes(self):
        """See text_words.pyi."""
        return self.letter_room + 12 * self.word_room + 8 * self.slot_count

    def word(self, int64_t number):
        """See text_words.pyi."""
        if not 0 <= number < self.count:
            raise IndexError(f"there is no word {number} of {self.count}")
        cdef int64_t start = self.ends[number]
        return PyBytes_FromStringAndSize(<char*>self.letters + start, self.ends[number + 1] - start)

    cdef bint grow(self, int64_t letters) noexcept nogil:
        """Make room for one more word of so many letters; tell whether there is memory."""
        cdef void* made
        cdef int64_t room = self.letter_room, k, slot
        while room < self.ends[self.count] + letters:
            room *= 2
        if room > self.letter_room:
            made = realloc(self.letters, room)
            if made == NULL:
                return False
            self.letters, self.letter_room = <uint8_t*>made, room
        if self.count == self.word_room:
            made = realloc(self.ends, 8 * (2 * self.word_room + 1))
            if made == NULL:
                return False
            self.ends = <int64_t*>made
            made = realloc(self.hashes, 4 * 2 * self.word_room)
            if made == NULL:
                return False
            self.hashes = <uint32_t*>made
            self.word_room *= 2
        if 2 * self.count >= self.slot_count:
            made = calloc(2 * self.slot_count, 8)
            if made == NULL:
                return False
            free(self.slots)
            self.slots = <int64_t*>made
            self.slot_count *= 2
            for k in range(self.count):
                slot = self.hashes[k] & (self.slot_count - 1)
                while self.slots[slot]:
                    slot = (slot + 1) & (self.slot_count - 1)
                self.slots[slot] = k + 1
        return True

    cdef int64_t number_of(self, const uint8_t* word, int64_t size) noexcept nogil:
        """Return the number of a word, which may be new; -1 if there is no memory."""
        cdef uint32_t mark = hash_of(word, size)
        cdef int64_t slot = mark & (self.slot_count - 1), known
        while self.slots[slot]:
            known = self.slots[slot] - 1
            if (
                self.hashes[known] == mark and self.ends[known + 1] - self.ends[known] == size
                and memcmp(self.letters + self.ends[known], word, size) == 0
            ):
                return known
            slot = (slot + 1) & (self.slot_count - 1)
        if not self.grow(size):
            return -1
        slot = mark & (self.slot_count - 1)
        while self.slots[slot]:
            slot = (slot + 1) & (self.slot_count - 1)
        memcpy(self.letters + self.ends[self.count], word, size)
        self.ends[self.count + 1] = self.ends[self.count] + size
        self.hashes[self.count] = mark
        self.slots[slot] = self.count + 1
        self.count += 1
        return self.count - 1

    def split(
        self, const uint8_t[::1] data, const int64_t[::1] ends, const uint8_t[::1] classes,
        uint32_t[::1] words, uint32_t[::1] counts,
    ):
        """See text_words.pyi."""
        cdef int64_t text, texts = counts.shape[0], at, end, start, found = 0, number = 0, before
        cdef const uint8_t* letters
        cdef uint32_t point
        cdef int size = 1
        cdef bint fits = classes.shape[0] == CLASSES and ends.shape[0] == texts + 1
        if fits and texts:
            fits = ends[0] >= 0 and ends[texts] <= data.shape[0] and ends[texts] >= ends[0]
            fits = fits and words.shape[0] >= (ends[texts] - ends[0] + 1) // 2 + texts
            for text in range(texts):
                fits = fits and ends[text] <= ends[text + 1]
        if not fits:
            raise ValueError("texts do not lie within their bytes, or there is no room for their words")
        if not texts:
            return 0
        with nogil:
            letters = &data[0] if data.shape[0] else NULL
            for text in range(texts):
                at, end, before = ends[text], ends[text + 1], found
                start = -1
                while at < end:
                    point = character(letters, at, end, &size)
                    if point < 0x110000 and classes[point >> 3] >> (point & 7) & 1:
                        if start < 0:
                            start = at
                    elif start >= 0:
                        number = self.number_of(letters + start, at - start)
                        if number < 0:
                            break
                        words[found] = <uint32_t>number
                        found += 1
                        start = -1
                    at += size
                if start >= 0 and number >= 0:
                    number = self.number_of(letters + start, end - start)
                    if number >= 0:
                        words[found] = <uint32_t>number
                        found += 1
                if number < 0:
                    break
                counts[text] = <uint32_t>(found - before)
        if number < 0:
            raise MemoryError
        return found
