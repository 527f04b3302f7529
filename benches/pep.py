"""The cost of a proxy (`bentpipe pep`), over loopback, beside the same traffic without it.

    benches/pep.py [--json] [--bytes 1000000000] [--repeat 3] [--requests 200000] [--part NAME] [--smallest]

One worker, one process of each, all on this machine, direct and through the proxy in turns:

transfer  `bentpipe perf`, up and down: goodput; CPU seconds of the proxy per GB, the least of the
          repetitions, and with it what one core carries when it does nothing else; that beside perf's own,
          sender and receiver together, since a proxy receives and sends.
latency   one request of 32 bytes after the other on streams of their own, echoed: the percentiles with the
          proxy less those without, the least of the repetitions. In a virtual machine also while its
          processors are kept awake, as in `bentpipe run --testbed emu`: a thread that sleeps wakes late.
hold      1,000 connections open at once, each with a request when opened and one when all are there.
short     10,000 connections, as many a minute, each for one request.
requests  `--requests` requests on 10 connections; the proxy's memory after a tenth of them, and after all.

Load comes from `benches/noq-bulk`, which is built when it is first needed. CPU is what a busy machine leaves
comparable; goodput and latency want cores of their own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import members
import settings

from bentpipe import paths
from bentpipe.execution import awake

PARTS = ("transfer", "latency", "hold", "short", "requests")
TARGET_BPS = 1.5e9  # of a core
TARGET_SHARE = 0.5  # of perf's bytes per CPU second
TARGET_ADDED_MS = 0.2
A_MINUTE = 10_000  # connections of `short`
NO_LIMIT = 10**6  # connections of the one client: more than any part opens


class Proxy:
    """A proxy that runs, with one worker."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for text in process.stderr:
            line = json.loads(text)
            if line["event"] == "started":
                self.port = line["listen"][0].rpartition(":")[2]
                self.metrics_url = f"http://{line['metrics']}/metrics"
                return
        sys.exit("error: the proxy did not start")

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(self.metrics_url, timeout=60) as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if line[0] != "#"]
        return {name.removeprefix("bentpipe_pep_"): float(value) for name, value in lines}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--bytes", type=int, default=10**9, help="of each transfer (default 10^9)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    parser.add_argument("--requests", type=int, default=200_000, metavar="N", help="(default 200000)")
    parser.add_argument("--pings", type=int, default=3000, metavar="N", help="of latency (default 3000)")
    parser.add_argument("--held", type=int, default=1000, metavar="N", help="connections (default 1000)")
    parser.add_argument("--short", type=int, default=A_MINUTE, metavar="N", help="(default 10000)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; can be repeated")
    arguments = settings.read(parser, bytes=10**7, repeat=1, requests=1000, pings=100, held=50, short=100)
    parts = arguments.part or PARTS
    found: dict[str, Any] = {}
    if "transfer" in parts:
        found["transfer"] = transfers(arguments.bytes, arguments.repeat)
    if set(parts) - {"transfer"}:
        found |= loads([part for part in parts if part != "transfer"], arguments)
    print(json.dumps(found, indent=1) if arguments.json else "\n".join(table(found)))


def transfers(size: int, repeat: int) -> list[dict[str, Any]]:
    program = [str(paths.program("bentpipe-perf"))]
    rows = []
    with perf_server(program) as port, proxy(port) as between:
        for name, options in (("up", []), ("down", ["--reverse"])):
            direct, through = [], []
            for _ in range(repeat):
                direct.append(perf(program, port, size, options))
                before = between.metrics()["cpu_seconds_total"]
                through.append(perf(program, between.port, size, options))
                through[-1]["cpu_proxy_s"] = between.metrics()["cpu_seconds_total"] - before
            rows.append(transfer_row(name, direct, through, size))
    return rows


def transfer_row(
    name: str, direct: list[dict[str, float]], through: list[dict[str, float]], size: int
) -> dict[str, Any]:
    gigabytes = size / 1e9
    own = min(one["cpu_client_s"] + one["cpu_server_s"] for one in direct) / gigabytes
    proxys = min(one["cpu_proxy_s"] for one in through) / gigabytes
    return {
        "direction": name,
        "direct_bps": max(one["goodput_bps"] for one in direct),
        "through_bps": max(one["goodput_bps"] for one in through),
        "perf_cpu_s_per_gb": own,
        "proxy_cpu_s_per_gb": proxys,
        "proxy_bps_per_core": 8e9 / proxys,
        "share_of_perf": own / proxys,
    }


@contextlib.contextmanager
def perf_server(program: list[str]) -> Iterator[str]:
    with running([*program, "server", "127.0.0.1:0"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split("127.0.0.1:")[1].split(",")[0]


def perf(program: list[str], port: str, size: int, options: list[str]) -> dict[str, float]:
    command = [*program, "client", "127.0.0.1", "--port", port, "--bytes", str(size), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    end = json.loads(done.stdout)["end"]
    return {name: end[name] for name in ("goodput_bps", "cpu_client_s", "cpu_server_s")}


def loads(parts: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    program = members.build("bentpipe-noq-bulk")
    found: dict[str, Any] = {}
    with running([program, "echo"], stdout=subprocess.PIPE) as echo:
        assert echo.stdout is not None
        port = echo.stdout.readline().strip()
        if "latency" in parts:
            found["latency"] = latency(program, port, arguments)
            if awake.is_virtual_machine():
                with awake.kept_awake():
                    found["latency_awake"] = latency(program, port, arguments)
        with proxy(port) as between:
            if "hold" in parts:
                found["hold"] = measured(between, [program, "hold", between.port, str(arguments.held)])
            if "short" in parts:
                words = [program, "short", between.port, str(arguments.short), str(A_MINUTE)]
                found["short"] = measured(between, words)
        if "requests" in parts:
            with proxy(port) as between:
                some, all_of_them = arguments.requests // 10, arguments.requests - arguments.requests // 10
                words = [program, "requests", between.port, "10"]
                first = measured(between, [*words, str(some)])
                found["requests"] = measured(between, [*words, str(all_of_them)])
                found["requests"]["rss_after_a_tenth_bytes"] = first["rss_bytes"]
    return found


def measured(between: Proxy, command: list[str]) -> dict[str, Any]:
    """The results of the load, and the proxy's resources for it."""
    before = between.metrics()["cpu_seconds_total"]
    found = dict(say(command))
    after = between.metrics()
    found["cpu_proxy_s"] = after["cpu_seconds_total"] - before
    found["rss_bytes"] = int(after["resident_memory_bytes"])
    return found


def latency(program: str, port: str, arguments: argparse.Namespace) -> dict[str, Any]:
    direct, through = [], []
    with proxy(port) as between:
        for _ in range(arguments.repeat):
            direct.append(say([program, "ping", port, str(arguments.pings), "1000"]))
            through.append(say([program, "ping", between.port, str(arguments.pings), "1000"]))
    names = ("p50_ms", "p90_ms", "p99_ms")
    best = {side: {name: min(one[name] for one in runs) for name in names}
            for side, runs in (("direct", direct), ("through", through))}  # fmt: skip
    added = {name: best["through"][name] - best["direct"][name] for name in names}
    return {**best, "added": added}


def say(command: list[str]) -> dict[str, float]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


@contextlib.contextmanager
def proxy(port: str) -> Iterator[Proxy]:
    command = [str(paths.program("bentpipe-pep")), "--listen", "127.0.0.1:0", "--workers", "1"]
    command += ["--next-hop", f"127.0.0.1:{port}", "--no-verify", "--metrics", "127.0.0.1:0"]
    # A line for each of thousands of connections is not what is measured.
    command += ["--log-format", "json", "--set", f"limits.connections-per-client={NO_LIMIT}"]
    with running(command, stderr=subprocess.PIPE) as process:
        found = Proxy(process)
        assert process.stderr is not None
        drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
        try:
            yield found
        finally:
            process.terminate()
            process.wait()
            drain.wait()


@contextlib.contextmanager
def running(command: list[str], **pipes: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def table(found: dict[str, Any]) -> Iterator[str]:
    for row in found.get("transfer", []):
        yield (
            f"transfer {row['direction']:<5} {row['through_bps'] / 1e9:.2f} Gbit/s through the proxy, "
            f"{row['direct_bps'] / 1e9:.2f} without; CPU s per GB: proxy {row['proxy_cpu_s_per_gb']:.2f}, "
            f"perf {row['perf_cpu_s_per_gb']:.2f}"
        )
        yield verdict(
            f"  a core of the proxy carries {row['proxy_bps_per_core'] / 1e9:.2f} Gbit/s, at least "
            f"{TARGET_BPS / 1e9:g}",
            row["proxy_bps_per_core"] >= TARGET_BPS,
        )
        yield verdict(
            f"  {row['share_of_perf']:.2f} of perf's bytes per CPU second, at least {TARGET_SHARE:g}",
            row["share_of_perf"] >= TARGET_SHARE,
        )
    for name, title in (("latency", "latency (ms)"), ("latency_awake", "  kept awake")):
        if name in found:
            yield f"{title:<12}     p50    p90    p99"
            for side in ("direct", "through", "added"):
                yield f"  {side:<10}" + "".join(f" {value:>6.3f}" for value in found[name][side].values())
            added = found[name]["added"]["p99_ms"]
            yield verdict(f"  added p99 {added:.3f} ms, below {TARGET_ADDED_MS:g}", added < TARGET_ADDED_MS)
    if "hold" in found:
        row = found["hold"]
        text = f"hold      {row['held']} of {row['count']} connections at once, after {row['opened_s']:.1f} s"
        yield verdict(f"{text}; proxy: {memory(row)}", row["held"] == row["count"] and not row["failed"])
    if "short" in found:
        row = found["short"]
        text = f"short     {row['done']} of {row['count']} connections in {row['seconds']:.1f} s"
        text += f", p99 {row['p99_ms']:.0f} ms"
        yield verdict(f"{text}; proxy: {memory(row)}", row["done"] == row["count"] and row["seconds"] < 61)
    if "requests" in found:
        row = found["requests"]
        grown = (row["rss_bytes"] - row["rss_after_a_tenth_bytes"]) / 2**20
        text = f"requests  {row['count']} in {row['seconds']:.1f} s"
        yield f"{text}; proxy: {memory(row)}, {grown:+.1f} MiB since the first tenth"


def memory(row: dict[str, Any]) -> str:
    return f"{row['cpu_proxy_s']:.1f} s of CPU, {row['rss_bytes'] / 2**20:.0f} MiB"


def verdict(text: str, met: bool) -> str:
    return f"{text}: {'met' if met else 'missed'}"


if __name__ == "__main__":
    main()
