"""The result of a page: its resources, the times of the browser's events, and the files for others."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from film import Film
from page_job import Job

# A script for the page's beginning, which keeps when the largest paint was.
OBSERVE = (
    "new PerformanceObserver(all=>{for(const one of all.getEntries())window.lcp=one.startTime})"
    ".observe({type:'largest-contentful-paint',buffered:true})"
)
# An expression: a promise of when the browser did what, as JSON, in milliseconds since 1970; null for what
# has not been. What has come is drawn in a frame after; where there are none, a second is enough.
MOMENTS = """new Promise(said=>{
const at=time=>time>0?performance.timeOrigin+time:null;
const say=()=>{
const paint=performance.getEntriesByName('first-contentful-paint')[0];
const page=performance.getEntriesByType('navigation')[0];
said(JSON.stringify({first_paint_ns:at(paint?.startTime),largest_paint_ns:at(window.lcp),
content_loaded_ns:at(page?.domContentLoadedEventEnd)}))};
requestAnimationFrame(()=>requestAnimationFrame(()=>setTimeout(say,50)));
setTimeout(say,1000)})"""


@dataclass
class Resource:
    """The result of a resource. Times are nanoseconds since 1970."""

    asked_ns: int | None = None
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    body: bytes | None = None  # None: it did not come, or the browser did not say it
    protocol: str | None = None  # that it came over, by its ALPN
    error: str = ""


@dataclass
class Visit:
    """A page that is being loaded."""

    job: Job
    resources: list[Resource] = field(init=False)
    # When the browser did what: names of the contract, nanoseconds since 1970.
    moments: dict[str, int] = field(default_factory=dict)
    film: Film = field(default_factory=Film)

    def __post_init__(self) -> None:
        self.resources = [Resource() for _ in self.job.paths]

    def is_whole(self, numbers: range) -> bool:
        """Whether all of these have come."""
        return all(self.resources[number].last_byte_ns is not None for number in numbers)

    def take_moments(self, said: str) -> None:
        """Take what MOMENTS gave."""
        moments: dict[str, float | None] = json.loads(said)
        self.moments = {name: round(ms * 1e6) for name, ms in moments.items() if ms is not None}

    @property
    def flaw(self) -> str:
        """The first thing that went wrong with a resource, in words; empty if nothing did."""
        for path, one in zip(self.job.paths, self.resources, strict=True):
            if one.error or one.last_byte_ns is None:
                return f"{path}: {one.error or 'it was never asked for'}"
        return ""

    def leave(self) -> None:
        """Store the replies, and the report if one is wanted."""
        for path, one in zip(self.job.paths, self.resources, strict=True):
            if one.body is not None:
                (self.job.downloads / Path(path).name).write_bytes(one.body)
        if self.job.report is not None:
            self.job.report.write_text(json.dumps(self._report()))

    def _report(self) -> dict[str, object]:
        requests = [
            {
                "path": path,
                "asked_ns": one.asked_ns,
                "bytes": len(one.body or b""),
                "first_byte_ns": one.first_byte_ns,
                "last_byte_ns": one.last_byte_ns,
            }
            for path, one in zip(self.job.paths, self.resources, strict=True)
        ]
        *_, own = self.job.visits
        if self.resources[own[0]].first_byte_ns is None:
            self.moments = {}  # they are of what was there before
        index_ns = self.film.speed_index_ns() if self.is_whole(own) else None
        moments = self.moments if index_ns is None else {**self.moments, "speed_index_ns": index_ns}
        film = self.film.report()
        return {
            "handshake_ns": None,
            "requests": requests,
            "error": None,
            "moments": moments,
            "protocols": [one.protocol for one in self.resources],
            "film": film,
        }
