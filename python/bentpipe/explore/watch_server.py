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
    """The run that is shown, and the sites that are built of runs again and again: one for each run."""

    scratch: Path
    run: Path | None = None
    finished: bool = False  # all runs are complete, and so is the site
    version: int = 0  # of what is shown; grows with each change
    pages: int = 0  # that are open
    awaited_until: float = 0.0  # none has to be open before
    _sites: dict[Path, Path] = field(default_factory=dict)  # of the runs of which one is built
    _built: tuple[Path, int, int] | None = None
    _ending: anyio.Event = field(default_factory=anyio.Event)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def site(self) -> Path | None:
        """The folder that is served: once the run is complete, its own report, if there is one."""
        if self.run is None:
            return None
        own = self._own(self.run)
        return own if self.finished and own is not None else self._sites.get(self.run)

    @staticmethod
    def _own(run: Path) -> Path | None:
        """The report that a run has made of itself."""
        report = run / "report"
        return report if (report / "index.html").is_file() else None

    def show(self, run: Path) -> None:
        """Show this run from now on."""
        self.run = run
        self.tell()

    def end(self) -> None:
        """All runs are complete: build what is missing, then say so."""
        self._ending.set()

    @property
    def ends(self) -> bool:
        """Whether no run grows any more."""
        return self._ending.is_set()

    def tell(self) -> None:
        """Wake all who wait for a change."""
        self.version += 1
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    @property
    def change(self) -> anyio.Event:
        """The next change."""
        return self._changed

    def expect(self, seconds: float) -> None:
        """Somebody looks at a page, or is about to: wait for so long at least."""
        self.awaited_until = max(self.awaited_until, time.monotonic() + seconds)

    async def keep_built(self) -> None:
        """Build the site whenever the run has grown, and once more when all runs are complete."""
        while not self.ends:
            begin = time.monotonic()
            await self._build()
            with anyio.move_on_after(max(_LEAST_S, _SHARE * (time.monotonic() - begin))):
                await self._ending.wait()
        if self.run is not None and self._own(self.run) is None and (failure := await self._build()):
            say(f"the last trials of {self.run} are not on the page: {failure}")
        self.finished = True
        self.tell()

    async def _build(self) -> str:
        """Build the site of the run if that has grown; why that failed, empty if it did not."""
        run = self.run
        if run is None:
            return ""
        try:
            if (state := _state(run)) in (None, self._built):
                return ""
            site = self._sites.get(run, self.scratch / f"site-{len(self._sites)}")
            await to_thread.run_sync(build_under_way, run, site)
        except (BentpipeError, OSError) as error:
            return str(error)  # while it runs, a file is being replaced: the next time it is there
        except Exception as error:  # the run goes on, and so does what is there of the page
            say(f"the page of {run} is not built anew: {type(error).__name__}: {error}")
            return str(error)
        self._built, self._sites[run] = state, site
        self.tell()
        return ""


def _state(run: Path) -> tuple[Path, int, int] | None:
    """What changes when a run grows; None if it has no records yet."""
    try:
        found = (run / RECORDS).stat()
    except FileNotFoundError:
        return None
    return run, found.st_ino, found.st_size


def say(text: str) -> None:
    """Say something on the terminal of the run."""
    print(f"watch: {text}", file=sys.stderr, flush=True)


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
        version, site = self.watched.version, self.watched.site
        self.watched.expect(_LEAVING_S)
        if site is None:
            return self._waiting(path, version)
        file = (site / path).resolve()
        if not file.is_relative_to(site.resolve()) or not file.is_file():
            return PlainTextResponse("There is no such page in this report.\n", 404)
        return (
            HTMLResponse(_live_page(file.read_text(), version))
            if file.suffix == ".html"
            else FileResponse(file)
        )

    @staticmethod
    def _waiting(path: str, version: int) -> Response:
        """The page that waits for the first trial; it loads itself again."""
        known = {f"assets/{file.name}": file for file in bundle(ASSETS)}
        if path in known:
            return FileResponse(known[path])
        page = ThinPage(title="Bentpipe", page="waiting", data=[])
        return HTMLResponse(_live_page(page.html, version))

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
            self.watched.expect(_LEAVING_S)

    async def _tell(self, socket: WebSocket) -> None:
        while True:
            change = self.watched.change
            finished = self.watched.finished
            run = str(self.watched.run)
            await socket.send_json({"version": self.watched.version, "finished": finished, "run": run})
            await change.wait()


def _live_page(page: str, version: int) -> str:
    """A page that speaks with this server, and knows which version of the site it is of."""
    return page.replace("<body ", f'<body data-live="{version}" ', 1)


async def _serve(opens: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="bentpipe-", ignore_cleanup_errors=True) as scratch:
        access = Access()
        watched = Watched(Path(scratch))
        if opens:
            watched.expect(_COMING_S)
        server = LocalServer(WatchServer(watched, access.token).app(), access)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.keep_built)
            tasks.start_soon(_listen, watched, server.end)
            tasks.start_soon(_end_when_left, watched, server)
            await server.serve(_ready(opens))
            tasks.cancel_scope.cancel()


def _ready(opens: bool) -> Callable[[Access], None]:
    def ready(access: Access) -> None:
        say(access.address)
        if opens:
            open_browser(access)

    return ready


async def _listen(watched: Watched, end: Callable[[], None]) -> None:
    """Do what the standard input says, until it closes."""
    async for line in anyio.wrap_file(sys.stdin):
        said = line.rstrip("\n")
        if said == FINISHED:
            watched.end()
        elif said.startswith(RUN):
            watched.show(Path(said.removeprefix(RUN)))
    if not watched.ends:
        end()


async def _end_when_left(watched: Watched, server: LocalServer) -> None:
    """End once all is finished and no page is open, nor was a moment ago."""
    told = False
    while not watched.finished or watched.pages > 0 or time.monotonic() < watched.awaited_until:
        if watched.finished and not told:
            address = server.access.address
            say(f"the report stays at {address} until its page is closed; Ctrl-C ends it")
            told = True
        await anyio.sleep(0.1)
    server.end()


if __name__ == "__main__":
    os.nice(_LOWER)
    anyio.run(_serve, "--open" in sys.argv)
