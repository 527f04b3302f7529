"""`bentpipe study slow-start`, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from conftest import Command
from fake_grid import COMES_TO, GOOD, OWN, RASH, REFERENCE, fail, page, trial, write

from bentpipe.analysis.trial_marks import RunCell


def test_the_page_on_slow_starts(bentpipe: Command) -> None:
    def left(by: str, second: float) -> dict[str, Any]:
        return {"server_statistics": {"slow_start_left_by": by, "slow_start_left_s": second}}

    small, large = "sat,forward.queue=0.1BDP", "sat,forward.queue=5BDP"
    records = [trial(REFERENCE, number, small, **left("loss", 4.0 + number)) for number in (1, 2, 3)]
    records += [trial(REFERENCE, number, large, **left("css_rounds", 6.0)) for number in (1, 2)]
    records += [trial(REFERENCE, 3, large, **left("loss", 1.0))]
    records += [trial(GOOD, number, small) for number in (1, 2, 3)]
    slowed = left("loss", 3.0)
    slowed["server_statistics"]["css_entered_s"] = 2.0
    records += [trial(RASH, 1, small, **slowed), trial(RASH, 1, large, **slowed)]
    records += [trial(OWN, 1, small)]  # its slow start is not chosen
    write(records)
    text = page(bentpipe, "slow-start")
    # The only one that was run with both queues is the reference, and so there is none beside it.
    assert text.startswith("# Over sat, queues of 0.1 to 5 BDP: hystart++ reaches 60 % of the limit\n")
    assert "3 variants as the server, each over 1 path" in text
    assert "| server | 0.1 BDP | dropped | 5 BDP | dropped |" in text
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % |  |  |" in text
    assert "| hystart++ | loss 6.0 s | css rounds 6.0 s (2 of 3) |" in text
    assert "| hystart++ | 5 BDP |" in text and "| trains | never |" in text
    assert "| hybla | 0.1 BDP |" in text
    assert "| trains | not left |  |" in text


def test_title_and_advice_are_of_the_slow_start_that_leads(bentpipe: Command) -> None:
    queues = ("sat,forward.queue=0.1BDP", "sat,forward.queue=1BDP", "sat,forward.queue=5BDP")
    shares = {GOOD: (0.9, 0.91, 0.92), REFERENCE: (0.5, 0.55, 0.6)}
    records = [
        trial(server, number, queue, share_of_limit=share + number / 1e4)
        for server, each in shares.items()
        for queue, share in zip(queues, each, strict=True)
        for number in (1, 2, 3)
    ]
    write(records)
    text = page(bentpipe, "slow-start")
    begin = "# Over sat, queues of 0.1 to 5 BDP: trains reaches 90 to 92 % of the limit, hystart++ 50 to 60 %"
    assert text.startswith(f"{begin}\n")
    front = " ".join(text.partition("## What was run")[0].split())
    assert (
        "Of the file the queue drops, in the median, at most 0 % with trains and 1 % with hystart++." in front
    )
    assert "1 path, 3 settings, most often best, or within 5 % of the best: trains in 3." in front
    assert "- Over sat: trains, best or within 5 % of the best at 3 of 3 queues." in front


def test_a_slow_start_that_fails_is_not_the_best_and_its_queues_are_named(bentpipe: Command) -> None:
    queues = ("sat,forward.queue=0.1BDP", "sat,forward.queue=1BDP", "sat,forward.queue=5BDP")
    shares = {GOOD: (0.9, 0.91, 0.92), REFERENCE: (0.5, 0.55, 0.6)}
    records = [
        trial(server, number, queue, share_of_limit=share + number / 1e4)
        for server, each in shares.items()
        for queue, share in zip(queues, each, strict=True)
        for number in (1, 2, 3)
    ]
    failed = [
        fail(one) if (one.server, one.scenario, one.iteration) == (GOOD, queues[0], 3) else one
        for one in records
    ]
    write(failed)
    text = page(bentpipe, "slow-start")
    assert text.startswith("# Over sat, queues of 0.1 to 5 BDP: hystart++ reaches 50 to 60 % of the limit\n")
    failed = [
        fail(one) if (one.server, one.scenario, one.iteration) == (REFERENCE, queues[2], 3) else one
        for one in records
    ]
    write(failed)
    front = " ".join(page(bentpipe, "slow-start").partition("## What was run")[0].split())
    assert "and hystart++ reaches 50 to 55 % (not at 5 BDP, where trials failed)." in front


def test_what_chance_could_have_made_is_no_advice(bentpipe: Command) -> None:
    queues = ("sat,forward.queue=0.1BDP", "sat,forward.queue=5BDP")
    write(
        [
            trial(server, number, queue, share_of_limit=share, forward_queue_drops=0)
            for server, each in {GOOD: (0.9, 0.5, 0.7), REFERENCE: (0.6, 0.5, 0.8)}.items()
            for queue in queues
            for number, share in enumerate(each, start=1)
        ]
    )
    text = page(bentpipe, "slow-start")
    assert "## What to do with it" not in text
    assert "none is shown to be best, or within 5 % of the best." in " ".join(text.split())


def test_where_none_leads_over_most_queues_there_is_no_advice(bentpipe: Command) -> None:
    queues = ("sat,forward.queue=0.1BDP", "sat,forward.queue=5BDP")
    shares = {GOOD: (0.9, 0.5), REFERENCE: (0.5, 0.9)}
    write(
        [
            trial(server, number, queue, share_of_limit=share, forward_queue_drops=0)
            for server, each in shares.items()
            for queue, share in zip(queues, each, strict=True)
            for number in (1, 2, 3)
        ]
    )
    assert "## What to do with it" not in page(bentpipe, "slow-start")


def test_tcp_stands_beside_and_does_not_say_how_it_left_slow_start(bentpipe: Command) -> None:
    small = "sat,forward.queue=0.1BDP"
    left: dict[str, Any] = {"server_statistics": {"slow_start_left_by": "loss", "slow_start_left_s": 4.0}}
    tcp = {"client": "linux", "server": "linux:cc=cubic", "transport": "tcp", "share_of_limit": 0.7}
    linux = fake_run.change(trial(OWN, 1, small), **tcp)
    write([trial(REFERENCE, 1, small, **left), trial(GOOD, 1, small), linux])
    text = page(bentpipe, "slow-start")
    assert "| linux:cc=cubic | 70 % | 2.0 % |" in text
    assert "| linux's own cubic | not reported |" in text and "| trains | not left |" in text
    assert "a round trip more" in text


def test_without_a_sweep_of_queues_there_is_no_such_page(bentpipe: Command) -> None:
    write([trial(one, 1) for one in COMES_TO])
    done = bentpipe("study", "slow-start", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "a sweep of forward.queue" in done.err


def test_shares_and_ends_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said: dict[str, Any] = {"server_statistics": {"slow_start_left_by": "loss", "slow_start_left_s": 4.5}}
    records = [trial(one, 1, "sat,forward.queue=1BDP", **said) for one in (GOOD, REFERENCE)]
    write(records)
    found = study_marks.leading("slow-start", ["--run", "run"])
    both = [RunCell(Path("run"), one.cell_key) for one in records]
    assert found["85 %"] + found["60 %"] == both
    assert found["loss 4.5 s"] == both
