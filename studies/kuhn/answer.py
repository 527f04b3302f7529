"""The beginning of the page on TCP proxies: what they bring, beside QUIC without, and against the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.inference import Ratio
from bentpipe.study import forest, means
from bentpipe.study.claims import Claim, MeasuredValue, Published, tally
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import several
from bentpipe.study.means import GeometricMean

from . import losses
from .published import Kuhn, Objectives
from .runs import ACCESS, CLEAN, PLACES, SATELLITE, SIZES, KuhnRuns, Sender, Transfers, from_request_s

PICTURE = "kuhn-claims.svg"
_READ_OFF = 0.1  # how exactly objectives and gains can be read off the source's figures
_SAME = 0.05  # "hardly better"
_LEAST_S = 0.05  # seconds: what is saved of a time by less is not saved
_WORDS = {CLEAN: "no losses", ACCESS: "losses beside the satellite", SATELLITE: "losses on the satellite"}
_PLAIN = "noq"  # a stack of QUIC as its library begins
_CAPTION = """Ours / published: times of proxies D from the request on, and goodput of CUBIC with losses, with
intervals of 95 %. Where losses are on the satellite, times are far beyond the frame."""
_ADVICE = """- Give a TCP server large buffers and a large first window before buying proxies: without losses
  these bring as much as proxies that have them.
- Proxies repair losses beside the satellite, such as on Wi-Fi. Losses on the satellite they do not: there the
  congestion control of the hop decides.
- For QUIC as fast as TCP behind proxies, the *server* needs a sender with a fast start."""
HOW = """Intervals are 95 %, by Student's t, of a time on logarithms; without losses trials repeat, and both
ends are the value. Times are since the request, as the source's tool has no handshake of TLS; its objectives
are read off its figures, within 10 %."""


def claims(runs: KuhnRuns, known: Kuhn) -> list[Claim]:
    """The source's claims, with what the runs have of them."""
    return [*_times(runs, known), *_configurations(runs, known), *_goodputs(runs, known)]


def objectives(place: str, known: Kuhn) -> Objectives:
    """The objectives of a path."""
    return known.objectives["clean" if place == CLEAN else "lossy"]


def _times(runs: KuhnRuns, known: Kuhn) -> list[Claim]:
    """Proxies D set the objectives: what they reach here."""
    found = []
    for place in PLACES:
        for size in SIZES:
            wanted = objectives(place, known).of(size)
            one = runs.transfer(place, runs.configured(place).get("D"), size)
            measured = None if one is None or not one.is_whole else _mean(one.from_request_s)
            if wanted is None or one is None:
                continue
            here = f"not within {one.until_s:.0f} s" if measured is None else measured.written(2, " s")
            label = "" if place == SATELLITE else f"time of {size} MB, D, {_WORDS[place]}"
            text = f"Proxies D have {size} MB in this time ({_WORDS[place]})"
            relative: MeasuredValue | None
            if measured is None and one.at_least_s is not None:
                relative = _over(MeasuredValue(one.at_least_s, one.at_least_s, math.inf), wanted)
            else:
                relative = None if measured is None else _over(measured, wanted)
            found.append(
                Claim(text, f"{wanted:g} s", Published.number(1.0, _READ_OFF), relative, here, label)
            )
    return found


def _mean(values: Sequence[float]) -> MeasuredValue | None:
    found = GeometricMean.of(values)
    return None if found is None else MeasuredValue(found.value, found.low, found.high)


def _over(one: MeasuredValue, then: float) -> MeasuredValue:
    """A value as a multiple of what was published."""
    low, high = (None if end is None else end / then for end in (one.low, one.high))
    return MeasuredValue(one.value / then, low, high)


def _configurations(runs: KuhnRuns, known: Kuhn) -> list[Claim]:
    found = []
    mine = runs.configured(CLEAN)
    base = runs.transfer(CLEAN, mine.get("none"), 100)
    for letter, text, published in (
        ("A", "hardly better than none", Published.number(1.0, _SAME)),
        ("B", "hardly better than none", Published.number(1.0, _SAME)),
        ("C", "better than none", Published.side(above=False)),
        ("D", "better than none", Published.side(above=False)),
    ):
        one = runs.transfer(CLEAN, mine.get(letter), 100)
        measured = MeasuredValue.of(_ratio(base, one))
        if measured is not None:
            here = f"{measured.written()} of the time without"
            found.append(
                Claim(f"Proxies {letter} are {text} (100 MB)", "in words", published, measured, here)
            )
    for size in SIZES:
        both = [_times_of(runs.transfer(CLEAN, mine.get(letter), size)) for letter in "CD"]
        gain = means.difference(both[0], both[1])
        if gain is not None:
            text = f"An initial window of 100 saves this time ({size} MB, C to D)"
            published = Published.difference(known.initial_window_gain_s, _LEAST_S, _READ_OFF)
            said = f"approximately {known.initial_window_gain_s:g} s"
            found.append(Claim(text, said, published, gain, gain.written(2, " s")))
    return found


def _ratio(base: Transfers | None, one: Transfers | None) -> Ratio | None:
    """The second one's time from the request on / the first one's; None where a trial failed."""
    if base is None or one is None or not base.is_whole or not one.is_whole:
        return None
    return cell_ratio(base.cell, one.cell, from_request_s)


def _times_of(found: Transfers | None) -> list[float]:
    """From the request on; none where a trial failed."""
    return found.from_request_s if found is not None and found.is_whole else []


def _goodputs(runs: KuhnRuns, known: Kuhn) -> list[Claim]:
    """Table II."""
    found = []
    for row in known.losses.rows:
        values = losses.at(row.loss, runs.losing(losses.TABLE))
        measured, loss = means.arithmetic(values), f"{100 * row.loss:g} %"
        if measured is None:
            continue
        text, label = (
            f"Goodput of CUBIC over 10 Mbit/s with {loss} of loss",
            f"goodput of CUBIC, {loss} of loss",
        )
        said, here = f"{row.goodput_mbps:g} Mbit/s", losses.with_interval(values)
        then = losses.goodput(row, known)
        found.append(Claim(text, said, Published.number(1.0), _over(measured, then), here, label))
    return found


def front(runs: KuhnRuns, known: Kuhn, found: Sequence[Claim], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture = None
    shown = forest.drawable(found)
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "ours / published", "ours beside published")
        picture = Picture(file, "Times and goodputs of TCP, ours / published, with intervals", _CAPTION)
    return Front(_finding(runs), _answer(found), picture, _ADVICE)


def _finding(runs: KuhnRuns) -> str:
    quic = next((one for one in runs.senders(CLEAN) if one.server == _PLAIN), None)
    for size in (10, 2):
        parts = [_since(runs, runs.configured(CLEAN).get("D"), size), _since(runs, quic, size)]
        if None not in parts:
            begin = f"Over GEO TCP has {size} MB in {parts[0]} behind proxies"
            return fitting(f"{begin}, QUIC without proxies in {parts[1]} ({_PLAIN})", begin)
    return "TCP proxies around a satellite hop, and QUIC beside them"


def _since(runs: KuhnRuns, sender: Sender | None, size: int) -> str | None:
    """The time from the request on, with its interval if it has one."""
    one = runs.transfer(CLEAN, sender, size)
    measured = None if one is None or not one.is_whole else _mean(one.from_request_s)
    if measured is None:
        return None
    varies = measured.low is not None and measured.high is not None and measured.high - measured.low > 0.01
    return measured.written(1, " s") if varies else f"{measured.value:.1f} s"


def _answer(found: Sequence[Claim]) -> list[str]:
    sentences = []
    for place in (CLEAN, SATELLITE):
        parts = []
        for size in SIZES:
            begin = f"Proxies D have {size} MB in this time ({_WORDS[place]})"
            one = next((one for one in found if one.text == begin), None)
            if one is not None:
                how = "" if one.here.startswith("not within") else "in "
                parts.append(f"{size} MB {how}{one.here}, published {one.said}")
        if parts:
            sentences.append(
                f"With {_WORDS[place]} TCP behind the paper's best proxies has {'; '.join(parts)}."
            )
    verdicts = tally(one.verdict for one in found)
    return [*sentences, f"Of {several(len(found), 'claim')} of the paper, {verdicts}."]
