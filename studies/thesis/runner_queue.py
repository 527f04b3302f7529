"""The queue of the thesis's simulator, as a cause: the pairs of 2021 over it and over ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bentpipe import labels
from bentpipe.analysis.cells import Cell
from bentpipe.analysis.inference import geometric_mean
from bentpipe.study.markdown import literal, mbit, table

from . import intervals
from .runs import RUNNER_QUEUE, ThesisRuns

Cells = Mapping[tuple[str, str, str], Cell]

_TEXT = """The runner asks its simulator for queues of 25 packets; over SAT and SATLOSS the simulator's held
125, and so do those of sat-2021 and satloss-2021. Its scenario `asymmetric-p2p`, which the thesis added
(section 4.2.1.1), gives the 25 to the queue of the network device; the queueing discipline before it, which
other scenarios set to what is asked for while the device holds a single packet, stays at the simulator's
default of 100. The thesis states no queue. Pairs of 2021 over both, client aioquic, by equation 4.1,
geometric means over the trials, in Mbit/s:"""
_QUICHE = """Where the longer queue alone brings a pair to its goodput of 2021, the queue suffices as a cause;
where another congestion control does, too, which it was is not known. What else might differ of quiche's
server: slow start without HyStart++, an initial window of 20 packets, packets of 1200 bytes. Over sat, in
Mbit/s:"""
_THEN = """quiche's version of 2021 is not known. Its library had 10 packets and HyStart++ then as now. What
its CUBIC holds for a spurious loss, and undoes, changed in September 2021 (its pull requests 1055 and
1056)."""
# What is known of the servers of 2021, put back: the other causes tell how. ngtcp2's BBR is assumed.
_KNOWN = ("quiche", "quic-go", "aioquic:pto=loss", "picoquic:cc=bbr1")
_ASSUMED = "ngtcp2:cc=bbr"
_CLIENT = "aioquic"
OF_2021 = "125 packets"


def section(runs: ThesisRuns) -> list[str]:
    """The section; empty without its run."""
    known = runs.cells_beside(RUNNER_QUEUE)
    if not known:
        return []
    scenarios = list(dict.fromkeys(scenario for scenario, _, _ in known))
    by_name: dict[str, list[str]] = {}
    for scenario in scenarios:
        by_name.setdefault(labels.scenario(scenario).name, []).append(scenario)
    queues = [labels.scenario(one).queue for one in next(iter(by_name.values()))]
    servers = list(dict.fromkeys(server for _, _, server in known))
    asked = [one for one in servers if not _is_tried(one)]
    head = ["scenario", "server", "2021", *queues, *(f"{queue} / 2021" for queue in queues)]
    rows = [_row(runs, known, name, over, server) for name, over in by_name.items() for server in asked]
    parts = ["### The simulator's queue held 125 packets", _TEXT, table(head, rows, left=2)]
    parts.append(_means(runs, known, by_name, queues))
    tried = [one for one in servers if _is_tried(one) or one == "quiche"]
    if len(tried) > 1:
        over = by_name[next(iter(by_name))]
        rows = [
            [literal(one), *(_shown(_rate(known.get((link, _CLIENT, one)))) for link in over)]
            for one in tried
        ]
        parts += [_QUICHE, table(["", *queues], rows), _THEN]
    return parts


def _is_tried(server: str) -> bool:
    """Whether it is quiche with something else changed."""
    return server.startswith("quiche:")


def _rate(cell: Cell | None) -> float | None:
    """Equation 4.1."""
    times = cell.values("runner_transfer_s") if cell is not None else []
    return (
        geometric_mean([8 * cell.records[0].size_bytes / one for one in times]) if cell is not None else None
    )


def _shown(rate: float | None) -> str:
    return "failed" if rate is None else mbit(rate)


def _row(runs: ThesisRuns, known: Cells, name: str, over: Sequence[str], server: str) -> list[str]:
    then = runs.known.pairs[name].bps.get((_CLIENT, labels.variant(server).stack))
    rates = [_rate(known.get((link, _CLIENT, server))) for link in over]
    ratios = ["-" if one is None or then is None else f"{one / then:.2f}" for one in rates]
    return [name, literal(server), "failed" if then is None else mbit(then), *map(_shown, rates), *ratios]


def _means(
    runs: ThesisRuns, known: Cells, by_name: Mapping[str, Sequence[str]], queues: Sequence[str]
) -> str:
    """Of the servers as they were in 2021, the geometric mean of now / 2021."""
    means = []
    for name, over in by_name.items():
        for link, queue in zip(over, queues, strict=True):
            with_it = _mean(runs, known, name, link, (*_KNOWN, _ASSUMED))
            means.append(
                f"{name}, {queue}: {with_it}, without ngtcp2 {_mean(runs, known, name, link, _KNOWN)}"
            )
    trials = sum(len(cell.records) for cell in known.values())
    return (
        f"{trials} trials. Now / 2021 with what is known of the servers of then put back, "
        f"{', '.join(map(literal, _KNOWN))}, and {literal(_ASSUMED)}, which is assumed: geometric mean over "
        "those that did not fail, with its interval (t on logarithms, so of this one client): "
        f"{'; '.join(means)}."
    )


def put_back(runs: ThesisRuns) -> dict[str, dict[tuple[str, str], float]]:
    """Scenario → now / 2021 of each pair over its own queue, of the servers with what is known of those
    of 2021 put back.
    """
    known = runs.cells_beside(RUNNER_QUEUE)
    found: dict[str, dict[tuple[str, str], float]] = {}
    for link in dict.fromkeys(link for link, _, _ in known):
        label = labels.scenario(link)
        if label.queue == OF_2021 and label.name in runs.known.pairs:
            found[label.name] = _ratios(runs, known, label.name, link, (*_KNOWN, _ASSUMED))
    return found


def _mean(runs: ThesisRuns, known: Cells, name: str, link: str, servers: Sequence[str]) -> str:
    """The geometric mean of now / 2021, and over how many servers it is."""
    found = _ratios(runs, known, name, link, servers)
    mean = intervals.over_pairs(found)
    return "too few" if mean is None else f"{mean.written()} of {len(found)} servers"


def _ratios(
    runs: ThesisRuns, known: Cells, name: str, link: str, servers: Sequence[str]
) -> dict[tuple[str, str], float]:
    """Now / 2021 of the one client with the servers that failed neither then nor now."""
    found = {}
    for server in servers:
        then = runs.known.pairs[name].bps.get((_CLIENT, labels.variant(server).stack))
        rate = _rate(known.get((link, _CLIENT, server)))
        if then is not None and rate is not None:
            found[_CLIENT, server] = rate / then
    return found
