"""A browser behind the endpoint contract (`endpoints/contract/browsers.md`): all but the browser."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from browser_process import BrowserFailure
from page_job import UNSUPPORTED, Job, Refusal, read
from page_load import PageLoad

# Who ends this program waits some seconds before it kills it, and a page that crashed answers nothing.
_LAST_PICTURE_S = 1.5
_PICTURE_S = 30


class Terminated(BaseException):
    """Who started this wants it to end."""


class Browser(Protocol):
    """A browser that was started, and loads one page. BrowserFailure for what it cannot do."""

    page: PageLoad

    def open(self) -> None:
        """Make it ready for visits."""

    def visit(self, numbers: range) -> None:
        """Go to the first of these resources, to the end of all that it leads to."""

    def end_connections(self) -> None:
        """End all connections, and keep tickets."""

    def fetch_bodies(self) -> None:
        """Take what has come out of the browser."""

    def take_moments(self) -> None:
        """Take from the page when it was drawn."""

    def picture(self, within_s: float) -> bytes:
        """A screenshot of it, as a PNG."""

    def close(self) -> None:
        """Ask it to end, if it does not kill it."""

    def kill(self) -> None:
        """End it at once."""


# Starts a browser: its path, what to do, and a folder for all that it keeps. Refusal for what it cannot do.
Start = Callable[[str, Job, Path], Browser]


def main(folder: Path, start: Start) -> int:
    """The exit code of the stack in `folder`."""
    names = tomllib.loads((folder / "stack.toml").read_text())["browser"]
    program = next((found for name in names if (found := shutil.which(name))), None)
    if program is None:
        print(f"there is no program {' or '.join(names)} on the PATH", file=sys.stderr)
        return 1
    if sys.argv[1:] == ["--version"]:
        print(_version(program))
        return 0
    try:
        job = read()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            flaw = _visit(start, program, job, Path(profile))
    except Refusal as refusal:
        print(refusal, file=sys.stderr)
        return UNSUPPORTED
    if flaw:
        print(flaw, file=sys.stderr)
    return 1 if flaw else 0


def environment(profile: Path) -> Mapping[str, str]:
    """That of a browser: what a desktop keeps of whoever runs this is not to be touched."""
    folders = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
    return {**os.environ, **dict.fromkeys(folders, str(profile))}


def _version(program: str) -> str:
    """As in `Chromium 156.0.8078.73`."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    words = said.removeprefix("Mozilla ").split()
    return " ".join(words[:2])


def _visit(start: Start, program: str, job: Job, profile: Path) -> str:
    """The failure of the page, in words; empty if there was none."""
    browser = start(program, job, profile)
    is_cut, flaw = False, ""
    signal.signal(signal.SIGTERM, _cut)
    try:
        try:
            _load(browser, job)
        except Terminated:
            is_cut, flaw = True, "it was ended before the page had come"
        except BrowserFailure as failure:
            flaw = str(failure)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        return _leave(browser, job, flaw, is_cut)
    finally:
        browser.kill() if is_cut else browser.close()


def _load(browser: Browser, job: Job) -> None:
    """Load the page, after an earlier visit where it is a later one."""
    browser.open()
    *earlier, page = job.visits
    for numbers in earlier:
        browser.visit(numbers)
        if not browser.page.is_whole:
            return
        browser.fetch_bodies()  # the next visit takes their place
        browser.end_connections()
    browser.visit(page)


def _cut(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Terminated


def _leave(browser: Browser, job: Job, flaw: str, is_cut: bool) -> str:
    """Leave what has come, and of what did not come whole a picture. What went wrong, in words."""
    visit, within_s = browser.page.visit, _LAST_PICTURE_S if flaw else _PICTURE_S
    try:
        if is_cut or not flaw:  # a page that crashed answers nothing
            browser.fetch_bodies()
            browser.take_moments()
    except BrowserFailure as failure:
        flaw = flaw or str(failure)
    visit.leave()
    flaw = flaw or visit.flaw
    if flaw and job.picture is not None:
        try:
            job.picture.write_bytes(browser.picture(within_s))
        except BrowserFailure as failure:
            flaw += f"; no picture of it: {failure}"
    return flaw
