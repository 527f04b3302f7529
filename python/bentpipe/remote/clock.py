"""The offset of a host's clock from this machine's, by exchanges of four time stamps.

The offset is half the difference of both ways, if these take equally long; of many exchanges the tenth with
the shortest round trips is used. Half of what these took in the mean bounds the error: on a control
connection that goes over a satellite this is a large bound, and with unequal ways a real error, of half their
difference. Who knows that difference can tell it. It is taken to be right to a tenth: what is left of the
round trip may then have been on either way, and half of that, with the tenth, is the bound. All times are in
nanoseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_LEAST = 5  # exchanges that are used, where there are enough
_DOUBT = 0.1  # the share by which a given asymmetry may be wrong
_LONG_NS = 20 * 10**9  # the time after which a drift exceeds the noise: 20 ppm are 0.4 ms


@dataclass(frozen=True)
class Exchange:
    """A question and its answer: when each was sent and received."""

    asked_ns: int  # here
    received_ns: int  # there
    answered_ns: int  # there
    arrived_ns: int  # here

    @property
    def offset_ns(self) -> int:
        """The lead of the host's clock, if both ways take equally long."""
        return ((self.received_ns - self.asked_ns) + (self.answered_ns - self.arrived_ns)) // 2

    @property
    def round_trip_ns(self) -> int:
        return (self.arrived_ns - self.asked_ns) - (self.answered_ns - self.received_ns)


@dataclass(frozen=True)
class Offset:
    """The lead of one clock over another."""

    offset_ns: float  # at `at_ns`
    drift: float  # its growth with each nanosecond
    at_ns: int
    error_ns: float  # it is not further off than that

    def at(self, time_ns: int) -> float:
        return self.offset_ns + self.drift * (time_ns - self.at_ns)


def offset(exchanges: Sequence[Exchange], asymmetry_ns: float = 0.0) -> Offset:
    """The offset that exchanges show; there is one at least. `asymmetry_ns` is the difference of the delay
    there and the delay back. ValueError if they took less than that, there and back together.
    """
    unequal_ns = abs(asymmetry_ns)
    best = sorted(exchanges, key=lambda one: one.round_trip_ns)
    best = best[: max(len(best) // 10, _LEAST)]
    times = [one.asked_ns for one in best]
    middle = sum(times) // len(times)
    mean = sum(one.offset_ns for one in best) / len(best)
    drift = 0.0
    if max(times) - min(times) >= _LONG_NS and len(best) >= _LEAST:
        spread = sum((time - middle) ** 2 for time in times)
        drift = sum((one.asked_ns - middle) * (one.offset_ns - mean) for one in best) / spread
    if best[0].round_trip_ns < unequal_ns * (1 - _DOUBT):
        raise ValueError(f"an exchange took {best[0].round_trip_ns / 1e6:g} ms, there and back")
    # Each is off by half its round trip at most, so their mean is by half of theirs. Where the ways differ by
    # the given asymmetry, that part of a round trip is accounted for.
    round_trip = sum(one.round_trip_ns for one in best) / len(best)
    bound = (round_trip - unequal_ns) / 2 + _DOUBT * unequal_ns
    return Offset(mean - asymmetry_ns / 2, drift, middle, bound)


def between(client: Offset, server: Offset) -> Offset:
    """The lead of the server's clock over the client's, from both against this machine's."""
    at = (client.at_ns + server.at_ns) // 2
    return Offset(
        server.at(at) - client.at(at), server.drift - client.drift, at, client.error_ns + server.error_ns
    )
