"""The traffic over a link in a day or a month, so that an allowance is kept over runs.

The count is a file of this user, by the link's name and that of its file: `~/.local/state/bentpipe/traffic`.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path

from bentpipe.errors import UsageError
from bentpipe.remote.links import Links

_FORMS = {"day": "%Y-%m-%d", "month": "%Y-%m", "ever": "ever"}


def _folder() -> Path:
    named = os.environ.get("XDG_STATE_HOME", "")
    state = Path(named) if Path(named).is_absolute() else Path.home() / ".local" / "state"
    return state / "bentpipe" / "traffic"


class TrafficCount:
    """The traffic over a link in the current period."""

    def __init__(self, links: Links, name: str) -> None:
        traffic = links.named(name).traffic
        self._form = _FORMS[traffic.period if traffic else "month"]
        self.allowed_bytes = links.allowance_bytes(name)
        file = hashlib.sha256(str(links.file.resolve()).encode()).hexdigest()[:12]
        self.file = _folder() / f"{name}-{file}.json"

    @property
    def used_bytes(self) -> int:
        """The bytes that have crossed it so far."""
        return self._read().get(self._period, 0)

    def lacks(self, estimate: int) -> bool:
        """Whether this many more bytes exceed the allowance."""
        return self.allowed_bytes is not None and self.used_bytes + estimate > self.allowed_bytes

    def add(self, count: int) -> None:
        """Count bytes that have crossed it."""
        known = self._read()
        known[self._period] = known.get(self._period, 0) + count
        self.file.parent.mkdir(parents=True, exist_ok=True)
        partial = self.file.with_suffix(".partial")
        partial.write_text(json.dumps(known) + "\n")
        partial.replace(self.file)

    @property
    def _period(self) -> str:
        return datetime.now().strftime(self._form)

    def _read(self) -> dict[str, int]:
        try:
            return {str(period): int(count) for period, count in json.loads(self.file.read_text()).items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, TypeError):
            hint = "correct what went over the link, or remove the file to count anew"
            raise UsageError(f"{self.file}: it does not say how many bytes in which period", hint) from None
