"""Causes of what is otherwise than it was published: each with the one thing that was changed to show it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import geometric_mean
from bentpipe.study.markdown import literal, mbit, several, table

from . import initial_windows, intervals, runner_queue, short_queue
from .controllers import BBR, controller
from .runs import CONTROLLERS, QUEUE, SAT, SATLOSS, START, ThesisRuns

_BURST = """### quic-go's server starts with a loss

Over sat it sends at once what its initial window of 32 packets allows, if it has no RTT sample of the
handshake: the qlog of a trial with aioquic as client has no `smoothed_rtt` before the first data, and
without one its pacer lets everything go; with quinn as client it has one and paces. The queue holds 25
packets, the last of the burst are dropped, and slow start is over after one round trip:
`slow_start_left_early`. With a longer queue, and nothing else changed:"""
_BURST_THEN = """In 2021, with 8.75 Mbit/s of aioquic → quic-go, this did not happen: the queue was
[longer](#the-simulators-queue-held-125-packets)."""
_PROBES = """### aioquic's server was slow in 2021

Slow start, avoidance, the exit from slow start and pacing of its NewReno have the same rules as then. What
differs: in aioquic 0.9.17 a probe timeout hands the packets of the handshake to the congestion control as
lost. Before the first RTT sample it comes after 200 ms, over sat long before the first round trip is over;
so the window was halved, and slow start had ended before the first byte. RFC 9002, section 6.2, says that a
probe timeout marks nothing as lost. The option `pto=loss` puts that one thing back into aioquic 1.7.2:"""
_PROBES_THEN = """Over goodput, with 30 ms of round trip, no timer runs out, and the thesis finds nothing
amiss there either. What it draws as an exponential rise (figure 5.9) is one packet more in every round
trip."""
_CONTROL = """### Congestion control

Same stacks, same clients; only the server's congestion control is another one. Geometric means over clients
and iterations, in Mbit/s; 2021 is aioquic → the server. The default of ngtcp2 today is CUBIC, that of
picoquic NewReno."""
_CONTROL_THEN = """picoquic's own program, picoquicdemo, has its server use BBR unless told otherwise, where
the library by itself has NewReno; its CUBIC is [tried, too](../stacks/stacks.md#causes). What ngtcp2's
program of 2021 used is not known: table 4.2 of the thesis lists four. Of the servers published over
SATLOSS """
_HALF = """### The queue, and what a BDP is

The thesis computes its BDP from half of the round trip (`RTT / 2 · r`, section 4.2.1.2), and its table 4.3
gives Mbit as MiB: 5.7 for 300 ms of 20 Mbit/s, which are 6 Mbit, 5.7 Mibit or 0.72 MiB. So 10 MiB are 14 of
its BDPs over sat and not two, and 7 of ours, rate times round trip. The queues of goodput, sat and satloss
are counted in packets, and the same either way; those of the stand-ins astra and eutelsat are 1 BDP of
ours, 2 of the thesis's. With half of the queue, and nothing else changed, pairs of the common stacks:"""


def sections(runs: ThesisRuns) -> list[str]:
    """The sections of those experiments that were run."""
    parts = [
        *runner_queue.section(runs),
        *short_queue.section(runs),
        *_bursts(runs),
        *_probes(runs),
        *_controllers(runs),
        *_queues(runs),
    ]
    heading = ["## Causes", "Each is an experiment in which one thing is changed."]
    return [*heading, *parts] if parts else []


def _titled(text: str) -> list[str]:
    """A heading and what stands below it, as parts of a page."""
    return text.split("\n\n", 1)


def _goodputs(cells: Iterable[Cell | None]) -> list[float]:
    return [one for cell in cells if cell is not None for one in cell.values("goodput_bps")]


def _shown(cells: Iterable[Cell | None]) -> str:
    """The geometric mean of their trials."""
    mean = geometric_mean(_goodputs(cells))
    return mbit(mean)


def _drops(cell: Cell | None) -> str:
    """The mean of what the queue dropped in each trial."""
    ok = cell.ok if cell else []
    counted = [one.forward_queue_drops for one in ok if one.forward_queue_drops is not None]
    return f"{statistics.fmean(counted):.0f}" if counted else "-"


def _bursts(runs: ThesisRuns) -> list[str]:
    known = runs.cells_beside(START)
    queues = list(dict.fromkeys(scenario for scenario, _, _ in known))
    clients = list(dict.fromkeys(client for _, client, _ in known))
    if not known:
        return []
    rows = []
    for client in clients:
        cells = [known.get((queue, client, "quic-go")) for queue in queues]
        rows.append([literal(client), *(_shown([cell]) for cell in cells), *map(_drops, cells)])
    sizes = [labels.scenario(queue).queue for queue in queues]
    head = ["client", *(f"{size}, Mbit/s" for size in sizes), *(f"{size}, dropped" for size in sizes)]
    return [*_titled(_BURST), table(head, rows), f"{_trials(known.values(), 'quic-go')} {_BURST_THEN}"]


def _trials(cells: Iterable[Cell], stack: str) -> str:
    mine = [len(cell.records) for cell in cells if labels.variant(cell.key.server).stack == stack]
    return f"{sum(mine)} trials, {max(mine)} of each."


def _probes(runs: ThesisRuns) -> list[str]:
    known = runs.cells_beside(START)
    if not known:
        return []
    first = next(iter(known))[0]  # the scenario's own queue
    clients = list(dict.fromkeys(client for _, client, _ in known))
    all_servers = dict.fromkeys(server for _, _, server in known)
    servers = [one for one in all_servers if one.startswith("aioquic") and "iw=" not in one]
    then = runs.known.pairs[SAT].bps
    rows = [
        [
            literal(client),
            mbit(then.get((client, "aioquic"))),
            *(_shown([known.get((first, client, server))]) for server in servers),
        ]
        for client in clients
    ]
    head = ["client", "2021", *map(literal, servers)]
    shown = [cell for (scenario, _, server), cell in known.items() if scenario == first and server in servers]
    parts = [*_titled(_PROBES), table(head, rows), f"{_trials(shown, 'aioquic')} {_PROBES_THEN}"]
    return [*parts, *initial_windows.section(known)]


def _controllers(runs: ThesisRuns) -> list[str]:
    known = runs.cells_beside(CONTROLLERS)
    if not known:
        return []
    scenarios = list(dict.fromkeys(scenario for scenario, _, _ in known))
    clients = list(dict.fromkeys(client for _, client, _ in known))
    servers = list(dict.fromkeys(server for _, _, server in known))
    rows = []
    for server in servers:
        row = [literal(server), controller(server) or "-"]
        for scenario in scenarios:
            row.append(_shown(known.get((scenario, client, server)) for client in clients))
            row.append(_shown([known.get((scenario, "aioquic", server))]))
        rows.append(row)
    head = ["server", "congestion control"]
    head += [text for one in scenarios for text in (f"{one}, all clients", f"{one}, aioquic")]
    then = runs.known.pairs
    for stack in dict.fromkeys(labels.variant(server).stack for server in servers):
        past = [then[one].bps.get(("aioquic", stack)) if one in then else None for one in scenarios]
        if any(past):
            rows.append([f"2021: {stack}", "-", *(text for one in past for text in ("-", mbit(one)))])
    ratios = [f"{one}: {_gain(known, one, clients)}" for one in scenarios]
    fast = [server for server in runs.known.pairs[SATLOSS].servers if _mean_of(runs, server) > 1e6]
    return [
        *_titled(_CONTROL),
        table(head, rows, left=2),
        f"{sum(len(cell.records) for cell in known.values())} trials. BBR / CUBIC of the same stack with "
        f"the same "
        f"client, geometric mean with its interval (t on logarithms of stacks): "
        f"{'; '.join(ratios)}.",
        f"{_CONTROL_THEN}{len(fast)} of {len(runs.known.pairs[SATLOSS].servers)} had more than 1 Mbit/s "
        f"in the mean, "
        f"{', '.join(sorted(fast))}; here tquic alone uses BBR by default. {_replaced(known, clients)}",
    ]


def _replaced(known: dict[tuple[str, str, str], Cell], clients: Sequence[str]) -> str:
    """The mean over the pairs of satloss if BBR is used wherever a stack has it."""
    servers = list(dict.fromkeys(server for _, _, server in known))
    stacks = dict.fromkeys(labels.variant(one).stack for one in servers if controller(one) == BBR)
    chosen = {
        stack: next(one for one in servers if labels.variant(one).stack == stack and controller(one) == BBR)
        for stack in stacks
    }
    means = []
    for wanted in (stacks, chosen.values()):
        cells = [known.get((SATLOSS, client, server)) for client in clients for server in wanted]
        found = [cell.goodput_mean_bps for cell in cells if cell is not None and cell.goodput_mean_bps]
        if not found:
            return ""
        means.append(statistics.fmean(found))
    return (
        f"With the defaults of {', '.join(stacks)} the mean over these pairs is {mbit(means[0])} Mbit/s, "
        f"with "
        f"{', '.join(map(literal, chosen.values()))} it is {mbit(means[1])}."
    )


def _mean_of(runs: ThesisRuns, server: str) -> float:
    return statistics.fmean(runs.known.pairs[SATLOSS].of_server(server).values())


def _gain(known: dict[tuple[str, str, str], Cell], scenario: str, clients: Sequence[str]) -> str:
    """BBR against CUBIC, with the interval and the number of stacks."""
    logs = _logs(known, scenario, clients)
    found = intervals.over_ratios(logs)
    return "-" if found is None else f"{found.written(1)} over {several(len(logs), 'stack')}"


def _logs(known: dict[tuple[str, str, str], Cell], scenario: str, clients: Sequence[str]) -> list[float]:
    """Logarithms of BBR against CUBIC, of the same stack and with the same client. A stack counts once,
    however many clients it has: they are not independent.
    """
    logs = []
    by_stack: dict[str, dict[str, str]] = {}
    for _, _, server in known:
        word = controller(server)
        if word:
            by_stack.setdefault(labels.variant(server).stack, {})[word] = server
    for variants in by_stack.values():
        if not {BBR, "CUBIC"} <= set(variants):
            continue
        of_clients = []
        for client in clients:
            slow, fast = (
                geometric_mean(_goodputs([known.get((scenario, client, variants[word]))]))
                for word in ("CUBIC", BBR)
            )
            if slow and fast:
                of_clients.append(math.log(fast / slow))
        if of_clients:
            logs.append(statistics.fmean(of_clients))
    return logs


def gains(runs: ThesisRuns) -> dict[str, intervals.Estimate]:
    """Scenario → goodput with BBR / with CUBIC of the same stacks, where there is an interval."""
    known = runs.cells_beside(CONTROLLERS)
    clients = list(dict.fromkeys(client for _, client, _ in known))
    names = dict.fromkeys(scenario for scenario, _, _ in known)
    found = {name: intervals.over_ratios(_logs(known, name, clients)) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _queues(runs: ThesisRuns) -> list[str]:
    known = runs.cells_beside(QUEUE)
    rows = []
    for name in runs.matrices:
        half = {
            (client, server): cell.goodput_mean_bps
            for (scenario, client, server), cell in known.items()
            if labels.scenario(scenario).name == name and cell.goodput_mean_bps and not cell.failures
        }
        whole = runs.pairs(name)
        both = half.keys() & whole.keys()
        ratio = intervals.over_stacks([half, whole], intervals.ratio_of_means)
        if ratio is not None:
            first, second = (statistics.fmean(one[pair] for pair in both) for one in (whole, half))
            rows.append([name, mbit(first), mbit(second), ratio.written(), str(len(both))])
    if not rows:
        return []
    head = ["", "1 BDP, Mbit/s", "half of it", "ratio", "pairs"]
    end = "Where an interval holds 1, these trials do not show that the queue matters."
    return [*_titled(_HALF), table(head, rows), end]
