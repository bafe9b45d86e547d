"""Write settings of a session, read without a session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pennon.spark.session import merges_schemas


def session(**settings: str) -> Any:
    """What knows these settings, whose dots are underscores here."""
    conf = {name.replace("_", "."): value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=conf.get))


@pytest.mark.parametrize(
    ("settings", "merges"),
    [
        ({}, False),
        ({"spark_pennon_schema_autoMerge_enabled": "true"}, True),
        ({"spark_pennon_schema_autoMerge_enabled": "false"}, False),
        ({"spark_databricks_delta_schema_autoMerge_enabled": "True"}, True),
    ],
)
def test_auto_merge_settings_of_pennon_and_delta(settings: dict[str, str], merges: bool) -> None:
    assert merges_schemas(session(**settings)) == merges
