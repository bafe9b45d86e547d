"""The command line in this process, and the schemas of its JSON."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
from click.testing import CliRunner, Result

from pennon.cli.main import app

SCHEMAS: dict[str, Any] = json.loads(
    (files("pennon.cli") / "output.schema.json").read_text(encoding="utf-8")
)


def run(*words: str) -> Result:
    """Run a command; its errors are in ``exception``."""
    return CliRunner().invoke(app, words)


def done(*words: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    result = run(*words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.stderr
    return result.stdout


def from_json(command: str, *words: str) -> Any:
    """Run a command with ``--json``, and return what it prints, which must be as the schema says."""
    found = json.loads(done(*command.split(), *words, "--json"))
    jsonschema.validate(found, {**SCHEMAS, "$ref": f"#/$defs/{command}"})
    return found
