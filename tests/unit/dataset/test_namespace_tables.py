"""Tables that a client of ``lance_namespace`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance_namespace
import pyarrow as pa
import pytest

import pennon
import pennon.namespace
from pennon.dataset.namespace_tables import place_of_table

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def client(tmp_path: Path) -> Any:
    """Return a namespace in a folder."""
    return pennon.namespace.connect("dir", {"root": str(tmp_path)})


def test_namespace_client_names_a_table_to_create_append_and_open(client: Any) -> None:
    named: Any = {"namespace_client": client, "table_id": ["people"]}
    pennon.write_dataset(ROWS, mode="create", **named)
    pennon.write_dataset(ROWS, mode="append", **named)
    assert pennon.dataset(**named).count_rows() == 4


def test_namespace_client_and_uri_together_are_refused(client: Any, tmp_path: Path) -> None:
    named: Any = {"namespace_client": client, "table_id": ["people"]}
    with pytest.raises(pennon.errors.ArgumentError, match="not by both"):
        pennon.dataset(tmp_path / "t.lance", **named)


def test_namespace_client_without_table_id_is_refused(client: Any) -> None:
    with pytest.raises(pennon.errors.ArgumentError, match="go together"):
        pennon.dataset(namespace_client=client)


def test_storage_options_of_a_namespace_go_before_those_given(tmp_path: Path) -> None:
    class Fixed:
        """A namespace of one table."""

        def __init__(self, *, managed: bool) -> None:
            self.managed = managed

        def describe_table(self, _: Any) -> Any:
            """Return the place of the table."""
            answer = lance_namespace.DescribeTableResponse(
                location=str(tmp_path), storage_options={"region": "theirs"}
            )
            object.__setattr__(answer, "managed_versioning", self.managed)
            return answer

    named = {"namespace_client": Fixed(managed=False), "table_id": ["t"]}
    options = {"region": "ours", "endpoint": "x"}
    assert place_of_table(None, named, options) == (
        str(tmp_path),
        {"region": "theirs", "endpoint": "x"},
    )
    named["namespace_client"] = Fixed(managed=True)
    with pytest.raises(pennon.errors.UnsupportedError, match="makes the versions"):
        place_of_table(None, named, options)


def test_write_mode_none_creates(tmp_path: Path) -> None:
    pennon.write_dataset(ROWS, tmp_path / "t.lance", mode=None)  # type: ignore[arg-type]
    with pytest.raises(pennon.errors.AlreadyExistsError):
        pennon.write_dataset(ROWS, tmp_path / "t.lance", mode=None)  # type: ignore[arg-type]
