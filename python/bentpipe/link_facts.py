"""What is known of a trial's path beside its trace: rates, delay, queues, the ideal sender's completion time.

`bentpipe-trace analyze --link` takes these facts, and figures draw them as lines. They come from the scenario
in the run's manifest, which the link model has resolved and written in its normal form: number, space, unit.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from bentpipe.errors import BentpipeError
from bentpipe.records import Record

# What a queue that counts packets is taken to hold for each: the largest packet that Ethernet carries.
PACKET_BYTES = 1500

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SIZE = re.compile(r"([0-9.]+) ?(\S+)")


@dataclass(frozen=True)
class LinkFacts:
    """Each may be unknown. Rates and queues are those of the bottleneck, in bit/s and bytes of IP packets."""

    forward_rate_bps: int | None = None
    return_rate_bps: int | None = None
    rtt_ms: float | None = None  # both ways, without queues and transmission
    forward_queue_bytes: int | None = None
    return_queue_bytes: int | None = None
    limit_s: float | None = None  # completion time of an ideal sender
    size_bytes: int | None = None  # of the file that was asked for

    def known(self) -> dict[str, Any]:
        """The facts that are known, as --link takes them."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @property
    def bdp_bytes(self) -> int | None:
        """Bandwidth-delay product towards the client."""
        if self.forward_rate_bps is None or self.rtt_ms is None:
            return None
        return int(self.forward_rate_bps * self.rtt_ms / 8e3)


def of_trial(resolved: dict[str, Any], record: Record | None) -> LinkFacts:
    """The facts of a trial over `resolved`, an entry of the manifest's scenarios: {"scenario", "summary"}."""
    summary, segment = resolved["summary"], resolved["scenario"].get("satellite", {})
    rates = {way: _whole(summary.get(f"{way}_rate_bps")) for way in ("forward", "return")}
    rtt_ms = summary.get("rtt_ms")
    queues = {way: _queue_bytes(segment.get(way, {}).get("queue"), rates[way], rtt_ms) for way in rates}
    return LinkFacts(
        rates["forward"],
        rates["return"],
        rtt_ms,
        queues["forward"],
        queues["return"],
        record.limit_s if record else None,
        record.size_bytes if record else None,
    )


def _whole(rate: float | None) -> int | None:
    return None if rate is None else int(rate)


def _queue_bytes(queue: Any, rate_bps: int | None, rtt_ms: float | None) -> int | None:
    """What a queue holds; None without a limit, or if that depends on a rate that has none."""
    size = queue.get("size") if isinstance(queue, dict) else queue
    if size is None:
        return None
    match = _SIZE.fullmatch(size)
    if match is None:
        raise BentpipeError(f'the queue "{size}" of the scenario in the manifest is no number with a unit')
    number, unit = float(match[1]), match[2]
    if unit in ("packet", "packets"):
        return int(number) * PACKET_BYTES
    if unit in _BYTES:
        return int(number * _BYTES[unit])
    if rate_bps is None:
        return None
    if unit in _SECONDS:
        return int(rate_bps / 8 * number * _SECONDS[unit])
    if unit == "BDP" and rtt_ms is not None:
        return int(rate_bps / 8e3 * rtt_ms * number)
    raise BentpipeError(f'the queue "{size}" of the scenario in the manifest has an unknown unit')
