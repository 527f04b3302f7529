"""What `bentpipe trace` measures of captures without secrets: against tshark, which is given none either,
and against the same connections with their secrets.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from captured_sides import sides_of
from conftest import Command, installed_or_skip

from bentpipe.analysis.plots.table import seen

pytestmark = pytest.mark.virtual_time

TSHARK, EDITCAP = shutil.which("tshark"), shutil.which("editcap")
AS_WITH_SECRETS = ("packets", "datagrams", "ip_bytes", "lost", "reordered", "duplicates", "one_way_delay")
DRAWN = ("size", "rate", "rtt", "delay", "queue")  # kinds of plots that need no secrets


def trial(bentpipe: Command, *words: str) -> Path:
    """The trace of a trial."""
    done = bentpipe("run", *words, "--iterations", "1", "--no-report", "--trace", "all", "--out", "run")
    assert done.code == 0, done.err
    (folder,) = Path("run/trials").iterdir()
    return folder / "trace.pcapng"


@pytest.fixture
def trace(bentpipe: Command) -> Path:
    """A transfer of noq, whose spin bit spins, over a path that loses packets."""
    words = ("--scenario", "sat", "--set", "forward.loss=1%", "--client", "noq", "--server", "noq")
    return trial(bentpipe, *words, "--bytes", "400kB")


def analysed(bentpipe: Command, *files: str | Path, out: str) -> dict[str, Any]:
    """The only connection in captures, whose packets are left in `out`."""
    done = bentpipe("trace", *files, "-o", out)
    assert done.code == 0, done.err
    (connection,) = json.loads(Path(out, "analysis.json").read_text())["connections"]
    found: dict[str, Any] = connection
    return found


def tshark(capture: Path, fields: Sequence[str], only: str) -> list[list[str]]:
    """A row per frame that passes a display filter. tshark knows no secrets."""
    if TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    command = [TSHARK, "-r", str(capture), "-Y", only, "-T", "fields", "-o", "tls.keylog_file:"]
    command += [word for name in fields for word in ("-e", name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_all_but_the_content_is_measured_as_with_secrets(bentpipe: Command, trace: Path) -> None:
    client, server = sides_of(trace, Path())
    known = analysed(bentpipe, trace, out="known")
    link = '{"forward_rate_bps": 20000000, "mtu_bytes": 1500}'  # which a trial's run knows
    sealed = analysed(bentpipe, client, server, "--link", link, out="sealed")
    for way in ("forward", "return"):
        with_secrets, without = known["metrics"][way], sealed["metrics"][way]
        same = [key for key in without if key.startswith(AS_WITH_SECRETS)]
        assert {key: without[key] for key in same} == {key: with_secrets[key] for key in same}
    assert known["metrics"]["forward"]["lost_packets"] > 0
    assert sealed["passive"] | {"connection_ids": 0} == known["passive"] | {"connection_ids": 0}
    least_ms = known["metrics"]["rtt_min_ms"]
    assert sealed["passive"]["matched_rtt"]["min_ms"] == pytest.approx(least_ms, abs=1)
    assert sealed["passive"]["spin_rtt"]["min_ms"] == pytest.approx(least_ms, abs=5)
    verdicts = [{one["rule"]: one["verdict"] for one in each["findings"]} for each in (sealed, known)]
    for rule in ("no_pacing", "packet_size_below_path", "loss_storm"):
        assert verdicts[0][rule] == verdicts[1][rule], rule


@pytest.mark.parametrize("side", ["client", "server"])
def test_tshark_sees_the_same_spin_bits_and_datagrams(bentpipe: Command, trace: Path, side: str) -> None:
    sides = dict(zip(("client", "server"), sides_of(trace, Path()), strict=True))
    one = analysed(bentpipe, sides[side], out="sealed")
    packets = pq.read_table("sealed/packets.parquet")
    order = np.argsort(seen(packets, side), kind="stable")  # type: ignore[arg-type]
    rows = packets.take(order).to_pylist()
    assert one["passive"]["spin_bit"] == "spins"
    for way, of in (("forward", "udp.srcport == 443"), ("return", "udp.dstport == 443")):
        bits = [row["spin"] for row in rows if row["direction"] == way and row["spin"] is not None]
        shown = tshark(sides[side], ["quic.spin_bit"], f"quic.header_form == 0 and {of}")
        assert bits == [bit in ("1", "True") for row in shown for bit in row[0].split(",")]
        assert True in bits and False in bits
        assert one["metrics"][way]["datagrams"] == len(tshark(sides[side], ["frame.number"], of))
        lengths = [int(row[0]) for row in tshark(sides[side], ["ip.len"], of)]
        assert one["metrics"][way]["ip_bytes"] == sum(lengths)


def test_tshark_sees_the_same_handshake(bentpipe: Command, trace: Path) -> None:
    client, _ = sides_of(trace, Path())
    one = analysed(bentpipe, client, out="sealed")
    fields = ["tls.handshake.extensions_server_name", "tls.handshake.extensions_alpn_str", "quic.dcid"]
    name, alpn, ids = tshark(client, fields, "tls.handshake.type == 1")[0]
    passive = one["passive"]
    assert (passive["server_name"], ",".join(passive["alpn"])) == (name, alpn)
    assert passive["connection_ids"]["server"][0] == ids.split(",")[0]
    ((asked, *_),) = tshark(client, ["frame.time_epoch"], "frame.number == 1")
    answer = tshark(client, ["frame.time_epoch"], "udp.srcport == 443")[0][0]
    # Text, since nanoseconds of today do not fit a float.
    seconds = [int(time.split(".")[0]) - int(asked.split(".")[0]) for time in (asked, answer)]
    nanos = [int(time.split(".")[1]) for time in (asked, answer)]
    apart_ms = (seconds[1] * 10**9 + nanos[1] - nanos[0]) / 1e6
    assert passive["handshake_rtt_ms"] == pytest.approx(apart_ms, abs=1e-3)


def test_what_can_be_drawn_is_drawn_and_the_rest_says_what_it_lacks(bentpipe: Command, trace: Path) -> None:
    sides = sides_of(trace, Path())
    for kind in DRAWN:
        assert bentpipe("plot", *sides, "--kind", kind, "-o", f"{kind}.svg").code == 0
    done = bentpipe("plot", *sides, "-o", "offset.svg")
    assert done.code == 1
    assert "it needs the TLS secrets: --keylog KEYS; without them can be drawn: --kind size" in done.err
    shown = bentpipe("trace", *sides, "--explain")
    assert shown.code == 0 and "There are no TLS secrets of it" in shown.out and "error" not in shown.err
    assert "could not be decrypted (hint: --keylog)" in shown.out
    assert bentpipe("losses", *sides).code == 0


def test_a_capture_that_begins_midway_is_measured_by_its_datagrams(bentpipe: Command, trace: Path) -> None:
    if EDITCAP is None:
        pytest.skip("editcap is not installed (apt install wireshark-common)")
    client, _ = sides_of(trace, Path())
    late = Path("late.pcapng")
    subprocess.run([EDITCAP, client, late, "1-40"], check=True)
    one = analysed(bentpipe, late, out="late")
    assert (one["protocol"], one["version"], one["server"]) == ("quic", None, "198.51.100.1:443")
    for way, of in (("forward", "udp.srcport == 443"), ("return", "udp.dstport == 443")):
        assert one["metrics"][way]["packets"] == len(tshark(late, ["frame.number"], of))
    assert one["metrics"]["forward"]["mean_rate_bps"] > 0
    assert "QUIC by the form of its packets, captured at the client" in bentpipe("trace", late).out
    # A flow of this form on another port may be anything.
    Path("other.pcapng").write_bytes(late.read_bytes().replace(b"\x01\xbb", b"\x00\x35"))
    done = bentpipe("trace", "other.pcapng")
    assert done.code == 1 and "no connection found" in done.err


def test_where_a_capture_begins_makes_no_number_false(bentpipe: Command, trace: Path) -> None:
    """Either side begins late: what is measured then is what the whole has, or nothing."""
    if EDITCAP is None:
        pytest.skip("editcap is not installed (apt install wireshark-common)")
    sides = sides_of(trace, Path())
    whole = analysed(bentpipe, *sides, out="whole")["passive"]
    for cut in (0, 1):
        for frames in (1, 2, 3, 5, 9, 30):
            pair = list(sides)
            pair[cut] = Path(f"late-{cut}-{frames}-{sides[cut].name}")
            subprocess.run([EDITCAP, sides[cut], pair[cut], f"1-{frames}"], check=True)
            one = analysed(bentpipe, *pair, out="late")
            where = (cut, frames)
            assert one["vantage"] == "both" and one["metrics"]["forward"]["lost_packets"] > 0, where
            assert one["metrics"]["forward"]["reordered_packets"] in (0, None), where
            found = one["passive"]
            assert found["handshake_rtt_ms"] in (None, pytest.approx(whole["handshake_rtt_ms"], abs=15)), (
                where
            )
            for rtt in ("spin_rtt", "matched_rtt"):
                assert found[rtt]["min_ms"] == pytest.approx(whole[rtt]["min_ms"], abs=30), (where, rtt)


def test_one_direction_and_cut_packets_are_measured_too(bentpipe: Command, trace: Path) -> None:
    if EDITCAP is None or TSHARK is None:
        pytest.skip("tshark is not installed (apt install tshark)")
    client, _ = sides_of(trace, Path())
    whole = analysed(bentpipe, client, out="whole")["metrics"]["forward"]
    cut: list[str] = [EDITCAP, "-s", "100", str(client)]
    one_way: list[str] = [TSHARK, "-r", str(client), "-Y", "udp.srcport == 443", "-w"]
    for filtered, words in (("snap.pcapng", cut), ("forward.pcapng", one_way)):
        subprocess.run([*words, filtered], check=True, capture_output=True)
        one = analysed(bentpipe, filtered, out="some")
        assert one["version"] == "1", filtered
        for key in ("datagrams", "ip_bytes"):
            assert one["metrics"]["forward"][key] == whole[key], (filtered, key)


def test_another_port_of_the_client_is_followed(bentpipe: Command, trace: Path) -> None:
    """A NAT that forgets gives the client another port: its packets, and what comes back to it."""
    client, _ = sides_of(trace, Path())
    whole = analysed(bentpipe, client, out="whole")
    content, old, new = client.read_bytes(), (50000).to_bytes(2, "big"), (50077).to_bytes(2, "big")
    half = content.index(old + b"\x01\xbb", len(content) // 2)  # the server hears of it by a packet
    moved = (
        content[half:]
        .replace(old + b"\x01\xbb", new + b"\x01\xbb")
        .replace(b"\x01\xbb" + old, b"\x01\xbb" + new)
    )
    Path("moved.pcapng").write_bytes(content[:half] + moved)
    one = analysed(bentpipe, "moved.pcapng", out="moved")
    assert one["metrics"]["forward"]["packets"] == whole["metrics"]["forward"]["packets"]
    (change,) = one["passive"]["later_addresses"]
    assert (change["end"], change["address"]) == ("client", "192.0.2.1:50077")


def test_loss_bits_tell_what_was_lost_on_the_way(bentpipe: Command) -> None:
    installed_or_skip("picoquic")
    ends = ("--client", "picoquic:lossbits=on", "--server", "picoquic:lossbits=on")
    trace = trial(
        bentpipe,
        "--scenario",
        "sat",
        "--set",
        "forward.loss=2%",
        "--set",
        "forward.queue=1BDP",
        *ends,
        "--bytes",
        "2MB",
    )
    known = analysed(bentpipe, trace, out="known")
    client, _ = sides_of(trace, Path())
    bits = analysed(bentpipe, client, out="sealed")["passive"]["loss_bits"]
    lost = known["metrics"]["forward"]["lost_packets"]
    assert lost > 10
    # Not of the first and the last period, and picoquic once begins its count anew.
    assert 0.5 * lost < bits["server"]["upstream_lost_packets"] <= lost
    share = known["metrics"]["forward"]["lost_share"]
    assert bits["server"]["upstream_lost_share"] == pytest.approx(share, abs=0.01)
    assert bits["server"]["reported_lost_packets"] == pytest.approx(lost, abs=0.3 * lost)
    assert bits["client"]["upstream_lost_share"] == pytest.approx(0, abs=0.01)
