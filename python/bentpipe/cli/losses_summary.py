"""The summary that `bentpipe losses` prints of a direction."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator

from bentpipe.analysis.losses import (
    Answer,
    Direction,
    DirectionLosses,
    Estimate,
    GilbertElliott,
    Lengths,
    MarkovTests,
    Model,
    Periodicity,
    SimplifiedGilbert,
    Test,
)

_WIDTH = 100
_ROWS = 12  # of a distribution
_LEAST_P = 1e-12  # below, what is counted is no longer exact
_BOUND = "\u00a0"  # between a length and its count, which stay on one line
_WAYS = {"forward": "server to client", "return": "client to server"}
_MODELS: dict[Model, str] = {
    "uniform": "uniform",
    "simplified_gilbert": "simplified Gilbert",
    "gilbert_elliott": "Gilbert-Elliott",
}
_ANSWERS: dict[Answer, str] = {"yes": "not refused", "no": "refused", "not_sure": "not sure"}


def lines(direction: Direction, one: DirectionLosses) -> Iterator[str]:
    """The lines on a direction."""
    yield f"{direction} ({_WAYS[direction]}): {one.packets:,} packets, {one.losses:,} lost"
    yield from _left_out(one)
    if not one.losses:
        yield from _text("no losses: there is nothing to fit" if one.packets else "no packets")
        if one.rate is not None:
            yield _row("loss rate", one.rate)
        return
    yield ""
    yield f"  {'':<26} {'':>11}   95 % interval"
    yield from _rates(one)
    yield from _simplified(one.simplified_gilbert)
    yield from _hidden(one.gilbert_elliott)
    yield from _models(one)
    yield from _lengths("bursts", one.bursts)
    yield from _lengths("gaps", one.gaps)
    yield from _tests(one.tests)
    yield from _periodicity(one.periodicity)


def _left_out(one: DirectionLosses) -> Iterator[str]:
    if one.queue_drops:
        yield f"  {one.queue_drops:,} more were dropped by a queue, and are left out"
    if one.undecided:
        yield f"  {one.undecided:,} more are left out: what became of them is not known"
    if one.unexplained:
        yield from _text(
            "the capture does not tell losses from drops by a queue: both count as losses here"
            if one.unexplained == one.losses
            else f"of {one.unexplained:,} losses it is not known whether a queue dropped them"
        )


def _rates(one: DirectionLosses) -> Iterator[str]:
    if one.rate is not None:
        yield _row("loss rate", one.rate)
    # Losses in bursts are worth fewer independent ones.
    if one.rate_in_bursts is not None and one.tests is not None and one.tests.independent == "no":
        yield _row("  as losses come in bursts", one.rate_in_bursts)


def _simplified(fit: SimplifiedGilbert | None) -> Iterator[str]:
    yield ""
    if fit is None:
        yield "  simplified Gilbert: cannot be told, as nothing followed a loss, or a delivery"
        return
    yield "  simplified Gilbert, P(destination|origin); g: delivered, b: lost"
    yield _row("P(g|g)", fit.p_good_given_good)
    yield _row("P(g|b)  r", fit.p_good_given_bad)
    yield _row("P(b|b)", fit.p_bad_given_bad)
    yield _row("P(b|g)  p", fit.p_bad_given_good)
    yield _packets("mean burst, 1/r", fit.mean_burst)
    yield _packets("mean gap, 1/p", fit.mean_gap)


def _hidden(fit: GilbertElliott | None) -> Iterator[str]:
    yield ""
    if fit is None:
        yield "  Gilbert-Elliott: not sure, as there are fewer than 10 losses or deliveries"
        return
    yield "  Gilbert-Elliott, by maximum likelihood; intervals by profile likelihood"
    yield _row("P(b|g)  p", fit.p_bad_given_good)
    yield _row("P(g|b)  r", fit.p_good_given_bad)
    yield _row("loss in good, 1-k", fit.loss_in_good)
    yield _row("loss in bad, 1-h", fit.loss_in_bad)


def _models(one: DirectionLosses) -> Iterator[str]:
    if not one.models:
        return
    yield ""
    yield f"  {'model':<20} {'parameters':>10} {'log-likelihood':>16} {'AIC':>12} {'BIC':>12}"
    for fit in one.models:
        preferred = "  preferred" if fit.model == one.preferred else ""
        yield (
            f"  {_MODELS[fit.model]:<20} {fit.parameters:>10} {fit.log_likelihood:>16,.2f} {fit.aic:>12,.2f}"
            f" {fit.bic:>12,.2f}{preferred}"
        )


def _lengths(what: str, found: Lengths | None) -> Iterator[str]:
    yield ""
    if found is None:
        yield f"  {what}: none was seen whole"
        return
    longest = f"B_max {found.max:,}" if what == "bursts" else f"longest {found.max:,}"
    yield (
        f"  {what}: {found.count:,}, mean {found.mean:,.4g} packets, {longest}; quartiles"
        f" {found.quartile:,}, {found.median:,}, {found.upper_quartile:,}; 95 %: {found.percentile_95:,}"
    )
    if what == "bursts":
        shown = "  ".join(f"{one.length}:{_BOUND}{one.count:,}" for one in found.distribution[:_ROWS])
        more = "  …" if len(found.distribution) > _ROWS else ""
        yield from _text(f"of each length in packets: {shown}{more}")


def _tests(tests: MarkovTests | None) -> Iterator[str]:
    if tests is None:
        return
    yield ""
    yield f"  {'tests':<38} {'statistic':>9} {'df':>3} {'p':>8}"
    yield _test("order 0 against 1 (G²)", tests.order_0_against_1)
    yield _test("order 1 against 2 (G²)", tests.order_1_against_2)
    yield _test("bursts geometric (X²)", tests.geometric_bursts)
    yield _test("gaps geometric (X²)", tests.geometric_gaps)
    yield f"  losses are independent: {_ANSWERS[tests.independent]}"
    yield f"  a Markov chain of order 1 is enough: {_ANSWERS[tests.markov]}"


def _test(name: str, test: Test | None) -> str:
    if test is None:
        return f"    {name:<36} {'not sure: too few losses':>22}"
    return f"    {name:<36} {test.statistic:>9.2f} {test.degrees_of_freedom:>3} {_p(test.p_value):>8}"


def _periodicity(found: Periodicity | None) -> Iterator[str]:
    yield ""
    if found is None:
        yield "  periodicity: not sure, as there are too few losses"
        return
    sought = f"of periods from {found.shortest_s:.2g} to {found.longest_s:.2g} s"
    if found.period_s is None or found.period_within_s is None:
        yield from _text(f"periodicity: none found {sought} (p {_p(found.p_value)})")
        return
    off = f"±{found.period_within_s:.2g}"
    yield from _text(
        f"periodicity: losses return every {found.period_s:.4g} {off} s (p {_p(found.p_value)}; {sought})"
    )


def _row(name: str, estimate: Estimate) -> str:
    low, high = (_percent(one) for one in (estimate.low, 1.0 if estimate.high is None else estimate.high))
    return f"  {name:<26} {_percent(estimate.value):>11}   {low} to {high}"


def _packets(name: str, estimate: Estimate | None) -> str:
    if estimate is None:
        return f"  {name:<26} {'-':>11}"
    high = "any" if estimate.high is None else f"{estimate.high:,.4g}"
    return f"  {name:<26} {estimate.value:>11,.4g}   {estimate.low:,.4g} to {high} packets"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %" if share < 0.999 else f"{share * 100:.5g} %"


def _p(value: float) -> str:
    if value < _LEAST_P:
        return f"<{_LEAST_P:.0e}"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def _text(text: str) -> list[str]:
    width = min(shutil.get_terminal_size().columns, _WIDTH)
    wrapped = textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")
    return [line.replace(_BOUND, " ") for line in wrapped]
