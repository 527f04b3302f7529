"""Middleboxes: how they are found and described, and that one of the user's own takes part in trials."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import NOQ_RUN, Command, installed_or_skip
from test_aqm import marks_in
from test_emu import trusted

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.execution.bundler import Bundler
from bentpipe.plan import treatments
from bentpipe.stacks import distribution, middleboxes

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
        ("seconds = 5", "seconds = 2"),
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
    assert kind.default == "gateway" and kind.lead({"mode": "warm"}) == 2 and kind.lead({"iw": "9"}) == 0
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
        (
            'title = "QUIC',
            'version = ["--version"]\ntitle = "QUIC',
            "version: is for middleboxes at the client",
        ),
        ('title = "QUIC', 'titel = "QUIC', 'unknown key "titel"'),
        ('title = "QUIC', 'mtu = 1400\ntitle = "QUIC', "mtu: is for middleboxes that encapsulate"),
        ("[commands]", "[commands]\nmoon = []", 'unknown key "commands.moon"'),
        ("seconds = 2", "seconds = -1", "lead.seconds: -1 is not valid"),
        ("seconds = 2", "seconds = 0.5", "lead.seconds"),
    ],
)
def test_what_is_wrong_with_a_kind_is_said(mine: Path, old: str, new: str, message: str) -> None:
    text = (mine / "middlebox.toml").read_text()
    assert old in text
    (mine / "middlebox.toml").write_text(text.replace(old, new))
    with pytest.raises(UsageError) as caught:
        middleboxes.discover()
    assert message in str(caught.value) and caught.value.hint


TUNNEL = """
name = "mine"
title = "A tunnel"
ends = "nothing"
relays = "encapsulating"
places = ["client", "server"]
version = ["--version"]
[kinds]
mine = { port = 99, transport = "udp" }
[commands]
sockets = ["{python}", "{bin}/tunnel.py"]
[build]
needs = []
command = ["cp", "tunnel.py", "{bin}/tunnel.py"]
"""


def test_a_tunnel_ends_where_it_can(mine: Path) -> None:
    (mine / "middlebox.toml").write_text(TUNNEL)
    assert middleboxes.tunnels()["mine"].programs() == ["tunnel.py"]
    with pytest.raises(UsageError, match='a tunnel cannot end at "gateway"') as caught:
        treatments.named(["vpn=gateway:kind=mine"], "--treatment")
    assert "server" in caught.value.hint
    assert treatments.named(["vpn=server:kind=mine"], "--treatment") == ("vpn=server:kind=mine",)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = ["--version"]\n', "", "places: one that attaches at the client"),
        ("version =", 'together = ["x"]\nversion =', "together: is for middleboxes in a chain"),
        ("mine = {", "wireguard = {", "kinds: mine has wireguard, too"),
        ("[kinds]", '[options]\nport = "any"\n[kinds]', "options: port: a tunnel is told no options but mtu"),
        ("version =", "deterministic = true\nversion =", "deterministic: is for middleboxes in a chain"),
    ],
)
def test_what_is_wrong_with_a_tunnel_is_said(mine: Path, old: str, new: str, message: str) -> None:
    (mine / "middlebox.toml").write_text(TUNNEL.replace(old, new))
    with pytest.raises(UsageError) as caught:
        middleboxes.discover()
    assert message in str(caught.value) and caught.value.hint


def test_a_program_that_answers_nothing_to_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "_ANSWERS_WITHIN_S", 0.2)
    with pytest.raises(BentpipeError, match=r"sleep did not print its version within 0\.2 s"):
        distribution.version_of(["sleep", "60"])
    assert distribution.version_of(["cat"]) == "", "it reads nothing of the caller's"


def test_a_tunnel_leads_through_no_middlebox_that_encapsulates(echo_tunnel: None) -> None:
    with pytest.raises(UsageError, match="leads through echo-tunnel, which encapsulates, too"):
        treatments.named(["vpn=server+echo-tunnel"], "--treatment")


def test_what_one_puts_in_another_takes_out(echo_tunnel: None) -> None:
    with pytest.raises(UsageError, match="nothing takes out what the terminal puts in") as caught:
        treatments.named(["echo-tunnel=terminal"], "--treatment")
    assert caught.value.hint == "write echo-tunnel=terminal,gateway"


ECHO = Path(__file__).parent / "echo_tunnel" / "middlebox.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('places = ["terminal", "gateway"]', 'places = ["gateway"]', "places: "),
        ('ends = "nothing"', 'mtu = 60\nends = "nothing"', "mtu: 60 is not valid"),
    ],
)
def test_what_is_wrong_with_one_that_encapsulates_is_said(
    mine: Path, old: str, new: str, message: str
) -> None:
    text = ECHO.read_text()
    assert old in text
    (mine / "middlebox.toml").write_text(text.replace(old, new))
    with pytest.raises(UsageError) as caught:
        middleboxes.discover()
    assert message in str(caught.value) and caught.value.hint


def test_the_old_name_of_the_variable_is_not_ignored(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENTPIPE_PROXIES", str(mine))
    with pytest.raises(UsageError, match="BENTPIPE_PROXIES is not read any more") as caught:
        middleboxes.discover()
    assert "BENTPIPE_MIDDLEBOXES" in caught.value.hint


def test_stacks_show_knows_middleboxes(bentpipe: Command) -> None:
    shown = bentpipe("stacks", "show", "quic-pep").out
    assert "relays      split" in shown and "buffer " in shown, shown
    assert "repeats     yes" in shown
    assert json.loads(bentpipe("stacks", "show", "wireguard", "--json").out)["kinds"] == ["wireguard"]


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
    stacks = () if "--client" in words else ("--client", "quinn", "--server", "quinn")
    scenario = () if "--scenario" in words else ("--scenario", "geo-tum")
    done = bentpipe(
        "run", *scenario, *stacks, "--bytes", "1MB", "--treatment", "direct,echo-tunnel",
        "--iterations", "1", "--trace", "all", "--out", "A", "--no-report", "--json", *words,
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
    explained = [bentpipe("trace", f"A/trials/{one['trial']}", "--explain").out for one in (direct, through)]
    unknown = "the rate of the forward link is not known"
    assert [unknown in one for one in explained] == [False, False]


def test_a_tunnel_of_the_users_own_needs_no_change_elsewhere(bentpipe: Command, echo_tunnel: None) -> None:
    installed_or_skip("quinn")
    direct, through = of_the_tunnel(bentpipe)
    shows_what_is_inside(bentpipe, direct, through)
    cable_s = 2 * 0.1e-3  # from the client to the terminal, each way
    assert through["handshake_s"] == pytest.approx(direct["handshake_s"] + cable_s, abs=1e-4)
    assert through["rtt_min_ms"] == pytest.approx(direct["rtt_min_ms"] + 1e3 * cable_s, abs=0.1)


def test_marks_of_the_satellite_are_in_the_trace(bentpipe: Command, echo_tunnel: None) -> None:
    """Of what is encapsulated there the middlebox hands them on, and the client echoes them."""
    installed_or_skip("quinn")
    queue = 'forward.queue={ size = "1 BDP", aqm = "step", mark_above = "1 ms" }'
    _, through = of_the_tunnel(bentpipe, "--scenario", "goodput", "--set", queue)
    assert through["forward_marked"] > 10
    trial = f"A/trials/{through['trial']}"
    (connection,) = json.loads(bentpipe("trace", trial, "--json").out)["connections"]
    assert connection["metrics"]["forward"]["ecn"]["ce_arrived"] == through["forward_marked"]
    if shutil.which("tshark"):
        assert marks_in(Path(trial) / "trace.pcapng") == through["forward_marked"]


@pytest.mark.emulated
def test_a_tunnel_of_the_users_own_goes_through_in_real_time(
    bentpipe: Command, echo_tunnel: None, namespaces: None
) -> None:
    installed_or_skip("quinn")
    direct, through = of_the_tunnel(bentpipe, "--testbed", "emu")
    trusted([direct, through])
    shows_what_is_inside(bentpipe, direct, through)


def test_what_is_inside_has_the_mtu_of_what_encapsulates_it(bentpipe: Command, mine: Path) -> None:
    """No stack is accused of small packets that are as large as a tunnel takes."""
    installed_or_skip("quinn")
    text = ECHO.read_text().replace("{folder}", str(ECHO.parent))
    text = text.replace('ends = "nothing"', 'ends = "nothing"\nmtu = 1250')
    (mine / "middlebox.toml").write_text(text)
    (mine / "echo_tunnel.py").symlink_to(ECHO.parent / "echo_tunnel.py")
    direct, through = of_the_tunnel(bentpipe, "--client", "quinn:mtu=1200", "--server", "quinn:mtu=1200")
    assert [one["mtu_bytes"] for one in through["proxies"]] == [1250, 1250]
    small = "packet_size_below_path"
    assert [small in one["findings"] for one in (direct, through)] == [True, False]
    for one in (direct, through):
        (traced,) = json.loads(bentpipe("trace", f"A/trials/{one['trial']}", "--json").out)["connections"]
        found = {finding["rule"]: finding["verdict"] for finding in traced["findings"]}
        assert (found[small] == "yes") == (small in one["findings"])


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_trial_repeats_if_its_middleboxes_do(mine: Path, deterministic: bool) -> None:
    file = mine / "middlebox.toml"
    text = file.read_text()
    assert "deterministic = true" in text
    file.write_text(text.replace("true", str(deterministic).lower(), 1))
    chosen = treatments.parse("mine gateway", "the test")
    plan = SimpleNamespace(parsed_workloads=["file"], parsed_treatments=[chosen], testbed="sim")
    variants = SimpleNamespace(flows=lambda *_: [], stacks={})
    bundler = Bundler(cast(Any, SimpleNamespace(plan=plan)), cast(Any, variants), 30)
    trial = SimpleNamespace(workload="file", treatment=str(chosen), client="", server="")
    assert bundler.repeats(cast(Any, trial)) == deterministic


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
