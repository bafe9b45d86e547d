"""Transactions on the wire: each library reads and shows those of the other."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.errors import (
    ArgumentError,
    CommitError,
    FormatError,
    IncompatibleConflict,
    NotFoundError,
    SchemaMismatchError,
    UnsupportedError,
)
from pennon.proto import transaction_pb2
from pennon.table.manifest_wire import serialize_manifest_file
from pennon.table.naming import Naming, transaction_path
from pennon.table.transaction_wire import parse_transaction, read_transaction, serialize_transaction
from pennon.table.versions import read_manifest
from tests.interop.phase_locked import ROWS, VERSION, Writer, make_base, table

OPERATIONS = [
    "append",
    "delete",
    "overwrite",
    "create_index",
    "rewrite",
    "merge",
    "restore",
    "reserve_fragments",
    "update",
    "update columns",
    "project",
    "update_config",
    "data_replacement",
    "update_bases",
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("transactions")
    make_base(str(folder / "base"))
    return folder / "base"


@pytest.fixture
def uri(base: Path, tmp_path: Path) -> Iterator[str]:
    place = tmp_path / "t"
    shutil.copytree(base, place)
    yield str(place)
    shutil.rmtree(tmp_path)


def plain(value: Any) -> Any:
    """Return what an operation holds, without the classes of a library."""
    if hasattr(value, "to_json") and not isinstance(value, type):
        return plain(value.to_json())
    if hasattr(value, "to_pyarrow"):
        return value.to_pyarrow()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        names = [field.name for field in fields if field.compare and field.name != "files"]
        return {name.lstrip("_"): plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return sorted(value) if type(value).__name__ in {"Bitmap", "set"} else value


def wire(uri: str) -> bytes:
    store = pennon.dataset(uri).snapshot.store
    data = read_transaction(store, read_manifest(store))
    assert data is not None
    return data


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("lib", [pennon, lance], ids=["ours", "theirs"])
def test_transactions_are_shown_as_in_pylance(uri: str, lib: Any, name: str) -> None:
    if lib is lance and name == "reserve_fragments":
        lance.dataset(uri).optimize.compact_files()  # reserves, then rewrites
        shown = pennon.dataset(uri).read_transaction(VERSION + 1)
        assert shown is not None
        assert shown.operation == pennon.LanceOperation.Other("reserve_fragments")
        return
    Writer(lib, uri).plan(name, 0)()
    ours = pennon.dataset(uri).read_transaction(VERSION + 1)
    theirs = lance.dataset(uri).read_transaction(VERSION + 1)
    assert ours is not None
    assert theirs is not None
    assert (ours.read_version, ours.uuid) == (theirs.read_version, theirs.uuid)
    if name in {"reserve_fragments", "update_bases"}:
        assert type(theirs.operation) is lance.LanceOperation.BaseOperation
        return
    assert type(ours.operation).__name__ == type(theirs.operation).__name__
    assert plain(ours.operation) == plain(theirs.operation)


@pytest.mark.parametrize("name", OPERATIONS)
def test_transaction_parsing_keeps_unknown_fields(uri: str, name: str) -> None:
    """Nor does what pylance does not know: the same message comes out of the value."""
    Writer(pennon if name == "reserve_fragments" else lance, uri).plan(name, 0)()
    data = wire(uri)
    unknown = b"\xfa\x3e\x03abc"  # field 1007
    message = transaction_pb2.Transaction.FromString(data)
    body = getattr(message, str(message.WhichOneof("operation")))
    body.MergeFromString(unknown)
    message.MergeFromString(unknown)
    again = serialize_transaction(parse_transaction(message.SerializeToString()))
    assert transaction_pb2.Transaction.FromString(again) == message


def test_get_transactions_equals_pylance(uri: str) -> None:
    found = pennon.dataset(uri).get_transactions(3)
    assert [type(each.operation).__name__ for each in found] == ["Merge", "Append", "Append"]
    assert [each.uuid for each in found] == [
        each.uuid for each in lance.dataset(uri).get_transactions(3)
    ]
    assert len(pennon.dataset(uri).get_transactions()) == VERSION
    assert pennon.dataset(uri, version=2).get_transactions(1)[0].uuid == found[2].uuid
    assert pennon.dataset(uri).get_transactions(0) == []


def test_commit_batch_of_appends(uri: str) -> None:
    ops = pennon.LanceOperation
    new = [Writer(pennon, uri)._write(range(first, first + 3)) for first in (100, 200)]
    transactions = [pennon.Transaction(VERSION - n, ops.Append([f])) for n, f in enumerate(new)]
    result = pennon.LanceDataset.commit_batch(uri, transactions)
    assert result["dataset"].version == VERSION + 1
    assert result["merged"].read_version == VERSION - 1
    assert lance.dataset(uri).count_rows() == 3 * ROWS + 6
    for wrong in ([], [pennon.Transaction(VERSION, ops.Restore(1))]):
        with pytest.raises(ArgumentError):
            pennon.LanceDataset.commit_batch(uri, wrong)


def test_detached_versions_are_opened_by_both(uri: str) -> None:
    """They are no newest version, in no list, and both libraries open and continue them."""
    append = pennon.LanceOperation.Append([Writer(pennon, uri)._write(range(100, 103))])
    theirs = lance.LanceOperation.Append([Writer(lance, uri)._write(range(200, 203))])
    first = pennon.LanceDataset.commit(uri, append, read_version=VERSION, detached=True)
    assert first.version >= 1 << 63
    assert lance.dataset(uri, version=first.version).count_rows() == 3 * ROWS + 3
    second = lance.LanceDataset.commit(uri, theirs, read_version=first.version, detached=True)
    opened = pennon.dataset(uri, version=second.version)
    assert opened.count_rows() == 3 * ROWS + 6
    third = pennon.LanceDataset.commit(opened, append, read_version=opened.version, detached=True)
    assert lance.dataset(uri, version=third.version).to_table() == third.to_table()
    assert [each["version"] for each in pennon.dataset(uri).versions()] == [1, 2, 3, 4]
    assert pennon.dataset(uri).version == lance.dataset(uri).version == VERSION
    with pytest.raises(ArgumentError, match="is detached"):
        pennon.LanceDataset.commit(uri, append, read_version=first.version)
    with pytest.raises(NotFoundError):
        pennon.dataset(uri, version=first.version + 1)


def test_detached_versions_need_naming_scheme_v2(tmp_path: Path) -> None:
    old = str(tmp_path / "old")
    pennon.write_dataset(table([1]), old, enable_v2_manifest_paths=False)
    append = pennon.LanceOperation.Append([Writer(pennon, old)._write([2])])
    with pytest.raises(UnsupportedError, match="migrate"):
        pennon.LanceDataset.commit(old, append, read_version=1, detached=True)
    pennon.dataset(old).migrate_manifest_paths_v2()
    made = pennon.LanceDataset.commit(old, append, read_version=1, detached=True)
    assert made.count_rows() == 2


def test_commit_of_missing_or_short_files_is_refused(uri: str) -> None:
    fragment = Writer(pennon, uri)._write(range(100, 103))
    operation = pennon.LanceOperation.Append([fragment])
    path = Path(uri) / "data" / str(fragment.files[0].path)
    data = path.read_bytes()
    path.unlink()
    with pytest.raises(NotFoundError, match="1 files to be committed are not there"):
        pennon.LanceDataset.commit(uri, operation, read_version=VERSION)
    path.write_bytes(data[:-1])
    with pytest.raises(FormatError, match=r"has \d+ bytes, not"):
        pennon.LanceDataset.commit(uri, operation, read_version=VERSION)
    assert pennon.dataset(uri).version == VERSION
    path.write_bytes(data)
    assert pennon.LanceDataset.commit(uri, operation, read_version=VERSION).count_rows() == 33


def test_data_replacement_of_wrong_row_count_is_refused(uri: str) -> None:
    file = Writer(pennon, uri)._one_column(range(7))
    group = pennon.LanceOperation.DataReplacementGroup(1, file)
    operation = pennon.LanceOperation.DataReplacement([group])
    with pytest.raises(ArgumentError, match="has 7 rows, but fragment 1"):
        pennon.LanceDataset.commit(uri, operation, read_version=VERSION)


def test_commit_to_recreated_table_is_a_conflict(uri: str, base: Path) -> None:
    handle = pennon.dataset(uri)
    operation = pennon.LanceOperation.Append([Writer(pennon, uri)._write([100])])
    shutil.rmtree(uri)
    make_base(uri)
    with pytest.raises(IncompatibleConflict, match="dropped and made anew"):
        pennon.LanceDataset.commit(handle, operation, read_version=VERSION)
    assert lance.dataset(uri).version == VERSION


@pytest.mark.parametrize("file_version", ["2.0", "2.1", "2.2"])
def test_commit_of_fragments_of_pylance_keeps_field_ids(tmp_path: Path, file_version: Any) -> None:
    """Fragments that pylance wrote are committed under the field ids of their own footers, or refused."""
    uri, rows = str(tmp_path / "t"), pa.table({"a": [1], "b": [2], "c": [3], "s": [{"x": 4}]})
    lance.write_dataset(rows, uri, data_storage_version=file_version)
    lance.dataset(uri).drop_columns(["b"])
    lance.dataset(uri).add_columns({"d": "a * 2"})
    new = lance.dataset(uri).to_table()
    version = pennon.dataset(uri).version

    def written(mode: str) -> list[Any]:
        made = lance.fragment.write_fragments(
            new, uri, mode=mode, data_storage_version=file_version
        )
        texts = [json.dumps(each.to_json()) for each in made]
        return [pennon.FragmentMetadata.from_json(text) for text in texts]

    ops = pennon.LanceOperation
    wrong = [
        ops.Append(written("overwrite")),
        ops.Overwrite(new.schema, written("append")),
        ops.Overwrite(pa.schema(list(reversed(new.schema))), written("overwrite")),
    ]
    for operation in wrong:
        with pytest.raises(SchemaMismatchError, match="under field id"):
            pennon.LanceDataset.commit(uri, operation, read_version=version)
    made = pennon.LanceDataset.commit(uri, ops.Append(written("append")), read_version=version)
    assert made.to_table() == lance.dataset(uri).to_table() == pa.concat_tables([new, new])
    overwrite = ops.Overwrite(new.schema, written("overwrite"))
    made = pennon.LanceDataset.commit(uri, overwrite, read_version=made.version)
    assert made.to_table() == lance.dataset(uri).to_table() == new


def test_merge_operations_refused_by_pylance_are_refused(tmp_path: Path) -> None:
    """Ids given anew, ids of dropped columns, new requirements; a merge that both accept is the same."""
    uri, rows = str(tmp_path / "t"), pa.table({"a": [1, None], "b": [2, 3], "c": [4, 5]})
    lance.write_dataset(rows, uri)
    a, b, c, d = (pa.field(name, pa.int64()) for name in "abcd")
    wrong = [[b, a, c], [a, c, b], [a, b, d, c], [a.with_nullable(nullable=False), b, c]]
    for fields in wrong:
        for library in (lance, pennon):
            dataset = library.dataset(uri)
            schema = library.schema.LanceSchema.from_pyarrow(pa.schema(fields))
            fragments = [each.metadata for each in dataset.get_fragments()]
            operation = library.LanceOperation.Merge(fragments, schema)
            with pytest.raises(OSError, match=r"Merge|never NULL"):
                library.LanceDataset.commit(uri, operation, read_version=dataset.version)
    for fields in ([a, b], [a, b, c, d]):
        shown = []
        for library in (lance, pennon):
            place = str(tmp_path / f"{library.__name__}{len(fields)}")
            dataset = library.write_dataset(rows, place)
            schema = library.schema.LanceSchema.from_pyarrow(pa.schema(fields))
            fragments = [each.metadata for each in dataset.get_fragments()]
            operation = library.LanceOperation.Merge(fragments, schema)
            library.LanceDataset.commit(place, operation, read_version=1)
            shown.append(lance.dataset(place).to_table())
        assert shown[0] == shown[1]


def test_commit_over_unreadable_transaction_is_refused(uri: str) -> None:
    """A newer version whose transaction cannot be judged stands in the way, and says so."""
    commit = Writer(pennon, uri).plan("append", 0)
    Writer(pennon, uri).plan("update_config", 0)()
    store = pennon.dataset(uri).snapshot.store
    manifest = read_manifest(store)
    assert manifest.transaction_file is not None
    strip_inline(uri)
    Path(uri, transaction_path(manifest.transaction_file)).write_bytes(b"\xff\xff\xff")
    with pytest.raises(IncompatibleConflict, match="transaction of version 5 cannot be read"):
        commit()
    Path(uri, transaction_path(manifest.transaction_file)).unlink()
    with pytest.raises(CommitError, match="transaction of version 5 is lost"):
        commit()
    assert pennon.dataset(uri).version == VERSION + 1


def strip_inline(uri: str) -> None:
    """Write the newest manifest without its transaction, as releases before late 2025 did."""
    store = pennon.dataset(uri).snapshot.store
    manifest = dataclasses.replace(read_manifest(store), transaction=None)
    store.put(Naming.V2.manifest_path(manifest.version), serialize_manifest_file(manifest))
