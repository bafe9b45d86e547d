"""A folder of tables as a catalog."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

import pennon
from pennon.catalog import Catalog, DirectoryCatalog, TableName
from pennon.errors import (
    AlreadyExistsError,
    ArgumentError,
    NotFoundError,
    UnsupportedError,
)
from pennon.io.memory import MemoryStore
from pennon.testing import CountingStore
from tests.examples import run_examples
from tests.unit.catalog.catalog_contract import ROWS, CatalogContract
from tests.unit.io.s3_server import BUCKET, S3Server


class TestLocalFolder(CatalogContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def new_catalog(self) -> Catalog:
        return DirectoryCatalog(self.folder / uuid.uuid4().hex)


class TestFolderByUri(TestLocalFolder):
    def new_catalog(self) -> Catalog:
        return DirectoryCatalog(f"file://{self.folder}/with%20space/{uuid.uuid4().hex}")


class TestOneManifestForAll(TestLocalFolder):
    def new_catalog(self) -> Catalog:
        return DirectoryCatalog(self.folder / uuid.uuid4().hex, folders=False)


class TestMemory(CatalogContract):
    def new_catalog(self) -> Catalog:
        return DirectoryCatalog(f"memory://{uuid.uuid4().hex}/root")


@pytest.mark.parametrize(
    "name", ["DirectoryCatalog", "NamedTables", "RestCatalog", "join_name", "split_name"]
)
def test_the_example_of_a_public_name_of_catalog_runs(name: str) -> None:
    uri = f"memory://{uuid.uuid4().hex}/root"
    value = getattr(pennon.catalog, name)
    run_examples(name, value, {"pennon": pennon, "pa": pa, "uri": uri})


@pytest.fixture
def catalog(tmp_path: Path) -> DirectoryCatalog:
    return DirectoryCatalog(tmp_path)


def written(catalog: DirectoryCatalog, name: TableName) -> str:
    location = catalog.declare_table(name).location
    pennon.write_dataset(ROWS, location)
    return location


def test_folder_without_a_manifest_lists_its_tables_and_stays_without(tmp_path: Path) -> None:
    pennon.write_dataset(ROWS, tmp_path / "b.lance")
    pennon.write_dataset(ROWS, tmp_path / "a.lance")
    (tmp_path / "other").mkdir()
    (tmp_path / "file.lance").write_text("no folder")
    catalog = DirectoryCatalog(tmp_path)
    assert catalog.list_tables() == ["a", "b"]
    assert catalog.list_namespaces() == []
    assert catalog.describe_table(("a",)).location == str(tmp_path / "a.lance")
    written(catalog, ("c",))
    catalog.rename_table(("c",), ("d",))
    catalog.drop_table(("b",))
    assert catalog.list_tables() == ["a", "d"]
    names = {"a.lance", "d.lance", "other", "file.lance"}
    assert {path.name for path in tmp_path.iterdir()} == names


def test_rename_of_a_root_table_renames_its_folder_and_keeps_rows(
    catalog: DirectoryCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace(("ns",))
    written(catalog, ("old",))
    assert catalog.rename_table(("old",), ("new",)).location == str(tmp_path / "new.lance")
    assert not (tmp_path / "old.lance").exists()
    assert pennon.dataset(tmp_path / "new.lance").to_table() == ROWS
    inside = catalog.rename_table(("new",), ("ns", "t"))
    assert catalog.list_tables() == []
    assert pennon.dataset(inside.location).to_table() == ROWS
    assert catalog.rename_table(("ns", "t"), ("back",)).location == str(tmp_path / "back.lance")
    assert (catalog.list_tables(), catalog.list_tables(("ns",))) == (["back"], [])


def test_rename_to_a_taken_name_leaves_both_tables(catalog: DirectoryCatalog) -> None:
    catalog.create_namespace(("ns",))
    for name in (("a",), ("b",), ("ns", "t")):
        written(catalog, name)
    for old, new in (
        (("a",), ("b",)),
        (("ns", "t"), ("a",)),
        (("a",), ("ns", "t")),
        (("a",), ("ns",)),
    ):
        with pytest.raises(AlreadyExistsError):
            catalog.rename_table(old, new)
    with pytest.raises(NotFoundError):
        catalog.rename_table(("a",), ("nowhere", "t"))
    assert (catalog.list_tables(), catalog.list_tables(("ns",))) == (["a", "b"], ["t"])
    for name in (("a",), ("b",), ("ns", "t")):
        assert pennon.dataset(catalog.describe_table(name).location).count_rows() == 3


def test_rename_of_a_root_table_in_memory_is_refused() -> None:
    catalog = DirectoryCatalog(f"memory://{uuid.uuid4().hex}")
    written(catalog, ("t",))
    with pytest.raises(UnsupportedError, match="rename folders"):
        catalog.rename_table(("t",), ("u",))
    assert catalog.list_tables() == ["t"]


@pytest.mark.parametrize(
    "name",
    [
        ("..",),
        (".",),
        ("a b",),
        ("a.b",),
        ("a`b",),
        ("100%",),
        ("a%20b",),
        ("a?b#c",),
        ("ünï",),
        ("表",),
        ("x" * 240,),
        ("ns", ".."),
        ("ns", "a?b#c%41"),
        ("ns", "x" * 1000),
        ("ns", "ü" * 300),
        ("ns", "'; DROP TABLE x; --"),
    ],
)
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_table_with_an_odd_name_is_written_and_read(
    name: TableName, scheme: str, tmp_path: Path
) -> None:
    catalog = DirectoryCatalog(f"{scheme}{tmp_path}/root")
    catalog.create_namespace(("ns",))
    location = written(catalog, name)
    assert catalog.list_tables(name[:-1]) == [name[-1]]
    entry = catalog.describe_table(name)
    assert (entry.location, entry.declared) == (location, False)
    assert pennon.dataset(entry.location).count_rows() == 3
    assert {path.name for path in tmp_path.iterdir()} == {"root"}
    catalog.drop_table(name)
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["__manifest"]


@pytest.mark.parametrize(
    "name",
    [
        ("a/b",),
        ("../up",),
        ("a$b",),
        ("a\\b",),
        ("%2e%2e%2fx",),
        ("x" * 300,),
        ("ns", "a/b"),
        ("ns", "a$b"),
        ("%252e%252e%252f",),
    ],
)
def test_table_name_that_no_folder_can_have_raises(name: TableName, tmp_path: Path) -> None:
    catalog = DirectoryCatalog(tmp_path / "root")
    catalog.create_namespace(("ns",))
    with pytest.raises(ArgumentError):
        catalog.declare_table(name)
    with pytest.raises(ArgumentError):
        catalog.describe_table(name)
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_register_of_a_place_outside_of_the_root_raises(tmp_path: Path) -> None:
    outside = tmp_path / "outside.lance"
    pennon.write_dataset(ROWS, outside)
    catalog = DirectoryCatalog(tmp_path / "root")
    catalog.create_namespace(("ns",))
    places = [
        str(outside),
        f"file://{outside}",
        "../outside.lance",
        "s3://bucket/t",
        "a/../../x",
        "",
        "/",
        "__manifest",
        "%2e%2e/outside.lance",
    ]
    for place in places:
        with pytest.raises(ArgumentError, match="below the root"):
            catalog.register_table(("ns", "t"), place)
        with pytest.raises(ArgumentError, match="below the root"):
            catalog.declare_table(("ns", "t"), location=place)
    assert catalog.list_tables(("ns",)) == []


def test_register_takes_paths_and_uris_below_the_root(
    catalog: DirectoryCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace(("ns",))
    pennon.write_dataset(ROWS, tmp_path / "deep" / "er.lance")
    places = [
        "deep/er.lance",
        "deep/er.lance/",
        str(tmp_path / "deep/er.lance"),
        f"file://{tmp_path}/deep/er.lance",
    ]
    for number, place in enumerate(places):
        entry = catalog.register_table(("ns", f"t{number}"), place)
        assert entry.location == str(tmp_path / "deep/er.lance")
    with pytest.raises(NotFoundError, match="no table at"):
        catalog.register_table(("ns", "u"), "deep/none.lance")
    with pytest.raises(ArgumentError, match="must lie in the folder"):
        catalog.register_table(("root",), "deep/er.lance")


def test_declared_name_is_taken_until_it_is_dropped(
    catalog: DirectoryCatalog, tmp_path: Path
) -> None:
    catalog.create_namespace(("ns",))
    for name in (("t",), ("ns", "t")):
        entry = catalog.declare_table(name)
        assert entry.declared
        assert catalog.describe_table(name).declared
        assert catalog.list_tables(name[:-1]) == ["t"]
        with pytest.raises(AlreadyExistsError):
            catalog.declare_table(name)
        catalog.drop_table(name)
        assert catalog.list_tables(name[:-1]) == []
    assert [path.name for path in tmp_path.iterdir()] == ["__manifest"]


def test_table_and_namespace_of_one_name_in_the_root_are_refused(catalog: DirectoryCatalog) -> None:
    written(catalog, ("t",))
    with pytest.raises(AlreadyExistsError, match="a table t"):
        catalog.create_namespace(("t",))
    catalog.create_namespace(("ns",))
    with pytest.raises(AlreadyExistsError, match="a namespace ns"):
        catalog.declare_table(("ns",))
    assert catalog.list_tables() == ["t"]
    catalog.create_namespace(("ns", "deep"))
    with pytest.raises(AlreadyExistsError, match=r"a namespace ns\.deep"):
        catalog.declare_table(("ns", "deep"))


def test_drop_of_a_folder_without_a_table_deletes_no_file(
    catalog: DirectoryCatalog, tmp_path: Path
) -> None:
    (tmp_path / "photos.lance").mkdir()
    (tmp_path / "photos.lance" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(ArgumentError, match="nothing was deleted"):
        catalog.drop_table(("photos",))
    assert (tmp_path / "photos.lance" / "cat.jpg").read_bytes() == b"cat"


def test_catalog_of_version_1_has_no_namespaces(tmp_path: Path) -> None:
    catalog = DirectoryCatalog(tmp_path, manifest=False)
    written(catalog, ("t",))
    assert (catalog.list_namespaces(), catalog.list_tables()) == ([], ["t"])
    for work in (catalog.create_namespace, catalog.drop_namespace):
        with pytest.raises(UnsupportedError, match="no namespaces"):
            work(("ns",))
    with pytest.raises(UnsupportedError, match="tables in namespaces"):
        catalog.declare_table(("ns", "t"))
    with pytest.raises(NotFoundError):
        catalog.describe_table(("ns", "t"))
    catalog.drop_table(("t",))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ArgumentError, match="one must be True"):
        DirectoryCatalog(tmp_path, manifest=False, folders=False)


def test_catalog_never_prints_its_credentials(tmp_path: Path) -> None:
    secret = {"aws_secret_access_key": "hidden-key"}
    catalog = DirectoryCatalog("s3://user:hidden-key@bucket/root", secret)
    assert repr(catalog) == "DirectoryCatalog('s3://bucket/root')"
    local = DirectoryCatalog(tmp_path, secret)
    entry = local.declare_table(("t",))
    assert entry.storage_options == secret
    assert "hidden" not in repr(entry)
    for work in (local.drop_namespace, local.describe_table, local.declare_table):
        with pytest.raises(Exception) as caught:
            work(("t",)) if work == local.declare_table else work(("none",))
        assert "hidden" not in str(caught.value)


def test_list_of_ten_thousand_tables_opens_none(tmp_path: Path) -> None:
    for number in range(10_000):
        (tmp_path / f"t{number}.lance").mkdir()
    assert (
        len(DirectoryCatalog(tmp_path).list_tables()) == 10_000
    )  # empty folders: none can be opened


def test_list_of_root_tables_requests_folders_and_markers_only() -> None:
    inner = MemoryStore(uuid.uuid4().hex)
    for number in range(20):
        inner.put(f"t{number}.lance/_versions/1.manifest", b"never read")
    inner.put("t3.lance/.lance-deregistered", b"")
    store = CountingStore(inner)
    names = DirectoryCatalog.on_store(store).list_tables()
    assert len(names) == 19
    assert "t3" not in names
    assert dict(store.counts.verbs) == {"list": 1, "open": 20}
    assert store.counts.rounds == 0


def test_catalog_in_a_bucket(s3: S3Server) -> None:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    catalog = DirectoryCatalog(root, s3.options)
    catalog.create_namespace(("ns",), {"k": "v"})
    for name in (("t t",), ("ns", "u")):
        entry = catalog.declare_table(name)
        pennon.write_dataset(ROWS, entry.location, storage_options=dict(entry.storage_options))
    assert (catalog.list_tables(), catalog.list_tables(("ns",))) == (["t t"], ["u"])
    assert not catalog.describe_table(("ns", "u")).declared
    catalog.rename_table(("ns", "u"), ("ns", "v"))
    assert catalog.deregister_table(("t t",)).location == f"{root}/t%20t.lance"
    assert catalog.list_tables() == []
    catalog.register_table(("t t",), f"{root}/t%20t.lance")
    with pytest.raises(UnsupportedError, match="rename folders"):
        catalog.rename_table(("t t",), ("u",))
    for name in (("t t",), ("ns", "v")):
        catalog.drop_table(name)
    catalog.drop_namespace(("ns",))
    assert (catalog.list_tables(), catalog.list_namespaces()) == ([], [])


def test_catalog_reads_rows_of_pa_types_of_newer_manifests(tmp_path: Path) -> None:
    """Newer tables keep properties as JSON, and have columns of their own, which stay."""
    rows = pa.table(
        {
            "object_id": ["ns", "ns$t"],
            "object_type": ["namespace", "table"],
            "location": [None, "t"],
            "metadata": pa.ExtensionArray.from_storage(
                pa.json_(), pa.array(['{"a":"b"}', None], pa.string())
            ),
            "extra": [1, 2],
        }
    )
    pennon.write_dataset(rows, tmp_path / "__manifest", data_storage_version="2.2")
    catalog = DirectoryCatalog(tmp_path)
    assert catalog.describe_namespace(("ns",)) == {"a": "b"}
    catalog.create_namespace(("new",), {"c": "d"})
    catalog.rename_table(("ns", "t"), ("new", "u"))
    assert catalog.describe_namespace(("new",)) == {"c": "d"}
    found = pennon.dataset(tmp_path / "__manifest").to_table().sort_by("object_id").to_pylist()
    assert [(row["object_id"], row["extra"]) for row in found] == [
        ("new", None),
        ("new$u", 2),
        ("ns", 1),
    ]


def test_restore_takes_back_a_deregistered_table_of_the_root(tmp_path: Path) -> None:
    catalog = DirectoryCatalog(tmp_path)
    entry = catalog.declare_table(("t",))
    pennon.write_dataset(pa.table({"a": [1]}), entry.location)
    with pytest.raises(NotFoundError, match="no deregistered table t"):
        catalog.restore_table(("t",))
    catalog.deregister_table(("t",))
    assert catalog.list_tables() == []
    assert catalog.restore_table(("t",)).location == entry.location
    assert catalog.list_tables() == ["t"]
    with pytest.raises(NotFoundError, match="register_table says where it is"):
        catalog.restore_table(("n", "t"))
