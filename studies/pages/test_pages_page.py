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


VPN, TCP_PROXIES = "vpn server:kind=wireguard", "tcp-pep terminal:config=D,gateway:config=D"
# Seconds over the GEO links: by version of HTTP, without WireGuard and through it.
VPN_TIMES = {"h1": (9.0, 11.0), "h2": (5.0, 8.0), "h3": (5.5, 5.555)}


def vpn_trials(link: str, times: dict[str, tuple[float, float]], spread: float) -> list[Record]:
    """Three of each setting, whose times differ by that part."""
    return [
        trial(link, http, plt_s * (1 + spread * number), treatment, iteration=number)
        for http, both in times.items()
        for treatment, plt_s in zip(("direct" if http == "h3" else TCP_PROXIES, VPN), both, strict=True)
        for number in (1, 2, 3)
    ]


def vpn_runs(times: dict[str, tuple[float, float]] = VPN_TIMES, spread: float = 1e-4) -> list[Path]:
    """Both runs: over two GEO links, and over starlink, where trials of a version differ by half."""
    links = [(link, spread) for link in ("astra", "bigblu")] + [("starlink", 0.5)]
    over = [one for link, own in links for one in vpn_trials(link, times, own)]
    tcp, quic = ([one for one in over if ("h3" in one.workload) == is_quic] for is_quic in (False, True))
    return [write("pages-operators-vpn-tcp", tcp), write("pages-operators-vpn-quic", quic)]


def vpn_page(bentpipe: Command, *runs: Path) -> str:
    """The page with a VPN, of these runs alone."""
    done = bentpipe("study", "pages", *fake_run.named(runs), "-o", "vpn")
    assert done.code == 0, done.err
    assert {one.name for one in Path("vpn").iterdir()} == {"pages-vpn.md", "pages-vpn.svg"}
    return Path("vpn/pages-vpn.md").read_text()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_the_page_with_a_vpn_is_of_its_two_runs_alone(bentpipe: Command) -> None:
    text = vpn_page(bentpipe, *vpn_runs())
    assert text.splitlines()[0] == (
        "# Over GEO HTTP/2 takes 1.600 (1.600 to 1.600) times as long by VPN as by proxies; HTTP/3 is equal"
    )
    said = " ".join(text.split())
    assert (
        "Through WireGuard, over 2 GEO links, HTTP/1.1 takes 1.222 (1.222 to 1.222) and HTTP/2 "
        "1.600 (1.600 to 1.600) times as long as behind proxies; HTTP/3 takes as long as direct, within 2 %"
        in said
    )
    assert "it cannot be told whether a page takes longer, by ratios of 1.22 (" in said, "over starlink"
    assert "use HTTP/3 through WireGuard or direct, as you like: the page takes equally long" in said
    assert "here HTTP/2 takes less time than HTTP/3 over 2 of 3 links without" in said
    assert "more time than HTTP/3 over 2 of 3 links through WireGuard (over 1 it cannot be told)" in said
    assert "| ratio of page load times | the slides' words | here | verdict |" in text
    assert "| astra | 9.00 | 11.00 | 5.00 | 8.00 | 5.50 | 5.56 |" in text


@pytest.mark.usefixtures("folder")
def test_the_slides_order_agrees_is_contradicted_or_cannot_be_told(bentpipe: Command) -> None:
    said = " ".join(vpn_page(bentpipe, *vpn_runs()).split())
    assert "Without WireGuard the order agrees over astra and bigblu; cannot be told over starlink." in said
    assert "Through WireGuard the order agrees over astra and bigblu; cannot be told over starlink." in said
    assert "| HTTP/2, GEO links | 5.00 | good | 8.00 | poor |" in said
    assert "HTTP/2 / HTTP/1.1 through WireGuard, astra | poor / poor | 0.73 | not judged |" in said
    turned = VPN_TIMES | {"h2": (5.0, 5.25)}  # HTTP/2 through WireGuard before HTTP/3
    said = " ".join(vpn_page(bentpipe, *vpn_runs(turned)).split())
    assert "Through WireGuard the order is contradicted over astra and bigblu; cannot be told over" in said
    advice = said.partition("- Through WireGuard prefer ")[2].partition(" ## ")[0]
    assert "HTTP/2 to HTTP/3" in advice and "HTTP/3 to HTTP/2" not in advice


@pytest.mark.usefixtures("folder")
def test_through_a_vpn_nothing_is_shown_by_an_interval_that_holds_no_effect_too(bentpipe: Command) -> None:
    text = vpn_page(bentpipe, *vpn_runs(spread=0.2))
    assert text.startswith(
        "# Over GEO HTTP/2 takes 1.60 (1.15 to 2.22) times as long through WireGuard as behind"
    )
    assert "HTTP/3" not in text.splitlines()[0]
    said = " ".join(text.split())
    assert (
        "it cannot be told whether a page takes longer, by ratios of 1.22 (0.88 to 1.69) for HTTP/1.1" in said
    )
    assert "as you like" not in said
    text = vpn_page(bentpipe, *vpn_runs(spread=0.5))
    assert text.startswith(
        "# Over GEO it cannot be told whether WireGuard changes the time of pages with HTTP/2 and"
    )
    assert "times as long as" not in text


@pytest.mark.usefixtures("folder")
def test_the_title_counts_less_than_2_percent_as_equal_over_every_geo_link(bentpipe: Command) -> None:
    def title(h2: tuple[float, float], h3: tuple[float, float]) -> str:
        return vpn_page(bentpipe, *vpn_runs(VPN_TIMES | {"h2": h2, "h3": h3})).splitlines()[0]

    equal = "# Over GEO HTTP/2 takes as long through WireGuard as behind proxies"
    short = equal.replace("through WireGuard", "by VPN")
    assert title((5.0, 5.05), (5.5, 5.555)) == f"{equal}; HTTP/3 is equal"
    assert title((5.0, 5.05), (5.5, 6.6)) == f"{short}, HTTP/3 1.200 (1.200 to 1.200) times direct"
    assert title((5.0, 5.05), (5.5, 5.61)) == equal, "1.02 is on both sides of no effect"
    only = "# Over GEO HTTP/3 takes as long through WireGuard as direct"
    assert title((5.0, 5.1), (5.5, 5.5)) == only
    over = [*vpn_trials("astra", {"h2": (5.0, 5.0)}, 1e-4), *vpn_trials("bigblu", {"h2": (5.0, 8.0)}, 1e-4)]
    quic = vpn_runs()[1]
    text = vpn_page(bentpipe, write("pages-operators-vpn-tcp", over), quic)
    assert text.startswith(only), "of HTTP/2 the links do not show the same"


@pytest.mark.usefixtures("folder")
def test_of_trials_that_failed_through_a_vpn_there_is_no_ratio(bentpipe: Command) -> None:
    tcp, quic = vpn_runs()
    failed = trial("astra", "h3", None, VPN, iteration=4)
    quic = write(quic.name, [*vpn_trials("astra", {"h3": VPN_TIMES["h3"]}, 1e-4), failed])
    text = vpn_page(bentpipe, tcp, quic)
    assert "| astra | 1.222 (1.222 to 1.222) | 1.600 (1.600 to 1.600) | - |" in text
    assert "there is no ratio of HTTP/3, of which trials failed" in " ".join(text.split())
    assert "| HTTP/3, GEO links | 5.50 | mediocre | 5.56, 1 failed | mediocre |" in text


def test_runs_with_a_vpn_change_nothing_on_the_page_of_the_others(
    bentpipe: Command, table: list[Path]
) -> None:
    virtual = write("pages-operators-quic", [trial("astra", "h3", 5.5)])
    alone = page(bentpipe, *table, virtual)
    assert "[Another page](pages-vpn.md) has the same through WireGuard" in " ".join(alone.split())
    done = bentpipe("study", "pages", *fake_run.named([*table, virtual, *vpn_runs()]), "-o", "both")
    names = [Path(one).name for one in done.out.split()]
    assert names == ["pages.md", "pages-claims.svg", "pages-vpn.md", "pages-vpn.svg"]
    both = Path("both/pages.md").read_text()
    end = "bentpipe study pages --run"  # names all runs that it was given
    assert both.partition(end)[0] == alone.partition(end)[0]
    one = vpn_runs()[0]
    assert page(bentpipe, *table, virtual, one).partition(end)[0] == alone.partition(end)[0]


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
        (
            [vpn_runs()[0]] * 2,
            "or of the page with a VPN, pages-operators-vpn-tcp and pages-operators-vpn-quic",
        ),
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


@pytest.mark.usefixtures("folder")
def test_times_through_a_vpn_lead_to_their_trials() -> None:
    found = study_marks.leading("pages", fake_run.named(vpn_runs()))
    key = trial("astra", "h2", 8.0, VPN).cell_key
    assert found["8.00"][0] == RunCell(Path("pages-operators-vpn-tcp"), key)


def test_times_lead_to_their_trials(table: list[Path]) -> None:
    found = study_marks.leading("pages", fake_run.named(table))
    (text,) = (one for one in found if one.startswith("4.00 / "))
    key = trial(lossy("geo-tum", "0%"), "h3", 4.0, QUIC_CHAIN).cell_key
    assert found[text] == [RunCell(Path("pages-h3"), key)]
