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
from bentpipe.analysis.cell_ratio import EQUIVALENCE, LEAST, cell_ratio
from bentpipe.analysis.cells import Cell, cells
from bentpipe.analysis.comparison import (
    MEASURES,
    ComparedCell,
    ComparedKey,
    ComparedRun,
    Comparison,
    compare,
    remarks,
)
from bentpipe.analysis.inference import CONFIDENCE, Ratio, exact_test
from bentpipe.analysis.trial_marks import marked
from bentpipe.errors import BentpipeError
from bentpipe.runs.records import Record
from bentpipe.study import closing, forest, markdown
from bentpipe.study.claims import AGREES, CANNOT_TELL, CONTRADICTS, MARGIN, EqualMeans
from bentpipe.study.front import Front, Picture, fitting, folded
from bentpipe.study.markdown import code, listed, literal, number, path, percent, several, table, trials
from bentpipe.study.quantiles import median, quantile
from bentpipe.study.source import Source

EXPLANATIONS = Path(__file__).with_name("explanations.toml")
# Of each page: what its title begins with.
_SUBJECTS = {
    "agreement": "Real time equals virtual time",
    "agreement-losses": "With losses, real time equals virtual time",
    "agreement-queues": "Behind queue disciplines, real time equals virtual time",
    "agreement-satellites": "Over carriers and low orbits, real time equals virtual time",
    "agreement-tcp": "Linux's TCP in real time equals that in virtual time",
}

_HOW = """Goodputs, completion times and shares of the limit are geometric means over all trials that
succeeded. The ratio, real / virtual, is that of the goodputs of trials whose seeds both runs have: where
virtual time has more trials, it is not that of the two means. The verdict is that of [a test of
equivalence](../../docs/reference/study-verdicts.md#equal-means), two one-sided t tests at 5 % on
logarithms, in pairs of trials with the same seed, with its interval, of 90 %: *agrees* within 5 %,
*contradicts* that, or *cannot tell*; - where a side has one trial. It contradicts, too, where the shares of
trials that succeed differ (Fisher's exact test, 5 %), and never agrees where a trial failed. *ok*: trials
that succeeded, of all."""
_CAPTION = """Goodput in real time / in virtual time, with the interval of the test of equivalence. The grey
band is within 5 %."""
_ADVICE = {  # verdict → what to do, where the runs have it
    AGREES: "- Where it agrees, virtual time stands for real time: run thousands of trials there.",
    CONTRADICTS: """- Where it contradicts, do not read one testbed's number as the other's. Of these {causes}
  of {differ} {have} a cause that an experiment showed, in the table below.""",
    CANNOT_TELL: """- Where it cannot tell, a difference of some trials is no finding in either testbed: run
  tens of trials with jitter.""",
}

_OPEN = "Open:"  # before what no experiment showed
_HOW_SHOWN = f"""A cause counts as shown where an experiment changed that one thing, and the difference came
or went. Where none did, the text begins with *{_OPEN}*."""
_FIDELITY = """How well the emulated links kept to the model. The release error is by how much a packet came
out later than the model says: medians over the trials, of each trial's percentiles, and the largest of all.
*CPU pressure*: the share of the time in which some task waited for a processor, the median. *Invalid* trials
did not keep to the model however often they were repeated, and count nowhere."""


class Explanation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a stack is slower or faster in real time."""

    stack: str
    scenarios: tuple[str, ...]
    real_time_is: Literal["slower", "faster", "either"]
    shown: bool  # whether an experiment in which one thing was changed shows it
    reason: str

    @property
    def text(self) -> str:
        """The reason as the page has it: with a mark if no experiment showed it."""
        return self.reason if self.shown else f"{_OPEN} {self.reason}"

    def is_over(self, scenario: str) -> bool:
        """Whether it is of this path."""
        return bool({scenario, labels.scenario(scenario).name} & {*self.scenarios})

    def fits(self, cell: ComparedCell, ratio: Ratio | None) -> bool:
        """Whether it is of this cell, whose goodputs in real and in virtual time have this ratio."""
        here = self.stack in _names(cell) and self.is_over(cell.key.scenario)
        return here and self.real_time_is in ("either", _direction(cell, ratio))


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

    @cached_property
    def compared(self) -> dict[ComparedKey, list[Cell]]:
        """The cells behind each comparison, that of virtual time first."""
        found: dict[ComparedKey, list[Cell]] = {}
        for one in [*cells(self.virtual.records), *cells(self.real.records)]:
            key = one.key
            place = ComparedKey(key.scenario, key.workload, key.treatment, key.client, key.server)
            found.setdefault(place, []).append(one)
        return found

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

    @cached_property
    def equal(self) -> dict[ComparedKey, EqualMeans]:
        """Each cell as the claim that it is equal in both."""
        return {
            cell.key: EqualMeans(_label(self, cell), self._ratio(cell.key)) for cell in self.goodput.cells
        }

    def _ratio(self, key: ComparedKey) -> Ratio | None:
        """Of the trials whose seeds both have, where one side has fewer: real time takes long."""
        both = [self.goodput.a.cells[key], self.goodput.b.cells[key]]
        seeds = [{record.seed for record in cell.records} for cell in both]
        common = seeds[0] & seeds[1]
        if len(common) >= LEAST and common in seeds:
            both = [Cell.of(one.key, [it for it in one.records if it.seed in common]) for one in both]
        return cell_ratio(both[0], both[1], self.goodput.measure.of, EQUIVALENCE)

    def verdict(self, cell: ComparedCell) -> str:
        """That claim's. A cell that succeeds on one side alone, or whose shares of success differ by Fisher's
        exact test, is contradicted; none agrees of which a trial failed.
        """
        a, b = cell.a, cell.b
        differ = exact_test((a.ok, a.trials), (b.ok, b.trials)) < 1 - CONFIDENCE
        if differ or bool(a.ok) != bool(b.ok):
            return CONTRADICTS
        found = self.equal[cell.key].verdict
        return CANNOT_TELL if found == AGREES and _failed(cell) else found

    def why(self, cell: ComparedCell) -> list[Explanation]:
        """The explanations of a cell's difference."""
        return [one for one in self.explanations if one.fits(cell, self.equal[cell.key].ratio)]

    @property
    def apart(self) -> list[ComparedCell]:
        """Cells over paths without random loss that differ by more than 5 %, or succeed on one side alone."""
        return [
            cell
            for cell in self.goodput.cells
            if self.is_lossless(cell.key.scenario)
            and (self.verdict(cell) == CONTRADICTS or _far(self.equal[cell.key].ratio))
        ]


def _failed(cell: ComparedCell) -> bool:
    """Whether a trial of either side failed."""
    return cell.a.ok + cell.b.ok < cell.a.trials + cell.b.trials


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the runs of QUIC, that of those of TCP, that of those over paths with
    losses alone, and that of those with queue disciplines, as far as they are there. BentpipeError unless
    those of a page are of virtual and of real time, and share cells.
    """
    pages = {
        name: Page(*_both(mine), explanations())
        for name in _SUBJECTS
        if (mine := [one for one in runs if _page_of(one) == name])
    }
    files = []
    for name, page in pages.items():
        front = _front(page, name, folder)
        files += [folder / f"{name}.md", *([] if front.picture is None else [front.picture.file])]
        (folder / f"{name}.md").write_text(markdown.page([*front.parts(), *_sections(page)]))
    return files


def _front(page: Page, name: str, folder: Path) -> Front:
    """The front of a page; it draws its picture into `folder`."""
    shown = forest.drawable([page.equal[cell.key] for cell in _by_scenario(page)])
    picture = None
    if shown:
        file = folder / f"{name}.svg"
        unit, title = "goodput, real time / virtual time", "real time against virtual time"
        forest.draw(shown, file, unit, title, margin=MARGIN)
        picture = Picture(file, "Goodput in real time / in virtual time, of each pair", _CAPTION)
    verdicts = [page.verdict(cell) for cell in page.goodput.cells]
    agree, untold = verdicts.count(AGREES), verdicts.count(CANNOT_TELL)
    begin = f"{_SUBJECTS[name]} within 5 % in {agree} of {several(len(verdicts), 'comparison')}"
    return Front(fitting(f"{begin}; {untold} cannot be told", begin), _answer(page), picture, _advice(page))


def _advice(page: Page) -> str:
    """A line for each verdict that the comparisons have."""
    known = {page.verdict(cell) for cell in page.goodput.cells}
    differ = [cell for cell in page.apart if page.verdict(cell) == CONTRADICTS]
    shown = [cell for cell in differ if any(one.shown for one in page.why(cell))]
    words = {"causes": len(shown), "differ": len(differ), "have": "has" if len(shown) == 1 else "have"}
    lines = [text.format(**words) for verdict, text in _ADVICE.items() if verdict in known]
    if not differ:  # over paths with losses alone there is no table of causes
        lines = [one for one in lines if "table below" not in one]
    return "\n".join(lines)


def _answer(page: Page) -> list[str]:
    """Over each path how many agree; then which differ, and which cannot be told."""
    counts = []
    for scenario in page.scenarios:
        mine = page.over(scenario)
        agree = sum(page.verdict(cell) == AGREES for cell in mine)
        counts.append(f"{agree} of {several(len(mine), 'comparison')} over {_heading(page, scenario)}")
    sentences = [f"Goodput is equal within 5 % in {listed(counts)}."]
    both = {
        word: [cell for cell in _by_scenario(page) if page.verdict(cell) == word]
        for word in (CONTRADICTS, CANNOT_TELL)
    }
    if both[CONTRADICTS]:
        named = listed(_named(page, cell) for cell in both[CONTRADICTS])
        sentences.append(f"It differs by more, or one side fails more often, in {named}.")
    by_reason: dict[str, list[str]] = {}
    for cell in both[CANNOT_TELL]:
        by_reason.setdefault(_untold(page, cell), []).append(_named(page, cell))
    if by_reason:
        reasons = "; ".join(f"{reason}: {listed(names)}" for reason, names in by_reason.items())
        sentences.append(f"It cannot be told in the others, {reasons}.")
    return sentences


def _untold(page: Page, cell: ComparedCell) -> str:
    """Why a comparison has no verdict."""
    one = page.equal[cell.key].measured
    if one is None:
        return "which no trial decides"
    if one.low is None or one.high is None:
        return "of single trials"
    if _failed(cell):
        return "of which trials failed"
    is_tight = one.high <= (1 + MARGIN) * one.low
    return "whose interval lies on the margin" if is_tight else "whose trials differ too much"


def _by_scenario(page: Page) -> list[ComparedCell]:
    return [cell for scenario in page.scenarios for cell in page.over(scenario)]


def _named(page: Page, cell: ComparedCell) -> str:
    """A pair over its path, with the interval if it has one."""
    one = page.equal[cell.key].measured
    interval = "" if one is None else f" ({one.written()})"
    return f"{_short_pair(page, cell)} over {_heading(page, cell.key.scenario)}{interval}"


def _short_pair(page: Page, cell: ComparedCell) -> str:
    """A stack with itself by its name alone; any other pair in full."""
    both = (cell.key.client, cell.key.server)
    several_workloads = len({one.key.workload for one in page.goodput.cells}) > 1
    what = f", {workload.title(cell.key.workload)}" if several_workloads else ""
    return literal((both[0] if both[0] == both[1] else " → ".join(both)) + what)


def _label(page: Page, cell: ComparedCell) -> str:
    """In the picture: plain, without escapes."""
    return f"{_short_pair(page, cell)}, {_heading(page, cell.key.scenario)}".replace("\\", "")


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
        folders = ", ".join(str(one.folder) for one in mine)
        raise BentpipeError(
            f"{folders}: wanted are two runs of one campaign, in virtual and in real time",
            "give --run twice for those of QUIC, twice for those of TCP, twice for those with losses, "
            "twice for those with queue disciplines, twice for those with carriers and handovers",
        )
    virtual, real = mine
    return virtual, real


def _sections(page: Page) -> list[str]:
    parts = ["## What was run", _opening(page), _HOW]
    notes = [f"- {literal(one)}" for one in remarks(page.goodput)]
    if notes:
        parts.append("Of the two runs (A is virtual, B is real time):\n\n" + "\n".join(notes))
    if any(map(page.is_lossless, page.scenarios)):
        parts += _apart(page)
    for scenario in page.scenarios:
        shown = folded(several(len(page.over(scenario)), "comparison"), _rows(page, scenario))
        parts += [f"## {_heading(page, scenario)}", _facts(page, scenario), *shown]
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
    counts = [
        trials([side.trials for side in sides]) for sides in zip(*((c.a, c.b) for c in shown), strict=True)
    ]
    ratios = [ratio.value for cell in shown if (ratio := page.equal[cell.key].ratio) is not None]
    middle = f" The median ratio of goodputs is {statistics.median(ratios):.3f}." if ratios else ""
    text = (
        f"{several(len(stacks), 'stack')} over {several(len(page.scenarios), 'path')}, each pair in virtual "
        f"time, {counts[0]}, and as real processes behind an emulated link, {counts[1]}.{middle}"
    )
    if not any(map(page.is_lossless, page.scenarios)):
        text += " Losses are at random, so trials differ by chance."
    return text


def _apart(page: Page) -> list[str]:
    """The section on what wants an explanation."""
    heading = "## Differences beyond 5 % where nothing is lost at random"
    rows, used = [], set()
    for cell in page.apart:
        why = page.why(cell)
        used.update(why)
        reasons = " ".join(one.text for one in why) or "not explained yet"
        rows.append(
            [path(cell.key.scenario), _pair(page, cell), *_judged(page, cell), _ok(cell), literal(reasons)]
        )
    shown = {name for cell in page.goodput.cells for name in _names(cell)}
    idle = [
        one
        for one in page.explanations
        if one not in used and one.stack in shown and any(map(one.is_over, page.scenarios))
    ]
    parts = [
        heading,
        "None."
        if not rows
        else table(["path", "client → server", "ratio", "90 % interval", "verdict", "ok", "why"], rows, 7),
        *([_HOW_SHOWN] if used else []),
    ]
    if idle:
        unused = "; ".join(f"{one.stack}, {one.real_time_is}, {', '.join(one.scenarios)}" for one in idle)
        parts.append(f"Explanations on file of differences that these runs do not show: {literal(unused)}.")
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
                *map(marked, map(goodput.text, (cell.a.mean, cell.b.mean)), page.compared[cell.key]),
                *_judged(page, cell),
                " / ".join(MEASURES["completion_s"].text(side.mean) for side in (times.a, times.b)),
                " / ".join(percent(side.mean) for side in (shares.a, shares.b)),
                _ok(cell),
            ]
        )
    head = ["client → server", "virtual, Mbit/s", "real, Mbit/s", "ratio", "90 % interval", "verdict"]
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


def _direction(cell: ComparedCell, ratio: Ratio | None) -> str | None:
    if ratio is None:
        return "slower" if cell.lost else None
    return "faster" if ratio.value > 1 else "slower"


def _far(ratio: Ratio | None) -> bool:
    return ratio is not None and not 1 / (1 + MARGIN) <= ratio.value <= 1 + MARGIN


def _judged(page: Page, cell: ComparedCell) -> list[str]:
    """The ratio, its interval, and the verdict."""
    one = page.equal[cell.key].ratio
    value = "-" if one is None else f"{one.value:.3f}"
    has_interval = one is not None and one.low is not None and one.high is not None
    interval = f"{one.low:.3f} to {one.high:.3f}" if one is not None and has_interval else "-"
    return [value, interval, page.verdict(cell)]


def _ok(cell: ComparedCell) -> str:
    return " / ".join(f"{side.ok} of {side.trials}" for side in (cell.a, cell.b))
