"""`bentpipe scenarios import`: what it prints and writes, what it refuses, and trials over what it makes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from statistics import median
from typing import Any

import chance
import pytest
from conftest import Command, present
from hypothesis import given
from hypothesis import strategies as st
from measured import CASES, iperf3_file, iperf3_log, irtt_file, ping_log, steps

from bentpipe.analysis.measurements import reading
from bentpipe.analysis.measurements.composing import Wanted, compose
from bentpipe.analysis.measurements.reading import ReadingOptions
from bentpipe.errors import BentpipeError
from bentpipe.packed import zstd

LIST = "5\n6\n7\n"


def test_what_was_taken_and_assumed_is_printed_and_noted(bentpipe: Command) -> None:
    done = bentpipe("scenarios", "import", CASES / "ping-D.txt", "--rate", "100/20Mbit/s", "-o", "mine.toml")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].endswith("ping-D.txt: a log of ping") and lines[-1] == "mine.toml"
    values = "600 values over 119.991 s: least 28, median 36.8, p99 47.7, most 47.9 ms"
    assert lines[1] == f"  round trip: {values}"
    scenario = tomllib.loads(Path("mine.toml").read_text())
    told = " ".join(done.out.split())
    for note in scenario["notes"].splitlines():
        assert note in told
    for said in ("--outage", "--forward-share", "--queue", "--at-end", "begins again"):
        assert said in scenario["notes"]
    rates = [scenario["satellite"][way]["rate"] for way in ("forward", "return")]
    assert rates == ["100 Mbit/s", "20 Mbit/s"]
    shown = bentpipe("scenarios", "show", "mine.toml").out
    assert "satellite.forward.delay, over 119.991 s, which repeat" in shown
    again = bentpipe("scenarios", "import", CASES / "ping-D.txt", "-o", "mine.toml")
    assert again.code == 2 and "mine.toml: is there already" in again.err


def test_the_name_is_that_of_the_file_and_several_give_several_quantities(bentpipe: Command) -> None:
    Path("rates.txt.zst").write_bytes(zstd.compress(LIST.encode()))
    Path("up.txt").write_text(LIST)
    words = ["--every", "1s", "--unit", "Mbit/s", "--queue", "50 packets", "--at-end", "hold"]
    done = bentpipe(
        "scenarios", "import", "rates.txt.zst", CASES / "ping-D.txt", "--return", "up.txt", *words
    )
    assert done.code == 0, done.err
    link = tomllib.loads(Path("rates.toml").read_text())["satellite"]
    for way in ("forward", "return"):
        assert steps(link[way]["rate"]).steps[1] == (10**9, 6_000_000)
        assert len(steps(link[way]["delay"]).steps) > 500 and link[way]["queue"] == "50 packets"
    shown = bentpipe("scenarios", "show", "rates.toml").out
    assert "satellite.forward.rate, over 600 s, from 2 s on the last value" in shown


def test_a_trace_is_found_from_where_the_scenario_is(bentpipe: Command) -> None:
    Path("elsewhere").mkdir()
    Path("a.trace").write_text("1\n2\n2\n")
    done = bentpipe("scenarios", "import", "a.trace", "--delay", "20ms", "-o", "elsewhere/a.toml")
    assert done.code == 0, done.err
    found = json.loads(bentpipe("scenarios", "show", "elsewhere/a.toml", "--json").out)
    assert found["scenario"]["satellite"]["forward"]["rate"]["period"] == "2 ms"
    assert found["courses"]["satellite.forward.rate"]["mean"] == 18


# What is refused: the error names the file, the line and the column, with a hint, and nothing is written.


@pytest.mark.parametrize(
    ("content", "words", "error"),
    [
        ("", "", "in.txt: is empty"),
        ("\n \n", "", "in.txt: is empty"),
        ("what is this?\n", "", "in.txt: line 1: no column with a rate, delay, RTT or loss: what"),
        ('{"a": 1}', "", "in.txt: JSON of neither irtt nor iperf3"),
        ("5\n6.5\n", "", "in.txt: is a list, one value in a line: for how long does each hold?"),
        ("5\n6\n", "--every 1s", "in.txt: is a list: of what?"),
        ("5\n6\n", "--every 1 --unit ms", '--every: "1" is no time'),
        ("5\n6\n", "--every 1s --unit furlongs", '--unit: "furlongs" is no unit'),
        ("5\n-6\n", "--every 1s --unit ms", "in.txt: line 2: -6: is below 0"),
        ("5\nnan\n", "--every 1s --unit ms", "in.txt: line 2: nan: is not a finite number"),
        ("5\n1e99\n", "--every 1s --unit Mbit/s", "in.txt: line 2: 1E+99: too large: a rate is at most"),
        ("5\n\n7\n", "--every 1s --unit ms", 'in.txt: line 2: "": is not a number'),
        ("5 Mbit/s\n6 kbit/s\n", "--every 1s --unit Mbit/s", "in.txt: line 1: 5 Mbit/s: is not a number"),
        ("0\n0\n", "--every 1s --unit Mbit/s --delay 1ms", "in.txt: the forward rate is always 0"),
        ("5\n0\n", "--every 1s --unit ms", "in.txt: has a forward delay of 0"),
        ("5\n6\n", "--every 1s --unit Mbit/s", "no delay of the forward path"),
        ("5\n6\n", "--every 1s --unit Mbit/s --delay 1ms --rtt", "--rtt is of no use: in.txt is a list"),
        ("1\n2\n", "--delay 1ms --at-end hold", "--at-end hold: in.txt: a trace of mahimahi begins again"),
        ("time_s,rtt_ms\n0,5\n0,6\n", "", "in.txt: line 3: time_s: 0: times must increase"),
        ("time_s,rtt_ms\n1,5\n0.5,6\n", "", "in.txt: line 3: time_s: 0.5: times must increase"),
        ("time_s,rtt_ms\n1,5\n2\n", "", "in.txt: line 3: 2: has 1 fields, the header has 2"),
        ("time_s,rtt_ms\n1,5\n2,inf\n", "", "in.txt: line 3: rtt_ms: inf: is not a finite number"),
        ("time_s,rtt_ms\n1,\n2,\n", "", "in.txt: no probe was answered"),
        ("time_s,rtt_ms\n", "", "in.txt: no row after the header"),
        ("time_s,rtt\n0,1\n", "", "in.txt: line 1: rtt: in which unit?"),
        ("time_s,rate_ms\n0,1\n", "", "in.txt: line 1: rate_ms: a rate in a unit of a delay"),
        ("time_s,delay_ms,latency_us\n0,1,1\n", "", "line 1: delay_ms and latency_us are both a delay"),
        ("rtt_ms,station\n0,1\n", "", "in.txt: no column of times"),
        ("time_s,rtt_ms\n0,1\n", "--every 1s", "--every is of no use: in.txt is a table"),
        ("64 bytes from a: icmp_seq=1 ttl=1 time=5 ms\n", "", "in.txt: line 1: no times"),
        ("[5] 64 bytes from a: icmp_seq=1 ttl=1 time=5 h\n", "", 'unit "h" is not known'),
        ("[9] 64 bytes from a: icmp_seq=1 ttl=1 time=5 ms\n[8] 64 bytes from a: icmp_seq=2 ttl=1 time=5 ms\n",
         "", "in.txt: line 2: [8] 64 bytes from a"),
        ("PING a (192.0.2.1) 56(84) bytes of data.\n", "", "in.txt: no probe was answered"),
        ('{"round_trips": []}', "", "in.txt: round_trips: is empty"),
        ('{"round_trips": [{"seqno": 1}]}', "", "in.txt: Object missing required field `lost` - at "
         "`round_trips[0]`"),
        ('{"intervals": [], "error": "unable to connect"}', "", "iperf3 failed: unable to connect"),
        ('{"intervals": [{"sum": {"start": 0, "end": 0, "bits_per_second": 1}}]}', "",
         "in.txt: intervals.0.sum.end: 0.0: is not after its start"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(bentpipe: Command, content: str, words: str, error: str) -> None:
    Path("in.txt").write_text(content)
    done = bentpipe("scenarios", "import", "in.txt", *words.split(), "-o", "out.toml")
    assert done.code == 2 and not Path("out.toml").exists()
    assert error in done.err and "\nhint: " in done.err, done.err
    assert list(Path().iterdir()) == [Path("in.txt")]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("there-is-none.txt", "there-is-none.txt: there is no such file"),
        ("list.txt --rate much", '--rate: "much" is no rate'),
        ("list.txt --rate 1/2/3Mbit/s", '--rate: "1/2/3Mbit/s" is not valid'),
        ("list.txt --rate 5ms", '--rate: "5ms" is no rate'),
        ("list.txt --delay 0ms", "--delay: 0ms: must be above 0"),
        ("list.txt --queue 3bananas --every 1s --unit ms --rate 1Mbit/s", "list.txt: makes no scenario: "),
        ("list.txt -o out.txt", "-o: out.txt does not end with .toml"),
        ("list.txt -o nowhere/out.toml", "there is no folder nowhere"),
        ("list.txt list.txt --every 1s --unit ms", "both have a forward delay"),
        ("list.txt --return ping.txt --every 1s --unit Mbit/s", "--return: ping.txt has a round trip"),
        ("zip.txt", "zip.txt: is packed by zip"),
    ],
)
def test_bad_words_are_refused(bentpipe: Command, words: str, error: str) -> None:
    Path("list.txt").write_text(LIST)
    Path("ping.txt").write_bytes(ping_log([0, 10**9], [10**6, 10**6]))
    Path("zip.txt").write_bytes(b"PK\x03\x04 and so on")
    before = sorted(Path().iterdir())
    done = bentpipe("scenarios", "import", *words.split())
    assert done.code in (1, 2) and error in done.err, done.err
    assert sorted(Path().iterdir()) == before


SENT = [index * 10**8 for index in range(6)]
RTTS = [20_000_000, 21_500_000, None, 20_000_000, 22_000_000, 23_000_000]
VALID: dict[str, tuple[bytes, ReadingOptions]] = {
    "ping": (ping_log(SENT, RTTS), ReadingOptions()),
    "irtt": (irtt_file(SENT[:3], RTTS[:3]), ReadingOptions()),
    "iperf3 JSON": (iperf3_file(SENT, [1, 2, 3, 4, 5]), ReadingOptions()),
    "iperf3 log": (iperf3_log([1.5, 2.5, 3], 2), ReadingOptions()),
    "mahimahi": (b"1\n5\n5\n12\n", ReadingOptions()),
    "list": (b"5\n6.5\n7e1\n", ReadingOptions(every_ns=10**8, unit="ms")),
    "table": (b"time_s,rtt_ms,rate_mbps,loss_percent\n0,1,2,3\n0.5,,2,3\n1,\"4\",5,6\n", ReadingOptions()),
    "dates": (b"date;owd [us]\n2026-11-28T12:00:00;7\n2026-11-28T12:00:01Z;8\n", ReadingOptions()),
}  # fmt: skip


@chance.examples(60)
@pytest.mark.parametrize("name", VALID)
@given(data=st.data())
def test_whatever_is_cut_off_or_changed_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: Any
) -> None:
    content, asked = VALID[name]
    end = data.draw(st.integers(0, len(content)))
    damaged = bytearray(content[:end] if data.draw(st.booleans()) else content)
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        read = reading.read("damaged", bytes(damaged), asked)
        reading.check_used([read], ReadingOptions())
        compose([read], [], Wanted(), tmp_path_factory.getbasetemp() / "x.toml")
    except BentpipeError as error:
        assert str(error) and error.hint


# Trials over what was imported.


def run(bentpipe: Command, scenario: str, *words: str) -> str:
    """Run a trial between noq and noq into the folder `run`: what is printed, in one line."""
    pair = ["--client", "noq", "--server", "noq", "--iterations", "1", "--out", "run", "--no-report"]
    done = bentpipe("run", "--scenario", scenario, *pair, *words)
    assert done.code == 0, done.err
    return " ".join(done.out.split())


def the_record() -> dict[str, Any]:
    (line,) = Path("run", "records.jsonl").read_text().splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.virtual_time
@pytest.mark.skipif(not present("noq"), reason="noq is not installed")
def test_a_trial_measures_the_round_trips_of_the_log(bentpipe: Command) -> None:
    """Frames need far less than the rate, so that nothing waits."""
    log = (CASES / "ping-D.txt").read_bytes()
    Path("ping.txt").write_bytes(log)
    bentpipe("scenarios", "import", "ping.txt", "--rate", "1Gbit/s", "-o", "mine.toml")
    run(bentpipe, "mine.toml", "--workload", "frames:60s:datagrams:1s")
    record = the_record()
    lines = [one for one in log.splitlines() if b"time=" in one and one[1:14] < b"1790000060.2"]
    rtts = [float(one.split(b"time=")[1].split()[0]) for one in lines]
    assert record["rtt_min_ms"] == pytest.approx(min(rtts), rel=0.02)
    assert record["rtt_median_ms"] == pytest.approx(median(rtts), rel=0.03)
    assert record["forward_losses"] > 0


@pytest.mark.virtual_time
@pytest.mark.skipif(not present("noq"), reason="noq is not installed")
def test_a_bulk_transfer_gets_the_rates_of_the_list(bentpipe: Command) -> None:
    rates = [10, 2, 20, 5]
    Path("list.txt").write_text("".join(f"{rate}\n" for rate in rates))
    words = [
        "--every",
        "5s",
        "--unit",
        "Mbit/s",
        "--delay",
        "10ms",
        "--queue",
        "100 packets",
        "-o",
        "mine.toml",
    ]
    assert bentpipe("scenarios", "import", "list.txt", *words).code == 0
    said = run(bentpipe, "mine.toml", "--workload", "duration:40s")
    assert "mine: 1 trial lasted longer than the steps of its rate, 20 s, which then began again" in said
    record = the_record()
    step_s, curve = record["received_step_s"], record["received_bytes"]
    for index, rate in enumerate([*rates, *rates]):
        begin, end = (int((5 * index + at) / step_s) for at in (2.5, 4.9))
        got = 8 * (curve[end] - curve[begin]) / ((end - begin) * step_s) / 1e6
        assert 0.85 * rate < got <= rate, (index, got)


@pytest.mark.virtual_time
@pytest.mark.skipif(not present("noq"), reason="noq is not installed")
def test_captures_of_both_ends_give_rate_and_delay_back(bentpipe: Command) -> None:
    run(bentpipe, "sat", "--set", "forward.queue=1BDP", "--bytes", "20MB", "--trace", "all")
    (trace,) = Path("run").glob("trials/*/trace.pcapng")
    done = bentpipe("scenarios", "import", trace, "--rate", "/2Mbit/s", "-o", "mine.toml")
    assert done.code == 0 and "The return rate is that of --rate" in done.out, done.err
    link = tomllib.loads(Path("mine.toml").read_text())["satellite"]
    rates = sorted(value for _, value in steps(link["forward"]["rate"]).steps)
    assert rates[len(rates) // 2] == pytest.approx(20e6, rel=0.02)
    for way in ("forward", "return"):
        assert min(value for _, value in steps(link[way]["delay"]).steps) == pytest.approx(300e6, rel=0.02)
    assert (link["forward"]["loss"], link["return"]["rate"]) == ("none", "2 Mbit/s")


@pytest.mark.virtual_time
@pytest.mark.skipif(not present("noq"), reason="noq is not installed")
def test_captures_have_the_rate_of_the_link_from_the_first_window_on(bentpipe: Command) -> None:
    """What is sent in a window arrives three windows later: it says nothing of the rate of the first."""
    run(bentpipe, "sat", "--bytes", "10MiB", "--trace", "all")
    (trace,) = Path("run").glob("trials/*/trace.pcapng")
    done = bentpipe("scenarios", "import", trace, "--rate", "/2Mbit/s", "-o", "mine.toml")
    assert done.code == 0, done.err
    link = tomllib.loads(Path("mine.toml").read_text())["satellite"]
    for at, value in steps(link["forward"]["rate"]).steps:
        assert value == pytest.approx(20e6, rel=0.02), at / 1e9
