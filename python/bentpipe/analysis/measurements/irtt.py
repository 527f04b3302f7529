"""irtt's JSON: `irtt client -o FILE`.

`round_trips` has an object for each probe: `seqno`, `lost` (`false`, `true`, or with the direction `true_up`,
`true_down`), `delay.rtt` in nanoseconds and when the client sent it. Its delays of one way are not taken:
they hold where the clocks of both ends agree, which the file does not say.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bentpipe.analysis.losses import Direction
from bentpipe.analysis.measurements import echoes, numbers
from bentpipe.analysis.measurements.echoes import Echo
from bentpipe.analysis.measurements.json_file import decoded
from bentpipe.analysis.measurements.time_series import Reading
from bentpipe.errors import UsageError

NAME = "a JSON file of irtt"
HINT = "give what irtt client -o FILE writes"
_LOST: dict[str, Direction | None] = {"true": None, "true_up": "return", "true_down": "forward"}


class RoundTripDelays(msgspec.Struct):
    rtt: int | None = None


class ClockReading(msgspec.Struct):
    wall: int | None = None
    monotonic: int | None = None


class SentAndReceived(msgspec.Struct):
    send: ClockReading = msgspec.field(default_factory=ClockReading)


class EndStamps(msgspec.Struct):
    client: SentAndReceived


class ProbeResult(msgspec.Struct):
    seqno: int
    lost: Literal["false", "true", "true_up", "true_down"]
    timestamps: EndStamps
    delay: RoundTripDelays = msgspec.field(default_factory=RoundTripDelays)


class IrttFile(msgspec.Struct):
    round_trips: list[ProbeResult]


def read(file: str, content: bytes, outage_from: int) -> Reading:
    """The round trips and losses. UsageError, naming the key, if the file is not as irtt writes it."""
    probes = decoded(file, content, IrttFile, HINT).round_trips
    if not probes:
        raise UsageError(f"{file}: round_trips: is empty", HINT)
    is_monotonic = all(one.timestamps.client.send.monotonic is not None for one in probes)
    found: list[Echo] = []
    times: list[int] = []
    for index, one in enumerate(probes):
        key = f"round_trips.{index}"
        clock = one.timestamps.client.send
        sent = clock.monotonic if is_monotonic else clock.wall
        if sent is None:
            raise UsageError(f"{file}: {key}.timestamps.client.send.wall: is missing", HINT)
        times.append(numbers.time(sent, 1, file, f"{key}.timestamps"))
        numbers.check_times(file, times, f"{key}.timestamps.client.send", sent)
        rtt = None
        if one.lost == "false":
            if one.delay.rtt is None:
                raise UsageError(f"{file}: {key}.delay.rtt: is missing of a probe that is not lost", HINT)
            rtt = numbers.whole(one.delay.rtt, 1, "rtt", file, f"{key}.delay.rtt")
        found.append(Echo(times[-1], rtt, _LOST.get(one.lost)))
    said = echoes.series(file, found, outage_from)
    split = "Round trips are taken, not the delays of one way, which need clocks that agree."
    return Reading(file, NAME, said.measured, (*said.notes, split))
