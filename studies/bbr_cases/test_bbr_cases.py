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
from bbr_cases import answer, changes, cycle, limited, startup
from bbr_cases.answer import Ranking
from bbr_cases.cases import CASES, HIDDEN
from bbr_cases.evidence import Evidence
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


def jittered(bbr3: float = 0.8) -> list[Record]:
    """noq's BBR3 has 80 % of CUBIC without jitter and 75 % with it, less with more round trips between two
    probes (8, 50 and 62); late packets leave it a tenth. Three trials of each, which are equal.
    """
    found = []
    for server, share in (("noq:cc=bbr3", bbr3), ("noq:cc=cubic", 1.0), ("linux:cc=bbr", 1.0)):
        for delay, other in (("10ms", bbr3), (JITTER, 0.75), ("1ms", 0.95), ("25ms", 0.85)):
            label = f"bbr-jitter,forward.delay={delay},return.delay={delay}"
            found.append(record(label, server, 40 * (other if share < 1 else 1.0)))
        for order, kept in ((LATE, 0.1 if server.startswith("noq") else 1.0), (TWO, 1.0)):
            found.append(record(f"bbr-jitter,forward.reorder={order}", server, 40 * share * kept))
    return [
        fake_run.change(one, trial=f"{one.trial}-{number}", iteration=number, seed=f"{number:x}")
        for one in found
        for number in (1, 2, 3)
    ]


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
    assert text.startswith(
        "# noq:cc=bbr3 passes 5 to 19 of 19 cases of BBR's draft, 1 other BBR at most 18\n"
    )
    assert (
        "Of 19 cases that show on the wire, noq:cc=bbr3 passes 5 (5 to 19) and 1 other BBR passes 4." in flat
    )
    assert "](bbr-cases.svg)" in text and Path("out/bbr-cases.svg").is_file()
    assert "noq:cc=bentpipe is no BBR and stands for comparison." in flat
    assert "**fail**: quinn:cc=bbr: UP lasts 1.3 rounds" in flat
    assert "no workload that the application limits" in flat and "A.22: REFILL" in flat
    assert Path("out/bbr-01.svg").is_file() and not Path("out/bbr-02.svg").exists()
    assert "BBR3 has 80 % of CUBIC's goodput without jitter and 75 % with jitter in order: at least" in flat
    assert "at least 80 % of the gap is there without jitter" in flat
    assert "an RTT of 20 ms without losses choose noq's CUBIC: its BBR3 has 80 % of CUBIC's." in flat
    assert "| 2 ms | 8 | 95 % | 100 % |" in text and "| 20 ms | 62 | 80 % | 100 % |" in text
    assert "it cannot be told whether the gap grows with their number" in flat
    assert "(rank correlation 1.00, one-sided p = 0.17)" in flat, "one of the 6 orders of three"
    assert "keeps 10 % of its goodput in order and its CUBIC 10 %" in flat and "TCP keeps 100 %" in flat


@pytest.mark.parametrize("path", ["sat", "bbr-steady"])
def test_without_a_bbr_over_the_steady_path_there_is_no_page(path: str, bentpipe: Command) -> None:
    run_of([record(path, "noq:cc=bentpipe", 9.0)], {"noq:cc=bentpipe": bbr(1.0)})
    done = bentpipe("study", "bbr-cases", "--run", "run", "-o", "out")
    assert done.code != 0 and "bbr-steady" in done.err and not Path("out").exists()


def ranked(outcomes: dict[str, list[str]]) -> Ranking:
    """Senders by the outcomes of the first cases, a letter for each seed: `p`, `f`, `?`; every seed fails the
    others.
    """
    made = {"p": passed("seen"), "f": failed("seen"), "?": untold("why")}
    evidence = Evidence(())
    judged = {
        (case.number, server): [made[one] for one in (mine[place] if place < len(mine) else "f")]
        for server, mine in outcomes.items()
        for place, case in enumerate(CASES)
    }
    evidence.__dict__.update(servers=list(outcomes), judgements=judged)
    return Ranking(evidence)


def test_ranges_count_what_cannot_be_told_and_what_seeds_disagree_about() -> None:
    found = ranked({"noq:cc=bbr3": ["ppp", "ppf", "ffp", "?", "pf"]}).passed["noq:cc=bbr3"]
    assert (found.passed, found.least, found.most, found.span) == (2, 1, 5, "1 to 5")


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (["p", "f"], "It surely passes more than each of the others."),
        (["p", "?"], "Whether it passes more than b cannot be told: of 18 cases in which both are judged it "
         "passes 1 and b 1."),
    ],
)  # fmt: skip
def test_a_sender_leads_only_if_its_range_is_above_all_others(
    second: list[str], sentence: str, tmp_path: Path
) -> None:
    made = answer.front(ranked({"a": ["p", "p"], "b": second}), tmp_path)
    assert sentence in made.answer
    most = 2 if "?" in second else 1
    assert made.finding == f"a passes 2 of 19 cases of BBR's draft, 1 other BBR at most {most}"


def test_of_senders_that_pass_equally_many_all_are_named(tmp_path: Path) -> None:
    made = answer.front(ranked({"a": ["p"], "b": ["p"], "c": ["f"]}), tmp_path)
    assert made.finding == "a and b pass 1 of 19 cases of BBR's draft, 1 other BBR none"
    assert not any("surely" in one or "cannot be told" in one for one in made.answer)


def test_advice_needs_every_seed(tmp_path: Path) -> None:
    """The first case is failed by two of three; with one seed that passes it is no such case."""
    three = {"a": ["p", "p"], "b": ["fff", "p"], "c": ["fff", "p"]}
    made = answer.front(ranked(three), tmp_path)
    assert "more than half of 3 BBRs fail, A.1 (STARTUP ends on a plateau), A.3" in made.advice
    assert any("Every BBR passes A.2 (STARTUP ends on loss" in one for one in made.answer)
    made = answer.front(ranked(three | {"c": ["ffp", "p"]}), tmp_path)
    assert "A.1 " not in made.advice and "A.3 " in made.advice
    assert "token bucket (A.17)" not in made.advice, "nobody passes it"
    bucket = next(place for place, one in enumerate(CASES) if one.number == 17)
    made = answer.front(ranked({"a": ["f"] * bucket + ["p"], "b": ["f"]}), tmp_path)
    assert "- Behind a token bucket (A.17) choose a: with every seed 1 other BBR loses more" in made.advice


def test_a_gap_within_chance_makes_no_advice(bentpipe: Command) -> None:
    senders = {"noq:cc=bbr3": bbr(4.0), "noq:cc=bentpipe": bbr(4.0)}
    run_of([record("bbr-steady", one, 9.0) for one in senders] + jittered(0.99), senders)
    text = bentpipe.page("bbr-cases", "--run", "run")
    assert "choose noq's CUBIC" not in text and "Likely its estimate" not in text


@pytest.mark.parametrize(("outcome", "votes"), [("transfer_timeout", "fail"), ("invalid", "?")])
def test_a_seed_that_fails_counts(outcome: str, votes: str, bentpipe: Command) -> None:
    """A sender that passes with one seed and not with another passes no case surely; a trial that the testbed
    spoils is no failure of its.
    """
    steady = record("bbr-steady", "noq:cc=bbr3", 9.0)
    run_of([steady], {"noq:cc=bbr3": bbr()})
    bad = fake_run.change(steady, trial="bad", seed="b", outcome=outcome, detail="why")
    fake_run.write_records(Path("run"), [steady, bad])
    text = bentpipe.page("bbr-cases", "--run", "run")
    assert text.startswith("# noq:cc=bbr3 passes 0 to 19 of 19 cases of BBR's draft\n")
    flat = " ".join(text.split())
    assert "seeds disagree: pass: DRAIN" in flat
    assert ("; fail: transfer timeout: why" in flat) == (votes == "fail")
