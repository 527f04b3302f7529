"""The application behind the page of `bentpipe explore`: the page, its assets, and the WebSocket."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket, WebSocketDisconnect

from bentpipe.execution.process_watchdog import GroupWatchdog
from bentpipe.explore.access import Access
from bentpipe.explore.exploration import RefusedRequest, read_request
from bentpipe.explore.offer import offer
from bentpipe.explore.replies import encoded, reply
from bentpipe.explore.serving import LocalServer
from bentpipe.explore.session import Session, Workshop
from bentpipe.report.pages import ThinPage
from bentpipe.report.site import bundle
from bentpipe.schema.explore import ExploredState, Problem, Reply

ASSETS = ("explore.js", "explore.css")


@dataclass(frozen=True)
class Explorer:
    """What `bentpipe explore` was asked for."""

    state: ExploredState
    stack_folders: tuple[Path, ...]
    silence_s: int
    port: int = 0

    def serve(self, on_ready: Callable[[Access], None]) -> None:
        """Serve the page until a signal comes. Nothing is left behind."""
        bundle(ASSETS)
        scratch = Path(tempfile.mkdtemp(prefix="bentpipe-"))
        watchdog = GroupWatchdog(scratch)  # removes the folder, too
        try:
            anyio.run(self._serve, Workshop(scratch, watchdog, self.silence_s, self.stack_folders), on_ready)
        finally:
            watchdog.close()

    async def _serve(self, workshop: Workshop, on_ready: Callable[[Access], None]) -> None:
        access = Access()
        pages = _Pages(self.state, workshop)
        await LocalServer(pages.app(access.token), access, self.port).serve(on_ready)


@dataclass(frozen=True)
class _Pages:
    state: ExploredState
    workshop: Workshop

    def app(self, token: str) -> Starlette:
        folder = bundle(ASSETS)[0].parent
        within = [
            Route("/", self._page),
            Mount("/assets", StaticFiles(directory=folder)),
            WebSocketRoute("/live", self._live),
        ]
        return Starlette(routes=[Mount(f"/{token}", routes=within)])

    async def _page(self, _request: HttpRequest) -> Response:
        page = ThinPage(title="Explore · Bentpipe", page="explore", data=[], bundle="explore")
        return HTMLResponse(page.html)

    async def _live(self, socket: WebSocket) -> None:
        """Take the requests of a page, and send it replies, until it goes away."""
        await socket.accept()
        session = Session(self.workshop, lambda one: _send(socket, one))
        offered = await anyio.to_thread.run_sync(offer, self.state, self.workshop.stack_folders)
        await _send(socket, reply(0, "offer", offer=offered))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(session.follow)
            await self._take(socket, session)
            tasks.cancel_scope.cancel()

    async def _take(self, socket: WebSocket, session: Session) -> None:
        while True:
            try:
                session.ask(read_request(await socket.receive_text()))
            except WebSocketDisconnect:
                return
            except RefusedRequest as error:
                await _refuse(socket, error)
            except KeyError:
                await _refuse(socket, RefusedRequest("The page sent bytes, which cannot be read."))


async def _refuse(socket: WebSocket, refused: RefusedRequest) -> None:
    """Say why, under the number that the page waits for. It keeps its connection: over a new one it would
    ask the same again.
    """
    problem = Problem(error=str(refused), hint="change it, or load the page again")
    await _send(socket, reply(refused.number, "problem", problem=problem))
    await _send(socket, reply(refused.number, "done"))


async def _send(socket: WebSocket, one: Reply) -> None:
    """Send a reply; to a page that is gone, nothing."""
    try:
        await socket.send_text(encoded(one))
    except (WebSocketDisconnect, RuntimeError):
        return
