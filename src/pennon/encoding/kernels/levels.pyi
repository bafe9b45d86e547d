"""Repetition and definition levels to validity bitmaps and offsets, one layer at a time.

Levels are counted from the innermost layer, which is 0 (see `pennon.encoding.v2_1.unravel`).
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
LevelArray: TypeAlias = npt.NDArray[np.uint16]

def validity_of(definition: LevelArray, visible: Bytes, valid_to: int) -> tuple[Bytes, int, int]:
    """Return the validity bitmap of a layer of values or structs, its slots, and how many are NULL.

    Levels ``l`` with ``visible[l]`` of 0 have no slot in this layer; a slot is valid if its level is
    at most ``valid_to``.  Raises FormatError if a level is not below ``len(visible)``.
    """

def lists_of(
    rep: LevelArray,
    definition: LevelArray | None,
    valid_to: int,
    empty_level: int,
    highest: int,
    wide: bool,
    is_outermost: bool = False,
    has_nulls: bool = True,
) -> tuple[npt.NDArray[np.int32 | np.int64], Bytes | None, LevelArray, LevelArray | None]:
    """Return offsets and validity of a layer of lists, and the levels of the layers around it.

    A repetition level of 0 goes on with a list, others begin one.  What begins at a definition level

    - up to ``valid_to`` is a list that has items,
    - of ``empty_level`` is an empty list (-1: there are none),
    - above ``highest`` has no slot in this layer, its meaning is one for the layers around,
    - else is NULL.

    Offsets are int64 if ``wide``, else int32.  If the layer ``is_outermost``, the levels of those
    around it are none; if it has no NULLs (``has_nulls``), nor has it a validity.  Raises FormatError if the levels begin within a list.
    """

def every_nth(
    rep: LevelArray, definition: LevelArray, visible: Bytes, dimension: int
) -> tuple[LevelArray | None, LevelArray]:
    """Return the levels of fixed-size lists: those of the first of every ``dimension`` items.

    Levels without a slot stay.  ``rep`` may be empty: no lists around.  Raises FormatError if the
    items are no whole lists.
    """
