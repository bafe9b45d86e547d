"""Transactions as bytes, of Pennon and of pylance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from pennon.core.units import FieldId, FragmentId
from pennon.errors import FormatError
from pennon.io import open_store
from pennon.proto import transaction_pb2
from pennon.schema.arrow import schema_from_arrow
from pennon.table.commit.conflict_matrix import config_keys
from pennon.table.commit.loop import commit
from pennon.table.fragment import DataFileRef, Fragment
from pennon.table.operations import Append, Other, Overwrite, operation_name
from pennon.table.transaction import Transaction, check_uuid
from pennon.table.transaction_wire import parse_transaction, read_transaction, serialize_transaction
from pennon.table.versions import list_locations, read_manifest, read_manifest_at
from tests.unit.table.tables import SCHEMA, append, new_fragment, overwrite

OLD = Path(__file__).parent / "old_releases"
PROPERTIES = {"b": "2", "a": "1"}


def oracle_fragments(rows: pa.Table, root: str) -> tuple[Fragment, ...]:
    written = lance.fragment.write_fragments(rows, root, data_storage_version="2.0")
    return tuple(
        Fragment(
            FragmentId(0),
            tuple(
                DataFileRef(
                    f.path,
                    tuple(map(FieldId, f.fields)),
                    tuple(f.column_indices),
                    2,
                    0,
                    f.file_size_bytes,
                )
                for f in fragment.files
            ),
            fragment.physical_rows,
        )
        for fragment in written
    )


def test_commits_of_pennon_are_read_by_pylance(tmp_path: Path) -> None:
    root = str(tmp_path / "t.lance")
    rows = pa.table({"a": [1, 2], "s": ["x", None]}).replace_schema_metadata({"k": "v"})
    schema = schema_from_arrow(rows.schema)
    store = open_store(root)
    made = Overwrite(oracle_fragments(rows, root), schema, {"team": "red"})
    first = commit(store, Transaction(0, made, properties=PROPERTIES))
    second = commit(store, Transaction(1, Append(oracle_fragments(rows, root))))
    table = lance.dataset(root)
    assert table.to_table() == pa.concat_tables([rows, rows])
    assert [f.fragment_id for f in table.get_fragments()] == [0, 1]
    assert table.config() == {"team": "red"}
    assert table.max_field_id == 1
    theirs = [t for t in map(table.read_transaction, (1, 2)) if t is not None]
    assert [t.read_version for t in theirs] == [0, 1]
    assert isinstance(theirs[0].operation, lance.LanceOperation.Overwrite)
    assert isinstance(theirs[1].operation, lance.LanceOperation.Append)
    assert theirs[0].transaction_properties == PROPERTIES
    assert first.transaction is not None
    assert theirs[0].uuid == parse_transaction(first.transaction).uuid
    file = Path(root) / "_transactions" / (second.transaction_file or "")
    assert file.read_bytes() == second.transaction
    lance.write_dataset(rows, root, mode="append")
    commit(store, append(3, *oracle_fragments(rows, root)))
    assert lance.dataset(root).count_rows() == 8


def test_transactions_of_pylance_are_read_inline_and_from_files(tmp_path: Path) -> None:
    root = str(tmp_path / "t.lance")
    rows = pa.table({"a": range(20)})
    lance.write_dataset(rows, root, data_storage_version="2.0")
    table = lance.write_dataset(rows, root, mode="append")
    table.create_scalar_index("a", "BTREE")
    table.delete("a = 3")
    table.update_config({"team": "red"})
    table.add_columns({"b": "a + 1"})
    table.drop_columns(["b"])
    table.restore()
    store = open_store(root)
    names = []
    for location in list_locations(store):
        manifest = read_manifest_at(store, location)
        inline = read_transaction(store, manifest)
        file = read_transaction(store, replace(manifest, transaction=None))
        assert inline is not None
        assert file is not None
        parsed = parse_transaction(inline)
        assert parsed == parse_transaction(file)
        ours = serialize_transaction(parsed)
        known = transaction_pb2.Transaction.FromString(inline)
        assert transaction_pb2.Transaction.FromString(ours) == known
        names.append(operation_name(parsed.operation))
    assert names == [
        "overwrite", "append", "create_index", "delete", "update_config", "merge", "project",
        "restore",
    ]  # fmt: skip


@pytest.mark.parametrize("path", sorted(OLD.rglob("*.txn")), ids=lambda p: p.name)
def test_transactions_of_old_releases(path: Path) -> None:
    data = path.read_bytes()
    ours = serialize_transaction(parse_transaction(data))
    message = transaction_pb2.Transaction
    assert message.FromString(ours) == message.FromString(data)


def test_transaction_file_of_old_release_is_read() -> None:
    store = open_store(OLD / "0.36.0/btree_in_index_pkg.lance")
    data = read_transaction(store, read_manifest(store))
    assert data is not None
    assert operation_name(parse_transaction(data).operation) == "create_index"


def test_missing_transaction_file_reads_as_none() -> None:
    store = open_store(OLD / "0.36.0/btree_in_index_pkg.lance")
    manifest = replace(read_manifest(store), transaction_file=f"1-{'a' * 8}.txn")
    assert read_transaction(store, manifest) is None
    with pytest.raises(FormatError):
        read_transaction(store, replace(manifest, transaction_file="../../etc/passwd"))


def test_equal_transactions_have_equal_bytes() -> None:
    one = replace(overwrite(3, a="1", b="2"), properties=PROPERTIES)
    assert isinstance(one.operation, Overwrite)
    operation = replace(one.operation, config_upserts={"b": "2", "a": "1"})
    other = replace(one, operation=operation, properties=dict(reversed(PROPERTIES.items())))
    assert serialize_transaction(one) == serialize_transaction(other)
    assert parse_transaction(serialize_transaction(one)) == one


def test_transaction_unknown_operations_and_fields_round_trip() -> None:
    data = serialize_transaction(Transaction(1, Append(()))) + b"\x82\x08\x02hi"
    parsed = parse_transaction(data)
    assert b"\x82\x08\x02hi" in serialize_transaction(parsed)
    newer = transaction_pb2.Transaction(read_version=4, uuid="u").SerializeToString()
    assert parse_transaction(newer + b"\x82\x08\x02hi").operation == Other("")


@pytest.mark.parametrize("data", [b"\xff", b"\x12\x05ab", b"\x12\x01\xff"])
def test_damaged_transactions_are_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="no Transaction"):
        parse_transaction(data)


def test_config_keys_of_old_and_new_messages() -> None:
    message = transaction_pb2.Transaction()
    update = message.update_config
    update.upsert_values["old"] = "x"
    update.delete_keys.append("gone")
    update.config_updates.update_entries.add(key="new")
    operation = parse_transaction(message.SerializeToString()).operation
    assert config_keys(operation) == {"old", "gone", "new"}
    assert config_keys(Overwrite((), SCHEMA, {"k": "v"})) == {"k"}
    assert config_keys(Append((new_fragment(),))) == frozenset()


@pytest.mark.parametrize("value", ["", "../x", "a b", "12345"])
def test_invalid_transaction_uuids_are_refused(value: str) -> None:
    with pytest.raises(FormatError):
        check_uuid(value)


def test_fragments_of_a_transaction_are_checked() -> None:
    message = transaction_pb2.Transaction()
    message.append.fragments.add(id=1 << 40)
    with pytest.raises(FormatError, match="row address"):
        parse_transaction(message.SerializeToString())
