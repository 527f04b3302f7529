"""`bentpipe scenarios show`: what changes with time is a line, and nothing is wider than 80 columns."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Command

from bentpipe.cli.courses import blocks
from bentpipe.cli.drawing import drawn
from bentpipe.plan import scenarios

TRACE = """title = "t"
source = "s"
timeout = "60 s"
[satellite.forward]
rate = { trace = "a.trace" }
delay = { trace = "a.csv" }
[satellite.return]
rate = "2 Mbit/s"
delay = "30 ms"
"""
STEP_MS = 40


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Of two minutes: 1500 bytes each 40 ms, three times as many in the second half."""
    early = [f"{at}\n" for at in range(STEP_MS, 60_000, STEP_MS)]
    late = [f"{at}\n" * 3 for at in range(60_000, 120_001, STEP_MS)]
    (tmp_path / "a.trace").write_text("".join(early + late))
    (tmp_path / "a.csv").write_text("time_s,delay_ms\n" + "".join(f"{s},{30 + s % 2}\n" for s in range(90)))
    file = tmp_path / "a.toml"
    file.write_text(TRACE)
    return file


def test_blocks_are_from_the_lowest_to_the_highest() -> None:
    assert blocks([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert blocks([7.0, 7.0]) == "▁▁"
    assert blocks([10, 10.5, 17], "12345678") == "118"


def test_a_trace_is_a_line_with_figures_and_json_has_every_step(bentpipe: Command, scenario: Path) -> None:
    lines = bentpipe("scenarios", "show", scenario).out.splitlines()
    assert len(lines) < 40 and max(map(len, lines)) <= 80
    at = lines.index("  satellite.forward.rate, over 120 s, which repeat")
    assert lines[at + 1] == "    " + "▁" * 30 + "█" * 30
    # 36 Mbit/s for each 40th millisecond of the second half, 12 for one of the first.
    assert lines[at + 2] == "    least 0, median 0, most 36, mean 0.6002 Mbit/s"
    assert lines[at + 3].startswith("    a block is the mean of 2 s: ▁ 0.3 to █ 0.9")
    assert "12 Mbit/s for a millisecond" in lines[at + 4]
    assert "  satellite.forward.delay, over 89 s, from 89 s on the last value" in lines
    assert "    least 30, median 30, most 31, mean 30.49 ms" in lines
    found = json.loads(bentpipe("scenarios", "show", scenario, "--json").out)
    steps = found["scenario"]["satellite"]["forward"]["rate"]["steps"]
    assert f"  satellite.forward.rate.steps = {len(steps)} of them, all by --json" in lines
    assert len(steps) > 5000 and found["courses"]["satellite.forward.rate"]["most"] == 36


def test_each_direction_is_drawn_as_what_packets_meet(bentpipe: Command) -> None:
    changes = ("forward.loss=0.1%", "ground.return.delay=5ms", 'forward.queue={size="1 BDP",aqm="fq-codel"}')
    shown = bentpipe("scenarios", "show", "sat", *(word for one in changes for word in ("--set", one)))
    lines = shown.out.splitlines()
    at = lines.index("forward:")
    assert lines[at + 1 : at + 8] == [
        "    server ─▶ gateway ─▶ [queue 1 BDP, fq-codel] ─▶ [rate 20 Mbit/s]",
        "    ─▶ [loss 0.1 %] ─▶ [delay 300 ms] ─▶ client",
        "      fq-codel: target 5 ms, interval 100 ms, ecn on, flows 1024,",
        "        quantum 1.514 kB",
        "return:",
        "    client ─▶ [queue 25 packets] ─▶ [rate 2 Mbit/s] ─▶ [delay 300 ms] ─▶ gateway",
        "    ─▶ [delay 5 ms] ─▶ server",
    ]


def test_handovers_alone_stand_below_the_heading(bentpipe: Command, tmp_path: Path) -> None:
    steady = "title = 't'\nsource = 's'\ntimeout = '40 s'\n" + "".join(
        f"[satellite.{way}]\ndelay = '30 ms'\n" for way in ("return", "forward")
    )
    (file := tmp_path / "a.toml").write_text(steady)
    assert "over time:" not in bentpipe("scenarios", "show", file).out
    file.write_text(f'{steady}handovers = {{ every = "15 s", gap = "80 ms", in_flight = "lost" }}')
    lines = bentpipe("scenarios", "show", file).out.splitlines()
    at = lines.index("over time:")
    assert lines[at + 1 : at + 3] == ["  satellite.forward.handovers", "    15 s (80 ms), 30 s (80 ms)"]


def test_a_part_without_a_place_and_one_that_is_too_wide_are_drawn_too() -> None:
    part = {"segment": "ground", "key": "bit_errors", "text": " ".join(["long"] * 20), "parameters": None}
    way = {"nodes": [{"host": "server"}, part, {"host": "client"}], "beside": [part | {"text": "1e-9"}]}
    assert list(drawn(way, has_blocks=False)) == [
        "    server",
        f"    -> [bit errors {' '.join(['long'] * 12)}",
        f"        {' '.join(['long'] * 8)}] -> client",
        "      also [bit errors 1e-9], of ground",
    ]


@pytest.mark.parametrize("name", scenarios.names())
def test_every_scenario_is_shown_in_80_columns(bentpipe: Command, name: str) -> None:
    lines = bentpipe("scenarios", "show", name).out.splitlines()
    paths = len(scenarios.resolve(name).summary.get("paths", ["the only one"]))
    assert len(lines) < 90 * paths and max(map(len, lines)) <= 80


@pytest.mark.parametrize(("locale", "first"), [("C.UTF-8", "▁"), ("C", "1")])
def test_where_the_locale_has_no_blocks_there_are_digits(scenario: Path, locale: str, first: str) -> None:
    words = [sys.executable, "-m", "bentpipe", "scenarios", "show", str(scenario)]
    environment = {**os.environ, "LC_ALL": locale}
    done = subprocess.run(words, capture_output=True, check=True, env=environment)
    lines = done.stdout.decode().splitlines()
    at = lines.index("  satellite.forward.rate, over 120 s, which repeat")
    assert lines[at + 1][4] == first
