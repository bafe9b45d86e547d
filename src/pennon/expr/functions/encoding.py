"""Functions of strings that give numbers, digests and encodings, and back."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyarrow import types as t

from pennon.expr.rowwise import Entry, by_row
from pennon.expr.types import is_bytes, is_text


def _is_octets(kind: pa.DataType) -> bool:
    return is_text(kind) or is_bytes(kind)


def _bytes_of(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _first_code(text: str) -> int:
    return ord(text[0]) if text else 0


def _character(code: int) -> str:
    surrogates = range(0xD800, 0xE000)
    if not 0 <= code <= 0x10FFFF or code in surrogates:
        message = f"there is no character {code}"
        raise pa.ArrowInvalid(message)
    return chr(code)


def _hexadecimal(number: int) -> str:
    return f"{number % (1 << 64):x}"


def _digest(make: Callable[[bytes], Any]) -> Callable[[str | bytes], bytes]:
    def digest(value: str | bytes) -> bytes:
        found: bytes = make(_bytes_of(value)).digest()
        return found

    return digest


def _md5(value: str | bytes) -> str:
    return hashlib.md5(_bytes_of(value)).hexdigest()  # noqa: S324 - what the caller asks for


_DIGESTS: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "md5": hashlib.md5,
    "sha224": hashlib.sha224,
    "sha256": hashlib.sha256,
    "sha384": hashlib.sha384,
    "sha512": hashlib.sha512,
    "blake2s": hashlib.blake2s,
    "blake2b": hashlib.blake2b,
}


def _digest_named(value: str | bytes, name: str) -> bytes:
    make = _DIGESTS.get(name.lower())
    if make is None:
        message = f"there is no digest {name!r}; there are {', '.join(_DIGESTS)}"
        raise pa.ArrowInvalid(message)
    return _digest(make)(value)


def _encode(value: str | bytes, form: str) -> str:
    if _form(form) == "hex":
        return _bytes_of(value).hex()
    return base64.b64encode(_bytes_of(value)).decode().rstrip("=")


def _decode(value: str | bytes, form: str) -> bytes:
    octets = _bytes_of(value)
    try:
        if _form(form) == "hex":
            return binascii.unhexlify(octets)
        return base64.b64decode(octets + b"=" * (-len(octets) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        message = f"{value!r} is no {form}: {error}"
        raise pa.ArrowInvalid(message) from error


def _text_type(kind: pa.DataType, _: pa.DataType) -> pa.DataType:
    return pa.large_string() if kind in (pa.large_string(), pa.large_binary()) else pa.string()


def _form(name: str) -> str:
    form = name.lower()
    if form not in ("hex", "base64"):
        message = f"there is no encoding {name!r}; there are base64 and hex"
        raise pa.ArrowInvalid(message)
    return form


def _digesting(name: str) -> Entry:
    return by_row(_digest(_DIGESTS[name]), pa.binary(), _is_octets), 1, 1


CODES: Final[Mapping[str, Entry]] = {
    "ascii": (by_row(_first_code, pa.int32(), is_text), 1, 1),
    "chr": (by_row(_character, pa.string(), t.is_integer), 1, 1),
    "to_hex": (by_row(_hexadecimal, pa.string(), t.is_integer), 1, 1),
    "md5": (by_row(_md5, pa.string(), _is_octets), 1, 1),
    **{name: _digesting(name) for name in ("sha224", "sha256", "sha384", "sha512")},
    "digest": (by_row(_digest_named, pa.binary(), _is_octets, is_text), 2, 2),
    "encode": (by_row(_encode, _text_type, _is_octets, is_text), 2, 2),
    "decode": (by_row(_decode, pa.binary(), _is_octets, is_text), 2, 2),
}
