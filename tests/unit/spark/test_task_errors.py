"""Errors of tasks, which come as text, are raised as their own class."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from pennon.errors import ArgumentError, MatchError
from pennon.spark.task_errors import typed_errors


@pytest.mark.parametrize("carrier", [PySparkException, RuntimeError])
def test_task_error_text_is_raised_as_its_class(carrier: type[Exception]) -> None:
    """PySpark's own exceptions carry it, or py4j's: those of the broadcast side of a join come so."""
    text = "Job aborted: ...\npennon.errors.MatchError: two rows of the data match one\n  at ..."
    with (
        pytest.raises(MatchError, match=r"^two rows of the data match one$") as found,
        typed_errors(MatchError, ArgumentError),
    ):
        raise carrier(text)
    assert isinstance(found.value.__cause__, carrier)


@pytest.mark.parametrize("text", ["no more memory", "pennon.errors.FormatError: damaged"])
def test_task_errors_of_other_classes_are_unchanged(text: str) -> None:
    with pytest.raises(RuntimeError, match=text), typed_errors(MatchError):
        raise RuntimeError(text)
