"""Goodput of every stack with every congestion control that it offers: what each of the two makes of it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.trial_marks import marked
from bentpipe.study.markdown import literal, mbit, several, table, trials
from bentpipe.study.means import GeometricMean, best

from .controllers import family, is_plain, named
from .runs import CONTROLLERS, StackRuns, in_order

FIGURE = "stacks-control.svg"
FAR = 2.0  # times the median of a name, or the other way: a difference that is looked into
_LEAST = 3  # stacks with a controller of one name, from which on one can be far from the others
_TABLE = """Goodput in Mbit/s, geometric means with their 95 % intervals (t on logarithms); in **bold** the
best of a column, where its interval is above every other one. *Again*: of the stream bytes that were sent,
those that had been sent before, medians."""


def short(scenario: str) -> str:
    """The name of a scenario without what was set in it: the timeout, the same over all."""
    return labels.scenario(scenario).name


@dataclass(frozen=True)
class Controlled:
    """All servers over all scenarios."""

    runs: StackRuns

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """(scenario, server) → cell."""
        return {(one.key.scenario, one.key.server): one for one in self.runs.cells(CONTROLLERS)}

    @property
    def scenarios(self) -> list[str]:
        return self.runs.scenarios

    @cached_property
    def servers(self) -> list[str]:
        return list(dict.fromkeys(server for _, server in self.cells))

    def goodputs(self, scenario: str, server: str) -> list[float]:
        cell = self.cells.get((scenario, server))
        return cell.values("goodput_bps") if cell else []

    def means(self, scenario: str) -> dict[str, GeometricMean]:
        """Server → its mean, of those that ever succeeded."""
        found = {one: GeometricMean.of(self.goodputs(scenario, one)) for one in self.servers}
        return {server: one for server, one in found.items() if one is not None}

    def by_name(self, scenario: str) -> dict[str, dict[str, GeometricMean]]:
        """Controller → stack → mean, of servers that choose a controller alone."""
        found: dict[str, dict[str, GeometricMean]] = {}
        for server, mean in self.means(scenario).items():
            if is_plain(server):
                found.setdefault(named(server), {})[labels.variant(server).stack] = mean
        return found

    def of_family(self, stack: str, wanted: str) -> str | None:
        """The stack's server with a controller of a family, the newest if there are several."""
        mine = [
            one
            for one in self.servers
            if is_plain(one) and labels.variant(one).stack == stack and family(one) == wanted
        ]
        return max(mine, key=named) if mine else None

    @cached_property
    def stacks(self) -> list[str]:
        return in_order([labels.variant(one).stack for one in self.servers])

    def with_all(self, families: Sequence[str]) -> list[str]:
        """The stacks that have a controller of each family, and succeeded with it over every scenario."""
        return [one for one in self.stacks if all(self._always(one, word) for word in families)]

    def _always(self, stack: str, wanted: str) -> bool:
        server = self.of_family(stack, wanted)
        return server is not None and all(self.goodputs(name, server) for name in self.scenarios)


@dataclass(frozen=True)
class FarServer:
    """A server that is far from those of other stacks with the controller of the same name."""

    scenario: str
    name: str  # of the controller
    stack: str
    times: float  # the median of all of that name


def far(found: Controlled) -> Iterator[FarServer]:
    """The servers that differ from the median of their controller's name by more than `FAR`."""
    for scenario in found.scenarios:
        for name, means in found.by_name(scenario).items():
            if len(means) < _LEAST:
                continue
            middle = statistics.median(one.value for one in means.values())
            for stack, mean in means.items():
                times = mean.value / middle
                if max(times, 1 / times) > FAR:
                    yield FarServer(scenario, name, stack, times)


def section(found: Controlled, causes: Sequence[str], whose: Sequence[str]) -> list[str]:
    """The part of the page, between which its experiments stand and what is said of whose goodput is."""
    count = [len(one.records) for one in found.cells.values()]
    over = " and ".join(map(short, found.scenarios))
    clients = in_order([one.key.client for one in found.cells.values()])
    return [
        "## The stack's, or its congestion control's",
        f"{several(len(found.servers), 'server')} of {several(len(found.stacks), 'stack')} over "
        f"{over}, {trials(count)} of each, a file of 10 MiB; the client is {literal(', '.join(clients))}, "
        "whose window is no limit.",
        f"![Goodput of every server, by congestion control]({FIGURE})",
        f"{sum(count)} trials, a dot for each; a bar at the median. Servers that choose a slow start, too, "
        "are in the table.",
        _TABLE,
        _servers(found),
        "### Controllers of one name",
        *_names(found),
        *causes,
        *whose,
    ]


def _servers(found: Controlled) -> str:
    means = {name: found.means(name) for name in found.scenarios}
    bests = {name: best(one) for name, one in means.items()}
    rows = []
    for server in sorted(found.servers, key=lambda one: (named(one), one)):
        row = [literal(server), named(server)]
        for name in found.scenarios:
            mean, cell = means[name].get(server), found.cells.get((name, server))
            text = mean.written(1e-6) if mean else "-"
            failed = sum(cell.failures.values()) if cell else 0
            text = f"**{text}**" if bests[name] == server else text
            again = cell.values("retransmitted_share") if cell else []
            sent_again = f"{100 * statistics.median(again):.1f} %" if again else "-"
            row += [marked(text + (f" [{failed}]" if failed else ""), cell), marked(sent_again, cell)]
        rows.append(row)
    head = ["server", "", *(text for name in found.scenarios for text in (short(name), "again"))]
    undecided = [short(name) for name in found.scenarios if bests[name] is None]
    lines = [
        table(head, rows, left=2),
        "In brackets [ ] how many of the trials failed, which are in no mean.",
    ]
    if undecided:
        lines.append(f"Over {', '.join(undecided)} no server differs from all others.")
    return "\n\n".join(lines)


def _names(found: Controlled) -> list[str]:
    rows = []
    for scenario in found.scenarios:
        for name, means in found.by_name(scenario).items():
            if len(means) < 2:
                continue
            low, high = (pick(means, key=lambda one: means[one].value) for pick in (min, max))
            spread = means[high].value / means[low].value
            apart = "yes" if means[high].is_above(means[low]) else "no"
            rows.append(
                [short(scenario), name, str(len(means)), f"{low}, {mbit(means[low].value)}",
                 f"{high}, {mbit(means[high].value)}", f"{spread:.1f}", apart]
            )  # fmt: skip
    head = ["", "controller", "stacks", "slowest, Mbit/s", "fastest, Mbit/s", "times", "intervals apart"]
    known = [
        f"{literal(one.stack)} with {one.name} over {short(one.scenario)} ({one.times:.2f})"
        for one in far(found)
    ]
    text = (
        f"Where at least {_LEAST} stacks have a controller of one name, these are more than {FAR:g} times as "
        f"fast or as slow as the median of them: {'; '.join(known) or 'none'}."
    )
    return [table(head, rows, left=5), text]
