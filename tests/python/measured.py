"""What tests of imported measurements share: exporters of each format, and readers of the scenarios made."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bentpipe.analysis.measurements import composing, reading
from bentpipe.analysis.measurements.composing import Wanted
from bentpipe.analysis.measurements.reading import ReadingOptions

CASES = Path(__file__).resolve().parents[1] / "measurements"
FACTORS = {
    "bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9,
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "%": 10**7,
}  # fmt: skip


@dataclass(frozen=True)
class Steps:
    """Steps of a scenario: times in nanoseconds, values in bit/s, nanoseconds or billionths."""

    steps: list[tuple[int, int]]
    period_ns: int | None


def exact(text: str) -> int:
    """A value of a scenario file as a whole number."""
    number, unit = text.split()
    value = Decimal(number) * FACTORS[unit]
    assert value == int(value), text
    return int(value)


def steps(value: Any) -> Steps:
    """A fixed value is one step."""
    if isinstance(value, str):
        return Steps([(0, 0 if value == "none" else exact(value))], None)
    found = [(exact(at), exact(one)) for at, one in value["steps"]]
    return Steps(found, exact(value["period"]) if "period" in value else None)


def satellite(
    folder: Path,
    files: dict[str, bytes],
    asked: ReadingOptions | None = None,
    wanted: Wanted | None = None,
    returns: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """The link of the scenario that is made of these files, by their names."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    asked = asked or ReadingOptions()
    read = reading.read_all([folder / name for name in files if name not in returns], asked)
    of_return = reading.read_all([folder / name for name in returns], asked)
    made = composing.compose(read, of_return, wanted or Wanted(), folder / "made.toml")
    (folder / "made.toml").write_text(made.text)
    found: dict[str, dict[str, Any]] = tomllib.loads(made.text)["satellite"]
    return found


def share(pairs: Sequence[tuple[int, int]], end_ns: int, of: float) -> int:
    """The value that is not exceeded in this share of the time, of steps up to an end."""
    ends = [at for at, _ in pairs[1:]] + [end_ns]
    held = sorted((value, end - at) for (at, value), end in zip(pairs, ends, strict=True))
    passed = 0
    for value, lasts in held:
        passed += lasts
        if passed >= of * end_ns:
            return value
    return held[-1][0]


def decimal(value: int, factor: int) -> str:
    """A whole number in a larger unit, exactly."""
    return f"{Decimal(value) / factor:f}"


def ping_log(sent_ns: Sequence[int], rtts_ns: Sequence[int | None], first: int = 1) -> bytes:
    """As `ping -D` prints it. Round trips are whole microseconds."""
    lines = ["PING server (192.0.2.1) 56(84) bytes of data."]
    for index, (sent, rtt) in enumerate(zip(sent_ns, rtts_ns, strict=True)):
        number = (first + index) % 2**16
        if rtt is not None:
            at = f"[{Decimal(1_790_000_000 * 10**9 + sent + rtt) / 10**9:.6f}]"
            answer = f"64 bytes from 192.0.2.1: icmp_seq={number} ttl=55 time={decimal(rtt, 10**6)} ms"
            lines.append(f"{at} {answer}")
    return "\n".join(lines).encode()


def irtt_file(sent_ns: Sequence[int], rtts_ns: Sequence[int | None], lost: str = "true") -> bytes:
    """As `irtt client -o` writes it."""
    trips = [
        {
            "seqno": index,
            "lost": lost if rtt is None else "false",
            "delay": {} if rtt is None else {"rtt": rtt, "send": 1, "receive": 1},
            "timestamps": {"client": {"send": {"wall": 1_790_000_000 * 10**9 + sent, "monotonic": sent}}},
        }
        for index, (sent, rtt) in enumerate(zip(sent_ns, rtts_ns, strict=True))
    ]
    return json.dumps({"version": {"irtt": "0.9.0"}, "round_trips": trips}).encode()


def iperf3_file(times_ns: Sequence[int], rates_bps: Sequence[int], reverse: bool = True) -> bytes:
    """As `iperf3 --json` writes it; the last time is the end."""
    intervals = [
        {
            "streams": [],
            "sum": {"start": begin / 1e9, "end": end / 1e9, "bits_per_second": rate, "omitted": False},
        }
        for begin, end, rate in zip(times_ns, times_ns[1:], rates_bps, strict=False)
    ]
    settings = {"protocol": "TCP", "reverse": int(reverse)}
    return json.dumps({"start": {"test_start": settings}, "intervals": intervals, "end": {}}).encode()


def iperf3_log(rates_mbps: Sequence[float], streams: int = 1, reverse: bool = True) -> bytes:
    """As iperf3 prints it, with intervals of a second."""
    lines = ["Connecting to host 192.0.2.1, port 5201"]
    lines += ["Reverse mode, remote host 192.0.2.1 is sending"] if reverse else []
    for second, rate in enumerate(rates_mbps):
        span = f"{second}.00-{second + 1}.00".rjust(12)
        for stream in range(streams):
            own = rate / streams
            lines.append(
                f"[{5 + 2 * stream:>3}] {span}  sec  6.25 MBytes  {own:.2f} Mbits/sec    0   212 KBytes"
            )
        if streams > 1:
            lines.append(f"[SUM] {span}  sec  6.25 MBytes  {rate:.2f} Mbits/sec    0")
    lines.append("- - - - - - - - - - - - - - - - - - - - - - - - -")
    lines.append(
        f"[  5]   0.00-{len(rates_mbps)}.00  sec   100 MBytes   1.00 Mbits/sec    3             sender"
    )
    return "\n".join(lines).encode()
