"""`bentpipe study aqm`: the page on queue disciplines, from made-up runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake_run
import pytest
import study_marks
from conftest import Command

from bentpipe.analysis.trial_marks import RunCell
from bentpipe.runs.records import Record

CODEL = 'sat,forward.queue={size="1BDP",aqm="codel"}'
UNMARKED = 'sat,forward.queue={size="1BDP",aqm="codel",ecn="off"}'
TAIL = "sat,forward.queue=1BDP"
SPARSE = "duration:30s + client=noq,server=noq,workload=frames:20s:datagrams:400ms,start=5s"


def trial(scenario: str, server: str, seconds: float, waits: tuple[float, float], **values: Any) -> Record:
    made = fake_run.record("sat", "noq", server, 1)
    queueing = dict(zip(("forward_queueing_median_ms", "forward_queueing_p99_ms"), waits, strict=True))
    said = {"outcome": "ok", "detail": "", "completion_s": seconds}
    return fake_run.change(made, scenario=scenario, **(said | queueing | values))


def page(bentpipe: Command, records: list[Record]) -> str:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), records)
    return bentpipe.page("aqm", "--run", "run")


def test_disciplines_stand_side_by_side(bentpipe: Command) -> None:
    marks = {"forward_ect": "ECT(0)", "forward_ect_share": 1.0, "forward_marked": 9, "forward_ce_echoed": 8}
    answers = {"forward_ce_rounds": 5, "forward_ce_answered": 4}
    records = [
        trial(TAIL, "noq", 9.0, (100, 700)),
        trial(CODEL, "noq", 18.0, (2, 20), **marks, **answers),
        trial(UNMARKED, "noq", 27.0, (1, 10)),
        trial(TAIL, "quinn", 10.0, (100, 500)),
        trial(CODEL, "quinn", 11.0, (2, 30), forward_ect="none", forward_marked=0, forward_ce_echoed=0),
        trial(UNMARKED, "quinn", 11.0, (2, 30)),
    ]
    text = page(bentpipe, records)
    assert "| noq | 9.00 | 18.00 | 27.00 |" in text and "| noq | 100.0 / 700.0 | 2.0 / 20.0 |" in text
    assert "| server | drop-tail | codel | codel, ecn=off |" in text
    flat = " ".join(text.split())
    assert "99 % of the packets wait at most 20 ms over sat (codel, ecn=off; drop-tail 600)," in flat
    # 19 s in place of 9.5 s, and for noq 18 s in place of 27 s.
    assert "completion of 10 MiB up to 100 % over sat (codel, ecn=off) (medians over 2 servers)" in flat
    assert "Of 2 servers, 1 set ECT, and 1 of these slow down" in flat
    assert "change the completion of those that set ECT by -33 % (noq, codel) over sat." in flat
    assert "| noq | ECT(0) | 9 | 8 | 4 of 5 |" in text and "| quinn | none | 0 | 0 | - |" in text


def test_a_sender_whose_validation_failed_stops(bentpipe: Command) -> None:
    stopped = {"forward_ect": "ECT(0)", "forward_ect_share": 0.1, "forward_marked": 9, "forward_ce_echoed": 0}
    text = page(bentpipe, [trial(TAIL, "noq", 9.0, (1, 2)), trial(CODEL, "noq", 9.0, (1, 2), **stopped)])
    assert "| noq | ECT(0), stops | 9 | 0 | - |" in text


def test_drop_tail_alone_makes_no_page(bentpipe: Command) -> None:
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), [trial(TAIL, "noq", 9.0, (1, 2))])
    done = bentpipe("study", "aqm", "--run", "run", "-o", "out")
    assert done.code != 0 and "with and without an aqm" in done.err and "bentpipe run aqm" in done.err


def flow(**values: Any) -> dict[str, Any]:
    counts = {
        f"{way}_{what}": 0 for way in ("forward", "return") for what in ("packets", "queue_drops", "losses")
    }
    waits = {f"{way}_queueing_{what}_ms": 0.0 for way in ("forward", "return") for what in ("median", "p99")}
    said = {"client": "noq", "server": "noq", "start_s": 0.0, "end_s": 30.0, "outcome": "ok", "detail": ""}
    return {**said, "goodput_bps": None, "received_bytes": [], **counts, **waits, **values}


def test_two_flows_have_an_index_and_a_sparse_one_its_wait(bentpipe: Command) -> None:
    def beside(scenario: str, half: float, most: float) -> Record:
        second = flow(forward_queueing_median_ms=half, forward_queueing_p99_ms=most)
        return trial(scenario, "noq", 9.0, (1, 2), workload=SPARSE, flows=[flow(), second])

    equal: dict[str, Any] = {"workload": "duration:30s + start=1s", "flows": [flow(), flow()]}
    records = [
        trial(TAIL, "noq", 9.0, (1, 2)),
        trial(CODEL, "noq", 9.0, (1, 2)),
        trial(TAIL, "noq", 9.0, (1, 2), jain_index=0.75, **equal),
        trial(CODEL, "noq", 9.0, (1, 2), jain_index=0.875, **equal),
        beside(TAIL, 300, 600),
        beside(CODEL, 0, 2.5),
    ]
    text = page(bentpipe, records)
    assert "| bulk flow | drop-tail | codel |" in text and "| noq | 300.0 / 600.0 | 0.0 / 2.5 |" in text
    assert "| noq | 0.75 (0.75) | 0.88 (0.88) |" in text
    flat = " ".join(text.split())
    assert "at most 600 ms behind drop-tail and 2.5 ms behind codel" in flat
    assert "falls to 0.75 behind drop-tail, and behind codel to 0.88 (least of all pairs)" in flat


def test_figures_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [trial(TAIL, "noq", 9.0, (100, 700)), trial(CODEL, "noq", 18.0, (2, 20))]
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), records)
    found = study_marks.leading("aqm", ["--run", "run"])
    tail, codel = (RunCell(Path("run"), one.cell_key) for one in records)
    assert found["9.00"] == found["100.0 / 700.0"] == [tail] and found["18.00"] == [codel]
