"""The page on Reno under random losses: the rate of every stack, beside the formula and an ideal sender.

All are compared in packets of 1200 bytes that arrive per round trip, in which neither headers nor the path
count. Losses are drawn anew with each seed, and so rates differ from seed to seed, for the ideal sender as
well.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.intervals import span
from bentpipe.study.markdown import listed, literal, mbit, percent, several, table, trials
from bentpipe.study.source import Source

from . import answer
from .answer import Ideal, StackRow, delivered
from .ideal import formula

SOURCES = {
    "formula": "M. Mathis, J. Semke, J. Mahdavi, T. Ott, The Macroscopic Behavior of the TCP Congestion "
    "Avoidance Algorithm, ACM Computer Communication Review 27(3), 1997",
    "ideal sender": "J. Iyengar, I. Swett, QUIC Loss Detection and Congestion Control, RFC 9002, 2021, "
    "sections 6 and 7",
}
_COLUMNS = """Medians over the trials, but for *of the ideal*: the ratio of geometric means to the ideal
sender's, with its interval of 95 %. *of the seeds*: the smallest and the largest. *RTT*: the server's
samples."""
_FORMULA = """**The formula** is that of Mathis et al.: sqrt(3/2) / sqrt(p) packets per round trip. It stands
for losses that are evenly spaced, a window that grows by one packet in each round trip, and no start. ACKs
that wait for a second packet do not lower it: RFC 9002 counts bytes that are acknowledged, not ACKs."""
_IDEAL = """**The ideal sender** is a program of a page (`ideal.py`) that keeps RFC 9002: random losses,
slow start from 10 packets, a window that is halved once for all losses of a round trip, no growth
during recovery, never less than two packets, whole packets only."""


@dataclass(frozen=True)
class Deviation:
    """A deviation of a stack's Reno from the ideal one."""

    share: float  # of the ideal sender's rate that it reaches
    why: str


# Stack → what was found when it was examined: in its library's code, in traces and in qlogs.
TRAITS = {
    "quic-go": Deviation(
        1.46,
        """after a loss its window is 0.7 of what it was (`renoBeta`), where RFC 9002 section 7.3.2 has half;
  the ideal sender with 0.7 is 40 % faster. And it sends a whole packet when the window allows only a part
  of one""",
    ),
    "x-net": Deviation(
        0.90,
        """its pacer's bucket is refilled when a timer expires, and not when an ACK arrives, so that it
  holds back packets that the window allows, some 15 % of the time. And it forgets at each loss what
  was acknowledged towards the next packet of window, which takes 5 % off an ideal sender that does so""",
    ),
    "quiche": Deviation(
        0.94,
        """it fills the rest of its window with a packet of whatever size that is. Such pieces are
  acknowledged one by one and live on: a quarter more packets for the same file, and a quarter more losses""",
    ),
    "ngtcp2": Deviation(
        1.06,
        """it sends a whole packet when the window allows only a part of one, and so has more in flight than
  its window, where others have half a packet less""",
    ),
}


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`; the files, the page first. BentpipeError if the run is not
    of Reno over one path with uniform loss.
    """
    source = runs[0]
    every = [cell for cell in cells(source.records) if cell.key.server_label.options.get("cc") == "newreno"]
    mine = [cell for cell in every if any(one.rtt_median_ms and one.goodput_bps for one in cell.ok)]
    settings = {(cell.key.scenario, cell.key.workload, cell.key.client) for cell in mine}
    if len(settings) != 1:
        raise source.refused(
            "wanted is one path, one workload and one client, and servers with cc=newreno; "
            f"{several(len(settings), 'such setting')} with measured trials",
            "run reno",
        )
    ((scenario, _, _),) = settings
    loss = _loss(source, scenario)
    records = [one for cell in mine for one in cell.ok]
    ideal = Ideal.over(loss, round(statistics.median(map(delivered, records))))
    rows = sorted((StackRow(cell, ideal) for cell in mine), key=lambda row: row.share.value)
    front = answer.front(rows, loss, folder)
    path = folder / "reno.md"
    path.write_text(markdown.page([*front.parts(), *_sections(source, rows, every, loss)]))
    return [path, folder / answer.PICTURE]


def _loss(source: Source, scenario: str) -> float:
    """The uniform loss of a path's forward direction."""
    said = source.manifest.scenarios[scenario].summary
    text = str(said["forward_loss"])
    try:
        loss = float(text.removesuffix("%")) / 100
    except ValueError:
        loss = 0.0
    if not 0 < loss < 1 or said["return_loss"] != "none":
        raise source.refused(
            f"wanted is uniform loss towards the client alone; forward it is {text}, "
            f"return {said['return_loss']}",
            "run reno",
        )
    return loss


def _cells(row: StackRow) -> list[str]:
    """A row of the table."""
    goodputs = [one.goodput_bps for one in row.measured if one.goodput_bps is not None]
    rtts_ms = [one.rtt_median_ms for one in row.measured if one.rtt_median_ms is not None]
    packets = [one.forward_packets for one in row.measured if one.forward_packets is not None]
    numbers = [
        f"{statistics.median(row.rates):.2f}",
        span(row.rates, 1),
        row.written(),
        mbit(statistics.median(goodputs)),
        f"{statistics.median(rtts_ms):.0f}",
        f"{statistics.median(packets):.0f}" if packets else "-",
        str(len(row.rates)),
    ]
    return [literal(row.cell.key.server), row.verdict, *(marked(text, row.cell) for text in numbers)]


def _sections(source: Source, rows: Sequence[StackRow], every: Sequence[Cell], loss: float) -> list[str]:
    """The page below its front; `every` has the cells without a trial that succeeded, too."""
    head = ["server", "", "packets per round trip", "of the seeds", "of the ideal", "Mbit/s"]
    head += ["RTT, ms", "packets sent", "trials"]
    measured = {row.cell.key for row in rows}
    unmeasured = [literal(cell.key.server) for cell in every if cell.key not in measured]
    return [
        "## What was run",
        _opening(rows, loss) + (f" No trial of {listed(unmeasured)} succeeded." if unmeasured else ""),
        answer.HOW,
        "## Every stack",
        *folded("Rates, round-trip times and packets of every stack", table(head, map(_cells, rows), left=2)),
        _COLUMNS,
        *_yardsticks(rows[0].ideal, loss),
        *_apart(rows),
        *closing.failures([one for cell in every for one in cell.records]),
        *closing.made(source, SOURCES),
    ]


def _opening(rows: Sequence[StackRow], loss: float) -> str:
    text = (
        f"Every stack with `cc=newreno` as the server, {literal(rows[0].cell.key.client)} as the client, "
        f"{trials({len(row.cell.records) for row in rows})} each. The path loses {100 * loss:g} % of the "
        "packets towards the client, each independently, and its queues do not fill."
    )
    drops = [one.forward_queue_drops for row in rows for one in row.cell.ok]
    counted = [one for one in drops if one is not None]
    if sum(counted):
        text += f" Queues did drop {several(sum(counted), 'packet')}, so that not all losses are random."
    if len(counted) < len(drops):
        text += f" Their drops were counted in {len(counted)} of {several(len(drops), 'trial')}."
    return text


def _yardsticks(ideal: Ideal, loss: float) -> list[str]:
    known = formula(loss)
    return [
        "## Formula and ideal sender",
        f"{_FORMULA} At {100 * loss:g} % of loss it has {known:.2f}.",
        f"{_IDEAL} Over this file it delivers {ideal.mean:.2f} packets per round trip in the mean over "
        f"{len(ideal.rates)} seeds, between {ideal.rates[0]:.1f} and {ideal.rates[-1]:.1f}.",
    ]


def _apart(rows: Sequence[StackRow]) -> list[str]:
    """The section on those that deliver more or less than the ideal sender."""
    lines = []
    for row in rows:
        if row.verdict not in (answer.LOWER, answer.HIGHER):
            continue
        trait = TRAITS.get(row.stack)
        fits = trait is not None and (trait.share > 1) == (row.share.value > 1)
        why = f"{trait.why}." if trait and fits else "the reason is not known."
        lines.append(f"- **{row.stack}**, {percent(abs(row.share.value - 1))} {row.verdict}: {why}")
    text = "What their code, traces and qlogs show:\n\n" + "\n".join(lines)
    return ["## Those that differ", text if lines else "None does."]
