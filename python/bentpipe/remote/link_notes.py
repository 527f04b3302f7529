"""Notes on a link beside a trial: its route, its own statistics, the weather."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bentpipe.remote.channel import Refused
from bentpipe.remote.links import OURS, Links
from bentpipe.remote.session import LinkSession

_TIMEOUT_S = 30.0


@dataclass
class LinkNote:
    """The notes of a trial."""

    route: list[str] = field(default_factory=list)  # lines; found once in a run
    statistics: Any = None  # JSON, or a text
    weather: Any = None

    @property
    def statistics_by_name(self) -> dict[str, Any]:
        return by_name(self.statistics)

    @property
    def weather_by_name(self) -> dict[str, Any]:
        return by_name(self.weather)


class LinkNotes:
    """The source of notes on a link."""

    def __init__(self, links: Links, name: str) -> None:
        self._links, self._link = links, links.named(name)
        self._route: list[str] | None = None

    def behind(self, session: LinkSession) -> LinkNote:
        """The notes to take after a trial."""
        if self._route is None:
            ip = 4 if self._link.server.ipv4 is not None else 6
            self._route = session.route(ip)
        return LinkNote(self._route, self._statistics(session), self._weather())

    def _statistics(self, session: LinkSession) -> Any:
        asked = self._link.statistics
        if asked is None:
            return None
        if asked.on == OURS:
            return _json(_here(asked.command))
        try:
            ended = session.on(asked.on).run("statistics", asked.command, _TIMEOUT_S)
        except Refused as error:  # the trial is done, and worth more than this
            return str(error)
        return None if ended is None else _json(str(ended["said"]))

    def _weather(self) -> Any:
        asked = self._link.weather
        if asked is None:
            return None
        if asked.command is not None:
            return _json(_here(asked.command))
        file = self._links.path(asked.file or "")
        try:
            return _json(file.read_text())
        except OSError as error:  # it was there when the run began
            return f"{file}: cannot be read: {error.strerror}"


def _here(command: Sequence[str]) -> str:
    """The output of a command of this machine; what went wrong if there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]}: {error}"
    return done.stdout or done.stderr


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def by_name(said: Any, before: str = "") -> dict[str, Any]:
    """The numbers and texts in a JSON object, with those of objects in it as `outer.inner`."""
    found: dict[str, Any] = {}
    for name, value in said.items() if isinstance(said, dict) else ():
        if isinstance(value, dict):
            found |= by_name(value, f"{before}{name}.")
        elif isinstance(value, bool):
            found[f"{before}{name}"] = int(value)
        elif isinstance(value, (int, float, str)) or value is None:
            found[f"{before}{name}"] = value
    return found
