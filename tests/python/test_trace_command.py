"""`bentpipe trace`, and where analyses are found and made."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import get_args

import fake_run
import fake_trace
import pytest
from conftest import Command
from msgspec.structs import fields

from bentpipe.analysis import link_facts, traces
from bentpipe.cli import invoke, reading_progress
from bentpipe.errors import BentpipeError, UsageError
from bentpipe.runs import trial_files
from bentpipe.schema.analysis import Metrics, OneWay
from bentpipe.schema.record import TunnelResult

MBIT = 1_000_000


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in for bentpipe-trace; what is in a capture says what it does."""
    fake_trace.stand_in(tmp_path / "bin")
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "bin"))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.chdir(tmp_path)


def capture(content: str = "whole", name: str = "a.pcap") -> Path:
    path = Path(name)
    path.write_text(content)
    return path


def trial_of_a_run() -> Path:
    """The folder of a trial, with a trace, of a run that knows it."""
    (first, *_) = fake_run.write(Path("run"), stacks=("noq",), iterations=1)
    folder = Path("run/trials") / first.trial
    folder.mkdir(parents=True)
    capture(name=str(folder / trial_files.TRACE))
    return folder


def test_it_prints_what_was_measured(bentpipe: Command) -> None:
    done = bentpipe("trace", capture())
    assert done.code == 0
    words = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "connection 0: QUIC version 1, captured at both sides" in words
    assert "bytes from server 1,000,000" in words
    assert "stream bytes 1,000,000 20" in words
    assert any(line.startswith("retransmitted bytes ") and line.endswith(" 0") for line in words)
    assert not any("Slow start" in line for line in words), "findings are for --explain"
    assert max(map(len, done.out.splitlines())) <= 60
    assert "\x1b" not in done.out


def test_what_cannot_be_measured_is_a_dash(bentpipe: Command) -> None:
    fake_trace.write(Path("out"))
    summary = json.loads(Path("out/analysis.json").read_text())
    metrics = summary["connections"][0]["metrics"]
    for of, kind in ((metrics, Metrics), (metrics["forward"], OneWay), (metrics["return"], OneWay)):
        of |= dict.fromkeys(one.encode_name for one in fields(kind) if type(None) in get_args(one.type))
    Path("out/analysis.json").write_text(json.dumps(summary))
    done = bentpipe("trace", "out")
    assert done.code == 0
    words = [" ".join(line.split()) for line in done.out.splitlines()]
    assert {"goodput -", "RTT min/median/max - / - / - ms", "lost packets - -"} <= set(words)


def test_it_explains_what_it_found_with_evidence(bentpipe: Command) -> None:
    done = bentpipe("trace", capture(), "--explain")
    out = done.out
    assert done.code == 0
    to_copy = [line for line in out.splitlines() if "see: " in line]
    assert all(len(line) <= 60 for line in out.splitlines() if line not in to_copy)
    assert (
        out.index("yes: Slow start left early")
        < out.index("not sure: Held up by flow control; Limited by")
        < out.index("ruled out: ACKs")
    )
    assert "- in flight: 300,000 bytes from 2.100 s to 3.400 s" in out
    assert "bentpipe plot a.pcap --kind in_flight --from 1 --to 3" in out


def test_data_and_the_acks_for_them_stand_together(bentpipe: Command) -> None:
    packets = fake_trace.packets(fake_trace.write(Path("out"))).to_pylist()
    data = sum(row["sender"] == "server" and bool(row["stream_id"]) for row in packets)
    acks = sum(row["sender"] == "client" and "ACK" in row["frames"] for row in packets)
    words = [" ".join(line.split()) for line in bentpipe("trace", "out").out.splitlines()]
    shown = words[words.index("data sent forward return") + 1 :]
    assert shown[:3] == [
        f"data packets {data:,} 1",
        f"ACK packets coming back {acks:,} 1",
        f"per data packet {acks / data:.2f} -",  # one request says nothing of a ratio
    ]


def test_rules_that_could_not_judge_are_counted(bentpipe: Command) -> None:
    fake_trace.write(Path("out"))
    summary = json.loads(Path("out/analysis.json").read_text())
    (one,) = summary["connections"]
    one["findings"] = [finding for finding in one["findings"] if finding["verdict"] != "yes"]
    Path("out/analysis.json").write_text(json.dumps(summary))
    rules = len(one["findings"])
    open_ = sum(finding["verdict"] == "not_sure" for finding in one["findings"])
    out = bentpipe("trace", "out", "--explain").out
    assert f"  {open_} of {rules} rules could not judge; the others found no flaw" in out

    one["findings"] = [finding for finding in one["findings"] if finding["verdict"] == "no"]
    Path("out/analysis.json").write_text(json.dumps(summary))
    assert "\n  no flaw was found\n" in bentpipe("trace", "out", "--explain").out


def test_what_was_found_in_an_instant_is_shown_with_what_is_around_it(bentpipe: Command) -> None:
    fake_trace.write(Path("out"))
    analysis = traces.of_folder(Path("out"))
    one = analysis.connection()
    rtt_ms, transfer_s = one.metrics.rtt_min_ms, one.metrics.transfer_s
    assert rtt_ms is not None and transfer_s is not None
    least = max(rtt_ms / 1e3, 0.05 * transfer_s)
    begin, end = analysis.window(one, 1.505, 1.505)
    assert (begin + end) / 2 == pytest.approx(1.505) and end - begin == pytest.approx(least)
    assert analysis.window(one, 0.001, 0.002) == pytest.approx((0.0, least))
    assert analysis.window(one, 1.0, 1.0 + least + 1e-3) == (1.0, 1.0 + least + 1e-3)

    summary = json.loads(Path("out/analysis.json").read_text())
    summary["connections"][0]["findings"][-1]["plot"] |= {"from_s": 1.505, "to_s": 1.505}
    Path("out/analysis.json").write_text(json.dumps(summary))
    (see,) = [line for line in bentpipe("trace", "out", "--explain").out.splitlines() if "see:" in line]
    assert see.endswith(f"--from {begin:.3f} --to {end:.3f}")


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("a b.pcap", "'a b.pcap'"),
        ("-x.pcap", "./-x.pcap"),
        ("esc\x1b[31m'.pcap", r"$'esc\033[31m\047.pcap'"),
        (os.fsdecode(b"bad\xff.pcap"), r"$'bad\377.pcap'"),
    ],
)
def test_what_is_printed_to_be_run_is_fit_for_the_shell(bentpipe: Command, name: str, written: str) -> None:
    done = bentpipe("trace", "--explain", "--", capture(name=name))
    assert done.code == 0
    (see,) = [line for line in done.out.splitlines() if "see:" in line]
    assert see.startswith(f"    see: bentpipe plot {written} --kind")
    shown = subprocess.run(["bash", "-c", f"printf %s {written}"], capture_output=True, check=True).stdout
    assert Path(os.fsdecode(shown)) == Path(name)


def test_without_secrets_what_needs_none_is_printed_and_no_error(bentpipe: Command) -> None:
    fake_trace.write(Path("out"))
    file = Path("out") / trial_files.SUMMARY
    known = json.loads(file.read_text())
    sealed = [one | {"sealed": True} for one in known["connections"]]
    file.write_text(json.dumps(known | {"connections": sealed}))
    done = bentpipe("trace", "out")
    assert (done.code, done.err) == (0, "")
    assert "There are no TLS secrets of it" in done.out and "lost packets" in done.out
    assert "stream bytes" not in done.out and "goodput" not in done.out


def test_qlogs_are_left_to_the_program(capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["qlog", "a.qlog", "b.qlog", "-o", "c.qlog", "--epoch", "2000-01-01T00:00:00Z"]) == 1
    assert capfd.readouterr().out == "qlog a.qlog b.qlog --out c.qlog --epoch 2000-01-01T00:00:00Z\n"
    assert invoke(["qlog", "--json", "--", "-x.qlog"]) == 1
    assert capfd.readouterr().out == "qlog ./-x.qlog --json\n"


def test_a_long_analysis_shows_on_a_terminal_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    path, (master, slave) = capture(), pty.openpty()
    monkeypatch.setattr(reading_progress, "SHOWN_AFTER_S", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        assert invoke(["trace", str(path)]) == 0
        shown = os.read(master, 100_000).decode()
    os.close(master)
    assert "measuring" in shown, shown


def test_it_leaves_what_it_found(bentpipe: Command) -> None:
    done = bentpipe("trace", capture(), "-o", "new/out", "--json")
    assert done.code == 0
    assert json.loads(done.out) == json.loads(Path("new/out/analysis.json").read_text())
    assert "new/out/packets.parquet" in done.err
    assert sorted(path.name for path in Path("new/out").iterdir()) == ["analysis.json", "packets.parquet"]
    again = bentpipe("trace", "new/out", "--json")
    assert again.out == done.out


def test_two_captures_keys_and_qlogs_are_passed_on(bentpipe: Command) -> None:
    files = [capture(name=name) for name in ("client.pcap", "server.pcap", "keys.log", "c.qlog", "s.qlog")]
    done = bentpipe(
        "trace", *files[:2], "--keylog", files[2], "--qlog", files[3], "--qlog", files[4], "--json"
    )
    answer = json.loads(done.out)
    assert answer["files"] == ["client.pcap", "server.pcap"]
    assert fake_trace.asked() == {"link": {}, "keylog": "keys.log", "qlog": ["c.qlog", "s.qlog"]}


@pytest.mark.parametrize("given", ['{"forward_rate_bps": 20000000, "rtt_ms": 600.5}', "link.json"])
def test_facts_of_the_path_are_passed_on(bentpipe: Command, given: str) -> None:
    capture('{"forward_rate_bps": 2e7, "rtt_ms": 600.5}', "link.json")
    done = bentpipe("trace", capture(), "--link", given, "--json")
    assert done.code == 0 and fake_trace.asked()["link"] == {"forward_rate_bps": 20 * MBIT, "rtt_ms": 600.5}


def test_a_capture_that_is_cut_short_is_read_so_far(bentpipe: Command) -> None:
    done = bentpipe("trace", capture("cut"))
    assert done.code == 1
    assert done.err == "error: a.pcap: cut short at byte 1234\n"
    assert "bytes from server" in done.out
    assert "not decoded: 3 QUIC packets: no secrets" in done.out


def test_a_capture_without_a_connection(bentpipe: Command) -> None:
    done = bentpipe("trace", capture("nothing"))
    assert (done.code, done.err) == (
        1,
        "error: no connection found: 3 QUIC packets: no secrets\nhint: give them\n",
    )
    assert done.out == "", "what the error says is not said again"
    done = bentpipe("plot", "a.pcap")
    assert (done.code, done.err) == (
        1,
        "error: no connection found: 3 QUIC packets: no secrets\nhint: give them\n",
    )


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["no.pcap"], 2, "error: no.pcap: not a capture\nhint: pcapng or pcap"),
        (["crash.pcap"], 1, "error: bentpipe-trace ended with 101: thread panicked"),
        (["a.pcap", "--link", "list.json"], 2, "error: --link: list.json: no JSON object\nhint: write one"),
        (["a.pcap", "--link", "{"], 2, "error: --link: not valid JSON"),
        (["a.pcap", "--link", '{"rtt": 1}'], 2, 'unknown key "rtt"\nhint: did you mean "rtt_ms"?'),
        (["a.pcap", "--link", '{"rtt_ms": "1"}'], 2, "error: --link: rtt_ms: '1' is not valid\nhint: write"),
        (["a.pcap", "--link", "no.json"], 2, "error: --link: no.json: there is no such file"),
        (["nothing-here"], 2, "error: nothing-here: there is no such file or folder"),
        (["a.pcap", "--keylog", "keys"], 2, "error: --keylog: keys: there is no such file"),
        (["a.pcap", "--keylog", "empty"], 2, "error: --keylog: empty is a folder\nhint: give a file"),
        (["a.pcap", "--qlog", "empty"], 2, "error: --qlog: empty is a folder\nhint: give a file"),
        (["-"], 2, "error: -: captures are read from files, not from standard input\nhint: write it"),
        (["pipe"], 2, "error: pipe: captures are read from files, not from a pipe\nhint: write it"),
        (
            ["a.qlog"],
            2,
            "error: a.qlog: not a capture: it begins like a qlog\nhint: beside a capture: --qlog",
        ),
        (["a.pcap", "empty"], 2, "error: empty is a folder\nhint: give several captures, or one folder"),
        (["empty"], 2, "error: empty: there is neither a trace nor an analysis in it\nhint: give a capture"),
        (["a.pcap", "-o", "a.pcap"], 2, "error: --out: a.pcap is not a folder"),
        ([], 2, "error: Missing argument 'FILE…'"),
    ],
)
def test_mistakes_are_named(bentpipe: Command, arguments: list[str], code: int, error: str) -> None:
    capture()
    capture("no capture", "no.pcap")
    capture("crash", "crash.pcap")
    capture("[]", "list.json")
    capture("{}", "a.qlog")
    os.mkfifo("pipe")
    Path("empty").mkdir()
    done = bentpipe("trace", *arguments)
    assert (done.code, done.out) == (code, "")
    assert error in done.err


def test_without_the_program_it_says_how_to_build_it(bentpipe: Command) -> None:
    Path("bin/bentpipe-trace").unlink()
    done = bentpipe("trace", capture())
    assert done.code == 1
    assert "bentpipe-trace is not built" in done.err and "make setup" in done.err


def test_a_trial_keeps_its_analysis_until_its_trace_is_newer(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    assert bentpipe("trace", folder).code == 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "analysis.json",
        "packets.parquet",
        "trace.pcapng",
    ]
    made = (folder / "analysis.json").stat().st_mtime_ns
    bentpipe("trace", folder)
    assert (folder / "analysis.json").stat().st_mtime_ns == made

    later = made + 10**9
    os.utime(folder / trial_files.TRACE, ns=(later, later))
    bentpipe("trace", folder)
    assert (folder / "analysis.json").stat().st_mtime_ns != made


def test_an_analysis_by_an_older_program_is_made_anew(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    bentpipe("trace", folder)
    made = (folder / "analysis.json").stat().st_mtime_ns
    os.utime("bin/bentpipe-trace", ns=(made + 10**9, made + 10**9))
    bentpipe("trace", folder)
    assert (folder / "analysis.json").stat().st_mtime_ns != made

    Path("bin/bentpipe-trace").unlink()
    assert bentpipe("trace", folder).code == 0, "it can be read without the program"


def test_an_analysis_of_another_format_is_made_anew_or_refused(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    bentpipe("trace", folder)
    (folder / "analysis.json").write_text('{"format": 0}')
    assert bentpipe("trace", folder).code == 0
    assert json.loads((folder / "analysis.json").read_text())["format"] == 1

    Path("out").mkdir()
    Path("out/analysis.json").write_text('{"format": 0}')
    done = bentpipe("trace", "out")
    assert done.code == 1 and "format 0" in done.err and "bentpipe trace FILE -o DIR" in done.err


def test_a_trial_is_analysed_with_what_its_run_knows(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    (folder / "qlog/server").mkdir(parents=True)
    (folder / "qlog/server/server.sqlog").write_text("")
    assert bentpipe("trace", folder, "--json").code == 0
    asked = fake_trace.asked()
    assert asked["qlog"] == [str(folder / "qlog/server/server.sqlog")]
    assert asked["link"] == {
        "forward_rate_bps": 10 * MBIT, "return_rate_bps": 10 * MBIT, "rtt_ms": 30.0,
        "limit_s": pytest.approx(8.868, abs=1e-3), "size_bytes": fake_run.SIZE,
        "sender": "server",
    }  # fmt: skip


def test_a_qlog_that_came_later_is_looked_at(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    (folder / "qlog/client").mkdir(parents=True)
    assert bentpipe("trace", folder).code == 0 and fake_trace.asked()["qlog"] is None
    made = (folder / "analysis.json").stat().st_mtime_ns
    added = folder / "qlog/client/junk"
    added.write_text("")
    os.utime(added, ns=(made + 10**9, made + 10**9))
    assert bentpipe("trace", folder).code == 0 and fake_trace.asked()["qlog"] == [str(added)]


def test_where_nothing_can_be_written_the_analysis_goes_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = trial_of_a_run()
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode & os.W_OK == 0 or Path(path) != folder)
    analysis = traces.of_trial(folder)
    assert analysis.folder != folder
    assert analysis.packets.num_rows == analysis.connection().packets
    assert [path.name for path in folder.iterdir()] == ["trace.pcapng"]


def test_an_analysis_that_fails_leaves_nothing(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    capture("crash", str(folder / trial_files.TRACE))
    assert bentpipe("trace", folder).code == 1
    assert [path.name for path in folder.iterdir()] == ["trace.pcapng"]


def test_a_trial_without_a_trace_and_a_run_say_what_to_give(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    done = bentpipe("trace", "run")
    assert done.code == 2 and f"hint: give a trial of the run: {folder}" in done.err
    (folder / trial_files.TRACE).unlink()
    done = bentpipe("trace", folder)
    assert done.code == 2 and "this trial has no trace" in done.err and "--trace all" in done.err
    done = bentpipe("trace", folder.with_name("another"))
    assert done.code == 2 and "this trial has no trace" in done.err
    done = bentpipe("trace", "run")
    assert done.code == 2 and "--trace all" in done.err


def test_connections_are_chosen_by_number_or_by_size() -> None:
    fake_trace.write(Path("out"))
    summary = json.loads(Path("out/analysis.json").read_text())
    summary["connections"].append(summary["connections"][0] | {"connection": 1, "packets": 10**6})
    Path("out/analysis.json").write_text(json.dumps(summary))
    analysis = traces.of_folder(Path("out"))
    assert analysis.connection().connection == 1
    assert analysis.connection(0).connection == 0
    with pytest.raises(UsageError, match="no connection 2"):
        analysis.connection(2)
    nothing = summary | {"connections": [], "errors": ["nothing was found"]}
    Path("out/analysis.json").write_text(json.dumps(nothing))
    with pytest.raises(BentpipeError, match="nothing was found"):
        traces.of_folder(Path("out")).connection()


def test_facts_of_the_path_come_from_the_run() -> None:
    summary = {"forward_rate_bps": 20 * MBIT, "return_rate_bps": None, "rtt_ms": 600.0, "title": "GEO"}
    (record, *_) = fake_run.write(Path("run"), stacks=("noq",), iterations=1)
    facts = link_facts.of_trial(summary | {"forward_queue_bytes": 37_500, "mtu_bytes": 1500}, record)
    assert facts.bdp_bytes == 1_500_000
    assert facts.known() == {
        "forward_rate_bps": 20 * MBIT, "rtt_ms": 600.0, "forward_queue_bytes": 37_500, "mtu_bytes": 1500,
        "limit_s": record.limit_s, "size_bytes": fake_run.SIZE,
        "sender": "server",
    }  # fmt: skip
    assert link_facts.of_trial({"forward_rate_bps": None}, record).bdp_bytes is None


def test_what_is_encapsulated_crosses_the_whole_path() -> None:
    """Also where the tunnel has no hops, from end to end, and with the least of the MTUs."""
    summary = {"forward_rate_bps": 20 * MBIT, "rtt_ms": 600.0, "mtu_bytes": 1500}
    (record, *_) = fake_run.write(Path("run"), stacks=("noq",), iterations=1)
    tunnel = TunnelResult(
        kind="wireguard", to="server", version="1", mtu_bytes=1420, congestion_control="", setup_s=0.1,
        forward_packets=1, forward_bytes=1, return_packets=1, return_bytes=1, lost_packets=0,
        overhead_bytes=60, overhead_share=0.5, cpu_client_s=0.0, cpu_far_s=0.0,
    )  # fmt: skip
    through = fake_run.change(record, treatment="vpn server:kind=wireguard", tunnel=tunnel)
    facts = link_facts.of_trial(summary, through)
    assert (facts.forward_rate_bps, facts.rtt_ms, facts.mtu_bytes) == (20 * MBIT, 600.0, 1420)
    assert facts.limit_s == record.limit_s


def test_with_proxies_it_names_the_other_hops_and_knows_no_link(bentpipe: Command) -> None:
    folder = trial_of_a_run()
    assert "note: this is the hop" not in bentpipe("trace", folder).out
    known = traces.of_trial(folder).link
    assert known.rtt_ms is not None and known.forward_rate_bps is not None and known.limit_s is not None
    records = Path("run/records.jsonl")
    records.write_text(records.read_text().replace('"treatment":"direct"', '"treatment":"quic-pep gateway"'))
    other = capture(name=str(folder / "trace-gateway-server.pcapng"))
    done = bentpipe("trace", folder)
    assert f"note: this is the hop at the client; the others: {other.resolve()}" in " ".join(done.out.split())
    link = traces.of_trial(folder).link
    assert (link.rtt_ms, link.forward_rate_bps, link.limit_s) == (None, None, None)
    assert link.size_bytes == known.size_bytes and link.sender == "server"
    assert bentpipe("trace", other).code == 0
