"""The page of what stacks do with a connection: from made-up runs, and from small real ones."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import fake_run
import numpy as np
import pytest
import study_marks
from conftest import Command, installed_or_skip
from stacks import published
from stacks.control import Controlled, far
from stacks.controllers import family, is_plain, named
from stacks.runs import BURSTS, CAUSES, CONTROLLERS, HANDSHAKES, PACKETS, QUEUE, StackRuns
from stacks.variance_shares import advice, splits

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.plan import campaign
from bentpipe.runs.records import Record
from bentpipe.study.means import GeometricMean, best
from bentpipe.study.source import Source

CLIENT = "quinn:window=6000000:reading=unordered"
# Server → Mbit/s over sat and over satloss. quiche's NewReno is far from the others'.
COMES_TO = {
    "noq:cc=newreno": (7.0, 0.25),
    "quinn:cc=newreno": (7.5, 0.27),
    "quiche:cc=newreno": (1.4, 0.2),
    "noq:cc=cubic": (8.7, 0.5),
    "quinn:cc=cubic": (8.8, 0.5),
    "quiche:cc=cubic": (2.9, 1.7),
    "quiche:cc=cubic:ss=standard": (3.2, 1.5),
    "noq:cc=bbr3": (2.8, 1.5),
    "quinn:cc=bbr": (11.2, 11.0),
    "quiche:cc=bbr2": (3.7, 3.4),
}
SPREAD = (0.98, 1.0, 1.02)  # of three trials


def trial(server: str, scenario: str, mbit: float, iteration: int, client: str = CLIENT) -> Record:
    made = fake_run.record(scenario, client, server, iteration)
    good = {"outcome": "ok", "detail": "", "goodput_bps": 1e6 * mbit, "retransmitted_share": 0.05}
    return fake_run.change(made, scenario=scenario, **good)


def servers() -> list[Record]:
    return [
        trial(server, scenario, rates[place] * times, iteration)
        for place, scenario in enumerate(("sat", "satloss"))
        for server, rates in COMES_TO.items()
        for iteration, times in enumerate(SPREAD, start=1)
    ]


@pytest.fixture
def controlled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controlled:
    monkeypatch.chdir(tmp_path)  # a run is written to the current folder
    fake_run.write_campaign(CONTROLLERS, servers())
    return Controlled(StackRuns((Source.read(Path(CONTROLLERS), ""),), published.load()))


def page(bentpipe: Command, *words: str) -> str:
    done = bentpipe("study", "stacks", *words, "-o", "out")
    assert done.code == 0, done.err
    for file in done.out.split()[1:]:
        ElementTree.parse(file)
    return Path("out/stacks.md").read_text()


def test_controllers_have_the_names_of_their_algorithms() -> None:
    assert [named(one) for one in ("picoquic:cc=bbr", "quinn:cc=bbr", "quiche:cc=bbr2")] == [
        "BBR 3", "BBR 1", "BBR 2",
    ]  # fmt: skip
    assert family("picoquic:cc=bbr1") == "BBR" and family("picoquic:cc=dcubic") == "CUBIC by delay"
    assert is_plain("noq:cc=cubic") and not is_plain("noq:cc=cubic:ss=standard")


def test_every_server_of_the_campaign_has_a_name() -> None:
    words = {label.partition("cc=")[2].partition(":")[0] for label in campaign.load(CONTROLLERS).servers}
    assert {named(f"noq:cc={word}") for word in words}.isdisjoint(words)


def test_experiments_have_the_servers_and_the_client_of_what_they_explain() -> None:
    whole = campaign.load(CONTROLLERS)
    for name in (CAUSES, QUEUE, BURSTS):
        plan = campaign.load(name)
        assert plan.clients == whole.clients
        assert {one for one in plan.servers if is_plain(one)} <= set(whole.servers)
        assert {"timeout=2000 s"} <= set(plan.set)
    plain = {one for one in campaign.load(CAUSES).servers if is_plain(one)}
    assert plain >= set(campaign.load(QUEUE).servers) and plain >= set(campaign.load(BURSTS).servers)


@pytest.mark.parametrize("name", [HANDSHAKES, PACKETS])
def test_all_pairs_are_in_the_campaigns(name: str) -> None:
    plan = campaign.load(name)
    assert plan.clients == plan.servers and "picoquic" in plan.clients


def test_the_best_is_told_where_intervals_do_not_overlap() -> None:
    near = {name: GeometricMean.of([one, one * 1.1]) for name, one in (("a", 1.0), ("b", 1.05))}
    same = {name: GeometricMean.of([one, one]) for name, one in (("a", 1.0), ("b", 1.05))}
    assert best({name: one for name, one in near.items() if one}) is None
    assert best({name: one for name, one in same.items() if one}) == "b"
    alone = GeometricMean.of([2.0])
    assert alone is not None and (alone.low, alone.written()) == (None, "2.00")
    assert GeometricMean.of([]) is None


def test_who_is_far_from_others_of_the_same_name(controlled: Controlled) -> None:
    found = {(one.scenario, one.name, one.stack): one.times for one in far(controlled)}
    assert found.keys() == {
        ("sat", "NewReno", "quiche"),
        ("sat", "CUBIC", "quiche"),
        ("satloss", "CUBIC", "quiche"),
    }
    assert math.isclose(found["sat", "NewReno", "quiche"], 1.4 / 7.0, rel_tol=1e-3)


def test_the_variance_is_split_over_stacks_that_have_all_controllers(controlled: Controlled) -> None:
    known = {(scenario, families): one for scenario, families, one in splits(controlled)}
    lossy = known["satloss", ("NewReno", "CUBIC", "BBR")]
    assert (lossy.clients, lossy.servers, lossy.trials) == (3, 3, 27)
    assert lossy.shares.server > lossy.shares.client  # the controllers stand where clients meet servers
    assert math.isclose(sum((lossy.shares.client, lossy.shares.server, lossy.shares.pair,
                             lossy.shares.chance)), 1)  # fmt: skip


def test_what_to_choose_first_is_said_where_the_shares_lie_apart(controlled: Controlled) -> None:
    """By the intervals of each path: where they overlap, nothing is said."""
    said = " ".join(advice(controlled))
    for scenario, families, one in splits(controlled):
        if families == ("NewReno", "CUBIC", "BBR"):
            assert (f"Over {scenario} choose the congestion control first" in said) == (
                one.low.server > one.high.client
            )
            assert (f"Over {scenario} choose the stack first" in said) == (one.low.client > one.high.server)


def test_the_share_that_is_surely_larger_is_chosen_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every stack is as fast as the others with the same controller; then the other way around."""
    monkeypatch.chdir(tmp_path)
    stacks = ("noq", "quinn", "quiche", "picoquic")
    words = {"noq": "bbr3", "quinn": "bbr", "quiche": "bbr2", "picoquic": "bbr"}
    for first in ("congestion control", "stack"):
        made = [
            trial(
                f"{one}:cc={word}", "sat", 10.0 ** (stack if first == "stack" else place) * times, iteration
            )
            for stack, one in enumerate(stacks)
            for place, word in enumerate(("newreno", "cubic", words[one]))
            for iteration, times in enumerate(SPREAD, start=1)
        ]
        folder = Path(first)
        folder.mkdir()
        monkeypatch.chdir(tmp_path / folder)
        fake_run.write_campaign(CONTROLLERS, made)
        found = Controlled(StackRuns((Source.read(Path(CONTROLLERS), ""),), published.load()))
        (line,) = advice(found)
        assert line.startswith(f"- Over sat choose the {first} first")
        monkeypatch.chdir(tmp_path)


def handshakes() -> list[str]:
    """A run in which a pair fails; it left no traces."""
    records = [
        fake_run.change(
            fake_run.record("sat", client, server, 1), outcome="ok", detail="", scenario="longrtt",
            workload="longrtt:1000", handshake_s=1.5, completion_s=3.0 if server == "noq" else 4.5,
        )
        for client in ("noq", "quinn")
        for server in ("noq", "quinn")
    ]  # fmt: skip
    silent = {"outcome": "handshake_timeout", "detail": "no handshake after 30 s", "completion_s": None}
    words = fake_run.write_campaign(HANDSHAKES, [*records[:-1], fake_run.change(records[-1], **silent)])
    said = json.loads(Path(HANDSHAKES, "manifest.json").read_text())
    summary = said["scenarios"]["sat"]["summary"] | {"rtt_ms": 1500.0}
    said["scenarios"]["longrtt"] = said["scenarios"]["sat"] | {"summary": summary}
    Path(HANDSHAKES, "manifest.json").write_text(json.dumps(said))
    return words


def test_the_page_says_who_gets_through(bentpipe: Command) -> None:
    text = " ".join(page(bentpipe, *handshakes()).split())
    assert "3 of 4 pairs get through" in text and "after 2.00 to 3.00 round trips" in text
    assert "| further pairs that do not | quinn → quinn: handshake timeout, no handshake after 30 s |" in text
    assert "| stacks that never do | none | chrome, quicly |" in text
    assert "### What is sent again" not in text  # no traces
    assert "x" in ElementTree.parse("out/stacks-longrtt.svg").getroot().itertext()


def test_the_page_holds_controllers_against_each_other(bentpipe: Command) -> None:
    text = page(bentpipe, *handshakes(), *fake_run.write_campaign(CONTROLLERS, servers()))
    said = " ".join(text.split())
    assert "10 servers of 3 stacks over sat and satloss, 3 trials of each" in said
    assert "| quinn:cc=bbr | BBR 1 | **11.20 (10.66 to 11.77)** |" in text
    assert "quiche with NewReno over sat (0.20)" in said
    assert "| BBR over NewReno | noq, quiche, quinn |" in text
    assert "| quiche:cc=cubic | quiche:cc=cubic:ss=standard | 1.10 (1.05 to 1.15) |" in text
    assert "| quiche | CUBIC | 6.34 | NewReno 1.40, CUBIC 2.90, BBR 2 3.70 | 2.85 |" in text
    assert "3 of 3 servers with BBR are faster than every one with NewReno" in said


def test_the_page_has_what_experiments_show(bentpipe: Command) -> None:
    plain = [trial("quiche:cc=bbr2", "sat", 3.7 * times, n) for n, times in enumerate(SPREAD, start=1)]
    changed = [
        trial("quiche:cc=bbr2:initial_rtt=700", "sat", 9.3 * times, n)
        for n, times in enumerate(SPREAD, start=1)
    ]
    longer = [trial("quiche:cc=bbr2", "sat", 3.7 * times, n) for n, times in enumerate((1.1, 1, 0.9))]
    words = [*handshakes(), *fake_run.write_campaign(CONTROLLERS, servers())]
    words += fake_run.write_campaign(CAUSES, plain + changed)
    text = page(bentpipe, *words, *fake_run.write_campaign(QUEUE, longer))
    change = "| quiche:cc=bbr2 | BBR 2 | initial\\_rtt=700 |"
    assert f"{change} 9.30 (8.85 to 9.77) | 2.51 (2.40 to 2.63) |" in text
    row = next(line for line in text.splitlines() if "queue of 1 BDP" in line and line.startswith("|"))
    assert row.split(" | ")[4].startswith("(1.00")


def test_a_run_of_something_else_is_refused(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "stacks", "--run", "run", "-o", "out")
    assert done.code != 0 and "bentpipe run interop" in done.err


@pytest.mark.virtual_time
def test_packets_of_real_trials_are_told(bentpipe: Command) -> None:
    """noq with itself: no number twice, packets that grow by path MTU discovery, a hello that is repeated."""
    installed_or_skip("noq")
    ends = ("--client", "noq", "--server", "noq", "--no-report")
    for name, more in ((HANDSHAKES, ()), (PACKETS, ("--workload", "transfer:2MB"))):
        done = bentpipe("run", name, *ends, *more, "--out", name)
        assert done.code == 0, done.err
    text = page(bentpipe, "--run", HANDSHAKES, "--run", PACKETS)
    hello = next(line for line in text.splitlines() if line.startswith("| noq | 1.00 |"))
    assert hello.split(" | ")[2:4] == ["3", "1.00"]
    assert "No packet number is used twice." in " ".join(text.split())
    sizes = next(line for line in text.splitlines() if line.startswith("| noq | 1200 | 1452 |"))
    assert "1452" in sizes.split(" | ")[3]
    rate = next(line for line in text.splitlines() if line.startswith("| noq | ") and line.endswith("| 1 |"))
    assert np.isfinite(float(rate.split(" | ")[1]))


@pytest.mark.virtual_time
def test_a_wider_return_link_stands_beside(bentpipe: Command) -> None:
    """Of a file so small that the return link is no limit."""
    installed_or_skip("noq")
    words = ("--client", "noq", "--server", "noq", "--server", "noq:iw=20", "--no-report", "--workload")
    for name, more in (("narrow", ()), ("wide", ("--set", "return.rate=20 Mbit/s", "--trace", "none"))):
        done = bentpipe("run", PACKETS, *words, "transfer:1MB", *more, "--out", name)
        assert done.code == 0, done.err
    said = " ".join(page(bentpipe, "--run", "narrow", "--run", "wide").split())
    assert "a return link of 20 Mbit/s in place of 2 Mbit/s" in said
    assert "| noq | 1.00" in said


def test_numbers_lead_to_the_trials_of_their_own_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two have the same server over the same path."""
    monkeypatch.chdir(tmp_path)
    plain = [trial("quiche:cc=bbr2", "sat", 3.8 * times, n) for n, times in enumerate(SPREAD, start=1)]
    again = [fake_run.change(one, wall_s=one.wall_s * 2) for one in plain]
    words = [*handshakes(), *fake_run.write_campaign(CONTROLLERS, servers())]
    words += fake_run.write_campaign(CAUSES, again)
    found = study_marks.leading("stacks", words)
    key = plain[0].cell_key
    assert found["3.70 (3.52 to 3.89)"] == [RunCell(Path(CONTROLLERS), key)]
    assert found["3.80 (3.62 to 3.99)"] == [RunCell(Path(CAUSES), key)]
    assert len(found["5.0 %"]) == 2 * len(COMES_TO) and None not in found["5.0 %"]
