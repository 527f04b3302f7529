"""Events of the links in a trial: when it began in Unix time, and when they sent nothing.

`docs/reference/link-events.md` describes the file. What is not needed here is not looked at.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.runs.trial_files import LINK_EVENTS

FORMAT = 1
_AGAIN = "use the version of Bentpipe that wrote it, or run the trial again"


class Interruption(msgspec.Struct, frozen=True):
    """A time in which a link sent nothing, in nanoseconds since the trial's start."""

    kind: Literal["handover", "outage"]
    direction: Literal["forward", "return"]
    from_ns: int
    until_ns: int


class LinkEvents(msgspec.Struct, frozen=True):
    """The events of the links of the client's hop."""

    format: int
    start_unix_ns: int
    interruptions: list[Interruption]


def read(folder: Path) -> LinkEvents | None:
    """The events of the trial in `folder`; None if it has none, as over real links and in runs of earlier
    versions. BentpipeError, naming the file and what is wrong, if they cannot be read.
    """
    path = folder / LINK_EVENTS
    try:
        found = msgspec.json.decode(path.read_bytes(), type=LinkEvents)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be read: {error.strerror}", _AGAIN) from error
    except ValueError as error:
        raise BentpipeError(f"{path}: cannot be read: {error}", _AGAIN) from error
    if found.format != FORMAT:
        raise BentpipeError(f"{path}: it is of format {found.format}, wanted is {FORMAT}", _AGAIN)
    return found
