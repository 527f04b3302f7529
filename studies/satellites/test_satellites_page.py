"""`bentpipe study satellites`: the page on satellite links, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

RAIN, CCM = "dvb-s2-rain", "dvb-s2-rain,forward.rate.modcod=QPSK3/4"
OPENSAND = "geo-tum-opensand"
PLAIN = "geo-tum,forward.rate=19.1Mbit/s,return.rate=9.7Mbit/s"
FRAMES = f"{PLAIN},forward.frame=10ms,return.frame=26.5ms"
SLOWER = "geo-tum-opensand,return.rate.cra=256kbit/s"
DIMMED = "geo-tum-opensand,forward.rate.attenuation="
FADE = '{steps=[["0s","0dB"],["3s","25dB"],["6s","0dB"]]}'


def trial(scenario: str, server: str, seconds: float, iteration: int = 1, **values: Any) -> Record:
    made = fake_run.record("sat", "noq", server, iteration)
    said = {"outcome": "ok", "detail": "", "completion_s": seconds, "share_of_limit": 2 / seconds}
    return fake_run.change(made, scenario=scenario, iteration=iteration, **(said | values))


def stacks() -> list[str]:
    proxied: dict[str, Any] = {"treatment": "quic-pep terminal,gateway"}
    return fake_run.write_campaign(
        "satellites",
        [
            *(trial(RAIN, "noq", one, place) for place, one in enumerate((4.0, 5.0, 8.0))),
            *(trial(RAIN, "noq", one, place, **proxied) for place, one in enumerate((1.9, 2.0, 2.1))),
            trial(RAIN, "quinn", 10.0),
            trial(RAIN, "quinn", 99.0, 2, outcome="transfer_timeout", detail="late", completion_s=None),
            trial(RAIN, "quinn", 2.0, **proxied),
        ],
    )


def page(bentpipe: Command, *more: str) -> str:
    return " ".join(bentpipe.page("satellites", *stacks(), *more).split())


def front(text: str) -> str:
    return text.partition("## What was run")[0]


def test_stacks_stand_with_and_without_proxies(bentpipe: Command) -> None:
    text = page(bentpipe)
    assert "| noq | 5.00 (4.00 to 8.00) | 40 % | 2.00 (1.90 to 2.10) | 100 % |" in text
    assert "| quinn | 10.00; 1 of 2 failed | 20 % | 2.00 | 100 % |" in text
    # quinn has a trial that failed: it is not ranked, nor compared with proxies.
    title = (
        "# Over dvb-s2-rain the fastest of 2 servers reaches 37 % (15 to 89) of the ideal; trials of 1 failed"
    )
    assert text.startswith(f"{title} ")
    assert "reaches 37 % (15 to 89) over dvb-s2-rain (noq; 1 server with failed trials left out)" in text
    assert (
        "Through proxies QUIC takes, by more than 5 %, less time than without for 1 of 1 server over" in text
    )
    assert "| 2.00 s (1.87 to 2.13); 0 faster, 1 slower of 1 | - |" in text
    assert "What is switched off" not in text and "Handshakes" not in text


def test_title_picture_and_advice_are_of_the_run(bentpipe: Command) -> None:
    """A server leads where its whole interval is beyond all others, by more than 2 %."""
    easy, names = "starlink", (("noq", 2.5), ("quinn", 10.0), ("quiche", 20.0))
    records = [
        *(trial(RAIN, one, at, n) for one, at in names for n in (1, 2)),
        *(trial(easy, one, 2.02, n) for one, _ in names[1:] for n in (1, 2)),
        *(trial(easy, "noq", 2.0, n) for n in (1, 2)),
        trial("viasat-dama", "noq", 9.0, outcome="transfer_timeout", completion_s=None),
    ]
    text = " ".join(bentpipe.page("satellites", *fake_run.write_campaign("satellites", records)).split())
    begin = front(text)
    assert begin.startswith(
        "# Over dvb-s2-rain the fastest of 3 servers reaches 80 % of the ideal, over starlink 100 % "
    )
    assert "80 % over dvb-s2-rain (noq) and 100 % over starlink (noq), the one in the middle 20 %" in begin
    assert "; over viasat-dama trials of every server failed." in begin
    assert "faster than all others: noq over dvb-s2-rain." in begin
    assert "![Share of an ideal sender's speed over each link, with intervals](satellites.svg)" in begin
    assert Path("out/satellites.svg").is_file() and "proxies QUIC takes" not in begin


def test_only_what_chance_could_not_have_made_is_bold(bentpipe: Command) -> None:
    records = [
        *(trial(RAIN, "noq", one, place) for place, one in enumerate((4.0, 4.1, 4.2))),
        *(trial(CCM, "noq", one, place) for place, one in enumerate((8.0, 8.1, 8.2))),
        *(trial(RAIN, "quinn", one, place) for place, one in enumerate((4.0, 8.0, 16.0))),
        *(trial(CCM, "quinn", one, place) for place, one in enumerate((5.0, 9.0, 17.0))),
    ]
    text = page(bentpipe, *fake_run.write_campaign("satellites-switched", records))
    row = text.split("no ACM: QPSK 3/4 throughout, for the shower |")[1].split("|")
    assert row[0].strip().startswith("8.10 (8.00 to 8.20); **1.98 (1.88 to 2.08) times**")
    assert row[1].strip().startswith("9.00 (5.00 to 17.00); 1.14") and "**" not in row[1]
    assert "Without ACM transfers take up to 1.98 (1.88 to 2.08) times as long (noq, download over" in text
    # Not every server is shown to lose.
    assert "- Avoid this" not in text


def test_what_every_server_gains_or_loses_by_is_advice(bentpipe: Command) -> None:
    records = [
        trial(scenario, server, seconds, n)
        for scenario, times in ((RAIN, (4.0, 6.0)), (CCM, (6.0, 12.0)))
        for server, seconds in zip(("noq", "quinn"), times, strict=True)
        for n in (1, 2)
    ]
    text = page(bentpipe, *fake_run.write_campaign("satellites-switched", records))
    assert (
        "- Avoid this, with which every server takes more time: *no ACM: QPSK 3/4 throughout, for the "
        "shower* (download over dvb-s2-rain, 1.50 to 2.00 times the time)."
    ) in front(text)
    alone = [one for one in records if one.server == "noq"]
    text = page(bentpipe, *fake_run.write_campaign("satellites-switched", alone))
    assert "- Avoid this" not in front(text), "one server says nothing of every one"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((2.01, 2.01), "transfers take equally long within 2 %."),
        ((1.8, 2.6), "no difference of more than 2 % is beyond chance."),
        (
            (1.0, 1.0),
            "transfers take as little as 0.50 times as long (noq, download over starlink; no handovers).",
        ),
    ],
)
def test_equal_is_shown_and_not_assumed(bentpipe: Command, seconds: tuple[float, ...], said: str) -> None:
    without = "starlink,forward.handovers.gap=0ms,forward.handovers.in_flight=forwarded"
    records = [trial("starlink", "noq", 2.0, n) for n in (1, 2)]
    records += [trial(without, "noq", one, n) for n, one in enumerate(seconds, 1)]
    text = page(bentpipe, *fake_run.write_campaign("satellites-switched", records))
    assert f"Without handovers or their losses {said}" in front(text)


def test_a_change_that_fails_has_no_ratio(bentpipe: Command) -> None:
    failed: dict[str, Any] = {"outcome": "transfer_timeout", "detail": "late", "completion_s": None}
    records = [trial(RAIN, "noq", 4.0), trial(RAIN, "noq", 4.0, 2), trial(CCM, "noq", 1.0, **failed)]
    text = page(bentpipe, *fake_run.write_campaign("satellites-switched", records))
    assert "for the shower | -; 1 of 1 failed |" in text
    assert "With QPSK 3/4 throughout, for the shower, 1 of 1 trial fails." in front(text)


def test_the_proxies_are_one_sender_beside_which_every_stack_stands(bentpipe: Command) -> None:
    quic: dict[str, Any] = {"treatment": "quic-pep terminal,gateway"}
    tcp: dict[str, Any] = {"treatment": "tcp-pep terminal,gateway", "transport": "tcp"}
    records = [
        *(trial(RAIN, one, at, n) for one, at in (("noq", 4.0), ("quinn", 8.0), ("quiche", 6.1))
          for n in (1, 2)),
        *(trial(RAIN, one, at, n, **quic) for one, at in (("noq", 5.9), ("quinn", 6.0), ("quiche", 6.2))
          for n in (1, 2)),
        *(trial(RAIN, "linux", 3.0, n, transport="tcp") for n in (1, 2)),
        *(trial(RAIN, "linux", 3.0, n, **tcp) for n in (1, 2)),
        *(trial(RAIN, "msquic", 1.0, n) for n in (1, 2)),  # which has no trial with proxies
    ]  # fmt: skip
    text = " ".join(bentpipe.page("satellites", *fake_run.write_campaign("satellites", records)).split())
    # 6.1 s is within 5 % of the one time, 6.03 s, although 6.2 s was measured with the same server.
    assert "| 6.03 s (5.89 to 6.18); 1 faster, 1 slower of 3 | 3.00 s; 0 faster, 0 slower of 1 |" in text
    assert "less time than without for 1 of 3 servers over dvb-s2-rain and more time than without" in text


def test_handshakes_are_what_carriers_add_at_the_same_rates(bentpipe: Command) -> None:
    records = [
        trial(PLAIN, "noq", 1.2, handshake_s=0.580, ttfb_s=1.160),
        trial(PLAIN, "quinn", 1.2, handshake_s=0.580, ttfb_s=1.160),
        trial("geo-tum", "noq", 1.2, handshake_s=0.582, ttfb_s=1.161),
        trial(OPENSAND, "noq", 1.2, handshake_s=0.581, ttfb_s=1.163),
        trial(OPENSAND, "quinn", 1.2, handshake_s=0.5805, ttfb_s=1.163),
        trial(SLOWER, "noq", 1.2, handshake_s=0.580, ttfb_s=1.160),
        trial(SLOWER, "quinn", 1.2, handshake_s=0.657, ttfb_s=1.240),
        trial(FRAMES, "noq", 1.2, handshake_s=0.610, ttfb_s=1.220),
    ]
    text = page(bentpipe, *fake_run.write_campaign("satellites-handshakes", records))
    assert "| 9.7 Mbit/s, the whole carrier | 1.0 (3.0) | 0.5 (3.0) |" in text
    assert "| no carriers: 19.6 Mbit/s forward, 5.2 back | 2.0 (1.0) | - (-) |" in text
    assert "| no carriers: frames of 10 ms forward, 26.5 ms back | 30.0 (60.0) | - (-) |" in text
    assert "| published | 25 | 25 |" in text
    assert "as these do, add 0.5 to 1.0 ms to a handshake." in text
    assert "a handshake over plain rates takes longer by 30.0 ms over QUIC, where the paper has 25." in text
    # 77 ms are three superframes of 26.5 ms.
    assert "depends on the stack: with 256 kbit/s for 0 to 3." in text


def test_handshakes_at_other_rates_are_not_compared(bentpipe: Command) -> None:
    records = [trial("geo-tum", "noq", 1.2, handshake_s=0.6), trial(OPENSAND, "noq", 1.2, handshake_s=0.5)]
    text = page(bentpipe, *fake_run.write_campaign("satellites-handshakes", records))
    assert "Handshakes over carriers" not in text


def test_attenuation_is_told_by_level(bentpipe: Command) -> None:
    records = [trial(f"{DIMMED}22dB", "noq", 4.0), trial(f"{DIMMED}{FADE}", "noq", 7.5)]
    text = page(bentpipe, *fake_run.write_campaign("satellites-attenuation", records))
    assert "| server | 22 dB | 25 dB from 3 to 6 s |" in text and "| noq | 4.00 | 7.50 |" in text


def test_proxies_alone_make_no_page(bentpipe: Command) -> None:
    run = fake_run.write_campaign("satellites", [trial(RAIN, "noq", 2.0, treatment="quic-pep terminal")])
    done = bentpipe("study", "satellites", *run, "-o", "out")
    assert done.code != 0 and "stacks without proxies" in done.err and "bentpipe run satellites" in done.err


def test_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = study_marks.leading("satellites", stacks())
    key = trial(RAIN, "noq", 4.0).cell_key
    assert found["5.00 (4.00 to 8.00)"] == [RunCell(Path("satellites"), key)]
    failed = key._replace(server="quinn")
    assert found["10.00; 1 of 2 failed"] == [RunCell(Path("satellites"), failed)]
