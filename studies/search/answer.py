"""The beginning of the page on SEARCH: what it saves here, beside what the report found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.study import forest
from bentpipe.study.claims import (
    AGREES,
    SAME_DIRECTION,
    Claim,
    MeasuredValue,
    Published,
)
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import listed, several
from bentpipe.study.slow_starts import VariantTrials

from . import arms
from .arms import ProposedChange
from .intervals import ShareInterval, share_above
from .saving import MostSaved, best, gains, seconds_saved
from .study import ArrivalComparison, PublishedComparison
from .varied import OpenSetting

PICTURE = "search-claims.svg"
_SIZES_MB = (50, 100, 150, 200)
_HALF = 50.0  # percent: a "small fraction" is less
_READ_OFF = 0.1  # how exactly the report says the time saved: "up to 3 s"
_KEPT = "search-keep"  # of which the report has it
_CUTS = "search"  # the one that also cuts the window
_BOTH = (_KEPT, _CUTS)
_CAPTION = """Seconds by which SEARCH has that much of the file earlier than a slow start that ends with the
first loss: the median difference of two runs, with its interval of 95 %."""
_ADVICE = """- Over a deep queue SEARCH spares packets: it leaves slow start before the queue overflows in
  part of the runs.{}
- Where the queue holds 1 BDP or less, it acts too late or never: [which slow start ends in
  time](../slow_start/slow-start.md)."""
_LEAST_S = 0.1  # seconds: what is earlier by less is not earlier
_NOTHING_S = 0.15  # likewise, where tenths of a second are written
_GAIN = {
    AGREES: "The gain that the report found is repeated",
    SAME_DIRECTION: "The gain that the report found is repeated in direction, and its size is not shown",
}
HOW = """Shares have Wilson's interval of 95 %; times saved have that of Hodges and Lehmann's shift between
two samples. The source says of its times what the median run saves at most, beyond 125 MB; here that is of
the size at which it saves most, which chance favours."""


def claims(study: PublishedComparison) -> list[Claim]:
    """The report's claims, with what the runs have of them."""
    known, found = study.known, []
    if study.leads is not None:
        before = [lead for lead in study.leads if lead > 0]
        for text, share, then in (
            ("SEARCH's exit comes before the first loss", share_above(study.leads, 0), known.exit_first),
            (
                "Of these runs, by more than a round trip",
                share_above(before, 1),
                known.exit_a_round_trip_before,
            ),
        ):
            published = Published.number(then)
            found.append(Claim(text, f"{then:g} %", published, _percent(share), share.written()))
    for one in study.others:
        found += _saved(study, one)
    for one, cuts in study.cuts:
        share = share_above(cuts, known.beta_cut)
        text = f"It takes more off the window than CUBIC's {100 * known.beta_cut:.0f} % ({study.name(one)})"
        said = '"only in a small fraction"'
        published = Published.at_most(_HALF)
        found.append(Claim(text, said, published, _percent(share), share.written()))
    return found


def _percent(share: ShareInterval) -> MeasuredValue | None:
    """A share of runs as a measured value, in percent."""
    if not share.trials:
        return None
    low, high = share.ends
    return MeasuredValue(100 * share.value, 100 * low, 100 * high)


def _said(study: PublishedComparison) -> Published:
    """The seconds that the report says SEARCH saves at most."""
    return Published.difference(study.known.saved_s, _LEAST_S, _READ_OFF)


def _saved(study: PublishedComparison, one: VariantTrials) -> list[Claim]:
    name, known = study.name(one), study.known
    claims = []
    most = best(study, one, known.saved_beyond_mb)
    if most is not None and one.slow_start == _KEPT:
        size, measured = most.size_mb, most.seconds
        text = f"The median run saves most beyond {known.saved_beyond_mb} MB ({name})"
        published = _said(study)
        here, label = f"{measured.written(1, ' s')}, at {size} MB", f"{name}, at best, {size} MB"
        claims.append(Claim(text, f"up to {known.saved_s:g} s", published, measured, here, label))
    for size in _SIZES_MB:
        if size in study.sizes_mb:
            later = seconds_saved(study, one, size)
            here = "-" if later is None else later.written(1, " s")
            text, label = f"{name} is earlier at {size} MB", f"{name}, {size} MB"
            claims.append(
                Claim(text, "earlier", Published.side(above=True, least=_LEAST_S), later, here, label)
            )
    return claims


@dataclass(frozen=True)
class Tried:
    """What was tried beside the source's own: settings that it leaves open, and changes that it proposes."""

    settings: Sequence[OpenSetting]
    changes: Sequence[ProposedChange]
    beyond_mb: int  # of which sizes a gain counts

    def written(self, wanted_s: float) -> str:
        """What was tried, and what of it has the gain of the report; "" if nothing was."""
        opened = several(len(self.settings), "setting") + " that it leaves open, changed one at a time"
        parts = [opened] if self.settings else []
        parts += [one] if (one := arms.tried(self.changes)) else []
        if not parts:
            return ""
        least_s = (1 - _READ_OFF) * wanted_s
        such = [
            one.words for one in self.settings if gains(one.runs, one.runs.others[0], least_s, self.beyond_mb)
        ]
        such += arms.listed_gains(self.changes, least_s, self.beyond_mb)
        where = listed(such) if such else "none of them"
        return f"; tried were {', and '.join(parts)}, and a gain of {wanted_s:g} s appears with {where}"


def front(study: PublishedComparison, known: Sequence[Claim], tried: Tried, folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture = None
    shown = forest.drawable(known)
    if shown:
        file = folder / PICTURE
        forest.draw(shown, file, "seconds earlier than without SEARCH", "what SEARCH saves", border=0.0)
        picture = Picture(file, "Seconds that SEARCH saves, by size, with intervals", _CAPTION)
    return Front(_finding(study), _answer(study, known, tried), picture, _advice(study))


def _variant(study: PublishedComparison, slow_start: str) -> VariantTrials | None:
    return next((one for one in study.others if one.slow_start == slow_start), None)


def _main(study: PublishedComparison) -> VariantTrials:
    return _variant(study, _KEPT) or study.others[0]


def _finding(study: PublishedComparison) -> str:
    most = best(study, _main(study), study.known.saved_beyond_mb)
    if most is None:
        return "What SEARCH saves over a satellite link cannot be told from these runs"
    cuts = _variant(study, _CUTS)
    cut = None if cuts is None else seconds_saved(study, cuts, most.size_mb)
    return title(most, study.known.saved_s, cut)


def title(most: MostSaved, wanted_s: float, cut: MeasuredValue | None = None) -> str:
    """What SEARCH saves at best, by its interval; beside it what it saves there if it cuts the window, or
    what the report found, where that is more than all of the interval.
    """
    if not _is_earlier(most.seconds):
        if is_less(most.seconds, wanted_s):
            return f"No gain of {wanted_s:g} s by SEARCH over GEO: at best {most.written}"
        return f"Whether SEARCH saves time over GEO cannot be told: at best {most.written}"
    here = f"{most.seconds.written(1, ' s')} earlier"
    begin = f"SEARCH delivers {most.size_mb} MB over GEO {here}"
    plain = f"{begin}, not {wanted_s:g} s" if is_less(most.seconds, wanted_s) else begin
    if cut is not None and _is_earlier(cut):
        return fitting(f"{begin}, {cut.written(1, ' s')} cutting the window", plain)
    return plain


def _is_earlier(saved: MeasuredValue) -> bool:
    return saved.low is not None and saved.low > _LEAST_S


def is_less(saved: MeasuredValue, wanted_s: float) -> bool:
    """Whether all of its interval is below the gain of the report, as exactly as that is known."""
    return saved.high is not None and saved.high < (1 - _READ_OFF) * wanted_s


def _advice(study: PublishedComparison) -> str:
    """What follows; that the whole file is not much earlier only where the run shows it."""
    size = study.sizes_mb[-1]
    whole = [seconds_saved(study, one, size) for one in study.others]
    highs = [one.high for one in whole if one is not None and one.high is not None]
    if len(highs) < len(whole) or max(highs) >= (1 - _READ_OFF) * study.known.saved_s:
        return _ADVICE.format("")
    by = f"at most {max(highs):.1f} s earlier" if max(highs) >= _LEAST_S / 2 else "not earlier"
    return _ADVICE.format(f" A whole file of {size} MB is {by}.")


def _otherwise(study: PublishedComparison) -> str:
    """What it saves where it cuts the window, and what both save by bytes as they arrive."""
    kept, cuts = (_variant(study, name) for name in _BOTH)
    if kept is None or cuts is None:
        return ""
    arrivals, beyond_mb = ArrivalComparison(study.records), study.known.saved_beyond_mb
    cut, *most = best(study, cuts, beyond_mb), *(best(arrivals, one, beyond_mb) for one in (kept, cuts))
    said = [_by(one.seconds) for one in most if one is not None]
    if cut is None or len(said) < len(_BOTH):
        return ""
    how = (
        f"{said[0]}, whether it cuts the window or not"
        if said[0] == said[1]
        else (f"{said[0]}, and {said[1]} if it cuts the window")
    )
    return (
        f"If it also cuts the window, it saves {cut.written}; counted as they arrive, in whatever order, as "
        f"by the report's client, bytes are {how}."
    )


def _by(saved: MeasuredValue) -> str:
    """By how much earlier, in words where that is nothing."""
    if saved.low is not None and saved.high is not None and max(-saved.low, saved.high) <= _NOTHING_S:
        return "not earlier"
    return f"at best {saved.written(1, ' s')} earlier"


def gained(gain: Claim) -> str:
    """What became of the report's gain, by the interval of ours."""
    one = gain.measured
    if gain.verdict == AGREES:
        return _GAIN[AGREES]
    if one is None or one.low is None or one.high is None:
        return "Whether the gain that the report found is repeated is not known, without an interval"
    if one.high < -_LEAST_S:
        return "The gain that the report found is not repeated, as SEARCH is later"
    if one.low >= -_LEAST_S and one.high <= _LEAST_S:
        return "The gain that the report found is not repeated, as SEARCH is neither earlier nor later"
    if gain.published.low is not None and one.high < gain.published.low:
        at_all = "" if _is_earlier(one) else ", if anything"
        return f"The gain that the report found is not repeated, as SEARCH saves less{at_all}"
    if gain.verdict == SAME_DIRECTION:
        return _GAIN[SAME_DIRECTION]
    return "Whether the gain that the report found is repeated cannot be told"


def _answer(study: PublishedComparison, known: Sequence[Claim], tried: Tried) -> list[str]:
    gain = next((one for one in known if one.said.startswith("up to")), None)
    sentences = []
    if gain is not None:
        begin = f"{gained(gain)}: at best {gain.here}, published {gain.said}"
        sentences.append(f"{begin}{tried.written(study.known.saved_s)}.")
    sentences += [one] if (one := _otherwise(study)) else []
    exits = next((one for one in known if one.text.startswith("SEARCH's exit")), None)
    if exits is not None:
        sentences.append(
            f"Its exit comes before the first loss in {exits.here} of the clean runs, published "
            f"{exits.said}: {exits.verdict}."
        )
    return sentences or ["These runs have neither SEARCH's exit nor a variant that acts on it."]
