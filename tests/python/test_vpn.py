"""The treatment `vpn`: how it is written, what it asks of the machine, trials through tunnels in real time.

Those are left out where namespaces, TUN devices or programs of tunnels are missing; the reason is printed.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from children import command_line, wait_for, wait_until_gone
from conftest import Command, installed_or_skip
from test_emu import processes_of, trusted

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.labels import treatment as label
from bentpipe.plan import treatments
from bentpipe.stacks import distribution, middleboxes

KINDS = ("wireguard", "openvpn-udp", "openvpn-tcp")
ANY = ["run", "--testbed", "emu", "--scenario", "sat", "--client", "quinn", "--server", "quinn"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("vpn", "vpn server:kind=wireguard"),
        ("vpn=gateway", "vpn gateway:kind=wireguard"),
        ("vpn=server:mtu=1400:kind=openvpn-udp", "vpn server:kind=openvpn-udp:mtu=1400"),
        ("vpn+tcp-pep", "vpn server:kind=wireguard+tcp-pep terminal,gateway"),
        ("vpn=gateway+tcp-pep=terminal:iw=9", "vpn gateway:kind=wireguard+tcp-pep terminal:iw=9"),
    ],
)
def test_a_tunnel_has_one_canonical_form(text: str, canonical: str) -> None:
    named = treatments.named([text], "--treatment")
    assert treatments.labels(named, ()) == [canonical]
    found = treatments.parse(canonical, "manifest")
    assert (str(found), label(canonical).kind) == (canonical, "vpn")
    assert treatments.named([label(canonical).as_option], "report") == named


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("vpn=terminal", 'cannot end at "terminal"', "ends: gateway, server"),
        ("vpn=kind=wireguard", 'cannot end at "kind=wireguard"', "vpn=server:kind="),
        ("vpn=server:kind=wiregard", 'kind: "wiregard"', 'did you mean "wireguard"?'),
        ("vpn=server:mtu=9000", 'mtu: "9000"', "1280 to 1500"),
        ("vpn=server:cc=bbr", 'no option "cc"', "kind and mtu"),
        ("vpn=server:mtu=1400:mtu=1400", "given twice", "once"),
        ("vpn=gateway+tcp-pep", "a middlebox at the gateway", "end at the server"),
        ("vpn+vpn", "a tunnel in a tunnel", "a chain behind"),
        ("vpn+tpc-pep", 'unknown treatment "tpc-pep"', 'did you mean "tcp-pep"?'),
    ],
)
def test_what_is_no_tunnel_is_refused(text: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError, match=r"^--treatment: ") as caught:
        treatments.named([text], "--treatment")
    assert said in str(caught.value) and hint in caught.value.hint


def test_virtual_time_refuses_it_before_anything_runs(bentpipe: Command) -> None:
    installed_or_skip("quinn")
    words = ["--client", "quinn", "--server", "quinn", "--treatment", "vpn", "--out", "A"]
    done = bentpipe("run", "--scenario", "sat", *words)
    assert done.code == 2 and "--treatment: vpn" in done.err and "--testbed emu" in done.err
    assert not Path("A").exists()


def test_what_is_missing_is_said_before_anything_runs(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed_or_skip("quinn")
    wireguard, openvpn = (middleboxes.tunnels()[kind] for kind in ("wireguard", "openvpn-tcp"))
    monkeypatch.setattr(distribution, "_SYSTEM", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = bentpipe(*ANY, "--treatment", "vpn=server:kind=openvpn-tcp", "--out", "A")
    assert done.code == 1 and "no program openvpn" in done.err and "apt install openvpn" in done.err
    assert not Path("A").exists()
    with pytest.raises(BentpipeError) as caught:
        openvpn.command("sockets")
    assert caught.value.hint == openvpn.how_to_install
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path))
    with pytest.raises(BentpipeError) as caught:
        wireguard.anew().command("sockets")
    assert "not been built" in str(caught.value) and "stacks install wireguard" in caught.value.hint
    monkeypatch.setattr(middleboxes, "DEVICE", tmp_path / "tun")
    with pytest.raises(BentpipeError, match="there is no"):
        middleboxes.check_device()


def test_stacks_lists_the_programs_of_tunnels(bentpipe: Command) -> None:
    listed = bentpipe("stacks").out.partition("Middleboxes, for --treatment:")[2]
    assert all(kind in listed for kind in KINDS)
    refused = bentpipe("stacks", "install", "openvpn")
    assert refused.code == 2 and "apt install openvpn" in refused.err


@pytest.fixture
def tunnel_programs(namespaces: None) -> None:
    """Leaves a test out where tunnels cannot be."""
    installed_or_skip("quinn")
    for program in middleboxes.tunnels().values():
        if why := program.not_installed():
            pytest.skip(f"{program.name}: {why}; {program.how_to_install}")
    try:
        middleboxes.check_device()
    except BentpipeError as error:
        pytest.skip(f"{error}; {error.hint}")


def run(bentpipe: Command, *words: str, stack: str = "quinn") -> dict[str, dict[str, Any]]:
    """The records of a trial for each treatment."""
    done = bentpipe(
        "run", "--testbed", "emu", "--scenario", "goodput", "--client", stack, "--server", stack, "--bytes",
        "100kB", "--iterations", "1", "--no-report", "--json", *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    found = {record["treatment"]: record for record in trusted(done.records())}
    assert {(one["outcome"], one["detail"]) for one in found.values()} == {("ok", "")}, found
    return found


@pytest.mark.emulated
@pytest.mark.usefixtures("tunnel_programs")
def test_measures_are_of_what_is_inside_and_links_carry_more(bentpipe: Command) -> None:
    asked = [word for kind in KINDS for word in ("--treatment", f"vpn=server:kind={kind}")]
    direct, *others = run(bentpipe, "--treatment", "direct", *asked, "--trace", "all", "--out", "A").values()
    assert direct["tunnel"] is None and direct["hops"] == []
    by_kind = {one["tunnel"]["kind"]: one for one in others}
    assert by_kind.keys() == set(KINDS)
    for kind, record in by_kind.items():
        tunnel = record["tunnel"]
        assert tunnel["to"] == "server" and tunnel["version"].partition(" ")[2]
        assert tunnel["mtu_bytes"] == (1420 if kind == "wireguard" else 1500)
        assert bool(tunnel["congestion_control"]) == (kind == "openvpn-tcp")
        assert (record["connections"], record["measured_from"]) == (1, "wire")
        assert record["handshake_s"] < record["completion_s"] and record["goodput_bps"] > 0
        assert record["largest_packet_bytes"] <= tunnel["mtu_bytes"]
        inside = tunnel["forward_bytes"] + tunnel["return_bytes"]
        outside = record["forward_bytes"] + record["return_bytes"]
        assert tunnel["overhead_bytes"] == outside - inside > 0
        assert tunnel["overhead_share"] == pytest.approx(1 - inside / outside)
        assert Path("A/trials", record["trial"], "trace.pcapng").stat().st_size > 2 * inside
    wireguard = by_kind["wireguard"]["tunnel"]
    # An IP header, one of UDP and 32 bytes of its own for each.
    packets = wireguard["forward_packets"] + wireguard["return_packets"]
    assert wireguard["overhead_bytes"] >= 60 * (packets - wireguard["lost_packets"])


@pytest.mark.emulated
@pytest.mark.usefixtures("tunnel_programs")
def test_proxies_on_the_way_see_nothing_but_the_tunnel(bentpipe: Command) -> None:
    records = run(
        bentpipe,
        *("--treatment", "vpn+tcp-pep,vpn+quic-pep"),
        *(
            "--treatment",
            "vpn=server:kind=openvpn-tcp+tcp-pep",
            "--treatment",
            "vpn=gateway+tcp-pep=terminal",
        ),
    )
    split = {
        treatment: [proxy["statistics"]["connections_total"] for proxy in record["proxies"]]
        for treatment, record in records.items()
    }
    assert split == {
        "vpn server:kind=wireguard+tcp-pep terminal,gateway": [0, 0],
        "vpn server:kind=wireguard+quic-pep terminal,gateway": [0, 0],
        # The connection of the tunnel itself is one of TCP.
        "vpn server:kind=openvpn-tcp+tcp-pep terminal,gateway": [1, 1],
        "vpn gateway:kind=wireguard+tcp-pep terminal": [0],
    }
    for record in records.values():
        assert [hop["connections"] for hop in record["hops"]] == [None] * 3
        assert all(hop["forward_packets"] > 0 for hop in record["hops"])
        assert record["connections"] == 1


@pytest.mark.emulated
@pytest.mark.usefixtures("tunnel_programs")
def test_tcp_goes_through_whole_and_over_both_versions_of_ip(bentpipe: Command) -> None:
    installed_or_skip("linux")
    words = [
        "--treatment",
        "vpn+tcp-pep",
        "--treatment",
        "vpn=gateway:kind=openvpn-udp:mtu=1400",
        "--ip",
        "6",
    ]
    proxied, to_gateway = run(bentpipe, *words, stack="linux").values()
    assert [one["statistics"]["connections_total"] for one in proxied["proxies"]] == [0, 0]
    assert [(hop["from"], hop["to"]) for hop in to_gateway["hops"]] == [
        ("client", "gateway"),
        ("gateway", "server"),
    ]
    assert to_gateway["tunnel"]["mtu_bytes"] == 1400 >= to_gateway["largest_packet_bytes"]
    assert (proxied["connections"], to_gateway["connections"]) == (1, 1)


@pytest.mark.emulated
@pytest.mark.usefixtures("tunnel_programs")
def test_nothing_is_left_of_a_trial_that_is_killed(tmp_path: Path) -> None:
    words = ["--set", "timeout=600 s", "--workload", "duration:500s", "--iterations", "1", "--no-report"]
    words += ["--treatment", "vpn=server:kind=openvpn-udp", "--out", str(tmp_path / "A")]
    with subprocess.Popen(
        [sys.executable, "-m", "bentpipe", *ANY, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "WHOSE": str(tmp_path)},
    ) as process:
        seen: dict[str, list[int]] = {}

        def is_under_way() -> bool:
            lines = {one: command_line(one) for one in processes_of(str(tmp_path))}
            seen["ends"] = [one for one, line in lines.items() if "openvpn" in line and "stdin" in line]
            seen["all"] = list(lines)
            return len(seen["ends"]) == 2 and any("endpoint" in line for line in lines.values())

        wait_for("a trial with a tunnel", is_under_way)
        emulator = min(one for one in seen["all"] if "bentpipe-emu trial" in command_line(one))
        places = [Path(f"/proc/{one}/ns/net") for one in seen["ends"]]
        networks = {_network(one) for one in places}
        # While one is held open, no other gets its number.
        held = [os.open(one, os.O_RDONLY | os.O_CLOEXEC) for one in places]
        assert len(networks) == 2 and _network(Path("/proc/self/ns/net")) not in networks
        os.kill(emulator, signal.SIGKILL)
        assert wait_until_gone(*seen["ends"]) == []
        process.send_signal(signal.SIGINT)
    assert wait_until_gone(*processes_of(str(tmp_path))) == []
    # A namespace goes with the last that is in it, or holds it, and its devices with the namespace.
    left = [
        one.parent.parent.name for one in Path("/proc").glob("[0-9]*/ns/net") if _network(one) in networks
    ]
    assert left == []
    for one in held:
        os.close(one)


def _network(link: Path) -> Path | None:
    try:
        return link.readlink()
    except OSError:
        return None  # it is gone, or somebody else's


def test_a_bundle_has_the_tunnel(bentpipe: Command) -> None:
    installed_or_skip("quinn")
    for program in middleboxes.tunnels().values():
        if why := program.not_installed():
            pytest.skip(f"{program.name}: {why}; {program.how_to_install}")
    done = bentpipe(*ANY, "--treatment", "vpn", "--iterations", "1", "--bundles", "B")
    if "TUN devices" in done.err:
        pytest.skip(done.err)
    assert done.code == 0, done.err
    (file,) = Path("B").iterdir()
    bundle = json.loads(file.read_text())
    assert bundle["tunnel"] == {"kind": "wireguard", "to": "server", "mtu_bytes": 1420}
    file.write_text(json.dumps({**bundle, "tunnel": {**bundle["tunnel"], "mtu_bytes": 9000}}))
    refused = bentpipe("worker", str(file))
    assert refused.code == 1 and "mtu_bytes: 9000" in refused.err
