"""Functions of JSON: what lies at a path, or under a key.

::

    $.user.tags[0]    a member, an element; ``$`` may be left out, and so may the first dot
    $."a b"  $["c.d"] members of any name
    $.tags[last - 1]  counted from the end
    $.tags[0 to 2, 5] several elements; ``[*]`` all of them, ``.*`` all members

What lies at several places is an array of it.  Conditions (``? (@.n > 1)``) are not understood.  JSON is text here, as columns of it are shown, or JSONB, as ``json_get`` gives it.

Source: measured on pylance 14.0.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import pyarrow as pa

from pennon.encoding.jsonb import decode_jsonb, encode_jsonb
from pennon.errors import ArgumentError
from pennon.expr.rowwise import Entry, Run, by_row
from pennon.expr.types import is_bytes, is_text

Step: TypeAlias = Callable[[Any], Iterator[Any]]
_PLACE: Final = r"(?:-?\d+|last(?:\s*-\s*\d+)?)"
_PLACES: Final = rf"{_PLACE}(?:\s+to\s+{_PLACE})?"
_STEP: Final = re.compile(
    rf"""[.:]?(?P<quoted>"(?:[^"\\]|\\.)*")
    | \.(?P<members>\*)
    | [.:]?(?P<name>[^\s.:\[\]"'$@?*()]+)
    | \[\s*(?P<key>"(?:[^"\\]|\\.)*"|'[^']*')\s*\]
    | \[\s*(?P<all>\*)\s*\]
    | \[\s*(?P<places>{_PLACES}(?:\s*,\s*{_PLACES})*)\s*\]
    """,
    re.VERBOSE,
)
_WORDS: Final = {"true": True, "yes": True, "false": False, "no": False}


# --- paths ----------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _parse(path: str) -> tuple[Step, ...]:
    text = path.strip().removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            message = f"{path!r} is no JSON path"
            raise pa.ArrowInvalid(message)
        steps.append(_step(found))
        at = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> Step:
    if found["members"]:
        return _members
    if found["all"]:
        return partial(_elements, places=(("0", "last"),))
    if found["places"]:
        places = [re.split(r"\s+to\s+", each.strip()) for each in found["places"].split(",")]
        return partial(_elements, places=[(each[0], each[-1]) for each in places])
    quoted = found["quoted"] or found["key"]
    name = found["name"] if quoted is None else quoted[1:-1]
    return partial(_member, name=json.loads(f'"{name}"') if "\\" in name else name)


def _member(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _members(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()


def _elements(value: Any, places: Sequence[tuple[str, str]]) -> Iterator[Any]:
    if isinstance(value, list):
        for first, end in places:
            start, stop = _place(first, len(value)), _place(end, len(value))
            yield from value[max(start, 0) : max(stop + 1, 0)]


def _place(text: str, count: int) -> int:
    if not text.startswith("last"):
        return int(text)
    return count - 1 - int(text.removeprefix("last").replace("-", "").strip() or 0)


def _matches(value: Any, path: str) -> list[Any]:
    found = [value]
    for step in _parse(path):
        found = [below for each in found for below in step(each)]
    return found


# --- values ---------------------------------------------------------------------------------------


def _value(stored: str | bytes) -> Any:
    try:
        return json.loads(stored if isinstance(stored, str) else decode_jsonb(stored))
    except (ValueError, RecursionError) as error:
        message = f"this is no JSON: {error}"
        raise pa.ArrowInvalid(message) from error


def _stored(value: Any) -> bytes:
    try:
        return encode_jsonb(json.dumps(value))
    except ArgumentError as error:
        raise pa.ArrowInvalid(error.message) from error


def _text(value: Any) -> str:
    return decode_jsonb(_stored(value))


def _extract(stored: str | bytes, path: str) -> str | None:
    found = _matches(_value(stored), path)
    if not found:
        return None
    return _text(found if len(found) > 1 else found[0])


def path_value(stored: str | bytes, path: str) -> Any:
    """Return the Python value of what lies at a path; None for nothing, and for several a list.

    Raises ArrowInvalid for what is no path, or no JSON.
    """
    found = _matches(_value(stored), path)
    return found if len(found) > 1 else next(iter(found), None)


def _exists(stored: str | bytes, path: str) -> bool:
    return bool(_matches(_value(stored), path))


def _length(stored: str | bytes, path: str) -> int | None:
    found = _matches(_value(stored), path)
    if not found:
        return None
    return len(found[0]) if isinstance(found[0], list) else 0


def _contains(stored: str | bytes, path: str, item: Any) -> bool:
    wanted = item if isinstance(item, str) else json.dumps(item)
    lists = (each for each in _matches(_value(stored), path) if isinstance(each, list))
    return any(_text(each) in (wanted, f'"{wanted}"') for items in lists for each in items)


def _under(stored: str | bytes, key: Any) -> Iterator[Any]:
    """Yield what an object has under a key, or an array at a place; NULL counts as nothing."""
    value, name = _value(stored), str(key)
    if isinstance(value, dict):
        yield from _member(value, name)
    elif isinstance(value, list) and name.removeprefix("+").isdecimal():
        yield from value[int(name) :][:1]


def _get(stored: str | bytes, key: Any) -> bytes | None:
    return next(map(_stored, _under(stored, key)), None)


def _getting(convert: Callable[[Any], Any], kind: pa.DataType) -> Run:
    def get(stored: str | bytes, key: Any) -> Any:
        value = next(_under(stored, key), None)
        if value is None:
            return None
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            message = f"{_text(value)} is no {kind}"
            raise pa.ArrowInvalid(message) from error

    return by_row(get, kind, _is_json, _is_key)


def _as_text(value: Any) -> str:
    if isinstance(value, (list, dict)):
        raise TypeError
    return value if isinstance(value, str) else _text(value)


def _as_whole(value: Any) -> int:
    number = value if isinstance(value, int) else _as_float(value)
    if isinstance(number, float):
        number = int(number + (0.5 if number >= 0 else -0.5))
    if not -(1 << 63) <= number < 1 << 63:
        raise OverflowError
    return int(number)


def _as_float(value: Any) -> float:
    if isinstance(value, str) and re.search(r"[\s_]", value):
        raise ValueError
    return float(value)


def _as_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in _WORDS:
        raise ValueError
    return _WORDS[value.lower()]


def _is_json(kind: pa.DataType) -> bool:
    return is_text(kind) or is_bytes(kind)


def _is_key(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_integer(kind)


JSON: Final[Mapping[str, Entry]] = {
    "json_extract": (by_row(_extract, pa.string(), _is_json, is_text), 2, 2),
    "json_exists": (by_row(_exists, pa.bool_(), _is_json, is_text), 2, 2),
    "json_array_length": (by_row(_length, pa.int64(), _is_json, is_text), 2, 2),
    "json_array_contains": (
        by_row(_contains, pa.bool_(), _is_json, is_text, lambda kind: not pa.types.is_nested(kind)),
        3,
        3,
    ),
    "json_get": (by_row(_get, pa.large_binary(), _is_json, _is_key), 2, 2),
    "json_get_string": (_getting(_as_text, pa.string()), 2, 2),
    "json_get_int": (_getting(_as_whole, pa.int64()), 2, 2),
    "json_get_float": (_getting(_as_float, pa.float64()), 2, 2),
    "json_get_bool": (_getting(_as_bool, pa.bool_()), 2, 2),
}
