"""What people measured becomes a scenario with the same rates, delays and losses.

The files in `tests/measurements` were made up, each as a program writes it.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from chance import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from measured import (
    CASES,
    decimal,
    exact,
    iperf3_file,
    iperf3_log,
    irtt_file,
    ping_log,
    satellite,
    share,
    steps,
)

from bentpipe import packed
from bentpipe.analysis.losses import Direction
from bentpipe.analysis.measurements import numbers
from bentpipe.analysis.measurements.composing import Wanted
from bentpipe.analysis.measurements.reading import ReadingOptions
from bentpipe.errors import UsageError

HOUR_NS = 3600 * 10**9
RATES: dict[Direction, str] = {"forward": "100 Mbit/s", "return": "20 Mbit/s"}
DELAYS: dict[Direction, str] = {"forward": "25 ms", "return": "30 ms"}
GIVEN = settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
# In milliseconds, so that floats of files have them exactly enough.
TIMES = st.lists(st.integers(1, 5_000), min_size=2, max_size=30).map(
    lambda gaps: [sum(gaps[:index]) * 10**6 for index in range(len(gaps))]
)


def merged(times: Sequence[int], values: Sequence[int]) -> list[tuple[int, int]]:
    """The steps without those that equal the one before."""
    pairs = list(zip(times, values, strict=True))
    return [one for index, one in enumerate(pairs) if index == 0 or one[1] != pairs[index - 1][1]]


def values_of(low: int, high: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=30, max_size=30)


def median_gap(times: Sequence[int]) -> int:
    gaps = sorted(after - before for before, after in pairwise(times))
    return gaps[len(gaps) // 2]


# Round trips: a synthetic trace, written in each format and imported, is the same again.


@GIVEN
@given(
    values=values_of(1, 10**10).filter(lambda one: len(set(one)) > 1),
    every_ms=st.integers(1, 10_000),
    unit=st.sampled_from(["bit/s", "kbit/s", "Mbit/s", "Gbps", "kbps"]),
)
def test_a_list_of_rates(tmp_path: Path, values: list[int], every_ms: int, unit: str) -> None:
    factor = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbps": 10**9, "kbps": 10**3}[unit]
    text = "\n".join(decimal(value, factor) for value in values) + "\n"
    every = every_ms * 10**6
    link = satellite(
        tmp_path,
        {"list.txt": text.encode()},
        ReadingOptions(every_ns=every, unit=unit),
        Wanted(delays=DELAYS),
    )
    for way in ("forward", "return"):  # both ways are alike where one is known
        found = steps(link[way]["rate"])
        assert found.steps == merged([index * every for index in range(30)], values)
        assert found.period_ns == 30 * every
    assert [link[way]["delay"] for way in link] == ["25 ms", "30 ms"]


@GIVEN
@given(values=values_of(1, HOUR_NS), are_round_trips=st.booleans())
def test_a_list_of_delays(tmp_path: Path, values: list[int], are_round_trips: bool) -> None:
    values = [value + are_round_trips for value in values]  # half of 1 ns is none
    text = "\r\n".join(decimal(value, 10**6) for value in values)
    asked = ReadingOptions(every_ns=10**7, unit="ms", are_round_trips=are_round_trips)
    if are_round_trips and max(values) > HOUR_NS:
        return
    link = satellite(tmp_path, {"list.txt": text.encode()}, asked, Wanted(rates=RATES))
    forward, back = (steps(link[way]["delay"]).steps for way in ("forward", "return"))
    times = [index * 10**7 for index in range(30)]
    if are_round_trips:
        assert forward == merged(times, [round(value * 0.5) for value in values])
        assert back == merged(times, [value - round(value * 0.5) for value in values])
    else:
        assert forward == back == merged(times, values)


@GIVEN
@given(
    times=TIMES,
    rates=values_of(1, 10**10),
    delays=values_of(1, HOUR_NS // 1000),
    losses=values_of(0, 10**9),
    delimiter=st.sampled_from([",", ";", "\t"]),
)
def test_a_table(
    tmp_path: Path,
    times: list[int],
    rates: list[int],
    delays: list[int],
    losses: list[int],
    delimiter: str,
) -> None:
    head = ["time (s)", "down_rate_kbps", "up_rate_mbps", "Latency [us]", "loss_percent", "station"]
    rows = [
        [
            *(decimal(at + 7, 10**9), decimal(rate, 10**3), decimal(rate + 1, 10**6)),
            *(decimal(delay * 1000, 10**3), decimal(loss, 10**7), "x"),
        ]
        for at, rate, delay, loss in zip(times, rates, delays, losses, strict=False)
    ]
    text = "\n".join(delimiter.join(row) for row in [head, *rows])
    link = satellite(tmp_path, {"table.csv": text.encode()})
    count = len(times)
    expected = {
        ("forward", "rate"): rates[:count],
        ("return", "rate"): [rate + 1 for rate in rates[:count]],
        ("forward", "delay"): [delay * 1000 for delay in delays[:count]],
        ("return", "delay"): [delay * 1000 for delay in delays[:count]],
        ("forward", "loss"): losses[:count],
    }
    for (way, quantity), values in expected.items():
        found = steps(link[way][quantity])
        assert found.steps == merged(times, values), (way, quantity)
        if len(found.steps) > 1:
            assert found.period_ns == times[-1] + median_gap(times)
    assert link["return"]["loss"] == "none"


@GIVEN
@given(
    rtts=st.lists(st.none() | st.integers(2, 900_000).map(lambda us: us * 1000), min_size=3, max_size=60),
    first=st.sampled_from([0, 1, 2**16 - 5]),
    is_irtt=st.booleans(),
)
def test_round_trips_of_ping_and_irtt(
    tmp_path: Path, rtts: list[int | None], first: int, is_irtt: bool
) -> None:
    rtts = [20_000_000, *rtts, 30_000_000]
    sent = [index * 10**9 for index in range(len(rtts))]
    content = irtt_file(sent, rtts) if is_irtt else ping_log(sent, rtts, first)
    link = satellite(tmp_path, {"log": content}, wanted=Wanted(rates=RATES, forward_share=0.25))
    held: list[int] = []
    for rtt in rtts:
        held.append(held[-1] if rtt is None else rtt)
    forward, back = (steps(link[way]["delay"]) for way in ("forward", "return"))
    assert forward.steps == merged(sent, [round(rtt * 0.25) for rtt in held])
    assert back.steps == merged(sent, [rtt - round(rtt * 0.25) for rtt in held])
    # What is lost in runs of three and more is lost for as long; of the others, the share.
    lost = "".join("x" if rtt is None else "." for rtt in rtts)
    outages = [(at.start(), at.end()) for at in re.finditer("x{3,}", lost)]
    single = lost.count("x") - sum(end - begin for begin, end in outages)
    base = single / (len(rtts) - lost.count("x") + single)
    for way in ("forward", "return"):
        found = steps(link[way]["loss"])
        ratios = {value for _, value in found.steps}
        assert all(value == 10**9 or abs(value / 1e9 - (1 - (1 - base) ** 0.5)) < 1e-8 for value in ratios)
        whole = [index for index, (_, value) in enumerate(found.steps) if value == 10**9]
        assert [
            (found.steps[index][0] // 10**9, found.steps[index + 1][0] // 10**9) for index in whole
        ] == outages


@GIVEN
@given(rates=values_of(0, 10**11), times=TIMES, reverse=st.booleans())
def test_iperf3s_json(tmp_path: Path, rates: list[int], times: list[int], reverse: bool) -> None:
    rates = [10**6, *rates[: len(times) - 2]]
    content = iperf3_file(times, rates, reverse)
    link = satellite(tmp_path, {"x": content}, wanted=Wanted(delays=DELAYS, rates={
        "return" if reverse else "forward": "1 Mbit/s"}))  # fmt: skip
    own, other = ("forward", "return") if reverse else ("return", "forward")
    found = steps(link[own]["rate"])
    assert found.steps == merged(times[:-1], rates)
    assert link[other]["rate"] == "1 Mbit/s"
    if len(found.steps) > 1:
        assert found.period_ns == times[-1]


@GIVEN
@given(
    rates=st.lists(st.integers(1, 90_000).map(lambda one: one / 100), min_size=2, max_size=30),
    streams=st.sampled_from([1, 4]),
    reverse=st.booleans(),
)
def test_iperf3s_log(tmp_path: Path, rates: list[float], streams: int, reverse: bool) -> None:
    content = iperf3_log(rates, streams, reverse)
    link = satellite(tmp_path, {"x": content}, wanted=Wanted(delays=DELAYS))
    found = steps(link["forward" if reverse else "return"]["rate"])
    bps = [round(rate * 100) * 10_000 for rate in rates]
    assert found.steps == merged([index * 10**9 for index in range(len(rates))], bps)


@GIVEN
@given(counts=st.lists(st.integers(0, 5), min_size=2, max_size=300).filter(lambda one: one[-1] > 0))
def test_traces_of_mahimahi_are_referred_to(tmp_path: Path, counts: list[int]) -> None:
    """The link model reads the file itself; what is told is of windows of 100 ms."""
    down = "".join(f"{at}\n" * count for at, count in enumerate(counts, start=1))
    files = {"down.trace": down.encode(), "up.trace": b"1\n1\n2\n"}
    link = satellite(tmp_path, files, wanted=Wanted(delays=DELAYS), returns=["up.trace"])
    assert [link[way]["rate"] for way in ("forward", "return")] == [
        {"trace": "down.trace"},
        {"trace": "up.trace"},
    ]


# What each file is, and what it says of directions.


def test_the_way_on_which_irtt_lost_a_probe_is_taken(tmp_path: Path) -> None:
    rtts = [20_000_000, None] * 10
    sent = [index * 10**9 for index in range(20)]
    for lost, ways in (("true_down", ("50 %", "none")), ("true_up", ("none", "50 %"))):
        content = irtt_file(sent, rtts, lost)
        link = satellite(tmp_path, {"log": content}, wanted=Wanted(rates=RATES))
        assert (link["forward"]["loss"], link["return"]["loss"]) == ways


def test_a_ping_log_without_times_takes_them_from_every(tmp_path: Path) -> None:
    lines = [f"64 bytes from 192.0.2.1: icmp_seq={n} ttl=55 time={20 + n} ms" for n in (0, 1, 3, 4)]
    lines[2:2] = ["Request timeout for icmp_seq 2"]
    lines += ["64 bytes from 192.0.2.1: icmp_seq=4 ttl=55 time=99 ms (DUP!)"]
    lines += [f"no answer yet for icmp_seq={n}" for n in (5, 6, 7)]
    link = satellite(
        tmp_path, {"p": "\n".join(lines).encode()}, ReadingOptions(every_ns=10**9), Wanted(rates=RATES)
    )
    found = steps(link["forward"]["delay"])
    assert found.steps == [
        (at * 10**9, delay * 500_000) for at, delay in ((0, 20), (1, 21), (3, 23), (4, 24))
    ]
    assert found.period_ns == 8 * 10**9
    lossy = steps(link["return"]["loss"])
    assert [(at, value == 10**9) for at, value in lossy.steps] == [(0, False), (5 * 10**9, True)]
    assert lossy.steps[0][1] == round((1 - 0.8**0.5) * 10**9)  # one of five


def test_ways_of_both_directions_in_one_file(tmp_path: Path) -> None:
    one = json.loads(iperf3_file([0, 10**9, 2 * 10**9], [10, 20]))
    for interval in one["intervals"]:
        interval["sum_bidir_reverse"] = interval["sum"] | {"bits_per_second": 5}
    one["start"]["test_start"]["reverse"] = 0
    link = satellite(tmp_path, {"x": json.dumps(one).encode()}, wanted=Wanted(delays=DELAYS))
    assert steps(link["return"]["rate"]).steps == [(0, 10), (10**9, 20)]
    assert link["forward"]["rate"] == "5 bit/s"


@pytest.mark.parametrize(
    ("header", "row", "way", "quantity", "value"),
    [
        ("t,bandwidth_mbps,delay", "0,5,1", "forward", "rate", 5_000_000),
        ("timestamp;Throughput (kB/s);rtt", "1790000000000;5;1", "forward", "rate", 40_000),
        ("time_s,down_MBps,delay", "0,5,1", "forward", "rate", 40_000_000),
        ("time,ul_mbit_per_s,delay", "0,5,1", "return", "rate", 5_000_000),
        ("ms download_mbps delay", "0 5 1", "forward", "rate", 5_000_000),
        ("# time rate[bit/s] owd", "0 5 1", "forward", "rate", 5),
        ("date,delay", "2026-11-28T12:00:00Z,7", "forward", "delay", 7_000_000),
        ("at_us,one_way_delay_us", "0,7", "return", "delay", 7_000),
        ("time_s,packet_loss_rate_percent,latency_ms", "0,2.5,7", "forward", "loss", 25_000_000),
        ("time_s,loss_ratio,latency_ms", "0,0.25,7", "forward", "loss", 250_000_000),
    ],
)
def test_names_of_columns(tmp_path: Path, header: str, row: str, way: str, quantity: str, value: int) -> None:
    content = f"{header}\n{row}\n".encode()
    link = satellite(tmp_path, {"t.csv": content}, ReadingOptions(unit="ms"))
    assert exact(link[way][quantity]) == value


@pytest.mark.parametrize(
    ("names", "bps"),
    [
        ("bps b/s bit/s BPS", 1),
        ("kbps Kbps KBPS kb/s Kb/s kbits/sec Kbits/sec", 10**3),
        ("mbps Mbps MBPS Mb/s Mbit/s Mbits/sec Mbits/s", 10**6),
        ("gbps Gbps Gb/s Gbits/sec", 10**9),
        ("Bps B/s bytes/s Bytes/sec", 8),
        ("kBps KBps kB/s KB/s KBytes/sec kbytes/s", 8 * 10**3),
        ("MBps MB/s MBytes/sec mbytes/sec", 8 * 10**6),
        ("GBps GB/s GBytes/sec", 8 * 10**9),
    ],
)
def test_bits_and_bytes_are_told_apart(names: str, bps: int) -> None:
    assert {name: numbers.unit(name) for name in names.split()} == dict.fromkeys(names.split(), ("rate", bps))


@pytest.mark.parametrize("name", ["mb/s", "mBps", "gBps", "xBps", "mB/s", "MB/S"])
def test_what_may_be_bits_or_bytes_is_no_unit(name: str) -> None:
    assert numbers.unit(name) is None


def test_a_round_trip_that_a_table_leaves_empty_was_lost(tmp_path: Path) -> None:
    rows = "".join(f"{at},{'' if at in (3, 4, 5) else 40}\n" for at in range(10))
    link = satellite(tmp_path, {"t.csv": f"time_s,rtt_ms\n{rows}".encode()})
    assert link["forward"]["delay"] == "20 ms" and "rate" not in link["forward"]
    lossy = steps(link["forward"]["loss"])
    assert lossy.steps == [(0, 0), (3 * 10**9, 10**9), (6 * 10**9, 0)]


@pytest.mark.parametrize("pack", [lambda data: gzip.compress(data, mtime=0), packed.zstd.compress])
def test_packed_files_are_as_their_plain_twins(tmp_path: Path, pack: object) -> None:
    plain = (CASES / "ping-D.txt").read_bytes()
    assert callable(pack)
    first = satellite(tmp_path, {"a": plain}, wanted=Wanted(rates=RATES))
    assert satellite(tmp_path, {"a": pack(plain)}, wanted=Wanted(rates=RATES)) == first


# What comes at a file's end.


def test_at_its_end_a_file_repeats_holds_or_all_is_lost(tmp_path: Path) -> None:
    content = {"list": b"5\n0\n7\n0\n"}
    asked = ReadingOptions(every_ns=10**9, unit="Mbit/s")
    rates = [(0, 5_000_000), (10**9, 0), (2 * 10**9, 7_000_000), (3 * 10**9, 0)]
    link = satellite(tmp_path, content, asked, Wanted(delays=DELAYS))
    found = steps(link["forward"]["rate"])
    assert (found.steps, found.period_ns) == (rates, 4 * 10**9)
    link = satellite(tmp_path, content, asked, Wanted(delays=DELAYS, at_end="outage"))
    found = steps(link["forward"]["rate"])
    assert (found.steps, found.period_ns) == ([*rates, (4 * 10**9, 7_000_000)], None)
    assert steps(link["return"]["loss"]).steps == [(0, 0), (4 * 10**9, 10**9)]
    with pytest.raises(UsageError, match="the last forward rate is 0, and would hold"):
        satellite(tmp_path, content, asked, Wanted(delays=DELAYS, at_end="hold"))
    content = {"list": b"5\n7\n"}
    link = satellite(tmp_path, content, asked, Wanted(delays=DELAYS, at_end="hold"))
    assert steps(link["forward"]["rate"]).period_ns is None


# The files as people have them: the same distribution, within 2 %.


def distribution(name: str) -> list[float]:
    """The values of a file, taken out of it in another way than the importer's."""
    text = packed.read(CASES / name, 2**24, "").decode()
    if name.startswith("ping"):
        return [float(one) for one in re.findall(r"time=([0-9.]+) ms", text)]
    if name.startswith("irtt"):
        rows = json.loads(text)["round_trips"]
        return [one["delay"]["rtt"] / 1e6 for one in rows if one["lost"] == "false"]
    if name.startswith("iperf3"):
        return [float(one) / 1e6 for one in re.findall(r'"bits_per_second": ([0-9.]+), "retr', text)]
    if name.startswith("link"):
        return [int(line.split(",")[2]) / 1e6 for line in text.splitlines()[1:]]
    return [float(line) for line in text.split()]


@pytest.mark.parametrize(
    ("name", "quantity", "asked"),
    [
        ("ping-D.txt", "rtt", ReadingOptions()),
        ("irtt.json.gz", "rtt", ReadingOptions()),
        ("iperf3.json", "rate", ReadingOptions()),
        ("bandwidth-per-100ms.txt", "rate", ReadingOptions(every_ns=10**8, unit="Mbit/s")),
        ("delay-per-10ms.txt", "delay", ReadingOptions(every_ns=10**7, unit="ms")),
        ("link-over-time.csv", "rate", ReadingOptions()),
    ],
)
def test_a_scenario_has_the_distribution_of_its_file(
    tmp_path: Path, name: str, quantity: str, asked: ReadingOptions
) -> None:
    has_delays = quantity != "rate" or name.startswith("link")
    wanted = Wanted(delays={} if has_delays else DELAYS)
    link = satellite(tmp_path, {name: (CASES / name).read_bytes()}, asked, wanted)
    key = "rate" if quantity == "rate" else "delay"
    found = [steps(link[way][key]) for way in ("forward", "return")]
    scale = 2 if quantity == "rtt" else 1
    values = sorted(distribution(name))
    assert found[0].period_ns is not None
    for part in (0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1):
        own = values[min(int(part * len(values)), len(values) - 1)]
        ours = scale * share(found[0].steps, found[0].period_ns, part) / 1e6
        assert ours == pytest.approx(own, rel=0.02), part
    assert len(found[1].steps) > 1


def test_a_trace_has_the_rate_of_its_file(tmp_path: Path) -> None:
    name = "lte.trace.zst"
    link = satellite(tmp_path, {name: (CASES / name).read_bytes()}, wanted=Wanted(delays=DELAYS))
    assert link["forward"]["rate"] == {"trace": name}
