"""The beginning of the page on proxies: what they bring QUIC and when they harm it, against the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bentpipe.study import forest
from bentpipe.study.claims import SAME_DIRECTION, Claim, MeasuredValue, Published, tally, verdict
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import several

from .claims import EARLY_S, GEO, LEO, ORBITS
from .means import times_as_much
from .runs import QUIC, KosekRuns, LossyPath

PICTURE = "kosek-claims.svg"
_CAPTION = """Bytes that QUIC received with proxies, as a multiple of those without, by 5 and by 15 s: of the
source's data, and of today's trials with their intervals."""
# What to do, where the intervals of the run show it.
_EARLY = """- Over GEO without losses split connections for whatever lasts seconds: {gain} times the bytes by
  {at_s:g} s, of pages and small files."""
_HARM = """- Where packets are lost on the satellite hop, give the proxies a congestion control that stands
  losses: with NewReno, as in the source, {gain} times the bytes by {at_s:g} s over {orbit} at {loss}."""
_LOW = """- Over LEO proxies gain where packets are lost on the satellite: {gain} times the bytes by
  {at_s:g} s at {loss}."""


def front(study: KosekRuns, chains: dict[str, str], known: Sequence[Claim], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture = None
    shown = forest.drawable(known)
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "bytes with / without proxies, QUIC", "what proxies bring QUIC")
        picture = Picture(file, "What proxies bring QUIC, published and here, with intervals", _CAPTION)
    return Front(
        _finding(study, chains[QUIC]),
        _answer(study, chains[QUIC], known),
        picture,
        _advice(study, chains[QUIC]),
    )


def gains(study: KosekRuns, name: str, chain: str, at_s: float) -> dict[LossyPath, MeasuredValue]:
    """Bytes with proxies / without by then, over each loss."""
    return {
        road: measured
        for road in study.of_scenario(name)
        if (both := study.pair(road, chain)) is not None
        and (measured := MeasuredValue.of(times_as_much(*both, at_s))) is not None
    }


def _advice(study: KosekRuns, chain: str) -> str:
    """The lines that this run's intervals show: the largest gain or harm of each."""
    early_s = min(EARLY_S, study.until_s)
    lines = []
    for text, names, at_s, is_lossy, above in (
        (_EARLY, (GEO,), early_s, False, True),
        (_HARM, (GEO, LEO), study.until_s, True, False),
        (_LOW, (LEO,), early_s, True, True),
    ):
        found = [
            (one.value, one, road)
            for name in names
            for road, one in gains(study, name, chain, at_s).items()
            if (road.share > 0) == is_lossy and verdict(one, Published.side(above=above)) == SAME_DIRECTION
        ]
        if found:
            _, one, road = (max if above else min)(found, key=lambda each: each[0])
            words = {"orbit": ORBITS[road.scenario], "loss": f"{road.loss} of loss"}
            lines.append(text.format(gain=one.written(1), at_s=at_s, **words))
    return "\n".join(lines)


def _scenario(study: KosekRuns) -> str:
    return GEO if GEO in study.scenarios else study.scenarios[0]


def _finding(study: KosekRuns, chain: str) -> str:
    name, early_s = _scenario(study), min(EARLY_S, study.until_s)
    early, late = (gains(study, name, chain, at_s) for at_s in (early_s, study.until_s))
    orbit = ORBITS.get(name, name)
    if not early or not late:
        return f"QUIC with proxies around a satellite hop, over {orbit}"
    first = min(early, key=lambda road: road.share)
    worst = min(late, key=lambda road: late[road].value)
    begin = f"Over {orbit} proxies bring QUIC {{}} times the bytes by {early_s:g} s at {first.loss} loss"
    end = f", {{}} by {study.until_s:g} s at {worst.loss}"
    gain, least = ((one.written(1), f"{one.value:.1f}") for one in (early[first], late[worst]))
    if late[worst].value >= early[first].value:
        return fitting(*map(begin.format, gain))
    return fitting(*(begin.format(one) + end.format(other) for one in gain for other in least))


def _answer(study: KosekRuns, chain: str, known: Sequence[Claim]) -> list[str]:
    name, early_s = _scenario(study), min(EARLY_S, study.until_s)
    sentences: list[str] = []
    for at_s in dict.fromkeys((early_s, study.until_s)):
        listed = ", ".join(
            f"{measured.written()} at {road.loss}"
            for road, measured in gains(study, name, chain, at_s).items()
        )
        if listed:
            begin = "By {} s it has" if sentences else "QUIC over {orbit} with proxies has by {} s"
            begin = begin.format(f"{at_s:g}", orbit=ORBITS.get(name, name))
            sentences.append(f"{begin} these multiples of the bytes without them: {listed}.")
    verdicts = tally(one.verdict for one in known)
    sentences.append(f"Of {several(len(known), 'claim')} of the paper, by its data, {verdicts}.")
    return sentences
