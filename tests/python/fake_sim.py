#!/usr/bin/env python3
"""A stand-in for `bentpipe-sim`, for tests of what is around it: instant results that depend on the seed
alone.

`FAKE_SIM` holds what it shall do, as words: `slow` waits for ever in trials of the server `toy:speed=slow`,
`flaky` fails every second iteration until the file `FAKE_SIM_HEALED` exists, `full` reports a full disk,
`full-client` and `full-go-client` have a client fail for it, `broken` exits with 1, `nonsense` prints no
JSON, `slower` has a tenth less goodput, `unsupported` and `one-flight` end that way; `jobs` writes each job
as a line to `FAKE_SIM_LOG`; `stuck` waits for ever, and says its process and its parent's there, but for
one that begins when `FAKE_SIM_LOG` is there already.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

SOURCES = [
    f"{way}_source_{what}"
    for way in ("forward", "return")
    for what in ("packets", "bytes", "delivered_bytes", "lost")
]
QUEUEING = [f"{way}_queueing_{what}_ms" for way in ("forward", "return") for what in ("median", "p99")]
REQUESTS = [
    f"return_{what}"
    for what in (
        "capacity_requests",
        "capacity_requests_lost",
        "capacity_requests_denied",
        "capacity_requests_collided",
        "grant_wait_mean_ms",
        "grant_wait_max_ms",
    )
]
HOW = os.environ.get("FAKE_SIM", "").split()


def scenario(file: str, *settings: str) -> None:
    values = tomllib.loads(Path(file).read_text())
    if any("bad" in setting for setting in settings):
        given = " ".join(settings)
        print(f"error: {file} with {given}: bad: no such key", file=sys.stderr)
        sys.exit(2)
    summary = {
        "name": Path(file).stem, "title": values["title"], "source": "", "notes": "", "rtt_ms": 600.0,
        "forward_rate_bps": 20_000_000, "return_rate_bps": 2_000_000, "forward_queue": "25 packets",
        "return_queue": "25 packets", "forward_loss": "none", "return_loss": "none", "timeout_s": 120,
        "forward_rate_lowest_bps": None, "return_rate_lowest_bps": None, "forward_rate_changes": None,
        "return_rate_changes": None, "forward_delay": None, "return_delay": None,
    }  # fmt: skip
    print(
        json.dumps(
            {
                "scenario": {"name": Path(file).stem, "set": list(settings[1::2])},
                "summary": summary,
                "courses": {},
                "interruptions": {},
                "path": {},
            }
        )
    )


def trial(job: dict[str, Any]) -> None:
    if "log" in HOW:
        with Path(os.environ["FAKE_SIM_LOG"]).open("a") as log:
            log.write(f"{Path(job['folder']).name} trace={job['trace']}\n")
    if "jobs" in HOW:
        with Path(os.environ["FAKE_SIM_LOG"]).open("a") as log:
            log.write(f"{json.dumps(job)}\n")
    if "slow" in HOW and job["flows"][0]["server"]["name"] == "toy:speed=slow":
        time.sleep(3600)
    if "stuck" in HOW and not Path(os.environ["FAKE_SIM_LOG"]).exists():
        Path(os.environ["FAKE_SIM_LOG"]).write_text(f"{os.getpid()} {os.getppid()}\n")
        time.sleep(3600)
    if "full" in HOW:
        sys.exit("error: trace.pcapng: No space left on device (os error 28)")
    if "full-client" in HOW or "full-go-client" in HOW:
        said = "the client ended: exit status: 1; it said: [Errno 28] No space left on device"
        said = said.lower() if "full-go-client" in HOW else said
        print(json.dumps(result(job) | {"outcome": "crashed", "detail": said}))
        return
    if "unsupported" in HOW:
        print(json.dumps(result(job | {"trace": False}) | {"outcome": "unsupported", "goodput_bps": None}))
        return
    if "one-flight" in HOW:
        print(json.dumps(result(job) | {"goodput_bps": None, "efficiency": None}))
        return
    if "broken" in HOW:
        sys.exit("error: something went wrong inside")
    if "nonsense" in HOW:
        print("hello")
        return
    print(json.dumps(result(job)))


def result(job: dict[str, Any]) -> dict[str, Any]:
    seed = int(job["seed"], 16)
    flaky = "flaky" in HOW and seed % 2 == 0 and not Path(os.environ["FAKE_SIM_HEALED"]).exists()
    goodput = (10e6 + seed % 10**6) * (0.9 if "slower" in HOW else 1)
    if job["trace"]:
        folder = Path(job["folder"])
        folder.mkdir(parents=True)
        (folder / "trace.pcapng").write_bytes(b"trace")
    size = sum(int(request.lstrip("/").partition("-")[0]) for request in job["flows"][0]["requests"])
    transfer_s = 8 * size / goodput
    return {
        "outcome": "crashed" if flaky else "ok", "detail": "the server ended" if flaky else "",
        "transport": "quic", "alpn": "hq-interop", "measured_from": "wire",
        "undecoded_packets": 0,
        "retransmitted_share": 0.01, "acks_per_data_packet": 0.5,
        "mean_packet_bytes": 1400.0, "largest_packet_bytes": 1480, "return_rate_bps": 1e5,
        "rtt_min_ms": 600.3, "rtt_median_ms": 601.0, "rtt_max_ms": 612.0,
        "in_flight_max_bytes": 10**6, "findings": [],
        "forward_ect": "none", "forward_ect_share": 0.0, "forward_ce_echoed": 0, "forward_ce_rounds": 0,
        "forward_ce_answered": 0, "return_ect": "none", "return_ect_share": 0.0, "return_ce_echoed": 0,
        "return_ce_rounds": 0, "return_ce_answered": 0,
        "handshake_s": 0.6, "ttfb_s": 1.2, "completion_s": 1.2 + transfer_s, "transfer_s": transfer_s,
        "runner_transfer_s": 0.6 + transfer_s,
        "goodput_bps": None if flaky else goodput, "efficiency": None if flaky else goodput / 20e6,
        "first_mb_s": [1.2 + 8e6 * mark / goodput for mark in (1, 2, 5, 10, 20) if mark * 10**6 <= size],
        "rs_s": None, "fcp_s": None, "lcp_s": None, "speed_index_s": None, "dcl_s": None,
        "plt_s": None, "requests_at_once": None,
        "startup_s": None, "stalls": None, "stalled_s": None, "media_rate_bps": None, "rate_changes": None,
        "latency_s": None, "frames": None, "late_frames": None, "lost_frames": None,
        "in_time_share": None,
        "frame_age_median_s": None, "frame_age_p95_s": None, "frame_age_p99_s": None, "frame_age_max_s": None,
        "connections": 1, "resumed": None, "zero_rtt_bytes": None,
        "limit_s": 5.6, "saved_round_trips": 0, "share_of_limit": None if flaky else 0.6,
        "virtual_s": 2.0 + transfer_s,
        "wall_s": 0.01, "cpu_client_s": 0.01, "cpu_server_s": 0.01, "cpu_sim_s": 0.001, "epochs": 30,
        "memory_client_bytes": 1000, "memory_server_bytes": 1000,
        "forward_packets": 100, "forward_bytes": 120000, "forward_queue_drops": 0, "forward_losses": 0,
        "return_packets": 50, "return_bytes": 5000, "return_queue_drops": 0, "return_losses": 0,
        "forward_marked": 0, "return_marked": 0, **dict.fromkeys(SOURCES), **dict.fromkeys(QUEUEING, 1.5),
        "forward_reordered": 0, "forward_reorder_extent": 0, "forward_reorder_extent_mean": None,
        "return_reordered": 0, "return_reorder_extent": 0, "return_reorder_extent_mean": None,
        "forward_duplicated": 0, "return_duplicated": 0, **dict.fromkeys(REQUESTS),
        "client_version": "toy 1", "server_version": "toy 1", "client_driver": "d", "server_driver": "d",
        "client_statistics": {}, "server_statistics": {},
        "received_step_s": 0.1, "received_bytes": [1, 2, 3], "in_order_bytes": [1, 1, 3],
        "jain_index": None, "flows": [], "proxies": [], "hops": [], "paths": [], "tunnel": None,
        "packet_log_sha256": None,
        "packet_log_hash": hashlib.sha256(f"{job['seed']}{goodput}".encode()).hexdigest(),
        "release_error_p50_ms": None, "release_error_p99_ms": None, "release_error_p999_ms": None,
        "release_error_max_ms": None, "release_error_limit_ms": None, "kernel_drops": None,
        "stray_packets": None, "cpu_pressure": None,
        "began": None, "tries": None, "clock_offset_ms": None, "clock_error_ms": None,
        "one_way_difference_ms": None,
        "probe_rtt_ms": None, "probe_loss_share": None, "link_statistics": {}, "weather": {},
    }  # fmt: skip


if sys.argv[1] == "scenario":
    scenario(*sys.argv[2:])
else:
    trial(json.load(sys.stdin))
