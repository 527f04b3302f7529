"""The waterfall of a page or a live stream: what one of a cell's trials asked for, and when it came.

`report-ui/src/waterfall.ts` draws it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bentpipe import workload
from bentpipe.analysis import page_requests
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.workload.http import HttpWorkload


def waterfall(run: Path, record: Record | None) -> dict[str, Any] | None:
    """Of the trial that stands for its cell, in the order of asking, or why it cannot be shown. None if it is
    of neither, or kept no requests.
    """
    if record is None or not isinstance(workload.known(record.workload), HttpWorkload):
        return None
    try:
        found = page_requests.of_trial(run / "trials" / record.trial, record)
    except FileNotFoundError:
        return None
    except BentpipeError as error:
        return {"iteration": record.iteration, "requests": [], "failure": str(error)}
    ordered = page_requests.in_order_of_asking(found)
    return {
        "iteration": record.iteration,
        "requests": msgspec.to_builtins(ordered.requests),
        "failure": None,
    }
