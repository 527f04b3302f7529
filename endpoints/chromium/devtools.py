"""The Chrome DevTools Protocol over a pair of pipes: commands, their answers, and events.

Source: https://chromedevtools.github.io/devtools-protocol/; `--remote-debugging-pipe` has messages of JSON
that end with a zero byte, on the browser's file descriptors 3 and 4.
"""

from __future__ import annotations

import json
import os
import select
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from browser_process import BrowserProcess

_CHUNK = 1 << 20


class Devtools:
    """A Chromium, and the conversation with it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        # The shell has the pipes at the numbers that the browser wants, whatever they are here.
        moved = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        shell = ["/bin/bash", "-c", moved, "bash"]
        self.process = BrowserProcess([*shell, *command], environment, pass_fds=(theirs_in, theirs_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._received = b""
        self._events: deque[dict[str, Any]] = deque()

    def ask(
        self, method: str, session: str | None = None, *, within_s: float = 30, **parameters: Any
    ) -> dict[str, Any]:
        """The answer to a command. BrowserFailure if it is an error, or none comes in time."""
        number = self.begin(method, session, **parameters)
        deadline = time.monotonic() + within_s
        while True:
            found = self._receive(deadline - time.monotonic())
            if found is None:
                raise self.process.failure(f"no answer to {method} within {within_s:g} s")
            if found.get("id") != number:
                self._events.append(found)
            elif "error" in found:
                raise self.process.failure(f"{method}: {found['error'].get('message')}")
            else:
                answer: dict[str, Any] = found["result"]
                return answer

    def begin(self, method: str, session: str | None = None, **parameters: Any) -> int:
        """The number of a command. Its answer, which has that for its `id`, comes among events."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._send(json.dumps(message).encode() + b"\0")
        return self._number

    def event(self, within_s: float) -> dict[str, Any] | None:
        """The next event; None if none comes in time. BrowserFailure if the browser ends."""
        return self._events.popleft() if self._events else self._receive(within_s)

    def _send(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._out, data) :]
        except BrokenPipeError:
            raise self.process.failure("the browser ended") from None

    def _receive(self, within_s: float) -> dict[str, Any] | None:
        deadline = time.monotonic() + within_s
        while b"\0" not in self._received:
            left = deadline - time.monotonic()
            if not select.select([self._in], [], [], None if left > 1e6 else max(0, left))[0]:
                return None
            data = os.read(self._in, _CHUNK)
            if not data:
                raise self.process.failure("the browser ended")
            self._received += data
        text, _, self._received = self._received.partition(b"\0")
        try:
            found: dict[str, Any] = json.loads(text)
        except json.JSONDecodeError:  # a signal cut what was being read
            raise self.process.failure("what the browser said was lost") from None
        return found
