"""From a trial to its figures with the programs that were built; and the made-up transfer of other tests has
the same columns and keys as what bentpipe-trace writes.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import browser
import fake_trace
import pyarrow.parquet as pq
import pytest
from conftest import Command, present

from bentpipe import paths
from bentpipe.analysis import traces
from bentpipe.analysis.plots import series
from bentpipe.cli.plot import KINDS
from bentpipe.runs import trial_files

pytestmark = pytest.mark.virtual_time

SIZE = 600_000


@pytest.fixture
def trial(bentpipe: Command) -> Path:
    """The folder of a trial with losses and a trace."""
    pair = present()[0]
    done = bentpipe(
        "run", "--scenario", "satloss", "--client", pair, "--server", pair, "--iterations", "2", "--bytes",
        str(SIZE), "--trace", "all", "--out", "run", "--no-report", "--json",
    )  # fmt: skip
    assert [record["outcome"] for record in done.records()] == ["ok", "ok"]
    return Path("run/trials") / str(done.records()[0]["trial"])


def test_a_trial_is_explained_and_drawn(bentpipe: Command, trial: Path) -> None:
    records = (json.loads(line) for line in Path("run/records.jsonl").read_text().splitlines())
    record = next(record for record in records if record["trial"] == trial.name)  # they stand as they ended
    done = bentpipe("trace", trial, "--explain")
    assert (done.code, done.err) == (0, "")
    words = [" ".join(line.split()) for line in done.out.splitlines()]
    assert f"bytes from server {SIZE:,}" in words
    assert f"last stream byte {record['completion_s']:.3f} s" in words
    assert f"datagrams {record['forward_packets']:,} {record['return_packets']:,}" in words
    assert any(line.startswith("ruled out: ") for line in words)

    packets = traces.of_trial(trial).packets
    assert series.rate(packets, "forward", 0.15).raw.sum() == record["forward_bytes"]
    assert series.rate(packets, "return", 0.15).raw.sum() == record["return_bytes"]
    assert series.rate(packets, "forward", 0.15).payload.sum() == SIZE
    assert series.received(packets, "forward").bytes[-1] == SIZE

    done = bentpipe("plot", trial, "--kind", "all")
    assert (done.code, done.err) == (0, "")
    assert done.out.split() == [f"{kind}.pdf" for kind in KINDS]


def test_the_report_has_what_the_record_names(bentpipe: Command, trial: Path) -> None:
    records = (json.loads(line) for line in Path("run/records.jsonl").read_text().splitlines())
    record = next(record for record in records if record["trial"] == trial.name)
    done = bentpipe("report", "run")
    assert done.code == 0
    found = [one for one in traces.of_trial(trial).connection().findings if one.verdict == "yes"]
    assert [one.rule for one in found] == record["findings"] != []
    script = Path("run/report/data/trials", f"{trial.name}.js").read_text()
    assert all(json.dumps(one.title) in script for one in found)


@pytest.mark.browser
def test_the_report_shows_every_plot_and_finding(bentpipe: Command, trial: Path) -> None:
    assert bentpipe("report", "run").code == 0
    found = [one for one in traces.of_trial(trial).connection().findings if one.verdict == "yes"]
    page = next(Path("run/report/cells").iterdir()).resolve()
    shown = browser.dump(
        f"{page.as_uri()}#trial={trial.name}",
        Path("profile"),
        "--virtual-time-budget=20000",
        "--run-all-compositor-stages-before-draw",
        "--window-size=1200,4600",
    )
    assert "script-error" not in shown and "could not be read" not in shown
    assert all(f'id="plot-{kind}"' in shown for kind in KINDS)
    assert shown.count('<li class="yes">') == len(found)


def test_the_made_up_transfer_is_like_a_real_one(trial: Path) -> None:
    fake_trace.write(Path("made-up"))
    real, made_up = traces.of_trial(trial), traces.of_folder(Path("made-up"))
    # Parquet leaves open what the entries of lists are called, and whether they may be null.
    kinds = [
        {field.name: str(field.type.value_type) if str(field.type).startswith("list") else str(field.type)
         for field in pq.read_schema(analysis.folder / trial_files.PACKETS)}
        for analysis in (real, made_up)
    ]  # fmt: skip
    assert kinds[0] == kinds[1]
    assert keys(real) >= keys(made_up) - {"qlog"}


def test_the_page_on_traces_is_true(bentpipe: Command, trial: Path) -> None:
    page = (paths.root() / "docs/reference/traces.md").read_text()
    columns, fates = page.partition("\n## `analysis.json`")[0].split("\n| `fate` | the packet")
    assert defined(columns) == pq.read_schema(traces.of_trial(trial).folder / trial_files.PACKETS).names
    assert set(traces.of_trial(trial).packets["fate"].unique().to_pylist()) <= set(defined(fates))
    connection = written(traces.of_trial(trial))
    metrics = connection["metrics"]
    for title, found in (
        ("Establishment", connection["establishment"]),
        ("Metrics", metrics),
        ("OneWay", metrics["forward"]),
    ):
        assert listed(title) == list(found)

    assert bentpipe("trace", trial / trial_files.TRACE, "-o", "out").code == 0
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"new stream data {SIZE / 1e6} MB" in done.stdout.splitlines()


def defined(text: str) -> list[str]:
    """The names in the first cells of tables."""
    return [
        name
        for line in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for name in re.findall("`(.*?)`", line)
    ]


def written(analysis: traces.Analysis) -> dict[str, Any]:
    """The first connection of analysis.json, as it stands there."""
    summary = json.loads((analysis.folder / trial_files.SUMMARY).read_text())
    return dict(summary["connections"][0])


def keys(analysis: traces.Analysis) -> set[str]:
    connection = written(analysis)
    ways = (key for name in ("forward", "return") for key in connection["metrics"][name])
    return {*connection, *connection["metrics"], *ways, *(event["name"] for event in connection["events"])}


def listed(title: str) -> list[str]:
    """The names that the page on analyses has under a heading."""
    page = (paths.root() / "docs/reference/analysis.md").read_text()
    section = page.partition(f"\n## `{title}`\n")[2].partition("\n## ")[0]
    return re.findall(r"^- `(\w+)` \(", section, re.MULTILINE)
