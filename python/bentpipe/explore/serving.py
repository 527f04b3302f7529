"""A server for this machine's own browser, until it is told to end."""

from __future__ import annotations

import signal
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import anyio
import uvicorn
from starlette.types import ASGIApp

from bentpipe.errors import UsageError
from bentpipe.explore.access import ADDRESS, Access, Doorkeeper

_LARGEST_REQUEST = 8 * 1024**2  # bytes of a WebSocket message: any state that is not refused is smaller
_GRACE_S = 2  # for what is being sent when the server ends


@dataclass
class LocalServer:
    """A server on the loopback interface of this machine."""

    app: ASGIApp
    access: Access
    port: int = 0  # 0: one that is free

    def __post_init__(self) -> None:
        config = uvicorn.Config(
            Doorkeeper(self.app, self.access),
            host=ADDRESS,
            port=self.port,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="websockets-sansio",
            ws_max_size=_LARGEST_REQUEST,
            ws_per_message_deflate=False,  # to this machine bytes are cheaper than time
            timeout_graceful_shutdown=_GRACE_S,
            lifespan="off",
        )
        self._server = _Quiet(config)

    async def serve(self, on_ready: Callable[[Access], None]) -> None:
        """Serve until `end` is called or a signal comes; `on_ready` is told how to enter, in a thread of
        its own. UsageError if the port is taken.
        """
        try:
            sockets = [self._server.config.bind_socket()]
        except SystemExit:  # uvicorn's way to say that it cannot
            raise UsageError(
                f"--port {self.port}: it cannot be used: another program has it, or it needs root",
                "name another port, or leave --port out",
            ) from None
        self.access.port = sockets[0].getsockname()[1]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._until_signal)
            tasks.start_soon(self._tell_when_ready, on_ready)
            await self._server.serve(sockets)
            tasks.cancel_scope.cancel()

    def end(self) -> None:
        """Have the server end."""
        self._server.should_exit = True

    async def _until_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _number in signals:
                if self._server.should_exit:
                    self._server.force_exit = True
                self.end()

    async def _tell_when_ready(self, on_ready: Callable[[Access], None]) -> None:
        while not self._server.started:
            await anyio.sleep(0.005)
        # A browser of the terminal holds whoever opens it; the server neither waits for it nor ends with it.
        Thread(target=on_ready, args=(self.access,), daemon=True).start()


class _Quiet(uvicorn.Server):
    """uvicorn, without signal handlers of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def open_browser(access: Access) -> bool:
    """Show the first page of a server in the user's browser; whether there is one."""
    return webbrowser.open(access.entrance)
