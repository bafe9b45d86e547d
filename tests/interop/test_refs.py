"""Tags, branches, clones and deltas of one library are read and continued by both."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import NotFoundError, RefExistsError, UntrustedPathError

BOTH = [lance, pennon]
NAMES = [
    "a",
    "v1.2-rc_3",
    "ä",
    "",
    ".",
    "..",
    "../x",
    "a..b",
    ".a",
    "a b",
    "a:b",
    "a\\b",
    "x.lock",
    "a%2Fb",
    "a\x00",
    "/a",
    "a/",
    "a//b",
]


def _table(first: int, rows: int = 10) -> pa.Table:
    return pa.table({"a": range(first, first + rows)})


def _values(dataset: Any) -> list[int]:
    return sorted(dataset.to_table().column("a").to_pylist())


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of two versions, of ten rows each."""
    place = str(tmp_path / "t.lance")
    lance.write_dataset(_table(0), place)
    lance.write_dataset(_table(10), place, mode="append")
    return place


@pytest.mark.parametrize("writer", BOTH)
def test_tag_listings_equal_pylance(uri: str, writer: ModuleType) -> None:
    dataset = writer.dataset(uri)
    dataset.tags.create("first", 1)
    dataset.tags.create("here")
    dataset.tags.create("again", "first")
    dataset.tags.create("main", (None, 2))
    dataset.tags.update("again", ("main", None))
    dataset.tags.replace_metadata("first", {"who": "ä", "why": "b"})
    dataset.tags.delete("main")
    shown = [module.dataset(uri).tags for module in BOTH]
    assert shown[0].list() == shown[1].list()
    assert {name: tag["version"] for name, tag in shown[1].list().items()} == {
        "first": 1,
        "here": 2,
        "again": 2,
    }
    for order in (None, "asc", "desc"):
        assert shown[0].list_ordered(order) == shown[1].list_ordered(order)
    for module in BOTH:
        assert module.dataset(uri, version="first").count_rows() == 10
        assert module.dataset(uri).checkout_version("again").version == 2


@pytest.mark.parametrize("name", NAMES)
def test_tag_and_branch_names_refused_by_pylance_are_refused(uri: str, name: str) -> None:
    """As the same builtin error; a name of a tag or branch never leads out of its folder."""
    shutil.copytree(uri, f"{uri}.copy")
    outcomes = []
    for module, place in zip(BOTH, (uri, f"{uri}.copy"), strict=True):
        dataset = module.dataset(place)
        for make in (dataset.tags.create, dataset.create_branch):
            try:
                make(name, 1)
                outcomes.append("made")
            except OSError:
                outcomes.append("refused")
    assert outcomes[:2] == outcomes[2:]
    assert {path.name for path in Path(uri).parent.iterdir()} == {"t.lance", "t.lance.copy"}


def test_tag_and_branch_errors_have_the_classes_of_pylance(uri: str) -> None:
    dataset = pennon.dataset(uri)
    dataset.tags.create("t", 1)
    dataset.create_branch("b")
    for call in (
        lambda it: it.tags.create("t", 2),
        lambda it: it.tags.create("n", 77),
        lambda it: it.tags.update("none", 1),
        lambda it: it.tags.delete("none"),
        lambda it: it.tags.get_version("none"),
        lambda it: it.checkout_version(("none", None)),
        lambda it: it.branches.delete("none"),
        lambda it: it.delta(),
        lambda it: it.delta(begin_version=1),
    ):
        for module in BOTH:
            dataset = module.dataset(uri)
            with pytest.raises(ValueError):
                call(dataset)
    with pytest.raises(RefExistsError, match="branch b already exists"):
        dataset.create_branch("b")


@pytest.mark.parametrize("appender", BOTH)
@pytest.mark.parametrize("maker", BOTH)
def test_branches_are_read_and_changed_by_both(
    uri: str, maker: ModuleType, appender: ModuleType
) -> None:
    """A branch of one library is read, appended to, deleted from and branched by the other."""
    branch = maker.dataset(uri).create_branch("dev/one", 1)
    assert (branch.version, _values(branch)) == (1, list(range(10)))
    at = appender.dataset(uri).checkout_version(("dev/one", None))
    appender.write_dataset(_table(100), at, mode="append")
    other = lance if appender is pennon else pennon
    at = other.dataset(uri).checkout_version(("dev/one", None))
    at.delete("a < 5")
    nested = appender.dataset(uri).checkout_version(("dev/one", 2)).create_branch("two")
    want = [*range(5, 10), *range(100, 110)]
    for module in BOTH:
        main = module.dataset(uri)
        assert _values(main) == list(range(20))
        assert _values(main.checkout_version(("dev/one", None))) == want
        assert _values(main.checkout_version(("two", None))) == [*range(10), *range(100, 110)]
        assert main.checkout_version(("two", 2)).checkout_version(("main", 1)).count_rows() == 10
        # a branch is a table's folder, too
        assert _values(module.dataset(f"{uri}/tree/dev/one")) == want
    assert nested.version == 2
    assert lance.dataset(uri).branches.list() == pennon.dataset(uri).branches.list()
    assert [name for name, _ in pennon.dataset(uri).branches.list_ordered()] == ["two", "dev/one"]
    versions = pennon.dataset(uri).checkout_version(("dev/one", None)).versions()
    assert [version["version"] for version in versions] == [1, 2, 3]


@pytest.mark.parametrize("maker", BOTH)
def test_branch_with_child_branch_or_tag_is_not_deleted(uri: str, maker: ModuleType) -> None:
    main = maker.dataset(uri)
    main.create_branch("dev").create_branch("dev/sub")
    maker.write_dataset(_table(50), main.checkout_version(("dev/sub", None)), mode="append")
    mine = pennon.dataset(uri)
    with pytest.raises(RefExistsError, match="parent of dev/sub"):
        mine.branches.delete("dev")
    mine.checkout_version(("dev/sub", None)).tags.create("kept")
    with pytest.raises(RefExistsError, match="kept"):
        mine.branches.delete("dev/sub")
    mine.tags.delete("kept")
    mine.branches.delete("dev/sub")
    mine.branches.delete("dev")
    assert mine.branches.list() == lance.dataset(uri).branches.list() == {}
    assert not [file for file in Path(uri, "tree").rglob("*") if file.is_file()]
    assert _values(mine) == list(range(20))


def test_dropping_a_branch_leaves_the_branches_below_its_folder(uri: str) -> None:
    main = pennon.dataset(uri)
    main.create_branch("dev")
    other = main.create_branch("dev/other")
    pennon.write_dataset(_table(70), other, mode="append")
    main.branches.delete("dev")
    for module in BOTH:
        found = module.dataset(uri).checkout_version(("dev/other", None))
        assert _values(found) == [*range(20), *range(70, 80)]


def test_a_branch_without_its_name_is_finished(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the branch's manifest and its name: to make it again gives it the name."""
    from pennon.ops.versions import branches

    with monkeypatch.context() as crash:
        crash.setattr(branches, "create_branch", lambda *_: (_ for _ in ()).throw(OSError("crash")))
        with pytest.raises(OSError, match="crash"):
            pennon.dataset(uri).create_branch("dev")
    assert pennon.dataset(uri).branches.list() == {}
    made = pennon.dataset(uri).create_branch("dev")
    assert _values(made) == _values(lance.dataset(uri).checkout_version(("dev", None)))


@pytest.mark.parametrize("reference", [1, "tagged", ("dev", None), (None, None)])
@pytest.mark.parametrize("maker", BOTH)
def test_shallow_clones_are_read_and_changed_by_both(
    uri: str, tmp_path: Path, maker: ModuleType, reference: Any
) -> None:
    source = maker.dataset(uri)
    pennon.write_dataset(_table(40), source.create_branch("dev").uri, mode="append")
    source.tags.create("tagged", 2)
    place = str(tmp_path / "clone.lance")
    want = _values(source.checkout_version(reference) if reference != 1 else maker.dataset(uri, 1))
    clone = source.shallow_clone(place, reference)
    assert _values(clone) == want
    assert not Path(place, "data").exists()
    trusted = pennon.dataset(place, trusted_bases=[tmp_path])
    assert _values(trusted) == _values(lance.dataset(place)) == want
    lance.write_dataset(_table(200, 3), place, mode="append")
    trusted.delete("a < 2")
    pennon.dataset(place, trusted_bases=["*"]).create_branch("b")
    for module, options in ((lance, {}), (pennon, {"trusted_bases": [uri]})):
        found = module.dataset(place, **options)
        assert _values(found) == [*[each for each in want if each >= 2], 200, 201, 202]
        assert _values(found.checkout_version(("b", None))) == _values(found)
        assert {base.path for base in found.base_paths().values()} >= {uri}
    assert _values(lance.dataset(uri)) == list(range(20))


def test_shallow_clone_files_are_read_from_trusted_bases_only(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "clone.lance")
    lance.dataset(uri).shallow_clone(place, 2)
    assert pennon.dataset(place).count_rows() == 20
    with pytest.raises(UntrustedPathError, match="trusted_bases="):
        pennon.dataset(place, trusted_bases=[]).to_table()
    monkeypatch.setenv("PENNON_TRUSTED_BASES", "")
    with pytest.raises(UntrustedPathError, match="trusted_bases="):
        pennon.dataset(place).to_table()
    assert _values(pennon.dataset(uri).shallow_clone(f"{place}2", 2)) == list(range(20))
    with pytest.raises(UntrustedPathError):
        pennon.dataset(place, trusted_bases=[f"{uri}x", tmp_path / "other"]).to_table()
    monkeypatch.setenv("PENNON_TRUSTED_BASES", f"/nowhere:{tmp_path}")
    assert pennon.dataset(place).count_rows() == 20
    assert _values(pennon.dataset(place)) == list(range(20))


def test_a_branch_moves_with_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle writes the path as it was typed, a relative one too; that means the table's root."""
    monkeypatch.chdir(tmp_path)
    lance.write_dataset(_table(0), "t.lance", data_storage_version="2.0")
    lance.dataset("t.lance").create_branch("dev")
    monkeypatch.chdir("/")
    found = pennon.dataset(tmp_path / "t.lance").checkout_version(("dev", None))
    assert _values(found) == list(range(10))


@pytest.mark.parametrize("maker", BOTH)
def test_deep_clones_are_read_and_changed_by_both(
    uri: str, tmp_path: Path, maker: ModuleType
) -> None:
    source = maker.dataset(uri)
    source.delete("a = 3 OR a = 15")
    branch = source.create_branch("dev")
    maker.write_dataset(_table(60, 2), branch, mode="append")
    place = str(tmp_path / "copy.lance")
    source.deep_clone(place, ("dev", None))
    Path(uri).rename(tmp_path / "gone")
    want = [each for each in range(20) if each not in (3, 15)] + [60, 61]
    for module in BOTH:
        assert _values(module.dataset(place)) == want
        assert module.dataset(place).base_paths() == {}
        module.write_dataset(_table(90, 1), place, mode="append")
        want.append(90)


@pytest.mark.parametrize("stable", [True, False])
def test_restores_and_deltas_equal_pylance(tmp_path: Path, stable: bool) -> None:
    """The same operations by both; the same rows made, changed and gone between any two versions."""
    seen: list[list[Any]] = []
    for module in BOTH:
        uri = str(tmp_path / module.__name__)
        dataset = module.write_dataset(
            _table(0),
            uri,
            enable_stable_row_ids=stable,
            data_storage_version="2.2" if stable else "2.1",
        )
        module.write_dataset(_table(10), uri, mode="append")
        module.dataset(uri).delete("a = 4")
        module.dataset(uri).update({"a": "a + 1000"}, where="a < 2")
        old = module.dataset(uri, version=2)
        old.restore()
        assert (old.version, _values(old)) == (5, list(range(20)))
        old.delete("a > 15")
        dataset = module.dataset(uri)
        here: list[Any] = [_values(dataset)]
        for begin, end in ((1, 2), (2, 4), (1, 6), (4, 6), (5, 3)):
            delta = dataset.delta(begin_version=begin, end_version=end)
            here += [_rows(delta.get_inserted_rows()), _rows(delta.get_updated_rows())]
            here.append([type(each.operation).__name__ for each in delta.list_transactions()])
            if stable and begin <= end:
                here.append(sorted(delta.get_deleted_row_ids().read_all()["_rowid"].to_pylist()))
        seen.append(here)
    assert seen[0] == seen[1]
    if not stable:
        with pytest.raises(ValueError, match="stable row ids"):
            pennon.dataset(str(tmp_path / "lance")).delta(compared_against=1).get_deleted_row_ids()


def _rows(reader: Any) -> Any:
    return reader.read_all().sort_by("a").to_pylist()


@pytest.mark.parametrize("reader", BOTH)
def test_row_version_columns_in_projection_and_filter(tmp_path: Path, reader: ModuleType) -> None:
    uri = str(tmp_path / "t")
    pennon.write_dataset(_table(0), uri, enable_stable_row_ids=True)
    lance.write_dataset(_table(10), uri, mode="append")
    pennon.dataset(uri).update({"a": "a + 1000"}, where="a = 12")
    dataset = reader.dataset(uri)
    names = ["a", "_row_created_at_version", "_row_last_updated_at_version"]
    table = dataset.to_table(columns=names, filter="_row_created_at_version > 1")
    assert table.num_rows == 10
    changed = dataset.to_table(columns=names, filter="_row_last_updated_at_version = 3")
    assert changed.to_pylist() == [dict(zip(names, (1012, 2, 3), strict=True))]


def test_a_tag_is_created_once(uri: str) -> None:
    """Of two that look, and then create, one is told: the name is taken, not overwritten."""
    from pennon.table.refs.files import parse_tag
    from pennon.table.refs.tags_and_branches import create_tag

    ours = pennon.dataset(uri).snapshot
    tag = parse_tag(b'{"branch": null, "version": 1, "manifestSize": 1}')
    create_tag(ours.store, "t", tag)
    with pytest.raises(RefExistsError):
        create_tag(ours.store, "t", parse_tag(b'{"version": 2}'))
    assert lance.dataset(uri).tags.get_version("t") == 1


def test_checkout_of_wrong_version_or_missing_tag_is_refused(uri: str) -> None:
    dataset = pennon.dataset(uri)
    wrongs: list[Any] = [1.5, True, ("a",), [1]]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            dataset.checkout_version(wrong)
    with pytest.raises(NotFoundError, match="tag none does not exist"):
        pennon.dataset(uri, version="none")
