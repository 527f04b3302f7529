"""The requests of a trial's page, by the names that the page itself gives its resources.

Trials ask for files that are called by number, size and type. Where the page is still there, and is what it
was, they are told apart by its own paths.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.runs import requests
from bentpipe.runs.records import Record
from bentpipe.schema.requests import PageRequests
from bentpipe.workload.page.visit import PageVisit


def of_trial(folder: Path, record: Record) -> PageRequests:
    """The requests of the trial in RUN/trials/ID. Errors are those of `requests.read`."""
    found = requests.read(folder)
    names = _names(found, record)
    own = {one.path: name for one, name in zip(found.requests, names, strict=True)}
    named = [
        msgspec.structs.replace(
            one, path=own[one.path], initiator=one.initiator and own.get(one.initiator, one.initiator)
        )
        for one in found.requests
    ]
    return msgspec.structs.replace(found, requests=named)


def in_order_of_asking(found: PageRequests) -> PageRequests:
    """The same in the order of their requests; those that were never sent are last."""

    def place(number: int) -> tuple[bool, float, int]:
        asked_s = found.requests[number].asked_s
        return asked_s is None, asked_s or 0.0, number

    order = sorted(range(len(found.requests)), key=place)
    return msgspec.structs.replace(found, requests=[found.requests[number] for number in order])


def _names(found: PageRequests, record: Record) -> list[str]:
    """The page's paths; those that were asked for if it is not known any more what it was."""
    asked = [one.path for one in found.requests]
    visit = workload.known(record.workload)
    if not isinstance(visit, PageVisit):
        return asked
    try:
        page = visit.page
    except UsageError:
        return asked
    is_same = [(one.type, one.bytes) for one in page.resource] == [
        (one.type, one.bytes) for one in found.requests
    ]
    return [one.path for one in page.resource] if is_same else asked
