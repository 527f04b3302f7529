"""Published values on handshakes, congestion control and packets: the types of `published.toml`."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.study.published import Table, read


class LongRtt(Table, frozen=True):
    """The test case LONGRTT: pairs of stacks that failed, and shares of pairs in percent."""

    source: str
    rtt_ms: float
    timeout_s: float
    failed: tuple[str, ...]
    never: tuple[str, ...]
    succeed_percent: float
    fail_percent: float


class PublishedServer(Table, frozen=True):
    """A server over the thesis's links: kbit/s, None where it failed or has no value."""

    listed: str  # its congestion controls
    sat: float | None = None
    satloss: float | None = None

    def bps(self, scenario: str) -> float | None:
        kbps = {"sat": self.sat, "satloss": self.satloss}.get(scenario)
        return None if kbps is None else 1000 * kbps


class ReturnLink(Table, frozen=True):
    """Rates of the return link."""

    source: str
    least: str
    largest_kbps: float


class PacketNumbers(Table, frozen=True):
    """Observations on packet numbers."""

    source: str
    text: str


class _File(Table, frozen=True):
    """The tables of the file."""

    sources: dict[str, str]
    longrtt: LongRtt
    servers: dict[str, str | PublishedServer]  # `source`, `client`, and stack → its figures
    return_link: ReturnLink
    packet_numbers: PacketNumbers
    packet_sizes: dict[str, str]  # `source`, and stack → QUIC packets in bytes


@dataclass(frozen=True)
class Published:
    """All of it."""

    sources: dict[str, str]
    longrtt: LongRtt
    servers: dict[str, PublishedServer]
    servers_source: str
    servers_client: str
    return_link: ReturnLink
    packet_numbers: PacketNumbers
    packet_sizes: dict[str, str]
    packet_sizes_source: str


def load() -> Published:
    said = read(__file__, _File)
    sizes = dict(said.packet_sizes)
    return Published(
        said.sources,
        said.longrtt,
        {name: one for name, one in said.servers.items() if isinstance(one, PublishedServer)},
        str(said.servers["source"]),
        str(said.servers["client"]),
        said.return_link,
        said.packet_numbers,
        sizes,
        sizes.pop("source"),
    )
