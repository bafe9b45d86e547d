"""Kill -9 between any two system calls of a local write: all there or not there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pennon.core.byte_ranges import ByteRange
from pennon.errors import AlreadyExistsError
from pennon.io import LocalStore
from tests.faults.killing import die_at

BODY = bytes(range(256)) * 2000
PATH = "_versions/1.manifest"


def killed(step: int, action: Callable[[], None]) -> bool:
    """Do ``action`` in a child that dies at ``step``; tell whether it died before the end."""
    child = os.fork()
    if child == 0:
        die_at(step)
        action()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


@pytest.mark.parametrize("verb", ["put_if_absent", "put", "stream"])
def test_local_write_killed_at_each_system_call_is_atomic(tmp_path: Path, verb: str) -> None:
    def act(store: LocalStore) -> None:
        if verb == "stream":
            with store.open_writer(PATH) as writer:
                for start in range(0, len(BODY), 100_000):
                    writer.write(BODY[start : start + 100_000])
        else:
            getattr(store, verb)(PATH, BODY)

    steps, visible = 0, []
    while True:
        steps += 1
        root = str(tmp_path / str(steps))
        Path(root).mkdir()
        store = LocalStore(root, root)
        died = killed(steps, lambda store=store: act(store))  # type: ignore[misc]
        names = [found.path for found in store.list("")]
        assert [name for name in names if not name.startswith("_versions/.tmp_")] in (
            [],
            [PATH],
        )
        visible.append(PATH in names)
        repair_by_trying_again(store, is_there=PATH in names)
        if not died:
            break
    assert visible[-1]
    assert visible == sorted(visible)
    assert steps > 6


def repair_by_trying_again(store: LocalStore, *, is_there: bool) -> None:
    """Commit again with no other repair: it succeeds, or finds the whole object there."""
    if is_there:
        with pytest.raises(AlreadyExistsError):
            store.put_if_absent(PATH, BODY)
    else:
        store.put_if_absent(PATH, BODY)
    (whole,) = store.open(PATH).read([ByteRange(0, len(BODY))])
    assert whole.to_pybytes() == BODY
