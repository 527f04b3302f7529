"""The summary that `bentpipe trace` prints of a connection without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from bentpipe.schema.analysis import AddressChange, Passive, RttSpread, SpinBit

_Of = TypeVar("_Of")

UNKNOWN = "-"
_MOST = 3  # connection IDs of an end, and addresses, that are printed
_NO_SPIN: dict[SpinBit, str] = {
    "absent": "no 1-RTT packets",
    "constant": "the spin bit does not change",
    "random": "the spin bit is drawn at random",
    "spins": "it changed too seldom",
}


def names(passive: Passive) -> Iterator[str]:
    """Lines with the server name, the application protocols and the later addresses of a connection."""
    said = [f"server name {passive.server_name}"] if passive.server_name else []
    if passive.alpn:
        said.append(f"ALPN {', '.join(passive.alpn)}")
    if said:
        yield "; ".join(said)
    yield from map(_moved, passive.later_addresses[:_MOST])
    if (more := len(passive.later_addresses) - _MOST) > 0:
        yield f"{more} more addresses (--json has them)"


def connection_ids(passive: Passive) -> Iterator[str]:
    """A line with the known connection IDs."""
    ids = passive.connection_ids
    said = [
        f"to the {end} {_some(known)}"
        for end, known in (("client", ids.client), ("server", ids.server))
        if known
    ]
    if said:
        yield f"connection IDs: {'; '.join(said)}"


def whole(passive: Passive) -> Iterator[tuple[str, str]]:
    """The measures of the whole connection that need no secrets, by name."""
    handshake_ms = passive.handshake_rtt_ms
    yield "handshake round trip", UNKNOWN if handshake_ms is None else f"{handshake_ms:.1f} ms"
    if passive.spin_bit is not None:
        none = f"{UNKNOWN} ({_NO_SPIN[passive.spin_bit]})"
        yield "RTT by the spin bit", _spread(passive.spin_rtt) or none
    yield "RTT by both sides", _spread(passive.matched_rtt) or f"{UNKNOWN} (one side was captured)"
    yield "server/client bytes", _ratio(passive)


def one_way(passive: Passive) -> Iterator[tuple[str, str, str]]:
    """Rows with a value for each direction, forward first."""
    bursts = (passive.bursts.server, passive.bursts.client)
    yield "bursts", *_both(bursts, lambda it: f"{it.bursts:,}")
    yield "  longest, datagrams", *_both(bursts, lambda it: f"{it.longest_datagrams:,}")
    yield "  share of bytes in > 10", *_both(bursts, lambda it: f"{it.long_share * 100:.2f} %")
    bits = (passive.loss_bits.server, passive.loss_bits.client)
    if any(bits):
        yield "lost before, by Q bits", *_both(bits, lambda it: f"{it.upstream_lost_share * 100:.2f} %")
        yield "lost in all, by L bits", *_both(bits, lambda it: f"{it.reported_lost_share * 100:.2f} %")


def _ratio(passive: Passive) -> str:
    """The ratio of bytes from the server to bytes from the client."""
    bytes_, datagrams = passive.bytes_ratio, passive.datagrams_ratio
    if bytes_ is None or datagrams is None:
        return UNKNOWN
    return f"{bytes_:.2f} (datagrams {datagrams:.2f})"


def _both(ways: tuple[_Of | None, _Of | None], show: Callable[[_Of], str]) -> tuple[str, str]:
    forward, back = (UNKNOWN if way is None else show(way) for way in ways)
    return forward, back


def _spread(rtt: RttSpread) -> str | None:
    """None without samples."""
    if not rtt.samples:
        return None
    return f"{rtt.min_ms:.1f} / {rtt.median_ms:.1f} / {rtt.max_ms:.1f} ms (min/median/max of {rtt.samples:,})"


def _moved(change: AddressChange) -> str:
    return f"the {change.end} sends from {change.address} from {change.at_s:.3f} s on"


def _some(ids: list[str]) -> str:
    shown = ", ".join(one or "of no bytes" for one in ids[:_MOST])
    return shown if len(ids) <= _MOST else f"{shown} and {len(ids) - _MOST} more"
