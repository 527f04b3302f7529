"""`bentpipe study deutschmann`: the page on object sizes, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

PROXIES = "tcp-pep terminal:config=D,gateway:config=D"
SIZES = (1000, 1_000_000, 100_000_000)


def trial(stack: str, size: int, done_s: float, **values: Any) -> Record:
    made = fake_run.record("sat", stack, stack, 1)
    good = {
        "workload": f"transfer:{size}",
        "size_bytes": size,
        "outcome": "ok",
        "detail": "",
        "treatment": "direct",
        "handshake_s": 1.2 if stack == "linux" else 0.6,
        "completion_s": done_s,
    }
    return fake_run.change(made, **(good | values))


def write(name: str, records: list[Record]) -> Path:
    fake_run.write(Path(name))
    with fake_run.changed_manifest(Path(name)) as manifest:
        manifest["options"] |= {"treatments": ["direct", PROXIES.replace(" ", "=", 1)]}
    fake_run.write_records(Path(name), records)
    return Path(name)


def page(bentpipe: Command, *runs: Path) -> str:
    done = bentpipe("study", "deutschmann", *fake_run.named(runs), "-o", "out")
    assert done.code == 0, done.err
    ElementTree.parse("out/deutschmann.svg")
    return Path("out/deutschmann.md").read_text()


def ends() -> Path:
    tcp = [trial("linux", size, done) for size, done in zip(SIZES, (1.8, 5.0, 60.0), strict=True)]
    quic = [trial("noq", size, done) for size, done in zip(SIZES, (1.2, 4.0, 70.0), strict=True)]
    again = [fake_run.change(one, iteration=2, seed="again") for one in tcp + quic]
    return write("ends", tcp + quic + again)


def test_each_sender_has_its_times_and_the_least_is_bold(bentpipe: Command) -> None:
    text = page(bentpipe, ends())
    assert "| TCP | 1.20 | 1.80 | 5.00 | **60.00** |" in text
    assert "| QUIC, noq | 0.60 | **1.20** | **4.00** | 70.00 |" in text
    tcp, quic = "Set-up takes 2 round trips: TCP", "Set-up takes 1 round trip: QUIC, noq"
    assert f"| {tcp} | 2 round trips | 2.00 round trips | agrees |" in text
    assert f"| {quic} | 1 round trip | 1.00 round trips | agrees |" in text
    assert "| sat | 100 MB |" in text.partition("## Sizes at which TCP is as fast")[2]
    assert text.startswith("# 100 MB over sat: TCP 60.0 s and QUIC 70.0 s\n")
    advice = " ".join(text.partition("## What to do with it")[2].partition("\n## ")[0].split())
    less, more = "noq takes less time than TCP for 1 kB and 1 MB.", "noq takes more time than TCP for 100 MB."
    assert advice == f"- Over sat {less} - Over sat {more}"


def test_what_intervals_do_not_show_is_no_advice(bentpipe: Command) -> None:
    records = [
        trial(stack, size, done, iteration=number, seed=f"{stack}{size}{number}")
        for stack in ("linux", "noq")
        for size in SIZES
        for number, done in enumerate((2.0, 3.0, 4.0), start=1)
    ]
    assert "## What to do with it" not in page(bentpipe, write("wide", records))


def test_the_implementations_of_the_slides_have_their_versions(bentpipe: Command) -> None:
    """And every variant of one that is here has a row of its own."""
    plain = [trial("picoquic", size, 2.0) for size in SIZES]
    chosen = [fake_run.change(one, server="picoquic:cc=bbr1", seed="bbr1") for one in plain]
    text = page(bentpipe, ends(), write("slides", plain + chosen))
    for name in ("picoquic", "picoquic:cc=bbr1"):
        assert f"| {name} | a91130d (January 2021) | 1.2.3 | 1.00 round trips | 1 round trip |" in text
    assert "| quicly | 8a1346e (January 2021) | none | - | 1 round trip |" in text


def test_what_stands_between_is_a_row_of_its_own(bentpipe: Command) -> None:
    proxies = [
        trial("linux", size, done, treatment=PROXIES) for size, done in ((SIZES[0], 1.79), (SIZES[2], 40.0))
    ]
    text = page(bentpipe, ends(), write("proxies", proxies))
    assert "| TCP, proxies D | 1.20 | 1.79 | - | **40.00** |" in text and "In real time" not in text


def test_real_time_has_tables_of_its_own(bentpipe: Command) -> None:
    hidden = [trial("linux", SIZES[0], 2.5, treatment="vpn server:kind=openvpn-tcp", testbed="emu")]
    virtual, real = page(bentpipe, ends(), write("hidden", hidden)).split("## In real time")
    assert "| TCP, vpn server:kind=openvpn-tcp | 1.20 | 2.50 |" in real
    assert "openvpn-tcp" not in virtual


def test_what_a_vpn_makes_of_tcp_has_its_interval(bentpipe: Command) -> None:
    times = {"direct": (5.0, 5.2, 5.1), "vpn server:kind=openvpn-tcp": (10.0, 10.4, 10.2)}
    real = [
        trial("linux", SIZES[2], done, iteration=number, seed=f"{way}{number}", treatment=way, testbed="emu")
        for way, seconds in times.items()
        for number, done in enumerate(seconds, start=1)
    ]
    front = " ".join(page(bentpipe, ends(), write("real", real)).partition("\n## ")[0].split())
    assert "its time for 100 MB over sat: through OpenVPN over TCP 2.00 (1.91 to 2.09)." in front


def test_nothing_is_bold_where_trials_vary(bentpipe: Command) -> None:
    other = fake_run.change(trial("linux", SIZES[0], 2.0), iteration=3, seed="other")
    text = page(bentpipe, ends(), write("other", [other]))
    assert "| TCP | 1.20 | 1.80 | 5.00 | 60.00 |" in text and "| QUIC, noq | 0.60 | 1.20 |" in text


def test_failures_are_told(bentpipe: Command) -> None:
    failed = {"outcome": "transfer_timeout", "detail": "600 s passed", "completion_s": None}
    records = [trial("linux", SIZES[0], 1.8), trial("linux", SIZES[1], 0.0, **failed)]
    text = page(bentpipe, write("failed", records))
    assert "| TCP | 1.20 | 1.80 | transfer timeout |" in text and "600 s passed" in text


def test_one_size_makes_no_page(bentpipe: Command) -> None:
    run = write("one", [trial("linux", SIZES[0], 1.8)])
    done = bentpipe("study", "deutschmann", "--run", str(run), "-o", "out")
    assert done.code == 1 and "in several sizes" in done.err and "bentpipe run deutschmann" in done.err


def test_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ends()
    found = study_marks.leading("deutschmann", ["--run", "ends"])
    assert found["**60.00**"] == [RunCell(Path("ends"), trial("linux", SIZES[-1], 60.0).cell_key)]
    assert found["1.20"][0] == RunCell(Path("ends"), trial("linux", SIZES[0], 1.8).cell_key)
