"""Who may speak with a server on this machine: the pages that it serves itself, and nobody else.

Any page in the browser can send requests to a port of this machine, and a name of a stranger's can be made to
lead there (DNS rebinding). So a request must name this address as its host, must not come from a page of
another origin, and its path must begin with a token that is drawn for each server and stands in the address
that the command prints. Only GET changes hands; whatever acts goes over the WebSocket, which browsers always
send an origin with.

Which addresses a browser is started with every user of this machine can read (`ps`). So it is started with an
entrance, whose code is good for one request and leads to the token's address.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDRESS = "127.0.0.1"
_NAMES = (ADDRESS, "localhost")
_TOKEN_BYTES = 24
_HTTP_PORT = 80

# Nothing is loaded from elsewhere, shown inside another page, or told where a link came from.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass
class Access:
    """The only origin that a server answers, the token that its paths begin with, and a code that opens
    the first page once.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))
    port: int = 0  # known once the server listens
    code: str | None = field(default_factory=lambda: secrets.token_urlsafe(_TOKEN_BYTES))  # None: it was used

    @property
    def address(self) -> str:
        """The address of the first page."""
        return f"http://{ADDRESS}:{self.port}/{self.token}/"

    @property
    def entrance(self) -> str:
        """The address to start a browser with; that of the first page if the code was used."""
        return f"http://{ADDRESS}:{self.port}/{self.code or self.token}/"

    def enters(self, kind: str, path: str, headers: Mapping[str, str]) -> bool:
        """Whether a request uses the code, which is then used up."""
        if kind != "http" or self.code is None or self._stranger(kind, headers):
            return False
        if not hmac.compare_digest(path.encode(), f"/{self.code}/".encode()):
            return False
        self.code = None
        return True

    def refusal(self, kind: str, path: str, headers: Mapping[str, str]) -> str | None:
        """Why a request is refused, in words; None if it may pass. `kind` is `http` or `websocket`."""
        given = path.removeprefix("/").partition("/")[0]
        if stranger := self._stranger(kind, headers):
            return stranger
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return (
                "The token in this address is not this server's: open the address that the command printed."
            )
        return None

    def _stranger(self, kind: str, headers: Mapping[str, str]) -> str | None:
        """Why a request is refused wherever it leads, in words."""
        hosts = [f"{name}:{self.port}" for name in _NAMES]
        if self.port == _HTTP_PORT:
            hosts += _NAMES  # which browsers leave out
        if headers.get("host") not in hosts:
            return "The host of this request is not this server's address."
        origin = headers.get("origin")
        if origin not in [f"http://{host}" for host in hosts] and (origin is not None or kind == "websocket"):
            return "This request does not come from a page of this server."
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "This request does not come from a page of this server."
        return None


class Doorkeeper:
    """The part of an application that answers nobody whom `Access` refuses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        request = scope["type"], scope["path"], Headers(scope=scope)
        refusal = self._access.refusal(*request)
        if refusal is not None and self._access.enters(*request):
            entered = RedirectResponse(f"/{self._access.token}/", 303)
            await entered(scope, receive, _with_headers(send))
        elif refusal is None:
            await self._app(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
        else:
            answer = PlainTextResponse(f"{refusal}\n", 403)
            await answer(scope, receive, _with_headers(send))


def _with_headers(send: Send) -> Send:
    added = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]

    async def send_all(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [(name, value) for name, value in message["headers"] if name.lower() != b"cache-control"]
            message = {**message, "headers": [*kept, *added]}
        await send(message)

    return send_all
