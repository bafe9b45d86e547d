"""Chromium without a window, spoken to through a pipe: pages opened, clicked and photographed, and all that they ask for noted.

`make browser` installs it.  It speaks the DevTools protocol: JSON messages that end with a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_SECONDS = 60
LAUNCH = "import os, sys; [os.dup2(int(sys.argv[n]), n + 2) for n in (1, 2)]; os.execv(sys.argv[3], sys.argv[3:])"
"""Starts a program with a pipe as its descriptors 3 and 4, by which Chromium reads and answers."""
SETTLED = """(() => {
  const isSeen = image => {
    const place = image.getBoundingClientRect(), box = (image.closest(".scroll") || document.body).getBoundingClientRect();
    return place.top < Math.min(innerHeight, box.bottom) && place.left < Math.min(innerWidth, box.right);
  };
  return document.querySelector("main > *") && !document.querySelector(".waiting:not(img)")
    && ![...document.querySelectorAll(".quiet")].some(each => each.textContent.startsWith("loading"))
    && ![...document.querySelectorAll("img.waiting")].some(isSeen);
})()"""
"""True when no part of the page loads any more, nor an image that is in sight."""


class Browser:
    """One browser with one page.

    ``requests`` are the addresses that the page asked for, ``complaints`` what it logged as errors, violations of its
    policy among them, and ``dialogs`` the messages of windows that scripts opened.
    """

    def __init__(self, folder: Path) -> None:
        program = next(filter(None, map(shutil.which, PROGRAMS)), None)
        assert program is not None, "no Chromium: run `make browser`"
        ours, theirs = os.pipe(), os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--mute-audio",
                   "--remote-debugging-pipe", f"--user-data-dir={folder}"]  # fmt: skip

        read, write = _high(theirs[0]), _high(ours[1])
        words = [
            sys.executable,
            "-c",
            LAUNCH,
            str(read),
            str(write),
            program,
            *options,
            "about:blank",
        ]
        self._process = subprocess.Popen(
            words, pass_fds=(read, write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._read, self._write = (
            os.fdopen(ours[0], "rb", buffering=0),
            os.fdopen(theirs[1], "wb", buffering=0),
        )
        self._number, self._rest, self._session = 0, b"", ""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.dialogs: list[str] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(DEADLINE_SECONDS)
        self._read.close()
        self._write.close()

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a size, and dark or light as the wish of its system."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str, *, settles: bool = True) -> None:
        """Open an address in an empty page, and wait until all of it is there."""
        self._call("Page.navigate", url="about:blank")
        self._call("Page.navigate", url=address)
        if settles:
            self.settled()

    def run(self, script: str) -> Any:
        """Return the value of an expression; a promise is waited for."""
        found = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, script: str) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < end:
            # the browser itself waits a frame, so this loop does not spin
            found = self.run(f"new Promise(done => setTimeout(() => done(Boolean({script})), 30))")
            if found:
                return found
        raise AssertionError(
            f"never true: {script}; {self.complaints}; {self.run('document.body.innerText')[:500]}"
        )

    def settled(self) -> None:
        """Wait until no part of the page loads any more."""
        self.wait_for(SETTLED)

    def key(self, name: str) -> None:
        """Press a key."""
        text = name if len(name) == 1 else ""
        self._call("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def photo(self, path: Path) -> bytes:
        """Write a picture of what is seen as PNG, and return it."""
        data = base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return data

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == number:
                assert "error" not in found, (method, found["error"])
                return found["result"]
            self._note(found)

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            more = self._read.read(1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def _note(self, event: Any) -> None:
        notes: dict[str, Callable[[Any], None]] = {
            "Network.requestWillBeSent": lambda p: self.requests.append(p["request"]["url"]),
            "Runtime.exceptionThrown": lambda p: self.complaints.append(
                json.dumps(p["exceptionDetails"])[:600]
            ),
            "Log.entryAdded": lambda p: self.complaints.append(
                f"{p['entry']['text']} {p['entry'].get('url', '')}"
            ),
            "Page.javascriptDialogOpening": lambda p: self.dialogs.append(p["message"]),
        }
        if event.get("method") in notes:
            notes[event["method"]](event["params"])


def _high(number: int) -> int:
    """Return a descriptor again under a number above 9."""
    import fcntl

    high = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(number)
    return high
