"""Classes of PySpark, and what is refused in its older releases."""

from __future__ import annotations

import pytest
from pyspark.sql import datasource
from pyspark.sql import types as st

from pennon.errors import UnsupportedError
from pennon.spark import pyspark_classes
from pennon.spark.pyspark_classes import check_release


def test_classes_of_this_release_are_those_of_pyspark() -> None:
    assert pyspark_classes.ds.EqualTo is datasource.EqualTo
    assert pyspark_classes.ds.DataSource is datasource.DataSource
    assert pyspark_classes.VariantType is st.VariantType


def test_feature_of_a_later_release_is_refused_with_both_releases() -> None:
    check_release((3, 5), "a feature")
    pattern = r"a feature needs Spark 99\.0; this is Spark [\d.]+: use another$"
    with pytest.raises(UnsupportedError, match=pattern):
        check_release((99, 0), "a feature", "use another")
