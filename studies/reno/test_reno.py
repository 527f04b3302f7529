"""Reno under random losses: the ideal sender, every installed stack beside it, and the page that says so."""

from __future__ import annotations

import json
import math
import re
import statistics
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import fake_run
import pytest
import study_marks
from conftest import Command, installed_or_skip, present
from reno.answer import Ideal, StackRow, per_round_trip
from reno.ideal import Sender, formula
from reno.page import TRAITS

from bentpipe import paths
from bentpipe.analysis.cells import Cell
from bentpipe.plan import campaign
from bentpipe.runs.records import Record
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

PLAN = campaign.load("reno")
SERVERS = {label.partition(":")[0]: label for label in PLAN.servers}
SEEDS = 10  # of each stack: the campaign has more
RTT_S = 0.6006  # of the path, with a packet's time on the links
HELD_S = 0.025  # how long quinn holds an ACK; quiche acknowledges each packet at once
LOSS = 0.01
PACKETS = 9090  # 10 MiB
DEVIATIONS = 3  # how far from the ideal sender's median one of few seeds may be, in its standard deviations


@cache
def ideal() -> Ideal:
    return Ideal.over(LOSS, PACKETS, seeds=100)


def chance(trials: int) -> float:
    """How far the median of so many trials may be from the ideal sender's, as a share of it. The standard
    deviation of a median is sqrt(pi / 2) times that of a mean.
    """
    spread = statistics.stdev(ideal().rates) / ideal().median
    return DEVIATIONS * math.sqrt(math.pi / 2 / trials) * spread


@pytest.mark.parametrize("loss", [0.001, 0.01])
def test_the_ideal_sender_is_near_the_formula(loss: float) -> None:
    """Over a transfer so long that its start does not count."""
    assert math.isclose(Sender(loss, 1).rate(400_000), formula(loss), rel_tol=0.07)


def test_a_quarter_of_the_loss_doubles_the_rate() -> None:
    assert math.isclose(Sender(0.0025, 1).rate(200_000) / Sender(0.01, 1).rate(200_000), 2, rel_tol=0.1)


def test_a_window_that_is_cut_less_is_larger() -> None:
    """By AIMD with a share b kept: sqrt((1 + b) / (2 (1 - b)) / p)."""
    shares = [Sender(0.001, 1, kept).rate(400_000) for kept in (0.5, 0.7)]
    assert math.isclose(shares[1] / shares[0], math.sqrt(1.7 / 0.6 / 1.5), rel_tol=0.1)


def test_without_losses_the_ideal_sender_doubles_its_window_in_each_round_trip() -> None:
    """10 + 20 + 40 + 80 packets, and the last of them arrives at the end of the fourth round trip."""
    assert Sender(0, 1).rate(150) == 150 / 4


def test_every_reno_is_in_the_campaign() -> None:
    found = catalogue.discover().values()
    known = [
        one for one in found if one.folder.parent == paths.endpoints() and "virtual-time" in one.commands
    ]
    known = [one for one in known if "quic" in one.transports]  # whose ideal sender that is
    choices = {one.name: one.options.get("cc", "") for one in known}
    of_quic = {name for name, cc in choices.items() if "newreno" in cc and not cc.startswith("of TCP")}
    assert of_quic - {"picoquic"} == SERVERS.keys()  # its packets cannot be as small as 1200 bytes
    assert TRAITS.keys() <= SERVERS.keys()


@pytest.mark.parametrize("name", SERVERS)
def test_a_stack_agrees_with_the_ideal_sender(bentpipe: Command, name: str) -> None:
    """As far as the spread of the seeds allows. Those that are known to differ are compared with what was
    found.
    """
    installed_or_skip(name)
    client, held_s = ("quiche", 0.0) if present("quiche") else ("quinn", HELD_S)
    installed_or_skip(client)
    done = bentpipe("run", "reno", "--client", client, "--server", SERVERS[name], "--iterations", str(SEEDS),
                    "--no-report", "--json", "--out", "run")  # fmt: skip
    assert done.code == 0, done.err
    records = [Record.from_mapping(values) for values in done.records()]
    assert [(one.trial, one.detail) for one in records if not one.ok] == []
    assert len(records) == SEEDS
    assert {one.forward_queue_drops for one in records} == {0}
    median = statistics.median(per_round_trip(one, RTT_S) for one in records)
    expected = ideal().median * (TRAITS[name].share if name in TRAITS else 1)
    reach = chance(SEEDS)
    lowest = expected * (1 - reach) * RTT_S / (RTT_S + held_s)
    assert lowest <= median <= expected * (1 + reach)


def reno_run(loss: str = "1 %") -> None:
    """A made-up run of four servers: two ideal ones, x-net a tenth below and quinn a tenth above that."""
    share = {"noq": 1.0, "aioquic": 1.0, "x-net": 0.9, "quinn": 1.1}
    records = []
    for name in share:
        for iteration in range(1, 31):
            made = fake_run.record("sat", "quiche", f"{name}:cc=newreno", iteration)
            rate = share[name] * ideal().rates[10 + 80 * iteration // 31]
            goodput = rate * 8 * made.size_bytes / (PACKETS * 0.6)
            sent = {"forward_packets": PACKETS, "forward_bytes": 1228 * PACKETS}
            none = dict.fromkeys(("forward_losses", "forward_queue_drops"), 0)
            good = {"outcome": "ok", "detail": "", "goodput_bps": goodput, "rtt_median_ms": 600.0}
            records.append(fake_run.change(made, **sent, **none, **good))
    fake_run.write(Path("run"))
    with fake_run.changed_manifest(Path("run")) as manifest:
        manifest["scenarios"]["sat"]["summary"] |= {"forward_loss": loss, "return_loss": "none"}
    fake_run.write_records(Path("run"), records)


def front(text: str) -> str:
    return " ".join(text.partition("## What was run")[0].split())


def test_the_page_has_who_keeps_the_rate_and_who_does_not(bentpipe: Command) -> None:
    reno_run()
    text = bentpipe.page("reno", "--run", "run")
    title = r"# At 1 % of loss 2 of 4 stacks have Reno's rate within 5 %; quinn has 11\d % \(1\d+ to 11\d\)\n"
    assert re.match(title, text)
    begin = front(text)
    assert "what an ideal sender delivers that keeps RFC 9002: noq and aioquic." in begin
    assert re.search(r"Of its rate the others reach: x-net 9\d % \(.*\) and quinn 11\d % \(.*\)\.", begin)
    assert "Mathis et al. has 12.25 packets per round trip" in begin
    assert "within 5 % of it are 2 stacks: noq and aioquic." in begin
    assert "take `cc=newreno` of one of these: noq and aioquic." in begin
    assert "- Compare `cc=newreno` of x-net and quinn with that of other stacks only" in begin
    assert "| x-net:cc=newreno | lower |" in text and "| quinn:cc=newreno | higher |" in text
    assert "| noq:cc=newreno | equal |" in text
    apart = text.partition("## Those that differ")[2].partition("\n## ")[0]
    apart = " ".join(apart.split())
    assert " ".join(TRAITS["x-net"].why.split()) in apart
    assert re.search(r"\*\*quinn\*\*, (9|10|11) % higher: the reason is not known\.", apart)
    assert "noq" not in apart
    texts = " ".join(ElementTree.parse("out/reno.svg").getroot().itertext())
    assert all(name in texts for name in ("ideal sender", "x-net", "quinn", "formula, 12.25"))


def test_a_stack_of_which_trials_failed_is_not_called_equal(bentpipe: Command) -> None:
    """Mostly the slow ones fail, so that the others say nothing of the mean."""
    reno_run()
    records = [
        Record.from_mapping(json.loads(one)) for one in Path("run/records.jsonl").read_text().splitlines()
    ]
    failed = {"outcome": "transfer_timeout", "detail": "late", "goodput_bps": None, "rtt_median_ms": None}
    fails = [one for one in records if one.server == "x-net:cc=newreno" or one.trial == records[0].trial]
    changed = [fake_run.change(one, **failed) if one in fails else one for one in records]
    assert records[0].server == "noq:cc=newreno" and len(fails) == 31
    fake_run.write_records(Path("run"), changed)
    text = " ".join(bentpipe.page("reno", "--run", "run").split())
    assert text.startswith("# At 1 % of loss 1 of 3 stacks has Reno's rate within 5 %; quinn has 11")
    assert "keeps RFC 9002: aioquic; of noq these trials cannot tell." in text
    assert "within 5 % of it is 1 stack: aioquic." in text
    assert "No trial of x-net:cc=newreno succeeded." in text
    assert "31 of 120 trials failed" in text


@pytest.mark.parametrize(("shift", "count", "verdict"), [(1.0, 3, "cannot tell"), (1.05, 50, "higher")])
def test_what_is_not_shown_to_be_equal_is_not_called_so(
    shift: float, count: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three trials of an ideal sender are too few; a rate above it whose interval is partly beyond the margin
    is higher.
    """
    rates = ideal().rates[100 // count // 2 :: 100 // count][:count]
    monkeypatch.setattr(StackRow, "rates", [shift * rate for rate in rates])
    row = StackRow(Cell(fake_run.record("sat", "noq", "noq", 1).cell_key, ()), ideal())
    assert row.verdict == verdict


def test_the_numbers_of_a_server_lead_to_its_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reno_run()
    found = study_marks.leading("reno", ["--run", "run"])
    servers = [one.key.server for one in found["600"] if one]
    assert sorted(servers) == [f"{name}:cc=newreno" for name in ("aioquic", "noq", "quinn", "x-net")]


@pytest.mark.parametrize("loss", ["none", "gilbert, mean 1 %"])
def test_another_loss_has_no_formula(bentpipe: Command, loss: str) -> None:
    reno_run(loss)
    done = bentpipe("study", "reno", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "uniform loss towards the client alone" in done.err and "bentpipe run reno" in done.err
    assert not Path("out").exists()


def test_a_run_without_reno_is_named(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    done = bentpipe("study", "reno", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "servers with cc=newreno" in done.err
