"""Traces in the report: what is written of them, and what a real browser draws."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import browser
import fake_run
import fake_trace
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from fake_trace import Setting
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.analysis import traces
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.plots import queueing, series
from bentpipe.analysis.traces import Analysis
from bentpipe.errors import BentpipeError
from bentpipe.report import build
from bentpipe.report.columns import Columns
from bentpipe.report.traces import KINDS, script

TRIAL = "sat-quinn-noq-2"
CELL = "sat--quinn--noq"
SMALL = Setting(size_bytes=20_000)
HARM = "</script><script>document.title='harmed'</script><img src=x>"


def add_trace(run: Path, trial: str = TRIAL, setting: Setting = SMALL, **summary: Any) -> Path:
    """Give a trial of the run a trace with its analysis; `summary` changes what analysis.json says."""
    folder = run / "trials" / trial
    folder.mkdir(parents=True)
    (folder / "trace.pcapng").write_bytes(b"made up")
    fake_trace.write(folder, setting)
    values = json.loads((folder / "analysis.json").read_text()) | summary
    (folder / "analysis.json").write_text(json.dumps(values))
    return folder


def findings(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    """The connections of an analysis whose findings are those of `fake_trace`, each with changes."""
    world = fake_trace.simulate(SMALL)
    (connection,) = fake_trace.analysis(world, ["trace.pcapng"])["connections"]
    (flaw,) = (finding for finding in fake_trace.FINDINGS if finding["verdict"] == "yes")
    return [connection | {"findings": [flaw | change for change in changed]}]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a trace of one trial, one that cannot be read of another, and its report."""
    folder = tmp_path_factory.mktemp("run")
    fake_run.write(folder, stacks=("noq", "quinn"))
    add_trace(folder, setting=Setting(loss=0.01))
    broken = folder / "trials" / "sat-noq-noq-1"
    broken.mkdir()
    (broken / "trace.pcapng").write_bytes(b"no capture")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces, "analyse", refuse)
        build(folder)
    return folder


def refuse(*_arguments: Any, **_options: Any) -> Analysis:
    raise BentpipeError("trace.pcapng: not a capture", "give a pcapng file")


def read_data(path: Path) -> Any:
    """What a data script assigns."""
    match = re.fullmatch(r"window\.\w+=(.*);\n", path.read_text())
    assert match, path
    return json.loads(match[1])


def column(data: str, place: dict[str, Any]) -> np.ndarray[Any, Any]:
    """A column as the page reads it."""
    integers = np.frombuffer(zlib.decompress(base64.b64decode(data)), "<i4")
    mine = integers[place["at"] : place["at"] + place["count"]]
    assert len(mine) == place["count"]
    return np.cumsum(mine.astype(np.int64)) * float(place["unit"])


# Columns


# No two of them lie further apart than 32 bits hold.
NEAR = st.integers(-(2**30), 2**30 - 1)


@given(st.lists(st.lists(NEAR, max_size=20), min_size=1, max_size=4))
def test_columns_come_back_as_they_were(all_: list[list[int]]) -> None:
    columns = Columns()
    places = [columns.add(np.asarray(values, dtype=np.int64), 1) for values in all_]
    for values, place in zip(all_, places, strict=True):
        assert column(columns.base64(), place).tolist() == values


def test_times_are_rounded_but_do_not_drift() -> None:
    times = np.arange(100_000) / 3e4
    columns = Columns()
    place = columns.add(times, 1e-6)
    assert np.abs(column(columns.base64(), place) - times).max() <= 0.5e-6 + 1e-9


def test_values_far_apart_get_a_larger_unit() -> None:
    columns = Columns()
    place = columns.add(np.array([0.0, 1e4, 1e12]), 1.0)
    assert place["unit"] == 1000
    assert column(columns.base64(), place).tolist() == [0, 1e4, 1e12]


def test_a_column_is_written_once() -> None:
    columns = Columns()
    first = columns.add(np.array([3, 5, 4]), 1)
    columns.add(np.array([7]), 1)
    assert columns.add(np.array([0.003, 0.005, 0.004]), 1e-3) == first | {"unit": 1e-3}
    last = columns.add(np.array([8, 9]), 1)
    assert column(columns.base64(), last).tolist() == [8, 9]
    assert len(zlib.decompress(base64.b64decode(columns.base64()))) == 4 * (3 + 1 + 2)


# The script of a trial


def test_plots_show_the_series(tmp_path: Path) -> None:
    folder = add_trace(tmp_path, setting=Setting(loss=0.01, queue_bytes=5_000))
    made = script(TRIAL, traces.of_folder(folder))
    packets = traces.of_folder(folder).packets
    assert tuple(plot["kind"] for plot in made["plots"]) == KINDS

    def points(kind: str, name: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        (plot,) = (plot for plot in made["plots"] if plot["kind"] == kind)
        (one,) = (one for one in plot["series"] if one["name"] == name)
        return column(made["data"], one["times"]), column(made["data"], one["tops"] or one["values"])

    sent = series.offset(packets, "forward")
    assert sent.lost.any()
    assert sent.retransmitted.any()
    for name, which in (
        ("sent", ~sent.retransmitted),
        ("retransmitted", sent.retransmitted),
        ("lost", sent.lost),
    ):
        times, starts = points("offset", name)
        assert times == pytest.approx(sent.time_s[which], abs=1e-6)
        assert starts.tolist() == sent.start[which].tolist()
    assert points("offset", "received, distinct bytes")[1][-1] == 1_000_000
    assert points("rtt", "samples of the server")[1] == pytest.approx(
        series.rtt(packets, "forward").rtt_ms, abs=1e-3
    )
    assert points("acks", "acknowledged")[1].tolist() == series.acks(packets, "forward").last.tolist()
    assert len(points("acks", "missing")[0]) == len(series.gaps(series.acks(packets, "forward")).time_s) > 0
    assert points("in_flight", "cwnd (qlog)")[1].max() > 12_350
    queued, waited = queueing.queue(packets, "forward"), queueing.sojourns(packets, "forward")
    assert points("queue", "waiting")[1].tolist() == queued.waiting.bytes.tolist()
    assert points("queue", "dropped")[1].tolist() == queued.dropped.bytes.tolist()
    assert points("sojourn", "packet")[1] == pytest.approx(waited.sojourn_ms, abs=1e-3)
    assert points("sojourn", "dropped")[1].tolist() == [0] * len(queued.dropped.time_s) != []
    assert made["end_s"] == pytest.approx(np.nanmax(packets["received_s"].to_numpy()))


def test_marks_are_ticks_in_both_plots_of_the_queue(tmp_path: Path) -> None:
    folder = add_trace(tmp_path)
    packets = pq.read_table(folder / "packets.parquet")
    mine = pc.equal(packets["direction"], pa.scalar("forward"))
    for name, word in (("sent_ecn", "ECT(1)"), ("received_ecn", "CE")):
        place = packets.column_names.index(name)
        packets = packets.set_column(place, name, pc.if_else(mine, word, pa.scalar(None, pa.string())))
    pq.write_table(packets, folder / "packets.parquet")
    made = script(TRIAL, traces.of_folder(folder))
    ticks = {plot["kind"]: one for plot in made["plots"] for one in plot["series"] if one["mark"] == "tick"}
    assert ticks.keys() == {"queue", "sojourn"}
    count = len(queueing.sojourns(packets, "forward").time_s)
    assert all(one["name"] == "marked (CE)" and one["times"]["count"] == count for one in ticks.values())


LINK = LinkFacts(20_000_000, 2_000_000, 600.0, 200_000, size_bytes=SMALL.size_bytes, limit_s=1.3)


def drawn(folder: Path, link: LinkFacts = LINK) -> dict[tuple[str, str], tuple[list[float], list[float]]]:
    """Times and values by kind of plot and name of series."""
    made = script(TRIAL, traces.of_folder(folder, link))
    return {
        (plot["kind"], one["name"]): (
            column(made["data"], one["times"]).tolist(),
            column(made["data"], one["values"]).tolist(),
        )
        for plot in made["plots"]
        for one in plot["series"]
    }


def test_the_ideal_sender_is_drawn_where_the_data_was_seen(tmp_path: Path) -> None:
    """Half a round trip earlier at the server than at the client."""
    folder = add_trace(tmp_path)
    transfer_s = SMALL.size_bytes * 1.05 * 8 / 20e6
    times, values = drawn(folder)["offset", "ideal sender"]
    assert values == [0, 0, SMALL.size_bytes]
    assert times == pytest.approx([0, 0.9, 0.9 + transfer_s])
    assert script(TRIAL, traces.of_folder(folder, LINK))["others_earlier_s"] == 0.3
    packets = pq.read_table(folder / "packets.parquet")
    of_server = pc.equal(packets["sender"], pa.scalar("server"))
    unseen = pc.if_else(of_server, None, packets["sent_s"])
    at_client = packets.set_column(packets.column_names.index("sent_s"), "sent_s", unseen)
    pq.write_table(at_client, folder / "packets.parquet")
    assert drawn(folder)["offset", "ideal sender"][0] == pytest.approx([0, 1.2, 1.2 + transfer_s])
    assert script(TRIAL, traces.of_folder(folder, LINK))["others_earlier_s"] == 0


def test_what_the_path_allows_is_drawn(tmp_path: Path) -> None:
    made = drawn(add_trace(tmp_path))
    levels = {
        ("rate", "bottleneck, forward"): 20e6,
        ("rate_back", "bottleneck, return"): 2e6,
        ("in_flight", "BDP"): 1.5e6,
        ("in_flight", "BDP + queue"): 1.7e6,
    }
    assert {place: made[place][1] for place in levels} == {p: [value] * 2 for p, value in levels.items()}
    assert made["offset", "MAX_STREAM_DATA"]
    assert made["number", "Initial, of the server"]
    assert made["number", "Handshake, of the server"]


def test_both_flow_control_limits_are_drawn(tmp_path: Path) -> None:
    folder = add_trace(tmp_path)
    packets = pq.read_table(folder / "packets.parquet")
    twice = pc.multiply(packets["max_stream_data"], 2)
    place = packets.column_names.index("max_data")
    pq.write_table(packets.set_column(place, "max_data", twice), folder / "packets.parquet")
    made = drawn(folder)
    stream, all_ = (made["offset", name][1] for name in ("MAX_STREAM_DATA", "MAX_DATA"))
    assert all_ == [2 * limit for limit in stream]


def test_bytes_in_flight_fall_with_acks(tmp_path: Path) -> None:
    times, values = drawn(add_trace(tmp_path))["in_flight", "bytes in flight"]
    assert times == sorted(times)
    assert max(values) > 10_000
    assert values[-1] == 0


def test_a_point_gets_a_round_trip(tmp_path: Path) -> None:
    """A window of no length can neither be shown nor marked. A short one can, if it is no point."""

    def place(folder: str, begin: float, end: float) -> dict[str, Any]:
        named = {"kind": "number", "from_s": begin, "to_s": end}
        made = add_trace(tmp_path / folder, connections=findings({"plot": named}))
        (finding,) = script(TRIAL, traces.of_folder(made, LINK))["findings"]
        found: dict[str, Any] = finding["plot"]
        return found

    assert place("point", 0.5, 0.5) == {"kind": "number", "from_s": 0.2, "to_s": 0.8}
    assert place("early", 0.1, 0.1) == {"kind": "number", "from_s": 0, "to_s": 0.4}
    assert place("short", 0.5, 0.51) == {"kind": "number", "from_s": 0.5, "to_s": 0.51}


def test_the_ack_rate_is_shown_where_acks_go(tmp_path: Path) -> None:
    place = {"kind": "rate", "from_s": 1, "to_s": 2}
    rules = [{"rule": rule, "plot": place} for rule in ("acks_overload_return_link", "idle_gaps")]
    made = script(TRIAL, traces.of_folder(add_trace(tmp_path, connections=findings(*rules)), LINK))
    assert [one["plot"]["kind"] for one in made["findings"]] == ["rate_back", "rate"]


@pytest.mark.parametrize(
    ("measured_from", "unlike"),
    [
        ("wire", {"more": ["slow_start_left_early"], "fewer": ["long_tail"]}),
        ("client", {"more": [], "fewer": []}),
    ],
)
def test_findings_that_the_record_does_not_share_are_named(
    tmp_path: Path, measured_from: str, unlike: dict[str, list[str]]
) -> None:
    """The record knows the wire alone; without the wire it has no findings to compare."""
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"))
    (mine,) = (one for one in records if one.trial == TRIAL)
    mine = fake_run.change(mine, findings=["long_tail"], measured_from=measured_from)
    (tmp_path / "records.jsonl").write_text(f"{mine.to_json()}\n")
    add_trace(tmp_path, connections=findings({}))
    build(tmp_path)
    assert read_data(tmp_path / f"report/data/trials/{TRIAL}.js")["unlike_record"] == unlike


def test_a_trial_of_10_mib_fits_into_400_kb(tmp_path: Path) -> None:
    """By the packet: 10 MiB are about 13,000 packets, ACKs included."""
    folder = add_trace(tmp_path, setting=Setting(size_bytes=3_000_000, loss=0.01))
    made = script(TRIAL, traces.of_folder(folder))
    assert len(made["data"]) / traces.of_folder(folder).packets.num_rows < 400_000 / 13_000


def test_an_upload_is_drawn_as_the_data(tmp_path: Path) -> None:
    """The data's direction is that with more stream bytes."""
    (connection,) = findings()
    connection["metrics"] |= {"stream_bytes": 10, "upload_bytes": 20}
    folder = add_trace(tmp_path, connections=[connection])
    made = script(TRIAL, traces.of_folder(folder))
    (offset,) = (plot for plot in made["plots"] if plot["kind"] == "offset")
    (got,) = (one for one in offset["series"] if one["name"] == "received, distinct bytes")
    assert column(made["data"], got["values"]).tolist() == [20]  # the request
    assert made["others_earlier_s"] is None  # what the records of the others count is no upload


def test_what_a_trace_lacks_is_said(tmp_path: Path) -> None:
    folder = add_trace(
        tmp_path,
        connections=[*findings(), findings()[0] | {"connection": 1, "packets": 1}],
        sides="client",
        undecoded=[{"count": 3, "what": "no secrets", "first_frame": 17}],
        errors=["trace.pcapng: cut short at byte 99"],
    )
    notes = script(TRIAL, traces.of_folder(folder))["notes"]
    assert "2 connections" in notes[0]
    assert "client's side alone" in notes[1]
    assert notes[2:] == ["Not decoded: 3 packets: no secrets.", "trace.pcapng: cut short at byte 99"]


# The site


def test_a_trace_is_a_script_that_the_page_does_not_wait_for(run: Path) -> None:
    iterations = read_data(run / f"report/data/cells/{CELL}.js")["iterations"]
    assert [one["trace"] for one in iterations] == [
        None,
        {"script": f"../data/trials/{TRIAL}.js", "failure": None},
        None,
    ]
    assert read_data(run / f"report/data/trials/{TRIAL}.js")["trial"] == TRIAL
    assert "trials/" not in (run / f"report/cells/{CELL}.html").read_text()


def test_the_matrix_counts_what_was_found(tmp_path: Path) -> None:
    """Records name the rules that found something, with or without a trace."""
    cell = counted(tmp_path)
    assert cell["findings"] == [["long_tail", 2], ["idle_gaps", 1]]


@pytest.mark.browser
def test_the_matrix_shows_what_was_found(tmp_path: Path) -> None:
    cell = counted(tmp_path)
    page = browser.dump((tmp_path / "report/index.html").as_uri(), tmp_path / "profile")
    assert re.findall(r'<th scope="row">(\w+ \w+)</th><td>(\d of \d)</td>', page) == [
        ("Long tail", "2 of 3"),
        ("Idle gaps", "1 of 3"),
    ]
    assert f'<a href="cells/{cell["slug"]}.html#trace">noq → noq, 2 of 3</a>' in page


def counted(tmp_path: Path) -> dict[str, Any]:
    """The cell of the matrix of a report in which two of three trials were found to have something."""
    records = fake_run.write(tmp_path, stacks=("noq",))
    found = [["long_tail", "idle_gaps"], ["long_tail"], []]
    lines = [fake_run.change(one, findings=rules) for one, rules in zip(records[:3], found, strict=True)]
    (tmp_path / "records.jsonl").write_text("".join(f"{record.to_json()}\n" for record in lines))
    build(tmp_path)
    (cell,) = read_data(tmp_path / "report/data/run.js")["matrices"][0]["cells"]
    return dict(cell)


def test_a_trace_that_cannot_be_read_does_not_hinder_the_report(run: Path) -> None:
    first = read_data(run / "report/data/cells/sat--noq--noq.js")["iterations"][0]
    failure = "trace.pcapng: not a capture; give a pcapng file"
    assert first["trace"] == {"script": None, "failure": failure}
    assert [file.name for file in (run / "report/data/trials").iterdir()] == [f"{TRIAL}.js"]


@pytest.mark.parametrize(
    ("summary", "message"),
    [
        ({"connections": [], "errors": ["trace.pcapng: no packets"]}, "trace.pcapng: no packets"),
        (
            {"connections": findings({"plot": {"kind": "pie", "from_s": 0, "to_s": 1}})},
            "plot.kind: 'pie' is not valid",
        ),
        ({"sides": None, "undecoded": None}, "sides: None is not valid"),
    ],
)
def test_an_odd_analysis_is_a_failure_of_its_trial_alone(
    tmp_path: Path, summary: dict[str, Any], message: str
) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    add_trace(tmp_path, **summary)
    build(tmp_path)
    iterations = read_data(tmp_path / f"report/data/cells/{CELL}.js")["iterations"]
    assert message in iterations[1]["trace"]["failure"]


def test_traces_that_were_not_read_whole_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    add_trace(tmp_path, connections=[], errors=["trace.pcapng: no packets"])
    add_trace(tmp_path, "sat-noq-noq-1", errors=["trace.pcapng: cut short at byte 99"])
    build(tmp_path)
    said = capfd.readouterr().err
    assert f"note: {TRIAL}: the trace could not be read: trace.pcapng: no packets\n" in said
    assert "note: sat-noq-noq-1: the trace was read in part: trace.pcapng: cut short at byte 99\n" in said
    assert "note: 1 trial with a trace that could be read only in part\n" in said


def test_findings_stay_text(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    connections = findings({"title": HARM, "text": HARM, "rule": HARM})
    add_trace(tmp_path, connections=connections, errors=[HARM])
    build(tmp_path)
    for file in (tmp_path / "report/data").rglob("*.js"):
        assert "<" not in file.read_text()
    assert read_data(tmp_path / f"report/data/trials/{TRIAL}.js")["notes"] == [HARM]


# The page in a browser


# Goes on when plots are drawn, whatever time that takes: they are drawn by frames, once they are in view.
SETTLED = """<script>
addEventListener("load", async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const settled = async () => {
    const has = (state) => document.querySelector(`#trace [aria-busy=${state}]`);
    do await frame(); while (has("true") || !has("false"));
  };
  await settled();
  for (let i = 0; i < 10; i++) await frame(); // plots learn a frame later that they are in view
  await settled();
"""
# Counts the pixels of each canvas that are not paper.
COUNT = (
    SETTLED
    + """
  const inked = [...document.querySelectorAll("#trace canvas")].map((canvas) => {
    const pixels = new Uint32Array(canvas.getContext("2d")
      .getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    return canvas.closest("figure").id + "=" + pixels.filter((pixel) => pixel !== pixels[0]).length;
  });
  location = "ANSWER" + inked.join();
});
</script></body>"""
)


# Compares the plots of the whole, of a window, and of the whole once more; turns of the wheel come at once.
ZOOM = (
    SETTLED
    + """
  const pictures = () => [...document.querySelectorAll("#trace canvas")].map((canvas) => canvas.toDataURL());
  const same = (some, others) => some.filter((one, i) => one === others[i]).length;
  const whole = pictures();
  const first = document.querySelector("#plot-offset canvas");
  const { left, width, top } = first.getBoundingClientRect();
  for (let i = 0; i < 10; i++) first.dispatchEvent(new WheelEvent("wheel",
    { deltaY: -100, ctrlKey: true, bubbles: true, clientX: left + width / 2, clientY: top + 50 }));
  await settled();
  const inside = pictures();
  document.querySelector("[aria-label='The whole transfer']").click();
  await settled();
  location = "ANSWER" + [whole.length, same(whole, inside), same(whole, pictures())].join();
});
</script></body>"""
)


def opened(run: Path, tmp_path: Path, slug: str, fragment: str = "") -> str:
    """What the page has become by itself. Whether plots are drawn by then is left to chance."""
    page = run / f"report/cells/{slug}.html"
    return browser.dump(
        page.as_uri() + fragment, tmp_path, "--virtual-time-budget=20000", "--window-size=1200,5400"
    )


def told(run: Path, tmp_path: Path, probe: str) -> str | None:
    """What a probe says in the page of the cell with the trace, when its plots are drawn."""
    answer = browser.Answer()
    page = run / f"report/cells/{CELL}.html"
    probing = page.with_name(f"probing-{tmp_path.name}.html")
    probing.write_text(page.read_text().replace("</body>", probe.replace("ANSWER", answer.address)))
    try:
        return answer.of(f"{probing.as_uri()}#trial={TRIAL}", tmp_path / "profile", "--window-size=1200,5400")
    finally:
        probing.unlink()


@pytest.mark.browser
def test_plots_are_drawn(run: Path, tmp_path: Path) -> None:
    inked = dict(re.findall(r"plot-(\w+)=(\d+)", told(run, tmp_path, COUNT) or ""))
    assert inked.keys() == set(KINDS)
    assert min(map(int, inked.values())) > 2000, inked


@pytest.mark.browser
def test_a_trace_says_what_was_found(run: Path, tmp_path: Path) -> None:
    page = opened(run, tmp_path, CELL, f"#trial={TRIAL}")
    assert "script-error" not in page
    assert "handshake complete at" in page
    assert f'href="#trial={TRIAL}&amp;plot=in_flight&amp;from=1&amp;to=3"' in page
    verdicts = Counter(finding["verdict"] for finding in fake_trace.FINDINGS)
    assert page.count('<li class="yes">') == verdicts["yes"]
    assert f"Not sure ({verdicts['not_sure']})" in page
    assert f"Ruled out ({verdicts['no']})" in page


@pytest.mark.browser
def test_many_packets_are_drawn_and_zoomed(tmp_path: Path) -> None:
    """How fast, benches/report.py measures. A window that was left leaves no trace in the next picture."""
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    folder = add_trace(tmp_path, setting=Setting(size_bytes=15_000_000, queue_bytes=2_000_000))
    assert pq.read_metadata(folder / "packets.parquet").num_rows > 18_000
    build(tmp_path)
    said = told(tmp_path, tmp_path, ZOOM)
    # Plots, those that zooming left as they were, those that are the same again at the end.
    assert said == f"{len(KINDS)},0,{len(KINDS)}"


@pytest.mark.browser
def test_a_link_leads_to_its_window(run: Path, tmp_path: Path) -> None:
    page = opened(run, tmp_path, CELL, f"#trial={TRIAL}&plot=in_flight&from=1&to=3")
    assert "script-error" not in page
    window = re.search(r'<output class="window">([^<]*)</output>', page)
    assert window
    assert window[1] == "700\u202fms to 3.30\u202fs"


@pytest.mark.browser
def test_without_a_trace_the_page_says_how_to_get_one(run: Path, tmp_path: Path) -> None:
    page = opened(run, tmp_path, "sat--noq--quinn")
    assert "No iteration of this cell has a trace" in page
    page = opened(run, tmp_path / "other", "sat--noq--noq")
    assert "The trace of iteration 1 could not be read: trace.pcapng: not a capture" in page
    assert "script-error" not in page


@pytest.mark.browser
def test_a_script_that_is_gone_is_named(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    add_trace(tmp_path)
    build(tmp_path)
    (tmp_path / f"report/data/trials/{TRIAL}.js").unlink()
    page = opened(tmp_path, tmp_path / "profile", CELL)
    assert f"../data/trials/{TRIAL}.js is missing" in page


@pytest.mark.browser
def test_hostile_findings_do_no_harm(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"))
    connections = findings({"title": HARM, "text": HARM})
    add_trace(tmp_path, connections=connections, errors=[HARM])
    build(tmp_path)
    page = opened(tmp_path, tmp_path / "profile", CELL, f"#trial={TRIAL}")
    assert "<title>harmed" not in page
    assert "<img" not in page
    assert page.count("&lt;img") >= 3
