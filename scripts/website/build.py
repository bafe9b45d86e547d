"""Build the website of the documents in build/site, check every link of it, and print what was checked.

``python scripts/website/build.py`` builds; ``--serve`` then shows it on 127.0.0.1, until Ctrl-C.  A warning of mkdocs, a
broken link and an address outside of the site that a browser would load are failures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from check import check_site

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "site"


def main() -> int:
    """Build and check the site; return the exit code."""
    start = time.monotonic()
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--clean"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    built = subprocess.run(
        command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False
    )
    warnings = [each for each in (built.stdout + built.stderr).splitlines() if "WARNING" in each]
    if built.returncode or warnings:
        print(built.stdout + built.stderr, end="", file=sys.stderr)
        return built.returncode or 1
    report = check_site(SITE)
    print("\n".join(report.faults), file=sys.stderr, end="\n" if report.faults else "")
    print(
        f"site: {report.pages} pages, {report.links:,} links checked, {len(report.faults)} faults, "
        f"{len(warnings)} warnings, {time.monotonic() - start:.0f} s: {SITE.relative_to(ROOT)}"
    )
    if report.faults:
        return 1
    if "--serve" in sys.argv:
        serve()
    return 0


def serve() -> None:
    """Show the site on this machine, until Ctrl-C."""
    handler = lambda *args: SimpleHTTPRequestHandler(*args, directory=str(SITE))  # noqa: E731 - of one line
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    sys.exit(main())
