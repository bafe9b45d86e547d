"""`pennon.hf` without the package ``datasets``; tests/engines has those with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from pennon import hf


@pytest.mark.parametrize("call", [lambda: hf.save_dataset([], "x"), lambda: hf.load_dataset("x")])
def test_datasets_of_hugging_face_need_their_package(
    call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match=r"pennon\[huggingface\]"):
        call()
