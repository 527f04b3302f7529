"""The page on two simple pages: over TCP, which an operator splits, and over QUIC, which he cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import claims as study_claims
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import number, table, trials
from bentpipe.study.quantiles import quantile
from bentpipe.study.source import Source, pooled

from . import answer, first_window, loads

# Bytes that had come by a time in seconds.
BytesByTime = Callable[[float], float]

_TEXT = """A paper of 2020 loads two pages with a browser behind a public satellite access: A of 5.3 MB, B of
11 kB. TCP goes through the operator's proxies, QUIC past them; both have BBR. Its figure 2 has percentiles
of the page load time, its figure 3 how many bytes had come by when. In words it finds QUIC slightly better
than TCP for B, and significantly worse for A, where its slow start takes up to 4 s to probe the link. Here
the same is done in virtual time, with real stacks."""
_DIFFERS = """- **The access** is not described in the source, nor are its proxies. Here it is the path of its
  section IV, 50/10 Mbit/s, without losses, and with those that its table I has for a wired access: on the
  satellite, where no proxy can repair them, and between terminal and client, where one can. The source does
  not say where its losses were. The proxies are configuration D of its table III, with BBR.
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
_FIRST_WINDOW = """The source's TCP is at a constant rate less than 50 ms after its request. Here it is not,
with either configuration of the proxies. A pool and an initial window of 1000 packets leave the gateway
nothing to probe, and still no more than 0.06 MB come in the first flight: a Linux receiver offers 64 KiB at
first, half of the middle value of `tcp_rmem`, and more with each round trip ([the study
kuhn](../kuhn/kuhn.md) has the same of larger initial windows). What an operator's proxies have in its place
is not known here."""
_SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
_TIMES_S = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
_LARGE = "kuhn-a"
_TITLES = {"kuhn-a": "A, 5.3 MB", "kuhn-b": "B, 11 kB"}
_LINK_BPS = 50e6
_WINDOW_S = 0.5
_FULL = 0.9


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs do not have both pages over TCP and QUIC."""
    known = [one for one in cells(pooled(runs)) if loads.page_name(one) in _TITLES and one.ok]
    there = {(loads.page_name(one), loads.is_quic(one)) for one in known}
    if there != {(name, way) for name in _TITLES for way in (0, 1)}:
        raise runs[0].refused(
            f"wanted are the pages {' and '.join(_TITLES)}, over TCP and over QUIC", "study simple-pages"
        )
    compared, widened = (
        _compared(
            [one for one in known if loads.is_quic(one) or (loads.first_buffer(one) is None) == kernels]
        )
        for kernels in (True, False)
    )
    front, claims = answer.front(compared, folder), answer.claims(compared)
    parts = [*front.parts(), "## What was run", _TEXT]
    if claims:
        parts += ["## The paper's claims", study_claims.rows(claims, "the paper says")]
        parts += [study_claims.RULE, answer.HOW]
    parts += ["## Differences from the source", _DIFFERS, "## Percentiles of the page load time"]
    parts += [_PERCENTILES.format(trials({len(one.records) for one in known}))]
    for name in _TITLES:
        mine = [one for one in known if loads.page_name(one) == name]
        parts += [f"### Page {_TITLES[name]}", *folded("Percentiles of each sender", _percentiles(mine))]
    parts += [
        "## Bytes over time",
        _COURSE,
        *folded("Bytes of each sender", _courses([one for one in known if loads.page_name(one) == _LARGE])),
        _FIRST_WINDOW,
        *first_window.sections(known, compared, widened),
    ]
    parts += closing.of_all(runs, {"Kuhn": _SOURCE})
    file = folder / "simple-pages.md"
    file.write_text(markdown.page(parts))
    return [file, *([] if front.picture is None else [front.picture.file])]


def _compared(known: Sequence[Cell]) -> list[answer.Compared]:
    """One stack of QUIC with BBR beside TCP behind the first proxies, over each path and of each page."""
    found = []
    for name in _TITLES:
        for loss in dict.fromkeys(map(loads.losses, known)):
            here = [one for one in known if loads.page_name(one) == name and loads.losses(one) == loss]
            proxied = (one for one in here if not loads.is_quic(one) and loads.proxies(one) == loads.PROXIES)
            tcp = next(proxied, None)
            if tcp is not None:
                mine = filter(loads.has_bbr, here)
                found += [answer.Compared(name, loss, one.key.server, one, tcp) for one in mine]
    return found


_SOURCE = """N. Kuhn, F. Michel, L. Thomas, E. Dubois, E. Lochin, QUIC: Opportunities and threats in SATCOM,
10th Advanced Satellite Multimedia Systems Conference and 16th Signal Processing for Space Communications
Workshop (ASMS/SPSC), 2020, doi:10.1109/ASMS/SPSC48805.2020.9268814, section II and table III"""


def _median_s(one: Cell) -> float | None:
    """A load time that was measured, of an even number of them the lower."""
    return quantile(one.values("plt_s"), 0.5)


def _order(one: Cell) -> tuple[bool, float]:
    return loads.losses(one) != "none", _median_s(one) or math.inf


def _percentiles(shown: Sequence[Cell]) -> str:
    rows = []
    for one in sorted(shown, key=_order):
        failed = sum(one.failures.values())
        found = [quantile(one.values("plt_s"), share) for share in _SHARES]
        rows.append(
            [
                loads.losses(one),
                loads.sender_name(one) + (f", {failed} failed" if failed else ""),
                *(marked(number(value), one) for value in found),
            ]
        )
    return table(["losses", "", *(f"{share:.0%}" for share in _SHARES)], rows, left=2)


def _courses(shown: Sequence[Cell]) -> str:
    rows = []
    for one in sorted(shown, key=_order):
        came = _bytes_by_time(one)
        texts = [f"{came(time) / 1e6:.2f}" for time in _TIMES_S]
        full = [time for time in np.arange(_WINDOW_S, 60, 0.05) if _rate(came, time) >= _FULL * _LINK_BPS]
        rows.append(
            [
                loads.losses(one),
                loads.sender_name(one),
                *(marked(text, one) for text in (*texts, f"{full[0]:.1f} s" if full else "never")),
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
