"""Every stack of QUIC beside the source's numbers: who meets its objectives, with proxies of QUIC and
without, and what losses leave of each, as table II has it of TCP.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from bentpipe.analysis.cells import Cell
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import literal, several, table

from . import drawn, losses
from .published import Kuhn, Objectives
from .runs import ACCESS, CLEAN, SIZES, KuhnRuns, place_of

OBJECTIVES, LOSSES = "kuhn-stacks", "kuhn-satellite-stacks"
# Of `first_mb_s`, which value is that of 2, 10 and 100 MB.
_MARKS = {2: 1, 10: 3, 100: 6}
_OBJECTIVES = """Seconds from the client's first packet until the first 2, 10 and 100 MB of one file are
there: medians of {trials} each; a dash, most trials had not come so far after 120 s. **Bold**: every trial
is within the objective. *Proxies*: quic-pep with CUBIC (`cc=cubic`) at the terminal and at the gateway.
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


def _path(cells: Sequence[Cell], wanted: Objectives) -> list[str]:
    """The table of one path, and who meets all its objectives."""
    head = ["", *(f"{size} MB" for size in SIZES), *(f"{size} MB, proxies" for size in SIZES)]
    rows = [["objective", *(f"{wanted.of(size):g}" for _ in range(2) for size in SIZES)]]
    met = []
    for server in dict.fromkeys(one.key.server for one in cells):
        row = [literal(server)]
        for is_direct in (True, False):
            of_stack = (one for one in cells if one.key.server == server)
            cell = next((one for one in of_stack if (one.key.treatment == DIRECT) is is_direct), None)
            row += ["-" if cell is None else _shown(cell, size, wanted) for size in SIZES]
            if cell is not None and all(_within(cell, size, wanted) for size in SIZES):
                met.append(server if is_direct else f"{server} behind proxies")
        rows.append(row)
    said = literal("; ".join(met)) if met else "none"
    return [table(head, rows), f"All three are met by: {said}.", *_broken(cells)]


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
        return "-"
    return f"**{middle:.2f}**" if _within(cell, size, wanted) else f"{middle:.2f}"


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
