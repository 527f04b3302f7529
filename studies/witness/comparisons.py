"""The times of picoquic in Bentpipe beside those in pico_sim, over the same paths with drop-tail queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from bentpipe.runs.records import Record
from bentpipe.study.source import Source

from .difference import Difference
from .simulator import SimulatedPath, Times

HEADERS = 28  # bytes of IPv4 and UDP
PAYLOAD = 1440  # bytes of picoquic's full packets, of UDP payload
SIMULATIONS = 5  # of each setting
CLOSE = 0.01  # as a share: what is nearer agrees

_Kind = tuple[bool, bool]  # of our trials: is the rate of payload? is the certificate RSA's?


@dataclass(frozen=True, order=True)
class Setting:
    """A queue and a congestion control."""

    queue_ms: float
    congestion: str


@dataclass(frozen=True)
class Comparison:
    """The results of both simulators in a setting, in seconds."""

    setting: Setting
    ours: dict[_Kind, list[float]]  # times
    theirs: list[Times]  # at the rate of the run
    slowed: list[Times]  # with a link that is slower by the headers
    failed: dict[_Kind, int]  # how many of our trials have no time

    def difference(self, *, end: bool = False, link: bool = False, certificate: bool = False) -> Difference:
        """By how much Bentpipe is above pico_sim; each argument leaves its difference in."""
        theirs = [_ended(one) if end else _last(one) for one in self.theirs]
        mine = not link, not certificate
        return Difference(theirs, self.ours[mine], CLOSE, self.failed[mine])

    @property
    def with_link_there(self) -> Difference:
        """With the link's difference taken out in pico_sim, and the other two as in `difference`."""
        mine = False, True
        return Difference(list(map(_last, self.slowed)), self.ours[mine], CLOSE, self.failed[mine])


def _last(one: Times) -> float:
    return one.last_data_s


def _ended(one: Times) -> float:
    return one.disconnected_s


@dataclass(frozen=True)
class DropTailRun:
    """The run over drop-tail queues. `simulate` runs pico_sim."""

    source: Source
    simulate: Callable[[SimulatedPath], Times]

    @cached_property
    def comparisons(self) -> list[Comparison]:
        found: dict[Setting, dict[_Kind, list[float | None]]] = {}
        for one in self.source.in_order:
            of_payload = self._rate_bps(one) > self.rate_bps
            is_rsa = one.cell_key.server_label.options.get("cert") == "rsa"
            times = found.setdefault(self._setting(one), {})
            times.setdefault((of_payload, is_rsa), []).append(one.completion_s)
        wanted = {(rate, certificate) for rate in (False, True) for certificate in (False, True)}
        succeeded = [{key for key, times in one.items() if set(times) != {None}} for one in found.values()]
        if not found or any(kinds != wanted for kinds in succeeded):
            raise self.source.refused(
                "each setting needs both rates, with cert=rsa and without", "study witness"
            )
        return [self._compare(setting, found[setting]) for setting in sorted(found)]

    def _compare(self, setting: Setting, every: dict[_Kind, list[float | None]]) -> Comparison:
        slower = self.rate_bps * PAYLOAD / (PAYLOAD + HEADERS)
        theirs, slowed = (self._simulated(setting, rate) for rate in (self.rate_bps, slower))
        ours = {key: [one for one in times if one is not None] for key, times in every.items()}
        failed = {key: times.count(None) for key, times in every.items()}
        return Comparison(setting, ours, theirs, slowed, failed)

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
