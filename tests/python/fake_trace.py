"""What `bentpipe-trace analyze` writes, made up out of a made-up transfer; as a program, its stand-in."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fake_transfer import SCHEMA, Setting, World, simulate

__all__ = ["SCHEMA", "Setting", "analysis", "asked", "packets", "simulate", "stand_in", "write"]

_USUAL = Setting()
ASKED = "asked.json"  # beside the stand-in


def packets(world: World) -> pa.Table:
    return pa.Table.from_pylist(world.rows, schema=SCHEMA)


def analysis(world: World, files: list[str]) -> dict[str, Any]:
    """An analysis.json with the metrics and findings that tests look at."""
    rows = world.rows
    samples = sorted(row["rtt_ms"] for row in rows if row["rtt_ms"] is not None)
    handshake_s, last_s = world.handshake_s, world.last_byte_s
    first_s = next(row["received_s"] for row in rows if row["stream_id"] and row["sender"] == "server")
    size = world.setting.size_bytes
    metrics = {
        "handshake_s": handshake_s, "ttfb_s": first_s, "completion_s": last_s, "transfer_s": last_s - first_s,
        "goodput_bps": 8 * size / (last_s - first_s), "stream_bytes": size, "upload_bytes": 20,
        "forward": _one_way(rows, "forward", last_s), "return": _one_way(rows, "return", last_s),
        "rtt_min_ms": samples[0], "rtt_median_ms": samples[len(samples) // 2], "rtt_max_ms": samples[-1],
        "in_flight_max_bytes": max(row["in_flight_bytes"] or 0 for row in rows),
    }  # fmt: skip
    events = {"handshake_complete": handshake_s, "first_byte": first_s, "last_byte": last_s}
    connection = {
        "connection": 0, "protocol": "quic", "version": "1", "client": "192.0.2.1:50000",
        "server": "198.51.100.1:443", "vantage": "both", "start_unix_s": "946684800.000000000",
        "server_clock_ahead_s": 0.0, "packets": len(rows),
        "metrics": metrics, "events": [{"name": name, "at_s": at} for name, at in events.items()],
        "findings": FINDINGS, "qlog": {"server": {"cwnd": world.cwnd}},
    }  # fmt: skip
    return {"format": 1, "files": files, "sides": "both", "undecoded": [], "errors": [],
            "connections": [connection]}  # fmt: skip


def _one_way(rows: list[dict[str, Any]], direction: str, last_s: float) -> dict[str, Any]:
    mine = [row for row in rows if row["direction"] == direction]
    theirs = [row for row in rows if row["direction"] != direction]
    datagrams = [row["ip_bytes"] for row in mine if row["ip_bytes"] is not None]
    lost = sum(row["fate"] != "delivered" for row in mine)
    stream = sum(sum(row["stream_bytes"]) for row in mine)
    again = sum(row["retransmitted_bytes"] for row in mine)
    delays = sorted(
        (row["received_s"] - row["sent_s"]) * 1e3 for row in mine if row["received_s"] is not None
    )
    data = sum(bool(row["stream_id"]) for row in mine)
    return {
        "packets": len(mine), "datagrams": len(datagrams), "ip_bytes": sum(datagrams),
        "stream_bytes": stream - again, "retransmitted_bytes": again, "retransmitted_share": again / stream,
        "lost_packets": lost, "lost_share": lost / len(mine), "reordered_packets": 0, "duplicates": 0,
        "one_way_delay_min_ms": delays[0], "one_way_delay_median_ms": delays[len(delays) // 2],
        "one_way_delay_max_ms": delays[-1], "mean_datagram_bytes": sum(datagrams) / len(datagrams),
        "largest_datagram_bytes": max(datagrams), "acks_sent": sum("ACK" in row["frames"] for row in mine),
        "acks_per_data_packet": sum("ACK" in row["frames"] for row in theirs) / data,
        "mean_rate_bps": sum(datagrams) * 8 / last_s,
        "ecn": {"codepoint": "none", "capable_share": 0.0, "ce_arrived": 0, "ce_echoed": 0, "ce_rounds": 0,
                "ce_answered": 0},
    }  # fmt: skip


FINDINGS: list[dict[str, Any]] = [
    {"rule": "ack_loss", "verdict": "no", "title": "ACKs lost", "text": "No ACK was lost.", "evidence": [],
     "plot": None},
    {"rule": "flow_control_limited", "verdict": "not_sure", "title": "Held up by flow control",
     "text": "Not sure: the limits of the transport parameters are not known.", "evidence": [], "plot": None},
    {"rule": "application_limited", "verdict": "not_sure", "title": "Limited by the application",
     "text": "Not sure: the limits of the transport parameters are not known.", "evidence": [], "plot": None},
    {"rule": "slow_start_left_early", "verdict": "yes", "title": "Slow start left early",
     "text": "Slow start ended at 2.10 s, when 300 kB were in flight: 20 % of what the path holds.",
     "evidence": [
         {"what": "first loss", "at_s": 2.1, "until_s": None, "value": 1, "unit": "packets"},
         {"what": "in flight", "at_s": 2.1, "until_s": 3.4, "value": 300000, "unit": "bytes"}],
     "plot": {"kind": "in_flight", "from_s": 1.0, "to_s": 3.0}},
]  # fmt: skip


def write(folder: Path, setting: Setting = _USUAL, files: list[str] | None = None) -> World:
    """Write packets.parquet and analysis.json to `folder`."""
    world = simulate(setting)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(packets(world), folder / "packets.parquet")
    (folder / "analysis.json").write_text(json.dumps(analysis(world, files or ["trace.pcapng"])))
    return world


def stand_in(folder: Path) -> None:
    """Put a bentpipe-trace into `folder` that answers as `_main` does."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bentpipe-trace"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    program.chmod(0o755)


def asked() -> dict[str, Any]:
    """What the stand-in was asked last."""
    return dict(json.loads(Path(os.environ["BENTPIPE_BIN"], ASKED).read_text()))


def _main(arguments: list[str]) -> int:
    """`analyze FILE… [--keylog K] [--qlog FILE]… [--link FILE] -o OUT`: what is in FILE says what happens.
    `qlog …` says what it was told.
    """
    if arguments[0] == "qlog":
        print(*arguments)
        return 1
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["analyze"])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--keylog")
    parser.add_argument("--link", type=Path)
    parser.add_argument("--qlog", action="append")
    parser.add_argument("-o", dest="out", type=Path, required=True)
    parser.add_argument("--progress", action="store_true")
    given = parser.parse_args(arguments)
    if given.progress:
        print("reading 300 1000\nmeasuring 0 1", flush=True)
    content = given.files[0].read_text()
    if content == "no capture":
        print(f"error: {given.files[0]}: not a capture\nhint: pcapng or pcap", file=sys.stderr)
        return 2
    if content == "crash":
        print("thread panicked", file=sys.stderr)
        return 101
    world = write(given.out, files=[str(file) for file in given.files])
    summary = analysis(world, [str(file) for file in given.files])
    if content == "cut":
        summary["errors"] = [f"{given.files[0].name}: cut short at byte 1234"]
    if content == "nothing":
        summary |= {
            "connections": [],
            "errors": ["no connection found: 3 QUIC packets: no secrets (hint: give them)"],
        }
    if content in ("cut", "nothing"):
        summary["undecoded"] = [{"count": 3, "what": "QUIC packets: no secrets", "first_frame": 17}]
    link = json.loads(given.link.read_text()) if given.link else {}
    told = {"link": link, "keylog": given.keylog, "qlog": given.qlog}
    Path(os.environ["BENTPIPE_BIN"], ASKED).write_text(json.dumps(told))
    (given.out / "analysis.json").write_text(json.dumps(summary))
    for error in summary["errors"]:
        print(f"error: {error}", file=sys.stderr)
    return 1 if summary["errors"] else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
