"""Made-up runs of variants against settings, and the pages of studies that are written from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fake_run
from conftest import Command

from bentpipe.runs.records import Record

OWN, REFERENCE, RASH, GOOD = (
    "noq:cc=cubic",
    "noq:cc=cubic:ss=hystart++",
    "noq:cc=cubic:ss=hybla",
    "noq:cc=cubic:ss=trains",
)
# Variant → share of the limit, and packets that the queue dropped of a thousand.
COMES_TO = {OWN: (0.5, 20), REFERENCE: (0.6, 10), RASH: (0.95, 400), GOOD: (0.85, 0)}
SIZE = 10_000_000


def trial(server: str, iteration: int, scenario: str = "sat", size: int = SIZE, **values: Any) -> Record:
    """One thousand packets of a thousandth of the file each."""
    share, drops = COMES_TO[server]
    made = fake_run.record("sat", "noq", server, iteration)
    good = {
        "scenario": scenario,
        "workload": f"transfer:{size}",
        "size_bytes": size,
        "outcome": "ok",
        "detail": "",
        "share_of_limit": share,
        "forward_packets": 1000,
        "forward_bytes": size,
        "forward_queue_drops": drops,
    }
    return fake_run.change(made, **(good | values))


def fail(record: Record) -> Record:
    return fake_run.change(record, outcome="transfer_timeout", detail="after 600 s", share_of_limit=None)


def write(records: list[Record]) -> None:
    fake_run.write(Path("run"))
    manifest = json.loads(Path("run/manifest.json").read_text())
    manifest["scenarios"] |= {one.scenario: manifest["scenarios"]["sat"] for one in records}
    Path("run/manifest.json").write_text(json.dumps(manifest))
    Path("run/records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records))


def page(bentpipe: Command, name: str) -> str:
    done = bentpipe("study", name, "--run", "run", "-o", "out")
    assert done.code == 0, done.err
    files = done.out.split()
    assert files[0] == f"out/{name}.md" and f"out/{name}.svg" in files
    assert all(Path(file).is_file() for file in files)
    return Path(f"out/{name}.md").read_text()
