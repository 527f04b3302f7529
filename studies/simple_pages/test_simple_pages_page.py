"""`bentpipe study simple-pages`: the page on two simple pages, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
import study_marks
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
    assert said.startswith("# Two simple pages over QUIC, and over TCP behind an operator's proxies")
    assert "No stack of QUIC with BBR is beside TCP" in said


def test_runs_without_both_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "simple-pages", *runs(quic(), tcp("kuhn-a")), "-o", "out")
    assert done.code != 0 and "wanted are the pages kuhn-a and kuhn-b, over TCP and over QUIC" in done.err


def test_quic_is_compared_with_tcp_behind_proxies_one_with_one(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A BBR that is faster for the large page where the paper has the opposite, and one that is slower."""
    monkeypatch.chdir(tmp_path)
    over_quic = [
        trial(f"page:{page}:h3", plt_s + 0.01 * n, server, n)
        for page in ("kuhn-a", "kuhn-b")
        for server, plt_s in (("quinn:cc=bbr", 3.0), ("noq:cc=bbr3", 12.0))
        for n in (1, 2, 3)
    ]
    over_tcp = [
        trial(f"page:{page}:h2", 6.0 + 0.01 * n, "linux:cc=bbr", n, treatment)
        for page in ("kuhn-a", "kuhn-b")
        for treatment in ("direct", PROXIES)
        for n in (1, 2, 3)
    ]
    text = bentpipe.page("simple-pages", *runs(over_quic, over_tcp))
    assert text.startswith(
        "# QUIC loads 5.3 MB in 0.50 to 2.00 times TCP's time behind proxies, in 2 settings\n"
    )
    claim = "| QUIC is significantly worse for 5.3 MB (losses none, {}) | in words | {} |"
    assert claim.format("quinn:cc=bbr", "0.50 (0.50 to 0.51) of TCP's time | contradicts") in text
    advice = " ".join(text.partition("## What to do with it")[2].partition("\n## ")[0].split())
    assert "For large pages compare the stacks, not the protocols: QUIC is faster than TCP" in advice
    slower = next(line for line in text.splitlines() if "5.3 MB (losses none, noq:cc=bbr3)" in line)
    assert "| 2.00 (" in slower and slower.endswith("| same direction |")


def test_where_trials_failed_there_is_no_verdict(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that succeed are the fast ones."""
    monkeypatch.chdir(tmp_path)
    over_quic = [
        trial(f"page:{page}:h3", 3.0 + 0.01 * n, "quinn:cc=bbr", n)
        for page in ("kuhn-a", "kuhn-b")
        for n in (1, 2, 3)
    ]
    over_quic[2] = fake_run.change(over_quic[2], outcome="transfer_timeout", plt_s=None)
    over_tcp = [
        trial(f"page:{page}:h2", 6.0 + 0.01 * n, "linux:cc=bbr", n, treatment)
        for page in ("kuhn-a", "kuhn-b")
        for treatment in ("direct", PROXIES)
        for n in (1, 2, 3)
    ]
    text = bentpipe.page("simple-pages", *runs(over_quic, over_tcp))
    large, small = (
        next(line for line in text.splitlines() if f"for {size} (losses none, quinn" in line)
        for size in ("5.3 MB", "11 kB")
    )
    assert large.endswith("| in words | - | cannot tell; 1 trial failed |")
    assert small.endswith("| same direction |")
    assert text.startswith("# Two simple pages over QUIC")


def test_a_larger_first_window_stands_beside_the_kernels(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TCP behind proxies takes half of its time with it, and QUIC is slower then."""
    monkeypatch.chdir(tmp_path)
    over_quic = [
        trial(f"page:{page}:h3", 4.0 + 0.01 * n, "quinn:cc=bbr", n)
        for page in ("kuhn-a", "kuhn-b")
        for n in (1, 2, 3)
    ]

    def over_tcp(
        plt_s: float, treatment: str, client: str, pages: tuple[str, ...] = ("kuhn-a", "kuhn-b")
    ) -> list[Record]:
        made = [
            trial(f"page:{page}:h2", plt_s + 0.01 * n, "linux:cc=bbr", n, treatment)
            for page in pages
            for n in (1, 2, 3)
        ]
        return [fake_run.change(one, client=client, trial=f"{one.trial}{client}") for one in made]

    wide = PROXIES.replace("config=D", "config=D:rmem=4194304")
    two = runs(over_quic, [*over_tcp(6.0, PROXIES, "linux"), *over_tcp(6.0, "direct", "linux", ("kuhn-a",))])
    widened = over_tcp(7.0, "direct", "linux:rmem=4194304", ("kuhn-a",))
    widened += over_tcp(3.0, wide, "linux:rmem=4194304")
    more = fake_run.write_campaign("simple-pages-rmem", widened)
    assert "larger first window" not in bentpipe.page("simple-pages", *two)
    text = bentpipe.page("simple-pages", *two, *more)
    assert "| 5.3 MB | none | proxies | 6.02 | 3.02 | 0.50 (0.50 to 0.51) |" in text
    said = " ".join(text.split())
    begin = "With a first window of 2 MiB 5.3 MB"
    assert f"{begin} through proxies take TCP 0.50 (0.50 to 0.51) times as long without losses." in said
    assert f"{begin} without proxies take TCP 1.17 (1.16 to 1.17) times as long without losses." in said
    counted = "Of 3 settings of both pages, 2 are faster and 1 slower, by more than chance"
    assert f"{counted} and more than 2 %." in said
    large = "For 5.3 MB, of 1 comparison of QUIC with TCP behind proxies that have it 1 goes in the same"
    assert f"{large} direction; of those with the kernel's 1 is contradicted." in said
    assert "| none | HTTP/2, linux:cc=bbr, proxies, first window of 2 MiB | 3.01 |" in text


def test_load_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = runs(quic(), tcp("kuhn-a", "kuhn-b"))
    found = study_marks.leading("simple-pages", words)
    (key,) = {one.key for one in found["9.00"] if one}
    assert key == quic()[0].cell_key
    assert {one.run for one in found["6.00"] if one} == {Path(CAMPAIGNS[1])}
