"""The waterfall of a page or a live stream: what one of a cell's trials asked for, and when it came.

`report-ui/src/waterfall.ts` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from pyarrow import ArrowException

from bentpipe import workload
from bentpipe.analysis import page_findings, page_requests, page_streams
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.schema.requests import PageRequest
from bentpipe.workload.http import HttpWorkload
from bentpipe.workload.page.visit import PageVisit


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
        nothing: dict[str, Any] = {"requests": [], "streams": None, "film": [], "findings": []}
        return {"iteration": record.iteration, **nothing, "failure": str(error)}
    requests = page_requests.in_order_of_asking(found).requests
    return {
        "iteration": record.iteration,
        "requests": msgspec.to_builtins(requests),
        "film": msgspec.to_builtins(found.film),
        "findings": _findings(run / "trials" / record.trial, record, found.requests),
        "streams": _streams(run / "trials" / record.trial, requests) if _has_streams(record) else None,
        "failure": None,
    }


def _findings(folder: Path, record: Record, requests: Sequence[PageRequest]) -> list[dict[str, Any]]:
    if not isinstance(workload.known(record.workload), PageVisit):
        return []
    try:
        return [asdict(one) for one in page_findings.of_trial(folder, record, requests)]
    except (BentpipeError, ArrowException):
        return []  # the section of the trace says what is wrong with its analysis


def _has_streams(record: Record) -> bool:
    """Whether each request has a stream that is opened as it is asked for, as clients in virtual time do,
    which say how they are driven; and whether its packets are those of the path: behind proxies they are not.
    """
    return record.alpn == "h3" and bool(record.client_driver) and not record.proxies


def _streams(folder: Path, requests: Sequence[PageRequest]) -> list[dict[str, Any]] | None:
    found = page_streams.of_requests(folder, requests)
    if found is None:
        return None
    return [{"packets": one.packets, "lost_s": one.lost_s} for one in found]
