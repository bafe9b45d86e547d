"""Values of Pennon's own dataclass are those of the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from pennon.core.fast_dataclass import dataclass


def _classes(make: Callable[..., Any]) -> tuple[type, type, type]:
    @make(frozen=True, slots=True)
    class Plain:
        a: int
        b: str = "b"
        c: list[int] = dataclasses.field(default_factory=list)
        d: int = dataclasses.field(default=4, kw_only=True)

    @make(frozen=True, slots=True)
    class Derived(Plain):
        e: int = 5
        f: dict[str, int] = dataclasses.field(default_factory=dict, init=False)
        g: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "g", self.a + self.e)

    @make(frozen=True, slots=True, eq=False, weakref_slot=True)
    class Empty:
        pass

    return Plain, Derived, Empty


OURS, THEIRS = _classes(dataclass), _classes(dataclasses.dataclass)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, "x"), {}),
    ((1, "x", [3]), {"d": 7}),
    ((), {"a": 1, "c": [2]}),
    ((), {}),
    ((1, 2, 3, 4), {}),
    ((1,), {"z": 1}),
]


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(("arguments", "named"), CALLS)
def test_fast_dataclass_calls_equal_the_standard_library(
    number: int, arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    seen = []
    for classes in (OURS, THEIRS):
        try:
            value = classes[number](*arguments, **named)
        except TypeError as error:
            seen.append(str(error))
        else:
            seen.append(repr(value))
    assert seen[0] == seen[1]


def test_fast_dataclass_has_value_semantics() -> None:
    cls = OURS[1]
    value = cls(1, d=3)
    assert value == cls(1, d=3) != cls(2, d=3)
    assert dataclasses.replace(OURS[0](1), b="c") == OURS[0](1, "c")
    assert copy.copy(value) == value
    assert cls(1).c is not cls(1).c
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.a = 5
    with pytest.raises(AttributeError):
        object.__setattr__(value, "other", 5)
    assert [field.name for field in dataclasses.fields(cls)] == list("abcdefg")
    assert hash(OURS[2]()) != 0


@dataclass(frozen=True, slots=True)
class Known:
    """A value that pickle finds by its name."""

    a: int
    b: tuple[int, ...] = (1, 2)


def test_fast_dataclass_pickles() -> None:
    assert pickle.loads(pickle.dumps(Known(7))) == Known(7)


def test_fast_dataclass_keeps_a_custom_init() -> None:
    @dataclass(frozen=True, slots=True)
    class Own:
        a: int

        def __init__(self) -> None:
            object.__setattr__(self, "a", 9)

    assert Own().a == 9


def test_other_dataclass_options_use_the_standard_library() -> None:
    @dataclass
    class Changing:
        a: int = 1

    changing = Changing()
    changing.a = 2
    assert changing == Changing(2)
