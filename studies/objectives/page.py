"""The page on who meets the objectives of two suites: the finding, counts, the bounds, and every median."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from bentpipe.objectives.suite import Objective, Suite
from bentpipe.schema.manifest import ScenarioState
from bentpipe.schema.verdicts import ObjectiveVerdict
from bentpipe.study import closing, markdown
from bentpipe.study.front import folded
from bentpipe.study.markdown import listed, literal, number, percent, several, table, trials
from bentpipe.study.source import Source, pooled

from . import answer
from .bounds import HEADERS, PACKET, bound_s
from .verdicts import CLIENT, FEW, SUITES, AskedFor, Pair, PairVerdicts, trials_for

_HOW = """A server that is named alone serves the client {client} without options; *both ends*: the client has
the same options. In uploads the client sends: the client {client} does so with its own congestion control,
whatever the server has. Options are of congestion control; a stack without options has that with which its
library begins. The verdicts are those of [`bentpipe check`](../../docs/how-to/check-a-stack.md): the median
trial decides, and a program that crashes has failed. A range, such as 1 to 3, begins with the objectives that
are surely met; its end has those that are undecided, or were not run, too. A server *surely* meets fewer than
another if its range ends before the other's begins."""
_BOUNDS = """*Bound*: no sender is faster without 0-RTT. It is two round trips, for handshake and request, and
the time that the bytes take at the link's rate in packets of {packet} bytes with {headers} of IP, UDP and
QUIC headers; an upload takes 1.5 round trips, as it ends where the server has it. The bound leaves losses
out. *Needs* is the bound in percent of the time that is asked for: at 100 % only a perfect sender meets it,
above, none. *Met by* counts pairs. Of those that meet an objective the table names the one with the shortest
median; others may equal it."""
_MATRIX = """Medians of the seconds from the client's first packet until the first {sizes} have arrived.
**Bold**: met; plain: missed; `?`: undecided; a dash: most trials never received so much."""
_LEFT_OUT = """- The draft's seventh use case, a rate that varies, and second downloads: it gives no times.
- Stacks without virtual time: browsers, curl, kwik and lsquic. TCP: it is in [the study
  kuhn](../kuhn/kuhn.md), as are proxies.
- {slow}
- Most of noq's own variants: [the study limit](../limit/limit.md) has them.
- More trials where a verdict is undecided: `bentpipe check quic-4-sat --server STACK --most 28`."""
_SLOW = "msquic, aioquic, caddy, and quiche with CUBIC take 15 to 45 s of CPU time for some trials"


@dataclass(frozen=True)
class Page:
    """The runs of the page, and their verdicts."""

    sources: tuple[Source, ...]

    @cached_property
    def verdicts(self) -> PairVerdicts:
        return PairVerdicts(pooled(self.sources))

    def state(self, scenario: str) -> ScenarioState | None:
        known = (one.manifest.scenarios for one in self.sources)
        return next((one[scenario] for one in known if scenario in one), None)

    def bound(self, objective: Objective) -> float | None:
        path = self.state(objective.setting.label)
        return None if path is None else bound_s(objective, path)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page and its picture to `folder`. BentpipeError if the runs answer nothing of the suites."""
    page = Page(tuple(runs))
    if not page.verdicts.known:
        raise runs[0].refused(f"wanted are trials of the suites {listed(SUITES)}", "study objectives")
    front = answer.front(page.verdicts, page.bound, folder)
    file = folder / "objectives.md"
    file.write_text(markdown.page([*front.parts(), *_sections(page)]))
    return [file, folder / answer.PICTURE]


def _sections(page: Page) -> list[str]:
    parts = ["## What was run", _HOW.format(client=CLIENT), _certainty(page)]
    parts += folded("How many objectives each pair meets", _counts(page.verdicts))
    parts += ["## Times asked for, and what is possible", _BOUNDS.format(packet=PACKET, headers=HEADERS)]
    parts += folded(several(len(page.verdicts.asked), "objective"), _bounds(page))
    for one in page.verdicts.suites:
        if any(mine is one for mine, _ in page.verdicts.asked):
            parts += _medians(page, one)
    return [*parts, "## What is left out", _left_out(page), *closing.of_all(page.sources)]


def _counts(known: PairVerdicts) -> str:
    """Rows are pairs, columns groups of objectives."""
    groups = {
        "downloads": known.moving(uploads=False),
        "uploads": known.moving(uploads=True),
        **{one.name: [each for each in known.asked if each[0] is one] for one in known.suites},
        "all": known.asked,
    }
    shown = {name: some for name, some in groups.items() if some}
    rows = [
        [literal(pair.title), *(_range(known, pair, some) for some in shown.values())] for pair in known.pairs
    ]
    head = ["server", *(f"{name}, of {len(some)}" for name, some in shown.items())]
    return table(head, rows)


def _range(known: PairVerdicts, pair: Pair, some: Sequence[AskedFor]) -> str:
    if not any(known.of(pair, *one) for one in some):
        return "not run"
    return known.met(pair, some).span


def _certainty(page: Page) -> str:
    counts = {one.trials for one in page.verdicts.known.values() if one.trials}
    if not counts:
        return "No trial decides anything."
    errors = sorted({one.error for one in page.verdicts.suites} | {FEW})
    first, *more = (f"{trials_for(one)} or more {{}}in at most {percent(one)}" for one in errors)
    text = ", with ".join(
        [first.format("a verdict is wrong ") + " of cases", *(one.format("") for one in more)]
    )
    return (
        f"{trials(counts).capitalize()} of a setting decide its verdicts. With {text}, each for itself. With "
        "fewer it is undecided, as it is where so few do not all agree."
    )


def _bounds(page: Page) -> str:
    rows = []
    for one, objective in page.verdicts.asked:
        least, met = page.bound(objective), page.verdicts.meeting(one, objective)
        shortest = f"{literal(met[0][0].title)}, {number(met[0][1].median, 2, ' s')}" if met else "-"
        needs = None if least is None else least / objective.bound
        rows.append([
            answer.in_words(one, objective), shortest, f"{objective.bound:g} s",
            number(least, 2, " s"), percent(needs), str(len(met)),
        ])  # fmt: skip
    return table(["objective", "shortest median", "asked", "bound", "needs", "met by"], rows, left=2)


def _medians(page: Page, one: Suite) -> list[str]:
    """The section on a suite: rows are pairs, columns the suite's settings, each with its times."""
    groups = [list(some) for _, some in groupby(one.objectives, lambda each: each.setting)]
    sizes = [objective.measure.title.removeprefix("first ") for objective in groups[0]]
    rows = [["*asked*", *(" / ".join(f"{each.bound:g}" for each in some) for some in groups)]]
    rows.append(["*bound*", *(" / ".join(number(page.bound(each)) for each in some) for some in groups)])
    for pair in page.verdicts.pairs:
        found = [[page.verdicts.of(pair, one, each) for each in some] for some in groups]
        rows.append([literal(pair.title), *(" / ".join(map(_shown, some)) for some in found)])
    head = ["server", *(answer.setting(some[0]) for some in groups)]
    return [
        f"## Medians: {one.name}",
        f"{literal(one.title)}: {literal(one.source)}.",
        _MATRIX.format(sizes=listed(sizes)),
        *folded(several(len(page.verdicts.pairs), "pair"), table(head, rows)),
    ]


def _shown(one: ObjectiveVerdict | None) -> str:
    if one is None:
        return "not run"
    text = number(one.median)
    return {"pass": f"**{text}**", "undecided": f"{text}?"}.get(one.outcome, text)


def _left_out(page: Page) -> str:
    ran = {pair.server for pair in page.verdicts.pairs}
    slow = "they are in the table." if "msquic" in ran else "`bentpipe study objectives --all` has them."
    more = (
        "" if "quiche" in ran else " It also has further controllers of these stacks, x-net, qh3 and nginx."
    )
    return _LEFT_OUT.format(slow=f"{_SLOW}: {slow}{more}")
