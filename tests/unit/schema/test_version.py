"""File versions by name and by number."""

from __future__ import annotations

import pytest

from pennon.errors import ArgumentError, FormatError, UnsupportedError
from pennon.schema.version import (
    READABLE,
    V0_1,
    V2_0,
    V2_1,
    V2_2,
    Ability,
    FileVersion,
    check_is_written,
    oldest_with,
)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("legacy", "0.1"),
        ("0.1", "0.1"),
        ("0.3", "2.0"),
        ("2.0", "2.0"),
        ("stable", "2.2"),
        ("STABLE", "2.2"),
        ("next", "2.3"),
        ("2.2", "2.2"),
        (2.0, "2.0"),
    ],
)
def test_file_version_names_are_parsed(name: str, version: str) -> None:
    assert str(FileVersion.parse(name)) == version


@pytest.mark.parametrize("name", ["", "2", "3.0", "v2.0", "newest"])
def test_unknown_file_version_error_lists_known_names(name: str) -> None:
    with pytest.raises(ArgumentError, match=r"legacy, 0\.1, 0\.3, 2\.0"):
        FileVersion.parse(name)


@pytest.mark.parametrize(
    ("numbers", "version"),
    [
        ((0, 0), V0_1),
        ((0, 1), V0_1),
        ((0, 2), V0_1),
        ((0, 3), V2_0),
        ((2, 0), V2_0),
        ((2, 1), V2_1),
        ((2, 2), V2_2),
    ],
)
def test_file_version_numbers_are_parsed(numbers: tuple[int, int], version: FileVersion) -> None:
    assert FileVersion.from_numbers(*numbers) == version


@pytest.mark.parametrize("numbers", [(0, 4), (1, 0), (-1, 0), (1, 2)])
def test_invalid_file_version_numbers_are_refused(numbers: tuple[int, int]) -> None:
    with pytest.raises(FormatError):
        FileVersion.from_numbers(*numbers)


@pytest.mark.parametrize("numbers", [(2, 4), (3, 0), (65535, 65535)])
def test_numbers_from_the_future(numbers: tuple[int, int]) -> None:
    with pytest.raises(UnsupportedError, match="newer than this release"):
        FileVersion.from_numbers(*numbers)


@pytest.mark.parametrize("name", ["2.3", "next"])
def test_unwritable_file_version_error_names_the_newest(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"2\.3 .* 2\.1 and 2\.2, the newest .*'2\.2'"):
        check_is_written(FileVersion.parse(name))
    check_is_written(FileVersion.parse("stable"))
    check_is_written(FileVersion.parse("legacy"))


def test_order_and_numbers_of_new_files() -> None:
    assert V0_1 < V2_0 < V2_1 < V2_2
    assert (V0_1.to_numbers(), V2_0.to_numbers()) == ((0, 2), (2, 0))


def test_abilities_by_version() -> None:
    def holding(ability: Ability) -> list[FileVersion]:
        return [version for version in READABLE if version.holds(ability)]

    assert holding(Ability.MAPS) == holding(Ability.BLOBS_V2) == [V2_2]
    assert holding(Ability.NULL_STRUCTS) == [V2_1, V2_2]
    assert holding(Ability.EMPTY_STRUCTS) == [V2_0, V2_1, V2_2]
    assert holding(Ability.BLOB_ITEMS) == holding(Ability.ZONE_MAPS) == [V2_0]
    assert holding(Ability.PACKED_FIXED_LISTS) == [V2_0, V2_2]
    assert oldest_with(Ability.PACKED_FIXED_LISTS) == V2_0


def test_newer_version_has_abilities_of_newest_known() -> None:
    newer = FileVersion.parse("2.3")
    assert newer not in READABLE
    assert all(newer.holds(ability) == V2_2.holds(ability) for ability in Ability)


def test_every_ability_has_an_oldest_version() -> None:
    assert all(oldest_with(ability) in READABLE for ability in Ability)
