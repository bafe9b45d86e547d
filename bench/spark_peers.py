"""Who stands beside us on Spark: Delta and lance-spark themselves, each in the Spark it supports.

`prepare` makes what a peer needs in ``bench/.peers`` (git does not see it): an interpreter of its own
with its release of PySpark, and its jars, which Maven fetches by their coordinates.  What cannot be
had is a `Missing` with the reason in words, and everything else is measured all the same.

``python bench/spark_peers.py lance-spark`` prepares one and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    spark: str
    packages: tuple[str, ...]
    jars: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Home:
    """Where a peer runs: its interpreter, and its jars as a class path."""

    python: str
    class_path: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a peer cannot run."""

    reason: str


# Newer releases of both are known; these are the newest whose jars and PySpark could be had when
# the page was last written.  Neither has a release for Spark 4.3.
PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "delta",
            "4.4.0",
            "4.2.0",
            ("pyspark==4.2.0", "delta-spark==4.4.0"),
            ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
        ),
        Peer(
            "lance-spark",
            "0.0.14",
            "3.5.7",
            ("pyspark==3.5.7",),
            ("com.lancedb:lance-spark-bundle-3.5_2.12:0.0.14",),
        ),
    )
}


def prepare(peer: Peer) -> Home | Missing:
    """Return where a peer runs, after fetching what is not there yet, or why it cannot."""
    folder = HOMES / peer.name
    python, jars, stamp = folder / "venv" / "bin" / "python", folder / "jars", folder / "stamp"
    wanted = "\n".join((sys.version, *peer.packages, *peer.jars))
    if not (stamp.exists() and stamp.read_text() == wanted):
        maven = shutil.which("mvn")
        if maven is None:
            return Missing("there is no program mvn to fetch its jars with")
        shutil.rmtree(folder, ignore_errors=True)
        for jar in peer.jars:
            words = [maven, "-q", "-B", COPY, f"-Dartifact={jar}", f"-DoutputDirectory={jars}"]
            if not _succeeds(words):
                return Missing(f"Maven could not fetch {jar}")
        if not _succeeds([sys.executable, "-m", "venv", str(folder / "venv")]):
            return Missing("its virtual environment could not be made")
        if not _succeeds([str(python), "-m", "pip", "install", "-q", *peer.packages]):
            return Missing(f"pip could not install {' '.join(peer.packages)}")
        stamp.write_text(wanted)
    return Home(str(python), ":".join(sorted(str(jar) for jar in jars.iterdir())))


def _succeeds(words: Sequence[str]) -> bool:
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    print(json.dumps(asdict(prepare(PEERS[sys.argv[1]]))))
