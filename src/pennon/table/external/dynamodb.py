"""Manifests in a DynamoDB table, shared with pylance: ``s3+ddb://bucket/path?ddbTableName=T``.

An item a version::

    base_uri   S  partition key   the table's path in its bucket, without the bucket
    version    N  sort key
    path       S                  of the manifest, without the bucket
    size       N                  of the manifest, in bytes
    committer  S                  who wrote the item
    bucket     S                  ours alone: pylance knows no such attribute, and drops it when it
                                  flips the path

Two tables of equal paths in two buckets share their keys.  The bucket tells them apart as long as it is
there; else the object that an item names is missing, which is noticed too
(`pennon.table.external.store`).  Items may hold an ``e_tag`` of pylance's; it is not relied on.

Source: ledger F-331; rust/lance-table/src/io/commit/dynamodb.rs in the Lance repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from pennon.core.fast_dataclass import dataclass
from pennon.errors import (
    AlreadyExistsError,
    Breadcrumb,
    FormatError,
    LanceError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from pennon.table.external.manifests import Entry

COMMITTER = "pennon"
_KEYS = {"base_uri": "HASH", "version": "RANGE"}
_ABSENT = "attribute_not_exists(base_uri) AND attribute_not_exists(version)"
_PRESENT = "attribute_exists(base_uri) AND attribute_exists(version)"
_CONFLICT = "ConditionalCheckFailedException"

_PROVEN: set[tuple[str, str | None]] = set()
"""The tables whose keys were looked at in this process."""


@dataclass(frozen=True, slots=True)
class DynamoManifests:
    """A `ManifestStore` in the DynamoDB table ``table``, for the Lance table ``base_uri``.

    ``options`` are storage options, of which region and credentials count; where they are missing,
    they come from where the AWS tools have them.
    """

    table: str
    bucket: str
    base_uri: str
    endpoint: str | None = None
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def get(self, version: int) -> Entry | None:
        """Return what is known of a version."""
        key = {"base_uri": {"S": self.base_uri}, "version": {"N": str(version)}}
        found = self._call("get_item", Key=key, ConsistentRead=True)
        return self._parse(found["Item"]) if "Item" in found else None

    def get_latest(self) -> Entry | None:
        """Return the entry of the highest version."""
        found = self._call(
            "query",
            KeyConditionExpression="base_uri = :base_uri",
            ExpressionAttributeValues={":base_uri": {"S": self.base_uri}},
            ScanIndexForward=False,
            Limit=1,
            ConsistentRead=True,
        )
        return next((self._parse(item) for item in found["Items"]), None)

    def put_if_not_exists(self, entry: Entry) -> None:
        """Add an entry."""
        refused = AlreadyExistsError("the version is taken", where=Breadcrumb(file=entry.path))
        self._put(entry, _ABSENT, refused)

    def put_if_exists(self, entry: Entry) -> None:
        """Replace the entry of a version."""
        message = f"the manifest store knows no version {entry.version}"
        refused = NotFoundError(message, where=Breadcrumb(file=entry.path))
        self._put(entry, _PRESENT, refused)

    def below(self, folder: str) -> DynamoManifests:
        """Return the manifests of the table in a folder below this one."""
        return replace(self, base_uri=f"{self._root}{folder}")

    def _put(self, entry: Entry, condition: str, refused: LanceError) -> None:
        item = {
            "base_uri": {"S": self.base_uri},
            "version": {"N": str(entry.version)},
            "path": {"S": f"{self._root}{entry.path}"},
            "committer": {"S": COMMITTER},
            "bucket": {"S": self.bucket},
        }
        if entry.size_bytes is not None:
            item["size"] = {"N": str(entry.size_bytes)}
        try:
            self._call("put_item", Item=item, ConditionExpression=condition)
        except LanceError as error:
            if getattr(error, "code", None) != _CONFLICT:
                raise
            raise refused from None

    def _call(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        """Return DynamoDB's answer; raises StoreError, which shows no credentials.

        Raises UnsupportedError if botocore is not installed.
        """
        try:
            from pennon.table.external.dynamodb_client import connect  # noqa: PLC0415 - saves botocore
        except ImportError:
            message = "s3+ddb:// tables need botocore: install pennon[dynamodb]"
            raise UnsupportedError(message) from None
        client = connect(self.endpoint, self.options)
        if (self.table, self.endpoint) not in _PROVEN:
            self._check_keys(client.ask("describe_table", TableName=self.table))
            _PROVEN.add((self.table, self.endpoint))
        return client.ask(verb, TableName=self.table, **arguments)

    def _check_keys(self, described: Mapping[str, Any]) -> None:
        """Raise StoreError if the table has other keys than a manifest store."""
        found = described["Table"]["KeySchema"]
        keys = {key["AttributeName"]: key["KeyType"] for key in found}
        if keys != _KEYS:
            message = (
                f"DynamoDB table {self.table!r} has the keys {keys}, but a manifest store has the"
                " partition key base_uri and the sort key version"
            )
            raise StoreError(message)

    @property
    def _root(self) -> str:
        return f"{self.base_uri}/" if self.base_uri else ""

    def _parse(self, item: Mapping[str, Mapping[str, str]]) -> Entry:
        """Return the entry that an item holds; raises FormatError if it is no item of this table."""
        bucket = item.get("bucket", {}).get("S", self.bucket)
        path = item.get("path", {}).get("S")
        version = _number(item.get("version", {}).get("N"))
        if version is None or path is None:
            message = f"an item of the DynamoDB table {self.table!r} has no version or no path"
            raise FormatError(message)
        if bucket != self.bucket or not path.startswith(self._root):
            message = (
                f"version {version} of {self.base_uri!r} in the DynamoDB table {self.table!r} is"
                f" {path[:200]!r} of bucket {bucket!r}: two tables share one key"
            )
            raise FormatError(message)
        return Entry(version, path.removeprefix(self._root), _number(item.get("size", {}).get("N")))


def _number(text: str | None) -> int | None:
    """Return a whole number that is not negative; None if this is none."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() else None
