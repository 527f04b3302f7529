"""WebDriver BiDi with Firefox: commands, their answers, and events.

Source: W3C WebDriver BiDi, https://www.w3.org/TR/webdriver-bidi/. Firefox listens on a port of loopback that
it chooses, and says on standard error which.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from browser_process import BrowserProcess
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

_START_S = 60
_LISTENS = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


class Bidi:
    """A Firefox, and the conversation with it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.process = BrowserProcess(command, environment)
        self._socket: ClientConnection | None = None
        self._number = 0
        self._events: deque[dict[str, Any]] = deque()

    def open(self) -> None:
        """Begin a session. BrowserFailure if Firefox does not listen."""
        address = self.process.wait_for(_LISTENS, _START_S)
        try:
            # A reply can be large, and is one message. A busy Firefox may be slow to answer pings.
            self._socket = connect(
                f"{address}/session", max_size=None, open_timeout=_START_S, proxy=None, ping_interval=None
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise self.process.failure(f"Firefox at {address}: {error}") from None
        self.ask("session.new", capabilities={"alwaysMatch": {"acceptInsecureCerts": True}})

    def ask(self, method: str, *, within_s: float = 30, **parameters: Any) -> dict[str, Any]:
        """The answer to a command. BrowserFailure if it is an error, or none comes in time."""
        number = self.begin(method, **parameters)
        deadline = time.monotonic() + within_s
        while True:
            found = self._receive(deadline - time.monotonic())
            if found is None:
                raise self.process.failure(f"no answer to {method} within {within_s:g} s")
            if found.get("id") != number:
                self._events.append(found)
            elif found["type"] == "error":
                raise self.process.failure(f"{method}: {found['error']}: {found['message']}")
            else:
                answer: dict[str, Any] = found["result"]
                return answer

    def begin(self, method: str, **parameters: Any) -> int:
        """The number of a command. Its answer, which has that for its `id`, comes among events."""
        self._number += 1
        self._send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        return self._number

    def event(self, within_s: float) -> dict[str, Any] | None:
        """The next event; None if none comes in time. BrowserFailure if Firefox ends."""
        return self._events.popleft() if self._events else self._receive(within_s)

    def _send(self, text: str) -> None:
        if self._socket is None:
            raise self.process.failure("there is no session with Firefox")
        try:
            self._socket.send(text)
        except (OSError, WebSocketException) as error:
            raise self.process.failure(f"Firefox ended: {error}") from None

    def _receive(self, within_s: float) -> dict[str, Any] | None:
        assert self._socket is not None, "what is received answers what was sent"
        try:
            text = self._socket.recv(None if within_s > 1e6 else max(0.0, within_s))
        except TimeoutError:
            return None
        except (OSError, WebSocketException) as error:
            raise self.process.failure(f"Firefox ended: {error}") from None
        found: dict[str, Any] = json.loads(text)
        return found
