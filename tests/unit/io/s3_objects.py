"""The objects in moto's buckets, read past its slow interface.

A listing of moto's describes each object to a serializer: a race of writers, who list all the time,
would test little else.  What is listed, and in which order, is what moto knows; only the words are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import FakeDeleteMarker, s3_backends

_PAGE = 1000
_KNOWN = {"list-type", "prefix", "continuation-token", "start-after"}
_OBJECT = (
    "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size>"
    "<StorageClass>STANDARD</StorageClass></Contents>"
)


def put_objects(bucket: str, objects: Mapping[str, bytes]) -> None:
    """Put objects into a bucket, by key."""
    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for key, value in objects.items():
        backend.put_object(bucket, key, value)


def objects_below(bucket: str, prefix: str) -> dict[str, bytes]:
    """Return the objects whose keys begin with ``prefix``, without that."""
    found = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[bucket]
    return {str(key.name)[len(prefix) :]: bytes(key.value) for key in _keys(found, prefix, "")}


def listing(environ: dict[str, Any]) -> bytes | None:
    """Return a page of a listing; None for a request that is none, or that asks for more."""
    asked = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    buckets = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets
    name = environ["PATH_INFO"].strip("/")
    is_plain = asked.get("list-type") == "2" and asked.keys() <= _KNOWN and name in buckets
    if not is_plain or "HTTP_AUTHORIZATION" not in environ:
        return None
    prefix = asked.get("prefix", "")
    after = asked.get("continuation-token") or asked.get("start-after", "")
    found = sorted(_keys(buckets[name], prefix, after), key=lambda key: str(key.name))
    return _page(name, prefix, found).encode()


def _keys(bucket: Any, prefix: str, after: str) -> Iterator[Any]:
    for name, key in bucket.keys.items():
        if name.startswith(prefix) and name > after and not isinstance(key, FakeDeleteMarker):
            yield key


def _page(name: str, prefix: str, found: list[Any]) -> str:
    page, is_cut = found[:_PAGE], len(found) > _PAGE
    last = escape(page[-1].name) if is_cut else ""
    token = f"<NextContinuationToken>{last}</NextContinuationToken>" * is_cut
    objects = "".join(
        _OBJECT.format(escape(key.name), key.last_modified_ISO8601, escape(key.etag), key.size)
        for key in page
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{name}</Name><Prefix>{escape(prefix)}</Prefix><MaxKeys>{_PAGE}</MaxKeys>"
        f"<KeyCount>{len(page)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        f"{token}{objects}</ListBucketResult>"
    )
