"""The page on who meets the objectives of two suites: a tally, the bounds, and every median."""

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
from bentpipe.study.markdown import listed, literal, number, percent, table, trials
from bentpipe.study.source import Source, pooled

from .answers import FEW, SUITES, Answers
from .bounds import HEADERS, PACKET, bound_s

_HOW = """Each stack serves the client noq without options; *both ends*: the client has the same options.
That matters in uploads, which the client sends: all other rows have noq's CUBIC there, so that their uploads
say little of the server. Options are of congestion control; without, it is what the library begins with. The
verdicts are those of [`bentpipe check`](../../docs/how-to/check-a-stack.md): the median trial decides, and a
program that crashes has failed."""
_BOUNDS = """*Bound*: no sender is faster. It is two round trips, for handshake and request, and the time that
the bytes take at the link's rate in packets of {packet} bytes with {headers} of IP, UDP and QUIC headers; an
upload takes 1.5 round trips, as it ends where the server has it. *Needs* is the bound in percent of the time
that is asked for: at 100 % only a perfect sender meets it, above, none. Losses are not in it. *Met by* counts
rows of the first table."""
_MATRIX = """Seconds from the client's first packet until the first {sizes} are there, medians. **Bold**: met;
plain: missed; `?`: undecided; a dash: most trials never came so far."""
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
    def answers(self) -> Answers:
        return Answers(pooled(self.sources))

    def state(self, scenario: str) -> ScenarioState | None:
        known = (one.manifest.scenarios for one in self.sources)
        return next((one[scenario] for one in known if scenario in one), None)

    def bound(self, objective: Objective) -> float | None:
        path = self.state(objective.setting.label)
        return None if path is None else bound_s(objective, path)


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write the page to `folder`. BentpipeError if the runs answer nothing of the suites."""
    page = Page(tuple(runs))
    if not page.answers.verdicts:
        raise runs[0].refused(f"wanted are trials of the suites {listed(SUITES)}", "study objectives")
    file = folder / "objectives.md"
    file.write_text(markdown.page(_sections(page)))
    return [file]


def _sections(page: Page) -> list[str]:
    parts = ["# Who meets the objectives for GEO", _answer(page), _tally(page), _HOW, _certainty(page)]
    parts += ["## What is asked, and what is possible", _bounds(page)]
    for one in page.answers.suites:
        parts += [
            f"## Medians: {one.name}",
            f"{literal(one.title)}: {literal(one.source)}.",
            _matrix(page, one),
        ]
    return [*parts, "## What is left out", _left_out(page), *closing.of_all(page.sources)]


def _answer(page: Page) -> str:
    """Who meets most, who comes next, and what nobody surely meets."""
    answers = page.answers
    asked = [(one, each) for one in answers.suites for each in one.objectives]
    best, *others = answers.pairs
    text = f"Of {len(asked)} objectives are met, by {literal(best.title)}: {answers.met(best)}."
    if others:
        said = (f"{literal(one.title)} with {answers.met(one)}" for one in others[:2])
        text += f" Next are {listed(said)}."
    none = [f"{each.name} ({one.name})" for one, each in asked if not answers.meeting(one, each)]
    return f"{text} By nobody surely met: {literal('; '.join(none))}." if none else text


def _tally(page: Page) -> str:
    answers = page.answers
    head = [
        "server",
        *(f"{one.name}, of {len(one.objectives)}" for one in answers.suites),
        "met",
        "undecided",
    ]
    rows = [
        [
            literal(pair.title),
            *(str(answers.tally(pair, name)["pass"]) for name in SUITES),
            f"**{answers.met(pair)}**",
            str(answers.tally(pair, *SUITES)["undecided"] or "-"),
        ]
        for pair in answers.pairs
    ]
    return table(head, rows)


def _certainty(page: Page) -> str:
    counts = {one.trials for one in page.answers.verdicts.values() if one.trials}
    return (
        f"{trials(counts).capitalize()} of each decide it: from seven on a verdict is wrong in at most 1 % "
        f"of cases, with fewer in at most {percent(FEW)}. Seven are of paths with losses. Four are enough "
        "where trials hardly differ; four that do not agree are undecided."
    )


def _bounds(page: Page) -> str:
    rows = []
    for one in page.answers.suites:
        for objective in one.objectives:
            least, met = page.bound(objective), page.answers.meeting(one, objective)
            best = f"{literal(met[0][0].title)}, {number(met[0][1].median, 2, ' s')}" if met else "-"
            needs = None if least is None else least / objective.bound
            rows.append([
                f"{one.name}: {literal(objective.name)}", best, f"{objective.bound:g} s",
                number(least, 2, " s"), percent(needs), str(len(met)),
            ])  # fmt: skip
    head = ["objective", "fastest that meets it", "asked", "bound", "needs", "met by"]
    return f"{_BOUNDS.format(packet=PACKET, headers=HEADERS)}\n\n{table(head, rows, left=2)}"


def _matrix(page: Page, one: Suite) -> str:
    """Rows are pairs, columns the suite's settings, each with its times."""
    groups = [list(some) for _, some in groupby(one.objectives, lambda each: each.setting)]
    sizes = [objective.measure.title.removeprefix("first ") for objective in groups[0]]
    rows = [["*asked*", *(" / ".join(f"{each.bound:g}" for each in some) for some in groups)]]
    rows.append(["*bound*", *(" / ".join(number(page.bound(each)) for each in some) for some in groups)])
    for pair in page.answers.pairs:
        found = [[page.answers.of(pair, one, each) for each in some] for some in groups]
        rows.append([literal(pair.title), *(" / ".join(map(_shown, some)) for some in found)])
    head = ["server", *(_named(some) for some in groups)]
    return f"{_MATRIX.format(sizes=listed(sizes))}\n\n{table(head, rows)}"


def _named(some: Sequence[Objective]) -> str:
    """What the names of a setting's objectives begin with: the name that the suite gives it."""
    size = some[0].measure.title.removeprefix("first ")
    return literal(some[0].name.removesuffix(size).strip())


def _shown(one: ObjectiveVerdict | None) -> str:
    if one is None:
        return "not run"
    text = number(one.median)
    return {"pass": f"**{text}**", "undecided": f"{text}?"}.get(one.outcome, text)


def _left_out(page: Page) -> str:
    ran = {pair.server for pair in page.answers.pairs}
    slow = "they are in the table." if "msquic" in ran else "`bentpipe study objectives --all` has them."
    more = (
        "" if "quiche" in ran else " It also has further controllers of these stacks, x-net, qh3 and nginx."
    )
    return _LEFT_OUT.format(slow=f"{_SLOW}: {slow}{more}")
