"""The page on two simple pages: over TCP, which an operator splits, and over QUIC, which he cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bentpipe import workload
from bentpipe.analysis.cells import Cell, cells
from bentpipe.plan.treatments import DIRECT
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import literal, number, table, trials
from bentpipe.study.quantiles import quantile
from bentpipe.study.source import Source, pooled
from bentpipe.workload.http import TITLES
from bentpipe.workload.page.visit import PageVisit

# Bytes that had come by a time in seconds.
BytesByTime = Callable[[float], float]

_TEXT = """A paper of 2020 loads two pages with a browser behind a public satellite access: A of 5.3 MB, B of
11 kB. TCP goes through the operator's proxies, QUIC past them; both have BBR. Its figure 2 has percentiles
of the page load time, its figure 3 how many bytes had come by when. In words it finds QUIC slightly better
than TCP for B, and significantly worse for A, where its slow start takes up to 4 s to probe the link. Here
the same is done in virtual time, with real stacks."""
_DIFFERS = """- **The access** is not described in the source, nor are its proxies. Here it is the path of its
  section IV, 50/10 Mbit/s, once without losses and once with those that its table I has for a wired access;
  the proxies are configuration D of its table III, with BBR.
- **The stacks.** Google's QUIC of 2018 there. Here QUIC's BBR is quinn's, version 1, and noq's, version 3;
  Linux's TCP has version 1. noq with `cc=tolerant:ss=trains` is Bentpipe's own sender.
- **The client** parses and paints nothing. Each page is one object.
- **Figures** are not numbers: the source prints none of them, so only its words can be compared with this."""
_PERCENTILES = """Page load time in seconds: the shares of trials that were at most as long, of {}. Sorted by
the median."""
_COURSE = """How many bytes had come by when, of the trial of page A with the median page load time: MB of
what UDP or TCP carried, with headers of QUIC, TLS and HTTP and what came twice, at the given number of
seconds after the client's first packet. The last column is when nine tenths of the link's rate were first
reached, over half a second."""
_SAID = {"kuhn-b": "QUIC slightly better than TCP", "kuhn-a": "QUIC significantly worse than TCP"}
_FIRST_WINDOW = """The source's TCP is at a constant rate less than 50 ms after its request. Here it is not,
with either configuration of the proxies. A pool and an initial window of 1000 packets leave the gateway
nothing to probe, and still no more than 0.06 MB come in the first flight: a Linux receiver offers 64 KiB at
first, whatever its buffers are, and more with each round trip ([the study kuhn](../kuhn/kuhn.md) has the
same of larger initial windows). What an operator's proxies have in place of that is not known here."""
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_TIMES_S = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_LARGE = "kuhn-a"
_TITLES = {"kuhn-a": "A, 5.3 MB", "kuhn-b": "B, 11 kB"}
_GOOD = "forward.loss.p_bad_given_good"
_LINK_BPS = 50e6
_WINDOW_S = 0.5
_FULL = 0.9


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs do not have both pages over TCP and QUIC."""
    known = [one for one in cells(pooled(runs)) if _page(one) in _TITLES and one.ok]
    if {(_page(one), _is_quic(one)) for one in known} != {(name, way) for name in _TITLES for way in (0, 1)}:
        raise runs[0].refused(
            f"wanted are the pages {' and '.join(_TITLES)}, over TCP and over QUIC", "study simple-pages"
        )
    parts = ["# Two simple pages behind an operator's proxies", _TEXT, "## At a glance", _glance(known)]
    parts += ["What differs from the source:", _DIFFERS, "## Percentiles of the page load time"]
    parts += [_PERCENTILES.format(trials({len(one.records) for one in known}))]
    for name in _TITLES:
        parts += [f"### Page {_TITLES[name]}", _percentiles([one for one in known if _page(one) == name])]
    parts += [
        "## Bytes over time",
        _COURSE,
        _courses([one for one in known if _page(one) == _LARGE]),
        _FIRST_WINDOW,
    ]
    parts += closing.of_all(runs, {"Kuhn": _SOURCE})
    file = folder / "simple-pages.md"
    file.write_text(markdown.page(parts))
    return [file]


_SOURCE = """N. Kuhn, F. Michel, L. Thomas, E. Dubois, E. Lochin, QUIC: Opportunities and threats in SATCOM,
10th Advanced Satellite Multimedia Systems Conference and 16th Signal Processing for Space Communications
Workshop (ASMS/SPSC), 2020, doi:10.1109/ASMS/SPSC48805.2020.9268814, section II and table III"""


def _page(one: Cell) -> str:
    found = workload.known(one.key.workload)
    return found.name if isinstance(found, PageVisit) else ""


def _is_quic(one: Cell) -> bool:
    found = workload.known(one.key.workload)
    return isinstance(found, PageVisit) and found.http == "h3"


def _loss(one: Cell) -> str:
    at = one.key.scenario_label.values.get(_GOOD, "0%")
    return "none" if at == "0%" else "as of table I"


def _name(one: Cell) -> str:
    """`HTTP/2, linux:cc=bbr, proxies`."""
    found = workload.known(one.key.workload)
    assert isinstance(found, PageVisit)
    return f"{TITLES[found.http]}, {literal(one.key.server)}{_through(one)}"


def _through(one: Cell) -> str:
    if one.key.treatment == DIRECT:
        return ""
    return ", proxies with a pool" if "pool=" in one.key.treatment else ", proxies"


def _median_s(one: Cell) -> float | None:
    """A load time that was measured, of an even number of them the lower."""
    return quantile(one.values("plt_s"), 0.5)


def _order(one: Cell) -> tuple[bool, float]:
    return _loss(one) != "none", _median_s(one) or math.inf


def _percentiles(shown: Sequence[Cell]) -> str:
    rows = []
    for one in sorted(shown, key=_order):
        failed = sum(one.failures.values())
        found = [quantile(one.values("plt_s"), share) for share in _SHARES]
        rows.append(
            [
                _loss(one),
                _name(one) + (f", {failed} failed" if failed else ""),
                *map(number, found),
            ]
        )
    return table(["losses", "", *(f"{share:.0%}" for share in _SHARES)], rows, left=2)


def _courses(shown: Sequence[Cell]) -> str:
    rows = []
    for one in sorted(shown, key=_order):
        came = _bytes_by_time(one)
        full = [time for time in np.arange(_WINDOW_S, 60, 0.05) if _rate(came, time) >= _FULL * _LINK_BPS]
        rows.append(
            [
                _loss(one),
                _name(one),
                *(f"{came(time) / 1e6:.2f}" for time in _TIMES_S),
                f"{full[0]:.1f} s" if full else "never",
            ]
        )
    return table(["losses", "", *(f"{time:g} s" for time in _TIMES_S), "full rate"], rows, left=2)


def _bytes_by_time(one: Cell) -> BytesByTime:
    """Of the trial with the median page load time, how many bytes had come by a time."""
    ordered = sorted((record for record in one.ok if record.plt_s is not None), key=lambda it: it.plt_s or 0)
    record = ordered[(len(ordered) - 1) // 2]
    steps = np.arange(len(record.received_bytes) + 1) * record.received_step_s
    came = np.concatenate(([0.0], np.array(record.received_bytes, dtype=np.float64)))
    return lambda time: float(np.interp(time, steps, came))


def _rate(came: BytesByTime, time: float) -> float:
    """Bits per second over the window that ends at a time."""
    return 8 * (came(time) - came(time - _WINDOW_S)) / _WINDOW_S


def _glance(known: Sequence[Cell]) -> str:
    """The statements of the source, each with our numbers."""
    lines = []
    for name, theirs in _SAID.items():
        for loss in dict.fromkeys(map(_loss, known)):
            here = [one for one in known if _page(one) == name and _loss(one) == loss]
            shown = [one for one in here if one.key.treatment != DIRECT or _is_quic(one)]
            medians = "; ".join(f"{_name(one)} {number(_median_s(one), unit=' s')}" for one in shown)
            if any(not _is_quic(one) for one in shown):
                lines.append(
                    f"- Page {_TITLES[name]}, losses {loss}, published: {theirs}. Here, medians: {medians}."
                )
    return "\n".join(lines)
