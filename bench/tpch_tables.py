"""The eight tables of TPC-H, made by numpy: the columns, types, keys, dates and value ranges of its specification.

Names, comments and addresses are words of our own, not those of its program ``dbgen``; the counts of rows are those of the
specification for a scale, with at least 25 suppliers.  Rows are the same for the same scale and seed.  Two parts and two
orders are such that some query finds them, because few rows of a small table are (`FOUND_BY_17`, `FOUND_BY_19`, `FOUND_BY_18`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Parts: TypeAlias = Iterator[tuple[str, pa.Table]]

SEED: Final = 14
"""A seed with which no query's answer is empty, at scales of 0.002 and above (`tests/spark/test_tpch.py`)."""
ORDERS_OF_A_PART: Final = 250_000
"""Orders, with their line items, are made in parts, so that memory does not grow with the scale."""
MONEY: Final = pa.decimal128(12, 2)
_EPOCH: Final = date(1970, 1, 1)


def _day(year: int, month: int, day: int) -> int:
    return (date(year, month, day) - _EPOCH).days


FIRST_ORDER, LAST_ORDER = _day(1992, 1, 1), _day(1998, 8, 2)
TODAY: Final = _day(1995, 6, 17)
"""The specification's "current date": what was shipped before has been received."""

TABLES: Final = (
    "region",
    "nation",
    "supplier",
    "part",
    "partsupp",
    "customer",
    "orders",
    "lineitem",
)

NATIONS: Final = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0),
    ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2),
    ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
"""Each nation, and the key of its region; a nation's key is its place."""
REGIONS: Final = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS: Final = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES: Final = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS: Final = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
MODES: Final = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
TYPES: Final = tuple(
    f"{size} {finish} {metal}"
    for size in ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
    for finish in ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
    for metal in ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
)
CONTAINERS: Final = tuple(
    f"{size} {kind}"
    for size in ("JUMBO", "LG", "MED", "SM", "WRAP")
    for kind in ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
)
COLOURS: Final = (
    "almond", "antique", "aquamarine", "azure", "beige", "black", "blue", "brown", "chocolate", "coral", "cream", "cyan",
    "dark", "firebrick", "forest", "ghost", "gold", "green", "grey", "honeydew", "indian", "ivory", "khaki", "lace",
    "lavender", "lemon", "lime", "linen", "magenta", "maroon", "mint", "misty", "navy", "olive", "orange", "orchid", "pale",
    "peach", "pink", "plum", "powder", "puff", "purple", "red", "rose", "rosy", "salmon", "sandy", "sienna", "sky", "slate",
    "smoke", "snow", "steel", "tan", "thistle", "tomato", "turquoise", "violet", "wheat", "white", "yellow",
)  # fmt: skip
WORDS: Final = (
    "packages", "requests", "accounts", "deposits", "foxes", "ideas", "theodolites", "instructions", "dependencies", "excuses",
    "platelets", "asymptotes", "courts", "dolphins", "multipliers", "warthogs", "frets", "dinos", "attainments", "sleep", "wake",
    "haggle", "nag", "use", "boost", "affix", "detect", "integrate", "cajole", "engage", "furious", "sly", "careful", "blithe",
    "quick", "fluffy", "slow", "quiet", "ruthless", "thin", "close", "dogged", "daring", "brave", "stealthy", "permanent",
    "enticing", "idle", "busy", "regular", "final", "ironic", "even", "bold", "silent", "special", "pending", "express",
    "about", "above", "according to", "across", "after", "against", "along", "among", "around", "between", "beyond",
)  # fmt: skip
FOUND_BY_17, FOUND_BY_19 = 1, 2
"""The keys of parts: one of Brand#23 in a medium box, one of Brand#12 in a small case, which the first order has."""
FOUND_BY_18: Final = 2
"""The key of an order that has seven lines of 50."""
TEXT_BYTES: Final = 1 << 22
"""The text of which comments are slices."""
LETTERS: Final = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ, ", np.uint8
)


def make_tables(scale: float, seed: int = SEED) -> Parts:
    """Yield the name and the rows of each table; tables of many rows come in several parts."""
    maker = Maker(Counts.of(scale), seed, _text(np.random.default_rng((seed, 0))))
    yield "region", maker.region()
    yield "nation", maker.nation()
    yield "supplier", maker.supplier()
    yield "part", maker.part()
    yield "partsupp", maker.partsupp()
    yield "customer", maker.customer()
    for number, first in enumerate(range(0, maker.counts.orders, ORDERS_OF_A_PART)):
        last = min(first + ORDERS_OF_A_PART, maker.counts.orders)
        yield from maker.orders_and_lines(number, np.arange(first, last))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows the tables have; there are four suppliers of each part, and one to seven lines of an order."""

    suppliers: int
    parts: int
    customers: int
    orders: int
    clerks: int

    @classmethod
    def of(cls, scale: float) -> Counts:
        """Return the counts of a scale."""
        return cls(
            suppliers=max(round(10_000 * scale), len(NATIONS)),
            parts=max(round(200_000 * scale), 100),
            customers=max(round(150_000 * scale), 100),
            orders=max(round(1_500_000 * scale), 100),
            clerks=max(round(1000 * scale), 1),
        )


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the rows of each table; every table, and every part of one, has random numbers of its own."""

    counts: Counts
    seed: int
    text: bytes

    def region(self) -> pa.Table:
        """Return the five regions."""
        random = self._random(1)
        keys = np.arange(len(REGIONS))
        return pa.table(
            {
                "r_regionkey": keys,
                "r_name": list(REGIONS),
                "r_comment": self._comments(random, len(keys), 31, 115),
            }
        )

    def nation(self) -> pa.Table:
        """Return the 25 nations."""
        random = self._random(2)
        keys = np.arange(len(NATIONS))
        return pa.table(
            {
                "n_nationkey": keys,
                "n_name": [name for name, _ in NATIONS],
                "n_regionkey": np.array([region for _, region in NATIONS]),
                "n_comment": self._comments(random, len(keys), 31, 114),
            }
        )

    def supplier(self) -> pa.Table:
        """Return the suppliers; five of 10,000 have complaints in their comment, and as many recommendations."""
        random, count = self._random(3), self.counts.suppliers
        keys = np.arange(1, count + 1)
        nations = random.permutation(keys % len(NATIONS))
        comments = self._comments(random, count, 25, 100).to_pylist()
        praised = max(count // 2000, 1)
        for number, at in enumerate(random.choice(count, 2 * praised, replace=False)):
            word = "Recommends" if number % 2 else "Complaints"
            comments[at] = f"{comments[at][:10]}Customer {comments[at][10:15]}{word}"
        return pa.table(
            {
                "s_suppkey": keys,
                "s_name": _numbered("Supplier", keys),
                "s_address": _addresses(random, count),
                "s_nationkey": nations,
                "s_phone": _phones(random, nations),
                "s_acctbal": _money(random.integers(-99_999, 999_999, count, endpoint=True)),
                "s_comment": comments,
            }
        )

    def part(self) -> pa.Table:
        """Return the parts."""
        random, count = self._random(4), self.counts.parts
        keys = np.arange(1, count + 1)
        makers = random.integers(1, 5, count, endpoint=True)
        brands = 10 * makers + random.integers(1, 5, count, endpoint=True)
        sizes = random.integers(1, 50, count, endpoint=True)
        containers = random.integers(0, len(CONTAINERS), count)
        for key, (brand, container) in {
            FOUND_BY_17: (23, "MED BOX"),
            FOUND_BY_19: (12, "SM CASE"),
        }.items():
            makers[key - 1], brands[key - 1], sizes[key - 1] = brand // 10, brand, 3
            containers[key - 1] = CONTAINERS.index(container)
        return pa.table(
            {
                "p_partkey": keys,
                "p_name": _names(random, count),
                "p_mfgr": _chosen([f"Manufacturer#{each}" for each in range(6)], makers),
                "p_brand": _chosen([f"Brand#{each}" for each in range(56)], brands),
                "p_type": _chosen(TYPES, random.integers(0, len(TYPES), count)),
                "p_size": sizes.astype(np.int32),
                "p_container": _chosen(CONTAINERS, containers),
                "p_retailprice": _money(_price(keys)),
                "p_comment": self._comments(random, count, 5, 22),
            }
        )

    def partsupp(self) -> pa.Table:
        """Return the four suppliers of each part."""
        random = self._random(5)
        parts = np.repeat(np.arange(1, self.counts.parts + 1), 4)
        count = len(parts)
        return pa.table(
            {
                "ps_partkey": parts,
                "ps_suppkey": self._supplier_of(parts, np.arange(count) % 4),
                "ps_availqty": random.integers(1, 9999, count, endpoint=True).astype(np.int32),
                "ps_supplycost": _money(random.integers(100, 100_000, count, endpoint=True)),
                "ps_comment": self._comments(random, count, 49, 198),
            }
        )

    def customer(self) -> pa.Table:
        """Return the customers."""
        random, count = self._random(6), self.counts.customers
        keys = np.arange(1, count + 1)
        nations = random.integers(0, len(NATIONS), count)
        return pa.table(
            {
                "c_custkey": keys,
                "c_name": _numbered("Customer", keys),
                "c_address": _addresses(random, count),
                "c_nationkey": nations,
                "c_phone": _phones(random, nations),
                "c_acctbal": _money(random.integers(-99_999, 999_999, count, endpoint=True)),
                "c_mktsegment": _chosen(SEGMENTS, random.integers(0, len(SEGMENTS), count)),
                "c_comment": self._comments(random, count, 29, 116),
            }
        )

    def orders_and_lines(self, part: int, places: Ints) -> Parts:
        """Yield some orders, by their places among all, and then their line items.

        Of 32 keys the first 8 are used, and a third of the customers has no orders, as the specification says.
        """
        random = self._random(7, part)
        count = len(places)
        keys = places // 8 * 32 + places % 8 + 1
        days = random.integers(FIRST_ORDER, LAST_ORDER, count, endpoint=True)
        lines = random.integers(1, 7, count, endpoint=True)
        lines[keys == FOUND_BY_18] = 7
        made = self._lines(random, np.repeat(keys, lines), np.repeat(days, lines), lines)
        starts = np.concatenate(([0], np.cumsum(lines)[:-1]))
        customers = random.integers(0, self.counts.customers // 3, count) * 3
        customers += random.integers(1, 2, count, endpoint=True)
        open_lines = np.add.reduceat(made.is_open.astype(np.int64), starts)
        status = np.where(open_lines == 0, 0, np.where(open_lines == lines, 1, 2))
        yield (
            "orders",
            pa.table(
                {
                    "o_orderkey": keys,
                    "o_custkey": customers,
                    "o_orderstatus": _chosen(["F", "O", "P"], status),
                    "o_totalprice": _money(np.add.reduceat(made.charges, starts)),
                    "o_orderdate": _dates(days),
                    "o_orderpriority": _chosen(PRIORITIES, random.integers(0, 5, count)),
                    "o_clerk": _numbered(
                        "Clerk", random.integers(1, self.counts.clerks, count, endpoint=True)
                    ),
                    "o_shippriority": np.zeros(count, np.int32),
                    "o_comment": self._comments(random, count, 19, 78),
                }
            ),
        )
        yield "lineitem", made.rows

    def _lines(self, random: np.random.Generator, keys: Ints, days: Ints, lines: Ints) -> Lines:
        count = len(keys)
        numbers = np.arange(count) - np.repeat(np.cumsum(lines) - lines, lines) + 1
        parts = random.integers(1, self.counts.parts, count, endpoint=True)
        quantities = random.integers(1, 50, count, endpoint=True)
        modes, instructions = random.integers(0, 7, count), random.integers(0, 4, count)
        quantities[keys == FOUND_BY_18] = 50
        is_found = (keys == 1) & (numbers == 1)
        parts[is_found], quantities[is_found] = FOUND_BY_19, 5
        modes[is_found] = MODES.index("AIR")
        instructions[is_found] = INSTRUCTIONS.index("DELIVER IN PERSON")
        prices = quantities * _price(parts)
        discounts = random.integers(0, 10, count, endpoint=True)
        taxes = random.integers(0, 8, count, endpoint=True)
        shipped = days + random.integers(1, 121, count, endpoint=True)
        received = shipped + random.integers(1, 30, count, endpoint=True)
        is_open = shipped > TODAY
        returned = np.where(received <= TODAY, random.integers(0, 2, count), 2)
        rows = pa.table(
            {
                "l_orderkey": keys,
                "l_partkey": parts,
                "l_suppkey": self._supplier_of(parts, random.integers(0, 4, count)),
                "l_linenumber": numbers.astype(np.int32),
                "l_quantity": _money(quantities * 100),
                "l_extendedprice": _money(prices),
                "l_discount": _money(discounts),
                "l_tax": _money(taxes),
                "l_returnflag": _chosen(["A", "R", "N"], returned),
                "l_linestatus": _chosen(["F", "O"], is_open.astype(np.int64)),
                "l_shipdate": _dates(shipped),
                "l_commitdate": _dates(days + random.integers(30, 90, count, endpoint=True)),
                "l_receiptdate": _dates(received),
                "l_shipinstruct": _chosen(INSTRUCTIONS, instructions),
                "l_shipmode": _chosen(MODES, modes),
                "l_comment": self._comments(random, count, 10, 43),
            }
        )
        charges = prices * (100 - discounts) * (100 + taxes) // 10_000
        return Lines(rows, charges, is_open)

    def _supplier_of(self, parts: Ints, numbers: Ints) -> Ints:
        """Return the key of one of the four suppliers of each part, by its number from 0 to 3."""
        count = self.counts.suppliers
        return (parts + numbers * (count // 4 + (parts - 1) // count)) % count + 1

    def _comments(self, random: np.random.Generator, count: int, least: int, most: int) -> pa.Array:
        """Return texts of some length: slices of one long text."""
        sizes = random.integers(least, most, count, endpoint=True)
        starts = random.integers(0, len(self.text) - most, count)
        return _slices(np.frombuffer(self.text, np.uint8), starts, sizes)

    def _random(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *numbers))


@dataclass(frozen=True, slots=True)
class Lines:
    """Line items: their rows, what is charged for each (in cents), and whether it has not been shipped yet."""

    rows: pa.Table
    charges: Ints
    is_open: np.ndarray[Any, np.dtype[np.bool_]]


def _text(random: np.random.Generator) -> bytes:
    words = np.array(WORDS)[random.integers(0, len(WORDS), TEXT_BYTES // 6)]
    return " ".join(words.tolist()).encode()[:TEXT_BYTES]


def _slices(letters: np.ndarray[Any, np.dtype[np.uint8]], starts: Ints, sizes: Ints) -> pa.Array:
    """Return parts of a text as strings."""
    ends = np.cumsum(sizes)
    within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    values = letters[np.repeat(starts, sizes) + within]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.string(), len(sizes), buffers)


def _addresses(random: np.random.Generator, count: int) -> pa.Array:
    sizes = random.integers(10, 40, count, endpoint=True)
    letters = LETTERS[random.integers(0, len(LETTERS), int(sizes.sum()))]
    return _slices(letters, np.cumsum(sizes) - sizes, sizes)


def _numbered(word: str, keys: Ints) -> list[str]:
    return [f"{word}#{key:09}" for key in keys.tolist()]


def _phones(random: np.random.Generator, nations: Ints) -> list[str]:
    """Return numbers whose first two digits are the nation's key and ten."""
    digits = random.integers((100, 100, 1000), (999, 999, 9999), (len(nations), 3), endpoint=True)
    return [
        f"{nation + 10}-{a}-{b}-{c}"
        for nation, (a, b, c) in zip(nations.tolist(), digits.tolist(), strict=True)
    ]


def _names(random: np.random.Generator, count: int) -> list[str]:
    """Return names of five colours, no two alike."""
    chosen = random.random((count, len(COLOURS))).argpartition(5, axis=1)[:, :5]
    chosen = random.permuted(chosen, axis=1)
    return [" ".join(each) for each in np.array(COLOURS)[chosen].tolist()]


def _price(parts: Ints) -> Ints:
    """Return the retail price of parts, in cents."""
    return 90_000 + parts // 10 % 20_001 + 100 * (parts % 1000)


def _chosen(values: Sequence[str], places: Ints) -> pa.Array:
    return pa.array(values).take(pa.array(places))


def _dates(days: Ints) -> pa.Array:
    return pa.array(days.astype(np.int32)).view(pa.date32())


def _money(cents: Ints) -> pa.Array:
    """Return decimals of two digits behind the point."""
    words = np.stack([cents, cents >> 63], axis=1).astype("<i8")
    return pa.Array.from_buffers(
        MONEY, len(cents), [None, pa.py_buffer(np.ascontiguousarray(words))]
    )
