"""Middleboxes: how they are found and described, and that one of the user's own takes part in trials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import NOQ_RUN, Command, installed_or_skip
from test_emu import trusted

from bentpipe.errors import UsageError
from bentpipe.plan import treatments
from bentpipe.stacks import middleboxes

OWN = Path(__file__).resolve().parents[2] / "middleboxes" / "quic-pep"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project's own proxy under another name, which can only stand at the gateway."""
    folder = tmp_path / "kinds" / "mine"
    folder.mkdir(parents=True)
    text = (OWN / "middlebox.toml").read_text()
    for old, new in (
        ('name = "quic-pep"', 'name = "mine"'),
        ('places = ["terminal", "gateway"]', 'places = ["gateway"]'),
        ("seconds = 5", "seconds = 0.5"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "middlebox.toml").write_text(text)
    monkeypatch.setenv("BENTPIPE_MIDDLEBOXES", str(folder.parent))
    middleboxes.discover.cache_clear()
    yield folder
    monkeypatch.undo()
    middleboxes.discover.cache_clear()


def test_a_kind_of_the_users_own_takes_part(bentpipe: Command, mine: Path) -> None:
    installed_or_skip("noq")
    done = bentpipe(
        *NOQ_RUN, "--treatment", "direct,mine", "--treatment", "mine=gateway:iw=99", "--json", "--no-report"
    )
    assert [record["treatment"] for record in done.records()] == [
        "direct",
        "mine gateway",
        "mine gateway:iw=99",
    ]
    assert {record["outcome"] for record in done.records()} == {"ok"}, done.err
    assert [len(record["proxies"]) for record in done.records()] == [0, 1, 1]


def test_a_run_is_not_resumed_without_its_kind(
    bentpipe: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trials would be left out, and their records lost."""
    installed_or_skip("noq")
    assert bentpipe(*NOQ_RUN, "--treatment", "direct,mine", "--out", "A").code == 0
    before = Path("A/records.jsonl").read_text()
    monkeypatch.delenv("BENTPIPE_MIDDLEBOXES")
    middleboxes.discover.cache_clear()
    done = bentpipe("run", "--resume", "A", "--retry-failed")
    assert done.code == 2 and "there is no middlebox mine here" in done.err
    assert "BENTPIPE_MIDDLEBOXES" in done.err and Path("A/records.jsonl").read_text() == before


def test_a_run_keeps_the_chain_that_was_meant(bentpipe: Command, mine: Path) -> None:
    """Where a kind can stand may change; a run that began goes on as it was."""
    installed_or_skip("noq")
    assert bentpipe(*NOQ_RUN, "--treatment", "direct,mine", "--out", "A", "--no-report").code == 0
    file = mine / "middlebox.toml"
    file.write_text(file.read_text().replace('places = ["gateway"]', 'places = ["terminal", "gateway"]'))
    middleboxes.discover.cache_clear()
    done = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert done.code == 0 and "0 trials to run" in done.err, done.err
    assert [record["treatment"] for record in done.records()] == ["direct", "mine gateway"]


def test_what_a_kind_says_of_itself_counts(mine: Path) -> None:
    kind = middleboxes.discover()["mine"]
    assert kind.default == "gateway" and kind.lead({"mode": "warm"}) == 0.5 and kind.lead({"iw": "9"}) == 0
    assert treatments.labels(["direct", "mine", "quic-pep"], []) == [
        "direct",
        "mine gateway",
        "quic-pep terminal,gateway",
    ]
    with pytest.raises(UsageError, match='unknown place "terminal"'):
        treatments.named(["mine=terminal"], "--treatment")
    with pytest.raises(UsageError, match='unknown treatment "main"') as caught:
        treatments.named(["main"], "--treatment")
    assert 'did you mean "mine"?' in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "direct"', "name: 'direct' is not valid"),
        ('ends = "quic"', 'ends = "smoke"', 'ends: "smoke" is not valid'),
        ('relays = "split"', 'relays = "encapsulating"', "relays: "),
        ('places = ["gateway"]', 'places = ["client", "gateway"]', "places: one that attaches at the client"),
        ('places = ["gateway"]', 'places = ["gateway", "terminal"]', "places: "),
        ('title = "QUIC', 'titel = "QUIC', 'unknown key "titel"'),
        ("[commands]", "[commands]\nmoon = []", 'unknown key "commands.moon"'),
        ("seconds = 0.5", "seconds = -1", "lead.seconds: -1 is not valid"),
    ],
)
def test_what_is_wrong_with_a_kind_is_said(mine: Path, old: str, new: str, message: str) -> None:
    text = (mine / "middlebox.toml").read_text()
    assert old in text
    (mine / "middlebox.toml").write_text(text.replace(old, new))
    with pytest.raises(UsageError) as caught:
        middleboxes.discover()
    assert message in str(caught.value) and caught.value.hint


@pytest.fixture
def echo_tunnel(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A middlebox that ends nothing, of a folder of its own and no more."""
    monkeypatch.setenv("BENTPIPE_MIDDLEBOXES", str(Path(__file__).parent / "echo_tunnel"))
    middleboxes.discover.cache_clear()
    yield
    monkeypatch.undo()
    middleboxes.discover.cache_clear()


def of_the_tunnel(bentpipe: Command, *words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record of a trial without it, and of one through it, over the satellite with a trace."""
    done = bentpipe(
        "run", "--scenario", "geo-tum", "--client", "quinn", "--server", "quinn", "--bytes", "1MB",
        "--treatment", "direct,echo-tunnel", "--iterations", "1", "--trace", "all", "--out", "A",
        "--no-report", "--json", *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    direct, through = done.records()
    assert [one["outcome"] for one in (direct, through)] == ["ok", "ok"], through["detail"]
    return direct, through


def shows_what_is_inside(bentpipe: Command, direct: dict[str, Any], through: dict[str, Any]) -> None:
    """One connection, seen at both ends, while the satellite carries eight bytes more in each packet."""
    assert (through["connections"], through["measured_from"]) == (1, "wire")
    assert through["largest_packet_bytes"] == direct["largest_packet_bytes"]
    assert [one["name"] for one in through["proxies"]] == ["terminal", "gateway"]
    access, satellite, ground = through["hops"]
    assert [one["connections"] for one in (access, satellite, ground)] == [None] * 3
    assert access["return_packets"] > 0
    mean = [one["forward_bytes"] / one["forward_packets"] for one in (ground, satellite)]
    assert mean[1] == pytest.approx(mean[0] + 8, abs=3)
    traced = json.loads(bentpipe("trace", f"A/trials/{through['trial']}", "--json").out)
    assert [one["vantage"] for one in traced["connections"]] == ["both"]


def test_a_tunnel_of_the_users_own_needs_no_change_elsewhere(bentpipe: Command, echo_tunnel: None) -> None:
    installed_or_skip("quinn")
    direct, through = of_the_tunnel(bentpipe)
    shows_what_is_inside(bentpipe, direct, through)
    cable_s = 2 * 0.1e-3  # from the client to the terminal, each way
    assert through["handshake_s"] == pytest.approx(direct["handshake_s"] + cable_s, abs=1e-4)
    assert through["rtt_min_ms"] == pytest.approx(direct["rtt_min_ms"] + 1e3 * cable_s, abs=0.1)


@pytest.mark.emulated
def test_a_tunnel_of_the_users_own_goes_through_in_real_time(
    bentpipe: Command, echo_tunnel: None, namespaces: None
) -> None:
    installed_or_skip("quinn")
    direct, through = of_the_tunnel(bentpipe, "--testbed", "emu")
    trusted([direct, through])
    shows_what_is_inside(bentpipe, direct, through)


def test_what_carries_udp_alone_is_not_for_tcp(bentpipe: Command, echo_tunnel: None) -> None:
    installed_or_skip("linux")
    words = ("--client", "linux", "--server", "linux", "--treatment", "echo-tunnel")
    done = bentpipe("run", "--scenario", "sat", *words, "--iterations", "1", "--bytes", "1kB")
    assert "echo-tunnel with http/0.9 (TCP)" in done.out + done.err


def test_a_folder_without_any_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENTPIPE_MIDDLEBOXES", str(tmp_path))
    middleboxes.discover.cache_clear()
    with pytest.raises(UsageError, match=r"no middlebox\.toml"):
        middleboxes.discover()
    monkeypatch.undo()
    middleboxes.discover.cache_clear()
