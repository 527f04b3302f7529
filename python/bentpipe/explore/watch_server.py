"""The server of the report of a run under way, a process of its own: measurements in real time must not wait
for it, so it runs at a low priority.

Its standard input tells it what to show: `run FOLDER` a run that begins or goes on, `finished` that all are
complete. It then ends once no page shows it any more. When its input closes before, it ends at once.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bentpipe.errors import BentpipeError
from bentpipe.explore.access import Access
from bentpipe.explore.serving import LocalServer, open_browser
from bentpipe.report.pages import ThinPage
from bentpipe.report.site import ASSETS, build_under_way, bundle
from bentpipe.runs.stored_records import RECORDS

FINISHED = "finished"
RUN = "run "
_LEAST_S = 1.0  # between two builds
_SHARE = 4  # a build pauses for so many times what it took
_LEAVING_S = 3.0  # a page that is loaded again has left for a moment
_COMING_S = 20.0  # a browser may have to start first
_LOWER = 10  # priority


@dataclass
class Watched:
    """The run that is shown, and the site that is built of it again and again."""

    scratch: Path
    run: Path | None = None
    finished: bool = False
    version: int = 0  # of the site; grows with each build
    pages: int = 0  # that are open
    awaited_until: float = 0.0  # none has to be open before
    _built: tuple[Path, int, int] | None = None
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def site(self) -> Path | None:
        """The folder that is served: once the run is complete, its own report, if there is one."""
        if self.run is None:
            return None
        own = self.run / "report"
        if self.finished and (own / "index.html").is_file():
            return own
        site = self.scratch / "site"
        return site if self.version and site.is_dir() else None

    def tell(self) -> None:
        """Wake all who wait for a change."""
        self.version += 1
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    @property
    def change(self) -> anyio.Event:
        """The next change."""
        return self._changed

    async def keep_built(self) -> None:
        """Build the site whenever the run has grown."""
        while not self.finished:
            begin = time.monotonic()
            if self.run is not None and (state := _state(self.run)) not in (None, self._built):
                try:
                    await to_thread.run_sync(build_under_way, self.run, self.scratch / "site")
                except (BentpipeError, OSError):
                    pass  # a file is being replaced: the next time it is there
                else:
                    self._built = state
                    self.tell()
            took = time.monotonic() - begin
            await anyio.sleep(max(_LEAST_S, _SHARE * took))


def _state(run: Path) -> tuple[Path, int, int] | None:
    """What changes when a run grows; None if it has no records yet."""
    try:
        found = (run / RECORDS).stat()
    except FileNotFoundError:
        return None
    return run, found.st_ino, found.st_size


@dataclass
class WatchServer:
    """Serves what is watched."""

    watched: Watched
    token: str

    def app(self) -> Starlette:
        within = [WebSocketRoute("/live", self._live), Route("/{path:path}", self._file)]
        return Starlette(routes=[Mount(f"/{self.token}", routes=within)])

    async def _file(self, request: HttpRequest) -> Response:
        path = request.path_params["path"] or "index.html"
        site = self.watched.site
        if site is None:
            return self._waiting(path)
        file = (site / path).resolve()
        if not file.is_relative_to(site.resolve()) or not file.is_file():
            return PlainTextResponse("There is no such page in this report.\n", 404)
        if path != "index.html":
            return FileResponse(file)
        return HTMLResponse(file.read_text().replace("<body ", '<body data-live="live" ', 1))

    @staticmethod
    def _waiting(path: str) -> Response:
        """The page that waits for the first trial; it loads itself again."""
        known = {f"assets/{file.name}": file for file in bundle(ASSETS)}
        if path in known:
            return FileResponse(known[path])
        page = ThinPage(title="Bentpipe", page="waiting", data=[])
        return HTMLResponse(page.html.replace("<body ", '<body data-live="live" ', 1))

    async def _live(self, socket: WebSocket) -> None:
        """Tell a page the version of the site, at once and whenever there is another."""
        await socket.accept()
        self.watched.pages += 1
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._tell, socket)
                while True:
                    await socket.receive_text()
        except* WebSocketDisconnect:
            pass
        finally:
            self.watched.pages -= 1
            self.watched.awaited_until = time.monotonic() + _LEAVING_S

    async def _tell(self, socket: WebSocket) -> None:
        while True:
            change = self.watched.change
            finished = self.watched.finished
            run = str(self.watched.run)
            await socket.send_json({"version": self.watched.version, "finished": finished, "run": run})
            await change.wait()


async def _serve(opens: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch:
        access = Access()
        watched = Watched(Path(scratch), awaited_until=time.monotonic() + _COMING_S if opens else 0.0)
        server = LocalServer(WatchServer(watched, access.token).app(), access)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.keep_built)
            tasks.start_soon(_listen, watched, server.end)
            tasks.start_soon(_end_when_left, watched, server.end)
            await server.serve(_ready(opens))
            tasks.cancel_scope.cancel()


def _ready(opens: bool) -> Callable[[str], None]:
    def ready(address: str) -> None:
        print(f"watch: {address}", file=sys.stderr, flush=True)
        if opens:
            open_browser(address)

    return ready


async def _listen(watched: Watched, end: Callable[[], None]) -> None:
    """Do what the standard input says, until it closes."""
    async for line in anyio.wrap_file(sys.stdin):
        said = line.rstrip("\n")
        if said == FINISHED:
            watched.finished = True
            watched.tell()
        elif said.startswith(RUN):
            watched.run, watched.version = Path(said.removeprefix(RUN)), 0
            watched.tell()
    if not watched.finished:
        end()


async def _end_when_left(watched: Watched, end: Callable[[], None]) -> None:
    """End once all is finished and no page is open, nor was a moment ago."""
    while not (watched.finished and watched.pages == 0 and time.monotonic() > watched.awaited_until):
        await anyio.sleep(0.1)
    end()


if __name__ == "__main__":
    os.nice(_LOWER)
    anyio.run(_serve, "--open" in sys.argv)
