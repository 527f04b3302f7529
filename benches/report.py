"""How fast the plots of a long trace are drawn and zoomed on the page of a cell, in Chromium.

    benches/report.py [--json] [--bytes 100000000] [--frames 60] [--run RUN] [--smallest]

Without RUN the trace is that of a quinn transfer over `sat`, about 100,000 packets. The page comes from a
server on this machine, so that it can tell what it measured. For a window of the usual height and for one in
which all plots are in view:

- packets, and the time from the navigation to the first canvas of a plot;
- the main thread's time for a frame of zooming, median and 95th percentile: from the beginning of the frame
  to when it was handed to the compositor. 60 frames a second leave 16.7 ms. Half of the frames zoom in on the
  middle of the transfer, half out again;
- the time from a turn of the wheel until all plots in view show the new window: those that do not fit into a
  frame follow in the next ones.

A busy machine shows in the times.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import settings

from bentpipe import report
from bentpipe.analysis import traces

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1400
HEIGHTS = (1000, 4600)  # a usual window, and one that holds all plots
ANSWER_S = 120.0
FRAME_MS = 1000 / 60

PROBE = """<script>
const FRAMES = %d;
const settled = () => new Promise((done) => setTimeout(done, 1500));
/** The main thread's time for one frame after a turn of the wheel, in milliseconds. */
const frame = (canvas, deltaY) => new Promise((done) => {
  let begin;
  requestAnimationFrame(() => (begin = performance.now()));
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, ctrlKey: true, bubbles: true, cancelable: true,
    clientX: box.left + box.width / 2, clientY: box.top + 50 }));
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => done(performance.now() - begin);
    port2.postMessage(0); // a task, and so behind style, layout and paint of this frame
  });
});
const measure = async (canvas, first_plot_ms) => {
  await settled();
  const frames_ms = [];
  for (let i = 0; i < FRAMES; i++) frames_ms.push(await frame(canvas, i < FRAMES / 2 ? -100 : 100));
  await settled();
  const busy = document.querySelector("#trace [aria-busy]");
  const begin = performance.now();
  await frame(canvas, -100);
  while (busy.getAttribute("aria-busy") === "true") await new Promise(requestAnimationFrame);
  const all_plots_ms = performance.now() - begin;
  const plots = document.querySelectorAll("#trace canvas").length;
  const body = JSON.stringify({ first_plot_ms, frames_ms, all_plots_ms, plots });
  fetch("/result", { method: "POST", body });
};
const wait = () => {
  const canvas = document.querySelector("#plot-offset canvas");
  if (canvas) measure(canvas, performance.now());
  else requestAnimationFrame(wait);
};
wait();
</script></body>"""


@dataclass(frozen=True)
class Row:
    """A page in a window of one height."""

    packets: int
    window_height: int
    plots: int  # that were drawn
    first_plot_ms: float
    frame_median_ms: float
    frame_p95_ms: float
    all_plots_ms: float  # after one step


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--bytes", type=int, default=100_000_000, help="size of the transfer")
    parser.add_argument("--frames", type=int, default=60, help="frames of zooming (default 60)")
    parser.add_argument("--run", type=Path, help="a run with a trace, whose first trace is taken")
    arguments = settings.read(parser, bytes=10**6, frames=4)
    chromium = next(filter(None, map(shutil.which, BROWSERS)), None)
    if chromium is None:
        sys.exit("error: Chromium is not installed (hint: apt install chromium)")
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        run = arguments.run or make_run(Path(name) / "run", arguments.bytes)
        report.build(run)
        rows = [measure(run, chromium, height, arguments.frames) for height in HEIGHTS]
    if arguments.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))
    else:
        print("\n".join([HEADING, *map(line, rows), *map(verdict, rows)]))


def make_run(folder: Path, size: int) -> Path:
    """A run of one trial that keeps its trace; SystemExit if it fails."""
    command = [sys.executable, "-m", "bentpipe", "run", "--scenario", "sat", "--client", "quinn"]
    command += ["--server", "quinn", "--iterations", "1", "--seed", "1", "--bytes", str(size)]
    done = subprocess.run([*command, "--trace", "all", "--out", str(folder)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: the transfer failed: {done.stderr or done.stdout}")
    return folder


class Site(SimpleHTTPRequestHandler):
    """The report, with the probe in the pages of cells."""

    def __init__(self, *arguments: Any, probe: str, answers: Queue[Any], **options: Any) -> None:
        self.probe, self.answers = probe, answers
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        if not self.path.startswith("/cells/"):
            return super().do_GET()
        page = Path(self.translate_path(self.path)).read_text().replace("</body>", self.probe).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
        return None

    def do_POST(self) -> None:
        self.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Requests are of no interest."""


def measure(run: Path, chromium: str, height: int, frames: int) -> Row:
    """Opens the page of the first trace and returns what it measured; SystemExit if it does not answer."""
    known = traces.TracedRun.read(run)
    trial = min(file.stem for file in (run / "report/data/trials").iterdir())
    place = page_of(run, trial)
    answers: Queue[Any] = Queue()
    site = partial(Site, probe=PROBE % frames, answers=answers, directory=str(run / "report"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), site)
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/cells/{place}.html#trial={trial}&plot=offset"
    with tempfile.TemporaryDirectory(prefix="bentpipe-chromium-", ignore_cleanup_errors=True) as profile:
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--remote-debugging-port=0",
        ]
        options += [f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        browser = subprocess.Popen([chromium, *options, address], **quiet)  # type: ignore[call-overload]
        try:
            answer = answers.get(timeout=ANSWER_S)
        except Empty:
            sys.exit(f"error: the page did not answer within {ANSWER_S:.0f} s: {address}")
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    times = sorted(answer["frames_ms"])
    return Row(
        packets=traces.of_trial(run / "trials" / trial, known).packets.num_rows,
        window_height=height,
        plots=answer["plots"],
        first_plot_ms=answer["first_plot_ms"],
        frame_median_ms=statistics.median(times),
        frame_p95_ms=times[int(0.95 * (len(times) - 1))],
        all_plots_ms=answer["all_plots_ms"],
    )


def page_of(run: Path, trial: str) -> str:
    """The name of the cell's page that shows a trial."""
    cells = (run / "report/data/cells").iterdir()
    return next(file.stem for file in cells if json.dumps(trial) in file.read_text())


HEADING = """\
  packets   window   plots   first plot   frame of zooming, ms   all plots
            pixels   drawn           ms     median    95 %              ms"""


def line(row: Row) -> str:
    return (
        f"{row.packets:>9} {row.window_height:>8} {row.plots:>7} {row.first_plot_ms:>12.0f} "
        f"{row.frame_median_ms:>10.1f} {row.frame_p95_ms:>7.1f} {row.all_plots_ms:>15.0f}"
    )


def verdict(row: Row) -> str:
    met = "met" if row.frame_p95_ms <= FRAME_MS else "missed"
    return f"window of {row.window_height} pixels: 95 % of frames within {FRAME_MS:.1f} ms: {met}"


if __name__ == "__main__":
    main()
