"""Questions that the paper left open: controllers of the satellite hop, handshake modes, stepping aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bentpipe import labels, workload
from bentpipe.analysis.comparison import FALSE_DISCOVERIES
from bentpipe.analysis.inference import Ratio, adjusted
from bentpipe.plan.treatments import DIRECT
from bentpipe.study.markdown import literal, number, percent, table, trials
from bentpipe.study.quantiles import median, median_of

from .means import in_order, ratio_of_means, times_as_much
from .published import Kosek
from .runs import QUIC, TCP, Arrivals, KosekRuns, LossyPath, has, shown
from .tables import with_interval

_INSTANTS_S = (2, 15)
_BEHIND = 1.02  # times as long as without proxies, or longer: it is slower

_CONTROLLERS = """Bytes received within the given number of seconds, as a multiple of those of `direct` over
the same path; of `direct` itself, MB. In parentheses the interval of 95 %, as above; without one, nothing
varies, or there is one trial. Without `iw` a proxy has an initial window of 10 packets.
*dropped* is what the satellite's queue towards the client dropped, in percent of the packets, without loss on
the medium. *Returned* are the packets on the way back, nearly all of them acknowledgements, in percent of
those towards the client, also without loss. *Link full*: when the rate first reaches 95 % of the link's, also
without loss. The source's last sections ask for Hybla and BBR, for fewer acknowledgements (`ack=10`: one for
ten packets), for handshakes that are over before (`mode=warm`, which has no round trip left that 0-RTT could
save) and for what an earlier connection knew (`resume=on`)."""
_MODES = """A file over the path, with no loss on the medium: when its first byte came, and when all of it
was there, in seconds. In bold what takes longer than `direct` by more than 2 %.

How long the first byte takes follows from what waits for what. *Direct* needs two round trips of the whole
path, one for the handshake, one for the request. In `sequential` mode each hop's handshake waits for the
next one's, and they nest: their round trips add up to one of the whole path, and the request needs another.
In `parallel` mode the client's handshake is over at once, and the request waits at the terminal for that of
the satellite hop alone. In `warm` mode it waits for nothing: one round trip of the whole path. The source's
`h3` mode takes twice as long as without proxies, since its proxies wait for more: it says that several
messages are exchanged until a hop's connection is set up, one hop after the other."""
_EARLY = """**0-RTT between the proxies**, which the source's section IV hopes for, could not be measured:
Bentpipe's proxies do not send it. Early data can be replayed, and what a client has not sent early must not
become early on the way. It would save a part of what `warm` saves, over whose connections no request waits
for a handshake."""


def sections(study: KosekRuns, chain: str) -> list[str]:
    """The sections that the runs have trials for."""
    parts = []
    if len([one for one in _treatments(study) if _has_duration(study, one)]) > len((DIRECT, chain)):
        parts += ["## Other controllers on the satellite hop", f"{_CONTROLLERS} {_trials(study)}"]
        for name in study.scenarios:
            parts += [f"### {literal(name)}", _over_time(study, name)] if _varied(study, name) else []
    names = [name for name in study.scenarios if _lossless(study, name) is not None]
    if names:
        parts += ["## Files, and what a handshake costs", _MODES]
        parts.append(_early(study, chain, names))
        for name in names:
            parts += [f"### {literal(name)}: files", _of_files(study, name)]
    return parts


def _early(study: KosekRuns, chain: str, names: Sequence[str]) -> str:
    """Why there is no 0-RTT between the proxies, and the most that it could save."""
    text = _EARLY
    for name in names:
        road, warm = study.of_scenario(name)[0], _in_mode(study, chain, "warm")
        parallel_s, warm_s = (_first_byte_s(study, road, QUIC, one) for one in (chain, warm))
        if parallel_s is not None and warm_s is not None:
            text += (
                f" Over {literal(name)} the first byte takes {parallel_s:.3f} s in `parallel` mode and "
                f"{warm_s:.3f} s in `warm` mode: 0-RTT would save at most {parallel_s - warm_s:.3f} s."
            )
    return text


def aside(study: KosekRuns, chain: str) -> list[str]:
    """The section on where the proxies are in the way, if there are trials of some that step aside."""
    known = [one for one in study.chains if has(one, "auto", "on") and _plain(one) == chain]
    return ["## When to step aside", _aside(study, chain, known[0])] if known else []


def _has_duration(study: KosekRuns, treatment: str) -> bool:
    return any((road, QUIC, treatment) in study.arrivals for road in study.roads)


def _lossless(study: KosekRuns, name: str) -> LossyPath | None:
    """The road of a scenario that loses nothing at random, if files have gone over it."""
    known = [road for road in study.of_scenario(name) if not road.share]
    return next((one for one in known if any(road == one for road, _, _ in study.files)), None)


def _trials(study: KosekRuns) -> str:
    """The number of trials, with a caution about random losses."""
    mine = [treatment for treatment in _treatments(study) if _has_duration(study, treatment)]
    counts = [len(one.records) for (_, _, treatment), one in study.arrivals.items() if treatment in mine]
    return (
        f"{trials(counts)} of each: where packets are lost at random, means of so few vary. Multiples of "
        "fewer trials than `direct` has are of its trials with the same random draws."
    )


def _treatments(study: KosekRuns) -> list[str]:
    """The treatments of QUIC."""
    return [DIRECT, *(one for one in study.chains if labels.treatment(one).kind == "quic-pep")]


def _varied(study: KosekRuns, name: str) -> list[LossyPath]:
    """The roads of a scenario with trials of other proxies than the first."""
    measured = {
        road
        for road, transport, treatment in study.arrivals
        if transport == QUIC and treatment not in (DIRECT, study.chain(QUIC))
    }
    return [road for road in study.of_scenario(name) if road in measured]


def _over_time(study: KosekRuns, name: str) -> str:
    roads = _varied(study, name)
    instants = [one for one in _INSTANTS_S if one <= study.until_s]
    columns = [(road, at_s) for road in roads for at_s in instants]
    rows = []
    for one in _treatments(study):
        if all((road, QUIC, one) not in study.arrivals for road in roads):
            continue
        lossless = study.arrivals.get((roads[0], QUIC, one))
        full = "-" if lossless is None else lossless.when_full(study.rate_bps(roads[0]))
        texts = [_multiple_at(study, road, one, at_s) for road, at_s in columns]
        count = [len(it.records) for road in roads if (it := study.arrivals.get((road, QUIC, one)))]
        shares = [_per_packet(lossless, column) for column in ("forward_queue_drops", "return_packets")]
        rows.append([literal(shown(one)), trials(count).partition(" trial")[0], *texts, full, *shares])
    head = ["", "trials", *(f"{road.loss}: {at_s} s" for road, at_s in columns)]
    head += [f"{what}, {roads[0].loss}" for what in ("link full", "dropped", "returned")]
    return table(head, rows)


def _multiple_at(study: KosekRuns, road: LossyPath, treatment: str, at_s: float) -> str:
    if treatment == DIRECT:
        direct = study.direct(road)
        return "-" if direct is None else f"{direct.at(at_s).mean() / 1e6:.2f} MB"
    both = study.pair(road, treatment)
    return "-" if both is None else with_interval(times_as_much(*both, at_s))


def _per_packet(arrivals: Arrivals | None, what: str) -> str:
    """In percent of the packets towards the client; the median over the trials."""
    if arrivals is None:
        return "-"
    known = [one for one in arrivals.records if one.forward_packets and getattr(one, what) is not None]
    return number(median(100 * getattr(one, what) / one.forward_packets for one in known), 1, " %")


def _of_files(study: KosekRuns, name: str) -> str:
    road = _lossless(study, name)
    assert road is not None
    sizes = [size for size in study.workloads if (road, DIRECT, size) in study.files]
    direct = {size: study.files.get((road, DIRECT, size)) for size in sizes}
    rows = []
    for one in _treatments(study):
        mine = {size: study.files.get((road, one, size)) for size in sizes}
        if not any(mine.values()):
            continue
        first = _against(median_of(mine[sizes[0]], "ttfb_s"), median_of(direct[sizes[0]], "ttfb_s"))
        done = [
            _against(median_of(mine[size], "completion_s"), median_of(direct[size], "completion_s"))
            for size in sizes
        ]
        rows.append([literal(shown(one)), first, *done])
    titles = [workload.title(size).removeprefix("transfer of ") for size in sizes]
    return table(["", "first byte", *titles], rows)


def _against(value: float | None, direct: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}"
    return f"**{text}**" if direct is not None and value > _BEHIND * direct else text


def first_bytes(study: KosekRuns, chains: dict[str, str], known: Kosek) -> list[list[str]]:
    """Rows of the table at a glance: the first byte since the client's first packet, without proxies, with
    them and in each handshake mode; beside it what was published of the same, but for what a browser adds.
    """
    rows = []
    for name in study.scenarios:
        then = known.scenarios.get(name)
        road = study.of_scenario(name)[0]
        for transport, chain in chains.items():
            word = f"{name}, {'TCP' if transport == TCP else 'QUIC'}: first byte"
            # With pages the source's proxies of QUIC make their handshakes one after the other.
            told: list[tuple[str, str | None, str]] = [("direct", DIRECT, "-"), ("proxies", chain, "-")]
            if transport == QUIC:
                sequential = _in_mode(study, chain, "sequential")
                told = [
                    ("direct", DIRECT, "-" if then is None else f"{then.response_start_s:.3f} s, HTTP/3"),
                    ("proxies, parallel handshakes", chain, "-"),
                    ("proxies, one handshake after the other", sequential,
                     "-" if then is None else f"{then.response_start_proxies_s:.3f} s, HTTP/3"),
                    ("proxies, handshakes over before", _in_mode(study, chain, "warm"), "-"),
                ]  # fmt: skip
            elif then is not None:
                told = [
                    ("direct", DIRECT, f"{then.tcp_response_start_s:.3f} s, HTTP/1.1 without TLS"),
                    ("proxies", chain, f"{then.tcp_response_start_proxies_s:.3f} s, HTTP/1.1 without TLS"),
                ]
            for words, treatment, published in told:
                here = _first_byte(study, road, transport, treatment)
                rows.append([f"{word}, {words}", here, published])
    return rows


def _first_byte(study: KosekRuns, road: LossyPath, transport: str, treatment: str | None) -> str:
    return number(_first_byte_s(study, road, transport, treatment), 3, " s")


def _first_byte_s(study: KosekRuns, road: LossyPath, transport: str, treatment: str | None) -> float | None:
    """The median over all trials of a treatment, whatever they transfer."""
    mine = study.arrivals.get((road, transport, treatment or ""))
    times = [] if mine is None else [one.ttfb_s for one in mine.records]
    for size in study.workloads if transport == QUIC else []:
        cell = study.files.get((road, treatment or "", size))
        times += cell.values("ttfb_s") if cell else []
    return median(times)


def _in_mode(study: KosekRuns, chain: str, mode: str) -> str | None:
    """The chain that is `chain` but for its handshake mode."""
    for one in study.chains:
        if has(one, "mode", mode) and one.replace(f":mode={mode}", "") == chain:
            return one
    return None


def _aside(study: KosekRuns, chain: str, automatic: str) -> str:
    shares = _shares(study, [chain, automatic])
    mine = [both[1] for both in shares.values() if both[1] is not None]
    what, end = f"`{shown(chain)}`", ""
    if mine:
        behind = [share for share in mine if _is_behind(share)]
        end = (
            f"\n\nWith `{_added(automatic)}` it is slower than `direct` in {len(behind)} of the {len(mine)} "
            f"settings that it was run in, in {sum(one.p is not None and _is_shown(one) for one in behind)} "
            "of them significantly."
        )
    rows = [[title, *map(_share, both)] for title, both in shares.items() if any(map(_is_behind, both))]
    if not rows:
        return f"In no setting is {what} slower than `direct` by more than 2 %.{end}"
    text = (
        f"Where {what} takes more than 2 % longer than `direct`, or, of a duration, has received that much "
        "less: its time as a share of that without proxies, of means over the trials; in "
        "parentheses where the trials do not show that the two differ (a t test, adjusted by "
        "Benjamini and Hochberg since many settings are looked at, p ≥ 0.05). A proxy that steps aside "
        "forwards untouched what would cross a hop whose round trip is short "
        "([docs/reference/pep.md](../../docs/reference/pep.md#stepping-aside))."
    )
    head = ["", shown(chain), "the same that steps aside"]
    return f"{text}\n\n{table(head[: len(rows[0])], rows)}{end}"


def _shares(study: KosekRuns, treatments: Sequence[str]) -> dict[str, list[Ratio | None]]:
    """By setting, for each treatment; how probable each is by chance is adjusted over all."""
    settings = dict(_settings(study))
    found = [one.share(treatment) for one in settings.values() for treatment in treatments]
    chances = adjusted([None if one is None else one.p for one in found])
    fair = iter(None if one is None else replace(one, p=p) for one, p in zip(found, chances, strict=True))
    return {title: [next(fair) for _ in treatments] for title in settings}


def _is_shown(share: Ratio) -> bool:
    """Whether it is no chance that it is another than 1, or there is one trial alone, which cannot tell."""
    return share.p is None or share.p < FALSE_DISCOVERIES


def _is_behind(share: Ratio | None) -> bool:
    return share is not None and share.value > _BEHIND


def _share(share: Ratio | None) -> str:
    if share is None:
        return percent(None)
    return percent(share.value) if _is_shown(share) else f"({percent(share.value)})"


def _added(automatic: str) -> str:
    return "mode=warm auto=on" if has(automatic, "mode", "warm") else "auto=on"


def _plain(chain: str) -> str:
    """A chain that steps aside, without that and without the mode in which it measures ahead."""
    return chain.replace(":auto=on", "").replace(":mode=warm", "")


class _Setting:
    """The time that a treatment takes over a path, as a share of the time of `direct`."""

    def __init__(self, study: KosekRuns, road: LossyPath, size: str | None) -> None:
        self._study, self._road, self._size = study, road, size

    def share(self, treatment: str) -> Ratio | None:
        """That share; None without the trials."""
        if self._size is None:
            pair = self._study.pair(self._road, treatment)
            return None if pair is None else times_as_much(pair[1], pair[0], float(pair[0].times[-1]))
        both = [self._study.files.get((self._road, one, self._size)) for one in (DIRECT, treatment)]
        if both[0] is None or both[1] is None:
            return None
        direct, proxied = (one.values("completion_s") for one in (both[0], both[1]))
        seeds = [[record.seed for record in one.ok] for one in (both[0], both[1])]
        paired = in_order(seeds) and len(direct) == len(proxied) == len(seeds[0])
        return ratio_of_means([direct], [proxied], paired=paired)


def _settings(study: KosekRuns) -> Iterator[tuple[str, _Setting]]:
    for road in study.roads:
        if study.until_s:
            yield f"{literal(road.title)}: {study.until_s:g} s", _Setting(study, road, None)
        for size in study.workloads:
            title = workload.title(size).removeprefix("transfer of ")
            yield f"{literal(road.title)}: {title}", _Setting(study, road, size)
