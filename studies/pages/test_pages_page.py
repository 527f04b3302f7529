"""`bentpipe study pages`: the page on pages, from made-up runs."""

from __future__ import annotations

import json
from pathlib import Path

import fake_run
import pytest
from conftest import Command

from bentpipe.runs.records import Record

LOSSES = ("0%", "1%")
QUIC_CHAIN = "quic-pep terminal:mode=sequential,gateway:mode=sequential"


def trial(
    scenario: str, http: str, plt_s: float | None, treatment: str = "direct", **values: str | float
) -> Record:
    made = fake_run.record("sat", "noq", "noq", int(values.pop("iteration", 1)))
    good = {
        "scenario": scenario,
        "workload": f"page:kosek:{http}",
        "treatment": treatment,
        "outcome": "ok" if plt_s else "transfer_timeout",
        "detail": "",
        "rs_s": 1.0,
        "fcp_s": plt_s and plt_s / 2,
        "plt_s": plt_s,
        "trial": f"{scenario}{http}{plt_s}{treatment}{values}",
    }
    return fake_run.change(made, **(good | values))


def lossy(name: str, loss: str) -> str:
    return f"{name},forward.loss={loss},return.loss={loss}"


def write(campaign: str, records: list[Record]) -> Path:
    fake_run.write(Path(campaign))
    manifest = json.loads(Path(campaign, "manifest.json").read_text())
    manifest["campaign"] = campaign
    Path(campaign, "manifest.json").write_text(json.dumps(manifest))
    Path(campaign, "records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records))
    return Path(campaign)


def page(bentpipe: Command, *runs: Path) -> str:
    done = bentpipe("study", "pages", *(word for run in runs for word in ("--run", str(run))), "-o", "out")
    assert done.code == 0, done.err
    return Path("out/pages.md").read_text()


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The runs of the paper's table: over one orbit, with two of its losses; a trial of one failed."""
    monkeypatch.chdir(tmp_path)
    h3 = [trial(lossy("geo-tum", loss), "h3", time) for loss, time in zip(LOSSES, (5.0, 9.0), strict=True)]
    h3 += [trial(lossy("geo-tum", "0%"), "h3", 4.0, QUIC_CHAIN)]
    h3 += [trial(lossy("geo-tum", "1%"), "h3", None, iteration=2)]
    h1 = [trial(lossy("geo-tum", "0%"), "h1", 10.0)]
    return [write("pages-h3", h3), write("pages-h1", h1)]


def test_the_table_is_set_beside_the_published_one(bentpipe: Command, table: list[Path]) -> None:
    text = page(bentpipe, *table)
    plt = text.partition("| Page load time |")[2]
    assert "| geo-tum, HTTP/3 | 5.00 / 7.67 | - / 7.67 | - / 7.74 | 9.00, 1 failed / 16.86 |" in plt
    assert "| geo-tum, HTTP/3, proxies | 4.00 / 7.34 |" in plt
    assert "| geo-tum, HTTP/1.1 | 10.00 / 10.81 |" in plt
    assert "| leo-tum, HTTP/3 | - / 2.61 |" in plt
    assert "| geo-tum, HTTP/3 | 1.00 / 1.31 |" in text.partition("| Response start |")[2]
    assert "Requests at once" not in text, "that run is not there"


def test_the_setting_nearest_to_the_paper_is_named(bentpipe: Command, table: list[Path]) -> None:
    trials = [
        trial("geo-tum", "h3", plt_s, fcp_s=fcp_s, client=f"noq:parallel={most}", server=f"noq:iw={window}")
        for most, window, fcp_s, plt_s in ((6, 10, 4, 10), (6, 32, 3, 9), (8, 10, 3, 8.6), (8, 32, 2.8, 7.7))
    ]  # fmt: skip
    text = page(bentpipe, *table, write("pages-parallel", trials))
    assert "| 8 | 3.00 | 8.60 | 2.80 | 7.70 |" in text
    assert "| published | 2.76 | 7.67 | 2.76 | 7.67 |" in text
    said = " ".join(text.split())
    assert (
        "nearest to 8 requests at once and an initial window of 32 packets: neither is further off than 1 %"
        in said
    )


def test_runs_that_are_not_of_the_study_are_refused(bentpipe: Command, table: list[Path]) -> None:
    other = write("demo", [trial("geo-tum", "h3", 5.0)])
    for runs, wrong in ((table[:1], "pages-h3 and pages-h1"), ([*table, other], "no campaign of this study")):
        done = bentpipe("study", "pages", *(w for run in runs for w in ("--run", str(run))), "-o", "out")
        assert done.code != 0 and (wrong in done.err or "its page is written from" in done.err), done.err
