"""`bentpipe study search` with further runs: what is changed, Hybla, flow control windows, made up."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fake_run
import pytest
from conftest import Command
from search.intervals import ShareInterval, chance_of, shift

from bentpipe.runs.records import Record

MB = 1_000_000
SIZE = 200 * MB
STEP_S = 0.2
LOGS, KEEPS = (f"noq:cc=cubic:ss={name}:pacing=off" for name in ("search-log", "search-keep"))
RUNS = 8


def record(server: str, iteration: int, delay_s: float, scenario: str = "sat", **changed: Any) -> Record:
    """A transfer of 200 MB at 20 MB/s from `delay_s` on."""
    made = fake_run.record("sat", "noq", server, iteration)
    arrived = [int(min(max(20 * MB * (step * STEP_S - delay_s), 0), SIZE)) for step in range(1, 101)]
    values: dict[str, Any] = {
        "scenario": scenario,
        "size_bytes": SIZE,
        "workload": f"transfer:{SIZE}",
        "received_step_s": STEP_S,
        "received_bytes": arrived,
        "in_order_bytes": arrived,
        "forward_losses": 0,
        "completion_s": delay_s + SIZE / (20 * MB),
        **changed,
    }
    return fake_run.change(made, **values)


def pair(delay_s: float, lead_s: float | None, scenario: str = "sat", cc: str = "cubic") -> list[Record]:
    """Runs that only log and lose at 10 s, and runs in which SEARCH acts, whose file begins after 2 s. SEARCH
    would have spoken `lead_s` before that loss, or never.
    """
    loss = {"slow_start_left_s": 10.0, "slow_start_left_by": "loss", "first_loss_s": 10.0}
    if lead_s is not None:
        loss |= {"search_exit_s": 10 - lead_s, "search_exit_rtt_s": 1.0}
    acts = {"slow_start_left_s": 7.0, "slow_start_left_by": "search"}
    logs, keeps = (one.replace("cubic", cc) for one in (LOGS, KEEPS))
    return [
        one
        for number in range(1, RUNS + 1)
        for one in (
            record(logs, number, delay_s + number / 100, scenario, server_statistics=loss),
            record(keeps, number, 2 + number / 100, scenario, server_statistics=acts),
        )
    ]


def write(folder: str, records: Sequence[Record]) -> None:
    fake_run.write(Path(folder))
    fake_run.write_records(Path(folder), records)
    file = Path(folder, "manifest.json")
    manifest = json.loads(file.read_text())
    servers, clients = (sorted({getattr(one, key) for one in records}) for key in ("server", "client"))
    manifest["options"] |= {"scenarios": ["sat"], "clients": clients, "servers": servers}
    file.write_text(json.dumps(manifest))


def page(bentpipe: Command, *runs: str) -> str:
    return bentpipe.page("search", *fake_run.named(runs))


def test_a_share_and_a_shift_have_the_intervals_of_their_tests() -> None:
    assert [round(end, 3) for end in ShareInterval(24, 29).ends] == [0.655, 0.924]
    assert ShareInterval(0, 5).ends[0] == 0 and ShareInterval(5, 5).ends[1] == 1
    # A lady who tastes tea, and tells three or four of four cups from four others (R. A. Fisher, 1935).
    assert math.isclose(chance_of(ShareInterval(3, 4), ShareInterval(1, 4)), 34 / 70)
    assert math.isclose(chance_of(ShareInterval(4, 4), ShareInterval(0, 4)), 2 / 70)
    # Of five and five values the test leaves out differences up to the second from either end.
    found = shift([10, 20, 30, 40, 50], [1, 2, 3, 4, 5])
    gaps = sorted(one - other for one in (10, 20, 30, 40, 50) for other in (1, 2, 3, 4, 5))
    assert found is not None
    assert (found.value, found.low, found.high) == (gaps[12], gaps[2], gaps[22])
    few = shift([1, 2, math.inf], [1, 1, math.inf])
    assert few is not None and (few.low, few.high) == (-math.inf, math.inf)
    assert shift([], [1.0]) is None


def test_what_turns_the_result_is_said(bentpipe: Command) -> None:
    """In the base SEARCH speaks before the loss and saves 2 s; with a faster link of the server it never
    does, and with Reno it is 1 s late.
    """
    write("run", pair(4, 1.5))
    capped = "sat,ground.forward.rate=300Mbit/s"
    write("more", [*pair(2, None, capped), *pair(1, 1.5, cc="newreno")])
    text = page(bentpipe, "run", "more")
    said = " ".join(text.split())
    fast = "the server's own link at 300 Mbit/s"
    assert f"| {fast} | 8 | 0 % (0 to 32) | - |" in text
    assert "| the base | 8 | 100 % (68 to 100) | 100 % (68 to 100) | 2.0 s at " in text
    assert "| 2.0 s (2.0 to 2.0) | 2.0 s (2.0 to 2.0) | 0 % | 100 % | 0 % |" in text
    assert "| Reno in place of CUBIC | 8 | 100 % (68 to 100) | 100 % (68 to 100) | -1.0 s at " in text
    assert f"beyond what chance allows, less often with {fast} (0 % (0 to 32))." in said
    beyond = "at 150 MB by more than 0.25 s, with"
    assert f"SEARCH is sooner {beyond} the base (2.0 s)" in said
    assert "at 40 of 40 sizes, each judged by itself, the first 5 MB, the last 200 MB." in said
    assert f"SEARCH is later {beyond} Reno in place of CUBIC (-1.0 s)" in said


def arm(name: str, begins_s: float, scenario: str = "sat", drops: int = 5) -> list[Record]:
    """Runs of a change of SEARCH, which leaves slow start by itself after 7 s, and drops some packets."""
    said = {"slow_start_left_s": 7.0, "slow_start_left_by": "search"}
    server = f"noq:cc=cubic:ss={name}:pacing=off"
    return [
        record(server, n, begins_s + n / 100, scenario, server_statistics=said, forward_queue_drops=drops)
        for n in range(1, RUNS + 1)
    ]


def test_what_the_source_proposes_stands_beside_the_baseline(bentpipe: Command) -> None:
    """One change saves 3 s, one is 1 s late, and one saves 3 s with a faster link of the server alone."""
    base = [fake_run.change(one, forward_queue_drops=10) for one in pair(4, 1.5)]
    write("run", base)
    assert "leaves to later" not in page(bentpipe, "run")
    capped = "sat,ground.forward.rate=300Mbit/s"
    fast = [*pair(4, None, capped), *arm("search-rtt", 1.0, capped)]
    write("more", [*arm("search-below", 1.0), *arm("search-jump", 5.0, drops=0), *fast])
    text = page(bentpipe, "run", "more")
    said = " ".join(text.split())
    assert "| `search-below` | the base | 8 | 100 % (68 to 100) | 5 | 10 | 3.0 s (" in text
    assert "| `search-rtt` | the server's own link at 300 Mbit/s | 8 | 100 % (68 to 100) | 5 |" in text
    assert "`search-below` is 3.0 s earlier, with 0.50 times the packets dropped" in said
    assert "`search-jump` is 1.0 s later, with 0 packets dropped" in said
    tried = "tried were 1 setting that it leaves open, changed one at a time, and 3 changes of SEARCH"
    gains = "search-below and search-rtt with the server's own link at 300 Mbit/s"
    assert f"{tried} that it proposes, and a gain of 3 s appears with {gains}." in said


@pytest.mark.parametrize(("alone_s", "words"), [(1.0, " (Jump Start alone has it, too)"), (3.5, "")])
def test_a_gain_that_jump_start_alone_has_is_said_to_be(
    bentpipe: Command, alone_s: float, words: str
) -> None:
    write("run", pair(4, 1.5))
    write("more", [*arm("search-jump", 0.5), *arm("jump-start", alone_s)])
    said = " ".join(page(bentpipe, "run", "more").split())
    assert f"and a gain of 3 s appears with search-jump{words}." in said


def test_two_flows_over_a_deep_queue_have_a_row_each(bentpipe: Command) -> None:
    write("run", pair(4, 1.5))
    deep, further = "sat,forward.queue=4BDP", "start=5s"

    def trial(first: str, second: str, jain: float, iteration: int, *, named: bool = True) -> Record:
        server = f"noq:cc=cubic:ss={first}"
        beside = f"server=noq:cc=cubic:ss={second},{further}" if named else further
        made = fake_run.record("sat", "noq", server, iteration)
        counts = {
            f"{way}_{what}": 0
            for way in ("forward", "return")
            for what in ("packets", "queue_drops", "losses")
        }
        waits = {f"{way}_queueing_{it}_ms": 0.0 for way in ("forward", "return") for it in ("median", "p99")}
        ends = {"client": "noq", "server": server, "start_s": 0.0, "end_s": 60.0, "outcome": "ok"}
        sent = {"goodput_bps": 8e6, "forward_packets": 1000, "forward_queue_drops": 20}
        flow = {**ends, "detail": "", "received_bytes": [], **counts, **waits, **sent}
        return fake_run.change(
            made, scenario=deep, workload=f"duration:60s + {beside}", jain_index=jain,
            trial=f"{first}{second}{iteration}{named}", seed=f"{first}{second}{iteration}{named}",
            flows=[flow, flow], in_order_bytes=[1],
        )  # fmt: skip

    records = [
        trial(first, second, jain + n / 100, n)
        for first, second, jain in (("standard", "standard", 0.8), ("standard", "search", 0.6))
        for n in (1, 2, 3)
    ]
    # The same pair, with the second flow's server left out, and a trial that says nothing of the flows.
    records += [trial("standard", "standard", 0.8 + n / 100, n, named=False) for n in (1, 2, 3)]
    invalid = trial("standard", "search", 0.1, 4)
    records += [fake_run.change(invalid, outcome="invalid", detail="the host was too slow")]
    text = bentpipe.page(
        "search", *fake_run.named(["run"]), *fake_run.write_campaign("search-fairness", records)
    )
    assert "| standard | standard | 0.82 (0.81) |" in text and text.count("| standard | standard |") == 1
    assert "| standard | search | 0.62 (0.61) | 8.00 | 8.00 | 2 % |" in text
    said = " ".join(text.split())
    assert "The second flow begins 5 s after the first" in said
    assert "Least fair are `standard` and then `search`, 0.62 (0.60 to 0.64), most `standard` and" in said
    assert "then `standard`, 0.82 (0.81 to 0.83). Two flows without SEARCH have 0.82 (0.81 to 0.83)." in said
    near = [fake_run.change(one, jain_index=0.9 - 0.3 * (one.iteration % 2)) for one in records]
    text = bentpipe.page(
        "search", *fake_run.named(["run"]), *fake_run.write_campaign("search-fairness", near)
    )
    assert "That pairs differ in fairness is not shown" in " ".join(text.split())


def test_without_further_runs_nothing_is_said_of_them(bentpipe: Command) -> None:
    write("run", pair(4, 1.5))
    text = page(bentpipe, "run")
    for heading in ("What the source leaves open", "SEARCH while Hybla grows", "The flow control window"):
        assert heading not in text
    assert "draft-chung-ccwg-search-09" in text


def test_records_that_do_not_say_what_could_be_read_make_no_page(bentpipe: Command) -> None:
    write("run", [fake_run.change(one, in_order_bytes=[]) for one in pair(4, 1.5)])
    done = bentpipe("study", "search", "--run", "run", "-o", "out")
    assert done.code != 0 and "could read" in done.err and not Path("out").exists()


HYBLA = ("search", "search-hybla", "search-hybla:cwnd=200000", "hybla:cwnd=200000")


def over(delay: str, ends: Sequence[tuple[str | None, float]], times_s: Sequence[float]) -> list[Record]:
    """A path, by what ended slow start and when, of each of the four servers."""
    path = f"sat,forward.delay={delay},return.delay={delay},forward.rate=20Mbit/s,forward.queue=5BDP"
    return [
        record(
            f"noq:cc=cubic:ss={start}", 1, 2, path, completion_s=time_s,
            server_statistics={"slow_start_left_by": by, "slow_start_left_s": at} if by else {},
        )
        for start, (by, at), time_s in zip(HYBLA, ends, times_s, strict=True)
    ]  # fmt: skip


def test_which_of_search_and_hybla_ends_slow_start(bentpipe: Command) -> None:
    write("run", pair(4, 1.5))
    near = over("10ms", [("search", 0.4), ("ssthresh", 0.1), (None, 0), (None, 0)], [8, 8, 8, 8])
    far = over("300ms", [("search", 9.0), ("ssthresh", 3.0), ("search", 5.0), (None, 0)], [13, 11, 30, 20])
    write("more", [*near, *far])
    text = page(bentpipe, "run", "more")
    said = " ".join(text.split())
    assert "| 20 ms | SEARCH 1 | Hybla 1 | not at all 1 |" in text
    assert "| 600 ms | SEARCH 1 | Hybla 1 | SEARCH 1 |" in text
    assert "SEARCH alone ends slow start over 2 of 2 paths, together with Hybla over none." in said
    assert "that takes 3.0 to 4.0 times as long as with Hybla" in said
    assert "beyond 200 kB (`cwnd=200000`), over 1 of 2 paths" in said
    assert "A file then takes 1.50 times as long" in said


def test_flow_control_windows_have_a_row_each(bentpipe: Command) -> None:
    windows = (16, 256)
    write("run", pair(4, 1.5))
    server = "noq:cc=cubic:ss=standard:pacing=off"
    seen: dict[str, Any] = {"in_flight_max_bytes": 16 * MB, "rtt_max_ms": 850.0, "forward_queue_drops": 3}
    write("more", [record(server, 1, 2, client=f"noq:window={size * MB}", **seen) for size in windows])
    text = page(bentpipe, "run", "more")
    assert "| 16 MB | 12.0 s | 16.0 MB | 0.8 s | 3 | - |" in text
    texts = " ".join(ElementTree.parse("out/search-flow-control.svg").getroot().itertext())
    assert all(f"{size} MB" in texts for size in windows)


def test_capacity_on_demand_stands_beside_capacity_that_is_there(bentpipe: Command) -> None:
    spoken = {"search_exit_s": 8.0, "search_exit_rtt_s": 2.0, "first_loss_s": 10.0}
    lost = {"slow_start_left_s": 10.0, "slow_start_left_by": "loss"}
    late = {"first_loss_s": 10.5, "search_exit_s": 12.0, "search_exit_rtt_s": 2.0}
    fewer: dict[str, Any] = {"workload": f"transfer:{100 * MB}", "size_bytes": 100 * MB}
    base = fake_run.write_campaign("search", pair(1.0, 2.0))
    records = [
        record(LOGS, 1, 1.0, "viasat", server_statistics=spoken | lost, **fewer),
        record(LOGS, 1, 3.0, "viasat-dama", server_statistics=late | lost, **fewer),
        record(LOGS, 1, 1.5, "viasat-dama,return.rate.cra=11.7Mbit/s", server_statistics=spoken, **fewer),
    ]
    text = bentpipe.page("search", *base, *fake_run.write_campaign("search-dama", records))
    assert "| viasat | search-log | 8.00 | 1.00 | 10.00 | 10.00 | loss | 2.25 |" in text
    assert "| viasat-dama | search-log | 12.00 | - | 10.50 | 10.00 | loss | 4.25 |" in text
    assert "| viasat-dama without requests | search-log | 8.00 | 1.00 | 10.00 |" in text
    flat = " ".join(text.split())
    assert (
        "Over viasat SEARCH finds the link full after 8.00 s, the first loss is noticed after 10.00 s" in flat
    )
    assert "The requests of viasat-dama make that 4.00, 0.50 and 1.50 s later." in flat
    assert "What the source leaves open" not in text


def test_what_requests_do_is_told_by_the_same_carrier_alone(bentpipe: Command) -> None:
    base = fake_run.write_campaign("search", pair(1.0, 2.0))
    records = [record(LOGS, 1, 1.0, one, server_statistics={}) for one in ("viasat", "viasat-dama")]
    flat = " ".join(bentpipe.page("search", *base, *fake_run.write_campaign("search-dama", records)).split())
    assert "Over viasat-dama SEARCH finds the link full in no trial" in flat
    assert "The requests of" not in flat
