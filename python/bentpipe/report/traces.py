"""The trace of a trial as its cell's page shows it: the series of each plot, events and findings.

`report-ui/src/trace/model.ts` declares the shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bentpipe.analysis.plots import series
from bentpipe.analysis.traces import Analysis
from bentpipe.errors import BentpipeError
from bentpipe.report.drawings import KINDS, Plots
from bentpipe.report.link_drawings import LinkPlots, link_plots
from bentpipe.schema.analysis import Connection, Finding, PlotPlace, Summary

__all__ = ["KINDS", "script"]

_BACK = "acks_overload_return_link"  # its `rate` is that of the ACKs' way
_BEFORE_LINKS = "sojourn"  # the plot above those of the links
_POINT = 100  # a finding that lasts less than this part of a round trip is a point in its plot
_QUICKLY, _SMALL = 1, 9  # levels of zlib
_SHARE = 0.05  # of the transfer: what is shown around a point if the round trip is not known


def script(
    trial: str, analysis: Analysis, kinds: Sequence[str] = KINDS, quickly: bool = False
) -> dict[str, Any]:
    """The data in the script of a trial, with these kinds of plots and those of the links. `quickly`: larger,
    and sooner there. BentpipeError if there is no connection in the trace.
    """
    connection = analysis.connection()
    packets = series.of_connection(analysis.packets, connection.connection)
    plots = Plots(packets, connection, analysis.link)
    drawn = [{"kind": kind, "series": getattr(plots, kind)()} for kind in kinds]
    links, missing = _links(analysis, connection, plots)
    behind = kinds.index(_BEFORE_LINKS) + 1 if _BEFORE_LINKS in kinds else len(drawn)
    drawn[behind:behind] = links.plots() if links else []
    return {
        "trial": trial,
        "notes": [*_notes(analysis.summary), *missing],
        "end_s": plots.end_s,
        "events": msgspec.to_builtins(connection.events),
        "others_earlier_s": plots.before_client_s if plots.data == "forward" else None,
        "findings": [_finding(one, plots) for one in connection.findings],
        "unlike_record": _unlike_record(analysis, connection.findings),
        "interruptions": links.interruptions() if links else [],
        "plots": [plot for plot in drawn if plot["series"]],
        "data": plots.columns.base64(_QUICKLY if quickly else _SMALL),
    }


def _links(analysis: Analysis, connection: Connection, plots: Plots) -> tuple[LinkPlots | None, list[str]]:
    """The plots of the links, or why there are none."""
    try:
        return link_plots(analysis, connection, plots.end_s, plots.data, plots.columns), []
    except BentpipeError as error:
        return None, [f"What the links did over time is not shown: {error}"]


def _notes(analysis: Summary) -> list[str]:
    notes = []
    if (connections := len(analysis.connections)) > 1:
        several = len({one.client for one in analysis.connections}) > 1
        this = "of the flow that is measured" if several else "the one with the most packets"
        notes.append(f"The trace holds {connections} connections; this is {this}.")
    if analysis.sides != "both":
        side = {"client": "at the client's side alone", "server": "at the server's side alone"}
        where = side.get(analysis.sides, "at one unknown place")
        notes.append(f"Captured {where}: what was lost on the way, and when packets came, is not known.")
    notes += [f"Not decoded: {one.count} packets: {one.what}." for one in analysis.undecoded]
    return notes + analysis.errors


def _finding(finding: Finding, plots: Plots) -> dict[str, Any]:
    """A finding whose place is in a plot of the page and can be seen there."""
    shown: dict[str, Any] = msgspec.to_builtins(finding)
    if place := finding.plot:
        kind = "rate_back" if finding.rule == _BACK and place.kind == "rate" else place.kind
        shown["plot"] = {"kind": kind, **_widened(place, plots)}
    return shown


def _widened(place: PlotPlace, plots: Plots) -> dict[str, float]:
    """The time that a finding names; a round trip around it if it is a point."""
    begin, end = place.from_s, place.to_s
    around = plots.rtt_s or plots.end_s * _SHARE
    if end - begin < around / _POINT:
        middle = (begin + end) / 2
        begin, end = max(0.0, middle - around / 2), middle + around / 2
    return {"from_s": begin, "to_s": end}


def _unlike_record(analysis: Analysis, findings: list[Finding]) -> dict[str, list[str]]:
    """The rules that found something only here (`more`), or only in the record of the trial (`fewer`). That
    is made when it runs, from the wire alone; this analysis also knows the qlogs of the endpoints.
    """
    record = analysis.run.records.get(analysis.trial or "") if analysis.run else None
    if record is None or record.measured_from != "wire":
        return {"more": [], "fewer": []}
    here = [one.rule for one in findings if one.verdict == "yes"]
    return {
        "more": [rule for rule in here if rule not in record.findings],
        "fewer": [rule for rule in record.findings if rule not in here],
    }
