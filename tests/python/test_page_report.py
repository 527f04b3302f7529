"""What is kept, shown and written of a trial that loaded a page: requests, their waterfall, a HAR."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import against_schema
import browser
import fake_run
import msgspec
import pyarrow.parquet as pq
import pytest
from conftest import Command, installed_or_skip

from bentpipe.analysis import page_requests
from bentpipe.report import build
from bentpipe.runs.records import Record
from bentpipe.schema.requests import PageRequest
from bentpipe.workload import page as pages
from bentpipe.workload.page import Page, har
from bentpipe.workload.page.har_writer import LoadedPage
from bentpipe.workload.page.har_writer import har as written

SCHEMA = json.loads((Path(__file__).resolve().parents[2] / "schemas" / "requests.schema.json").read_text())


def request(path: str, kind: str, size: int, initiator: str | None, *times: float | None) -> PageRequest:
    asked, first, last = times
    return PageRequest(
        path=path, type=kind, bytes=size, initiator=initiator, urgency=3, asked_s=asked, first_byte_s=first,
        last_byte_s=last,
    )  # fmt: skip


# In the order of asking. Of the last three one did not come whole, one had no response, one was never sent.
REQUESTS = (
    request("/0-4000.html", "document", 4000, None, 0.6, 1.2, 1.5),
    request("/2-0.js", "script", 0, "/0-4000.html", 1.3, 1.9, 1.9),
    request("/1-900.css", "stylesheet", 900, "/0-4000.html", 1.5, 2.1, 2.2),
    request("/3-50.json", "fetch", 50, "/2-0.js", 2.4, 3.0, 3.0),
    request("/4-70.png", "image", 70, "/0-4000.html", 2.5, 3.1, None),
    request("/5-80.png", "image", 80, "/0-4000.html", 2.5, None, None),
    request("/6-90.woff2", "font", 90, "/1-900.css", None, None, None),
)


def write_run(folder: Path, text: str | None = None, **values: Any) -> Record:
    """A run of one trial that loaded a page, with `text` as the file of its requests."""
    times = {"rs_s": 1.2, "fcp_s": 2.2, "dcl_s": 2.2, "plt_s": 3.0, "requests_at_once": 4}
    given: dict[str, Any] = {"workload": "page:kosek:h3", "alpn": "h3", "goodput_bps": None} | times | values
    record = fake_run.change(fake_run.record("sat", "noq", "noq", 1), efficiency=None, **given)
    fake_run.write(folder, stacks=("noq",), iterations=1)
    (folder / "records.jsonl").write_text(f"{record.to_json()}\n")
    requests = msgspec.to_builtins(sorted(REQUESTS, key=lambda one: one.path))
    trial = folder / "trials" / record.trial
    trial.mkdir(parents=True)
    (trial / "requests.json").write_text(text or json.dumps({"format": 1, "requests": requests}))
    return record


def shape(page: Page) -> Counter[tuple[str, int, str, int]]:
    """The resources, each with its type, its size, and those of what led to it: paths are given anew."""
    of = {one.path: (one.type, one.bytes) for one in page.resource}
    return Counter((one.type, one.bytes, *of.get(one.initiator, ("", 0))) for one in page.resource)


def data(file: Path) -> Any:
    """What a data script of the report assigns."""
    match = re.fullmatch(r"window\.\w+=(.*);\n", file.read_text())
    assert match
    return json.loads(match[1])


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("trace", "visit"), [("median", "first"), ("analysis", "first"), ("median", "early")]
)
def test_a_trial_whose_trace_is_kept_has_its_requests_and_the_median_alone(
    trace: str, visit: str, bentpipe: Command
) -> None:
    """They agree with its record, the page of its cell has them, and a HAR of them is the page again."""
    installed_or_skip("noq")
    words = [
        "--scenario",
        "satloss",
        "--workload",
        f"page:kosek:{visit}",
        "--client",
        "noq",
        "--server",
        "noq",
    ]
    done = bentpipe("run", *words, "--iterations", "3", "--trace", trace, "--json", "--out", "A")
    assert done.code == 0, done.err
    (file,) = Path("A").glob("trials/*/requests.json")
    values = json.loads(file.read_text())
    assert list(against_schema.faults(values, SCHEMA, SCHEMA)) == []
    (record,) = [one for one in done.records() if one["trial"] == file.parent.name]
    requests = values["requests"]
    assert len(requests) == 75 and requests[0]["initiator"] is None
    assert requests[0]["first_byte_s"] == record["rs_s"]
    assert max(one["last_byte_s"] for one in requests) == record["plt_s"]
    assert all(one["asked_s"] <= one["first_byte_s"] <= one["last_byte_s"] for one in requests)
    (cell,) = [data(one) for one in Path("A/report/data/cells").glob("*.js")]
    shown, streams = cell["waterfall"]["requests"], cell["waterfall"]["streams"]
    assert len(streams) == 75 and all(one["packets"] > 0 for one in streams)
    lost = [at for one in streams for at in one["lost_s"]]
    # A packet may carry parts of several.
    assert 0 < len(set(lost)) <= record["forward_losses"] and max(lost) < record["plt_s"]
    assert [one["path"] for one in shown][:2] == ["/", "/stylesheet1.css"], "by the names of the page"
    assert [one["asked_s"] for one in shown] == sorted(one["asked_s"] for one in requests)
    assert bentpipe("page", "har", file.parent, "-o", "out.har").code == 0
    assert bentpipe("page", "import", "out.har", "-o", "out.toml").code == 0
    assert shape(pages.load("out.toml")) == shape(pages.load("kosek"))


@pytest.mark.virtual_time
def test_packets_of_other_flows_and_hops_are_not_marked(bentpipe: Command) -> None:
    """The flow beside has the same page, and would fit."""
    installed_or_skip("noq")
    words = ["--scenario", "satloss", "--workload", "page:kosek", "--client", "noq", "--server", "noq",
             "--iterations", "1"]  # fmt: skip
    ways = {"A": ["--flow", "start=1s"], "B": ["--treatment", "quic-pep"]}
    shown = {}
    for out, more in ways.items():
        done = bentpipe("run", *words, *more, "--out", out)
        assert done.code == 0, done.err
        (cell,) = [data(one) for one in Path(out, "report/data/cells").glob("*.js")]
        shown[out] = cell["waterfall"]
    (file,) = Path("A").glob("trials/*/packets.parquet")
    packets = pq.read_table(file, filters=[("connection", "=", 0)]).to_pylist()
    lost = [one["sent_s"] for one in packets if one["sender"] == "server" and one["fate"] != "delivered"]
    marked = {at for one in shown["A"]["streams"] for at in one["lost_s"]}
    assert marked and marked <= set(lost), "of the flow that began first"
    assert shown["B"]["streams"] is None and len(shown["B"]["requests"]) == 75


def test_a_har_has_what_other_tools_ask_for(tmp_path: Path) -> None:
    """Its required keys are there (HAR 1.2), and its times add up."""
    began = datetime(2000, 1, 1, tzinfo=UTC)
    loaded = LoadedPage("p", "noq", "1.0", "h2", began, dcl_s=2.2, plt_s=None, requests=REQUESTS)
    log = written(loaded)["log"]
    assert {"version", "creator", "entries"} <= log.keys()
    assert log["pages"][0]["pageTimings"] == {"onContentLoad": 2200.0, "onLoad": -1}
    assert len(log["entries"]) == 6, "what was not asked for is not there"
    for one in log["entries"]:
        assert {"startedDateTime", "time", "request", "response", "cache", "timings"} <= one.keys()
        assert one["time"] == pytest.approx(sum(max(step, 0) for step in one["timings"].values()))
        assert one["request"]["httpVersion"] == one["response"]["httpVersion"] == "HTTP/2"
    over = tuple(msgspec.structs.replace(one, protocol="h3") for one in REQUESTS)
    upgraded = written(
        LoadedPage("p", "chromium", "1.0", "h2-h3", began, dcl_s=2.2, plt_s=None, requests=over)
    )
    assert {one["response"]["httpVersion"] for one in upgraded["log"]["entries"]} == {"HTTP/3"}
    document, script, *_ = log["entries"]
    assert document["startedDateTime"] == "2000-01-01T00:00:00.000000Z"
    assert (document["timings"]["connect"], document["timings"]["wait"]) == (600.0, 600.0)
    assert (script["startedDateTime"], script["timings"]["receive"]) == ("2000-01-01T00:00:01.300000Z", 0.0)
    assert [one["response"]["status"] for one in log["entries"]] == [200, 200, 200, 200, 0, 0]
    file = tmp_path / "out.har"
    file.write_text(json.dumps(written(loaded)))
    found = har.read(file)
    assert found.left_out == {"without an answer": 2}
    own = [(one.type, one.bytes, one.initiator) for one in found.page.resource]
    assert own == [
        ("document", 4000, ""), ("script", 0, "/0-0-4000.html"), ("stylesheet", 900, "/0-0-4000.html"),
        ("fetch", 50, "/1-2-0.js"),
    ]  # fmt: skip
    waits = [(one.found_after, one.wait_ms) for one in found.page.resource]
    assert waits[1:] == [(0.333, 0), (1.0, 0), (1.0, 500)]


def test_paths_of_a_page_become_urls_of_their_own(tmp_path: Path) -> None:
    """With a # or a query in them, too."""
    paths = ["/", "/a#b", "/a#c", "/a?q=1"]
    requests = [
        request(path, "fetch" if number else "document", number, "/" if number else None, number, number, 9.0)
        for number, path in enumerate(paths)
    ]
    loaded = LoadedPage("p", "c", "", "h3", datetime(2000, 1, 1, tzinfo=UTC), 1.0, 9.0, tuple(requests))
    assert written(loaded)["log"]["entries"][3]["request"]["queryString"] == [{"name": "q", "value": "1"}]
    (tmp_path / "out.har").write_text(json.dumps(written(loaded)))
    assert len(har.read(tmp_path / "out.har").page.resource) == 4


def test_mistakes_are_named(bentpipe: Command, tmp_path: Path) -> None:
    record = write_run(Path("A"))
    trial = Path("A/trials") / record.trial
    assert bentpipe("page", "har", trial).out == f"{record.trial}.har: 6 entries\n"
    for words, wrong, hint in (
        ([trial], "is there already", "--force"),
        ([trial, "-o", "no/out.har"], "there is no folder", "make it first"),
        (["A"], "is no trial of a run", "RUN/trials/ID"),
        (["B"], "B: there is no such folder", "RUN/trials/ID"),
    ):
        done = bentpipe("page", "har", *words)
        assert done.code == 2 and wrong in done.err and hint in done.err, done.err
    assert bentpipe("page", "har", trial, "--force").code == 0
    (trial / "requests.json").unlink()
    done = bentpipe("page", "har", trial)
    assert done.code == 2 and "requests.json: there is no such file" in done.err and "--trace all" in done.err


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("{", "cannot be read"),
        ("[]", "it is no JSON object"),
        ('{"format": 3, "requests": []}', "it is of format 3"),
        ('{"format": 1, "requests": [{"path": "/"}]}', 'the key "requests[0].type" is missing'),
        ('{"format": 1}', 'the key "requests" is missing'),
    ],
)
def test_a_damaged_file_is_named_and_the_report_is_otherwise_whole(
    text: str, wrong: str, bentpipe: Command
) -> None:
    record = write_run(Path("A"), text)
    done = bentpipe("page", "har", Path("A/trials") / record.trial)
    assert done.code == 1 and f"{record.trial}/requests.json: " in done.err and wrong in done.err
    assert "hint: " in done.err
    build(Path("A"))
    (cell,) = [data(one) for one in Path("A/report/data/cells").glob("*.js")]
    assert wrong in cell["waterfall"]["failure"] and cell["waterfall"]["requests"] == []


def test_a_trial_of_files_has_no_waterfall(bentpipe: Command) -> None:
    record = write_run(Path("A"), workload="transfer:10485760")
    done = bentpipe("page", "har", Path("A/trials") / record.trial)
    assert done.code == 2 and "loaded no page, but transfer of 10 MiB" in done.err
    build(Path("A"))
    (cell,) = [data(one) for one in Path("A/report/data/cells").glob("*.js")]
    assert cell["waterfall"] is None


def test_a_page_that_is_not_what_it_was_does_not_lend_its_names(tmp_path: Path) -> None:
    record = write_run(tmp_path / "A")
    found = page_requests.of_trial(tmp_path / "A" / "trials" / record.trial, record)
    assert found.requests[1].path == "/1-900.css" and found.requests[3].initiator == "/2-0.js"
    ordered = page_requests.in_order_of_asking(found)
    assert [one.path for one in ordered.requests] == [one.path for one in REQUESTS]


@pytest.mark.browser
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no Chromium")
def test_the_page_of_a_cell_draws_the_waterfall_and_says_it_in_words(tmp_path: Path) -> None:
    write_run(tmp_path / "A")
    build(tmp_path / "A")
    (cell,) = (tmp_path / "A/report/cells").glob("*.html")
    drawn = browser.dump(cell.as_uri(), tmp_path / "profile")
    assert 'role="alert"' not in drawn
    assert drawn.count('class="comes"') == 4 and drawn.count('class="comes endless"') == 1
    assert "asked for at 2.50\u202fs, no response, led to by /0-4000.html, urgency 3" in drawn
    assert "never asked for, led to by /1-900.css" in drawn
    for name in ("RS", "FCP", "DOM", "PLT"):
        assert f"<b>{name}</b>" in drawn
    index = browser.dump((tmp_path / "A/report/index.html").as_uri(), tmp_path / "other")
    assert "<b>3.00\u202fs</b>" in index and "Page load time (PLT)" in index
