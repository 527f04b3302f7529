"""The page on whether real time gives what virtual time does: the same campaign on both testbeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from bentpipe import labels, strict, workload
from bentpipe.analysis.cells import cells
from bentpipe.analysis.comparison import (
    MEASURES,
    ComparedCell,
    ComparedKey,
    ComparedRun,
    Comparison,
    compare,
    remarks,
)
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown
from bentpipe.study.markdown import code, literal, number, path, percent, several, table
from bentpipe.study.quantiles import median, quantile
from bentpipe.study.source import Source

EXPLANATIONS = Path(__file__).with_name("explanations.toml")
_TITLES = {
    "agreement": "Virtual time against real time",
    "agreement-losses": "Virtual time against real time, with losses",
    "agreement-queues": "Virtual time against real time: queue disciplines",
    "agreement-satellites": "Virtual time against real time: carriers and low orbits",
    "agreement-tcp": "Virtual time against real time: Linux's TCP",
}
_SHARE = 0.05  # a difference beyond it wants an explanation where nothing is lost at random

_HOW = """Goodputs, completion times and shares of the limit are geometric means over the trials that
succeeded. The ratio, real / virtual, is that of the goodputs, with the interval that contains the truth in
95 % of cases (Welch's t on logarithms); -, where a side has one trial. In bold, ratios that
differ significantly from 1, by Benjamini and Hochberg over all rows of the page: at most 5 % of these
differ by chance, on average. *ok*: trials that succeeded, of all."""

_FIDELITY = """How well the emulated links kept to the model. The release error is by how much a packet came
out later than the model says: medians over the trials, of each trial's percentiles, and the largest of all.
*CPU pressure*: the share of the time in which some task waited for a processor, the median. *Invalid* trials
did not keep to the model however often they were repeated, and count nowhere."""


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a stack is slower or faster in real time."""

    stack: str
    scenarios: tuple[str, ...]
    real_time_is: Literal["slower", "faster", "either"]
    reason: str

    def fits(self, cell: ComparedCell) -> bool:
        label = cell.key.scenario
        here = self.stack in _names(cell) and bool({label, labels.scenario(label).name} & {*self.scenarios})
        return here and self.real_time_is in ("either", _direction(cell))


def _names(cell: ComparedCell) -> set[str]:
    """Of both stacks, with their options and without."""
    both = (cell.key.client, cell.key.server)
    return {*both, *(labels.variant(one).stack for one in both)}


class Explanations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of explanations."""

    explanation: tuple[Explanation, ...] = ()


def explanations(file: Path = EXPLANATIONS) -> tuple[Explanation, ...]:
    """The explanations on file; UsageError if one is malformed."""
    return strict.read(file, Explanations).explanation


@dataclass(frozen=True)
class Page:
    """The two runs that are compared, and the explanations on file."""

    virtual: Source
    real: Source
    explanations: Sequence[Explanation]

    @cached_property
    def goodput(self) -> Comparison:
        return self._by("goodput_bps")

    @cached_property
    def others(self) -> list[dict[ComparedKey, ComparedCell]]:
        """Completion and share of the limit."""
        both = (self._by(name) for name in ("completion_s", "share_of_limit"))
        return [{cell.key: cell for cell in one.cells} for one in both]

    def _by(self, measure: str) -> Comparison:
        a, b = (ComparedRun(one.folder, one.manifest, one.in_order) for one in (self.virtual, self.real))
        return compare(a, b, MEASURES[measure])

    @cached_property
    def scenarios(self) -> list[str]:
        order = {cell.key.scenario: None for cell in cells(self.virtual.in_order)}
        here = {cell.key.scenario for cell in self.goodput.cells}
        return [one for one in order if one in here]

    def over(self, scenario: str) -> list[ComparedCell]:
        return [cell for cell in self.goodput.cells if cell.key.scenario == scenario]

    def is_lossless(self, scenario: str) -> bool:
        return _is_lossless(self.virtual, scenario)

    @property
    def apart(self) -> list[ComparedCell]:
        """Cells over paths without random loss that differ by more than 5 %, or succeed on one side alone."""
        return [
            cell
            for cell in self.goodput.cells
            if self.is_lossless(cell.key.scenario)
            and (bool(cell.a.ok) != bool(cell.b.ok) or (cell.ratio is not None and _far(cell.ratio.value)))
        ]


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the runs of QUIC, that of those of TCP, that of those over paths with
    losses alone, and that of those with queue disciplines, as far as they are there. BentpipeError unless
    those of a page are of virtual and of real time, and share cells.
    """
    pages = {
        name: Page(*_both(mine), explanations())
        for name in _TITLES
        if (mine := [one for one in runs if _page_of(one) == name])
    }
    for name, page in pages.items():
        (folder / f"{name}.md").write_text(markdown.page([f"# {_TITLES[name]}", *_sections(page)]))
    return [folder / f"{name}.md" for name in pages]


def _page_of(source: Source) -> str:
    """The page that a run belongs to."""
    if any(_is_of_satellite(source, one.scenario) for one in source.records):
        return "agreement-satellites"
    if source.records and not any(_is_lossless(source, one.scenario) for one in source.records):
        return "agreement-losses"
    if any(_has_discipline(source, one.scenario) for one in source.records):
        return "agreement-queues"
    is_tcp = bool(source.records) and all(one.transport == "tcp" for one in source.records)
    return "agreement-tcp" if is_tcp else "agreement"


def _is_lossless(source: Source, scenario: str) -> bool:
    """Whether nothing is lost at random, so that two trials differ by what the programs do."""
    summary = source.manifest.scenarios[scenario].summary
    return all(summary.get(f"{way}_loss") == "none" for way in ("forward", "return"))


def _has_discipline(source: Source, scenario: str) -> bool:
    """Whether the queue towards the client is other than drop-tail."""
    return "aqm " in str(source.manifest.scenarios[scenario].summary.get("forward_queue"))


def _is_of_satellite(source: Source, scenario: str) -> bool:
    """Whether a way over the satellite has a carrier or handovers."""
    ways = source.manifest.scenarios[scenario].scenario["satellite"].values()
    return any("standard" in (way.get("rate") or "") or "handovers" in way for way in ways)


def _both(mine: Sequence[Source]) -> tuple[Source, Source]:
    """The runs in virtual and in real time that a page is of; BentpipeError if these are not two such."""
    wanted = ("sim", "emu")
    for source, testbed in zip(mine, wanted, strict=False):
        found = sorted({one.testbed for one in source.records})
        if found != [testbed]:
            raise BentpipeError(
                f'{source.folder}: wanted is a run on the testbed "{testbed}", not on {", ".join(found)}',
                "virtual time comes first; make such a run with: "
                f"bentpipe run {source.manifest.campaign} --testbed {testbed}",
            )
    if len(mine) != len(wanted):
        listed = ", ".join(str(one.folder) for one in mine)
        raise BentpipeError(
            f"{listed}: wanted are two runs of one campaign, in virtual and in real time",
            "give --run twice for those of QUIC, twice for those of TCP, twice for those with losses, "
            "twice for those with queue disciplines, twice for those with carriers and handovers",
        )
    virtual, real = mine
    return virtual, real


def _sections(page: Page) -> list[str]:
    parts = [_opening(page), _HOW]
    notes = [f"- {literal(one)}" for one in remarks(page.goodput)]
    if notes:
        parts.append("Of the two runs (A is virtual, B is real time):\n\n" + "\n".join(notes))
    if any(map(page.is_lossless, page.scenarios)):
        parts += _apart(page)
    for scenario in page.scenarios:
        parts += [f"## {_heading(page, scenario)}", _facts(page, scenario), _rows(page, scenario)]
    parts += ["## How exact real time was", _FIDELITY, _fidelity(page)]
    for source, name in ((page.virtual, "virtual time"), (page.real, "real time")):
        heading, *said = closing.failures(source.records)
        parts += [f"{heading} in {name}", *said]
    for source, name in ((page.virtual, "virtual time"), (page.real, "real time")):
        heading, _, *said = closing.made(source, {})
        parts += [f"{heading}: {name}", code(source.manifest.command), *said]
    return [*parts, "The page:", code(page.virtual.command)]


def _opening(page: Page) -> str:
    shown = page.goodput.cells
    stacks = {labels.variant(name).stack for cell in shown for name in (cell.key.client, cell.key.server)}
    ratios = [cell.ratio.value for cell in shown if cell.ratio and page.is_lossless(cell.key.scenario)]
    within = sum(not _far(one) for one in ratios)
    text = (
        f"{several(len(stacks), 'stack')} over {several(len(page.scenarios), 'path')}, each pair in virtual "
        "time and as real processes behind an emulated link, with the same seeds."
    )
    if ratios:
        text += (
            f" Over paths that lose nothing at random, {within} of {several(len(ratios), 'pair')} are as "
            f"fast in real time as in virtual time within 5 %; the median ratio of goodputs is "
            f"{statistics.median(ratios):.3f}."
        )
    else:
        text += _with_losses([cell for cell in shown if cell.ratio])
    return text


def _with_losses(compared: Sequence[ComparedCell]) -> str:
    """A summary of these cells, all over paths that lose at random."""
    if not compared:
        return ""
    apart = sum(cell.significant for cell in compared)
    median = statistics.median(cell.ratio.value for cell in compared if cell.ratio)
    return (
        f" Losses are at random, so trials differ by chance. {apart} of {several(len(compared), 'pair')} "
        f"differ significantly; the median ratio of goodputs is {median:.3f}."
    )


def _apart(page: Page) -> list[str]:
    """The section on what wants an explanation."""
    heading = "## Differences beyond 5 % where nothing is lost at random"
    rows, used = [], set()
    for cell in page.apart:
        why = [one for one in page.explanations if one.fits(cell)]
        used.update(why)
        reasons = " ".join(one.reason for one in why) or "not explained yet"
        rows.append([path(cell.key.scenario), _pair(page, cell), _ratio(cell), _ok(cell), literal(reasons)])
    shown = {name for cell in page.goodput.cells for name in _names(cell)}
    idle = [one for one in page.explanations if one not in used and one.stack in shown]
    parts = [
        heading,
        "None." if not rows else table(["path", "client → server", "ratio", "ok", "why"], rows, 5),
    ]
    if idle:
        listed = "; ".join(f"{one.stack}, {one.real_time_is}, {', '.join(one.scenarios)}" for one in idle)
        parts.append(f"Explanations on file of differences that these runs do not show: {literal(listed)}.")
    return parts


def _rows(page: Page, scenario: str) -> str:
    completion, share = page.others
    goodput = MEASURES["goodput_bps"]
    rows = []
    for cell in page.over(scenario):
        times, shares = completion[cell.key], share[cell.key]
        rows.append(
            [
                _pair(page, cell),
                goodput.text(cell.a.mean),
                goodput.text(cell.b.mean),
                _ratio(cell),
                _interval(cell),
                " / ".join(MEASURES["completion_s"].text(side.mean) for side in (times.a, times.b)),
                " / ".join(percent(side.mean) for side in (shares.a, shares.b)),
                _ok(cell),
            ]
        )
    head = ["client → server", "virtual, Mbit/s", "real, Mbit/s", "ratio", "95 % interval"]
    return table([*head, "completion, s", "share of the limit", "ok"], rows)


def _fidelity(page: Page) -> str:
    head = ["path", "trials", "invalid", "p50, ms", "p99, ms", "p99.9, ms", "largest, ms", "kernel drops"]
    groups: dict[str, list[Record]] = {}
    for record in page.real.in_order:
        groups.setdefault(record.scenario, []).append(record)
    rows = [[path(scenario), *_kept(records)] for scenario, records in groups.items()]
    return table([*head, "CPU pressure"], rows)


def _kept(records: Sequence[Record]) -> list[str]:
    drops = [one.kernel_drops for one in records if one.kernel_drops is not None]
    return [
        str(len(records)),
        str(sum(one.outcome == "invalid" for one in records)),
        number(median(one.release_error_p50_ms for one in records), 3),
        number(median(one.release_error_p99_ms for one in records), 3),
        number(median(one.release_error_p999_ms for one in records), 3),
        number(quantile((one.release_error_max_ms for one in records), 1), 3),
        str(sum(drops)) if drops else "-",
        percent(median(one.cpu_pressure for one in records)),
    ]


def _heading(page: Page, scenario: str) -> str:
    """The path; of a page whose paths differ in the queue alone, that."""
    named = labels.scenario(scenario)
    paths = {str(labels.scenario(one).without_queue) for one in page.scenarios}
    is_by_queue = len(page.scenarios) > 1 and len(paths) == 1
    return literal(f"queue {named.queue}") if is_by_queue and named.queue else path(scenario)


def _facts(page: Page, scenario: str) -> str:
    summary = page.virtual.manifest.scenarios[scenario].summary
    return f"{literal(str(summary.get('title', scenario)))}."


def _pair(page: Page, cell: ComparedCell) -> str:
    """Client and server, with what is transferred where the page has several such."""
    protocols = f" ({', '.join(cell.b.alpn)} in real time)" if cell.mixed else ""
    has_several = len({one.key.workload for one in page.goodput.cells}) > 1
    what = f", {workload.title(cell.key.workload)}" if has_several else ""
    return literal(f"{cell.key.client} → {cell.key.server}{what}{protocols}")


def _direction(cell: ComparedCell) -> str | None:
    if cell.ratio is None:
        return "slower" if cell.lost else None
    return "faster" if cell.ratio.value > 1 else "slower"


def _far(ratio: float) -> bool:
    return not 1 / (1 + _SHARE) <= ratio <= 1 + _SHARE


def _ratio(cell: ComparedCell) -> str:
    if cell.ratio is None:
        return "-"
    text = f"{cell.ratio.value:.3f}"
    return f"**{text}**" if cell.significant else text


def _interval(cell: ComparedCell) -> str:
    one = cell.ratio
    return "-" if one is None or one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"


def _ok(cell: ComparedCell) -> str:
    return " / ".join(f"{side.ok} of {side.trials}" for side in (cell.a, cell.b))
