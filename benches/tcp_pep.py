"""The cost of a proxy for TCP (`bentpipe tcp-pep`), over loopback, beside the same traffic without it.

    benches/tcp_pep.py [--json] [--seconds 5] [--repeat 3] [--smallest]

One worker, `iperf3` at both ends, all on this machine, direct and through the proxy in turns, up and down:
goodput; CPU seconds of the proxy per GB, the least of the repetitions, and with it what one core carries
when it does nothing else; that beside iperf3's own, sender and receiver together, since a proxy receives
and sends. CPU is what a busy machine leaves comparable; goodput wants cores of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import settings

from bentpipe import paths

TARGET_BPS = 2e9  # of a core


class Proxy:
    """A proxy that runs, with one worker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for text in process.stderr:
            line = json.loads(text)
            if line["event"] == "started":
                self.port = int(line["listen"][0].rpartition(":")[2])
                self.metrics_url = f"http://{line['metrics']}/metrics"
                return
        sys.exit("error: the proxy did not start")

    def cpu_s(self) -> float:
        with urllib.request.urlopen(self.metrics_url, timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        (value,) = (
            line.split()[1] for line in lines if line.startswith("bentpipe_tcp_pep_cpu_seconds_total")
        )
        return float(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--seconds", type=int, default=5, help="of each transfer (default 5)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    arguments = settings.read(parser, seconds=1, repeat=1)
    if shutil.which("iperf3") is None:
        sys.exit("error: iperf3 is not on the PATH\nhint: apt install iperf3")
    rows = []
    with iperf3_server() as port, proxy(port) as between:
        for direction, options in (("up", []), ("down", ["--reverse"])):
            direct, through = [], []
            for _ in range(arguments.repeat):
                direct.append(iperf3(port, arguments.seconds, options))
                before = between.cpu_s()
                through.append(iperf3(between.port, arguments.seconds, options))
                through[-1]["cpu_proxy_s"] = between.cpu_s() - before
            rows.append(row(direction, direct, through))
    print(json.dumps(rows, indent=1) if arguments.json else "\n".join(table(rows)))


def row(direction: str, direct: list[dict[str, float]], through: list[dict[str, float]]) -> dict[str, Any]:
    own = min(one["cpu_s"] / one["bytes"] for one in direct)
    proxys = min(one["cpu_proxy_s"] / one["bytes"] for one in through)
    return {
        "direction": direction,
        "direct_bps": max(one["bps"] for one in direct),
        "through_bps": max(one["bps"] for one in through),
        "iperf3_cpu_s_per_gb": own * 1e9,
        "proxy_cpu_s_per_gb": proxys * 1e9,
        "proxy_bps_per_core": 8 / proxys,
        "share_of_iperf3": own / proxys,
    }


def iperf3(port: int, seconds: int, options: list[str]) -> dict[str, float]:
    command = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", str(seconds), "--json", *options]
    end = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)["end"]
    received, cpu = end["sum_received"], end["cpu_utilization_percent"]
    busy = (cpu["host_total"] + cpu["remote_total"]) / 100
    return {
        "bps": received["bits_per_second"],
        "bytes": received["bytes"],
        "cpu_s": busy * received["seconds"],
    }


@contextlib.contextmanager
def iperf3_server() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = ["iperf3", "-s", "-B", "127.0.0.1", "-p", str(port), "--forceflush"]
    with running(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        while "listening" not in server.stdout.readline():
            pass
        yield port


@contextlib.contextmanager
def proxy(port: int) -> Iterator[Proxy]:
    command = [str(paths.program("bentpipe-tcp-pep")), "--listen", "127.0.0.1:0", "--workers", "1"]
    command += ["--next-hop", f"127.0.0.1:{port}", "--metrics", "127.0.0.1:0", "--log-format", "json"]
    with running(command, stderr=subprocess.PIPE) as process:
        yield Proxy(process)


@contextlib.contextmanager
def running(command: list[str], **pipes: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    for one in rows:
        yield (
            f"{one['direction']:<5} {one['through_bps'] / 1e9:.1f} Gbit/s through the proxy, "
            f"{one['direct_bps'] / 1e9:.1f} without; CPU s per GB: proxy {one['proxy_cpu_s_per_gb']:.2f}, "
            f"iperf3 {one['iperf3_cpu_s_per_gb']:.2f}"
        )
        met = "met" if one["proxy_bps_per_core"] >= TARGET_BPS else "missed"
        yield (
            f"  a core of the proxy carries {one['proxy_bps_per_core'] / 1e9:.1f} Gbit/s, at least "
            f"{TARGET_BPS / 1e9:g}: {met}; {one['share_of_iperf3']:.2f} of iperf3's bytes per CPU second"
        )


if __name__ == "__main__":
    main()
