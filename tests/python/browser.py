"""A page in a real browser, opened from the file system."""

from __future__ import annotations

import shutil
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def dump(address: str, profile: Path, *options: str) -> str:
    """What the document at `address` has become; `profile` is a folder for this call alone."""
    command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}", *options, "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


class Answer(HTTPServer):
    """Waits for a page to go to `address` + what it has to say. For pages that draw frame by frame: `dump`
    may let virtual time run away from them.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hearing)
        self.timeout = 120.0
        self.text: str | None = None
        self.address = f"http://127.0.0.1:{self.server_port}/?"

    def of(self, page: str, profile: Path, *options: str) -> str | None:
        """What the page says; None if it says nothing in two minutes."""
        command = [str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen([*command, *options, page], stdout=quiet, stderr=quiet)
        try:
            self.handle_request()
        finally:
            process.terminate()
            process.wait()
            self.server_close()
        return self.text


class _Hearing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Answer)
        self.server.text = unquote(self.path.removeprefix("/?"))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Requests are of no interest."""
