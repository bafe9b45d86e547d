"""Queries of many columns are planned without Spark's inference of filters, and the session stays as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pennon.spark.inference import MOST_COLUMNS, SETTING, planned

MANY = MOST_COLUMNS + 1


class Conf:
    """Settings as Spark has them: one that is not set has the default value of who asks."""

    def __init__(self, **known: str) -> None:
        self.known = known

    def get(self, name: str, default: str = "true") -> str:
        return self.known.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.known[name] = value

    def unset(self, name: str) -> None:
        self.known.pop(name, None)


class Session:
    """A session that says when one of its queries is planned, and with which settings."""

    def __init__(self, conf: Any, *, is_classic: bool = True) -> None:
        self.conf = conf
        self.seen: list[dict[str, str]] = []
        self.is_classic = is_classic

    def frame(self) -> Any:
        query = SimpleNamespace(executedPlan=lambda: self.seen.append(dict(self.conf.known)))
        frame = SimpleNamespace(queryExecution=lambda: query)
        return SimpleNamespace(sparkSession=self, _jdf=frame if self.is_classic else None)


@pytest.mark.parametrize("known", [{}, {SETTING: "true"}, {SETTING: "false"}])
def test_classic_session_plans_without_inference_and_is_restored(
    known: dict[str, str],
) -> None:
    session = Session(Conf(**known))
    with planned(session.frame(), MANY):
        assert session.conf.known == known
    assert session.seen == [{SETTING: "false"}]
    assert session.conf.known == known


def test_few_columns_are_planned_as_the_session_does() -> None:
    session = Session(Conf())
    with planned(session.frame(), MOST_COLUMNS):
        assert not session.conf.known
    assert not session.seen


@pytest.mark.parametrize("known", [{}, {SETTING: "true"}])
def test_connect_session_with_overlapping_queries_is_restored(
    known: dict[str, str],
) -> None:
    session = Session(Conf(**known), is_classic=False)
    first, second = planned(session.frame(), MANY), planned(session.frame(), MANY)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert session.conf.known == {SETTING: "false"}
    second.__exit__(None, None, None)
    assert session.conf.known == known


def test_inference_setting_is_restored_after_failed_planning() -> None:
    session = Session(Conf())
    frame = session.frame()
    frame._jdf.queryExecution = lambda: 1 / 0
    with pytest.raises(ZeroDivisionError), planned(frame, MANY):
        pass
    assert not session.conf.known


def test_server_without_settings_plans_with_inference() -> None:
    class Locked(Conf):
        def set(self, name: str, value: str) -> None:
            raise PermissionError(name)

    session = Session(Locked())
    with planned(session.frame(), MANY):
        pass
    assert session.seen == [{}]
