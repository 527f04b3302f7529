"""The beginning of the main page: what the matrix found, against what was published."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import claims, forest
from bentpipe.study.claims import AGREES, CANNOT_TELL, SAME_DIRECTION, Claim, MeasuredValue, Published
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, several

from . import causes, common, intervals, runner_queue, short_queue
from . import claims as of_thesis
from .runs import SAT, SATLOSS, ThesisRuns

PICTURE = "thesis-claims.svg"
_CAPTION = """Ratios that were published, and those of today's trials with their intervals; of goodput now /
2021 the published ratio is 1. *Servers of then* have what is known of them put back: BBR, a probe timeout."""
# What to do, where the intervals of the run show it.
_QUEUE = """- Compare results of 2021 with `sat-2021` and `satloss-2021`, whose queues are those of the
  source's simulator: with 25 packets goodput is {ratio} of theirs over {scenario}."""
_CONTROLLER = """- Over {scenario} try another congestion control before another stack: BBR has {gain} times
  the goodput of CUBIC of [the same stacks](#congestion-control)."""


def then_and_now(runs: ThesisRuns) -> list[Claim]:
    """That pairs of 2021 are as fast as they were: all the same pairs, and servers as they were."""
    found = []
    for text, known in (
        ("the same pairs", common.ratios_to_2021(runs)),
        ("servers of then", runner_queue.put_back(runs)),
    ):
        for scenario, ratios in known.items():
            if not ratios:
                continue
            ratio = intervals.over_pairs(ratios)
            measured = MeasuredValue(statistics.geometric_mean(ratios.values()), None, None)
            if ratio is not None:
                measured = MeasuredValue.of(ratio)
            label = f"{of_thesis.name(scenario)}, now / 2021, {text}"
            here = f"{measured.written()} of {several(len(ratios), 'pair')}{intervals.scope(ratios)}"
            words = f"Pairs are as fast as in 2021 ({of_thesis.name(scenario)}, {text})"
            found.append(Claim(words, "1", Published.number(1.0), measured, here, label))
    return found


def front(runs: ThesisRuns, known: Sequence[Claim], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    shown = forest.drawable(known)
    picture = None
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "ratio", "ratios of the thesis, and of today's trials")
        picture = Picture(file, "Published ratios beside those of today's trials, with intervals", _CAPTION)
    return Front(_finding(runs), _answer(runs, known), picture, _advice(runs))


def _advice(runs: ThesisRuns) -> str:
    """The lines that this run's intervals show: of a ratio that they hold apart from 1."""
    lines = []
    for text, word, above, ratios in (
        (_QUEUE, "ratio", False, short_queue.ratios(runs)),
        (_CONTROLLER, "gain", True, causes.gains(runs)),
    ):
        known = {name: MeasuredValue.of(one) for name, one in ratios.items()}
        shown = [name for name, one in known.items() if claims.verdict(one, Published.side(above=above)) ==
                 SAME_DIRECTION]  # fmt: skip
        if shown:
            first = (max if above else min)(shown, key=lambda name: known[name].value)
            lines.append(text.format(scenario=of_thesis.name(first), **{word: known[first].written()}))
    return "\n".join(lines)


def _finding(runs: ThesisRuns) -> str:
    """The title: the best pair, over a link without losses and with."""
    parts = []
    for scenario, words in ((SAT, "of a GEO link"), (SATLOSS, "where 1 % is lost")):
        found = of_thesis.highest(runs, scenario)
        if found is not None:
            parts.append(f"{found[1].written(0, ' %')} {words}")
    if not parts:
        return "Each stack with each, over the links of a thesis"
    pairs = max(len(runs.matrices[one].cells) for one in (SAT, SATLOSS) if one in runs.matrices)
    begin = f"The best of {several(pairs, 'pair')} uses"
    return fitting(f"{begin} {', and '.join(parts)}", f"{begin} {parts[0]}")


def _answer(runs: ThesisRuns, known: Sequence[Claim]) -> list[str]:
    then = {one.label: one for one in then_and_now(runs)}
    said = []
    for scenario in (SAT, SATLOSS):
        name = of_thesis.name(scenario)
        for text in ("servers of then", "the same pairs"):
            one = then.get(f"{name}, now / 2021, {text}")
            if one is not None and one.measured is not None:
                said.append(f"{one.measured.written()} over {name} ({_word(one)})")
                break
    sentences = []
    if said:
        what = "With what is known of their servers put back, p" if runner_queue.put_back(runs) else "P"
        sentences.append(
            f"{what}airs of 2021 reach these multiples of their goodput of then: {listed(said)}."
        )
    losses = next((one for one in known if one.label == "efficiency, SATLOSS / SAT"), None)
    if losses is not None:
        sentences.append(
            f"With 1 % of loss the mean pair keeps {losses.here} of its efficiency, in the thesis "
            f"{losses.said}: {losses.verdict}."
        )
    judged = claims.judged(known)
    sentences.append(
        f"Of {several(len(judged), 'claim')} of the thesis, {claims.tally(one.verdict for one in judged)}."
    )
    return sentences


def _word(one: Claim) -> str:
    return {AGREES: "agrees with 1", CANNOT_TELL: "too wide to tell"}.get(one.verdict, "not 1")
