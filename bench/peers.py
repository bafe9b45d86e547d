"""Others that are measured beside us, each with packages, and jars, of its own.

`prepare` makes what a peer needs in ``bench/.peers`` (git does not see it): an interpreter of its own with its
packages, and its jars, which Maven fetches by their coordinates.  What cannot be had is a `Missing` with the reason
in words, and everything else is measured all the same.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HOMES = Path(__file__).parent / ".peers"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
SECONDS = 900
"""How long one package manager may take."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer: packages as pip names them, jars by their coordinates."""

    name: str
    release: str
    packages: tuple[str, ...]
    jars: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Home:
    """Where a peer runs: its interpreter, and its jars as a class path."""

    python: str
    class_path: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a peer cannot run."""

    reason: str


def prepare(peer: Peer) -> Home | Missing:
    """Return where a peer runs, after fetching what is not there yet, or why it cannot."""
    folder = HOMES / peer.name
    python, jars, stamp = folder / "venv" / "bin" / "python", folder / "jars", folder / "stamp"
    wanted = "\n".join((sys.version, *peer.packages, *peer.jars))
    if not (stamp.exists() and stamp.read_text() == wanted):
        maven = shutil.which("mvn")
        if peer.jars and maven is None:
            return Missing("there is no program mvn to fetch its jars with")
        shutil.rmtree(folder, ignore_errors=True)
        for jar in peer.jars:
            words = [str(maven), "-q", "-B", COPY, f"-Dartifact={jar}", f"-DoutputDirectory={jars}"]
            if not _succeeds(words):
                return Missing(f"Maven could not fetch {jar}")
        if not _succeeds([sys.executable, "-m", "venv", str(folder / "venv")]):
            return Missing("its virtual environment could not be made")
        if not _succeeds([str(python), "-m", "pip", "install", "-q", *peer.packages]):
            return Missing(f"pip could not install {' '.join(peer.packages)}")
        stamp.write_text(wanted)
    found = sorted(str(jar) for jar in jars.iterdir()) if peer.jars else []
    return Home(str(python), ":".join(found))


def _succeeds(words: Sequence[str]) -> bool:
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
