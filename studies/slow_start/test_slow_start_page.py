"""`bentpipe study slow-start`, from made-up runs."""

from __future__ import annotations

from typing import Any

import fake_run
from conftest import Command
from fake_grid import COMES_TO, GOOD, OWN, RASH, REFERENCE, page, trial, write


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
    assert "3 variants as the server, each over 1 path" in text
    assert "| server | 0.1 BDP | dropped | 5 BDP | dropped |" in text
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % |  |  |" in text
    assert "| hystart++ | loss 6.0 s | css rounds 6.0 s (2 of 3) |" in text
    assert "| hystart++ | 5 BDP |" in text and "| trains | never |" in text
    assert "| hybla | 0.1 BDP |" in text
    assert "| trains | not left |  |" in text


def test_tcp_stands_beside_and_does_not_say_how_it_left_slow_start(bentpipe: Command) -> None:
    small = "sat,forward.queue=0.1BDP"
    left: dict[str, Any] = {"server_statistics": {"slow_start_left_by": "loss", "slow_start_left_s": 4.0}}
    tcp = {"client": "linux", "server": "linux:cc=cubic", "transport": "tcp", "share_of_limit": 0.7}
    linux = fake_run.change(trial(OWN, 1, small), **tcp)
    write([trial(REFERENCE, 1, small, **left), trial(GOOD, 1, small), linux])
    text = page(bentpipe, "slow-start")
    assert "| linux:cc=cubic | 70 % | 2.0 % |" in text
    assert "| linux's own cubic | not told |" in text and "| trains | not left |" in text
    assert "a round trip more" in text


def test_without_a_sweep_of_queues_there_is_no_such_page(bentpipe: Command) -> None:
    write([trial(one, 1) for one in COMES_TO])
    done = bentpipe("study", "slow-start", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "a sweep of forward.queue" in done.err
