"""`bentpipe study limit`, from made-up runs."""

from __future__ import annotations

from xml.etree import ElementTree

import fake_run
from conftest import Command
from fake_grid import COMES_TO, GOOD, OWN, REFERENCE, SIZE, fail, page, trial, write


def test_the_page_on_the_limit(bentpipe: Command) -> None:
    scenarios = ("sat,timeout=600s", "eutelsat,timeout=600s")
    records = [
        trial(server, iteration, scenario, size)
        for scenario in scenarios
        for size in (100_000, SIZE)
        for server in COMES_TO
        for iteration in (1, 2)
    ]
    write([*records[:-2], *map(fail, records[-2:])])
    text = page(bentpipe, "limit")
    assert "Files of 100 kB, 10 MB over 2 paths, with 4 variants as the server and noq as the client" in text
    assert "| sat | 85 %: trains | 85 %: trains |" in text
    assert "| eutelsat | 85 %: trains | 60 %: hystart++ |" in text
    sat = text.partition("\n## sat\n")[2].partition("\n## ")[0]
    assert "| server | 100 kB | dropped | 10 MB | dropped |" in sat
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % | **85 %** | 0 % |" in sat
    assert "| noq:cc=cubic:ss=hybla | 95 % | 40 % | 95 % | 40 % |" in sat
    assert "| noq:cc=cubic | 50 % | 2.0 % | 50 % | 2.0 % |" in sat
    eutelsat = text.partition("\n## eutelsat\n")[2].partition("\n## ")[0]
    assert "| noq:cc=cubic:ss=trains | **85 %** | 0 % | transfer timeout | - |" in eutelsat
    assert "2 of 32 trials failed." in text
    texts = " ".join(ElementTree.parse("out/limit.svg").getroot().itertext())
    assert all(name in texts for name in ("trains", "noq's own cubic", "eutelsat", "100 kB"))


def test_nothing_is_bold_that_chance_could_have_made(bentpipe: Command) -> None:
    shares = {GOOD: (0.7, 0.9), REFERENCE: (0.6, 0.75), OWN: (0.5, 0.5)}
    write(
        [
            trial(server, iteration, share_of_limit=share, forward_queue_drops=0)
            for server, both in shares.items()
            for iteration, share in enumerate(both, start=1)
        ]
    )
    text = page(bentpipe, "limit")
    assert "| noq:cc=cubic:ss=trains | 80 % |" in text and "**" not in text.partition("\n## sat")[2]
    assert "| sat | 80 %: trains; or " in text and "hystart++ |" in text


def test_tcp_stands_beside_with_a_client_of_its_own(bentpipe: Command) -> None:
    tcp = {"client": "linux", "server": "linux:cc=bbr", "transport": "tcp", "share_of_limit": 0.75}
    write([*(trial(server, 1) for server in COMES_TO), fake_run.change(trial(OWN, 1), **tcp)])
    text = page(bentpipe, "limit")
    said = " ".join(text.split())
    assert "5 variants as the server and noq, linux as the client of the same stack" in said
    assert "| linux:cc=bbr | 75 % | 2.0 % |" in text and "a round trip more" in said


def test_one_server_has_no_limit_page(bentpipe: Command) -> None:
    write([trial(GOOD, 1)])
    done = bentpipe("study", "limit", "--run", "run", "-o", "out")
    assert done.code != 0
    assert "several servers" in done.err and "bentpipe run limit" in done.err
