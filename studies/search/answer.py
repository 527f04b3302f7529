"""The beginning of the page on SEARCH: what it saves here, beside what the report found."""

from __future__ import annotations

import math
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
from bentpipe.study.front import Front, Picture
from bentpipe.study.markdown import listed, several
from bentpipe.study.slow_starts import VariantTrials

from . import arms
from .arms import ProposedChange
from .intervals import ShareInterval, share_above, shift
from .study import PublishedComparison
from .varied import OpenSetting

PICTURE = "search-claims.svg"
_SIZES_MB = (50, 100, 150, 200)
_HALF = 50.0  # percent: a "small fraction" is less
_READ_OFF = 0.1  # how exactly the report says the time saved: "up to 3 s"
_KEPT = "search-keep"  # of which the report has it
_CAPTION = """Seconds by which SEARCH has that much of the file earlier than a slow start that ends with the
first loss: the median difference of two runs, with its interval of 95 %."""
_ADVICE = """- Over a deep queue SEARCH spares packets: it leaves slow start before the queue overflows in
  part of the runs.{}
- Where the queue holds 1 BDP or less, it acts too late or never: [which slow start ends in
  time](../slow_start/slow-start.md)."""
_LEAST_S = 0.1  # seconds: what is earlier by less is not earlier
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


def best(study: PublishedComparison, one: VariantTrials) -> tuple[int, MeasuredValue] | None:
    """The size beyond the report's at which the median run saves most, and the seconds saved there."""
    found = study.most_saved(one, study.known.saved_beyond_mb) or study.most_saved(one)
    measured = None if found is None else seconds_saved(study, one, found[1])
    return None if found is None or measured is None else (found[1], measured)


def seconds_saved(study: PublishedComparison, one: VariantTrials, size_mb: int) -> MeasuredValue | None:
    """How much earlier a variant has a size in MB than the baseline."""
    found = shift(study.times(study.baseline, size_mb), study.times(one, size_mb))
    if found is None or not math.isfinite(found.value):
        return None
    has_ends = math.isfinite(found.low) and math.isfinite(found.high)
    return MeasuredValue(found.value, *((found.low, found.high) if has_ends else (None, None)))


def _said(study: PublishedComparison) -> Published:
    """The seconds that the report says SEARCH saves at most."""
    return Published.difference(study.known.saved_s, _LEAST_S, _READ_OFF)


def _saved(study: PublishedComparison, one: VariantTrials) -> list[Claim]:
    name, known = study.name(one), study.known
    claims = []
    most = best(study, one)
    if most is not None and one.slow_start == _KEPT:
        size, measured = most
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

    def written(self, wanted_s: float) -> str:
        """What was tried, and what of it has the gain of the report; "" if nothing was."""
        opened = several(len(self.settings), "setting") + " that it leaves open, changed one at a time"
        parts = [opened] if self.settings else []
        parts += [one] if (one := arms.tried(self.changes)) else []
        if not parts:
            return ""
        least_s = (1 - _READ_OFF) * wanted_s
        such = [one.words for one in self.settings if _gains(one, least_s)]
        such += arms.listed_gains(self.changes, least_s)
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


def _gains(one: OpenSetting, least_s: float) -> bool:
    """Whether SEARCH saves that much in a changed setting, beyond chance."""
    shifts = [one.sooner(size) for size in (150, 200)]
    return any(found is not None and found.low > 0 and found.value >= least_s for found in shifts)


def _main(study: PublishedComparison) -> VariantTrials:
    return next((one for one in study.others if one.slow_start == _KEPT), study.others[0])


def _finding(study: PublishedComparison) -> str:
    most = best(study, _main(study))
    if most is None:
        return "What SEARCH saves over a satellite link cannot be told from these runs"
    return title(*most, study.known.saved_s)


def title(size_mb: int, saved: MeasuredValue, wanted_s: float) -> str:
    """What SEARCH saves at best, beside what the report found where that is more than all of the interval."""
    here = saved.written(1, " s")
    at_best = f"at best {here} at {size_mb} MB"
    is_earlier = saved.low is not None and saved.low > 0
    if is_less(saved, wanted_s):
        wanted = f"{wanted_s:g} s"
        if not is_earlier:
            return f"No gain of {wanted} by SEARCH over a satellite link: {at_best}"
        return f"SEARCH brings {size_mb} MB over a satellite link {here} earlier, and not {wanted}"
    if not is_earlier:
        return f"Whether SEARCH saves time over GEO cannot be told: {at_best}"
    return f"SEARCH brings {size_mb} MB over a satellite link {here} earlier"


def is_less(saved: MeasuredValue, wanted_s: float) -> bool:
    """Whether all of its interval is below the gain of the report, as exactly as that is known."""
    return saved.high is not None and saved.high < (1 - _READ_OFF) * wanted_s


def _advice(study: PublishedComparison) -> str:
    """What follows; that files are not much earlier only where the run shows it."""
    most = best(study, _main(study))
    is_shown = most is not None and is_less(most[1], study.known.saved_s)
    return _ADVICE.format(" Do not expect files much earlier." if is_shown else "")


def gained(gain: Claim) -> str:
    """What became of the report's gain, by the interval of ours."""
    one = gain.measured
    if gain.verdict == AGREES:
        return _GAIN[AGREES]
    if one is None or one.low is None or one.high is None:
        return "Whether the gain that the report found is repeated is not known, without an interval"
    if one.high < -_LEAST_S:
        return "The gain that the report found is not repeated: SEARCH is later"
    if one.low >= -_LEAST_S and one.high <= _LEAST_S:
        return "The gain that the report found is not repeated: SEARCH is neither earlier nor later"
    if gain.published.low is not None and one.high < gain.published.low:
        return "The gain that the report found is not repeated: SEARCH saves less, if anything"
    if gain.verdict == SAME_DIRECTION:
        return _GAIN[SAME_DIRECTION]
    return "Whether the gain that the report found is repeated cannot be told"


def _answer(study: PublishedComparison, known: Sequence[Claim], tried: Tried) -> list[str]:
    gain = next((one for one in known if one.said.startswith("up to")), None)
    sentences = []
    if gain is not None:
        begin = f"{gained(gain)}: at best {gain.here}, published {gain.said}"
        sentences.append(f"{begin}{tried.written(study.known.saved_s)}.")
    exits = next((one for one in known if one.text.startswith("SEARCH's exit")), None)
    if exits is not None:
        sentences.append(
            f"Its exit comes before the first loss in {exits.here} of the clean runs, published "
            f"{exits.said}: {exits.verdict}."
        )
    return sentences or ["These runs have neither SEARCH's exit nor a variant that acts on it."]
