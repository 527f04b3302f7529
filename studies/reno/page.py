"""The page on Reno under random losses: what every stack's comes to, beside the formula and an ideal sender.

All are compared in packets of 1200 bytes that arrive per round trip, in which neither headers nor the path
count. Losses are drawn anew with each seed, and so rates differ from seed to seed, for the ideal sender as
well. The median of some seeds may be as far from its own as chance allows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.trial_marks import marked
from bentpipe.runs.records import Record
from bentpipe.study import closing, figures, markdown
from bentpipe.study.figures import Line
from bentpipe.study.markdown import literal, mbit, percent, several, table
from bentpipe.study.source import Source

from .ideal import Sender, formula

PACKET = 1200  # bytes of UDP payload
HEADERS = 28  # bytes of IPv4 and UDP
DEVIATIONS = 3  # how far from the ideal sender's median chance takes one, in its standard deviations
SEEDS = 200  # of the ideal sender
SOURCES = {
    "formula": "M. Mathis, J. Semke, J. Mahdavi, T. Ott, The Macroscopic Behavior of the TCP Congestion "
    "Avoidance Algorithm, ACM Computer Communication Review 27(3), 1997",
    "ideal sender": "J. Iyengar, I. Swett, QUIC Loss Detection and Congestion Control, RFC 9002, 2021, "
    "sections 6 and 7",
}
_FIGURE = "reno.svg"
_COLUMNS = f"""Medians over the trials. *chance*: how far from the ideal sender's median that of so many
trials may be, {DEVIATIONS} standard deviations. *RTT*: the server's samples."""
_FORMULA = """**The formula** is that of Mathis et al.: sqrt(3/2) / sqrt(p) packets per round trip. It stands
for losses that are evenly spaced, a window that grows by one packet in each round trip, and no start. ACKs
that wait for a second packet do not lower it: RFC 9002 counts bytes that are acknowledged, not ACKs."""
_IDEAL = """**The ideal sender** is a program of a page (`ideal.py`) that keeps RFC 9002: losses by
chance, slow start from 10 packets, a window that is halved once for all losses of a round trip, no growth
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


@dataclass(frozen=True)
class Ideal:
    """The ideal sender over a transfer: its rates, in packets per round trip, in ascending order."""

    rates: list[float]

    @classmethod
    def over(cls, loss: float, packets: int, seeds: int = SEEDS) -> Ideal:
        return cls(sorted(Sender(loss, seed).rate(packets) for seed in range(seeds)))

    @cached_property
    def median(self) -> float:
        return statistics.median(self.rates)

    def chance(self, trials: int) -> float:
        """How far the median of so many trials may be from this one's, as a share of it. The standard
        deviation of a median is sqrt(pi / 2) times that of a mean.
        """
        spread = statistics.stdev(self.rates) / self.median
        return DEVIATIONS * math.sqrt(math.pi / 2 / trials) * spread


def delivered(record: Record) -> float:
    """Packets of 1200 bytes' worth that reached the client."""
    packets, sent_bytes = record.forward_packets, record.forward_bytes
    lost, dropped = record.forward_losses, record.forward_queue_drops
    if packets is None or sent_bytes is None or lost is None or dropped is None:
        raise ValueError(f"{record.trial}: nobody counted what became of its packets")
    return (sent_bytes - HEADERS * packets) * (1 - (lost + dropped) / packets) / PACKET


def per_round_trip(record: Record, rtt_s: float) -> float:
    """Packets of 1200 bytes' worth that reached the client in each round trip of the transfer."""
    if record.goodput_bps is None:
        raise ValueError(f"{record.trial} has no goodput")
    return delivered(record) * record.goodput_bps * rtt_s / (8 * record.size_bytes)


@dataclass(frozen=True)
class StackRow:
    """A row of the page: a stack."""

    cell: Cell
    ideal: Ideal

    @property
    def stack(self) -> str:
        return self.cell.key.server_label.stack

    @cached_property
    def measured(self) -> list[Record]:
        return [one for one in self.cell.ok if one.rtt_median_ms is not None and one.goodput_bps is not None]

    @cached_property
    def rates(self) -> list[float]:
        return [per_round_trip(one, (one.rtt_median_ms or 0) / 1e3) for one in self.measured]

    @property
    def share(self) -> float:
        """The median, of the ideal sender's."""
        return statistics.median(self.rates) / self.ideal.median

    @property
    def verdict(self) -> str:
        chance = self.ideal.chance(len(self.rates))
        if abs(self.share - 1) <= chance:
            return "agrees"
        return "higher" if self.share > 1 else "lower"

    def cells(self) -> list[str]:
        goodputs = [one.goodput_bps for one in self.measured if one.goodput_bps is not None]
        rtts_ms = [one.rtt_median_ms for one in self.measured if one.rtt_median_ms is not None]
        packets = [one.forward_packets for one in self.measured if one.forward_packets is not None]
        low, *_, high = sorted(self.rates)
        numbers = [
            f"{statistics.median(self.rates):.2f}",
            f"{low:.1f} to {high:.1f}",
            percent(self.share),
            f"± {percent(self.ideal.chance(len(self.rates)))}",
            mbit(statistics.median(goodputs)),
            f"{statistics.median(rtts_ms):.0f}",
            f"{statistics.median(packets):.0f}" if packets else "-",
            str(len(self.rates)),
        ]
        return [
            literal(self.cell.key.server),
            self.verdict,
            *(marked(text, self.cell) for text in numbers),
        ]


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its figure to `folder`; the files, the page first. BentpipeError if the run is not
    of Reno over one path with uniform loss.
    """
    source = runs[0]
    mine = [cell for cell in cells(source.records) if cell.key.server_label.options.get("cc") == "newreno"]
    mine = [cell for cell in mine if any(one.rtt_median_ms and one.goodput_bps for one in cell.ok)]
    settings = {(cell.key.scenario, cell.key.workload, cell.key.client) for cell in mine}
    if len(settings) != 1:
        raise source.refused(
            "wanted is one path, one workload and one client, and servers with cc=newreno; "
            f"{several(len(settings), 'such setting')} with measured trials",
            "run reno",
        )
    (scenario, _, client), *_ = settings
    loss = _loss(source, scenario)
    records = [one for cell in mine for one in cell.ok]
    ideal = Ideal.over(loss, round(statistics.median(map(delivered, records))))
    rows = sorted((StackRow(cell, ideal) for cell in mine), key=lambda row: row.share)
    _draw(rows, ideal, loss, folder / _FIGURE)
    path = folder / "reno.md"
    path.write_text(markdown.page(_sections(source, rows, client, loss)))
    return [path, folder / _FIGURE]


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


def _draw(rows: Sequence[StackRow], ideal: Ideal, loss: float, path: Path) -> None:
    known = formula(loss)
    figures.strips(
        [("ideal sender", ideal.rates), *((row.stack, row.rates) for row in rows)],
        [Line(known, f"formula, {known:.2f}"), Line(ideal.median, f"ideal sender, {ideal.median:.2f}", "--")],
        ideal.chance(max(len(row.rates) for row in rows)),
        "1200-byte packets delivered per round trip",
        path,
    )


def _sections(source: Source, rows: Sequence[StackRow], client: str, loss: float) -> list[str]:
    head = ["server", "", "packets per round trip", "of the seeds", "of the ideal", "chance", "Mbit/s"]
    head += ["RTT, ms", "packets sent", "trials"]
    records = [one for row in rows for one in row.cell.records]
    return [
        "# Reno under random losses",
        _opening(rows, client, loss),
        f"![Packets per round trip, every seed of every stack]({_FIGURE})",
        table(head, [row.cells() for row in rows], left=2),
        _COLUMNS,
        *_yardsticks(rows[0].ideal, loss),
        *_apart(rows),
        *closing.failures(records),
        *closing.made(source, SOURCES),
    ]


def _opening(rows: Sequence[StackRow], client: str, loss: float) -> str:
    agree = [row.stack for row in rows if row.verdict == "agrees"]
    text = (
        f"Every stack with `cc=newreno` as the server, {literal(client)} as the client, over a path that "
        f"loses {100 * loss:g} % of the packets towards the client, each by its own chance, and has queues "
        f"that do not fill. Of {several(len(rows), 'stack')}, {len(agree)} agree with an ideal sender as far "
        "as chance allows"
    )
    text += f": {', '.join(agree)}." if agree else "."
    drops = [one.forward_queue_drops for row in rows for one in row.cell.ok]
    counted = [one for one in drops if one is not None]
    if sum(counted):
        text += f" Queues did drop {several(sum(counted), 'packet')}, so that losses are not by chance alone."
    if len(counted) < len(drops):
        text += f" What they dropped was counted in {len(counted)} of {several(len(drops), 'trial')}."
    return text


def _yardsticks(ideal: Ideal, loss: float) -> list[str]:
    known = formula(loss)
    return [
        "## The two yardsticks",
        f"{_FORMULA} At {100 * loss:g} % it says {known:.2f}.",
        f"{_IDEAL} Over this file it comes to {ideal.median:.2f} packets per round trip, "
        f"{percent(ideal.median / known)} of the formula; over {len(ideal.rates)} seeds it lies between "
        f"{ideal.rates[0]:.1f} and {ideal.rates[-1]:.1f}. Stacks are compared with it.",
    ]


def _apart(rows: Sequence[StackRow]) -> list[str]:
    """The section on those that do not agree."""
    lines = []
    for row in rows:
        if row.verdict == "agrees":
            continue
        trait = TRAITS.get(row.stack)
        fits = trait is not None and (trait.share > 1) == (row.share > 1)
        why = f"{trait.why}." if trait and fits else "why is not known."
        lines.append(f"- **{row.stack}**, {percent(abs(row.share - 1))} {row.verdict}: {why}")
    text = "These lie further from the ideal sender than chance allows. What was found:\n\n" + "\n".join(
        lines
    )
    return ["## Those that differ", text if lines else "None does."]
