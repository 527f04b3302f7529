"""The page that holds Bentpipe's queue disciplines against picoquic's own, in picoquic's simulator.

pico_sim knows a setting for L4S, which marks nothing in it, and none for RED. Programs beside it, of the same
sources, give its links the disciplines that picoquic has; in a third what differs is changed. The known
differences of the other page are taken out in all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bentpipe.analysis.cells import Cell, cells
from bentpipe.study import closing
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import percent, several, table
from bentpipe.study.source import Source

from .simulator import PicoSim, Red, SimulatedPath, TwoQueues

SIMULATIONS = 5  # of each setting
PAYLOAD_RATE_BPS = 20_000_000  # of the run's link, in UDP payload
CLOSE = 0.05  # as a share: what is nearer agrees
HALF_PACKET_US = 288  # at that rate: what is left of the packet under way, in the mean
MARK_FROM_US = 800  # DualPI2's `mark_above`, as picoquic has it
SOURCES = {
    "picoquic's queue disciplines": "C. Huitema and others, picoquic, `picoquic/dualq_aqm.c` and "
    "`picoquictest/red_aqm.c`, in the sources that the stack picoquic is built from",
}
_HOW = f"""Seconds from the client's start to the last byte: medians, with the smallest and largest, of
{SIMULATIONS} simulations. *difference* is by how much Bentpipe's median is above the one to its left.
*changed*: picoquic's simulator with one thing changed in the discipline:

- **L4S** (`dualpi2`): picoquic's queue marks by how long the packet *behind* the one that leaves has waited,
  and only if two more wait. Changed: by the packet's own wait, as RFC 9332 has it (appendix A, figure 7).
- **Other packets**, which are all of NewReno's and CUBIC's, are dropped or marked by picoquic with the
  product of two probabilities, of which that of L4S is 0 as long as nothing of L4S waits: never. Changed:
  with the square of the base probability, as RFC 9332 has it (figure 8).
- **RED**: picoquic drops evenly, when its count of probabilities exceeds 1. Changed: by chance, as Floyd and
  Jacobson have it (1993, section IV)."""
_LIMITS = """- Not witnessed: the other disciplines, which picoquic does not have; the coupling of the two
queues, as no flow of L4S shares the link with another here; RED's marks.
- RED is compared with a mean over four arrivals and a probability that grows to 1, which is what picoquic
has, and not with the paper's settings.
- pico_sim draws, so settings at the edge move: of three writings of this page two had 16 settings within 5 %
with one thing changed, one 18. NewReno behind RED is as near without the change as with it, and CUBIC and
Prague behind RED from 2 to 20 ms stay 7 to 10 % apart. In the two queues both changes are in one program.
- Not over 600 ms, where the difference with the ramp that ends at 1.2 ms, 25 against 33 s, is not explained.
It was tried: where the ramp ends at 1.2 to 3 ms, Prague's time for 10 MiB jumps with its end, between 23 and
29 s in Bentpipe and between 20 and 35 s in picoquic's simulator. With ramps up to 5, 10 and 20 ms the two
agreed within 1 %, with the one thing changed."""


@dataclass(frozen=True)
class Comparison:
    """The times of a queue and a congestion control, in seconds."""

    queue: TwoQueues | Red
    congestion: str
    ours: list[float]
    theirs: list[float]
    changed: list[float]

    @property
    def difference(self) -> float:
        """By how much Bentpipe is above picoquic's simulator, as a share."""
        return _above(self.ours, self.theirs)

    @property
    def difference_changed(self) -> float:
        """The same with the one thing changed."""
        return _above(self.ours, self.changed)


@dataclass(frozen=True)
class Simulators:
    """pico_sim's variants: a path and a seed → seconds to the last byte."""

    plain: Callable[[SimulatedPath, int], float]
    with_disciplines: Callable[[SimulatedPath, int], float]
    changed: Callable[[SimulatedPath, int], float]

    @classmethod
    def installed(cls) -> Simulators:
        """Those of the stack picoquic; BentpipeError if it is not installed."""
        plain = PicoSim.installed()
        return cls(*map(_last_data, (plain, plain.with_disciplines, plain.changed)))


def _last_data(program: PicoSim) -> Callable[[SimulatedPath, int], float]:
    return lambda path, seed: program.run(path, seed).last_data_s


@dataclass(frozen=True)
class Page:
    """The run of the page."""

    source: Source
    simulators: Simulators

    @cached_property
    def comparisons(self) -> list[Comparison]:
        return [self._compare(cell) for cell in cells(self.source.in_order)]

    @cached_property
    def of_setting(self) -> tuple[float, float]:
        """pico_sim's time for Prague with its setting for L4S and without."""
        one = next(one for one in cells(self.source.in_order) if _congestion(one) == "prague")
        path = self._path(one, TwoQueues(MARK_FROM_US + 401))
        run = self.simulators.plain
        return run(path, 1), run(replace(path, discipline=None), 1)

    def _compare(self, cell: Cell) -> Comparison:
        queue = queue_of(self.source, cell)
        path = self._path(cell, queue)
        run = self.simulators
        theirs, changed = (
            [simulate(path, seed) for seed in range(1, SIMULATIONS + 1)]
            for simulate in (run.with_disciplines, run.changed)
        )
        ours = [one.completion_s for one in cell.records if one.completion_s is not None]
        if not ours:
            raise self.source.refused(f"no trial of {cell.key.server} succeeded", "study witness")
        return Comparison(queue, _congestion(cell), ours, theirs, changed)

    def _path(self, cell: Cell, queue: TwoQueues | Red) -> SimulatedPath:
        summary = self.source.manifest.scenarios[cell.key.scenario].summary
        size = float(str(summary["forward_queue_bytes"]))
        rate = float(str(summary["forward_rate_bps"]))
        return SimulatedPath(
            congestion=_congestion(cell),
            size_bytes=cell.records[0].size_bytes,
            rate_bps=PAYLOAD_RATE_BPS,
            delay_ms=float(str(summary["rtt_ms"])) / 2,
            queue_ms=round(8e3 * size / rate),
            discipline=queue,
        )


def is_of(source: Source) -> bool:
    """Whether a run is of this page's campaign."""
    return any("aqm" in one.key.scenario_label.queue_keys for one in cells(source.in_order))


def queue_of(source: Source, cell: Cell) -> TwoQueues | Red:
    """picoquic's queue that is like that of a cell; BentpipeError if there is none."""
    keys = cell.key.scenario_label.queue_keys
    if keys.get("aqm") == "dualpi2" and "range" in keys:
        return TwoQueues(MARK_FROM_US + _micros(keys["range"]))
    if keys.get("aqm") == "red":
        threshold, most = (_micros(keys[key]) + HALF_PACKET_US for key in ("min", "max"))
        return Red(threshold, most)
    raise source.refused(f"pico_sim has no queue like {cell.key.scenario_label.queue}", "study witness")


def _micros(text: str) -> int:
    return int(text.removesuffix("us"))


def _congestion(cell: Cell) -> str:
    return cell.key.server_label.options["cc"]


def sections(page: Page) -> list[str]:
    """The page, part by part."""
    return [
        "# An independent witness: queue disciplines",
        _opening(page),
        _plain(page),
        _HOW,
        _table(page.comparisons),
        "## Limits",
        _LIMITS,
        *closing.failures(page.source.records),
        *closing.made(page.source, SOURCES),
    ]


def _opening(page: Page) -> str:
    found = page.comparisons
    close, changed = (
        sum(abs(one) <= CLOSE for one in shares)
        for shares in ([one.difference for one in found], [one.difference_changed for one in found])
    )
    widest = max((abs(one.difference_changed) for one in found), default=0.0)
    return (
        "picoquic has queue disciplines of its own: two queues for L4S and others, after RFC 9332, and RED. "
        f"In {several(len(found), 'setting')} of queue and congestion control, {close} of Bentpipe's times "
        f"are within {percent(CLOSE)} of those with picoquic's disciplines as they are, and {changed} with "
        f"one thing changed in each; then the widest difference is {percent(widest)}."
    )


def _plain(page: Page) -> str:
    with_l4s, without = page.of_setting
    return (
        "pico_sim itself shows none of that. Its setting `l4s_max` gives a link the two queues, but each of "
        "its packets carries the ECN codepoint of NewReno, the default, whatever sends it, so that none is "
        f"of L4S: with Prague, 10 MiB take {with_l4s:.2f} s with the setting and {without:.2f} s without. "
        "RED is in the tests of picoquic alone, without a setting. So two programs of the same sources stand "
        "in for it, "
        "`pico_sim_disciplines` and `pico_sim_changed` (`endpoints/picoquic/simulator.sh`), in which packets "
        "carry their sender's codepoint."
    )


def _table(found: Iterable[Comparison]) -> str:
    rows = [
        [
            _named(one.queue),
            one.congestion,
            _range(one.ours),
            _range(one.theirs),
            f"{100 * one.difference:+.1f}",
            _range(one.changed),
            f"{100 * one.difference_changed:+.1f}",
        ]
        for one in found
    ]
    head = ["queue", "congestion control", "Bentpipe, s", "picoquic's, s", "difference, %"]
    return table([*head, "changed, s", "difference, %"], rows, 2)


def _named(queue: TwoQueues | Red) -> str:
    match queue:
        case TwoQueues(mark_all_us):
            return f"L4S, marks from {MARK_FROM_US / 1000:g} to {mark_all_us / 1000:g} ms"
        case Red(threshold_us, max_us):
            return f"RED, {threshold_us / 1000:g} to {max_us / 1000:g} ms"


def _above(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(ours) / statistics.median(theirs) - 1


def _range(times: Sequence[float]) -> str:
    return with_ends(statistics.median(times), min(times), max(times))
