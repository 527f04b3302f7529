"""`bentpipe study kosek`: the page on proxies, from runs that are made up here with known answers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fake_run
import numpy as np
import pytest
import study_marks
from conftest import Command, Done
from kosek import published
from kosek.causes import Setting
from kosek.means import ratio_of_means, times_as_much
from kosek.runs import Arrivals, LossyPath, arrived, has, in_order, ratio, second_of_peak, shown

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

TCP_CHAIN = "tcp-pep terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
CHAIN = "quic-pep terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
SEQUENTIAL = CHAIN.replace("iw=100", "iw=100:mode=sequential")
WARM = CHAIN.replace("iw=100", "iw=100:mode=warm")
AUTO = "quic-pep terminal:auto=on:cc=newreno:iw=100,gateway:auto=on:cc=newreno:iw=100"
STEP_S = 0.075
RATE = 20e6
HANDSHAKE = 4000  # bytes
LOSSES = ("0%", "1%")


def label(scenario: str, loss: str) -> str:
    return f"{scenario},forward.loss={loss},return.loss={loss}"


def curve(first_s: float, begin_bps: float, doubles_s: float, most_bps: float) -> list[int]:
    """A handshake, then from `first_s` on a rate that doubles up to a highest one; 18 s of it."""
    total, fine = 0.0, 0.005
    made: list[int] = []
    for step in range(1, 241):
        while len(made) < step:
            for inner in range(int(STEP_S / fine)):
                now = (step - 1) * STEP_S + inner * fine
                if now >= first_s:
                    grown = begin_bps * 2 ** ((now - first_s) / doubles_s)
                    total += min(grown, most_bps) * fine / 8
            made.append(HANDSHAKE + int(total))
    return made


def readable(course: list[int], first_s: float) -> list[int]:
    """Of a curve, what is of the file, if nothing is missing."""
    before = int(first_s / STEP_S)
    return [0 if place < before else value - course[before - 1] for place, value in enumerate(course)]


def trial(
    place: tuple[str, str], treatment: str, iteration: int, shape: tuple[float, ...], **more: Any
) -> Record:
    made = fake_run.record("sat", "noq", "noq", iteration)
    changed = {
        "scenario": label(*place),
        "workload": "duration:18s",
        "size_bytes": 0,
        "treatment": treatment,
        "transport": "tcp" if treatment.startswith("tcp") else "quic",
        "seed": str(iteration),
        "outcome": "ok",
        "detail": "",
        "trial": f"{place}{treatment}{iteration}{more.get('workload')}",
        "ttfb_s": shape[0],
        "received_step_s": STEP_S,
        "received_bytes": curve(*shape),
        "in_order_bytes": readable(curve(*shape), shape[0]),
        "completion_s": None,
        "goodput_bps": None,
        "forward_packets": 1000,
        "forward_queue_drops": 25,
        "return_packets": 480,
    }
    return fake_run.change(made, **changed | more)


def write(name: str, records: list[Record], **options: Any) -> Path:
    folder = Path(name)
    fake_run.write(folder, stacks=("noq",))
    with fake_run.changed_manifest(folder) as manifest:
        labels = list(dict.fromkeys(one.scenario for one in records))
        summary = manifest["scenarios"]["sat"]["summary"] | {
            "forward_rate_bps": RATE,
            "title": "A made-up path",
        }
        manifest["scenarios"] = {one: {"scenario": {}, "summary": summary} for one in labels}
        named = [one.replace(" ", "=", 1) for one in dict.fromkeys(r.treatment for r in records)]
        manifest["options"] |= {
            "scenarios": list(dict.fromkeys(one.partition(",")[0] for one in labels)),
            "sweep": {
                "forward.loss, return.loss": [one for one in LOSSES if any(f"={one}" in r for r in labels)]
            },
            "workloads": list(dict.fromkeys(one.workload for one in records)),
            "treatments": named,
            **options,
        }
    fake_run.write_records(folder, records)
    return folder


SLOW, FAST = (1.16, 2e5, 0.6, 19.2e6), (1.08, 2e6, 0.6, 19.2e6)


def first_run() -> Path:
    records = []
    for scenario in ("geo-tum", "leo-tum"):
        for loss in LOSSES:
            for number in (1, 2, 3):
                # Over LEO with losses the proxies end up with half as much.
                worse = scenario == "leo-tum" and loss == "1%"
                fast = (FAST[0], FAST[1], FAST[2], 5e6) if worse else FAST
                records.append(trial((scenario, loss), "direct", number, SLOW))
                records.append(trial((scenario, loss), CHAIN, number, fast))
    return write("run", records)


def study(bentpipe: Command, *runs: Path) -> Done:
    return bentpipe("study", "kosek", *fake_run.named(runs), "-o", "out")


def page(bentpipe: Command, *runs: Path) -> str:
    done = study(bentpipe, *runs)
    assert done.code == 0, done.err
    for path in Path("out").glob("*.svg"):
        ElementTree.parse(path)
    return Path("out/kosek.md").read_text()


def row(text: str, begins: str) -> list[str]:
    """The first row of a table that begins so: its other cells."""
    line = next(line for line in text.splitlines() if line.startswith(f"| {begins} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_what_came_before_the_file_does_not_count() -> None:
    one = trial(("geo-tum", "0%"), "direct", 1, SLOW)
    for curve_of in (arrived, in_order):
        found = curve_of(one, 15.0)
        assert len(found) == 150 and found[0] > 0
        at_end = round((SLOW[0] + 15.0) / STEP_S) - 1  # the clock begins with the first byte
        assert found[-1] == pytest.approx(one.received_bytes[at_end] - HANDSHAKE, rel=1e-2)
        assert not curve_of(fake_run.change(one, ttfb_s=None), 15.0).any()
    assert not arrived(fake_run.change(one, received_bytes=[]), 15.0).any()


def test_what_waits_for_a_lost_packet_does_not_count_until_then() -> None:
    one = trial(("geo-tum", "0%"), "direct", 1, SLOW)
    cut = int(6 / STEP_S)
    waiting = [min(value, one.in_order_bytes[cut]) for value in one.in_order_bytes]
    found = Arrivals.of([fake_run.change(one, in_order_bytes=waiting)], 15.0)
    whole = Arrivals.of([one], 15.0)
    assert found.mean[-1] == one.in_order_bytes[cut] < whole.mean[-1]
    assert found.slow_start_s == whole.slow_start_s  # the sender goes on


def test_a_trial_that_does_not_say_what_could_be_read_makes_no_page(bentpipe: Command) -> None:
    run = first_run()
    lines = [json.loads(line) | {"in_order_bytes": []} for line in
             (run / "records.jsonl").read_text().splitlines()]  # fmt: skip
    (run / "records.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    done = study(bentpipe, run)
    assert done.code == 1 and "in_order_bytes is empty" in done.err


@pytest.mark.parametrize(("begin", "until_s"), [(2e5, math.log2(0.9 * 19.2e6 / 2e5) * 0.6), (15e6, 0.3)])
def test_slow_start_ends_where_the_rate_stops_to_grow(begin: float, until_s: float) -> None:
    found = Arrivals.of([trial(("geo-tum", "0%"), "direct", 1, (1.16, begin, 0.6, 19.2e6))], 15.0)
    assert found.slow_start_s[0] == pytest.approx(until_s, abs=0.35)
    assert found.full_s(RATE)[0] >= found.slow_start_s[0]
    assert found.full_s(30e6) == [math.inf]


def test_a_peak_that_losses_end_is_the_end_of_slow_start() -> None:
    one = trial(("geo-tum", "1%"), "direct", 1, SLOW)
    rising = np.array(curve(*SLOW))
    fallen = rising.copy()
    cut = int(5 / STEP_S)
    fallen[cut:] = rising[cut] + (np.arange(240 - cut) * 1e6 / 8 * STEP_S).astype(int)
    found = Arrivals.of([fake_run.change(one, received_bytes=[int(value) for value in fallen])], 15.0)
    assert found.slow_start_s[0] == pytest.approx(5.0 - SLOW[0], abs=0.2)


def test_nothing_has_no_end_of_slow_start() -> None:
    silent = fake_run.change(trial(("geo-tum", "0%"), "direct", 1, SLOW), ttfb_s=None)
    found = Arrivals.of([silent], 15.0)
    assert found.slow_start_s == [math.inf] and np.isnan(ratio(found, found)).all()


def test_roads_and_treatments_have_short_names() -> None:
    assert LossyPath.of("geo-tum,forward.loss=0.1%,return.loss=0.1%") == LossyPath("geo-tum", "0.1 %")
    assert LossyPath.of("geo-tum") == LossyPath("geo-tum", "0 %")
    assert shown(CHAIN) == "both: cc=newreno iw=100" and shown("direct") == "direct"
    assert shown("quic-pep terminal,gateway") == "both: defaults"
    assert (
        shown("quic-pep gateway:iw=9") == "gateway alone: iw=9"
        and shown("quic-pep gateway") == "gateway alone"
    )
    assert shown("quic-pep terminal:iw=9,gateway") == "terminal: iw=9; gateway: defaults"
    assert has(WARM, "mode", "warm") and not has(CHAIN, "mode", "warm") and not has("direct", "mode", "warm")


def test_the_page_has_the_multiples_of_the_records(bentpipe: Command) -> None:
    text = page(bentpipe, first_run())
    known = {one: Arrivals.of([trial(("x", "0%"), "direct", 1, one)], 15.0) for one in (SLOW, FAST)}
    many = ratio(known[FAST], known[SLOW])
    told = row(text, "geo-tum, 0 %: QUIC")
    assert told[0] == "3"
    here, there = told[3].split(" / ")  # by 3 s
    assert here == (f"{many[29]:.2f}" if many[29] < 3 else f"{many[29]:.1f}")
    assert there == "5.5"  # 22.211 / 4.010 Mbit of the dataset's first three seconds
    assert float(told[6].split(" / ")[0]) == pytest.approx(many[149], abs=0.01)
    slow = row(text.partition("**Slow start ends**")[2], "geo-tum, 0 %: QUIC")
    gap = float(slow[0].removesuffix(" s")) - float(slow[1].removesuffix(" s"))
    assert gap == pytest.approx(2.0, abs=0.2)
    # 15184 of 17904 kbit/s in the fifth second, in the fourth 17892 with proxies.
    peaks = row(text, "geo-tum, QUIC, 0 %: the second in which slow start ends, with proxies / without")
    assert peaks[1] == "4 / 6"
    assert row(text, "geo-tum, QUIC: the same by the end of a second")[1] == "8.8, by 1 s and 0 %"
    said = " ".join(text.split())
    assert "By 15 s that of QUIC is below 1, and its interval too, each by itself, in: leo-tum, 1 %." in said
    assert "3 trials of each setting, where the source has 100" in said
    assert {path.name for path in Path("out").iterdir()} == {
        "kosek.md", "kosek-claims.svg", "kosek-ratio.svg", "kosek-goodput.svg"
    }  # fmt: skip


def test_what_is_beside_each_other_is_of_the_same_loss(bentpipe: Command) -> None:
    text = page(bentpipe, first_run())
    here, there = row(text, "leo-tum, QUIC: bytes with / without by 15 s; at 0, 1 % of loss")
    many = [ratio(Arrivals.of([trial(("x", "0%"), CHAIN, 1, one)], 15.0),
                  Arrivals.of([trial(("x", "0%"), "direct", 1, SLOW)], 15.0))[-1]
            for one in (FAST, (*FAST[:3], 5e6))]  # fmt: skip
    assert [float(one) for one in here.split(", ")] == pytest.approx(many, abs=0.01)
    assert there == "0.95, 1.26"
    last = row(text, "leo-tum, QUIC, 1 %: Mbit/s with / without in the last 5 s")
    assert last == ["5.0 / 19.2", "0.4 / 0.5"]


def test_tcp_stands_beside_quic(bentpipe: Command) -> None:
    records = []
    for number in (1, 2, 3):
        tcp = {"transport": "tcp", "client": "linux", "server": "linux"}
        slower = (SLOW[0], SLOW[1] / 2, *SLOW[2:])
        records.append(trial(("geo-tum", "0%"), "direct", number, slower, **tcp))
        records.append(trial(("geo-tum", "0%"), TCP_CHAIN, number, FAST, **tcp))
    text = page(bentpipe, first_run(), write("tcp", records))
    assert row(text, "geo-tum, 0 %: TCP")[1].endswith(" / 2.13")  # 1325 / 623
    here, there = row(text, "geo-tum: bytes over QUIC / TCP by 15 s, with proxies; at 0 % of loss")
    assert (here, there) == ("1.00", "1.06")
    here, _ = row(text, "geo-tum: bytes over QUIC / TCP by 15 s, without proxies; at 0 % of loss")
    assert float(here) > 1.02
    assert row(text, "geo-tum, TCP: first byte, proxies") == ["1.080 s", "1.215 s, HTTP/1.1 without TLS"]
    assert "that of TCP is below 1, and its interval too, each by itself, in: no setting." in " ".join(
        text.split()
    )


def test_more_loss_has_a_section_of_its_own(bentpipe: Command) -> None:
    lossier = [trial(("leo-tum", loss), name, 1, (*SLOW[:3], rate)) for loss in ("1%", "4%")
               for name, rate in (("direct", 2e6), (CHAIN, 1e6))]  # fmt: skip
    run = write("losses", lossier)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"campaign": "kosek-losses"}))
    text = page(bentpipe, first_run(), run)
    below = text.partition("## With more loss")[2]
    assert row(below, "leo-tum, 1 %, published") == ["0.50", "0.38"]
    assert row(below, "leo-tum, 4 %, here") == ["2.00", "1.00"]
    assert "leo-tum, 4 %" not in text.partition("## With more loss")[0]


def test_trials_of_one_setting_count_together_and_once(bentpipe: Command) -> None:
    run, again = first_run(), first_run()
    text = " ".join(page(bentpipe, run, again).split())
    assert "The page covers 15 s from the first byte on, 3 trials" in text
    records = [trial(("geo-tum", "0%"), name, 4, SLOW) for name in ("direct", CHAIN)]
    text = " ".join(page(bentpipe, run, write("more", records)).split())
    assert "3 to 4 trials of each setting" in text


def files(
    scenario: str, treatment: str, first_s: float, done_s: float, trials: tuple[int, ...] = (1, 2, 3)
) -> list[Record]:
    return [
        trial((scenario, "0%"), treatment, number, SLOW, workload="transfer:100000", size_bytes=100_000,
              ttfb_s=first_s, completion_s=done_s)
        for number in trials
    ]  # fmt: skip


def more_run() -> Path:
    records = []
    for scenario, worse in (("geo-tum", 0.7), ("leo-tum", 1.3)):
        for treatment, shape in (("direct", SLOW), (CHAIN, FAST), (AUTO, SLOW)):
            records += [trial((scenario, "0%"), treatment, number, shape) for number in (1, 2, 3)]
        records += files(scenario, "direct", 1.16, 2.0)
        records += files(scenario, CHAIN, 1.08, 2.0 * worse)
        records += files(scenario, SEQUENTIAL, 1.161, 2.1)
        records += files(scenario, WARM, 0.58, 1.5)
        records += files(scenario, AUTO, 1.16, 2.0 * min(worse, 1.01))
    return write("more", records)


def test_further_runs_have_what_the_paper_left_open(bentpipe: Command) -> None:
    text = page(bentpipe, first_run(), more_run())
    firsts = ["direct", "proxies, parallel handshakes", "proxies, one handshake after the other",
              "proxies, handshakes over before"]  # fmt: skip
    assert [row(text, f"geo-tum, QUIC: first byte, {one}") for one in firsts] == [
        ["1.160 s", "1.314 s, HTTP/3"], ["1.080 s", "-"], ["1.161 s", "2.717 s, HTTP/3"], ["0.580 s", "-"]
    ]  # fmt: skip
    assert row(text.partition("### geo-tum\n")[2], "direct")[-2:] == ["2.5 %", "48.0 %"]
    handshakes = text.partition("## Files, and what a handshake costs")[2]
    assert row(handshakes, "both: cc=newreno iw=100 mode=sequential") == ["1.161", "**2.100**"]
    aside = text.partition("## When to step aside")[2]
    assert row(aside, "leo-tum, 0 %: 100 kB") == ["130 %", "101 %"]
    assert "geo-tum, 0 %: 100 kB" not in aside
    assert "slower than `direct` in 0 of the 4 settings that it was run in" in " ".join(aside.split())


def test_what_0_rtt_between_proxies_could_save_is_bounded(bentpipe: Command) -> None:
    text = page(bentpipe, first_run(), more_run())
    said = " ".join(text.partition("## Files, and what a handshake costs")[2].split())
    assert "proxies do not send it" in said
    times = "takes 1.080 s in `parallel` mode and 0.580 s in `warm` mode"
    assert f"Over geo-tum the first byte {times}: 0-RTT would save at most 0.500 s." in said


def test_controllers_under_losses_have_intervals_and_no_best(bentpipe: Command) -> None:
    records = [trial(("geo-tum", "1%"), CHAIN.replace("newreno", "cubic"), number, (*FAST[:3], rate))
               for number, rate in ((1, 2.4e6), (2, 2.5e6))]  # fmt: skip
    text = page(bentpipe, first_run(), write("cubic", records)).partition("## Other controllers")[2]
    found = re.fullmatch(r"(\S+) \((\S+) to (\S+)\)", row(text, "both: cc=cubic iw=100")[2])
    assert found is not None
    value, low, high = map(float, found.groups())
    slow, cubic = (Arrivals.of([trial(("x", "0%"), "direct", 1, one)], 15.0).mean[-1]
                   for one in (SLOW, (*FAST[:3], 2.45e6)))  # fmt: skip
    assert low < value < high and value == pytest.approx(cubic / slow, rel=0.05)
    assert "**" not in text.partition("## ")[0]


def causes_run() -> Path:
    """A control, and ends that are twice as slow: the ratio doubles."""
    records = []
    plain = CHAIN.replace("iw=100", "iw=100:ss=standard")
    control, slow = "noq:cc=cubic:iw=10:ss=standard", "noq:cc=newreno:iw=10:ss=standard"
    for number, factor in enumerate((1.0, 1.02, 0.98), 1):
        for server, rate in ((control, 4e6), (slow, 2e6)):
            made = trial(("leo-tum", "1%"), "direct", number, (*SLOW[:3], rate * factor), server=server)
            records.append(made)
            records.append(trial(("leo-tum", "1%"), plain, number, (*SLOW[:3], 2e6 * factor), server=server))
    run = write("causes", records)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"campaign": "kosek-causes-leo"}))
    return run


def test_a_cause_is_told_by_what_it_changes_and_which_way(bentpipe: Command) -> None:
    text = page(bentpipe, first_run(), causes_run())
    below = text.partition("### Causes over leo-tum, 1 %")[2]
    assert row(below, "published")[4] == "1.26"
    assert row(below, "control: Bentpipe's own CUBIC and NewReno")[4].startswith("0.52 (")
    line = next(line for line in below.splitlines() if line.startswith("| ends: cc=newreno ("))
    assert "1.00 (" in line and re.search(r"nearer, 1\.9\d times the control's", line)
    # What is changed on purpose is not counted with the rest.
    assert "leo-tum, 1 %: QUIC | 3 |" in text.partition("### Causes")[0]


@pytest.mark.parametrize(
    ("settings", "server", "chain", "road", "title"),
    [
        ("", "", "", "0 %", "control"),
        (",forward.queue=0.25BDP", "", "", "0 %", "forward.queue = 0.25BDP"),
        (",forward.delay=1ms,return.delay=1ms", "", "", "0 %", "1ms over the satellite, each way"),
        (",forward.loss=1%", "", "", "1 %", "losses towards the client alone"),
        (",forward.loss.model=gilbert-elliott,forward.loss.p_bad_given_bad=60%,"
         "forward.loss.p_bad_given_good=0.132%", "", "",
         "0.1 %", "frames are lost, in bursts of 2.5 packets"),
        (",forward.loss=1%,return.loss=1%", ":pacing=off", "", "1 %", "ends: pacing=off"),
        ("", ":pacing=off", ":pacing=off", "0 %", "ends and proxies: pacing=off"),
        ("", "", ":pacing=off", "0 %", "proxies: pacing=off"),
    ],
)  # fmt: skip
def test_a_setting_is_called_by_what_differs(
    settings: str, server: str, chain: str, road: str, title: str
) -> None:
    treatment = CHAIN.replace("iw=100", f"iw=100:ss=standard{chain}")
    one = trial(("geo-tum", "0%"), treatment, 1, SLOW, server=f"noq:cc=cubic:iw=10:ss=standard{server}")
    found = Setting.of(fake_run.change(one, scenario=f"geo-tum{settings}"), treatment)
    assert (found.road, found.title) == (LossyPath("geo-tum", road), title)


def test_intervals_of_ratios_of_means_hold_the_truth() -> None:
    """95 % are promised; by the delta method of skewed samples it is somewhat less."""
    draw = np.random.default_rng(7)
    held = 0
    for _ in range(400):
        first, second = (draw.lognormal(0, 0.6, 20) for _ in range(2))
        found = ratio_of_means([first], [2 * second], paired=False)
        assert found is not None and found.low is not None and found.high is not None
        held += found.low <= 2 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def test_pairs_leave_out_what_both_have_in_common() -> None:
    """Of far shorter intervals; those of skewed samples hold it somewhat less often than promised."""
    draw = np.random.default_rng(7)
    held, shorter = 0, 0
    for _ in range(400):
        first = draw.lognormal(0, 0.6, 20)
        second = 2 * first * draw.lognormal(0, 0.05, 20)
        apart, found = (ratio_of_means([first], [second], paired=one) for one in (False, True))
        assert found is not None and found.low is not None and found.high is not None
        assert apart is not None and apart.low is not None and apart.high is not None
        truth = 2 * math.exp(0.05**2 / 2)
        held += found.low <= truth <= found.high
        shorter += (found.high / found.low) ** 5 < apart.high / apart.low
    assert 0.91 <= held / 400 <= 0.98 and shorter == 400


def test_few_trials_are_compared_with_those_of_the_same_draws() -> None:
    """Of five trials with proxies, each of which has twice the bytes of its partner among six."""

    def arrivals(bytes_of: dict[str, float]) -> Arrivals:
        records = [fake_run.change(trial(("geo-tum", "1%"), "direct", 1, SLOW), seed=one) for one in bytes_of]
        values = np.array([[one] for one in bytes_of.values()])
        return Arrivals(tuple(records), values, values)

    direct = arrivals({"a": 1.0, "b": 9.0, "c": 2.0, "d": 8.0, "e": 7.0, "f": 6.0})
    few = {"e": 14.0, "c": 4.0, "a": 2.0, "d": 16.0, "f": 12.0}
    found = times_as_much(arrivals(few), direct, 0.1)
    assert found is not None and found.value == found.low == found.high == pytest.approx(2)
    other = times_as_much(arrivals({**few, "z": 12.0}), direct, 0.1)
    assert other is not None and other.value == pytest.approx(60 / 33), "one without a partner: all count"
    rest = times_as_much(arrivals({"a": 2.0, "c": 4.0}), direct, 0.1)
    assert rest is not None and rest.value == pytest.approx(3 / 5.5), "too few for pairs"


def test_ratios_of_means_of_what_does_not_vary_or_is_alone() -> None:
    same = ratio_of_means([[2.0, 2.0]], [[3.0, 3.0]], paired=False)
    assert same is not None and same.low == same.value == same.high == pytest.approx(1.5)
    alone = ratio_of_means([[2.0]], [[3.0]], paired=False)
    assert alone is not None and alone.low is None and alone.p is None
    both = ratio_of_means(
        [[1.0, 1.0], [6.0, 6.0]], [[4.0, 4.0], [3.0, 3.0]], paired=False
    )  # (4 / 1) / (6 / 3)
    assert both is not None and both.value == pytest.approx(2)
    assert (
        ratio_of_means([[0.0, 0.0]], [[1.0, 1.0]], paired=False) is None
        and ratio_of_means([[]], [[1.0]], paired=False) is None
    )


def test_the_second_of_the_peak() -> None:
    assert second_of_peak(np.array([1.0, 2.0, 4.0, 8.0, 8.2, 8.1])) == 4
    assert second_of_peak(np.array([5.0, 4.0, 3.0])) == 1 and second_of_peak(np.zeros(3)) is None


def test_what_one_of_many_settings_shows_may_be_chance(bentpipe: Command) -> None:
    # Of these alone p is below 0.05; of all settings and treatments together it is not.
    noise = (1.0, 1.02, 0.98, 1.05, 0.96)
    records = []
    for treatment, factor in (("direct", 1.0), (AUTO, 1.06)):
        for number, change in enumerate(noise, 1):
            made = files("leo-tum", treatment, 1.16, 2.0 * factor * change, (number,))
            records += [fake_run.change(one, seed=f"{treatment}{number}") for one in made]  # no pairs
    alone = ratio_of_means(
        [[2.0 * one for one in noise]], [[2.0 * 1.06 * one for one in noise]], paired=False
    )
    assert alone is not None and alone.p is not None and 0.02 < alone.p < 0.05
    text = page(bentpipe, equal_run(), write("aside", records))
    text = text.partition("## When to step aside")[2]
    assert row(text, "leo-tum, 0 %: 100 kB") == ["-", "(106 %)"]
    assert "slower than `direct` in 1 of the 1 settings that it was run in, in 0 of them" in text


def equal_run() -> Path:
    """With proxies as without, but for chance."""
    records = []
    for loss in LOSSES:
        for treatment, shift in (("direct", 0.0), (CHAIN, 0.01)):
            for number in (1, 2, 3):
                shape = (SLOW[0] + 0.1 * number + shift, *SLOW[1:])
                records.append(trial(("geo-tum", loss), treatment, number, shape))
    return write("run", records)


def _section(text: str, title: str) -> str:
    assert text.count(title) == 1
    return text.partition(title)[2].partition("\n## ")[0]


def test_real_time_stands_beside_virtual_time(bentpipe: Command) -> None:
    run = first_run()
    records = [trial(("geo-tum", "0%"), name, 1, shape) for name, shape in (("direct", SLOW), (CHAIN, SLOW))]
    real = write("real", records, testbed="emu")
    text = page(bentpipe, run, real)
    below = row(text.partition("## In real time")[2], "geo-tum, 0 %: QUIC")
    assert below[0] == "1" and below[3].startswith("1.00 / ")


def without(records: Callable[[Record], bool]) -> Path:
    run = first_run()
    kept = [
        line
        for line in (run / "records.jsonl").read_text().splitlines()
        if records(Record(**json.loads(line)))
    ]
    (run / "records.jsonl").write_text("".join(f"{line}\n" for line in kept))
    return run


@pytest.mark.parametrize("treatment", ["direct", CHAIN])
def test_a_run_without_both_makes_no_page(bentpipe: Command, treatment: str) -> None:
    done = study(bentpipe, without(lambda one: one.treatment == treatment))
    assert done.code == 1 and "with proxies and without" in done.err and "bentpipe run kosek" in done.err


def test_a_setting_whose_trials_failed_is_left_out(bentpipe: Command) -> None:
    run = first_run()
    records = [Record(**json.loads(line)) for line in (run / "records.jsonl").read_text().splitlines()]
    failed = [
        fake_run.change(
            one, outcome="crashed", detail="gateway: killed by signal 6", ttfb_s=None, received_bytes=[]
        )
        if one.treatment == CHAIN and one.scenario == label("leo-tum", "1%")
        else one
        for one in records
    ]
    fake_run.write_records(run, failed)
    text = page(bentpipe, run)
    assert "leo-tum, 1 %: QUIC |" not in text and "gateway: killed by signal 6" in text


def test_published_figures_are_there() -> None:
    known = published.load()
    assert (
        known.scenarios["geo-tum"].most == 10 and known.scenarios["leo-tum"].response_start_proxies_s == 1.418
    )
    assert all(len(getattr(one, name)) == 15 for one in known.goodput
               for name in ("quic", "quic_proxies", "tcp", "tcp_proxies"))  # fmt: skip
    assert len(known.goodput) == 8


def test_headers_and_what_came_twice_do_not_count() -> None:
    one = trial(("geo-tum", "0%"), "direct", 1, SLOW)
    whole = one.received_bytes[-1] - HANDSHAKE
    with_headers = fake_run.change(one, goodput_bps=0.9 * whole * 8 / (18 - SLOW[0]))
    assert arrived(with_headers, 15.0) == pytest.approx(0.9 * arrived(one, 15.0), rel=1e-3)


def test_what_a_curve_has_leads_to_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = first_run()
    found = study_marks.leading("kosek", ["--run", str(run)])
    wanted = [
        trial(("geo-tum", "1%"), treatment, 1, shape).cell_key
        for treatment, shape in (("direct", SLOW), (CHAIN, FAST))
    ]
    leads = [one for there in found.values() for one in there]
    assert None not in leads
    for key in wanted:
        assert leads.count(RunCell(run, key)) == 4  # MB, Mbit/s, the end of slow start, the full link
