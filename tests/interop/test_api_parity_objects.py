"""Objects of pylance beyond scans: schemas with ids, progress, files, signatures."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import pennon
from pennon.compat.not_implemented import LATER
from pennon.errors import UnsupportedError

MODULES = (lance, pennon)
NESTED = pa.table(
    {
        "x": [1, 2],
        "s": [{"a": 1, "B": "q"}, {"a": 2, "B": "r"}],
        "l": [[1.5], []],
    }
)


VERSION = ["2.0"]


@pytest.fixture(params=["2.0", "2.1", "2.2"], autouse=True)
def version(request: pytest.FixtureRequest) -> None:
    """Write at each file version in turn."""
    VERSION[0] = request.param


def _write(module: Any, data: pa.Table, uri: Path, **options: Any) -> Any:
    return module.write_dataset(data, str(uri), data_storage_version=VERSION[0], **options)


def _field(field: Any) -> Any:
    children = [_field(child) for child in field.children()]
    return field.name(), field.id(), field.metadata, field.to_arrow(), children


def test_lance_schema_with_ids_equals_pylance(tmp_path: Path) -> None:
    seen = []
    for module in MODULES:
        schema = _write(module, NESTED, tmp_path / module.__name__).lance_schema
        assert pickle.loads(pickle.dumps(schema)) == schema
        assert module.schema.LanceSchema.from_pyarrow(NESTED.schema) == schema
        assert schema.to_pyarrow() == NESTED.schema
        assert repr(schema).startswith("Schema {")
        found = [schema.field(path) for path in ("s.a", "s.B", "S.a", "none")]
        found += [schema.field_case_insensitive(path) for path in ("S.b", "none")]
        seen.append(
            (
                [_field(field) for field in schema.fields()],
                [None if field is None else field.id() for field in found],
            )
        )
    assert seen[0] == seen[1]


def test_overwrite_takes_and_shows_a_schema_with_ids(tmp_path: Path) -> None:
    for module in MODULES:
        first = _write(module, NESTED, tmp_path / module.__name__)
        fragments = [fragment.metadata for fragment in first.get_fragments()]
        operation = module.LanceOperation.Overwrite(first.lance_schema, fragments)
        done = module.LanceDataset.commit(first, operation, read_version=1)
        assert done.to_table() == NESTED
        assert done.read_transaction(2).operation.new_schema == first.lance_schema


class Watching:
    """A progress of either library."""

    def __init__(self, module: Any) -> None:
        class Progress(module.progress.FragmentWriteProgress):
            def begin(progress, fragment: Any, **_: Any) -> None:  # noqa: N805
                self.begun.append(fragment)

            def complete(progress, fragment: Any, **_: Any) -> None:  # noqa: N805
                self.completed.append(fragment)

        self.begun: list[Any] = []
        self.completed: list[Any] = []
        self.progress = Progress()


def test_progress_of_one_fragment(tmp_path: Path) -> None:
    for module in MODULES:
        watching = Watching(module)
        made = module.LanceFragment.create(
            str(tmp_path / module.__name__), NESTED, fragment_id=7, progress=watching.progress
        )
        (begun,), (completed,) = watching.begun, watching.completed
        assert made.id == begun.id == completed.id == 7
        assert begun.files[0].path == completed.files[0].path == made.files[0].path
        assert begun.physical_rows is None
        assert completed.physical_rows == 2


def test_fragment_progress_files_equal_pylance(tmp_path: Path) -> None:
    for module in MODULES:
        folder = tmp_path / f"{module.__name__}-progress"
        watch = module.progress.FileSystemFragmentWriteProgress(str(folder))
        made = module.LanceFragment.create(str(tmp_path / module.__name__), NESTED, progress=watch)
        assert [path.name for path in folder.iterdir()] == ["fragment_0.json"]
        text = (folder / "fragment_0.json").read_text()
        (file,) = module.FragmentMetadata.from_json(text).files
        assert file.path == made.files[0].path


@pytest.mark.parametrize(
    "data", [pa.table({"a": pa.array([], pa.int64())}), pa.table({})], ids=["no rows", "no columns"]
)
def test_fragment_create_without_rows_or_columns_is_refused(data: pa.Table, tmp_path: Path) -> None:
    for module in MODULES:
        with pytest.raises(OSError):
            module.LanceFragment.create(str(tmp_path / module.__name__), data)


def test_data_file_path_is_callable_with_deprecation_warning(tmp_path: Path) -> None:
    for module in MODULES:
        (made,) = module.fragment.write_fragments(NESTED, str(tmp_path / module.__name__))
        (file,) = pickle.loads(pickle.dumps(made)).files
        with pytest.warns(DeprecationWarning, match="path"):
            path = file.path()
        assert path == file.path
        assert json.loads(json.dumps(made.to_json()))["files"][0]["path"] == path


def test_positional_arguments_of_a_fragment(tmp_path: Path) -> None:
    tables = []
    for module in MODULES:
        (fragment,) = _write(module, NESTED, tmp_path / module.__name__).get_fragments()
        tables.append(fragment.to_table(["x"], None, 1, 1, True))  # noqa: FBT003
        frame = fragment.to_pandas(["x"], None, 1, types_mapper={pa.int64(): None}.get)
        assert frame["x"].tolist() == [1]
    assert tables[0] == tables[1]


def test_batch_size_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": range(100)})
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "12")
    rows = [
        [batch.num_rows for batch in _write(m, table, tmp_path / m.__name__).to_batches()]
        for m in MODULES
    ]
    assert rows[0] == rows[1]
    monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "twelve")
    with pytest.raises(ValueError, match="twelve"):
        list(pennon.dataset(tmp_path / "pennon").to_batches())


def test_sessions_of_a_fragment(tmp_path: Path) -> None:
    taken, errors = [], []
    for module in MODULES:
        table = _write(module, NESTED, tmp_path / module.__name__)
        table.delete("x = 1")
        (fragment,) = table.get_fragments()
        for columns, address in ((None, True), (["l"], None), (["x", "s"], True)):
            session = fragment.open_session(columns, address)
            assert isinstance(session, module.fragment.FragmentSession)
            taken += [session.take([0]), session.take(range(1)), session.take([])]
            with pytest.raises((OSError, TypeError)) as raised:
                session.take([1] if address else None)
            errors.append(raised.type if raised.type is TypeError else OSError)
        with pytest.raises(OSError if module is lance else ValueError, match="none"):
            fragment.open_session(["none"])
    middle = len(taken) // 2
    assert taken[:middle] == taken[middle:]
    assert errors[:3] == errors[3:]


def test_take_with_repeated_columns_and_row_ids_equals_pylance(tmp_path: Path) -> None:
    columns = ["_rowid", "x", "_rowid", "_rowaddr", "x"]
    tables = [_write(m, NESTED, tmp_path / m.__name__).take([1, 0], columns) for m in MODULES]
    assert tables[0] == tables[1]


SAME_ARGUMENTS = [
    "dataset",
    "write_dataset",
    "LanceDataset.__init__",
    "LanceDataset.scanner",
    "LanceDataset.to_table",
    "LanceDataset.to_batches",
    "LanceDataset.to_pandas",
    "LanceDataset.take",
    "LanceDataset.head",
    "LanceDataset.slice",
    "LanceDataset.sample",
    "LanceDataset.count_rows",
    "LanceDataset.commit",
    "LanceDataset.insert",
    "LanceDataset.get_fragments",
    "LanceDataset.get_fragment",
    "LanceDataset.checkout_version",
    "LanceFragment.scanner",
    "LanceFragment.to_table",
    "LanceFragment.to_batches",
    "LanceFragment.to_pandas",
    "LanceFragment.take",
    "LanceFragment.head",
    "LanceFragment.count_rows",
    "LanceFragment.create",
    "FragmentMetadata.__init__",
    "FragmentMetadata.from_json",
    "Transaction.__init__",
    "LanceOperation.Append.__init__",
    "LanceOperation.Overwrite.__init__",
    "Session",
    "fragment.write_fragments",
    "fragment.DataFile.__init__",
    "fragment.DeletionFile.from_json",
    "file.LanceFileReader.__init__",
    "file.LanceFileReader.read_all",
    "file.LanceFileReader.read_range",
    "file.LanceFileReader.take_rows",
    "file.LanceFileWriter.__init__",
    "file.LanceFileWriter.add_schema_metadata",
]


def _parameters(module: Any, path: str) -> dict[str, inspect.Parameter]:
    for name in path.split("."):
        module = getattr(module, name)
    return dict(inspect.signature(module).parameters)


@pytest.mark.parametrize("path", SAME_ARGUMENTS)
def test_parameters_and_defaults_equal_those_of_pylance(path: str) -> None:
    """What may be passed by position may be so here, and every keyword is known or caught."""
    theirs, ours = (_parameters(module, path) for module in MODULES)
    rest = any(parameter.kind is parameter.VAR_KEYWORD for parameter in ours.values())
    for name, parameter in theirs.items():
        if parameter.kind is parameter.VAR_KEYWORD or name.startswith("_"):
            continue
        assert name in ours or rest, name
        if name in ours and parameter.default is not parameter.empty:
            mine = ours[name].default
            absent = not mine or repr(mine) == "<factory>"
            assert mine == parameter.default or (absent and not parameter.default), name
    shared = [name for name, p in theirs.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    positional = [name for name, p in ours.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert positional == shared[: len(positional)]


@pytest.mark.parametrize("owner", LATER)
def test_every_name_of_pylance_exists_or_raises_unsupported(owner: str) -> None:
    theirs, ours = (module if owner == "pennon" else getattr(module, owner) for module in MODULES)
    listed = lance.__all__ if owner == "pennon" else dir(theirs)
    for name in listed:
        if name.startswith("_"):
            continue
        assert hasattr(ours, name) != (name in LATER[owner]), name
    for name in LATER[owner]:
        assert hasattr(theirs, name), name
        with pytest.raises(UnsupportedError, match=f"{name} is not supported yet"):
            getattr(ours, name)


def test_unsupported_names_of_pylance_are_absent_attributes(tmp_path: Path) -> None:
    table = _write(pennon, NESTED, tmp_path / "t")
    assert not hasattr(table, "mem_wal_writer")
    assert getattr(table, "mem_wal_writer", 5) == 5
    with pytest.raises(
        UnsupportedError, match=r"LanceDataset\.mem_wal_writer is not supported yet"
    ):
        table.mem_wal_writer()
    with pytest.raises(AttributeError, match="no attribute 'dleete'"):
        table.dleete  # noqa: B018
    assert pennon.__version__
    assert pennon.file.stable_version() == lance.file.stable_version() == "2.2"


def _shared(module: Any, folder: Path) -> list[object]:
    """Return what sessions of a module do."""
    data = pa.table({"a": range(1_000)})
    first = module.write_dataset(data, str(folder), max_rows_per_file=250)
    session = first.session()
    before = session.size_bytes()
    found: list[object] = [first.to_table() == data, session.size_bytes() > before]
    second = module.dataset(str(folder), session=session)
    found += [second.session().is_same_as(session), session.is_same_as(module.Session())]
    found += [second.to_table() == data, second.session().size_bytes() == session.size_bytes()]
    appended = module.write_dataset(data, second, mode="append")
    found += [
        view.session().is_same_as(session) for view in (appended, appended.checkout_version(1))
    ]
    alone = [module.dataset(str(folder)), pickle.loads(pickle.dumps(first))]
    found += [view.session().is_same_as(session) for view in alone]
    bare = module.dataset(str(folder), index_cache_size_bytes=0, metadata_cache_size_bytes=0)
    bare.to_table()
    found += [bare.session().size_bytes() < session.size_bytes()]
    kept = module.dataset(str(folder), session=session, metadata_cache_size_bytes=0)
    found += [kept.session().is_same_as(session)]
    return [*found, repr(module.Session(1, 2))]


def test_session_sizes_equal_pylance(tmp_path: Path) -> None:
    theirs, ours = (_shared(module, tmp_path / module.__name__) for module in MODULES)
    assert ours[:-1] == theirs[:-1]
    assert (
        ours[-1] == theirs[-1] == "Session(index_cache_size_bytes=0, metadata_cache_size_bytes=0)"
    )


def test_session_argument_of_wrong_type_is_refused(tmp_path: Path) -> None:
    for module in MODULES:
        _write(module, NESTED, tmp_path / module.__name__)
        for wrong in (1, "x"):
            with pytest.raises(TypeError):
                module.dataset(str(tmp_path / module.__name__), session=wrong)
        with pytest.raises(TypeError):
            module.Session("many")
        with pytest.raises(TypeError):
            module.Session().is_same_as(3)
