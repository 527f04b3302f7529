"""`bentpipe study witness`: the page that holds a run against pico_sim, and pico_sim itself."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import fake_run
import pytest
from conftest import Command, installed_or_skip
from witness import queues
from witness.comparisons import HEADERS, PAYLOAD, DropTailRun
from witness.difference import Difference
from witness.page import sections
from witness.simulator import PicoSim, Red, SimulatedPath, Times, TwoQueues

from bentpipe.errors import BentpipeError
from bentpipe.study import markdown
from bentpipe.study.source import Source

pytestmark = pytest.mark.virtual_time

RATE = 20_000_000
FASTER = round(RATE * (PAYLOAD + HEADERS) / PAYLOAD)
DATA_S, DISCONNECTED_S = 10.0, 10.6


def made_up(completions: dict[tuple[int, str], float], failed: int = 0) -> Source:
    """A run with a queue of 600 ms: (rate, options of the server) → completion of two trials, and of so many
    more that fail.
    """
    records = []
    for (rate, options), completion_s in completions.items():
        for iteration in (1, 2):
            made = fake_run.record("sat", "picoquic", f"picoquic:{options}", iteration)
            good = {"outcome": "ok", "detail": "", "completion_s": completion_s}
            records.append(fake_run.change(made, scenario=f"sat,forward.rate={rate}bit/s", **good))
        late = {"outcome": "transfer_timeout", "completion_s": None}
        records += [fake_run.change(records[-1], iteration=3 + number, **late) for number in range(failed)]
    fake_run.write_campaign("run", records)
    with fake_run.changed_manifest(Path("run")) as manifest:
        (state,) = [one for label, one in manifest["scenarios"].items() if label == "sat"]
        for rate, _ in completions:
            path = {"forward_rate_bps": rate, "forward_queue_bytes": rate * 600 // 8000}
            changed = state | {"summary": state["summary"] | path}
            manifest["scenarios"][f"sat,forward.rate={rate}bit/s"] = changed
    return Source.read(Path("run"), "bentpipe study witness --run run")


WHOLE = {
    (RATE, "cc=cubic"): 10.5,
    (RATE, "cc=cubic:cert=rsa"): 10.2,
    (FASTER, "cc=cubic"): 10.3,
    (FASTER, "cc=cubic:cert=rsa"): 10.05,
}


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def percent(one: Difference) -> float:
    return one.percent.value


@pytest.mark.usefixtures("in_folder")
def test_each_difference_is_left_in_alone() -> None:
    simulated: list[SimulatedPath] = []

    def simulate(path: SimulatedPath) -> Times:
        simulated.append(path)
        return Times(DATA_S if path.rate_bps == RATE else 10.1, DISCONNECTED_S)

    run = DropTailRun(made_up(WHOLE), simulate)
    (one,) = run.comparisons
    assert percent(one.difference()) == pytest.approx(0.5)
    assert percent(one.difference(end=True)) == pytest.approx(100 * (10.05 / DISCONNECTED_S - 1))
    assert percent(one.difference(link=True)) == pytest.approx(2)
    assert percent(one.difference(certificate=True)) == pytest.approx(3)
    whole = one.difference(end=True, link=True, certificate=True)
    assert percent(whole) == pytest.approx(100 * (10.5 / DISCONNECTED_S - 1))
    assert percent(one.with_link_there) == pytest.approx(100 * (10.2 / 10.1 - 1))
    assert {(path.delay_ms, path.queue_ms, path.congestion) for path in simulated} == {(300, 600, "cubic")}
    text = " ".join(markdown.page(sections(run, Path())).split())
    title = (
        "# Bentpipe and pico_sim take the same time within 1 % in 1 of 1 setting; widest +0.5 % picoquic's"
    )
    assert text.startswith(title)
    assert "With the three left in, it is 0.9 % in the median, either way, and -0.9 % at most." in text
    assert "look for the cause in stacks and paths" in text
    assert "one of two datagrams in place of one changes it by up to 3.0 %." in text
    assert (
        "Compare simulators by the arrival of the last byte: the end of the connection is up to 5.2 %" in text
    )
    assert "| 600 | cubic | 10.05 (10.05 to 10.05) | 10.00 (10.00 to 10.00) | +0.5 % |" in text
    assert "## Limits" in text and "pico_sim.c" in text
    assert Path("witness.svg").exists()


@pytest.mark.usefixtures("in_folder")
def test_where_trials_failed_nothing_is_equal_and_no_cause_is_ruled_out() -> None:
    run = DropTailRun(made_up(WHOLE, failed=1), lambda path: Times(DATA_S, DISCONNECTED_S))
    text = " ".join(markdown.page(sections(run, Path())).split())
    assert text.startswith("# Bentpipe and pico_sim take the same time within 1 % in 0 of 1 setting;")
    assert "look for the cause" not in text and "they differ with" not in text


@pytest.mark.usefixtures("in_folder")
def test_what_differs_is_named_and_no_cause_is_ruled_out() -> None:
    run = DropTailRun(made_up(WHOLE), lambda path: Times(9.8, 9.8))
    text = " ".join(markdown.page(sections(run, Path())).split())
    assert "within 1 % in 0 of 1 setting; widest +2.6 %" in text
    assert "they differ with cubic and a queue of 600 ms." in text
    assert "look for the cause" not in text


@pytest.mark.parametrize(
    ("ours", "equal", "differs"),
    [
        ((10.0, 10.0), True, False),
        ((10.2, 10.2), False, True),
        ((9.0, 11.0), False, False),
        ((10.0,), False, False),
    ],
)
def test_times_are_equal_or_differ_only_where_their_interval_shows_it(
    ours: tuple[float, ...], equal: bool, differs: bool
) -> None:
    one = Difference((10.0, 10.0), ours, 0.01)
    assert (one.is_equal, one.differs) == (equal, differs)


def test_a_run_of_one_rate_is_refused(bentpipe: Command) -> None:
    installed_or_skip("picoquic")
    made_up({key: value for key, value in WHOLE.items() if key[0] == RATE})
    done = bentpipe("study", "witness", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "two rates" in done.err and "bentpipe study witness" in done.err
    assert not Path("out").exists()


def test_pico_sim_agrees_within_one_percent(bentpipe: Command) -> None:
    """One setting of the study, with Bentpipe's own trial."""
    installed_or_skip("picoquic")
    rates = ("--set", f"forward.rate={FASTER} bit/s", "--set", f"return.rate={RATE} bit/s")
    queues = ("--set", "forward.queue=600 ms", "--set", "return.queue=600 ms")
    ends = ("--client", "picoquic", "--server", "picoquic:cc=newreno:cert=rsa")
    rest = ("--bytes", "10MiB", "--iterations", "1", "--no-report", "--json", "--out", "run")
    done = bentpipe("run", "--scenario", "sat", *rates, *queues, *ends, *rest)
    assert done.code == 0, done.err
    (record,) = done.records()
    there = PicoSim.installed().run(SimulatedPath("newreno", 10 * 2**20, RATE, 300, 600))
    assert record["completion_s"] == pytest.approx(there.last_data_s, rel=0.01)
    assert there.disconnected_s == pytest.approx(there.last_data_s + 0.6, rel=0.01)


L4S = 'forward.queue={size="80ms",aqm="dualpi2",range="401us"}'
RED = 'forward.queue={size="80ms",aqm="red",min="1712us",max="19712us",weight="4"}'


def behind(*queues_set: str) -> Source:
    """A run of Prague, of 10.3 s each, behind queues of 80 ms."""
    records = []
    for queue in queues_set:
        for iteration in (1, 2):
            made = fake_run.record("sat", "picoquic", "picoquic:cc=prague:cert=rsa", iteration)
            good = {"outcome": "ok", "detail": "", "completion_s": 10.3}
            records.append(fake_run.change(made, scenario=f"sat,{queue}", **good))
    fake_run.write_campaign("run", records)
    with fake_run.changed_manifest(Path("run")) as manifest:
        state = manifest["scenarios"]["sat"]
        path = {"forward_rate_bps": FASTER, "forward_queue_bytes": FASTER * 80 // 8000, "rtt_ms": 40}
        for queue in queues_set:
            manifest["scenarios"][f"sat,{queue}"] = state | {"summary": state["summary"] | path}
    return Source.read(Path("run"), "bentpipe study witness --run run")


@pytest.mark.usefixtures("in_folder")
def test_queues_stand_beside_those_of_picoquic_as_they_are_and_changed() -> None:
    """As they are 3 % away, RED changed not at all, L4S changed 8 %."""
    simulated: set[SimulatedPath] = set()

    def simulate(seconds_l4s: float, seconds_red: float, path: SimulatedPath) -> float:
        simulated.add(path)
        return seconds_red if isinstance(path.discipline, Red) else seconds_l4s

    simulators = queues.Simulators(
        plain=lambda path, seed: 4.5 if path.discipline else 4.6,
        with_disciplines=lambda path, seed: simulate(10, 10, path),
        changed=lambda path, seed: simulate(10.3 / 1.08, 10.3, path),
    )
    run = queues.QueueRun(behind(L4S, RED), simulators)
    l4s, red = run.comparisons
    assert (l4s.queue, red.queue) == (TwoQueues(1201), Red(2000, 20_000))
    assert percent(l4s.difference) == percent(red.difference) == pytest.approx(3)
    assert percent(l4s.difference_changed) == pytest.approx(8) and percent(red.difference_changed) == 0
    assert {(path.delay_ms, path.queue_ms, path.rate_bps) for path in simulated} == {(20, 80, RATE)}
    text = " ".join(markdown.page(queues.sections(run, Path())).split())
    title = (
        "# Bentpipe's L4S and RED queues equal picoquic's within 5 % in 2 of 2 settings, in 1 with one change"
    )
    assert text.startswith(title)
    assert "are, within 5 %, equal in 2 and differ by more in 0 of 2 settings." in text
    assert "With one thing changed in each discipline they are equal in 1 and differ by more in 1;" in text
    assert "difference is then +8.0 %, of prague behind L4S, marks from 0.8 to 1.201 ms." in text
    assert (
        "- Rely on times behind RED within 5 %: with the change, times are equal in 1 of 1 setting." in text
    )
    assert "- Do not rely on times behind two queues within 5 %" in text
    assert "Compare with picoquic's own" not in text
    assert "take 4.50 s with the setting and 4.60 s without" in text
    assert "| RED, 2 to 20 ms | prague | 10.30 (10.30 to 10.30) | 10.00 (10.00 to 10.00) | +3.0 % |" in text


@pytest.mark.usefixtures("in_folder")
def test_behind_a_queue_of_which_a_trial_failed_nothing_is_equal() -> None:
    source = behind(RED)
    late = fake_run.change(source.records[0], iteration=3, outcome="transfer_timeout", completion_s=None)
    source = dataclasses.replace(source, records=[*source.records, late])
    run = queues.QueueRun(source, queues.Simulators(*[lambda path, seed: 10.3] * 3))
    (one,) = run.comparisons
    assert percent(one.difference) == 0
    assert not one.difference.is_equal and not one.difference_changed.is_equal


@pytest.mark.usefixtures("in_folder")
def test_a_queue_that_picoquic_does_not_have_is_refused() -> None:
    source = behind('forward.queue={size="80ms",aqm="codel"}')
    assert queues.is_of(source) and not queues.is_of(made_up(WHOLE))
    with pytest.raises(BentpipeError, match="no queue like 80ms codel"):
        _ = queues.QueueRun(source, queues.Simulators(*[lambda path, seed: 1.0] * 3)).comparisons


def test_picoquic_s_disciplines_act_where_packets_carry_their_sender_s_mark() -> None:
    """Prague is held back by marks; pico_sim itself, which marks nothing of its, does not hold it back."""
    installed_or_skip("picoquic")
    plain = PicoSim.installed()
    path = SimulatedPath("prague", 2 * 2**20, RATE, 20, 80, TwoQueues(1201))
    unmarked, marked, changed = (
        one.run(path).last_data_s for one in (plain, plain.with_disciplines, plain.changed)
    )
    assert unmarked < 1.5 < 2 < min(marked, changed)
    red = SimulatedPath("newreno", 2 * 2**20, RATE, 20, 80, Red(2000, 20_000))
    assert min(one.run(red).last_data_s for one in (plain.with_disciplines, plain.changed)) > 1.5
