"""The ideal sender that is drawn is the one whose time stands in records."""

import pytest
from conftest import Command, installed_or_skip

from bentpipe.analysis import ideal_sender
from bentpipe.plan import scenarios

SIZE = 500_000


@pytest.mark.virtual_time
@pytest.mark.parametrize("testcase", ["transfer", "upload", "zerortt"])
def test_its_time_is_that_of_records(bentpipe: Command, testcase: str) -> None:
    installed_or_skip("noq")
    done = bentpipe(
        "run", "--scenario", "sat", "--client", "noq", "--server", "noq", "--iterations", "1", "--no-report",
        "--workload", f"{testcase}:{SIZE}", "--json",
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok", record["detail"]
    summary = scenarios.resolve("sat", ()).summary
    way = "return" if testcase == "upload" else "forward"
    on_link_s = SIZE * ideal_sender.HEADERS * 8 / summary[f"{way}_rate_bps"]
    around = sum(ideal_sender.round_trips(testcase)) * summary["rtt_ms"] / 1e3
    assert record["limit_s"] == pytest.approx(around + on_link_s, rel=1e-6)
    drawn = ideal_sender.curve(testcase, SIZE, record["limit_s"], summary["rtt_ms"] / 1e3)
    assert drawn is not None
    assert drawn[2][0] - drawn[1][0] == pytest.approx(on_link_s, rel=1e-6)
