"""`bentpipe study visits`: the page on visits, from made-up runs."""

from __future__ import annotations

from pathlib import Path

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

CAMPAIGNS = ("visits-quic", "visits-tcp")


def trial(workload: str, plt_s: float | None, client: str = "noq") -> Record:
    made = fake_run.record("sat", client, client, 1)
    outcome = "transfer_timeout" if plt_s is None else "ok"
    return fake_run.change(
        made, workload=workload, treatment="direct", outcome=outcome, detail="", trial=f"{workload}{client}",
        rs_s=1.0, plt_s=plt_s,
    )  # fmt: skip


def runs(records: list[Record]) -> list[str]:
    """Words for the study's two runs, of which the first has the records."""
    quic, tcp = CAMPAIGNS
    return [
        *fake_run.write_campaign(quic, records),
        *fake_run.write_campaign(tcp, [trial("page:kuhn-b:h2", 2.0)]),
    ]


def test_later_visits_stand_beside_the_first(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    records = [
        trial("page:kosek:h3", 5.0),
        trial("page:kosek:h3:early", 4.25),
        trial("page:kosek:h3:early-cached", 1.5),
        trial("page:kosek:h3:resumed", None),
        trial("page:kosek:h3", 9.0, client="quinn"),
    ]
    text = bentpipe.page("visits", *runs(records))
    assert "| kosek | 75 / 1 | 3 | noq → noq | 1.00 / 5.00 |  | 1.00 / 4.25 |  | 1.00 / 1.50 |" in text
    assert "| kosek | 75 | 3 | quinn → quinn | 1.00 / 9.00 |  |  |  |  |" in text
    said = " ".join(text.split())
    assert (
        "HTTP/3: on a first visit pages take 5.00 to 9.00 s; one that is early saves 0.75 to 0.75 s" in said
    )
    assert "HTTP/2: on a first visit pages take 2.00 to 2.00 s." in said
    assert "one that is early-cached saves 3.50 to 3.50 s." in said
    assert "transfer_timeout" in text


def test_runs_without_later_visits_are_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = bentpipe("study", "visits", *runs([trial("page:kosek:h3", 5.0)]), "-o", "out")
    assert done.code != 0 and "no pages on later visits" in done.err


def test_times_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [trial("page:kosek:h3", 5.0), trial("page:kosek:h3:early", 4.25)]
    found = study_marks.leading("visits", runs(records))
    first, early = (RunCell(Path("visits-quic"), one.cell_key) for one in records)
    assert found["1.00 / 5.00"] == [first] and found["1.00 / 4.25"] == [early]
