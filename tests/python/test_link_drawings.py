"""What links did over time, as the report plots it: by the trial's seed, on its packets' time axis."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from conftest import Command, present
from test_report_traces import column, read_data

from bentpipe.analysis.plots import series
from bentpipe.analysis.traces import Analysis, of_trial
from bentpipe.errors import BentpipeError
from bentpipe.plan import scenarios
from bentpipe.report.columns import Columns
from bentpipe.report.link_drawings import LinkPlots, link_plots
from bentpipe.schema.analysis import Connection

SEEDS = ("0000000000000001", "0000000000000002")
MOST = 1000  # points of a course


def plots_of(scenario: str, seed: str, until_s: float, begin_s: float = 0) -> LinkPlots:
    found = scenarios.courses_of_trial(scenarios.resolve(scenario).scenario, seed, until_s)
    return LinkPlots(found, begin_s, until_s, "forward", Columns())


def names(plots: LinkPlots) -> dict[str, list[str]]:
    return {one["kind"]: [series["name"] for series in one["series"]] for one in plots.plots()}


def test_each_kind_of_scenario_has_its_plots() -> None:
    assert names(plots_of("dvb-s2-rain", SEEDS[0], 60)) == {
        "capacity": ["capacity, forward"],
        "es_n0": ["Es/N0, forward", "needed by the MODCOD, forward"],
    }
    assert names(plots_of("leo-walker", SEEDS[0], 60)) == {
        "capacity": ["capacity, forward", "capacity, return"],
        "link_delay": ["delay, both ways"],
        "elevation": ["elevation, both ways"],
        "in_view": ["satellites in view, both ways"],
    }
    assert names(plots_of("sat", SEEDS[0], 60)) == {}


def test_what_is_drawn_at_random_is_that_of_the_seed() -> None:
    one, again, other = (plots_of("starlink", seed, 40) for seed in (SEEDS[0], *SEEDS))
    assert one.found == again.found
    assert one.interruptions() != other.interruptions()
    assert {one["what"] for one in one.interruptions()} == {"handover"}
    assert all(len(course["course"]) <= MOST for course in one.found.courses.values())


def test_handovers_have_the_satellites_of_the_trace_and_times_of_the_packets() -> None:
    plots = plots_of("leo-walker", SEEDS[0], 80, begin_s=0.5)
    assert plots.interruptions() == [
        {"from_s": 44.5, "to_s": 44.58, "what": "handover", "satellite": "53-1"},
        {"from_s": 74.5, "to_s": 74.58, "what": "handover", "satellite": "61-17"},
    ]
    (elevation,) = next(one["series"] for one in plots.plots() if one["kind"] == "elevation")
    assert elevation["names"] == [[-0.5, "64-15"], [44.5, "53-1"], [74.5, "61-17"]]
    data = plots.columns.base64()
    times, values = (column(data, elevation[what]) for what in ("times", "values"))
    assert (times[0], times[-1]) == pytest.approx((-0.5, 79.5))
    assert values[:3] == pytest.approx([67.5, 67.9, 68.29])  # the first rows of leo-walker.csv


def made_up(folder: Path, testbed: str) -> Analysis:
    """A trial over leo-walker whose trace and run are there, without links' events."""
    trial = folder / "trials" / "t"
    trial.mkdir(parents=True)
    state = SimpleNamespace(scenario=scenarios.resolve("leo-walker").scenario)
    record = SimpleNamespace(trial="t", testbed=testbed, scenario="s", seed=SEEDS[0], hops=[], paths=[])
    run = SimpleNamespace(folder=folder, scenarios={"s": state}, records={"t": record})
    return cast(Analysis, SimpleNamespace(run=run, trial="t"))


def drawn(analysis: Analysis, start_unix_s: str) -> LinkPlots | None:
    connection = cast(Connection, SimpleNamespace(start_unix_s=start_unix_s))
    return link_plots(analysis, connection, 79, "forward", Columns())


EVENTS = {
    "format": 1,
    "start_unix_ns": 1_700_000_000_250_000_000,
    "interruptions": [
        {"kind": "handover", "direction": way, "from_ns": at * 10**9, "until_ns": at * 10**9 + 80_000_000}
        for way in ("forward", "return")
        for at in (45, 76, 900)
    ],
    "requests": None,
    "cut": False,
}


def test_links_of_real_time_begin_when_their_events_say(tmp_path: Path) -> None:
    analysis = made_up(tmp_path, "emu")
    assert drawn(analysis, "1700000000.75") is None
    (tmp_path / "trials/t/link-events.json").write_text(json.dumps(EVENTS))
    plots = drawn(analysis, "1700000000.75")
    assert plots is not None and plots.begin_s == 0.5
    # The second is not where the scenario has it: the events win, and no satellite goes with it.
    assert plots.interruptions() == [
        {"from_s": 44.5, "to_s": 44.58, "what": "handover", "satellite": "53-1"},
        {"from_s": 75.5, "to_s": 75.58, "what": "handover", "satellite": None},
    ]
    assert {one["kind"] for one in plots.plots()} == {"capacity", "link_delay", "elevation", "in_view"}


def test_with_middleboxes_interruptions_of_all_hops_are_drawn(tmp_path: Path) -> None:
    analysis = made_up(tmp_path, "emu")
    (tmp_path / "trials/t/link-events.json").write_text(json.dumps(EVENTS | {"interruptions": []}))
    assert (alone := drawn(analysis, "1700000000.75")) is not None and alone.interruptions() == []
    cast(Any, analysis).run.records["t"].hops = ["client to terminal", "terminal to server"]
    assert (plots := drawn(analysis, "1700000000.75")) is not None
    assert [one["from_s"] for one in plots.interruptions()] == [44.5, 74.5]


def test_virtual_time_without_events_begins_at_the_epoch(tmp_path: Path) -> None:
    plots = drawn(made_up(tmp_path, "sim"), "946684800.5")
    assert plots is not None and plots.begin_s == 0.5
    assert [one["from_s"] for one in plots.interruptions()] == [44.5, 74.5]


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "cannot be read"), (json.dumps(EVENTS | {"format": 2}), "it is of format 2, wanted is 1")],
)
def test_events_that_cannot_be_read_are_named(tmp_path: Path, text: str, says: str) -> None:
    analysis = made_up(tmp_path, "emu")
    (tmp_path / "trials/t/link-events.json").write_text(text)
    with pytest.raises(BentpipeError, match=f"link-events.json: {says}"):
        drawn(analysis, "1700000000.75")


def test_a_delay_that_changes_evenly_is_drawn_to_its_end() -> None:
    steps = '{steps=[["0 s","10 ms"],["15 s","100 ms"]],between="linear"}'
    scenario = scenarios.resolve("sat", (f"forward.delay={steps}",)).scenario
    found = scenarios.courses_of_trial(scenario, SEEDS[0], 5)
    plots = LinkPlots(found, 0, 5, "forward", Columns())
    ((series,),) = (plot["series"] for plot in plots.plots())
    data = plots.columns.base64()
    times, values = (column(data, series[what]) for what in ("times", "values"))
    assert (series["mark"], times[-1], values[-1]) == ("line", 5, pytest.approx(40))
    assert len(times) == len(set(times))


def test_a_scenario_that_cannot_be_read_is_named() -> None:
    with pytest.raises(BentpipeError, match=r"bentpipe-sim courses failed: .*name: missing"):
        scenarios.courses_of_trial({"title": "t", "source": "s", "timeout": "1 s"}, SEEDS[0], 1)


def test_show_has_satellites_and_handovers(bentpipe: Command) -> None:
    lines = bentpipe("scenarios", "show", "oneweb-like").out.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("  satellite.forward.handovers, the same both ways")
    assert lines[at + 1].startswith("    90 s to ") and lines[at + 1].count(" (80 ms)") >= 2
    assert sum("elevation, over 600 s" in line for line in lines) == 1
    found: dict[str, Any] = json.loads(bentpipe("scenarios", "show", "oneweb-like", "--json").out)
    assert found["courses"]["satellite.return.in_view"]["course"][0] == [0, 11]
    assert len(found["interruptions"]["satellite.forward.handovers"]) == 3


@pytest.mark.virtual_time
def test_no_packet_leaves_the_link_while_it_is_shaded(bentpipe: Command) -> None:
    pair = present()[0]
    gaps = 'forward.outages=[{at="300 ms",for="400 ms"},{at="1 s",for="200 ms"}]'
    done = bentpipe(
        "run", "--scenario", "sat", "--set", "forward.delay=20ms", "--set", "return.delay=20ms",
        "--set", gaps,
        "--client", pair, "--server", pair, "--iterations", "1", "--bytes", "3000000", "--trace", "all",
        "--out", "run",
    )  # fmt: skip
    assert done.code == 0
    (file,) = Path("run/report/data/trials").glob("*.js")
    shown = read_data(file)
    assert [one["what"] for one in shown["interruptions"]] == ["outage, forward"] * 2
    assert [plot["kind"] for plot in shown["plots"]][3] == "capacity"
    packets = series.of_connection((analysis := of_trial(Path("run/trials") / file.stem)).packets, 0)
    assert analysis.connection().connection == 0
    down = series.received(packets, "forward").time_s - 0.02  # when the last bit was sent
    slack = 1e-3
    for one in shown["interruptions"]:
        assert not ((down > one["from_s"] + slack) & (down < one["to_s"] - slack)).any()
        assert ((down > one["to_s"]) & (down < one["to_s"] + 0.1)).any()
