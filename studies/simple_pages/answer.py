"""The beginning of the page on two simple pages: QUIC beside TCP behind proxies, and what the paper says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.study import forest
from bentpipe.study.claims import NO_EFFECT, Claim, MeasuredValue, Published, tally
from bentpipe.study.front import Front, Picture, fitting
from bentpipe.study.markdown import several

PICTURE = "simple-pages-claims.svg"
LARGE, SMALL = "kuhn-a", "kuhn-b"
TITLES = {LARGE: "5.3 MB", SMALL: "11 kB"}
# Of each page: whether the source says that QUIC takes longer, and its words.
_SAID = {LARGE: (True, "significantly worse"), SMALL: (False, "slightly better")}
_CAPTION = """Page load time over QUIC / over TCP behind proxies, both with BBR: right of 1 QUIC is slower.
Intervals of 95 %; the source gives a side, and no number."""
_ADVICE = """- A proxy at the terminal can repair losses beside the satellite, and none on the satellite."""
HOW = """Each row compares one stack of QUIC with Linux's TCP behind proxies in configuration D, both with
BBR: the ratio of geometric means of page load times, with [its
interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %. The source gives a side, and
no number, so no verdict is *agrees*."""


@dataclass(frozen=True)
class Compared:
    """A page over one path, with a stack of QUIC and with TCP behind proxies."""

    page: str
    losses: str
    server: str
    quic: Cell
    tcp: Cell

    @property
    def measured(self) -> MeasuredValue | None:
        """Page load time over QUIC / over TCP; None where a trial failed, as the others are the fast ones."""
        if self.failed:
            return None
        return MeasuredValue.of(cell_ratio(self.tcp, self.quic, "plt_s"))

    @property
    def failed(self) -> int:
        """Trials of either that failed."""
        return self.tcp.failures.total() + self.quic.failures.total()

    @property
    def setting(self) -> str:
        return f"{self.server}, losses {self.losses}"

    def claim(self) -> Claim:
        is_longer, said = _SAID[self.page]
        measured = self.measured
        here = "-" if measured is None else f"{measured.written()} of TCP's time"
        text = f"QUIC is {said} for {TITLES[self.page]} (losses {self.losses}, {self.server})"
        label = f"{TITLES[self.page]}, losses {self.losses}, {self.server}"
        published = Published.side(above=is_longer)
        note = f"{several(self.failed, 'trial')} failed" if self.failed else ""
        return Claim(text, "in words", published, measured, here, label, note)


def claims(compared: Iterable[Compared]) -> list[Claim]:
    return [one.claim() for one in compared]


def front(compared: Sequence[Compared], folder: Path) -> Front:
    """The front of the page; it draws the picture into `folder`."""
    picture, known = None, claims(compared)
    if forest.drawable(known):
        file = folder / PICTURE
        forest.draw(known, file, "load time, QUIC / TCP behind proxies", "QUIC beside TCP behind proxies")
        picture = Picture(
            file, "Page load time over QUIC / over TCP behind proxies, with intervals", _CAPTION
        )
    return Front(_finding(compared), _answer(compared), picture, _advice(known))


def _finding(compared: Sequence[Compared]) -> str:
    """The range over all stacks and losses, whatever comes first."""
    ratios = [(one.measured.value, one) for one in compared if one.page == LARGE and one.measured]
    if not ratios:
        return "Two simple pages over QUIC, and over TCP behind an operator's proxies"
    values = sorted(value for value, _ in ratios)
    size, plain = TITLES[LARGE], several(len(ratios), "setting")
    if len(ratios) == 1:
        value, one = ratios[0]
        begin = f"QUIC loads {size} in {value:.2f} times TCP's time behind proxies"
        return fitting(f"{begin} ({one.setting})", begin)
    ends = f"{values[0]:.2f} to {values[-1]:.2f}"
    return f"QUIC loads {size} in {ends} times TCP's time behind proxies, in {plain}"


def _advice(known: Sequence[Claim]) -> str:
    """What follows from the comparisons whose interval is on one side of 1."""
    lines = []
    for page, size in ((SMALL, "small"), (LARGE, "large")):
        mine = [one.measured for one in known if f" for {TITLES[page]} (" in one.text]
        ends = [(one.low, one.high) for one in mine if one and one.low is not None and one.high is not None]
        faster = sum(high < 1 / NO_EFFECT for _, high in ends)
        slower = sum(low > NO_EFFECT for low, _ in ends)
        if faster and slower:
            lines.append(
                f"- For {size} pages compare the stacks, not the protocols: QUIC is faster than TCP behind "
                f"proxies in {several(faster, 'setting')}, and slower in {slower}."
            )
        elif faster or slower:
            word = "faster" if faster else "slower"
            lines.append(
                f"- For {size} pages QUIC is {word} than TCP behind proxies in {faster or slower} of "
                f"{several(len(mine), 'setting')}, and {'slower' if faster else 'faster'} in none."
            )
    return "\n".join([*lines, _ADVICE])


def _answer(compared: Sequence[Compared]) -> list[str]:
    """Of each page the least and the largest ratio, and the verdicts."""
    sentences = []
    for page, (_, said) in _SAID.items():
        mine = [one for one in compared if one.page == page]
        found = [(measured.value, measured, one) for one in mine if (measured := one.measured) is not None]
        if not found:
            continue
        ends = (min(found, key=lambda one: one[0]), max(found, key=lambda one: one[0]))
        shown = " to ".join(
            f"{measured.written()} ({one.setting})"
            for _, measured, one in (ends if len(found) > 1 else ends[:1])
        )
        verdicts = tally(one.claim().verdict for _, _, one in found)
        sentences.append(
            f"For {TITLES[page]} QUIC takes {shown} times TCP's time, where the paper finds it {said}: of "
            f"{several(len(found), 'comparison')} {verdicts}."
        )
    return sentences or ["No stack of QUIC with BBR is beside TCP behind proxies in these runs."]
