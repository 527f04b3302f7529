"""The cost of a tunnel (`bentpipe masque`, client and proxy), over loopback, beside traffic without it.

    benches/masque.py [--json] [--seconds 5] [--repeat 3] [--tunnel NAME=VALUE] [--smallest]

`bentpipe perf` with CUBIC and packets of 1400 bytes, up and down, direct and through the tunnel in turns, all
on this machine, one worker and one process of each; the tunnel with congestion control of its own and
without. For each: goodput; CPU seconds of client and proxy per gigabit of what they carried, the least of the
repetitions; and with the larger of these what one core carries when it does nothing else. `--tunnel` sets a
further option of both ends. CPU is what a busy machine leaves comparable; goodput wants cores of its own:
there are four processes.
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

import settings

from bentpipe import paths

TARGET_BPS = 1.5e9  # of a core
GIGABIT = 1e9 / 8  # bytes
COUNTS = (
    "cpu_seconds_total",
    "sent_bytes_total",
    "received_bytes_total",
    "forwarded_bytes_total",
    "received_forwarded_bytes_total",
    "queue_full_datagrams_total",
    "lost_tunnel_packets_total",
)
# Through the tunnel, and beside it.
CARRIED = [count for count in COUNTS if count.endswith("_bytes_total")]


class End:
    """A client or a proxy that runs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for text in process.stderr:
            line = json.loads(text)
            if line["event"] == "started":
                self.port = line["listen"][0].rpartition(":")[2]
                self.metrics_url = f"http://{line['metrics']}/metrics"
                return
        sys.exit("error: an end of the tunnel did not start")

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(self.metrics_url, timeout=60) as answer:
            lines = [line.split() for line in answer.read().decode().splitlines() if line[0] != "#"]
        return {name.removeprefix("bentpipe_masque_"): float(value) for name, value in lines}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print what was measured as JSON")
    parser.add_argument("--seconds", type=float, default=5, help="of each transfer (default 5)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="repetitions (default 3)")
    parser.add_argument(
        "--tunnel", action="append", default=[], metavar="NAME=VALUE", help="an option of both ends"
    )
    arguments = settings.read(parser, seconds=0.5, repeat=1)
    rows = [
        one
        for nested in ("on", "off")
        for one in transfers(arguments, [f"nested={nested}", *arguments.tunnel])
    ]
    print(json.dumps(rows, indent=1) if arguments.json else "\n".join(table(rows)))


def transfers(arguments: argparse.Namespace, options: list[str]) -> list[dict[str, Any]]:
    program = [str(paths.program("bentpipe-perf"))]
    rows = []
    with perf_server(program) as port, tunnel(port, options) as ends:
        for name, words in (("up", []), ("down", ["--reverse"])):
            words = [*words, "--time", str(arguments.seconds)]
            direct, through = [], []
            for _ in range(arguments.repeat):
                direct.append({"goodput_bps": goodput(program, port, words)})
                before = [end.metrics() for end in ends]
                found = {"goodput_bps": goodput(program, ends[0].port, words)}
                for side, one, end in zip(("client", "proxy"), before, ends, strict=True):
                    after = end.metrics()
                    of = {count: after[count] - one[count] for count in COUNTS}
                    carried = sum(of[count] for count in CARRIED)
                    found[f"{side}_cpu_s_per_gbit"] = of["cpu_seconds_total"] / (carried / GIGABIT)
                    found |= {f"{side}_{count}": value for count, value in of.items()}
                through.append(found)
            rows.append(row(f"{name}, {options[0]}", direct, through))
    return rows


def row(name: str, direct: list[dict[str, float]], through: list[dict[str, float]]) -> dict[str, Any]:
    names = ("client_cpu_s_per_gbit", "proxy_cpu_s_per_gbit")
    cpu = {name: min(one[name] for one in through) for name in names}
    return {
        "what": name,
        "direct_bps": max(one["goodput_bps"] for one in direct),
        "through_bps": max(one["goodput_bps"] for one in through),
        **cpu,
        "bps_per_core": 1e9 / max(cpu.values()),
        "runs": through,
    }


@contextlib.contextmanager
def perf_server(program: list[str]) -> Iterator[str]:
    with running([*program, "server", "127.0.0.1:0"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split("127.0.0.1:")[1].split(",")[0]


def goodput(program: list[str], port: str, words: list[str]) -> float:
    command = [*program, "client", "127.0.0.1", "--port", port, "--json", "--cc", "cubic", "--mtu", "1400"]
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, text=True, check=True)
    return float(json.loads(done.stdout)["end"]["goodput_bps"])


@contextlib.contextmanager
def tunnel(port: str, options: list[str]) -> Iterator[tuple[End, End]]:
    """A client whose port leads to a port of loopback, and its proxy."""
    program = str(paths.program("bentpipe-masque"))
    common = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-format", "json"]
    for option in options:
        common += ["--tunnel", option]
    proxy_words = ["--anybody", "--allow", "127.0.0.1:*", "--workers", "1"]
    with running([program, "proxy", *common, *proxy_words], stderr=subprocess.PIPE) as proxy:
        of_proxy = End(proxy)
        words = ["--proxy", f"127.0.0.1:{of_proxy.port}", "--target", f"127.0.0.1:{port}", "--no-verify"]
        with running([program, "client", *common, *words], stderr=subprocess.PIPE) as client:
            yield End(client), of_proxy


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
            f"{one['what']:<16} {one['through_bps'] / 1e9:.2f} Gbit/s through the tunnel, "
            f"{one['direct_bps'] / 1e9:.2f} without; CPU s per Gbit: client "
            f"{one['client_cpu_s_per_gbit']:.2f}, proxy {one['proxy_cpu_s_per_gbit']:.2f}"
        )
        met = "met" if one["bps_per_core"] >= TARGET_BPS else "missed"
        per_core = f"{one['bps_per_core'] / 1e9:.2f} Gbit/s, at least {TARGET_BPS / 1e9:g}"
        yield f"  a core of either end carries {per_core}: {met}"


if __name__ == "__main__":
    main()
