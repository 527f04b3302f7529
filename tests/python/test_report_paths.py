"""Report pages of a scenario with several paths."""

import json
from pathlib import Path

import fake_run
import pytest
from test_report import read_data, write_records

from bentpipe.report import build


@pytest.mark.parametrize(("workload", "way"), [("transfer:1000000", "forward"), ("upload:1000000", "return")])
def test_the_rate_of_one_of_several_paths_is_no_line(tmp_path: Path, workload: str, way: str) -> None:
    record = next(r for r in fake_run.write(tmp_path, stacks=("noq",)) if r.scenario == "sat")
    write_records(tmp_path, [fake_run.change(record, workload=workload)])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    summary = manifest["scenarios"]["sat"]["summary"]
    assert summary[f"{way}_rate_bps"] and summary["rtt_ms"]
    summary["paths"] = [
        {"name": name, "rtt_ms": rtt_ms, "forward_rate_bps": 20e6, "return_rate_bps": None}
        for name, rtt_ms in (("geo", 600.0), ("leo", 60.0))
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    build(tmp_path)
    (file,) = (tmp_path / "report/data/cells").iterdir()
    data = read_data(file)
    assert (data["rate_bps"], data["ideal"], data["limit_s"]) == (None, None, record.limit_s)
    (matrix,) = read_data(tmp_path / "report/data/run.js")["matrices"]
    told = "geo: 600 ms, 20/unlimited Mbit/s; leo: 60 ms, 20/unlimited Mbit/s"
    assert matrix["summary"]["each_path"] == told and "paths" not in matrix["summary"]
