"""The page that compares two runs of a site against `bentpipe compare`, over drawn runs: the one place where
the site has statistics of its own, as nobody knows before which of its runs a reader chooses.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from itertools import permutations
from pathlib import Path
from typing import Any

import fake_run
import pytest
from conftest import ROOT
from test_site import column, read_data

from bentpipe.analysis import comparison
from bentpipe.analysis.comparison import MEASURES, ComparedRun, Comparison
from bentpipe.report import collection
from bentpipe.runs.records import Record

UI = ROOT / "report-ui"
RUNS = 9
MEASURED = ("goodput_bps", "stalled_s", "handshake_s")
NEAR = 1e-9  # of two programs that add up in another order

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (UI / "node_modules/esbuild").is_dir(),
    reason="the tools of the site's pages are not installed (cd report-ui && npm ci)",
)


def draw_values(draw: random.Random, count: int) -> list[float | None]:
    """The values of a cell's trials: they vary, or are all the same, or some are 0, or not known."""
    middle = draw.choice((1.0, 1.0, 1.1, 40.0))
    vary = draw.choice((0.0, 0.02, 0.3))
    values: list[float | None] = [round(middle * 2**10 * draw.gauss(1, vary)) / 2**10 for _ in range(count)]
    for kind, share in ((0.0, draw.choice((0, 0, 0.3, 1))), (None, draw.choice((0, 0, 0, 0.3, 1)))):
        values = [kind if draw.random() < share else value for value in values]
    return [None if value is None else max(value, 0.0) for value in values]


def draw_cell(draw: random.Random, server: str) -> list[Record]:
    """The trials of a cell in a run."""
    protocol = draw.choice(("h3", "hq-interop", ""))
    count = draw.choice((1, 2, 3, 5, 8))
    samples = [draw_values(draw, count) for _ in MEASURED]
    records = []
    for number, values in enumerate(zip(*samples, strict=True), start=1):
        outcome = draw.choices(("ok", "crashed", "transfer_timeout"), (8, 1, 1))[0]
        made = fake_run.record("sat", "noq", server, number)
        told = dict(zip(MEASURED, values, strict=True))
        records.append(fake_run.change(made, outcome=outcome, alpn=protocol, iteration=number, **told))
    return records


def write_run(folder: Path, number: int) -> None:
    """A run of some of a few servers, of other versions, builds or paths than others."""
    draw = random.Random(number)
    fake_run.write(folder, stacks=("noq",))
    servers = [f"noq:iw={window}" for window in range(8) if draw.random() < 0.8]
    records = [one for server in servers for one in draw_cell(draw, server)]
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["started"] = f"2026-03-01T10:{number:02}:30Z"
    manifest["finished"] = draw.choice((manifest["finished"], None))
    manifest["versions"]["stacks"]["noq"] = draw.choice(("1.2.3", "2.0.0"))
    manifest["stacks"]["noq"]["installation"] = {"inputs_sha256": draw.choice("ab") * 64}
    manifest["options"]["testbed"] = draw.choice(("sim", "sim", "sim", "runner"))
    manifest["scenarios"]["sat"]["scenario"]["timeout"] = draw.choice(("120 s", "60 s"))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    version = manifest["versions"]["stacks"]["noq"]
    common = {"client_version": version, "server_version": version, "testbed": manifest["options"]["testbed"]}
    lines = [f"{fake_run.change(one, **common).to_json()}\n" for one in records]
    (folder / "records.jsonl").write_text("".join(lines))


def by_the_site(site: Path, pairs: list[tuple[int, int]], work: Path) -> list[dict[str, Any]]:
    """What the page finds, of all pairs and measures."""
    data = read_data(site / "data/site.js")
    names = ("run", "cell", "testbed", "outcome", "alpn", "seed")
    measures = {name: column(site, data["columns"].index(name)) for name in MEASURED}
    given = {
        "site": data,
        "codes": {name: column(site, name) for name in names},
        "measures": measures,
        "pairs": pairs,
    }
    program = work / "compared.mjs"
    bundle = ["node_modules/.bin/esbuild", "tests/compared.ts", "--bundle", "--platform=node", "--format=esm"]
    subprocess.run([*bundle, "--log-level=warning", f"--outfile={program}"], cwd=UI, check=True)
    done = subprocess.run(
        ["node", program], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def by_the_command(both: Comparison, keys: list[dict[str, str]]) -> dict[str, Any]:
    """The same of `bentpipe compare`; names of cells that one run alone has are not on the page."""

    def of(found: Any) -> int:
        return keys.index(found._asdict())

    cells = []
    for one in both.cells:
        ratio = one.ratio
        ends = None if ratio is None or ratio.low is None or ratio.high is None else [ratio.low, ratio.high]
        cells.append(
            {
                "cell": of(one.key),
                "means": [one.a.mean, one.b.mean],
                "outcomes": [_outcomes(one.a), _outcomes(one.b)],
                "value": ratio and ratio.value,
                "interval": ends,
                "p": ratio and ratio.p,
                "adjustedP": one.adjusted_p,
                "significant": one.significant,
                "mixed": one.mixed,
            }
        )
    said = [one.partition(": ")[0] if " only in " in one else one for one in comparison.remarks(both)]
    only = {"onlyA": [of(key) for key in both.only_a], "onlyB": [of(key) for key in both.only_b]}
    return {"cells": cells, **only, "remarks": said}


def _outcomes(found: comparison.CellMeasures) -> str:
    failed = "".join(f", {count} {name}" for name, count in found.failures.most_common())
    return f"{found.ok}/{found.trials}{failed}"


def near(found: Any, wanted: Any) -> bool:
    """The same, but for the last digits of numbers."""
    if isinstance(wanted, float) and isinstance(found, int | float):
        return found == pytest.approx(wanted, rel=NEAR, abs=1e-12)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(near, found, wanted))
    if isinstance(wanted, dict) and isinstance(found, dict):
        return found.keys() == wanted.keys() and all(near(found[key], wanted[key]) for key in wanted)
    return bool(found == wanted)


def test_any_two_runs_are_compared_as_the_command_does(tmp_path: Path) -> None:
    folders = [tmp_path / f"run{number}" for number in range(RUNS)]
    for number, folder in enumerate(folders):
        write_run(folder, number)
    collection.build(collection.Collection(folders, "Runs"), tmp_path / "site")
    keys = read_data(tmp_path / "site/data/site.js")["cells"]
    runs = [ComparedRun.read(folder) for folder in folders]
    pairs = list(permutations(range(RUNS), 2))
    significant, said = 0, set()
    for found in by_the_site(tmp_path / "site", pairs, tmp_path):
        a, b, name = (found.pop(key) for key in ("a", "b", "column"))
        wanted = by_the_command(comparison.compare(runs[a], runs[b], MEASURES[name]), keys)
        assert near(found.pop("remarks"), wanted.pop("remarks")), (a, b, name)
        for key in found:
            assert near(found[key], wanted[key]), (a, b, name, key, found[key], wanted[key])
        significant += sum(one["significant"] for one in wanted["cells"])
        said |= {one["mixed"] for one in wanted["cells"]}
    assert significant > 20 and said == {True, False}, "the drawn runs differ, and in their protocols too"
