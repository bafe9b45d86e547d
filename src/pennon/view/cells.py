"""Values of a table as small JSON objects: text that is safe to show, and what the page draws of it.

======  ============================================================================
kind    members beside ``kind``
======  ============================================================================
null
number  ``text``
text    ``text``, ``more`` (the number of characters, if it was cut)
vector  ``values`` (at most `MAX_POINTS`, means of neighbours), ``dim``, ``norm``
image   ``mime``, ``name``, ``size``, ``pixels``; also audio
bytes   ``text`` (the first bytes), ``size``
nested  ``text``
large   ``text``: how large it may be; it was not read
error   ``text``: why it cannot be shown
======  ============================================================================

All text went through `pennon.errors.printable`: control characters, and those that turn text around, are escaped.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from pennon.display.cells import size
from pennon.errors import printable as printable
from pennon.view.media import HEAD_BYTES, Media, is_svg, sniff

Json: TypeAlias = dict[str, Any]

CELL_CHARACTERS: Final = 160
FULL_CHARACTERS: Final = 100_000
MAX_POINTS: Final = 64
MAX_DEPTH: Final = 24
MAX_NODES: Final = 2_000
SHOWN_ITEMS: Final = 100
_BYTES: Final = 24
_SHORT: Final = 100


def cell(value: pa.Scalar, *, characters: int = CELL_CHARACTERS) -> Json:
    """Return a value as the page shows it in a row; of a text so many characters."""
    value = plain(value)
    if not value.is_valid:
        return {"kind": "null"}
    kind = value.type
    if _is_text(kind):
        return _text(value.as_buffer(), characters)
    if _is_bytes(kind):
        return blob(_start(value.as_buffer(), HEAD_BYTES), value.as_buffer().size)
    if is_vector(kind):
        return vector(value)
    if t.is_nested(kind):
        return {"kind": "nested", "text": short(value)}
    number = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    return {"kind": "number" if number else "text", "text": _leaf(value)}


def full_cell(value: pa.Scalar) -> Json:
    """Return a value with all that the page shows of a single one: a long text, a tree, the items of a vector."""
    found = cell(value, characters=FULL_CHARACTERS)
    value = plain(value)
    if found["kind"] == "nested":
        found["tree"] = tree(value, [MAX_NODES], 0)
    if found["kind"] == "vector":
        found["items"] = [f"{item:.6g}" for item in _floats(value, 256)]
    if found["kind"] == "text" and _is_text(value.type):
        found["text"] = _lines(_decoded(value.as_buffer(), FULL_CHARACTERS)[0])
    return found


def blob(head: bytes, size_bytes: int) -> Json:
    """Return bytes by how they begin: as an image, a sound, or their first bytes."""
    media = sniff(head)
    if media is not None:
        return {**_media(media), "size": size(size_bytes), "bytes": size_bytes}
    if is_svg(head):
        text = "SVG document, not drawn"
    else:
        text = head[:_BYTES].hex(" ") + (" …" if size_bytes > _BYTES else "")
    return {"kind": "bytes", "text": text, "size": size(size_bytes)}


def _media(media: Media) -> Json:
    pixels = f"{media.width:,} × {media.height:,}" if media.width and media.height else ""
    if not media.is_shown:
        return {"kind": "bytes", "text": f"{media.name}, {pixels}: too many pixels to show"}
    kind = "image" if media.is_image else "audio"
    return {"kind": kind, "mime": media.mime, "name": media.name, "pixels": pixels}


def large(size_bytes: int) -> Json:
    """Return the cell of a value that is not read, because it may have so many bytes."""
    return {"kind": "large", "text": f"up to {size(size_bytes)}, not read"}


def failed(error: Exception) -> Json:
    """Return the cell of a value that cannot be shown."""
    return {"kind": "error", "text": printable(str(error)[:400]) or type(error).__name__}


# --- vectors --------------------------------------------------------------------------------------


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a type is a fixed-size list of two or more numbers."""
    if not t.is_fixed_size_list(kind) or kind.list_size < 2:
        return False
    items = kind.value_type.storage_type if _is_extension(kind.value_type) else kind.value_type
    return bool(t.is_floating(items) or t.is_integer(items))


def vector(value: pa.Scalar) -> Json:
    """Return a vector: its length, its norm, and a few points of its curve."""
    numbers = _floats(value, value.type.list_size)
    with np.errstate(all="ignore"):
        norm = float(np.sqrt(np.sum(numbers * numbers)))
    parts = np.array_split(numbers, min(len(numbers), MAX_POINTS))
    points = [float(np.mean(part)) for part in parts]
    return {
        "kind": "vector",
        "dim": value.type.list_size,
        "norm": f"{norm:.4g}",
        "values": [round(each, 5) if np.isfinite(each) else None for each in points],
    }


def _floats(value: pa.Scalar, most: int) -> Any:
    items = value.values.slice(0, most)
    if isinstance(items, pa.ExtensionArray):
        items = items.storage
    return items.to_numpy(zero_copy_only=False).astype(np.float64)


# --- texts ----------------------------------------------------------------------------------------


def short(value: pa.Scalar, most: int = _SHORT) -> str:
    """Return any value on one line of at most ``most`` characters; of a long list only the first items are looked at."""
    text = _line(value, most, 0)
    return text if len(text) <= most else text[: most - 1] + "…"


def _line(value: pa.Scalar, most: int, depth: int) -> str:
    value = plain(value)
    if not value.is_valid:
        return "NULL"
    if depth > MAX_DEPTH:
        return "…"
    kind = value.type
    if t.is_struct(kind):
        parts = [
            (kind[i].name, _field(value, i)) for i in range(min(kind.num_fields, most // 4 + 1))
        ]
        return _joined(
            "{", (f"{printable(k)}: {_line(v, most, depth + 1)}" for k, v in parts), "}", most
        )
    if _is_list(kind):
        items = value.values
        if t.is_map(kind):
            pairs = (items.slice(i, 1) for i in range(min(len(items), most)))
            texts = (
                f"{_line(p.field(0)[0], most, depth + 1)}: {_line(p.field(1)[0], most, depth + 1)}"
                for p in pairs
            )
            return _joined("{", texts, "}", most)
        few = (items[i] for i in range(min(len(items), most)))
        return _joined("[", (_line(each, most, depth + 1) for each in few), "]", most)
    if _is_text(kind):
        return printable(_decoded(value.as_buffer(), most)[0])
    if _is_bytes(kind):
        return f"<{size(value.as_buffer().size)}>"
    return _leaf(value)


def _joined(start: str, texts: Any, end: str, most: int) -> str:
    found, length = [], 0
    for text in texts:
        found.append(text)
        length += len(text) + 2
        if length > most:
            break
    return start + ", ".join(found) + end


def tree(value: pa.Scalar, left: list[int], depth: int) -> Json:
    """Return a nested value as nodes that fold; ``left[0]`` is the number of nodes that may still be made."""
    value = plain(value)
    left[0] -= 1
    kind = value.type
    if not value.is_valid or not t.is_nested(kind) or is_vector(kind) or depth > MAX_DEPTH:
        return {"text": short(value, 400)}
    if t.is_struct(kind):
        count = kind.num_fields
        pairs = ((printable(kind[i].name), _field(value, i)) for i in range(count))
        name = "struct"
    elif t.is_map(kind):
        items, count, name = value.values, len(value.values), "map"
        pairs = ((short(items.field(0)[i]), items.field(1)[i]) for i in range(count))
    elif _is_list(kind):
        items, count, name = value.values, len(value.values), "list"
        pairs = ((str(i), items[i]) for i in range(count))
    else:
        return {"text": _leaf(value)}
    children: list[Json] = []
    for label, child in pairs:
        if left[0] <= 0 or len(children) >= SHOWN_ITEMS:
            break
        children.append({"label": label, **tree(child, left, depth + 1)})
    return {"text": f"{name} of {count:,}", "children": children, "hidden": count - len(children)}


def _text(data: pa.Buffer, characters: int) -> Json:
    text, is_cut = _decoded(data, characters)
    found: Json = {"kind": "text", "text": printable(text)}
    if is_cut:
        found["more"] = size(data.size)
    return found


def _decoded(data: pa.Buffer, characters: int) -> tuple[str, bool]:
    """Return the beginning of a text, and whether there is more; bytes that are no UTF-8 are escaped."""
    some = _start(data, characters * 4 + 4)
    text = some.decode("utf-8", "backslashreplace")
    return text[:characters], len(text) > characters or len(some) < data.size


def _start(data: pa.Buffer, most: int) -> bytes:
    return bytes(data.slice(0, min(most, data.size)).to_pybytes())


def _lines(text: str) -> str:
    """Return a text with its line ends and tabs, and all else that does not print escaped."""
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def _leaf(value: pa.Scalar) -> str:
    """Return a value that is no list, struct, text or bytes."""
    if value.type == pa.float32():
        return str(np.float32(value.as_py()))  # 4.7, and not the double next to it
    try:
        return printable(str(value.as_py()))
    except (ValueError, OverflowError, TypeError, ImportError, pa.ArrowException):
        pass  # such as a time of the year 10,000, or of a zone that is not there
    try:
        return printable(value.cast(pa.string()).as_py())
    except (ValueError, TypeError, pa.ArrowException):
        return "a value that cannot be shown"


def plain(value: pa.Scalar) -> pa.Scalar:
    """Return a value without its dictionary or its extension type."""
    while True:
        if isinstance(value, pa.DictionaryScalar | pa.ExtensionScalar):
            inner = value.value
            value = pa.scalar(None, pa.null()) if inner is None else inner
        else:
            return value


def _field(value: pa.StructScalar, number: int) -> pa.Scalar:
    """Return a field by its number; names may occur twice."""
    return value[number]


def _is_extension(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType)


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_map(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        t.is_binary(kind)
        or t.is_large_binary(kind)
        or t.is_fixed_size_binary(kind)
        or t.is_binary_view(kind)
    )
