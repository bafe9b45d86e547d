"""Names of manifests and transactions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pennon.errors import FormatError
from pennon.table.naming import MAX_VERSION, Naming, parse_manifest_name, transaction_path

versions = st.integers(1, MAX_VERSION)


@given(versions, st.sampled_from(Naming))
def test_manifest_names_round_trip(version: int, naming: Naming) -> None:
    assert parse_manifest_name(naming.manifest_path(version)) == (naming, version)


@given(versions, versions)
def test_v2_names_sort_newest_first(one: int, other: int) -> None:
    names = sorted(Naming.V2.manifest_path(version) for version in (one, other))
    assert names[0] == Naming.V2.manifest_path(max(one, other))


def test_manifest_names_equal_those_of_pylance() -> None:
    assert Naming.V1.manifest_path(7) == "_versions/7.manifest"
    assert Naming.V2.manifest_path(1) == "_versions/18446744073709551614.manifest"


@pytest.mark.parametrize(
    "name",
    [
        "latest_version_hint.json",
        "d9223372036854775809.manifest",
        ".tmp_7.manifest_9c100374",
        "7.manifest-9c100374-3298-4537-afc6-f5ee7913666d",
        "7.manifest#1",
        "0.manifest",
        "-1.manifest",
        "+7.manifest",
        "\u0667.manifest",  # a digit, but not of ASCII
        "18446744073709551615.manifest",
        "00000000000000000001.manifest",
        "9999999999999999999.manifest",
        "x7.manifest",
        "7.manifest.bak",
        ".manifest",
    ],
)
def test_manifest_name_parsing_ignores_other_files(name: str) -> None:
    assert parse_manifest_name(f"_versions/{name}") is None


@pytest.mark.parametrize("version", [0, -1, MAX_VERSION + 1])
def test_versions_out_of_range_have_no_name(version: int) -> None:
    with pytest.raises(FormatError):
        Naming.V2.manifest_path(version)


@pytest.mark.parametrize(
    "name", ["../1-a.txn", "1-a/b.txn", "1-a.manifest", "-a.txn", "", "1-.txn", "1-a\n.txn"]
)
def test_transaction_names_outside_their_folder_are_refused(name: str) -> None:
    with pytest.raises(FormatError, match="not the name of a transaction"):
        transaction_path(name)
