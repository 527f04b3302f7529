"""`bentpipe study bbr-cases`: each judgement of a sender that keeps the draft's rule, and of one that breaks
it; and a page from a made-up run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run
import fake_trace
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bbr_cases import changes, cycle, limited, startup
from bbr_cases.cases import CASES, HIDDEN
from bbr_cases.judgement import Judgement, failed, in_words, over_seeds, passed, untold
from bbr_cases.signals import PathFacts, Signals, spans
from conftest import Command
from fake_bbr import PATH, SIZE, bbr, grown, paced

from bentpipe.plan import campaign, scenarios
from bentpipe.runs.records import Record

FAR = PathFacts(10e6, 1.0)
STUDY = Path(__file__).parent


def test_the_wire_shows_what_was_sent() -> None:
    """10 Mbit/s and 50 ms: a BDP of 62.5 kB. Half of the rate for a second leaves 0.5 BDP in flight, and what
    a packet takes to be sent.
    """
    seen = paced(lambda _: 0.5, 2.0)
    assert seen.path.bdp_bytes == 62500
    assert seen.pace(0.5, 1.5) == pytest.approx(0.5, abs=0.01)
    assert seen.use(0.5, 1.5) == pytest.approx(0.5, abs=0.01)
    assert float(seen.bdps(1.0)) == pytest.approx(0.5 + SIZE / 62500 / 2, abs=0.02)
    assert seen.rounds(0.5, 1.5) == pytest.approx(1 / 0.051, rel=0.05)
    assert seen.loss(0, 2) == 0


def test_what_is_declared_lost_is_not_in_flight() -> None:
    seen = paced(lambda time: 1.0 if time < 0.5 else 0.0, 1.0, lost=lambda time: float(time < 0.25))
    assert seen.loss(0, 1) == pytest.approx(0.5, abs=0.01)
    assert float(seen.in_flight(0.9)) == 0


def test_spans_close_to_each_other_are_one() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    on = np.array([True, True, False, True, False, False])
    assert spans(times, on, 1.0) == [(0.0, 1.0), (3.0, 3.0)]
    assert spans(times, on, 2.0) == [(0.0, 3.0)]


# A habit that breaks the rule of a judgement, and of no other.
BROKEN: list[tuple[Callable[[Signals], Judgement], dict[str, float]]] = [
    (startup.on_plateau, {"full_rounds": 1}),
    (startup.on_plateau, {"full_rounds": 7}),
    (startup.drain_to_bdp, {"drain_gain": 0.35}),
    (startup.drain_to_bdp, {"drain_to": 0.5}),
    (cycle.up_to_plateau, {"up_rounds": 1}),
    (cycle.up_to_plateau, {"up_rounds": 8}),
    (cycle.down_to_bdp, {"down_gain": 0.75}),
    (cycle.down_to_bdp, {"cruise": 0.85}),
    (cycle.probe_rtt, {"probe_rtt_s": 10.0}),
    (cycle.probe_rtt, {"depth": 0.1}),
    (cycle.probe_rtt, {"probe_lasts_s": 0.1}),
]
SHAPES = dict.fromkeys(judge for judge, _ in BROKEN)


@pytest.mark.parametrize("judge", SHAPES)
def test_a_sender_by_the_draft_passes(judge: Callable[[Signals], Judgement]) -> None:
    assert judge(bbr()).outcome == "pass"


@pytest.mark.parametrize(("judge", "habit"), BROKEN)
def test_a_habit_fails_its_case_alone(judge: Callable[[Signals], Judgement], habit: dict[str, float]) -> None:
    seen = bbr(**habit)
    assert judge(seen).outcome == "fail"
    assert [one(seen).outcome for one in SHAPES if one is not judge] == ["pass"] * (len(SHAPES) - 1)


def test_a_sender_that_its_window_limits_shows_no_phase() -> None:
    seen = paced(lambda time: 2.0 if time < 0.1 else 1.0, 20.0)
    assert cycle.up_to_plateau(seen).outcome == "?" and cycle.down_to_bdp(seen).outcome == "?"
    assert cycle.probe_rtt(seen).outcome == "fail"
    assert startup.on_plateau(seen).outcome == "fail" and startup.drain_to_bdp(seen).outcome == "fail"


def test_a_queue_that_overflows_hides_the_plateau() -> None:
    seen = paced(lambda time: 2 * grown(time), 2.0, lost=lambda _: 0.1)
    assert startup.on_plateau(seen).outcome == "?"


def drained(until_s: float, gain: float = 0.5) -> Signals:
    """A sender that drains from 0.4 s on where the rate falls to 0.525 then."""

    def pace(time: float) -> float:
        return 2.0 if time < 0.1 else 1.0 if time < 0.4 else gain if time < until_s else 0.9

    return paced(pace, 3.0, share=lambda time: 0.525 if time > 0.4 else 1.0)


def test_drain_ends_in_time() -> None:
    """With three BDP in flight a round takes 0.27 s."""
    assert startup.drain_in_time(drained(1.3), 0.4).outcome == "pass"
    assert startup.drain_in_time(drained(2.3), 0.4).outcome == "fail"
    assert startup.drain_in_time(drained(9.0), 0.4).outcome == "?"
    emptied = startup.drain_in_time(drained(0.65, gain=0.1), 0.4)
    assert emptied.outcome == "?" and "in flight" in emptied.seen
    begin = startup.drain_begin_s(bbr(3.0))
    assert begin is not None and 0.2 < begin < 1.0
    assert startup.drain_begin_s(paced(lambda time: grown(time, begin=0.01), 3.0)) is None


def test_aggregation_in_startup() -> None:
    def pace(time: float) -> float:
        return 2 * grown(time) if time < 0.5 else 1.0

    assert startup.through_aggregation(paced(pace, 4.0), 0.1).outcome == "pass"
    slow = paced(lambda time: min(0.05 + time / 10, 1.0), 4.0)
    assert startup.through_aggregation(slow, 0.1).outcome == "fail"
    shallow = paced(lambda time: grown(time), 4.0)  # the rate, with no more than a BDP in flight
    assert startup.through_aggregation(shallow, 0.1).outcome == "fail"


def far(time: float, dip: bool, again: bool) -> float:
    """A pace over a round trip of a second, that reaches the rate after ten; a PROBE_RTT after six."""
    if not dip or time < 6:
        return grown(time, FAR, 2**-10)
    if time < 7.5:
        return 2**-6
    return grown(time - 3, FAR, 2**-10) if again else 2**-4


def test_probe_rtt_in_startup() -> None:
    def judged(dip: bool, again: bool) -> Judgement:
        return startup.probe_rtt_in_startup(paced(lambda time: far(time, dip, again), 24.0, FAR))

    assert judged(True, True).outcome == "pass"
    assert judged(False, True).outcome == "fail" and "no PROBE_RTT" in judged(False, True).seen
    assert judged(True, False).outcome == "fail" and "no growth" in judged(True, False).seen
    short = startup.probe_rtt_in_startup(paced(lambda time: grown(time, FAR, 0.2), 20.0, FAR))
    assert short.outcome == "?"


def probing(after: float) -> Signals:
    """A sender that loses a tenth of each probe, and goes on with a pace of `after`."""

    def pace(time: float) -> float:
        place = time % 3
        return 1.25 if place < 0.06 else after if place < 0.5 else 1.0

    return paced(pace, 20.0, lost=lambda time: 0.1 if time % 3 < 0.06 else 0.0)


def test_loss_in_up() -> None:
    assert cycle.loss_ends_up(probing(0.9)).outcome == "pass"
    assert cycle.loss_ends_up(probing(1.1)).outcome == "fail"
    assert cycle.loss_ends_up(bbr()).outcome == "?"
    storm = paced(lambda _: 2.0, 10.0, lost=lambda _: 0.5)
    assert cycle.loss_ends_up(storm).outcome == "fail" and "throughout" in cycle.loss_ends_up(storm).seen


def test_the_fall_of_the_pace_between_probes() -> None:
    """One that loses 2 % in ten round trips, and one that keeps its pace."""

    def pace(time: float) -> float:
        return 1.2 if time % 3 < 0.2 else 1.0 - 0.04 * (time % 3)

    fade = cycle.fade(paced(pace, 20.0))
    assert fade is not None and fade == pytest.approx(0.02, abs=0.005)
    even = cycle.fade(bbr())
    assert even is not None and abs(even) < 0.005


def test_aggregation_in_cruise() -> None:
    assert changes.through_aggregation(paced(lambda _: 0.98, 12.0)).outcome == "pass"
    assert changes.through_aggregation(paced(lambda _: 0.9, 12.0)).outcome == "fail"


def test_a_bdp_below_a_packet() -> None:
    slow = PathFacts(64e3, 0.01)
    few = paced(lambda time: 4.0 if time < 0.15 else 1.0, 60.0, slow)
    many = paced(lambda time: 4.0 if time < 3 else 1.0, 60.0, slow)
    assert changes.below_a_packet(few).outcome == "pass"
    assert changes.below_a_packet(many).outcome == "fail"
    assert changes.below_a_packet(paced(lambda _: 0.8, 60.0, slow)).outcome == "fail"


def test_ten_times_the_rate() -> None:
    def found(at_s: float) -> Judgement:
        seen = paced(lambda time: 0.1 if time < at_s else 1.0, 16.0, share=lambda t: 0.1 if t < 8 else 1.0)
        return changes.tenfold(seen, 8.0)

    assert found(9.5).outcome == "pass" and found(13.0).outcome == "fail"
    assert "not within" in found(99.0).seen


def test_a_tenth_of_the_rate() -> None:
    def fallen(until_s: float) -> Judgement:
        late = paced(lambda time: 10.0 if time < 5 else 3.0 if time < until_s else 0.95, 20.0,
                     share=lambda time: 10.0 if time < 5 else 1.0)  # fmt: skip
        return changes.tenth(late, 5.0)

    assert fallen(5.02).outcome == "pass" and fallen(8.0).outcome == "fail"


def test_a_token_bucket() -> None:
    def policed(pace: float, share: float) -> Judgement:
        return changes.policed(paced(lambda _: pace, 10.0, lost=lambda _: share))

    assert policed(0.9, 0.01).outcome == "pass"
    assert policed(0.9, 0.1).outcome == "fail" and policed(0.6, 0.01).outcome == "fail"


def test_late_packets() -> None:
    in_order = paced(lambda _: 0.98, 10.0)
    assert changes.as_fast_as(paced(lambda _: 0.95, 10.0), in_order).outcome == "pass"
    assert changes.as_fast_as(paced(lambda _: 0.7, 10.0), in_order).outcome == "fail"


def test_after_a_long_delay() -> None:
    def back(at_s: float) -> Judgement:
        seen = paced(lambda time: 0.98 if time < 6 or time > at_s else 0.0, 12.0)
        return changes.back_after(seen, 6.0, 8.0)

    assert back(8.0).outcome == "pass" and back(9.0).outcome == "fail"


def asked(growth: Callable[[float], float]) -> Signals:
    """A fifth of the rate until 2 s, and then what `growth` makes of the time since."""
    return paced(lambda time: 0.2 if time < 2 else growth(time - 2), 6.0)


def test_limited_by_the_application() -> None:
    """In STARTUP the pace doubles in each round trip; PROBE_BW waits, here for 2 s."""
    enough = 2.0 * 0.2 * PATH.rate_bps / 8
    doubling = asked(lambda since: grown(since, begin=0.2))
    waiting = asked(lambda since: 0.2 if since < 2 else 1.0)
    assert limited.stays_in_startup(doubling, enough).outcome == "pass"
    assert limited.stays_in_startup(waiting, enough).outcome == "fail"
    assert limited.leaves_on_loss(doubling, enough).outcome == "fail"
    assert limited.leaves_on_loss(waiting, enough).outcome == "pass"
    assert limited.stays_in_startup(asked(lambda _: 0.2), enough).outcome == "fail"


def paused(dip: bool, pause_s: float = 6.0) -> Signals:
    def pace(time: float) -> float:
        since = time - 2 - pause_s
        if time > 2 and since < 0:
            return 0.0
        return 0.4 if dip and 0.2 < since < 0.5 else 1.05 if since < 0.15 else 1.0

    return paced(pace, 11.0)


def test_after_a_pause() -> None:
    assert limited.skips_probe_rtt(paused(dip=False)).outcome == "pass"
    assert limited.skips_probe_rtt(paused(dip=True)).outcome == "fail"
    assert limited.skips_probe_rtt(paused(dip=False, pause_s=1.0)).outcome == "?"
    slow = paced(lambda time: 1.0 if time < 2 else 0.0 if time < 8 else 0.3, 11.0)
    assert limited.skips_probe_rtt(slow).outcome == "?"


def test_seeds_vote() -> None:
    two = [passed("a"), failed("b"), passed("c")]
    assert over_seeds(two) == passed("a") and in_words(two) == "pass 2/3"
    assert over_seeds(two[:2]).outcome == "?" and in_words(two[:2]) == "?"
    assert in_words([untold("why")] * 3) == "?" and in_words([]) == "-"


def test_every_case_of_the_draft_is_judged_or_says_why_not() -> None:
    assert sorted([one.number for one in CASES] + [*HIDDEN]) == list(range(1, 23))


def test_each_case_has_its_path() -> None:
    """The rate that counts is one that the path has, and each path is one of a campaign."""
    planned = {
        Path(one).stem
        for name in ("bbr-cases", "bbr-cases-limited", "bbr-cases-slow", "bbr-cases-drain")
        for one in campaign.load(str(STUDY / "campaigns" / f"{name}.toml")).scenarios
    }
    for case in CASES:
        assert case.scenario in planned
        file = STUDY / "scenarios" / f"{case.scenario}.toml"
        assert scenarios.resolve(str(file)).summary["rtt_ms"] > 0
        assert case.rate_bps is None or f"{case.rate_bps / 1e6:g} Mbit/s" in file.read_text()


SUMMARY = {"rtt_ms": 50.0, "forward_rate_bps": 10e6, "return_rate_bps": 10e6, "title": "made up"}
JITTER = '{base="10ms",jitter="5ms"}'
LATE, TWO = '{share="50%",by="5ms"}', '{share="10%",distance="2packets"}'


def record(scenario: str, server: str, mbit: float, **values: Any) -> Record:
    made = fake_run.record("sat", "noq", "noq", 1)
    name = f"{scenario.partition(',')[0]}-{server}-{len(scenario)}".replace("=", "-")
    said = {"outcome": "ok", "detail": "", "goodput_bps": 1e6 * mbit, "retransmitted_share": 0.25}
    return fake_run.change(made, trial=name, scenario=scenario, server=server, **(said | values))


def jittered() -> list[Record]:
    """noq's BBR3 has 80 % of CUBIC without jitter and 75 % with it, less with more round trips between two
    probes (8, 50 and 62); late packets leave it a tenth.
    """
    found = []
    for server, share in (("noq:cc=bbr3", 0.8), ("noq:cc=cubic", 1.0), ("linux:cc=bbr", 1.0)):
        for delay, other in (("10ms", 0.8), (JITTER, 0.75), ("1ms", 0.95), ("25ms", 0.85)):
            label = f"bbr-jitter,forward.delay={delay},return.delay={delay}"
            found.append(record(label, server, 40 * (other if share < 1 else 1.0)))
        for order, kept in ((LATE, 0.1 if server.startswith("noq") else 1.0), (TWO, 1.0)):
            found.append(record(f"bbr-jitter,forward.reorder={order}", server, 40 * share * kept))
    return found


def write_packets(folder: Path, seen: Signals) -> None:
    """The packets of a sender, as a trial leaves them."""
    fake_trace.write(folder)
    mine = seen.packets
    blank: dict[str, Any] = dict.fromkeys(fake_trace.SCHEMA.names)
    rows = [
        blank
        | {
            "connection": 0, "direction": "forward", "sender": "server", "fate": "delivered", "copy": False,
            "sent_s": float(sent), "received_s": float(came), "acked_s": float(acked), "ip_bytes": int(SIZE),
        }
        for sent, came, acked in zip(mine.sent_s, mine.arrived_s, mine.acked_s, strict=True)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema=fake_trace.SCHEMA), folder / "packets.parquet")


def run_of(records: list[Record], packets: dict[str, Signals]) -> None:
    """A run with these records, and with the packets of some servers over the steady path."""
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), records)
    with fake_run.changed_manifest(Path("run")) as manifest:
        sat = json.loads(json.dumps(manifest["scenarios"]["sat"]))
        for label in {one.scenario for one in records}:
            manifest["scenarios"][label] = sat | {"summary": sat["summary"] | SUMMARY}
    for one in records:
        if one.scenario == "bbr-steady":
            write_packets(Path("run", "trials", one.trial), packets[one.server])


def test_a_page_has_a_row_for_each_sender_and_what_was_seen(bentpipe: Command) -> None:
    senders = {"noq:cc=bbr3": bbr(), "quinn:cc=bbr": bbr(up_rounds=1), "noq:cc=bentpipe": bbr()}
    run_of([record("bbr-steady", one, 9.0) for one in senders] + jittered(), senders)
    text = bentpipe.page("bbr-cases", "--run", "run")
    flat = " ".join(text.split())
    assert "| server | A.1 | A.2 | A.3 | A.4 | A.5 |" in text
    assert "| noq:cc=bbr3 | pass | ? | pass | ? | pass |" in text
    assert "| quinn:cc=bbr | pass | ? | pass | ? | fail |" in text
    assert f"Of {len(CASES)} cases that show on the wire, noq:cc=bbr3 passes 5, the most of 2 BBRs" in flat
    assert "**fail**: quinn:cc=bbr: UP lasts 1.3 rounds" in flat
    assert "no workload that the application limits" in flat and "A.22: REFILL" in flat
    assert Path("out/bbr-01.svg").is_file() and not Path("out/bbr-02.svg").exists()
    assert "BBR3 has 80 % of CUBIC's goodput without jitter and 75 % with jitter in order: 80 % of" in flat
    assert "| 2 ms | 8 | 95 % | 100 % |" in text and "| 20 ms | 62 | 80 % | 100 % |" in text
    assert "with a rank correlation of 1.00" in flat
    assert "keeps 10 % of its goodput in order, its CUBIC 10 %" in flat and "TCP keeps 100 %" in flat


def test_without_the_steady_path_there_is_no_page(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "bbr-cases", "--run", "run", "-o", "out")
    assert done.code != 0 and "bbr-steady" in done.err and not Path("out").exists()
