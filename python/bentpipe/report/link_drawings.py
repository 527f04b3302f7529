"""Timelines of a trial's links, as plots on the time axis of its packets.

Rates, Es/N0 with the MODCOD, delays, losses and satellites where they change, and the times at which links
send nothing. Courses are those that `bentpipe scenarios show` draws, by the trial's own seed. Links know the
trial's time from its beginning; it is moved to the time of the first packet.

When the trial began and which interruptions there were, its `link-events.json` says, in virtual and in real
time; the program of the courses adds which satellite follows. In virtual time a trial of an earlier version,
which has no such file, began at the epoch, and its interruptions come of the scenario as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from bentpipe.analysis.plots.table import Direction
from bentpipe.analysis.traces import Analysis
from bentpipe.plan import scenarios
from bentpipe.plan.scenarios import TrialCourses
from bentpipe.report.columns import Columns
from bentpipe.runs import link_events
from bentpipe.runs.link_events import LinkEvents
from bentpipe.schema.analysis import Connection
from bentpipe.testbed import SIM

KINDS = ("capacity", "es_n0", "link_delay", "link_loss", "elevation", "in_view")

_EPOCH_UNIX_NS = 946_684_800 * 10**9  # of virtual time (endpoints/CONTRACT.md)
_AFTER = 1.02  # the time axis, as a multiple of the time of the last packet
_SECONDS = 1e-6  # what times are rounded to


@dataclass(frozen=True)
class _Style:
    """How a quantity is drawn: the kind of its plot, its name there, its colours forward and back."""

    kind: str
    name: str
    colours: tuple[str, str]
    factor: float = 1  # from the unit of the course to that of the plot
    unit: float = 1  # what values are rounded to


_STYLES = {
    "rate": _Style("capacity", "capacity", ("accent", "series-4"), factor=1e6, unit=1e3),
    "es_n0": _Style("es_n0", "Es/N0", ("accent", "series-4"), unit=1e-3),
    "modcod": _Style("es_n0", "needed by the MODCOD", ("series-2", "series-7"), unit=1e-3),
    "delay": _Style("link_delay", "delay", ("accent", "series-4"), unit=1e-6),
    "loss": _Style("link_loss", "loss", ("accent", "series-4"), unit=1e-5),
    "elevation": _Style("elevation", "elevation", ("accent", "series-4"), unit=1e-3),
    "in_view": _Style("in_view", "satellites in view", ("accent", "series-4")),
}


@dataclass
class LinkPlots:
    """The plots of a trial's links."""

    found: TrialCourses
    begin_s: float  # of the packets' time axis, in the trial's time
    until_s: float  # likewise, its end
    data: Direction
    columns: Columns

    def plots(self) -> list[dict[str, Any]]:
        """The plots that have something to show, with their series."""
        drawn = [{"kind": kind, "series": list(self._series(kind))} for kind in KINDS]
        return [plot for plot in drawn if plot["series"]]

    def _series(self, kind: str) -> Iterator[dict[str, Any]]:
        """The series of a kind, those of the data's way first; one alone where both ways have the same."""
        mine = [key for key in self.found.courses if _STYLES[key.rpartition(".")[2]].kind == kind]
        for key in sorted(mine, key=lambda key: f".{self.data}." not in key):
            link, direction, quantity = key.rsplit(".", 2)
            style = _STYLES[quantity]
            other = ".".join((link, "return" if direction == "forward" else "forward", quantity))
            both = self.found.courses.get(other) == self.found.courses[key]
            if both and direction != self.data:
                continue
            where = _where(link)
            way = ", both ways" if both else f", {direction}"
            yield self._drawn(f"{style.name}{where}{way}", style, direction, self.found.courses[key])

    def _drawn(self, name: str, style: _Style, direction: str, course: dict[str, Any]) -> dict[str, Any]:
        points = course["course"]
        if course["between"] != "even":  # it ends with the value at its end
            points = [*points, (self.until_s, points[-1][1])]
        times, values = np.asarray(points, dtype=np.float64).T
        return {
            "name": f"{name} (means)" if course["between"] == "mean" else name,
            "mark": "line" if course["between"] == "even" else "steps",
            "colour": style.colours[0 if direction == "forward" else 1],
            "times": self.columns.add(times - self.begin_s, _SECONDS),
            "values": self.columns.add(values * style.factor, style.unit),
            "tops": None,
            "names": [[round(at - self.begin_s, 6), text] for at, text in course["names"]] or None,
        }

    def interruptions(self) -> list[dict[str, Any]]:
        """Handovers and outages by time; one that stops both ways of a segment stands there once."""
        seen: dict[tuple[float, float, str, str | None], list[str]] = {}
        for key, each in self.found.interruptions.items():
            link, direction, kind = key.rsplit(".", 2)
            what = kind.removesuffix("s") + _where(link)
            for one in each:
                stretch = (one["at_s"], one["at_s"] + one["length_s"], what, one["satellite"])
                seen.setdefault(stretch, []).append(direction)
        return [
            {
                "from_s": round(begin - self.begin_s, 6),
                "to_s": round(end - self.begin_s, 6),
                "what": what if len(ways) > 1 else f"{what}, {ways[0]}",
                "satellite": satellite,
            }
            for (begin, end, what, satellite), ways in sorted(seen.items(), key=lambda one: one[0][:3])
        ]


def _where(link: str) -> str:
    """The words for a link, `ground` or of a further path `paths.leo.satellite`, that is not the satellite
    segment of the first path, or the only one.
    """
    *path, segment = link.split(".")
    of = "" if segment == "satellite" else f" of {segment}"
    return f"{of} of path {path[-1]}" if path else of


def link_plots(
    analysis: Analysis, connection: Connection, end_s: float, data: Direction, columns: Columns
) -> LinkPlots | None:
    """Those of a trial over links of Bentpipe; None of any other, and of one in real time whose beginning
    is not known. `end_s` is the time of the last packet, `data` the way of the data. BentpipeError if the
    run's scenario or the trial's events cannot be read.
    """
    run = analysis.run
    record = run.records.get(analysis.trial or "") if run else None
    if run is None or record is None:
        return None
    events = link_events.read(run.folder / "trials" / record.trial)
    if events is None and record.testbed != SIM.name:
        return None
    start_ns = events.start_unix_ns if events else _EPOCH_UNIX_NS
    begin_s = float(Decimal(connection.start_unix_s) - Decimal(start_ns).scaleb(-9))
    until_s = begin_s + end_s * _AFTER
    state = run.scenarios[record.scenario]
    found = scenarios.courses_of_trial(state.scenario, record.seed, until_s)
    # With middleboxes the events are those of the client's hop alone, and of several paths of the first.
    if events and not record.hops and not record.paths:
        found = TrialCourses(found.courses, _as_happened(events, found.interruptions, until_s))
    return LinkPlots(found, begin_s, until_s, data, columns)


def _as_happened(events: LinkEvents, computed: dict[str, Any], until_s: float) -> dict[str, Any]:
    """The interruptions of a trial up to a time. What is computed of the scenario has the segment and the
    satellite of one that is there at the same time; one without is of the satellite segment.
    """
    known: dict[tuple[str, str, int, int], list[tuple[str, str | None]]] = {}
    for key, each in computed.items():
        segment, direction, kinds = key.split(".")
        for one in each:
            span = (round(one["at_s"] * 1e9), round((one["at_s"] + one["length_s"]) * 1e9))
            known.setdefault((kinds, direction, *span), []).append((segment, one["satellite"]))
    found: dict[str, list[dict[str, Any]]] = {}
    for event in events.interruptions:
        if event.from_ns > until_s * 1e9:
            continue
        kinds = f"{event.kind}s"
        same = known.get((kinds, event.direction, event.from_ns, event.until_ns))
        segment, satellite = same.pop(0) if same else ("satellite", None)
        begin_s, length_s = event.from_ns / 1e9, (event.until_ns - event.from_ns) / 1e9
        found.setdefault(f"{segment}.{event.direction}.{kinds}", []).append(
            {"at_s": begin_s, "length_s": length_s, "satellite": satellite}
        )
    return found
