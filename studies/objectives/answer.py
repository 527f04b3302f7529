"""The beginning of the page on objectives: which pairs meet how many, in downloads and in uploads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.objectives.suite import Objective, Suite
from bentpipe.study import dots
from bentpipe.study.dots import DotPanel, DotRow
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, literal, percent, several
from bentpipe.study.own_sender import BESIDE, OURS

from .verdicts import CLIENT, AskedFor, ObjectivesMet, Pair, PairVerdicts

PICTURE = "objectives.svg"
_TIGHT = 0.95  # of the time that is asked for: a bound above it leaves a sender next to nothing
_LISTED = 3  # objectives that a sentence lists; of more it has the number
_CAPTION = """Objectives that each server meets with the client {client}, or with its own options at both
ends, in percent: the dot counts those surely met, the line goes on to those that are undecided."""

Bound = Callable[[Objective], float | None]


@dataclass(frozen=True)
class _Downloads:
    """How the servers compare in downloads to the usual client, those that meet most first."""

    ranked: Sequence[tuple[Pair, ObjectivesMet]]

    @classmethod
    def of(cls, known: PairVerdicts) -> _Downloads:
        return cls([one for one in known.ranked(uploads=False) if one[0].client == CLIENT])

    @property
    def asked(self) -> int:
        return self.ranked[0][1].asked

    @property
    def leaders(self) -> list[tuple[Pair, ObjectivesMet]]:
        """Those that meet some, and not surely fewer than the first one."""
        if not self.ranked:
            return []
        first = self.ranked[0][1]
        return [one for one in self.ranked if one[1].met and not one[1].is_surely_fewer(first)]

    @property
    def others(self) -> list[tuple[Pair, ObjectivesMet]]:
        return [one for one in self.ranked if one not in self.leaders]

    @property
    def shown(self) -> list[tuple[Pair, ObjectivesMet]]:
        """Those that a sentence names: all that meet some, if they are few, and the leaders else."""
        some = [one for one in self.ranked if one[1].met]
        return some if len(some) <= _LISTED else self.leaders

    @property
    def rest(self) -> list[tuple[Pair, ObjectivesMet]]:
        """Those that it does not name."""
        return [one for one in self.ranked if one not in self.shown]

    @property
    def rest_met(self) -> str:
        """`none`, `at most 2`: what each of the rest meets; empty without any."""
        most = max((met.most for _, met in self.rest), default=None)
        return "" if most is None else f"at most {most}" if most else "none"

    @property
    def are_others_fewer(self) -> bool:
        """Whether each of the others surely meets fewer than the first one."""
        return bool(self.leaders) and all(met.is_surely_fewer(self.ranked[0][1]) for _, met in self.others)


def front(known: PairVerdicts, bound: Bound, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    panels = []
    for uploads, what in ((False, "downloads"), (True, "uploads")):
        ranked = known.ranked(uploads=uploads)
        if ranked:
            rows = [DotRow(pair.title, {"met": met.share}) for pair, met in ranked]
            panels.append(DotPanel(f"{what}: {several(ranked[0][1].asked, 'objective')}", rows))
    file = folder / PICTURE
    dots.draw(panels, file, "percent of the objectives", "objectives that are met", limits=(-3, 103))
    caption = _CAPTION.format(client=CLIENT)
    picture = Picture(file, "Objectives that each server meets, and how many are undecided", caption)
    return Front(_finding(known), _answer(known), picture, _advice(known, bound))


def _finding(known: PairVerdicts) -> str:
    """The title: the servers that meet most in downloads, and what the others meet."""
    found = _Downloads.of(known)
    if not found.ranked:
        return f"Objectives for GEO: no download to the client {CLIENT} was run"
    asked = several(found.asked, "GEO download objective")
    if not found.leaders:
        return f"No server is shown to meet any of {asked}"
    (first, met), *more = found.shown
    begin = f"{literal(first.title)} meets {met.span} of {asked}"
    each = [begin, *(f"{literal(one.title)} {its.span}" for one, its in more)]
    rest = f", {several(len(found.rest), 'other')} {found.rest_met}" if found.rest else ""
    least, most = met.met, max(its.most for _, its in found.leaders)
    span = f"up to {most}" if most > least else f"{least}"
    verb = "meet" if len(found.leaders) > 1 else "meets"
    who = f"{len(found.leaders)} of {several(len(found.ranked), 'server')}"
    return fitting(", ".join(each) + rest, ", ".join(each), f"{who} {verb} {span} of {asked}")


def _answer(known: PairVerdicts) -> list[str]:
    sentences = []
    found = _Downloads.of(known)
    if found.leaders:
        each = [f"{literal(pair.title)} meets {_counted(met)}" for pair, met in found.shown]
        if found.rest:
            each.append(f"{_each_of(found.rest)} {found.rest_met}")
        sentences.append(
            f"In downloads to the client {CLIENT}, of {several(found.asked, 'objective')}, {listed(each)}."
        )
    elif found.ranked:
        most = max(met.most for _, met in found.ranked)
        undecided = f"; at most {most} of one server are undecided" if most else ""
        sentences.append(
            f"In downloads to the client {CLIENT} no server is shown to meet an objective of {found.asked}"
            f"{undecided}."
        )
    return [*sentences, *_uploads(known), _unmet(known)]


def _each_of(others: Sequence[tuple[Pair, ObjectivesMet]]) -> str:
    return "the other server" if len(others) == 1 else f"each of the other {len(others)} servers"


def _counted(met: ObjectivesMet) -> str:
    """`16, with 5 undecided`."""
    return f"{met.met}, with {met.undecided} undecided" if met.undecided else f"{met.met}"


def _named(pair: Pair) -> str:
    """A pair in a sentence."""
    if pair.client == CLIENT:
        return literal(pair.server)
    ends = "at both ends" if pair.client == pair.server else f"with the client {literal(pair.client)}"
    return f"{literal(pair.server)} {ends}"


def _uploads(known: PairVerdicts) -> list[str]:
    """The sentence on uploads, whose sender is the client; none without them."""
    ranked = known.ranked(uploads=True)
    if not ranked:
        return []
    texts = [f"{_named(pair)} meets {_counted(met)}" for pair, met in ranked if pair.client != CLIENT]
    usual = [met for pair, met in ranked if pair.client == CLIENT]
    if usual:
        least, most = min(met.met for met in usual), max(met.most for met in usual)
        span = f"{least} to {most}" if most > least else f"{least}"
        texts.append(f"the client {CLIENT} meets {span} with any server")
    asked = several(ranked[0][1].asked, "objective")
    return [f"In uploads, which the client sends, of {asked}, {listed(texts)}."]


def _unmet(known: PairVerdicts) -> str:
    none = _nobody(known)
    total = several(len(known.asked), "objective")
    if not none:
        return f"Each of the {total} is met by a pair."
    if len(none) > _LISTED:
        return f"Of {total}, no pair is shown to meet {len(none)}."
    return f"No pair is shown to meet {listed(f'{in_words(*one)} ({_open(known, one)})' for one in none)}."


def _nobody(known: PairVerdicts) -> list[AskedFor]:
    """The objectives that no pair surely meets."""
    return [one for one in known.asked if not known.meeting(*one)]


def _open(known: PairVerdicts, asked: AskedFor) -> str:
    """How many pairs miss an objective that none meets, and of how many it is undecided."""
    ran = sum(known.of(pair, *asked) is not None for pair in known.pairs)
    missed = len(known.missing(*asked))
    undecided = f", {ran - missed} undecided" if missed < ran else ""
    return f"{missed} of {several(ran, 'pair')} miss it{undecided}"


def in_words(asked: Suite, objective: Objective) -> str:
    """An objective in a sentence: `quic-4-sat, small down: first 2 MB`."""
    return f"{asked.name}, {setting(objective)}: {objective.measure.title}"


def setting(objective: Objective) -> str:
    """The name that the suite gives the setting: what the objective's name begins with."""
    size = objective.measure.title.removeprefix("first ")
    return literal(objective.name.removesuffix(size).strip())


def _advice(known: PairVerdicts, bound: Bound) -> str:
    """The lines that the verdicts of this run show."""
    return "\n".join([*_servers(known), *_clients(known), *_tight(known, bound)])


def _servers(known: PairVerdicts) -> list[str]:
    """Which server to take for downloads, if the others surely meet fewer."""
    found = _Downloads.of(known)
    if not found.others or not found.are_others_fewer:
        return []
    *first, last = (literal(pair.title) for pair, _ in found.leaders)
    names = f"{', '.join(first)} or {last}" if first else last
    than = "" if not first else f" than {first[0]}"
    others = _each_of(found.others)
    is_ours = any(pair.server == OURS for pair, _ in found.leaders)
    return [
        f"- For downloads over GEO choose {names}: {others} surely meets fewer objectives{than}."
        f"{f' {BESIDE}' if is_ours else ''}"
    ]


def _clients(known: PairVerdicts) -> list[str]:
    """Which client to take for uploads, if with the usual one each server lets it meet surely fewer."""
    ranked = known.ranked(uploads=True)
    usual = [met for pair, met in ranked if pair.client == CLIENT]
    better = [
        _named(pair)
        for pair, met in ranked
        if pair.client != CLIENT and usual and all(one.is_surely_fewer(met) for one in usual)
    ]
    if not better:
        return []
    return [
        f"- For uploads change the client's congestion control: with {listed(better)} more objectives are "
        f"met than by the client {CLIENT} with any server."
    ]


def _tight(known: PairVerdicts, bound: Bound) -> list[str]:
    """Which times not to ask for: those that leave a sender next to nothing, that some pair surely misses and
    nobody surely meets.
    """
    lines = []
    for one in _nobody(known):
        least = bound(one[1])
        if known.missing(*one) and least is not None and least > _TIGHT * one[1].bound:
            lines.append(
                f"- Allow more than {one[1].bound:g} s for {in_words(*one)}: without 0-RTT the round trips "
                f"and the link's rate alone take {percent(least / one[1].bound)} of it."
            )
    return lines
