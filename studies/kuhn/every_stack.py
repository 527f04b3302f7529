"""Every stack of QUIC beside the source's numbers: who meets its objectives, with proxies of QUIC and
without, and what losses leave of each, as table II has it of TCP.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.plan import treatments
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.front import folded
from bentpipe.study.markdown import literal, several, table

from . import drawn, losses
from .published import Kuhn, Objectives
from .runs import ACCESS, CLEAN, SIZES, KuhnRuns, place_of

OBJECTIVES, LOSSES = "kuhn-stacks", "kuhn-satellite-stacks"
# Of `first_mb_s`, which value is that of 2, 10 and 100 MB.
_MARKS = {2: 1, 10: 3, 100: 6}
_OBJECTIVES = """Seconds from the client's first packet until the first 2, 10 and 100 MB of one file are
there: medians of {trials} each; a dash, most trials had not come so far after 120 s. **Bold**: every trial
is within the objective. *Proxies*: quic-pep with CUBIC (`cc=cubic`) at the terminal and at the gateway, in
the configurations of TCP's: A and B with flow control windows of 6 MB, C and D of 33 MB, A and C with an
initial window of 10 packets, B and D of 100.
Stacks are as their libraries begin, each with itself; noq with `cc=tolerant:ss=trains` has a sender of
Bentpipe's own. The objectives of the source are from the request on; these times have the handshake in them,
which is one round trip of 0.6 s."""
_LOSSES = """Mean goodput in Mbit/s over the same path as that of TCP above; {trials} of 300 s each.
msquic is left out: in a guest one trial takes minutes."""


def sections(runs: KuhnRuns, known: Kuhn) -> list[str]:
    """The two tables; without their runs, nothing."""
    return [*_objectives(runs, known), *_losses(runs, known)]


def _objectives(runs: KuhnRuns, known: Kuhn) -> list[str]:
    cells = runs.cells_of(OBJECTIVES)
    if not cells:
        return []
    trials = several(max(len(one.records) for one in cells), "trial")
    parts = ["## Every stack against the objectives", _OBJECTIVES.format(trials=trials)]
    for place in (CLEAN, ACCESS):
        here = [one for one in cells if place_of(one) == place]
        parts += [
            f"### {drawn.TITLES[place]}",
            *_path(here, known.objectives["clean" if place == CLEAN else "lossy"]),
        ]
    return parts


def configuration(treatment: str) -> str:
    """A to D, by a proxy's window and initial window; `none`; or the treatment if it is none of them."""
    if treatment == DIRECT:
        return "none"
    options = _options(treatment)
    buffers = {"6000000": "AB", "33000000": "CD"}.get(options.get("window", ""))
    place = {"10": 0, "100": 1}.get(options.get("iw", ""))
    return treatment if buffers is None or place is None else buffers[place]


def _options(treatment: str) -> dict[str, str]:
    """The options of its first proxy."""
    return dict(treatments.parse(treatment, "the run").proxies[0].options)


def _path(cells: Sequence[Cell], wanted: Objectives) -> list[str]:
    """The table of one path, and who meets all its objectives."""
    rows = [["objective", "", *(f"{wanted.of(size):g}" for size in SIZES)]]
    met = []
    for cell in cells:
        word = configuration(cell.key.treatment)
        rows.append(
            [literal(cell.key.server), literal(word), *(_shown(cell, size, wanted) for size in SIZES)]
        )
        if all(_within(cell, size, wanted) for size in SIZES):
            met.append(cell.key.server + ("" if word == "none" else f" behind proxies {word}"))
    said = literal("; ".join(met)) if met else "none"
    shown = folded(
        "Times of each stack", table(["", "proxies", *(f"{size} MB" for size in SIZES)], rows, left=2)
    )
    return [f"All three are met by: {said}.", *shown, *_broken(cells)]


def _broken(cells: Sequence[Cell]) -> list[str]:
    """The stacks that failed other than by a timeout, with the outcomes."""
    found = []
    for cell in cells:
        odd = next((one for one in cell.records if not one.ok and one.outcome != "transfer_timeout"), None)
        if odd is not None:
            between = "" if cell.key.treatment == DIRECT else " behind proxies"
            why = f"{odd.outcome.replace('_', ' ')}: {odd.detail}"
            found.append(f"{literal(cell.key.server)}{between} failed before that: {literal(why)}.")
    return found


def _times(cell: Cell, size: int) -> list[float]:
    """Of every trial; infinite where it never came so far."""
    mark = _MARKS[size]
    return [one.first_mb_s[mark] if len(one.first_mb_s) > mark else math.inf for one in cell.records]


def _within(cell: Cell, size: int, wanted: Objectives) -> bool:
    """Whether every trial is within the objective: a median of a few might be by chance."""
    most = wanted.of(size)
    return most is not None and max(_times(cell, size)) <= most


def _shown(cell: Cell, size: int, wanted: Objectives) -> str:
    """The median; a dash where most trials never came so far."""
    middle = statistics.median_high(_times(cell, size))
    if not math.isfinite(middle):
        return marked("-", cell)
    return marked(f"**{middle:.2f}**" if _within(cell, size, wanted) else f"{middle:.2f}", cell)


def _losses(runs: KuhnRuns, known: Kuhn) -> list[str]:
    of_quic, of_tcp = runs.losing(LOSSES), runs.losing(losses.TABLE)
    if not of_quic:
        return []
    ratios = [row.loss for row in known.losses.rows]
    rows = [["TCP, published", *(f"{row.goodput_mbps:g}" for row in known.losses.rows)]]
    if of_tcp:
        rows.append(["TCP, CUBIC of Linux", *_row({one.loss: one.goodputs for one in of_tcp}, ratios)])
    for server in dict.fromkeys(one.cell.key.server for one in of_quic):
        mine = {one.loss: one.goodputs for one in of_quic if one.cell.key.server == server}
        rows.append([literal(server), *_row(mine, ratios)])
    trials = several(max(len(one.cell.records) for one in of_quic), "trial")
    head = ["loss", *(f"{100 * ratio:g} %" for ratio in ratios)]
    return ["### QUIC in place of TCP", _LOSSES.format(trials=trials), table(head, rows)]


def _row(goodputs: dict[float, list[float]], ratios: Sequence[float]) -> list[str]:
    found = ((ratio, next((v for loss, v in goodputs.items() if math.isclose(loss, ratio, abs_tol=1e-9)), []))
             for ratio in ratios)  # fmt: skip
    return [f"{statistics.fmean(values):.2f}" if values else "-" for _, values in found]
