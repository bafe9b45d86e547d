"""Who stands beside us on Spark: Delta and lance-spark themselves, each in the Spark it supports (`peers.py`).

``python bench/spark_peers.py lance-spark`` prepares one and prints what came of it as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass

from peers import Peer, prepare


@dataclass(frozen=True, slots=True)
class SparkPeer(Peer):
    """A peer, and the release of Spark that it runs in."""

    spark: str = ""


# Newer releases of both are known; these are the newest whose jars and PySpark could be had when
# the page was last written.  Neither has a release for Spark 4.3.
PEERS = {
    peer.name: peer
    for peer in (
        SparkPeer(
            "delta",
            "4.4.0",
            ("pyspark==4.2.0", "delta-spark==4.4.0"),
            ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
            "4.2.0",
        ),
        SparkPeer(
            "lance-spark",
            "0.0.14",
            ("pyspark==3.5.7",),
            ("com.lancedb:lance-spark-bundle-3.5_2.12:0.0.14",),
            "3.5.7",
        ),
    )
}


if __name__ == "__main__":
    print(json.dumps(asdict(prepare(PEERS[sys.argv[1]]))))
