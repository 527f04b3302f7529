"""The requests of a page in a trial: when each was sent, and when its response was complete."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bentpipe.errors import BentpipeError
from bentpipe.runs.trial_files import REQUESTS
from bentpipe.schema import reading
from bentpipe.schema.requests import FORMAT, PageRequests

_AGAIN = "in virtual time it can be made again: the page of its cell in the report has the command"


def read(folder: Path) -> PageRequests:
    """The requests of the trial in `folder`. FileNotFoundError if it has none, BentpipeError, naming the file
    and what is wrong, if they cannot be read.
    """
    path = folder / REQUESTS
    try:
        return reading.convert(msgspec.json.decode(path.read_bytes()), PageRequests, FORMAT, numbered=True)
    except FileNotFoundError:
        raise
    except reading.FormatError as error:
        raise BentpipeError(f"{path}: {error}", "use the version of Bentpipe that wrote it") from error
    except OSError as error:
        raise BentpipeError(f"{path}: cannot be read: {error.strerror}", _AGAIN) from error
    except ValueError as error:
        raise BentpipeError(f"{path}: cannot be read: {error}", _AGAIN) from error
