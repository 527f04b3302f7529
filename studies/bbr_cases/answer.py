"""The beginning of the page on BBR's own cases: who passes how many, and which cases most BBRs fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.study import dots
from bentpipe.study.claims import MeasuredValue
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, several

from . import jitter
from .cases import CASES, Case
from .evidence import BESIDE, Evidence
from .judgement import over_seeds

PICTURE = "bbr-cases.svg"
_BUCKET = 17  # the case of a token bucket, as operators have it
_CAPTION = """Cases that each sender passes, in percent of {cases}: the dot counts those that most seeds pass,
the line goes from those that every seed passes to all that not every seed fails."""
HOW = """A range, such as 14 to 16, begins with the cases that every seed passes. It ends with all but those
that every seed fails: what cannot be told may be either, and so may a case in which seeds disagree. A case
of which there is one seed counts as that seed has it: how far others differ is not known. A BBR *surely*
passes more cases than another if its range begins after the other's ends."""


@dataclass(frozen=True)
class CasesPassed:
    """How many cases a sender passes: by most seeds, surely, and at most."""

    passed: int
    least: int
    most: int

    @property
    def span(self) -> str:
        """`14 to 16`; `14` if all is sure."""
        return f"{self.least} to {self.most}" if self.most > self.least else f"{self.least}"

    @property
    def share(self) -> MeasuredValue:
        """The same in percent of all cases."""
        return MeasuredValue(*(100 * one / len(CASES) for one in (self.passed, self.least, self.most)))


@dataclass(frozen=True)
class Ranking:
    """The senders by the cases that they pass."""

    evidence: Evidence

    @cached_property
    def passed(self) -> dict[str, CasesPassed]:
        """By sender, those that pass most first."""
        found = {one: self._passed(one) for one in self.evidence.servers}
        return dict(sorted(found.items(), key=lambda one: (-one[1].passed, -one[1].least, -one[1].most)))

    @cached_property
    def bbrs(self) -> dict[str, CasesPassed]:
        """Those that are a BBR."""
        return {name: one for name, one in self.passed.items() if name not in BESIDE}

    @property
    def first(self) -> list[str]:
        """The BBRs that pass most cases, by most seeds."""
        most = max(one.passed for one in self.bbrs.values())
        return [name for name, one in self.bbrs.items() if one.passed == most]

    @property
    def rivals(self) -> list[str]:
        """The other BBRs that may pass as many as the first one."""
        least = self.bbrs[self.first[0]].least
        return [name for name, one in self.bbrs.items() if name not in self.first and one.most >= least]

    def outcomes(self, case: Case, server: str) -> set[str]:
        """The outcomes of a case over its seeds."""
        return {one.outcome for one in self.evidence.judgements[case.number, server]}

    def judged(self, case: Case, server: str) -> str:
        """The outcome of most seeds."""
        return over_seeds(self.evidence.judgements[case.number, server]).outcome

    def with_outcome(self, case: Case, outcome: str) -> list[str]:
        """The BBRs of which every seed of a case has this outcome."""
        return [one for one in self.bbrs if self.outcomes(case, one) == {outcome}]

    def between(self, first: str, second: str) -> tuple[int, int, int]:
        """Of two senders: in how many cases both are judged, and how many of these each passes."""
        both = [(self.judged(one, first), self.judged(one, second)) for one in CASES]
        known = [pair for pair in both if "?" not in pair]
        return len(known), sum(a == "pass" for a, _ in known), sum(b == "pass" for _, b in known)

    def _passed(self, server: str) -> CasesPassed:
        each = [self.outcomes(case, server) for case in CASES]
        return CasesPassed(
            sum(self.judged(case, server) == "pass" for case in CASES),
            sum(one == {"pass"} for one in each),
            sum(one != {"fail"} for one in each),
        )


def front(ranking: Ranking, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    groups = (
        ("BBR", ranking.bbrs),
        ("no BBR, for comparison", {k: v for k, v in ranking.passed.items() if k in BESIDE}),
    )
    panels = [
        DotPanel(title, [DotRow(name, {"passed": one.share}) for name, one in mine.items()])
        for title, mine in groups
        if mine
    ]
    cases = several(len(CASES), "case")
    file = folder / PICTURE
    dots.draw(panels, file, f"percent of {cases}", "cases that senders pass", limits=(-3, 103))
    picture = Picture(file, "Cases that each sender passes, with ranges", _CAPTION.format(cases=cases))
    return Front(_finding(ranking), _answer(ranking), picture, _advice(ranking))


def _finding(ranking: Ranking) -> str:
    """The title: who passes most, and what the others pass at most."""
    bbrs, first = ranking.bbrs, ranking.first
    others = [one for one in bbrs if one not in first]
    of = f"of {several(len(CASES), 'case')} of BBR's draft"
    span = CasesPassed(0, min(bbrs[one].least for one in first), max(bbrs[one].most for one in first)).span
    verb = "passes" if len(first) == 1 else "pass"
    begin = f"{listed(map(literal, first))} {verb} {span} {of}"
    short = f"{len(first)} of {several(len(bbrs), 'BBR')} {verb} {span} {of}"
    if not others:
        return fitting(begin, short)
    second, *further = others
    candidates = [f"{begin}, {several(len(others), 'other BBR')} {_most(bbrs, others)}", begin]
    if further:
        named = f"{begin}, {literal(second)} {bbrs[second].span}"
        rest = f"{several(len(further), 'other')} {_most(bbrs, further)}"
        candidates.insert(0, f"{named}, {rest}")
    return fitting(*candidates, short)


def _most(bbrs: dict[str, CasesPassed], some: Sequence[str]) -> str:
    """What none of some BBRs passes more than: `at most 14`, `none`."""
    most = max(bbrs[one].most for one in some)
    return f"at most {most}" if most else "none"


def _answer(ranking: Ranking) -> list[str]:
    bbrs, first = ranking.bbrs, ranking.first
    others = [bbrs[one] for one in bbrs if one not in first]
    verb = "passes" if len(first) == 1 else "pass"
    texts = [f"{listed(f'{literal(one)} {verb} {_counted(bbrs[one])}' for one in first)}"]
    if others:
        passed = sorted(one.passed for one in others)
        span = f"{passed[0]} to {passed[-1]}" if passed[0] < passed[-1] else f"{passed[0]}"
        pass_ = "passes" if len(others) == 1 else "pass"
        texts.append(f"{several(len(others), 'other BBR')} {pass_} {span}")
    begin = f"Of {several(len(CASES), 'case')} that show on the wire, {listed(texts)}."
    return [begin, *_lead(ranking), *_by_case(ranking)]


def _counted(one: CasesPassed) -> str:
    """`16 (14 to 16)`; only the number if all is sure."""
    return f"{one.passed} ({one.span})" if one.most > one.least else f"{one.passed}"


def _lead(ranking: Ranking) -> list[str]:
    """The sentence on whether the first one surely passes more than the others; none where several are first,
    or there are no others.
    """
    first, *tied = ranking.first
    if tied or len(ranking.bbrs) == 1:
        return []
    if not ranking.rivals:
        return ["It surely passes more than each of the others."]
    rivals = ranking.rivals
    judged, mine, theirs = ranking.between(first, rivals[0])
    return [
        f"Whether it passes more than {listed(map(literal, rivals))} cannot be told: of "
        f"{several(judged, 'case')} in which both are judged it passes {mine} and {literal(rivals[0])} "
        f"{theirs}."
    ]


def _by_case(ranking: Ranking) -> list[str]:
    """The sentence on cases that every BBR passes, and on that which most fail, by every seed."""
    count = len(ranking.bbrs)
    everybody = [one for one in CASES if len(ranking.with_outcome(one, "pass")) == count]
    failed = {one.number: len(ranking.with_outcome(one, "fail")) for one in CASES}
    most = max(failed.values())
    hardest = [one for one in CASES if failed[one.number] == most]
    texts = []
    if everybody:
        texts.append(f"every BBR passes {named(everybody)} with every seed")
    if most:
        verb = "fails" if most == 1 else "fail"
        texts.append(f"{most} of {several(count, 'BBR')} {verb} {named(hardest)} with every seed")
    text = "; ".join(texts)
    return [f"{text[0].upper()}{text[1:]}."] if text else []


def named(cases: Sequence[Case]) -> str:
    """Cases in a sentence: `A.15 (Ten times the rate)`."""
    return listed(f"{one.name} ({one.title})" for one in cases)


def _advice(ranking: Ranking) -> str:
    """The lines that this run shows."""
    return "\n".join([*_tests(ranking), *_bucket(ranking), *_goodput(ranking)])


def _tests(ranking: Ranking) -> list[str]:
    """Which cases an implementation should be tested with: those that more than half fail by every seed."""
    count = len(ranking.bbrs)
    hard = [one for one in CASES if 2 * len(ranking.with_outcome(one, "fail")) > count]
    if count < 2 or not hard:
        return []
    return [f"- Whoever implements BBR: test first what more than half of {count} BBRs fail, {named(hard)}."]


def _bucket(ranking: Ranking) -> list[str]:
    """Which BBR to take behind a token bucket, if some pass by every seed and others fail so."""
    case = next(one for one in CASES if one.number == _BUCKET)
    good, bad = (ranking.with_outcome(case, one) for one in ("pass", "fail"))
    if not good or not bad:
        return []
    verbs = "loses more than 2 %, or uses" if len(bad) == 1 else "lose more than 2 %, or use"
    return [
        f"- Behind a token bucket ({case.name}) choose {listed(map(literal, good))}: with every seed "
        f"{several(len(bad), 'other BBR')} {verbs} less than 70 % of the rate."
    ]


def _goodput(ranking: Ranking) -> list[str]:
    """Whether to take noq's CUBIC in place of its BBR3, by the interval of the ratio of their goodputs."""
    runs = jitter.JitterRuns.of(ranking.evidence.sources)
    ratio = runs.ratio(jitter.BBR3, jitter.CUBIC, "forward.delay", runs.plain)
    if not jitter.is_less(ratio):
        return []
    return [
        f"- For goodput over {jitter.RATE_BPS / 1e6:g} Mbit/s and an RTT of {jitter.rtt_ms(runs.plain):g} ms "
        f"without losses choose noq's CUBIC: its BBR3 has {jitter.share(ratio)} of CUBIC's."
    ]
