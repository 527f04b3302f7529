"""`bentpipe study kosek`: sections on runs that do not count with the paper's settings, from made-up runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import fake_run
import fake_trace
import numpy as np
import pytest
from conftest import Command
from kosek import browsers_answer, published
from kosek.browsers_answer import ProxyEffect
from kosek.test_kosek_page import CHAIN, SLOW, first_run, label, page, row, study, trial, write
from kosek.windows import WindowCourse
from pages import published as pages_published

from bentpipe.runs.records import Record
from bentpipe.study.claims import Claim, MeasuredValue, Published


def campaign(run: Path, name: str) -> Path:
    """The run as one of that campaign."""
    with fake_run.changed_manifest(run) as manifest:
        manifest["campaign"] = name
    return run


def logged(run: Path, record: Record, **changes: Any) -> Path:
    """The folder of the trial with an analysis whose server logged its window: 0.1 MB, 2 MB from 3 s on."""
    folder = run / "trials" / record.trial
    fake_trace.write(folder)
    file = folder / "analysis.json"
    summary = json.loads(file.read_text())
    window = {"time_s": [1.0, 3.0], "bytes": [100_000, 2_000_000]}
    summary["connections"][0] |= {"qlog": {"server": {"cwnd": window}}} | changes
    file.write_text(json.dumps(summary))
    return folder


def traced_run() -> Path:
    """A trial without proxies and one with them; of the hops of the latter there are captures and logs."""
    place = ("geo-tum", "0%")
    direct, proxied = (
        trial(place, name, 1, SLOW, trial=f"trial{number}") for number, name in enumerate(("direct", CHAIN))
    )
    run = campaign(write("traced", [direct, proxied]), "kosek-windows")
    logged(run, direct)
    folder = logged(run, proxied)
    for hop in ("terminal-gateway", "gateway-server"):
        (folder / f"trace-{hop}.pcapng").write_text("a capture")
    for end in ("client", "terminal", "gateway", "server"):
        (folder / "qlog" / end).mkdir(parents=True)
        (folder / "qlog" / end / "one.sqlog").touch()
    return run


def test_windows_are_those_that_the_senders_logged(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_trace.stand_in(tmp_path / "bin")
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "bin"))
    text = page(bentpipe, first_run(), traced_run())
    below = text.partition("## Congestion windows")[2]
    found = row(below, "geo-tum, 0 %")
    # 20 Mbit/s and the 600 ms of the made-up transfer are 1.5 MB.
    assert found[:3] == ["3.00 s", "2.00", "2.00"]
    assert all(float(one) > 0 for one in (found[4], found[7]))  # of the stand-in: both hops have one
    assert "the median of 1 trial." in " ".join(below.split())
    assert (Path("out") / "kosek-windows.svg").is_file()
    # The last hop is read with the log of the end that sends over it, and no other.
    assert [Path(one).parts[-2:] for one in fake_trace.asked()["qlog"]] in (
        [("gateway", "one.sqlog")], [("server", "one.sqlog")]
    )  # fmt: skip
    # Its trials are not counted with those of the figure.
    assert row(text, "geo-tum, 0 %: QUIC")[0] == "3"


def test_without_logs_there_are_no_windows(bentpipe: Command) -> None:
    records = [trial(("geo-tum", "0%"), "direct", 1, SLOW, trial="trial0")]
    run = campaign(write("traced", records), "kosek-windows")
    assert "## Congestion windows" not in page(bentpipe, first_run(), run), "no trace"
    logged(run, records[0], qlog=None)
    assert "## Congestion windows" not in page(bentpipe, first_run(), run), "no log"


def test_a_window_holds_until_its_next_change() -> None:
    course = WindowCourse(np.array([1.0, 3.0, 4.0]), np.array([10.0, 30.0, 20.0]), 0.5)
    assert [course.at(time_s) for time_s in (0.5, 1.0, 2.9, 3.5, 9.0)] == [None, 10, 10, 30, 20]
    assert [course.reaches(least) for least in (10, 11, 31)] == [1.0, 3.0, None]


CARRIER = 'geo-tum-opensand,forward.rate={standard="dvb-s2",es_n0="20dB"}'
ONE_MODCOD = ",forward.rate.modcod=QPSK1/4"
FADE = '{steps=[["0s","0dB"],["5s","15dB"],["10s","0dB"]]}'


FADED = "ACM: 0 dB, 15 dB from 5 s on, 0 dB from 10 s on"


def attenuated(level: str, coding: str, rate_bps: float, proxied_bps: float) -> list[Record]:
    """Two trials of each treatment at these rates; a tenth of the packets is lost in a fade."""
    road = f"{CARRIER}{coding},forward.rate.attenuation={level}"
    lost = 100 if level == FADE else 0
    return [
        trial(("geo-tum", "0%"), treatment, number, (*SLOW[:3], bps), scenario=road, forward_losses=lost,
              trial=f"{level}{coding}{treatment}{number}".replace("/", ""))
        for treatment, bps in (("direct", rate_bps), (CHAIN, proxied_bps))
        for number in (1, 2)
    ]  # fmt: skip


def test_attenuation_is_shown_by_coding_and_level(bentpipe: Command) -> None:
    adaptive = [
        *attenuated("0dB", ",forward.delay=1ms", 1e6, 1e6),  # of another path: not pooled with the next
        *attenuated("0dB", "", 8e6, 16e6),
        *attenuated("20dB", "", 4e6, 4e6),
        *(fake_run.change(one, server="noq:cc=bbr3") for one in attenuated("5dB", "", 1e6, 1e6)),
        *attenuated(FADE, "", 4e6, 2e6),
    ]
    constant = [*attenuated("0dB", ONE_MODCOD, 4e6, 4e6), *attenuated("20dB", ONE_MODCOD, 4e6, 4e6)]
    runs = [
        campaign(write(name, records), "kosek-attenuation")
        for name, records in (("adaptive", adaptive), ("constant", constant))
    ]
    with fake_run.changed_manifest(runs[0]) as manifest:
        for label, one in manifest["scenarios"].items():
            lowest = {"forward_rate_lowest_bps": 5e6} if FADE in label else {}
            one["summary"] = one["summary"] | {"forward_rate_bps": 40e6} | lowest
    text = page(bentpipe, first_run(), *runs)
    below = text.partition("## Attenuation")[2]
    found = row(below, "ACM: 0 dB")
    assert found[0] == "40.0" and found[-2:] == ["0.0 %", "0.0 %"]
    assert 1.5 < float(found[4]) < 2, "most of the 15 s are at twice the rate"
    assert "ACM: 5 dB" not in below, "from another server"
    assert row(below, "ACM: 20 dB")[2] == row(below, "ACM: 20 dB")[4] == "1.00"
    assert row(below, FADED)[0] == "5.0 to 40.0"
    assert row(below, FADED)[-1] == "10.0 %"
    said = " ".join(below.split())
    for place, at_s in ((2, 5), (4, 15)):
        assert f"By {at_s} s QUIC with proxies has received {found[place]} times as much as without" in said
    # At 4 for 8 Mbit/s without proxies, and at 2 for 16 with them.
    shares = re.search(r"receives by then (\S+) times .* steady 0 dB without proxies, and (\S+) times", said)
    assert shares and float(shares[1]) > 3 * float(shares[2])
    assert "With QPSK 1/4 QUIC receives the same at 0 dB as at 20 dB, within 2 %" in said
    assert row(text, "geo-tum, 0 %: QUIC")[0] == "3" and "geo-tum-opensand, 0 %" not in text
    assert "## Attenuation" not in page(bentpipe, first_run())


H1_PROXIES = "tcp-pep terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
H3_PROXIES = CHAIN.replace("iw=100", "iw=100:mode=sequential")


def loads(version: str, loss: str, treatment: str, *plt_s: float, scenario: str = "geo-tum") -> list[Record]:
    """Loads of a page in a browser, with these page load times."""
    road = label(scenario, loss)
    return [
        trial((scenario, loss), treatment, number, SLOW, scenario=road, workload=f"page:kosek:{version}",
              client="chromium", testbed="emu", rs_s=1.2, fcp_s=one / 2, plt_s=one,
              requests_at_once=20 + number if version == "h3" else 6,
              trial=f"{version}{loss}{treatment}{number}{scenario}")
        for number, one in enumerate(plt_s, 1)
    ]  # fmt: skip


def browser_runs(failed: int = 0) -> list[Path]:
    h3 = loads("h3", "0%", "direct", 7.99, 8.0, 8.01) + loads("h3", "0%", H3_PROXIES, 7.9, 8.0, 8.1)
    h3 += loads("h3", "1%", "direct", 15.8, 16.0, 16.2) + loads("h3", "1%", H3_PROXIES, 8.9, 9.0, 9.1)
    h1 = loads("h1", "0%", "direct", 10.0, 10.1, 10.2) + loads("h1", "0%", H1_PROXIES, 5.0, 5.1, 5.2)
    for place in range(failed):
        h1[place] = fake_run.change(h1[place], outcome="transfer_timeout", plt_s=None)
    names = ("kosek-browsers-h3", "kosek-browsers-h1")
    return [campaign(write(name, records, testbed="emu"), name)
            for name, records in zip(names, (h3, h1), strict=True)]  # fmt: skip


def browsers_page(bentpipe: Command, *runs: Path) -> str:
    page(bentpipe, *runs)
    return Path("out/kosek-browsers.md").read_text()


def test_pages_in_a_browser_stand_beside_the_papers_table(bentpipe: Command) -> None:
    text = browsers_page(bentpipe, first_run(), *browser_runs())
    plt = text.partition("| Page load time |")[2]
    assert row(plt, "GEO, HTTP/3") == [
        "8.00 / 7.67",
        "- / 7.67",
        "- / 7.74",
        "16.00 (15.80 to 16.20) / 16.86",
    ]
    assert row(plt, "GEO, HTTP/1.1, proxies")[0] == "5.10 (5.00 to 5.20) / 11.14"
    assert row(text.partition("| Response start |")[2], "LEO, HTTP/1.1")[0] == "- / 0.29"
    # Of the paper 7.344 / 7.669 and 9.409 / 16.865, and 11.144 / 10.806.
    assert row(text, "HTTP/3, GEO, 0 % of loss")[:1] == ["0.96"]
    said = row(text, "HTTP/3, GEO, 1 % of loss")
    assert said[0] == "0.56" and said[1].startswith("0.56 (") and said[2] == "agrees"
    assert row(text, "HTTP/1.1, GEO, 0 % of loss")[::2] == ["1.03", "contradicts"]
    words = " ".join(text.split())
    assert "over HTTP/3 it had at most 21 to 23 requests at once" in words
    assert "3 trials of each setting where the source has 100" in words
    whole = Path("out/kosek.md").read_text()
    assert "## In real time" not in whole, "that is of durations"
    assert row(whole, "geo-tum, 0 %: QUIC")[0] == "3"


def test_the_page_on_browsers_begins_with_what_proxies_change(bentpipe: Command) -> None:
    runs = browser_runs()
    assert (done := study(bentpipe, *runs)).code == 0, done.err
    assert not Path("out/kosek.md").exists(), "of these runs alone there is one page"
    text = Path("out/kosek-browsers.md").read_text()
    title, _, below = text.partition("\n")
    here = [row(text, f"HTTP/3, GEO, {loss} of loss")[1] for loss in ("0 %", "1 %")]
    # The interval over GEO without losses holds 1, so nothing follows from it.
    assert title == "# What proxies change of HTTP/3 in Chromium over GEO cannot be told at 0 % of loss"
    words = " ".join(below.split())
    times = f"{here[0]} times as long at 0 % and {here[1]} times as long at 1 % of loss"
    assert f"Over HTTP/3 a page takes behind proxies over GEO {times}." in words
    assert "Of 3 ratios of the paper's table, 1 agrees" in words
    assert "- Proxies shorten the page load time of HTTP/3 over GEO at 1 % of loss; HTTP/1.1 over" in words
    assert "Leave proxies out" not in words
    assert "over GEO after 2.72 s there and 1.20 s here (without them 1.31 and 1.20 s). What" in words


def test_the_title_of_browsers_has_what_is_shown() -> None:
    def effect(loss: str, *ends: float) -> ProxyEffect:
        measured = MeasuredValue(ends[0], *ends[1:])
        claim = Claim("", "", Published.ratio(1.0), measured, measured.written())
        return ProxyEffect("geo-tum", "h3", loss, claim)

    shown, untold = effect("0 %", 0.8, 0.75, 0.85), effect("1 %", 1.1, 0.9, 1.3)
    begin = "takes 0.80 (0.75 to 0.85) times as long over GEO"
    both = "0.80 (0.75 to 0.85) times as long, 0.50 (0.40 to 0.60) at 1 %"
    titles = {
        (shown,): f"Behind proxies HTTP/3 in Chromium {begin} at 0 % loss",
        (shown, untold): f"Behind proxies HTTP/3 in Chromium {begin} at 0 % loss",
        (shown, effect("1 %", 0.5, 0.4, 0.6)): f"Chromium over GEO behind proxies: {both}",
    }
    for effects, title in titles.items():
        assert browsers_answer.finding(effects) == title and len(title) <= 98


def test_of_loads_that_failed_there_is_no_verdict(bentpipe: Command) -> None:
    text = browsers_page(bentpipe, first_run(), *browser_runs(failed=1))
    said = row(text, "HTTP/1.1, GEO, 0 % of loss")
    assert said[1:] == ["-", "cannot tell; 1 trial failed"]
    assert "1 failed / 10.81" in text


def test_both_studies_have_the_same_table_two() -> None:
    here = {
        (one.scenario, one.http, one.proxies): (one.rs, one.fcp, one.plt) for one in published.load().pages
    }
    table = pages_published.load()
    there = {(one.scenario, one.http, one.proxies): (one.rs, one.fcp, one.plt) for one in table.table}
    assert here == there and len(here) == 8 and published.load().page_losses == table.losses
