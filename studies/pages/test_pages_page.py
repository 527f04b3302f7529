"""`bentpipe study pages`: the page on pages, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

LOSSES = ("0%", "1%")
QUIC_CHAIN = "quic-pep terminal:mode=sequential,gateway:mode=sequential"


def trial(
    scenario: str, http: str, plt_s: float | None, treatment: str = "direct", **values: str | float
) -> Record:
    made = fake_run.record("sat", "noq", "noq", int(values.pop("iteration", 1)))
    good = {
        "scenario": scenario,
        "workload": f"page:kosek:{http}",
        "treatment": treatment,
        "outcome": "ok" if plt_s else "transfer_timeout",
        "detail": "",
        "rs_s": 1.0,
        "fcp_s": plt_s and plt_s / 2,
        "plt_s": plt_s,
        "trial": f"{scenario}{http}{plt_s}{treatment}{values}",
    }
    return fake_run.change(made, **(good | values))


def lossy(name: str, loss: str) -> str:
    return f"{name},forward.loss={loss},return.loss={loss}"


def write(campaign: str, records: list[Record]) -> Path:
    fake_run.write(Path(campaign))
    with fake_run.changed_manifest(Path(campaign)) as manifest:
        manifest["campaign"] = campaign
    fake_run.write_records(Path(campaign), records)
    return Path(campaign)


def page(bentpipe: Command, *runs: Path) -> str:
    return bentpipe.page("pages", *fake_run.named(runs))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs of the paper's table: over one orbit, with two of its losses; a trial of one failed."""
    monkeypatch.chdir(tmp_path)
    h3 = [trial(lossy("geo-tum", loss), "h3", time) for loss, time in zip(LOSSES, (5.0, 9.0), strict=True)]
    h3 += [trial(lossy("geo-tum", "0%"), "h3", 4.0, QUIC_CHAIN)]
    h3 += [trial(lossy("geo-tum", "1%"), "h3", None, iteration=2)]
    h1 = [trial(lossy("geo-tum", "0%"), "h1", 10.0)]
    return [write("pages-h3", h3), write("pages-h1", h1)]


def test_the_table_is_set_beside_the_published_one(bentpipe: Command, table: list[Path]) -> None:
    text = page(bentpipe, *table)
    plt = text.partition("| Page load time |")[2]
    assert "| geo-tum, HTTP/3 | 5.00 / 7.67 | - / 7.67 | - / 7.74 | 9.00, 1 failed / 16.86 |" in plt
    assert "| geo-tum, HTTP/3, proxies | 4.00 / 7.34 |" in plt
    assert "| geo-tum, HTTP/1.1 | 10.00 / 10.81 |" in plt
    assert "| leo-tum, HTTP/3 | - / 2.61 |" in plt
    assert "| geo-tum, HTTP/3 | 1.00 / 1.31 |" in text.partition("| Response start |")[2]
    assert "Requests at once" not in text, "that run is not there"


def test_the_setting_nearest_to_the_paper_is_named(bentpipe: Command, table: list[Path]) -> None:
    trials = [
        trial("geo-tum", "h3", plt_s, fcp_s=fcp_s, client=f"noq:parallel={most}", server=f"noq:iw={window}")
        for most, window, fcp_s, plt_s in ((6, 10, 4, 10), (6, 32, 3, 9), (8, 10, 3, 8.6), (8, 32, 2.8, 7.7))
    ]  # fmt: skip
    text = page(bentpipe, *table, write("pages-parallel", trials))
    assert "| 8 | 3.00 | 8.60 | 2.80 | 7.70 |" in text
    assert "| published | 2.76 | 7.67 | 2.76 | 7.67 |" in text
    said = " ".join(text.split())
    assert "Of these 4 settings over geo-tum the paper's two times are nearest to 8 requests at once" in said
    assert "an initial window of 32 packets, which are at most 2 % off" in said


def test_what_chance_can_have_made_has_its_interval(bentpipe: Command, table: list[Path]) -> None:
    chain = "quic-pep terminal:cc=cubic:iw=100,gateway:cc=cubic:iw=100"
    trials = [
        trial("geo-tum", "h3", time, treatment, iteration=number)
        for treatment, times in (("direct", (9.0, 9.5, 10.0, 10.5, 11.0)), (chain, (4.5, 4.9, 5.0, 5.1, 5.5)))
        for number, time in enumerate(times, 1)
    ]
    text = page(bentpipe, *table, write("pages-loss", trials))
    assert "| as many as the server allows | none | 5.00 (4.75 to 5.25) | 10.00 (9.50 to 10.50) |  |" in text
    (row,) = [line for line in text.splitlines() if "| cubic |" in line]
    assert "| 5.00 (4.90 to 5.10) | 0.50 (0.49 to 0.51) |" in row, "in pairs; independent ones are wider"


def test_senders_have_a_line_for_each_and_failures_are_said(bentpipe: Command, table: list[Path]) -> None:
    warm = "quic-pep terminal:cc=newreno:mode=warm,gateway:cc=newreno:mode=warm"
    quic = [trial(lossy("leo-tum", loss), "h3", 2.0, warm, server="noq:iw=10") for loss in LOSSES]
    quic.append(trial(lossy("leo-tum", "1%"), "h3", None, warm, server="noq:iw=10", iteration=2))
    proxies = "tcp-pep gateway:config=D"
    links = [
        trial(link, http, plt_s + more, treatment)
        for link, more in (("astra", 0.0), ("bigblu", 0.5))
        for http, plt_s, treatment in (
            ("h1", 10, "direct"), ("h2", 6, "direct"), ("h2", 5, proxies), ("h1", 9, proxies),
        )
    ]  # fmt: skip
    both = [write("pages-operators-tcp", links), write("pages-operators-quic", [trial("astra", "h3", 5.5)])]
    text = page(bentpipe, *table, write("pages-quic", quic), *both)
    assert "| HTTP/3 | noq:iw=10 | cc=newreno mode=warm | 1.00 / 1.00 / 2.00 |" in text
    assert "2.00, 1 failed |" in text
    said = " ".join(text.split())
    assert "TCP behind proxies, fastest first: HTTP/2 5.00 to 5.50 s, HTTP/3 5.50 to 5.50 s, HTTP/1" in said
    assert "TCP past them, fastest first: HTTP/3 5.50 to 5.50 s, HTTP/2 6.00 to 6.50 s, HTTP/1.1" in said
    assert "| astra | 10.00 | 6.00 | 5.00 | 9.00 | 5.50 |" in text
    assert "fastest first" not in page(bentpipe, *table, both[0]), "without HTTP/3 there is no order"


def test_through_a_vpn_stands_beside_without_it(bentpipe: Command, table: list[Path]) -> None:
    vpn, proxies = "vpn server:kind=wireguard", "tcp-pep terminal:config=D,gateway:config=D"
    times = (("h1", proxies, 9), ("h2", proxies, 5), ("h1", vpn, 11), ("h2", vpn, 8), ("h3", "direct", 5.5),
             ("h3", vpn, 5.75))  # fmt: skip
    over = [trial(link, http, plt_s + more, treatment) for link, more in (("astra", 0), ("bigblu", 0.5))
            for http, treatment, plt_s in times]  # fmt: skip
    virtual = write("pages-operators-quic", [trial("astra", "h3", 5.5)])
    tcp, quic = ([one for one in over if ("h3" in one.workload) == is_quic] for is_quic in (False, True))
    both = [write("pages-operators-vpn-tcp", tcp), write("pages-operators-vpn-quic", quic)]
    text = page(bentpipe, *table, virtual, *both)
    assert "| astra | 9.00 | 11.00 | 5.00 | 8.00 | 5.50 | 5.75 |" in text
    said = " ".join(text.split())
    assert "Without it HTTP/2 takes 5.00 to 5.50 s (the slides: good)." in said
    assert "With the VPN HTTP/2 takes 8.00 to 8.50 s (the slides: poor)." in said
    assert "WireGuard" not in page(bentpipe, *table, virtual)


def test_browsers_stand_beside_virtual_time(bentpipe: Command, table: list[Path]) -> None:
    def times(client: str, **plt_s: float) -> list[Record]:
        return [trial("geo-tum", http, time, client=client, server="caddy") for http, time in plt_s.items()]

    real = times("chromium", h1=11, h2=6, h3=4.5) + times("firefox", h1=12, h2=5, h3=5.5)
    virtual = write("pages-beside-browsers", times("noq", h1=10, h2=5, h3=4.5))
    text = page(bentpipe, *table, write("pages-browsers", real), virtual)
    (row,) = [line for line in text.splitlines() if line.startswith("| kosek, HTTP/2 |")]
    assert row == "| kosek, HTTP/2 | 1.00 | 1.00 | 1.00 | 2.50 | 3.00 | 2.50 | 5.00 | 6.00 | 5.00 |"
    said = " ".join(text.split())
    of = "over geo-tum: page load times are {} times those of virtual time, and the versions of HTTP come in"
    assert f"chromium {of.format('1.00 to 1.20')} the same order for 1 of 1 pages" in said
    assert f"firefox {of.format('1.00 to 1.22')} the same order for 0 of 1 pages" in said
    assert "Beside browsers" not in page(bentpipe, *table, virtual)


def test_runs_that_are_not_of_the_study_are_refused(bentpipe: Command, table: list[Path]) -> None:
    other = write("demo", [trial("geo-tum", "h3", 5.0)])
    cases = [
        (table[:1], "its page is written from 2 runs or more"),
        ([table[0], table[0]], "wanted are the runs of the paper's table, pages-h3 and pages-h1"),
        ([*table, other], "a run of demo, which is no campaign of this study"),
    ]
    for runs, wrong in cases:
        done = bentpipe("study", "pages", *fake_run.named(runs), "-o", "out")
        assert done.code != 0 and wrong in done.err


def test_where_trials_failed_a_ratio_has_no_verdict(bentpipe: Command, table: list[Path]) -> None:
    """Those that succeed are the fast ones."""
    h1 = [trial(lossy("geo-tum", loss), "h1", 10.0) for loss in LOSSES]
    text = page(bentpipe, table[0], write("pages-h1", h1))
    (row,) = [line for line in text.splitlines() if "HTTP/3 / HTTP/1.1, GEO, 1 % |" in line]
    assert row.endswith("| - | cannot tell; 1 trial failed |")


def test_advice_is_what_the_intervals_show(bentpipe: Command, table: list[Path]) -> None:
    """Proxies are faster without losses, slower with 1 %; of HTTP/1.1 there is one trial, and no interval."""
    assert "## What to do with it" not in page(bentpipe, *table)
    times = {("0%", "direct"): 5.0, ("0%", QUIC_CHAIN): 4.0, ("1%", "direct"): 9.0, ("1%", QUIC_CHAIN): 12.0}
    trials = [
        trial(lossy("geo-tum", loss), "h3", plt_s + number / 100, treatment, iteration=number)
        for (loss, treatment), plt_s in times.items()
        for number in (1, 2, 3)
    ]
    text = page(bentpipe, write("pages-h3", trials), table[1])
    advice = " ".join(text.partition("## What to do with it")[2].partition("\n## ")[0].split())
    shorter = "- Proxies shorten the page load time of HTTP/3 over GEO at 0 % of loss."
    assert advice == f"{shorter} - Leave proxies out, which lengthen it, of HTTP/3 over GEO at 1 % of loss."


def test_times_lead_to_their_trials(table: list[Path]) -> None:
    found = study_marks.leading("pages", fake_run.named(table))
    (text,) = (one for one in found if one.startswith("4.00 / "))
    key = trial(lossy("geo-tum", "0%"), "h3", 4.0, QUIC_CHAIN).cell_key
    assert found[text] == [RunCell(Path("pages-h3"), key)]
