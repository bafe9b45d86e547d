# cython: language_level=3
"""The shuffled order of rows, computed for any stretch of positions.  See row_order.pyi."""

from libc.stdint cimport int64_t, uint64_t


cdef enum:
    ROUNDS = 8

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15u
cdef uint64_t SHORT_BLOCK = 0x5851F42D4C957F2Du
cdef uint64_t WINDOW = 0x2545F4914F6CDD1Du

cdef int64_t MOST_ROWS = <int64_t>1 << 62


cdef struct Permutation:
    uint64_t size
    int low_bits
    uint64_t low_mask
    uint64_t high_mask
    uint64_t keys[ROUNDS]


cdef struct Layout:
    int64_t block_rows
    int64_t blocks
    int64_t short_rows  # of the last block of the table
    int64_t short_place  # its place among the shuffled blocks
    int64_t window_blocks
    bint keeps_rows  # in each window
    int64_t short_window
    int64_t short_window_start
    int64_t short_window_end
    Permutation full_blocks


cdef struct Window:
    int64_t number
    int64_t start
    int64_t rows
    int64_t short_start  # the short block's place among the window's rows; none: after all rows
    Permutation inside


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    """Spread every bit over all 64: the last step of SplitMix64."""
    value = (value ^ (value >> 30)) * <uint64_t>0xBF58476D1CE4E5B9u
    value = (value ^ (value >> 27)) * <uint64_t>0x94D049BB133111EBu
    return value ^ (value >> 31)


cdef void key_permutation(Permutation* made, uint64_t size, uint64_t key) noexcept nogil:
    cdef int bits = 0, at
    while bits < 63 and (<uint64_t>1 << bits) < size:
        bits += 1
    made.size = size
    made.low_bits = bits // 2
    made.low_mask = (<uint64_t>1 << made.low_bits) - 1
    made.high_mask = (<uint64_t>1 << (bits - made.low_bits)) - 1
    for at in range(ROUNDS):
        key += GOLDEN
        made.keys[at] = mix(key)


cdef inline uint64_t permuted(const Permutation* by, uint64_t value) noexcept nogil:
    """Walk a Feistel network over the next power of two until a value lies inside."""
    cdef uint64_t low, high
    cdef int at
    if by.size < 2:
        return 0
    while True:
        low, high = value & by.low_mask, value >> by.low_bits
        for at in range(0, ROUNDS, 2):
            high ^= (mix(low ^ by.keys[at]) >> 20) & by.high_mask
            low ^= (mix(high ^ by.keys[at + 1]) >> 20) & by.low_mask
        value = (high << by.low_bits) | low
        if value < by.size:
            return value


cdef void lay_out(
    Layout* made, int64_t rows, int64_t block_rows, int64_t window_blocks, uint64_t key
) noexcept nogil:
    cdef int64_t blocks = (rows - 1) // block_rows + 1, inside
    made.block_rows, made.blocks, made.window_blocks = block_rows, blocks, window_blocks
    made.short_rows = rows - (blocks - 1) * block_rows
    made.short_place = <int64_t>(mix(key ^ SHORT_BLOCK) % <uint64_t>blocks)
    made.short_window = made.short_place // window_blocks
    made.short_window_start = made.short_window * window_blocks * block_rows
    inside = min(window_blocks, blocks - made.short_window * window_blocks)
    made.short_window_end = made.short_window_start + (inside - 1) * block_rows + made.short_rows
    key_permutation(&made.full_blocks, <uint64_t>(blocks - 1), key)


cdef void enter_window(
    Window* made, const Layout* layout, int64_t position, int64_t rows, uint64_t key
) noexcept nogil:
    """Find the window of a position: all before the short block's are full, and all after it but the last."""
    cdef int64_t full = layout.window_blocks * layout.block_rows
    if position < layout.short_window_start:
        made.number = position // full
        made.start, made.rows = made.number * full, full
        made.short_start = full
    elif position < layout.short_window_end:
        made.number = layout.short_window
        made.start = layout.short_window_start
        made.rows = layout.short_window_end - made.start
        made.short_start = (
            layout.short_place - made.number * layout.window_blocks
        ) * layout.block_rows
    else:
        made.number = layout.short_window + 1 + (position - layout.short_window_end) // full
        made.start = (
            layout.short_window_end + (made.number - layout.short_window - 1) * full
        )
        made.rows = min(full, rows - made.start)
        made.short_start = made.rows
    key_permutation(
        &made.inside, <uint64_t>made.rows, mix(key ^ WINDOW) + <uint64_t>made.number * GOLDEN
    )


cdef inline int64_t row_of(
    const Layout* layout, const Window* window, int64_t position
) noexcept nogil:
    cdef int64_t inside = position - window.start, place, offset
    if not layout.keeps_rows:
        inside = <int64_t>permuted(&window.inside, <uint64_t>inside)
    if inside >= window.short_start:
        inside -= window.short_start
        if inside < layout.short_rows:
            return (layout.blocks - 1) * layout.block_rows + inside
        inside += window.short_start + layout.block_rows - layout.short_rows
    place = window.number * layout.window_blocks + inside // layout.block_rows
    offset = inside % layout.block_rows
    if place > layout.short_place:
        place -= 1
    return <int64_t>permuted(&layout.full_blocks, <uint64_t>place) * layout.block_rows + offset


def shuffled_rows(
    int64_t start,
    int64_t rows,
    int64_t block_rows,
    int64_t window_blocks,
    uint64_t key,
    int64_t[::1] out,
):
    """See row_order.pyi."""
    cdef Layout layout
    cdef Window window
    cdef Py_ssize_t at, count = out.shape[0]
    cdef int64_t position
    if not 0 <= rows <= MOST_ROWS or not 1 <= block_rows <= MOST_ROWS:
        raise ValueError(f"an order has 0 to 2**62 rows, and blocks of 1 to 2**62, not {rows}, {block_rows}")
    if start < 0 or start > rows or count > rows - start:
        raise ValueError(f"positions {start} to {start + count} are asked for among {rows} rows")
    if not 0 <= window_blocks <= max(rows, 1):
        raise ValueError(f"a window has 0 to {max(rows, 1)} blocks, not {window_blocks}")
    if not count:
        return
    block_rows = min(block_rows, rows)
    layout.keeps_rows = window_blocks == 0
    window_blocks = min(max(window_blocks, 1), (rows - 1) // block_rows + 1)
    with nogil:
        lay_out(&layout, rows, block_rows, window_blocks, key)
        enter_window(&window, &layout, start, rows, key)
        for at in range(count):
            position = start + at
            if position >= window.start + window.rows:
                enter_window(&window, &layout, position, rows, key)
            out[at] = row_of(&layout, &window, position)
