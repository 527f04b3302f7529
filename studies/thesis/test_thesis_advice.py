"""`bentpipe study thesis`: what its page advises, and what it says with the same stacks at both ends."""

from __future__ import annotations

from pathlib import Path

import fake_run
from conftest import Command
from thesis.distributions import at_both_ends

from bentpipe.runs.records import Record

SHORT = "sat-2021,forward.queue=25packets,return.queue=25packets"


def advice(bentpipe: Command, records: list[Record], share: float) -> str:
    """That of a run beside which a queue of 25 packets leaves this share of the goodput."""
    made = [
        fake_run.change(one, scenario=SHORT, goodput_bps=one.goodput_bps and share * one.goodput_bps)
        for one in records
        if one.scenario == "sat-2021"
    ]
    words = fake_run.write_campaign("thesis-short-queue", made, fake_run.OF_2021)
    text = bentpipe.page("thesis", "--run", "run", *words)
    return " ".join(text.partition("## What to do with it")[2].partition("\n## ")[0].split())


def test_advice_on_the_queue_is_what_its_run_shows(bentpipe: Command) -> None:
    """Where the queue changes nothing, nothing follows from it."""
    records = fake_run.write(Path("run"), links=fake_run.OF_2021)
    said = advice(bentpipe, records, 0.5)
    assert said.endswith("source's simulator: with 25 packets goodput is 0.50 of theirs over SAT.")
    assert advice(bentpipe, records, 1.0) == ""


def test_the_variance_is_split_with_the_same_stacks_at_both_ends() -> None:
    """A server that is no client goes, and so does a client without a value for one of its pairs."""
    values = {(client, server): [1.0, 2.0] for client in "abcd" for server in "abcde"}
    assert set(at_both_ends(values)) == {(client, server) for client in "abcd" for server in "abcd"}
    values["a", "b"] = []
    kept = at_both_ends(values)
    clients, servers = ({pair[place] for pair in kept} for place in (0, 1))
    assert clients == servers and len(clients) == 3 and len(kept) == 9 and all(kept.values())
    assert at_both_ends({("a", "b"): [1.0, 2.0]}) == {}
