"""bentpipe-trace analyze against what others know of the same trial: the client's own report, which
`bye_recorder.py` keeps, the counters of the link, and the metrics in the record, which are taken without
a file between.
"""

import json
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import installed_or_skip
from fake_trace import SCHEMA

from bentpipe import paths
from bentpipe.cli import invoke
from bentpipe.stacks import catalogue

pytestmark = pytest.mark.virtual_time

PAIRS = [("quinn", "noq"), ("noq", "aioquic"), ("aioquic", "quic-go"), ("quic-go", "quinn")]
SIZE = 1 << 20
NANOSECOND = 1.5e-9  # times come through decimal text


@dataclass(frozen=True)
class Trial:
    """A trial that was traced, and its analysis."""

    record: dict[str, Any]
    report: dict[str, Any]  # the client's BYE
    summary: dict[str, Any]
    rows: list[dict[str, Any]]
    trace: Path

    @property
    def metrics(self) -> dict[str, Any]:
        (connection,) = self.summary["connections"]
        metrics: dict[str, Any] = connection["metrics"]
        return metrics


def analyze(out: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [paths.program("bentpipe-trace"), "analyze", *arguments, "-o", out]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def recorded(client: str, place: Path) -> Path:
    """A stack of the same name whose reports are kept in `place`; the program is the installed one."""
    program = catalogue.discover()[client].command("virtual-time")
    command = [
        "{python}",
        str(Path(__file__).with_name("bye_recorder.py")),
        str(place / "bye.json"),
        *program,
    ]
    stack = place / client / "stack.toml"
    stack.parent.mkdir()
    stack.write_text(
        f'name = "{client}"\ntitle = "{client}, recorded"\nlanguage = "Python"\nhome = "https://example.org"\n'
        'roles = ["client", "server"]\ntestcases = ["transfer"]\ndeterministic = true\n'
        f"[commands]\nvirtual-time = {json.dumps(command)}\n"
    )
    return stack.parent


@pytest.fixture(
    scope="module", params=[(*pair, path) for pair in PAIRS for path in ("sat", "satloss")], ids="-".join
)
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    client, server, scenario = request.param
    if "quic-go" in (client, server):
        installed_or_skip("quic-go")
    place = tmp_path_factory.mktemp("metrics")
    run, out = place / "run", place / "analysis"
    command = ["run", "--scenario", scenario, "--client", client, "--server", server, "--bytes", str(SIZE)]
    command += ["--iterations", "1", "--trace", "all", "--qlog", "--no-report", "--out", str(run)]
    assert invoke([*command, "--stacks", str(recorded(client, place))]) == 0
    record = json.loads((run / "records.jsonl").read_text())
    folder = run / "trials" / record["trial"]
    qlogs = [word for file in folder.glob("qlog/*/*") for word in ("--qlog", file)]
    done = analyze(out, folder / "trace.pcapng", *qlogs, "--link", '{"forward_rate_bps": 20000000}')
    assert (done.returncode, done.stderr) == (0, "")
    return Trial(
        record,
        json.loads((place / "bye.json").read_text()),
        json.loads((out / "analysis.json").read_text()),
        pq.read_table(out / "packets.parquet").to_pylist(),
        folder / "trace.pcapng",
    )


def test_times_are_those_that_the_client_reports(trial: Trial) -> None:
    """The client sends its first packet at time 0. It hears of everything when it arrives. Had the first
    packet with data been lost, its first byte would come later than that of the reply.
    """
    metrics, (request,) = trial.metrics, trial.report["requests"]
    first, last = request["first_byte_ns"] / 1e9, request["last_byte_ns"] / 1e9
    assert metrics["handshake_s"] == pytest.approx(trial.report["handshake_ns"] / 1e9, abs=NANOSECOND)
    assert metrics["ttfb_s"] == pytest.approx(first, abs=NANOSECOND)
    assert metrics["completion_s"] == pytest.approx(last, abs=NANOSECOND)
    assert metrics["transfer_s"] == pytest.approx(last - first, abs=NANOSECOND)
    assert metrics["goodput_bps"] == pytest.approx(8 * SIZE / (last - first))
    assert metrics["stream_bytes"] == request["bytes"] == SIZE


def test_the_record_says_the_same(trial: Trial) -> None:
    record, metrics = trial.record, trial.metrics
    assert record["measured_from"] == "wire"
    names = ["handshake_s", "ttfb_s", "completion_s", "transfer_s", "goodput_bps"]
    names += ["rtt_min_ms", "rtt_median_ms", "rtt_max_ms", "in_flight_max_bytes"]
    assert {name: record[name] for name in names} == {name: metrics[name] for name in names}
    forward = {"retransmitted_share": "retransmitted_share", "acks_per_data_packet": "acks_per_data_packet"}
    forward |= {"mean_packet_bytes": "mean_datagram_bytes", "largest_packet_bytes": "largest_datagram_bytes"}
    for name, metric in forward.items():
        assert record[name] == metrics["forward"][metric]


def test_the_interop_runner_times_all_1_rtt_packets_of_the_server(trial: Trial) -> None:
    """What it reads in the client's capture: arrivals, whatever they carry."""
    mine = [row for row in trial.rows if (row["sender"], row["type"]) == ("server", "1rtt")]
    came = [row["received_s"] for row in mine if row["received_s"] is not None]
    span = trial.record["runner_transfer_s"]
    assert span == pytest.approx(max(came) - min(came), abs=NANOSECOND)
    assert span >= trial.record["transfer_s"]


def test_packets_are_those_that_the_links_counted(trial: Trial) -> None:
    for way in ("forward", "return"):
        mine = [row for row in trial.rows if row["direction"] == way and row["ip_bytes"] is not None]
        fates = Counter(row["fate"] for row in mine)
        counted = {
            name: trial.record[f"{way}_{name}"] for name in ("packets", "bytes", "queue_drops", "losses")
        }
        assert counted == {
            "packets": len(mine),
            "bytes": sum(row["ip_bytes"] for row in mine),
            "queue_drops": fates["queue_drop"],
            "losses": fates["loss"],
        }
        metrics = trial.metrics[way]
        # A CONNECTION_CLOSE may be repeated as it was.
        originals = [row["ip_bytes"] for row in mine if not row["copy"]]
        assert (metrics["datagrams"], metrics["ip_bytes"]) == (len(originals), sum(originals))
        assert metrics["lost_packets"] >= counted["queue_drops"] + counted["losses"]
        assert metrics["one_way_delay_min_ms"] > 300


def test_the_table_has_the_columns_that_figures_are_made_of(trial: Trial) -> None:
    table = pq.read_table(trial.trace.parents[3] / "analysis" / "packets.parquet")
    assert table.column_names == SCHEMA.names
    assert [field.type for field in table.cast(SCHEMA).schema] == [field.type for field in SCHEMA]
    connection = trial.summary["connections"][0]
    assert table.num_rows == connection["packets"]
    sent = [row["sent_s"] for row in trial.rows]
    assert sent == sorted(sent) and sent[0] == 0
    for row in trial.rows:
        assert (row["received_s"] is not None) == (row["fate"] == "delivered")
        assert len(row["stream_id"]) == len(row["stream_offset"]) == row["frames"].count("STREAM")
        assert ("ACK" in row["frames"]) == bool(row["ack_first"])
        if row["space"] == "application":  # before that, the exponent of ACK delays is not known
            assert bool(row["ack_first"]) == (row["ack_delay_ms"] is not None)
    events = {event["name"]: event["at_s"] for event in connection["events"]}
    assert events["last_byte"] == trial.metrics["completion_s"]


def test_the_servers_window_stands_on_the_clock_of_the_capture(trial: Trial) -> None:
    cwnd = trial.summary["connections"][0]["qlog"]["server"]["cwnd"]
    assert len(cwnd["time_s"]) == len(cwnd["bytes"]) <= 2000
    assert cwnd["time_s"] == sorted(cwnd["time_s"])
    first = min(
        row["received_s"] for row in trial.rows if row["sender"] == "client" and row["fate"] == "delivered"
    )
    last = max(row["received_s"] or row["sent_s"] for row in trial.rows)
    assert first - 1e-3 <= cwnd["time_s"][0] and cwnd["time_s"][-1] <= last
    # It grows with the first ACK of data, a round trip after the request came.
    assert cwnd["time_s"][1] == pytest.approx(first + 1.2, abs=0.03)


def test_a_capture_that_is_cut_is_analysed_up_to_there(trial: Trial, tmp_path: Path) -> None:
    whole = trial.trace.read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(whole[: len(whole) // 2 + 1])
    done = analyze(tmp_path / "out", cut)
    assert done.returncode == 1
    assert done.stderr.startswith("error: cut.pcapng: byte ") and "cut short" in done.stderr
    summary = json.loads((tmp_path / "out" / "analysis.json").read_text())
    assert "cut short" in summary["errors"][0]
    assert 0 < summary["connections"][0]["packets"] < len(trial.rows)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["analysis.json", "packets.parquet"]


def test_what_is_no_capture_is_named(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a capture\n" * 9)
    done = analyze(tmp_path / "out", text)
    assert done.returncode == 2 and done.stderr.startswith(f"error: {text}: not a capture file")
    assert not (tmp_path / "out").exists()


def test_mistakes_in_link_facts_are_named(tmp_path: Path) -> None:
    capture = tmp_path / "empty.pcap"
    capture.write_bytes(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000065000000"))
    done = analyze(tmp_path / "out", capture, "--link", '{"forward_rate": 1}')
    assert done.returncode == 2 and "`forward_rate`" in done.stderr and "forward_rate_bps" in done.stderr
    link = tmp_path / "link.json"
    link.write_text('{"rtt_ms": "600 ms"}')
    done = analyze(tmp_path / "out", capture, "--link", link)
    assert done.returncode == 2 and str(link) in done.stderr
    shutil.copy(capture, tmp_path / "again.pcap")
    done = analyze(tmp_path / "out", capture, tmp_path / "again.pcap", "--link", '{"rtt_ms": 600}')
    assert done.returncode == 1 and "no connection found: the captures have no packets" in done.stderr
