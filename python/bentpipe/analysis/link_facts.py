"""Facts about a trial's path and files besides its trace: rates, delay, queues, the ideal sender's time.

`bentpipe-trace analyze --link` takes these facts, and figures draw them as lines. They come from the summary
of the scenario in the run's manifest; runs of earlier versions know fewer. Where proxies split the path, what
a connection crosses is one hop of it, whose rate and delay are not those of the whole: they are unknown then.
So they are where a scenario has several paths, and a connection may take all of them.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from bentpipe import workload
from bentpipe.plan.treatments import DIRECT
from bentpipe.runs.records import Record


@dataclass(frozen=True)
class LinkFacts:
    """Facts about a path, each of which may be unknown. Rates and queues are those of the bottleneck, in
    bit/s and bytes of IP packets.
    """

    forward_rate_bps: int | None = None
    return_rate_bps: int | None = None
    rtt_ms: float | None = None  # both ways, without queues and transmission
    forward_queue_bytes: int | None = None
    return_queue_bytes: int | None = None
    forward_marks: bool | None = None  # whether a queue marks packets of ECN-capable senders (RFC 3168)
    return_marks: bool | None = None
    mtu_bytes: int | None = None  # the largest IP packet
    limit_s: float | None = None  # completion time of an ideal sender
    size_bytes: int | None = None  # of the files that were asked for
    sender: str | None = None  # who sends them: client or server
    saved_round_trips: int = 0  # that the client's options spare the ideal sender; for figures alone

    def known(self) -> dict[str, Any]:
        """The facts that are known, as --link takes them."""
        facts = dataclasses.asdict(self)
        del facts["saved_round_trips"]
        return {name: value for name, value in facts.items() if value is not None}

    @property
    def bdp_bytes(self) -> int | None:
        """Bandwidth-delay product towards the client."""
        if self.forward_rate_bps is None or self.rtt_ms is None:
            return None
        return int(self.forward_rate_bps * self.rtt_ms / 8e3)


def of_trial(summary: dict[str, Any], record: Record) -> LinkFacts:
    """The facts of a trial with `record` over the scenario with `summary`."""
    names = {field.name for field in dataclasses.fields(LinkFacts)}
    # Where middleboxes encapsulate, there are connections of the trial and none of its hops. Of a tunnel from
    # end to end there are no hops.
    of_hops = [hop.connections for hop in record.hops]
    in_chain = record.connections is not None and set(of_hops) == {None}
    encapsulated = record.tunnel is not None or in_chain
    whole = record.treatment == DIRECT or encapsulated
    known = {
        name: value for name, value in summary.items() if name in names and (whole or name == "mtu_bytes")
    }
    if summary.get("paths"):  # rates, delays and queues are those of one of several paths
        known = {name: value for name, value in known.items() if name == "mtu_bytes"}
    inner = [one.mtu_bytes for one in (*record.proxies, record.tunnel) if one is not None and one.mtu_bytes]
    if inner:
        known["mtu_bytes"] = min(inner)
    of_files = workload.parse(record.workload, record.trial)
    return LinkFacts(
        **known,
        limit_s=record.limit_s if whole else None,
        size_bytes=None if of_files.duration_ms is not None else of_files.measured_of(record.size_bytes),
        sender=workload.TESTCASES[of_files.testcase].sender,
        saved_round_trips=record.saved_round_trips,
    )
