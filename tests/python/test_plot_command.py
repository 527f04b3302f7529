"""`bentpipe plot`: every kind in every format opens, fits a paper, and is the same each time."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import fake_run
import fake_trace
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conftest import Command
from fake_trace import Setting
from PIL import Image

from bentpipe.analysis import traces
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.plots import canvas, figures, others, series
from bentpipe.analysis.plots.canvas import FigureStyle
from bentpipe.cli.plot import FORMATS as OFFERED_FORMATS
from bentpipe.cli.plot import KINDS as OFFERED_KINDS
from bentpipe.errors import BentpipeError
from bentpipe.runs import trial_files

POINTS_PER_MM = 72 / 25.4
WIDTH_MM, HEIGHT_MM = 85, 60
LINK = LinkFacts(20_000_000, 2_000_000, 600.0, 37_500, 37_500, None, None, 1500, 6.0, 1_000_000)


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_trace.stand_in(tmp_path / "bin")
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def transfer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An analysis of a transfer with losses."""
    folder = tmp_path_factory.mktemp("transfer")
    fake_trace.write(folder, Setting(loss=0.01))
    return folder


def subject(folder: Path, side: str = "server") -> figures.FigureSubject:
    analysis = traces.of_folder(folder)
    packets = series.of_connection(analysis.packets, 0)
    assert side in ("client", "server")
    return figures.FigureSubject(packets, analysis.connection(), LINK, "forward", side, "made up")  # type: ignore[arg-type]


def test_the_command_offers_what_can_be_drawn() -> None:
    assert tuple(figures.KINDS) == OFFERED_KINDS
    assert canvas.FORMATS == OFFERED_FORMATS


@pytest.mark.parametrize("kind", OFFERED_KINDS)
def test_a_pdf_is_one_column_wide_with_its_fonts_inside(bentpipe: Command, transfer: Path, kind: str) -> None:
    done = bentpipe("plot", transfer, "--kind", kind)
    assert (done.code, done.out) == (0, f"{kind}.pdf\n")
    data = Path(f"{kind}.pdf").read_bytes()
    assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
    box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+) ?\]", data)
    assert box is not None
    assert [float(number) for number in box.groups()] == pytest.approx(
        [WIDTH_MM * POINTS_PER_MM, HEIGHT_MM * POINTS_PER_MM], abs=0.5
    )
    assert b"/FontFile2" in data and b"/Type3" not in data
    assert b"CreationDate" not in data


def test_an_svg_parses_and_needs_no_font(bentpipe: Command, transfer: Path) -> None:
    assert bentpipe("plot", transfer, "--format", "svg").code == 0
    root = ET.parse("offset.svg").getroot()
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(WIDTH_MM * POINTS_PER_MM, abs=0.5)
    names = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert "path" in names and "text" not in names and "date" not in names


def test_a_png_decodes_and_shows_something(bentpipe: Command, transfer: Path) -> None:
    assert bentpipe("plot", transfer, "-o", "out.png").code == 0
    with Image.open("out.png") as image:
        assert image.size == (round(WIDTH_MM / 25.4 * 600 - 0.5), round(HEIGHT_MM / 25.4 * 600 - 0.5))
        colours = image.convert("RGB").getcolors(2**24)
    assert (0, 0x72, 0xB2) in {colour for _, colour in colours or ()}, "nothing has the colour of the data"


def test_the_same_packets_give_the_same_bytes(transfer: Path) -> None:
    draw = "from sys import argv; from bentpipe.cli import invoke; "
    draw += "exit(max([invoke(['plot', argv[1], '-o', out]) for out in argv[2:]]))"
    written = []
    for seed in ("1", "2"):
        files = [f"{seed}.{format_}" for format_ in OFFERED_FORMATS]
        command = [sys.executable, "-c", draw, str(transfer), *files]
        subprocess.run(command, check=True, env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True)
        written.append([Path(file).read_bytes() for file in files])
    assert written[0] == written[1]


def test_a_pdf_of_a_hundred_thousand_packets_is_small(bentpipe: Command, transfer: Path) -> None:
    once = traces.of_folder(transfer).packets
    copies = -(-100_000 // once.num_rows)
    large = Path("large")
    large.mkdir()
    pq.write_table(pa.concat_tables(later(once, copy) for copy in range(copies)), large / trial_files.PACKETS)
    (large / trial_files.SUMMARY).write_bytes((transfer / trial_files.SUMMARY).read_bytes())
    for kind in ("in_flight", "acks"):  # lines; strokes and dots
        assert bentpipe("plot", large, "--kind", kind).code == 0
        assert Path(f"{kind}.pdf").stat().st_size < 2_000_000, kind


def later(packets: pa.Table, copy: int) -> pa.Table:
    """The same packets, further on in time, in their stream and in number."""
    shifts = {"sent_s": 6.0, "received_s": 6.0, "acked_s": 6.0, "number": packets.num_rows}
    for name, by in shifts.items():
        moved = pc.add(packets[name], pa.scalar(by * copy, packets[name].type))
        packets = packets.set_column(packets.schema.get_field_index(name), name, moved)
    of_lists = {"stream_offset": 1_000_000, "ack_first": packets.num_rows, "ack_last": packets.num_rows}
    for name, by in of_lists.items():
        lists: Any = packets[name].combine_chunks()
        moved = pa.ListArray.from_arrays(lists.offsets, pc.add(lists.values, by * copy))
        packets = packets.set_column(packets.schema.get_field_index(name), name, moved)
    return packets


@pytest.mark.parametrize(
    ("kind", "side", "labels"),
    [
        (
            "offset",
            "server",
            {"first transmission", "retransmission", "lost", "acknowledged", "ideal sender"},
        ),
        ("offset", "client", {"first transmission", "retransmission", "received", "ideal sender"}),
        (
            "number",
            "server",
            {"forward", "return", "lost", "Initial, own numbers", "Handshake, own numbers"},
        ),
        ("rate", "server", {"IP packets", "new stream bytes", "bottleneck"}),
        ("in_flight", "server", {"in flight", "congestion window", "BDP", "BDP + queue"}),
        ("rtt", "server", {"RTT sample", "least RTT"}),
        ("acks", "client", {"acknowledged", "gap", "packet received"}),
        ("acks", "server", {"acknowledged", "gap", "packet sent"}),
    ],
)
def test_the_legend_names_what_is_there(transfer: Path, kind: str, side: str, labels: set[str]) -> None:
    with canvas.style():
        drawn = figures.draw(kind, subject(transfer, side), FigureStyle())
    (legend,) = drawn.legends
    assert {text.get_text() for text in legend.get_texts()} == labels
    drawn.draw_without_rendering()
    below = legend.get_window_extent().y0
    assert all(axes.get_window_extent().y1 <= below for axes in drawn.axes), "the legend covers data"


def test_a_window_of_time_is_filled(transfer: Path) -> None:
    with canvas.style():
        drawn = figures.draw("offset", subject(transfer), FigureStyle(from_s=2.5, to_s=3.5))
    (axes,) = drawn.axes
    assert axes.get_xlim() == (2.5, 3.5)
    sent = series.offset(subject(transfer).packets, "forward")
    inside = sent.start[(sent.time_s >= 2.5) & (sent.time_s <= 3.5)]
    low, high = axes.get_ylim()
    assert 0 < inside.min() - low < inside.max() / 2 and inside.max() < high < inside.max() * 1.5


def test_iterations_without_a_trace_are_shown_by_their_records(bentpipe: Command) -> None:
    (traced, *_) = fake_run.write(Path("run"), stacks=("noq",), iterations=3)
    folder = Path("run/trials") / traced.trial
    fake_trace.write(folder)
    (folder / trial_files.TRACE).write_text("whole")
    behind = list(others.curves(traces.of_trial(folder), "forward", "server"))
    assert len(behind) == 2
    assert all(course.bytes[-1] > 0.9 * fake_run.SIZE for course in behind)
    arrived = list(others.curves(traces.of_trial(folder), "forward", "client"))
    rtt_s = fake_run.LINKS[traced.scenario].rtt_s
    assert arrived[0].time_s[0] - behind[0].time_s[0] == pytest.approx(rtt_s / 2)

    assert bentpipe("plot", folder, "-o", "with.svg", "--title").code == 0
    assert bentpipe("plot", folder, "-o", "without.svg", "--title", "--no-others").code == 0
    assert Path("with.svg").read_bytes() != Path("without.svg").read_bytes()
    assert f"{traced.scenario}: client noq, server noq, iteration 1" in Path("with.svg").read_text()


def test_iterations_with_a_trace_are_shown_by_it(transfer: Path) -> None:
    first, second, _ = fake_run.write(Path("run"), stacks=("noq",), iterations=3)[:3]
    for record in (first, second):
        folder = Path("run/trials") / record.trial
        fake_trace.write(folder)
        (folder / trial_files.TRACE).write_text("whole")
    behind = list(others.curves(traces.of_trial(Path("run/trials") / first.trial), "forward", "server"))
    assert behind[0].bytes[-1] == 1_000_000
    assert len(behind) == 2


def test_a_capture_is_analysed_and_drawn(bentpipe: Command) -> None:
    Path("a.pcap").write_text("whole")
    done = bentpipe("plot", "a.pcap", "--kind", "rtt", "--kind", "size", "--kind", "rtt")
    assert (done.code, done.out) == (0, "rtt.pdf\nsize.pdf\n")
    assert {path.name for path in Path().iterdir()} == {"a.pcap", "bin", "rtt.pdf", "size.pdf"}


def test_what_has_no_packets_is_left_out_of_all(bentpipe: Command, transfer: Path) -> None:
    bare = Path("bare")
    bare.mkdir()
    (bare / trial_files.SUMMARY).write_bytes((transfer / trial_files.SUMMARY).read_bytes())
    packets = traces.of_folder(transfer).packets
    column = packets.schema.get_field_index("rtt_ms")
    nothing = pa.nulls(packets.num_rows, pa.float64())
    pq.write_table(packets.set_column(column, "rtt_ms", nothing), bare / trial_files.PACKETS)
    done = bentpipe("plot", bare, "--kind", "all")
    assert done.code == 0 and "rtt.pdf" not in done.out and "note: rtt: there is nothing to draw" in done.err
    done = bentpipe("plot", bare, "--kind", "rtt")
    assert done.code == 1 and "error: rtt: there is nothing to draw" in done.err
    pq.write_table(packets.slice(0, 0), bare / trial_files.PACKETS)
    done = bentpipe("plot", bare, "--kind", "all")
    assert done.code == 1 and "error: there is nothing to draw" in done.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["-o", "a.jpg"], 'error: -o: a.jpg: unknown ending ".jpg"\nhint: did you mean'),
        (["-o", "figure"], "error: -o: figure: no ending\nhint: endings: pdf, png, svg; write figure.pdf"),
        (["--kind", "all", "-o", "a.pdf"], "there are 9 kinds of figures\nhint: leave -o out"),
        (["--kind", "offsets"], "'offsets' is not one of 'offset'"),
        (["--from", "3", "--to", "2"], "error: --to: 2 s is not behind --from 3 s"),
        (
            ["--from", "1000", "--kind", "all"],
            "error: --from: 1000 s is behind the last packet\nhint: it is at ",
        ),
        (["--width", "5"], "5.0 is not in the range 60<=x<=420"),
        (["--height", "1000"], "1000.0 is not in the range 50<=x<=420"),
        (["--width", "nan"], "error: Invalid value for '--width': nan is not a finite number."),
        (["--from", "nan"], "error: Invalid value for '--from': nan is not a finite number."),
        (["--from", "inf"], "error: Invalid value for '--from': inf is not a finite number."),
        (["-o", "."], "error: -o: . is a folder\nhint: name a file in it, as in offset.pdf"),
        (["-o", "nowhere/a.pdf"], "error: -o: nowhere/a.pdf: there is no folder nowhere"),
        (["-o", "a.png", "--format", "pdf"], "error: --format: pdf, but -o is a.png\nhint: leave one"),
        (
            ["--connection", "4"],
            "error: --connection: there is no connection 4\nhint: give a number from 0 to 0",
        ),
    ],
)
def test_mistakes_are_named(bentpipe: Command, transfer: Path, arguments: list[str], error: str) -> None:
    done = bentpipe("plot", transfer, *arguments)
    assert (done.code, done.out) == (2, "")
    assert error in done.err
    assert {path.name for path in Path().iterdir()} == {"bin"}


def test_a_side_that_was_not_captured_is_refused(bentpipe: Command, transfer: Path) -> None:
    Path("one").mkdir()
    (Path("one") / trial_files.PACKETS).write_bytes((transfer / trial_files.PACKETS).read_bytes())
    summary = json.loads((transfer / trial_files.SUMMARY).read_text()) | {"sides": "client"}
    (Path("one") / trial_files.SUMMARY).write_text(json.dumps(summary))
    done = bentpipe("plot", "one", "--side", "server")
    assert done.code == 2 and "--side server: packets were captured at the client's side alone" in done.err
    assert bentpipe("plot", "one", "--side", "client").code == 0


def test_what_may_have_been_sent_before_is_not_called_first(transfer: Path) -> None:
    packets = subject(transfer).packets
    column = packets.schema.get_field_index("sent_s")
    of_server = pc.equal(packets["sender"], pa.scalar("server"))
    at_client = pc.if_else(of_server, pa.scalar(None, pa.float64()), packets["sent_s"])
    one_sided = dataclasses.replace(
        subject(transfer, "client"), packets=packets.set_column(column, "sent_s", at_client)
    )
    with canvas.style():
        (legend,) = figures.draw("offset", one_sided, FigureStyle()).legends
    labels = {text.get_text() for text in legend.get_texts()}
    assert "STREAM frame" in labels and "first transmission" not in labels


@pytest.mark.parametrize("kind", OFFERED_KINDS)
def test_the_smallest_figure_has_room_for_all(transfer: Path, kind: str) -> None:
    with canvas.style(), warnings.catch_warnings():
        warnings.simplefilter("error")  # of matplotlib: that axes collapsed
        drawn = figures.draw(kind, subject(transfer), FigureStyle(width_mm=60, height_mm=50))
        drawn.draw_without_rendering()
    (legend,) = drawn.legends
    assert legend.get_window_extent().x0 >= 0 and legend.get_window_extent().x1 <= drawn.bbox.x1
    assert sum(axes.get_window_extent().height for axes in drawn.axes) > drawn.bbox.height / 3


def test_an_instant_is_shown_with_what_is_around_it(bentpipe: Command, transfer: Path) -> None:
    assert bentpipe("plot", transfer, "--from", "2.5", "--to", "2.5", "-o", "at.svg").code == 0
    analysis = traces.of_folder(transfer)
    begin, end = map(str, analysis.window(analysis.connection(), 2.5, 2.5))
    assert bentpipe("plot", transfer, "--from", begin, "--to", end, "-o", "around.svg").code == 0
    assert Path("at.svg").read_bytes() == Path("around.svg").read_bytes()


@pytest.mark.parametrize("kind", ["in_flight", "rtt"])
def test_what_needs_the_senders_side_says_so(transfer: Path, kind: str) -> None:
    packets = subject(transfer).packets
    nothing = pa.nulls(packets.num_rows, pa.float64())
    at_client = packets.set_column(packets.schema.get_field_index("sent_s"), "sent_s", nothing)
    one_sided = dataclasses.replace(subject(transfer, "client"), packets=at_client)
    with pytest.raises(BentpipeError, match=f"{kind}: the side of the server, which sent the data, was not"):
        figures.draw(kind, one_sided, FigureStyle())


def test_an_interrupt_that_python_would_swallow_ends_the_command() -> None:
    script = """
import time, weakref
from bentpipe import cli
from bentpipe.cli import commands

class Thing:
    pass

def interrupted(_):
    raise KeyboardInterrupt

def command(_):
    thing = Thing()
    kept = weakref.ref(thing, interrupted)
    del thing
    time.sleep(10)
    return 0

commands.invoke = command
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_other_commands_do_not_wait_for_matplotlib() -> None:
    asked = "import sys, bentpipe.cli.commands; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
