"""The place of a table as a Spark session means it: relative paths, and the credentials that the session has.

Spark's own readers take a relative path from the folder in which the session's JVM was started, and the keys of
``s3a://`` from its Hadoop settings.  Pennon's functions do the same, and so does ``format("lance")`` with paths; a data
source in Python cannot ask for a session's settings, so its keys are options (``storage.*``) or environment variables.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_S3: Final = ("s3", "s3a", "s3n")
_PREFIX: Final = "spark.hadoop.fs.s3a."
_KEYS: Final[Mapping[str, str]] = {
    "access.key": "aws_access_key_id",
    "secret.key": "aws_secret_access_key",
    "session.token": "aws_session_token",
    "endpoint.region": "aws_region",
}
_ENDPOINT, _USES_TLS, _PATH_STYLE = "endpoint", "connection.ssl.enabled", "path.style.access"
_PROVIDER: Final = "aws.credentials.provider"
_OF_AMAZON: Final = ("amazonaws.com", "amazonaws.com.cn")


def place_of(
    spark: SparkSession, uri: str, storage_options: Mapping[str, str] | None = None
) -> tuple[str, dict[str, str]]:
    """Return where a table is and the options of its store, as a session means a path or URI.

    ``storage_options`` stand above what the session's settings ``spark.hadoop.fs.s3a.*`` say.
    """
    given = dict(storage_options or {})
    scheme = urlsplit(uri).scheme if "://" in uri else ""
    if scheme in _S3:
        return uri, {**s3_options(_settings(spark), urlsplit(uri).netloc, given), **given}
    if scheme or posixpath.isabs(uri) or uri.startswith("memory:"):
        return uri, given
    return _absolute(spark, uri), given


def s3_options(
    settings: Mapping[str, str], bucket: str, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the storage options that Hadoop's settings of ``s3a`` say for a bucket.

    Settings of one bucket (``spark.hadoop.fs.s3a.bucket.NAME.*``) stand above the others.  If ``given`` has a key of
    its own, none of the settings' keys and tokens is taken: parts of two identities do not go together.
    """

    def setting(name: str) -> str | None:
        return settings.get(f"{_PREFIX}bucket.{bucket}.{name}") or settings.get(_PREFIX + name)

    has_identity = any("access_key" in key.lower() or "token" in key.lower() for key in given)
    found = {}
    for name, option in _KEYS.items():
        value = setting(name)
        if value and not (has_identity and name != "endpoint.region"):
            found[option] = value
    if "Anonymous" in (setting(_PROVIDER) or "") and not has_identity:
        found["aws_skip_signature"] = "true"
    if not any("endpoint" in key.lower() for key in given):
        found |= _endpoint(setting(_ENDPOINT), uses_tls=setting(_USES_TLS) != "false")
    if setting(_PATH_STYLE) == "true":
        found["aws_virtual_hosted_style_request"] = "false"
    return found


def _endpoint(endpoint: str | None, *, uses_tls: bool) -> dict[str, str]:
    """Return the options of an endpoint; Amazon's own follows from the region."""
    if not endpoint or urlsplit(f"//{endpoint.rpartition('//')[2]}").netloc.endswith(_OF_AMAZON):
        return {}
    if "://" not in endpoint:
        endpoint = f"{'https' if uses_tls else 'http'}://{endpoint}"
    plain = {"allow_http": "true"} if endpoint.startswith("http://") else {}
    return {"aws_endpoint": endpoint, **plain}


def _settings(spark: SparkSession) -> Mapping[str, str]:
    known: Any = spark.conf.getAll
    return {key: str(known[key]) for key in known if key.startswith(_PREFIX)}


def _absolute(spark: SparkSession, path: str) -> str:
    """Return a path as the session's JVM takes it; the JVM of Spark Connect is another machine's."""
    java: Any = getattr(spark, "_jvm", None)
    if java is None:
        return path
    return posixpath.join(str(java.java.lang.System.getProperty("user.dir")), path)
