"""TCP's first window, varied: what a larger one does to load times, by where packets are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bentpipe.analysis.cell_ratio import cell_ratio
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.claims import NO_EFFECT, MeasuredValue, tally
from bentpipe.study.markdown import listed, number, several, table
from bentpipe.study.quantiles import quantile

from . import loads
from .answer import LARGE, SMALL, TITLES, Compared

_TEXT = """Medians of the page load time over TCP in seconds, with the first window that a Linux receiver
offers, {kernels}, and with {wide}: the client's and both proxies' option `rmem`, twice that. The ratio is of
geometric means, with [its interval](../../docs/reference/study-verdicts.md#intervals-of-ratios) of 95 %."""


@dataclass(frozen=True)
class WidenedPair:
    """A page over one path through the same proxies, with the kernel's first window and with a larger one."""

    kernels: Cell
    wide: Cell

    @property
    def measured(self) -> MeasuredValue | None:
        """The load time with the larger window / with the kernel's; None where a trial failed."""
        if self.kernels.failures.total() or self.wide.failures.total():
            return None
        return MeasuredValue.of(cell_ratio(self.kernels, self.wide, "plt_s"))

    @property
    def is_faster(self) -> bool:
        """Whether the larger window makes it faster, by more than chance and by more than 2 %."""
        measured = self.measured
        return measured is not None and measured.high is not None and measured.high < 1 / NO_EFFECT

    @property
    def is_slower(self) -> bool:
        """Whether the larger window makes it slower, by more than chance and by more than 2 %."""
        measured = self.measured
        return measured is not None and measured.low is not None and measured.low > NO_EFFECT


def sections(known: Sequence[Cell], compared: Sequence[Compared], widened: Sequence[Compared]) -> list[str]:
    """The section; none without runs that vary it. `compared` has TCP with the kernel's first window beside
    QUIC, `widened` with the larger one.
    """
    pairs = _pairs(known)
    if not pairs:
        return []
    text = _TEXT.format(kernels=loads.first_window(pairs[0].kernels), wide=loads.first_window(pairs[0].wide))
    said = [_said(pairs), *_verdicts(compared, widened)]
    return ["## TCP with a larger first window", text, _table(pairs), " ".join(said)]


def _pairs(known: Sequence[Cell]) -> list[WidenedPair]:
    def setting(one: Cell) -> tuple[str, str, str]:
        return loads.page_name(one), loads.losses(one), loads.proxies(one)

    over_tcp = [one for one in known if not loads.is_quic(one)]
    kernels = {setting(one): one for one in over_tcp if loads.first_buffer(one) is None}
    wide = {setting(one): one for one in over_tcp if loads.first_buffer(one) is not None}
    return [WidenedPair(one, wide[key]) for key, one in kernels.items() if key in wide]


def _table(pairs: Sequence[WidenedPair]) -> str:
    rows = []
    for one in sorted(pairs, key=lambda it: loads.page_name(it.kernels)):
        measured = one.measured
        rows.append(
            [
                TITLES[loads.page_name(one.kernels)],
                loads.losses(one.kernels),
                loads.proxies(one.kernels).removeprefix(", ") or "no proxies",
                *(
                    marked(number(quantile(cell.values("plt_s"), 0.5)), cell)
                    for cell in (one.kernels, one.wide)
                ),
                "-" if measured is None else measured.written(),
            ]
        )
    windows = [loads.first_window(one) for one in (pairs[0].kernels, pairs[0].wide)]
    return table(["page", "losses", "", *windows, "ratio"], rows, left=3)


def _said(pairs: Sequence[WidenedPair]) -> str:
    """Of the large page, for each treatment: the ratio by where packets are lost, with its interval; and of
    both pages how many settings are faster and how many slower.
    """
    wide = loads.first_window(pairs[0].wide)
    sentences = []
    mine = [one for one in pairs if loads.page_name(one.kernels) == LARGE and one.measured is not None]
    for treatment in dict.fromkeys(loads.proxies(one.kernels) for one in mine):
        parts = [
            f"{measured.written()} times as long {_place(one)}"
            for one in mine
            if loads.proxies(one.kernels) == treatment and (measured := one.measured) is not None
        ]
        through = f"through {treatment.removeprefix(', ')}" if treatment else "without proxies"
        sentences.append(f"With a first window of {wide} {TITLES[LARGE]} {through} take TCP {listed(parts)}.")
    faster, slower = sum(one.is_faster for one in pairs), sum(one.is_slower for one in pairs)
    sentences.append(
        f"Of {several(len(pairs), 'setting')} of both pages, {faster} are faster and {slower} slower, by "
        "more than chance and more than 2 %."
    )
    return " ".join(sentences)


def _place(one: WidenedPair) -> str:
    place = loads.losses(one.kernels)
    return "without losses" if place == "none" else f"with losses {place}"


def _verdicts(compared: Sequence[Compared], widened: Sequence[Compared]) -> list[str]:
    """Whether the paper's words on QUIC hold against TCP with the larger window."""
    sentences = []
    for page in (LARGE, SMALL):
        before, after = (
            [one.claim() for one in found if one.page == page and one.measured]
            for found in (compared, widened)
        )
        if before and after:
            sentences.append(
                f"For {TITLES[page]}, of {several(len(after), 'comparison')} of QUIC with TCP behind proxies "
                f"that have it {tally(one.verdict for one in after)}; of those with the kernel's "
                f"{tally(one.verdict for one in before)}."
            )
    return sentences
