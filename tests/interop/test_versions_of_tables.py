"""File versions of tables: the default, the requested one, and mixtures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import ArgumentError, UnsupportedError
from pennon.table.manifest import Manifest

STRUCT = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
FIELDS = [
    pa.field("a", pa.int64()),
    pa.field("s", STRUCT),
    pa.field("l", pa.list_(STRUCT)),
    pa.field("v", pa.list_(pa.float32(), 2)),
    pa.field("p", pa.struct([("q", pa.int8())]), metadata={"packed": "true"}),
    pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
    pa.field("e", pa.struct([])),
]
ROW = {"x": 1, "y": ["a", None]}
TABLE = pa.Table.from_pylist(
    [{"a": 1, "s": ROW, "l": [ROW], "v": [1, 2], "p": {"q": 1}, "b": b"blob", "e": {}}],
    pa.schema(FIELDS),
)
PLAIN = pa.table({"a": [1, 2, 3], "t": ["x", None, "z"]})


def _manifest(uri: str) -> Manifest:
    return pennon.dataset(uri).snapshot.manifest


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_manifests_of_each_file_version_equal_pylance(version: str, tmp_path: Path) -> None:
    seen = []
    table = TABLE.drop_columns(["b"]) if version == "2.2" else TABLE  # which has other blobs
    for module in (lance, pennon):
        uri = str(tmp_path / module.__name__)
        module.write_dataset(table, uri, data_storage_version=version)
        module.write_dataset(table, uri, mode="append")
        manifest = _manifest(uri)
        files = [file for fragment in manifest.fragments for file in fragment.files]
        entries = [(f.field_ids, f.column_indices, f.major, f.minor) for f in files]
        flags = (manifest.reader_flags, manifest.writer_flags)
        seen.append((entries, manifest.data_format, flags, manifest.max_fragment_id))
        json = [fragment.metadata.to_json() for fragment in lance.dataset(uri).get_fragments()]
        assert [len(fragment["files"]) for fragment in json] == [1, 1]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("second", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("first", ["2.0", "2.1", "2.2"])
def test_appends_of_other_file_versions_equal_pylance(
    first: Any, second: Any, tmp_path: Path
) -> None:
    """The oracle mixes versions when it is asked to, and marks the table; so do we."""
    seen = []
    for module in (lance, pennon):
        uri = str(tmp_path / module.__name__)
        lance.write_dataset(PLAIN, uri, data_storage_version=first)
        module.write_dataset(PLAIN, uri, mode="append", data_storage_version=second)
        manifest = _manifest(uri)
        flags = (manifest.reader_flags, manifest.writer_flags)
        assert flags == ((0, 0) if first == second else (256, 256))
        seen.append((str(manifest.data_format), flags, pennon.dataset(uri).data_storage_version))
        lance.dataset(uri).delete("a = 2")
        theirs, ours = lance.dataset(uri), pennon.dataset(uri)
        assert ours.to_table().equals(theirs.to_table())
        assert ours.take([3, 0]).equals(theirs.take([3, 0]))
        pennon.write_dataset(PLAIN, uri, mode="append")
        pennon.dataset(uri).optimize.compact_files()
        assert lance.dataset(uri).to_table().equals(pennon.dataset(uri).to_table())
        assert pennon.dataset(uri).data_storage_version == first
        assert (_manifest(uri).reader_flags, _manifest(uri).writer_flags) == (0, 0)
    assert len(set(seen)) == 1


@pytest.mark.parametrize(("first", "second"), [("2.1", "2.0"), ("2.0", "2.1"), ("2.1", "2.2")])
def test_compaction_to_another_file_version_sets_the_mixture_flag(
    first: Any, second: Any, tmp_path: Path
) -> None:
    """A compaction may leave no file of the version that the table states; that is a mixture, too."""
    for module in (lance, pennon):
        uri = str(tmp_path / module.__name__)
        lance.write_dataset(PLAIN, uri, max_rows_per_file=1, data_storage_version=first)
        module.dataset(uri).optimize.compact_files(data_storage_version=second)
        manifest = _manifest(uri)
        (fragment,) = manifest.fragments
        assert f"{fragment.files[0].major}.{fragment.files[0].minor}" == second
        assert pennon.dataset(uri).data_storage_version == first
        assert (manifest.reader_flags, manifest.writer_flags) == (256, 256)
        lance.dataset(uri).validate()
        pennon.dataset(uri).delete("a = 2")
        rows = PLAIN.filter([True, False, True])
        assert lance.dataset(uri).to_table() == pennon.dataset(uri).to_table() == rows


def test_append_to_newer_file_version_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(PLAIN, uri, data_storage_version="2.3")
    message = r"version 2\.3, and Pennon writes none newer than 2\.2; .*'2\.2'"
    for write in (pennon.write_dataset, pennon.fragment.write_fragments):
        with pytest.raises(UnsupportedError, match=message):
            write(PLAIN, uri, mode="append")
    with pytest.raises(UnsupportedError, match=message):
        pennon.LanceFragment.create(uri, PLAIN)
    with pytest.raises(UnsupportedError, match=message):
        pennon.dataset(uri).insert(PLAIN)
    assert lance.dataset(uri).version == 1
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1


def test_files_of_2_2_in_a_table_of_2_3(tmp_path: Path) -> None:
    """Pennon adds them when it is told to; pylance reads all of them."""
    uri = str(tmp_path / "t")
    lance.write_dataset(PLAIN, uri, data_storage_version="2.3")
    pennon.write_dataset(PLAIN, uri, mode="append", data_storage_version="2.2")
    assert (_manifest(uri).reader_flags, _manifest(uri).writer_flags) == (256, 256)
    assert lance.dataset(uri).to_table().equals(pa.concat_tables([PLAIN, PLAIN]))
    assert lance.dataset(uri).data_storage_version == "2.3"


@pytest.mark.parametrize(
    ("version", "then"),
    [("0.1", "0.1"), ("2.0", "2.0"), ("2.1", "2.1"), ("2.2", "2.2"), ("2.3", "2.2")],
)
def test_overwrite_keeps_the_file_version_if_writable(
    version: Any, then: str, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(PLAIN, uri, data_storage_version=version)
    written = pennon.write_dataset(PLAIN, uri, mode="overwrite")
    assert written.data_storage_version == lance.dataset(uri).data_storage_version == then
    assert lance.dataset(uri).to_table().equals(PLAIN)
    assert _manifest(uri).reader_flags == 0


def test_append_mixing_0_1_with_newer_versions_is_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(PLAIN, uri, data_storage_version="0.1")
    for module in (lance, pennon):
        with pytest.raises((OSError, ValueError, NotImplementedError)):
            module.write_dataset(PLAIN, uri, mode="append", data_storage_version="2.1")
    assert lance.dataset(uri).version == 1
    with pytest.raises(ArgumentError, match=r"2\.1 cannot be added to a table of version 0\.1"):
        pennon.write_dataset(PLAIN, uri, mode="append", data_storage_version="2.1")
    assert len(list((tmp_path / "t" / "data").iterdir())) == 1
    pennon.write_dataset(PLAIN, uri, mode="overwrite", data_storage_version="2.1")
    with pytest.raises(ArgumentError, match=r"0\.1 cannot be added to a table of version 2\.1"):
        pennon.write_dataset(PLAIN, uri, mode="append", data_storage_version="legacy")
