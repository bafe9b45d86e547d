"""DynamoDB on the S3 server of the tests: moto serves both on one port, behind one lock."""

from __future__ import annotations

from typing import Any

import boto3

from tests.unit.io.s3_server import SECRET, S3Server

TABLE = "manifests"
KEYS = {"base_uri": ("HASH", "S"), "version": ("RANGE", "N")}


def dynamodb(s3: S3Server) -> Any:
    """Return a client of the server."""
    return boto3.client(
        "dynamodb",
        endpoint_url=s3.options["aws_endpoint"],
        region_name=s3.options["aws_region"],
        aws_access_key_id="identifier",
        aws_secret_access_key=SECRET,
    )


def create_table(
    s3: S3Server, name: str = TABLE, keys: dict[str, tuple[str, str]] | None = None
) -> None:
    """Create a table for manifests, unless an earlier test of this process did: moto forgets nothing."""
    keys = KEYS if keys is None else keys
    client = dynamodb(s3)
    if name in client.list_tables()["TableNames"]:
        return
    client.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, (kind, _) in keys.items()],
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": type_} for key, (_, type_) in keys.items()
        ],
        BillingMode="PAY_PER_REQUEST",
    )


def options(s3: S3Server) -> dict[str, str]:
    """Return storage options for both."""
    return {**s3.options, "dynamodb_endpoint": s3.options["aws_endpoint"]}
