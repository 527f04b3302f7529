"""`bentpipe study aqm`: the page on queue disciplines, from made-up runs."""

from __future__ import annotations

from collections.abc import Sequence
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
    assert "Of 2 servers, 1 set ECT, and 1 of these slow down" in flat
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


def front(text: str) -> str:
    """What stands above the first section on what was run, on one line."""
    return " ".join(text.partition("## What was run")[0].split())


SERVERS = ("noq", "quinn", "quiche")


def behind(scenario: str, seconds: Sequence[float], waits_ms: Sequence[float], **values: Any) -> list[Record]:
    """Two trials of each server behind a queue, of these seconds and waits."""
    return [
        fake_run.change(
            trial(scenario, server, time, (1, wait), **values), iteration=number, seed=f"{number}"
        )
        for server, time, wait in zip(SERVERS, seconds, waits_ms, strict=True)
        for number in (1, 2)
    ]


def test_title_and_answer_are_means_over_servers_with_their_intervals(bentpipe: Command) -> None:
    slower = behind(CODEL, (18.0, 20.0, 16.8), (70, 60, 36))  # 2, 2 and 2.1 times; 0.1, 0.12 and 0.09 times
    text = page(bentpipe, [*behind(TAIL, (9.0, 10.0, 8.0), (700, 500, 400)), *slower])
    title = "# Over sat codel cuts queueing by 90 % (85 to 93) and lengthens downloads by 103 % (90 to 118)\n"
    assert text.startswith(title)
    begin = front(text)
    assert "Means over 3 servers, with their intervals" in begin
    slowest = "a download of quiche behind codel over sat is slowed most: it takes 2.10 times as long as"
    assert f"{slowest} behind drop-tail, and of noq 2.00." in " ".join(text.split())
    assert "![Queueing and downloads behind each discipline, with intervals](aqm.svg)" in begin
    assert "- For downloads one at a time over sat, keep drop-tail" in begin


def test_an_effect_without_a_clear_interval_is_not_claimed(bentpipe: Command) -> None:
    tail = behind(TAIL, (9.0, 10.0, 8.0), (700, 500, 400))
    text = page(bentpipe, [*tail, *behind(CODEL, (8.0, 10.0, 12.0), (70, 500, 450))])
    assert text.startswith("# No queue discipline is shown to shorten queueing in the mean over servers")
    assert "## What to do with it" not in text
    assert "Over sat no discipline is shown to cut queueing" in front(text)
    # Queueing is cut, and the download keeps its time within 5 %.
    free = front(page(bentpipe, [*tail, *behind(CODEL, (9.1, 10.1, 8.1), (70, 60, 36))]))
    assert "- These shorten queueing, and downloads keep their time within 5 %: codel over sat." in free
    assert "keep drop-tail" not in free and "hardly changes downloads of 10 MiB, +1 %" in free


def test_a_server_of_which_a_trial_failed_is_in_no_mean(bentpipe: Command) -> None:
    tail, codel = behind(TAIL, (9.0,) * 3, (700,) * 3), behind(CODEL, (18.0,) * 3, (70,) * 3)
    codel[-1] = fake_run.change(codel[-1], outcome="transfer_timeout", completion_s=None)
    assert "Means over 2 servers" in front(page(bentpipe, [*tail, *codel]))


def test_files_of_other_sizes_are_not_compared(bentpipe: Command) -> None:
    """Behind drop-tail alone there is a smaller file, too."""
    tail, codel = behind(TAIL, (9.0,) * 3, (700,) * 3), behind(CODEL, (18.0,) * 3, (70,) * 3)
    small = behind(TAIL, (1.0,) * 3, (700,) * 3, workload="transfer:1MiB", size_bytes=2**20)
    small = [fake_run.change(one, trial=f"small-{one.trial}") for one in small]
    title = page(bentpipe, [*tail, *codel, *small]).partition("\n")[0]
    assert title == "# Over sat codel cuts queueing by 90 % and lengthens downloads by 100 %"


def test_a_path_with_a_long_label_has_a_title(bentpipe: Command) -> None:
    keys = ",forward.delay=300ms,return.delay=300ms,forward.rate=20Mbit/s,return.rate=2Mbit/s,"
    tail, codel = (one.replace(",", keys, 1) for one in (TAIL, CODEL))
    records = [*behind(tail, (9.0,) * 3, (700,) * 3), *behind(codel, (18.0,) * 3, (70,) * 3)]
    assert page(bentpipe, records).startswith("# Over one of 1 path codel cuts queueing by 90 %\n")


def test_one_server_has_no_interval_over_servers(bentpipe: Command) -> None:
    text = page(bentpipe, [trial(TAIL, "noq", 9.0, (100, 700)), trial(CODEL, "noq", 18.0, (2, 20))])
    assert text.startswith("# Queue disciplines over 1 path, of too few servers for an interval\n")


def test_ecn_is_advised_where_a_servers_own_trials_show_it(bentpipe: Command) -> None:
    ect = {"forward_ect": "ECT(0)", "forward_ect_share": 1.0}
    tail = behind(TAIL, (9.0, 10.0, 8.0), (700, 500, 400))
    dropping = behind(UNMARKED, (10.0, 10.0, 10.0), (70, 50, 40))
    marking = behind(CODEL, (9.0, 12.0, 10.4), (70, 50, 40), **ect)
    text = page(bentpipe, [*tail, *dropping, *marking])
    begin = front(text)
    assert "have no clear effect on downloads of the 3 servers with ECN, +4 % (-27 to +49) over sat" in begin
    most = "with marks in place of drops quinn takes 1.20 times as long behind codel over sat."
    assert most in " ".join(text.split())
    assert "- Turn ECN on for noq (1 of 1 setting): in these settings" in begin
    assert "- Leave ECN off for quinn (1 of 1 setting): in these settings" in begin


def test_a_sparse_flow_and_equal_flows_are_compared_over_each_path(bentpipe: Command) -> None:
    def flows(path: str, scenario: str, waits_ms: Sequence[float], indices: Sequence[float]) -> list[Record]:
        scenario = scenario.replace("sat", path)
        made = behind(scenario, (9.0,) * 3, (20,) * 3)
        for server, wait, index in zip(SERVERS, waits_ms, indices, strict=True):
            sparse = [flow(), flow(forward_queueing_p99_ms=wait)]
            made.append(trial(scenario, server, 9.0, (1, 2), workload=SPARSE, flows=sparse))
            equal = {"workload": "duration:30s + start=1s", "flows": [flow(), flow()], "jain_index": index}
            made.append(trial(scenario, server, 9.0, (1, 2), **equal))
        return made

    records = [*flows("sat", TAIL, (600, 500, 400), (0.80, 0.82, 0.81))]
    records += flows("sat", CODEL, (60, 50, 40), (0.99, 0.98, 0.99))
    records += [*flows("goodput", TAIL, (30, 30, 30), (1.0, 1.0, 1.0))]
    records += flows("goodput", CODEL, (20, 30, 40), (1.0, 1.0, 1.0))
    begin = front(page(bentpipe, records))
    assert "Over sat codel cuts the queueing of a sparse flow beside a bulk one by 90 %" in begin
    assert "over goodput no discipline is shown to cut it" in begin
    assert "over sat codel raises Jain's index of two equal flows from 0.81 (0.79 to 0.83) to 0.99" in begin
    assert "over goodput no discipline is shown to raise it from 1.00." in begin
    assert "- Where calls or games share a queue with downloads: codel over sat shorten" in begin


def test_the_caption_counts_the_servers_of_all_that_is_drawn(bentpipe: Command) -> None:
    """Sparse flows are beside fewer bulk flows than there are servers."""
    records = [*behind(TAIL, (9.0,) * 3, (700,) * 3), *behind(CODEL, (9.0,) * 3, (70,) * 3)]
    for scenario, wait in ((TAIL, 600.0), (CODEL, 60.0)):
        flows = [flow(), flow(forward_queueing_p99_ms=wait)]
        records += [
            trial(scenario, one, 9.0, (1, 2), workload=SPARSE, flows=flows) for one in ("noq", "quinn")
        ]
    assert "Means over 2 to 3 servers, with their intervals" in front(page(bentpipe, records))


def test_figures_lead_to_their_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = [trial(TAIL, "noq", 9.0, (100, 700)), trial(CODEL, "noq", 18.0, (2, 20))]
    fake_run.write(Path("run"))
    fake_run.write_records(Path("run"), records)
    found = study_marks.leading("aqm", ["--run", "run"])
    tail, codel = (RunCell(Path("run"), one.cell_key) for one in records)
    assert found["9.00"] == found["100.0 / 700.0"] == [tail] and found["18.00"] == [codel]
