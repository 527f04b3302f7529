"""What a change on the page of `bentpipe explore` costs.

    benches/explore.py [--changes 12] [--smallest]

A page in Chromium, over `sat`, with two senders, moves the slider of the forward queue, again and again. For
1 MB and 10 MiB: from the start of the command to the first plots; from a change until the server has sent
the first trials of both senders, as a program sees it, without a page; and until the page has drawn them.
Medians, and the largest. A busy machine shows in the times.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import settings
from websockets.sync.client import connect
from websockets.typing import Origin

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import open_page

SIZES = ("1MB", "10MiB")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--changes", type=int, default=12, help="of the slider (default 12)")
    arguments = settings.read(parser, changes=2)
    if not any(map(shutil.which, BROWSERS)):
        sys.exit("error: Chromium is not installed (hint: apt install chromium)")
    print("              first plots        to data, ms        drawn, ms")
    print("  transfer   from start, s    median  largest   median  largest")
    for size in SIZES:
        print(measured(size, arguments.changes))


def measured(size: str, changes: int) -> str:
    """A line of the table."""
    command = [sys.executable, "-m", "bentpipe", "explore", "--no-browser", "--seeds", "1"]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        open_page.opened(Path(profile)) as page,
    ):
        page.resize(1400, 1000)
        begin = time.monotonic()
        server = subprocess.Popen(
            [*command, "--workload", f"transfer:{size}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert server.stdout is not None
        try:
            address = server.stdout.readline().split()[1]
            page.open(address)
            page.wait_for("window.bentpipeExplore?.drawn > 0")
            first_s = time.monotonic() - begin
            page.wait_for("window.bentpipeExplore.done > 0")
            drawn = [moved(page, number) for number in range(changes)]
            page.open("about:blank")
            data = to_data(address, changes)
        finally:
            server.terminate()
            server.wait()
    return (
        f"{size:>10} {first_s:>15.2f} {statistics.median(data):>9.0f} {max(data):>8.0f} "
        f"{statistics.median(drawn):>8.0f} {max(drawn):>8.0f}"
    )


def moved(page: open_page.OpenPage, number: int) -> float:
    """Milliseconds from a change of the slider until both senders' plots are drawn."""
    before = page.ask("window.bentpipeExplore.drawn")
    page.ask(f"""(() => {{
        const knobs = [...document.querySelectorAll(".knob")];
        const knob = knobs.find((one) => one.textContent.startsWith("Queue"));
        const range = knob.querySelector("input[type=range]");
        range.value = {150 + 5 * number};
        range.dispatchEvent(new Event("input"));
        range.dispatchEvent(new Event("change"));
    }})()""")
    page.wait_for(f"window.bentpipeExplore.drawn > {before} && window.bentpipeExplore.done > {before}")
    return float(page.ask("window.bentpipeExplore.latency_ms"))


def to_data(address: str, changes: int) -> list[float]:
    """Milliseconds from each change until the first trials of both senders have come."""
    found = []
    origin = "/".join(address.split("/")[:3])
    with connect(f"{address.replace('http', 'ws')}live", origin=Origin(origin), max_size=None) as socket:
        state = json.loads(socket.recv())["offer"]["state"]
        for number in range(1, changes + 1):
            state["settings"] = [f"forward.queue={40 + number} packets"]
            begin = time.monotonic()
            socket.send(json.dumps({"format": 1, "number": number, "state": state}))
            trials = 0
            while (reply := json.loads(socket.recv()))["kind"] != "done":
                trials += reply["kind"] == "trial"
                if reply["kind"] == "trial" and trials == len(state["senders"]):
                    found.append((time.monotonic() - begin) * 1e3)
    return found


if __name__ == "__main__":
    main()
