"""The stack's share of the variance of goodput and its congestion control's; within a stack; beside 2021."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from bentpipe import labels
from bentpipe.analysis import inference, variance
from bentpipe.analysis.variance import VarianceSplit
from bentpipe.study.front import fitting
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import literal, mbit, percent, several, table
from bentpipe.study.means import GeometricMean

from .control import Controlled, short
from .controllers import BBR, CUBIC, FAMILIES, NEWRENO, family, is_plain, named
from .published import Published

_BLOCKS = (FAMILIES, (NEWRENO, CUBIC))

_SPLIT = """The variance of the logarithm of goodput, split as in two-way random effects with replication,
over the stacks that have all of the controllers. *Together* is what a stack and a controller do that
neither does with all others, *chance* is between trials. Of BBR each stack has
its newest version. Intervals, 95 %, are of a bootstrap over stacks: others might have been chosen; the
controllers are those that the thesis tells apart."""
_WITHIN = """The thesis leaves open (section 5.5.2) whether Reno is slow over a lossy link, or whether
stacks with CUBIC and BBR are better in other ways, too. Here one stack is compared with itself under another
controller: geometric means of these ratios over the stacks, with their 95 % intervals (t on logarithms)."""
_STARTS = """Where a stack lets its slow start be chosen and all else stays: the second over the first, with
the 95 % interval (Welch's t on logarithms). An interval that holds 1 shows no difference."""


def splits(found: Controlled) -> Iterator[tuple[str, Sequence[str], VarianceSplit]]:
    """Scenario, controllers and the split over those, of stacks that have them all."""
    for families in _BLOCKS:
        stacks = found.with_all(families)
        for scenario in found.scenarios:
            values: dict[tuple[str, str], list[float]] = {}
            for stack in stacks:
                for word in families:
                    server = found.of_family(stack, word)
                    if server is not None:
                        values[stack, word] = [math.log(one) for one in found.goodputs(scenario, server)]
            split = variance.split(values, all_servers=True)
            if split is not None:
                yield scenario, families, split


def in_short(found: Controlled) -> Iterator[str]:
    """The summary of each path in a line."""
    for scenario, families, one in splits(found):
        if families == FAMILIES:
            yield (
                f"Over {short(scenario)} the congestion control explains {_part(one, 'server')} of the "
                f"variance of log goodput, the stack {_part(one, 'client')}, and how the two suit each other "
                f"{_part(one, 'pair')}."
            )


def advice(found: Controlled) -> Iterator[str]:
    """What to choose first over each path on which the intervals of both shares lie apart."""
    for scenario, families, one in splits(found):
        if families != FAMILIES:
            continue
        control, stack = _part(one, "server"), _part(one, "client")
        if one.low.server > one.high.client:
            yield (
                f"- Over {short(scenario)} choose the congestion control first, and the stack after it: it "
                f"explains {control} of goodput's variance, the stack {stack}."
            )
        elif one.low.client > one.high.server:
            yield (
                f"- Over {short(scenario)} choose the stack first, and its congestion control after it: the "
                f"stack explains {stack} of goodput's variance, the congestion control {control}."
            )


LOSSY = "Over satloss"


def finding(found: Controlled) -> str:
    """The title of the page: the shares over the path with losses; "" without them."""
    for scenario, families, one in splits(found):
        if families == FAMILIES and short(scenario) == "satloss":
            begin = "With 1 % of loss congestion control explains"
            return fitting(
                f"{begin} {_part(one, 'server')} of goodput's variance, the stack {_part(one, 'client')}",
                f"{begin} {_part(one, 'server')} of the variance of goodput",
            )
    return ""


def _part(one: VarianceSplit, part: str) -> str:
    return _share(*(getattr(each, part) for each in (one.shares, one.low, one.high)))


def _share(value: float, low: float, high: float) -> str:
    return with_ends(value, low, high, 0, unit=" %", factor=100)


def section(found: Controlled, known: Published) -> list[str]:
    """The part of the page."""
    return [
        "### How much of the variance is due to stack and controller",
        *_split(found),
        "### One stack, several controllers",
        *_within(found),
        *_starts(found),
        *_published(found, known),
    ]


def _split(found: Controlled) -> list[str]:
    rows, lines = [], []
    for scenario, families, one in splits(found):
        shares = [_share(*ends) for _, *ends in variance.rows(one)]
        rows.append([short(scenario), ", ".join(families), *shares, str(one.clients), str(one.trials)])
        lines.append(f"- **{short(scenario)}**, {', '.join(families)}: {_whose(one)}")
    if not rows:
        return ["No two stacks have two controllers in common."]
    head = ["", "controllers", "stack", "controller", "together", "chance", "stacks", "trials"]
    return [_SPLIT, table(head, rows, left=2), "\n".join(lines)]


def _whose(one: VarianceSplit) -> str:
    """The conclusion from the intervals; the stack replaces the client in the split."""
    if one.low.server > one.high.client:
        return "the controller has more of it than the stack."
    if one.low.client > one.high.server:
        return "the stack has more of it than the controller."
    return "stack and controller cannot be separated."


def _within(found: Controlled) -> list[str]:
    rows = []
    for slow, fast in ((NEWRENO, CUBIC), (NEWRENO, BBR), (CUBIC, BBR)):
        stacks = found.with_all((slow, fast))
        row = [f"{fast} over {slow}", literal(", ".join(stacks))]
        for scenario in found.scenarios:
            ratios = [value for one in stacks if (value := _ratio(found, scenario, one, slow, fast))]
            mean = GeometricMean.of(ratios)
            row.append(mean.written() if mean else "-")
        rows.append(row)
    return [_WITHIN, table(["", "stacks", *map(short, found.scenarios)], rows, left=2)]


def _ratio(found: Controlled, scenario: str, stack: str, slow: str, fast: str) -> float | None:
    servers = [found.of_family(stack, word) for word in (slow, fast)]
    means = [GeometricMean.of(found.goodputs(scenario, one)) if one else None for one in servers]
    first, second = means
    return second.value / first.value if first and second else None


def _starts(found: Controlled) -> list[str]:
    rows = []
    for first, second in _chosen(found.servers):
        row = [literal(first), literal(second)]
        for scenario in found.scenarios:
            one = inference.ratio(found.goodputs(scenario, first), found.goodputs(scenario, second))
            if one is None or one.low is None or one.high is None:
                row.append("-")
            elif one.low == one.high:
                row.append(f"{one.value:.2f}")
            else:
                row.append(f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})")
        rows.append(row)
    if not rows:
        return []
    return [
        "### Slow starts",
        _STARTS,
        table(["first", "second", *map(short, found.scenarios)], rows, left=2),
    ]


def _chosen(servers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of servers that differ in their slow start alone, the library's first."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for server in servers:
        variant = labels.variant(server)
        rest = tuple(sorted((k, v) for k, v in variant.options.items() if k != "ss"))
        groups.setdefault((variant.stack, rest), []).append(server)
    for mine in groups.values():
        first, *others = sorted(mine, key=lambda one: "ss" in labels.variant(one).options)
        for other in others:
            yield first, other


def _published(found: Controlled, known: Published) -> list[str]:
    rows = []
    for stack, then in known.servers.items():
        mine = [one for one in found.servers if labels.variant(one).stack == stack and is_plain(one)]
        if not mine:
            continue
        row = [stack, then.listed]
        for scenario in found.scenarios:
            means = found.means(scenario)
            here = ", ".join(f"{named(one)} {mbit(means[one].value)}" for one in mine if one in means)
            row += [mbit(then.bps(short(scenario))), here or "-"]
        rows.append(row)
    if not rows:
        return []
    head = [
        "server",
        "listed with",
        *(t for name in found.scenarios for t in (f"{short(name)}, 2021", "here")),
    ]
    text = (
        f"Mbit/s, published with {known.servers_client} as the client. {known.servers_source}. The queue of "
        "sat and satloss is a fifth of that of 2021; [like with like](../thesis/thesis.md#then-and-now) is "
        "another page's. Versions and "
        "clients are others, so no more than the order of size can be compared: which of today's controllers "
        "comes to what the server did then."
    )
    return ["### Beside 2021", table(head, rows, left=len(head)), text, _reno(found)]


def _reno(found: Controlled) -> str:
    """The statement of the thesis's figure 5.6b on Reno, compared with these servers."""
    name = next((one for one in found.scenarios if short(one) == "satloss"), "")
    groups: Mapping[str, list[float]] = {word: [] for word in FAMILIES}
    for server, mean in (found.means(name) if name else {}).items():
        if is_plain(server) and family(server) in groups:
            groups[family(server)].append(mean.value)
    if not all(groups.values()):
        return "Servers of NewReno, CUBIC and BBR over satloss are not all in the run."
    told = [f"{word} {mbit(min(values))} to {mbit(max(values))}" for word, values in groups.items()]
    slower = sum(one > max(groups[NEWRENO]) for one in groups[BBR])
    text = (
        "In figure 5.6b no server with Reno is among those that do well over SATLOSS. Here: "
        f"{', '.join(told)} Mbit/s; {slower} of {several(len(groups[BBR]), 'server')} with BBR are faster "
        "than every one with NewReno, and "
    )
    cubic = sum(one > max(groups[NEWRENO]) for one in groups[CUBIC])
    share = percent(cubic / len(groups[CUBIC]))
    return f"{text}{cubic} of {several(len(groups[CUBIC]), 'server')} with CUBIC, {share}."
