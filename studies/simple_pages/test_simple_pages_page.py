"""`bentpipe study simple-pages`: the page on two simple pages, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
from conftest import Command

from bentpipe.runs.records import Record

CAMPAIGNS = ("simple-pages-quic", "simple-pages-tcp")
STEP_S = 0.1
PROXIES = "tcp-pep terminal:config=D,gateway:config=D"


def trial(workload: str, plt_s: float, server: str, iteration: int = 1, treatment: str = "direct") -> Record:
    """5 MB that come at one rate in the last 2 s."""
    made = fake_run.record("sat", "noq", server.partition(":")[0], iteration)
    steps = round(plt_s / STEP_S)
    came = [max(0, round(2.5e6 * ((step + 1) * STEP_S - plt_s + 2))) for step in range(steps)]
    return fake_run.change(
        made, workload=workload, treatment=treatment, outcome="ok", detail="", server=server,
        trial=f"{workload}{server}{iteration}{treatment}", plt_s=plt_s, received_step_s=STEP_S,
        received_bytes=came,
    )  # fmt: skip


def runs(*each: list[Record]) -> list[str]:
    """Words for the study's two runs."""
    pairs = zip(CAMPAIGNS, each, strict=True)
    return [word for campaign, records in pairs for word in fake_run.write_campaign(campaign, records)]


def quic() -> list[Record]:
    large = [trial("page:kuhn-a:h3", plt_s, "noq", n) for n, plt_s in enumerate((4.0, 5.0, 9.0), 1)]
    return [*large, trial("page:kuhn-b:h3", 2.0, "noq")]


def tcp(*pages: str) -> list[Record]:
    return [
        trial(f"page:{page}:h2", plt_s, "linux:cc=bbr", treatment=treatment)
        for page in pages
        for treatment, plt_s in (("direct", 8.0), (PROXIES, 6.0))
    ]


def test_percentiles_and_courses_stand_beside_what_was_published(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = bentpipe.page("simple-pages", *runs(quic(), tcp("kuhn-a", "kuhn-b")))
    assert "| none | HTTP/3, noq | 4.00 | 4.00 | 5.00 | 9.00 | 9.00 |" in text
    assert "| none | HTTP/2, linux:cc=bbr, proxies | 6.00 | 6.00 | 6.00 | 6.00 | 6.00 |" in text
    # Of the median trial: nothing before 3 s, 2.5 MB a second from then on, which is no full rate.
    course = "| 0.00 | 0.00 | 0.00 | 0.00 | 2.50 | 5.00 | 5.00 | 5.00 | never |"
    assert f"| none | HTTP/3, noq {course}" in text
    said = " ".join(text.split())
    medians = "HTTP/3, noq 5.00 s; HTTP/2, linux:cc=bbr, proxies 6.00 s."
    assert f"published: QUIC significantly worse than TCP. Here, medians: {medians}" in said


def test_runs_without_both_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "simple-pages", *runs(quic(), tcp("kuhn-a")), "-o", "out")
    assert done.code != 0 and "wanted are the pages kuhn-a and kuhn-b, over TCP and over QUIC" in done.err
