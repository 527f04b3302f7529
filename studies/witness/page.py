"""The page that holds Bentpipe against pico_sim: the same library over the same paths, in two simulators.

pico_sim runs while the page is written. Three things differ between the two, and the page shows what each
of them does, by leaving it in: where a transfer ends, what of a packet a link counts, and the server's
certificate. Each is taken out where it can be: the end in what pico_sim logs, the link's rate and the
certificate by settings of the run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from bentpipe.runs.records import Record
from bentpipe.study import closing, markdown
from bentpipe.study.intervals import with_ends
from bentpipe.study.markdown import percent, several, table
from bentpipe.study.source import Source

from . import queues
from .simulator import PicoSim, SimulatedPath, Times

HEADERS = 28  # bytes of IPv4 and UDP
PAYLOAD = 1440  # bytes of picoquic's full packets, of UDP payload
SIMULATIONS = 5  # of each setting
CLOSE = 0.01  # as a share: what is nearer agrees
SOURCES = {
    "pico_sim": "C. Huitema and others, picoquic, `p_sim/pico_sim.c` and `picohttp/picoquic_ns.c`, in the "
    "sources that the stack picoquic is built from (endpoints/picoquic/build.sh)",
}
_HOW = f"""Seconds from the client's start to the last byte: medians, with the smallest and largest.
pico_sim draws its connection IDs at random and has no seed, so it runs {SIMULATIONS} times over each path.
*difference* is by how much Bentpipe's median is above pico_sim's."""
_END = """**Its end.** pico_sim stops when the client has disconnected, a round trip after the data. Bentpipe
ends at the last byte. Taken out by reading pico_sim's own qlog: the last packet with data of the stream that
reached its client."""
_LINK = f"""**Its link.** pico_sim's link counts UDP payload, Bentpipe's whole IP packets: {HEADERS} bytes
more for each of {PAYLOAD}. Taken out by a link that is faster by {PAYLOAD + HEADERS}/{PAYLOAD} in Bentpipe.
*its link, there*: taken out on the other side, by a link of pico_sim's that is slower by as much."""
_CERTIFICATE = """**Its certificate.** The RSA certificate of pico_sim's server takes two datagrams, the
Ed25519 certificate of Bentpipe's one. With it picoquic's first sample of the bandwidth differs, from which it
sets its first window. Taken out by `cert=rsa`, which has Bentpipe's server show the same certificate."""
_COLUMNS = """Differences in percent, as above. *none*: all three are taken out. Then those with one of them
left in, and *all*: the two as they are."""
_LIMITS = """- Both simulators run the same library. They show that Bentpipe's links, queue and clock, and the
program around the library, do to picoquic what picoquic's own do; they say nothing about picoquic.
- pico_sim's clock begins at 0, Bentpipe's in the year 2000. picoquic's CUBIC puts the start of its epoch
so far back when it leaves slow start that it may lie before 0, and cuts it off there (`cubic.c`). Bentpipe's
times with CUBIC over deep queues are a little longer for that. It was tried: with a clock that begins at 0
in the program (`zero_time` in `endpoints/c-family/job.c`) the difference over 600 ms was gone.
- A queue of 15 ms holds 25 packets. There a packet more or less decides what BBR and C4 do for seconds, so
that the smallest change of the path is amplified.
- One path of one rate without random loss, jitter or competing flows; no ECN, no proxies. Queue disciplines
have [a page of their own](witness-queues.md)."""


@dataclass(frozen=True, order=True)
class Setting:
    """A queue and a congestion control."""

    queue_ms: float
    congestion: str


@dataclass(frozen=True)
class Comparison:
    """The results of both simulators in a setting, in seconds."""

    setting: Setting
    ours: dict[tuple[bool, bool], list[float]]  # (is the rate of payload?, is the certificate RSA's?) → times
    theirs: list[Times]  # at the rate of the run
    slowed: list[Times]  # with a link that is slower by the headers

    def difference(self, *, end: bool = False, link: bool = False, certificate: bool = False) -> float:
        """By how much Bentpipe is above pico_sim, as a share; each argument leaves its difference in."""
        ours = self.ours[not link, not certificate]
        return statistics.median(ours) / statistics.median(map(_ended if end else _last, self.theirs)) - 1

    @property
    def with_link_there(self) -> float:
        """With the link's difference taken out in pico_sim, and the other two as in `difference`."""
        return statistics.median(self.ours[False, True]) / statistics.median(map(_last, self.slowed)) - 1

    @property
    def is_close(self) -> bool:
        return abs(self.difference()) <= CLOSE


def _last(one: Times) -> float:
    return one.last_data_s


def _ended(one: Times) -> float:
    return one.disconnected_s


@dataclass(frozen=True)
class Page:
    """The run of the page. `simulate` runs pico_sim."""

    source: Source
    simulate: Callable[[SimulatedPath], Times]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        found: dict[Setting, dict[tuple[bool, bool], list[float]]] = {}
        for one in self.source.in_order:
            if one.completion_s is not None:
                of_payload = self._rate_bps(one) > self.rate_bps
                is_rsa = one.cell_key.server_label.options.get("cert") == "rsa"
                times = found.setdefault(self._setting(one), {})
                times.setdefault((of_payload, is_rsa), []).append(one.completion_s)
        wanted = {(rate, certificate) for rate in (False, True) for certificate in (False, True)}
        if not found or any(times.keys() != wanted for times in found.values()):
            raise self.source.refused(
                "each setting needs both rates, with cert=rsa and without", "study witness"
            )
        return [self._compare(setting, found[setting]) for setting in sorted(found)]

    def _compare(self, setting: Setting, ours: dict[tuple[bool, bool], list[float]]) -> Comparison:
        slower = self.rate_bps * PAYLOAD / (PAYLOAD + HEADERS)
        theirs, slowed = (self._simulated(setting, rate) for rate in (self.rate_bps, slower))
        return Comparison(setting, ours, theirs, slowed)

    def _simulated(self, setting: Setting, rate_bps: float) -> list[Times]:
        path = SimulatedPath(setting.congestion, self.size_bytes, rate_bps, self.rtt_ms / 2, setting.queue_ms)
        return [self.simulate(path) for _ in range(SIMULATIONS)]

    def _summary(self, one: Record) -> dict[str, object]:
        return self.source.manifest.scenarios[one.scenario].summary

    def _rate_bps(self, one: Record) -> float:
        return float(str(self._summary(one)["forward_rate_bps"]))

    def _setting(self, one: Record) -> Setting:
        queue_bytes = float(str(self._summary(one)["forward_queue_bytes"]))
        queue_ms = round(8e3 * queue_bytes / self._rate_bps(one))
        return Setting(queue_ms, one.cell_key.server_label.options["cc"])

    def _only(self, what: str, values: set[float]) -> float:
        if len(values) != 1:
            raise self.source.refused(f"wanted is one {what}, not {len(values)}", "study witness")
        return values.pop()

    @cached_property
    def rate_bps(self) -> float:
        """Of IP packets; pico_sim has it for UDP payload."""
        rates = sorted({self._rate_bps(one) for one in self.source.records})
        if len(rates) != 2 or abs(rates[1] / rates[0] * PAYLOAD / (PAYLOAD + HEADERS) - 1) > 1e-6:
            raise self.source.refused(
                f"wanted are two rates, one {PAYLOAD + HEADERS}/{PAYLOAD} times the other", "study witness"
            )
        return rates[0]

    @cached_property
    def rtt_ms(self) -> float:
        return self._only("delay", {float(str(self._summary(one)["rtt_ms"])) for one in self.source.records})

    @cached_property
    def size_bytes(self) -> int:
        return int(self._only("size", {float(one.size_bytes) for one in self.source.records}))


def write(runs: Sequence[Source], folder: Path) -> list[Path]:
    """Write to `folder` the page of the run over drop-tail queues, and that of the run behind queue
    disciplines, if they are there. BentpipeError if a run is not of this study's paths, or pico_sim is not
    installed.
    """
    files = []
    for source in runs:
        if queues.is_of(source):
            name, parts = (
                "witness-queues",
                queues.sections(queues.Page(source, queues.Simulators.installed())),
            )
        else:
            name, parts = "witness", sections(Page(source, PicoSim.installed().run))
        files.append(folder / f"{name}.md")
        files[-1].write_text(markdown.page(parts))
    return files


def sections(page: Page) -> list[str]:
    """The page, part by part."""
    return [
        "# An independent witness",
        _opening(page),
        _HOW,
        _both(page),
        "## The three differences",
        _END,
        _LINK,
        _CERTIFICATE,
        _COLUMNS,
        _left_in(page),
        _effects(page),
        "## Limits",
        _LIMITS,
        *closing.failures(page.source.records),
        *closing.made(page.source, SOURCES),
    ]


def _opening(page: Page) -> str:
    found = page.comparisons
    close = [one for one in found if one.is_close]
    widest = max(found, key=lambda one: abs(one.difference()))
    return (
        "picoquic brings a simulator of its own, `pico_sim`, by other people and with other links, queues "
        f"and clock than Bentpipe's. The same library moves {page.size_bytes / 2**20:g} MiB over the same "
        f"paths in both: {page.rate_bps / 1e6:g} Mbit/s both ways, a round trip of {page.rtt_ms:g} ms, and "
        f"{several(len(found), 'setting')} of queue and congestion control. In {len(close)} of them the two "
        f"agree within {percent(CLOSE)}, once three known differences are taken out. The widest difference "
        f"is {_percent(widest.difference())} %, with {widest.setting.congestion} and a queue of "
        f"{widest.setting.queue_ms:g} ms."
    )


def _both(page: Page) -> str:
    rows = [
        [
            f"{one.setting.queue_ms:g}",
            one.setting.congestion,
            _range(one.ours[True, True]),
            _range([_last(time) for time in one.theirs]),
            _percent(one.difference()),
        ]
        for one in page.comparisons
    ]
    return table(["queue, ms", "congestion control", "Bentpipe, s", "pico_sim, s", "difference, %"], rows, 2)


def _left_in(page: Page) -> str:
    rows = [
        [f"{one.setting.queue_ms:g}", one.setting.congestion, *map(_percent, _kept(one))]
        for one in page.comparisons
    ]
    head = ["queue, ms", "congestion control", "none", "its end", "its link", "its certificate", "all"]
    return table([*head, "none, its link there"], rows, 2)


def _kept(one: Comparison) -> list[float]:
    return [
        one.difference(),
        one.difference(end=True),
        one.difference(link=True),
        one.difference(certificate=True),
        one.difference(end=True, link=True, certificate=True),
        one.with_link_there,
    ]


def _effects(page: Page) -> str:
    columns = [[abs(one) for one in column] for column in zip(*map(_kept, page.comparisons), strict=True)]
    none, end, link, certificate, together, there = (
        f"{_percent(statistics.median(one), '')} % (up to {_percent(max(one), '')} %)" for one in columns
    )
    return (
        f"Without regard to sign the median difference, and the largest, are {none} with none left in, {end} "
        f"with the end, {link} with the link, {certificate} with the certificate and {together} with all "
        f"three. With the link's taken out in pico_sim in place of Bentpipe they are {there}."
    )


def _percent(share: float, sign: str = "+") -> str:
    return f"{100 * share:{sign}.1f}"


def _range(times: Sequence[float]) -> str:
    return with_ends(statistics.median(times), min(times), max(times))
