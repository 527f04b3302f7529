"""The report of a run: its numbers, its files, and its pages in a real browser."""

from __future__ import annotations

import errno
import json
import re
import shlex
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import browser
import fake_run
import msgspec
import pytest

from bentpipe.analysis.cells import Cell, cells, matrices, spread
from bentpipe.errors import BentpipeError
from bentpipe.report import build
from bentpipe.report.command import reproduce
from bentpipe.report.slugs import assign
from bentpipe.runs.records import Record

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "</script><script>document.title='harmed'</script><img src=x onerror=\"document.title='harmed'\">"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 4 stacks over 3 scenarios, 3 iterations each, with its report."""
    folder = tmp_path_factory.mktemp("run")
    fake_run.write(folder)
    trace = folder / "trials" / "sat-quinn-noq-2" / "trace.pcapng"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"\x0a\x0d\x0d\x0a")
    trace.with_name("link-events.json").write_text("{}\n")
    build(folder)
    return folder


def read_data(path: Path) -> Any:
    """What a data script assigns."""
    match = re.fullmatch(r"window\.\w+=(.*);\n", path.read_text())
    assert match, path
    return json.loads(match[1])


def write_records(folder: Path, records: list[Record]) -> None:
    (folder / "records.jsonl").write_text("".join(f"{record.to_json()}\n" for record in records))


# Numbers


def test_matrix_has_mean_deviation_and_failures(run: Path) -> None:
    data = read_data(run / "report/data/run.js")
    assert [matrix["scenario"] for matrix in data["matrices"]] == ["goodput", "sat", "satloss"]
    assert (data["trials"], data["failed"]) == (144, 16)
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    own = [r for r in records if (r["scenario"], r["client"], r["server"]) == ("sat", "aioquic", "quinn")]
    goodputs = [r["goodput_bps"] for r in own if r["outcome"] == "ok"]
    cell = next(c for c in data["matrices"][1]["cells"] if (c["client"], c["server"]) == ("aioquic", "quinn"))
    assert cell["goodput_mean_bps"] == pytest.approx(sum(goodputs) / 2)
    assert cell["goodput_deviation_bps"] == pytest.approx(statistics.stdev(goodputs))
    assert cell["failures"] == [["crashed", 1]]
    assert cell["spreads"]["goodput_bps"]["max"] == max(goodputs)


def test_margins_are_means_of_cells_that_succeeded(run: Path) -> None:
    matrix = read_data(run / "report/data/run.js")["matrices"][2]
    servers = {margin["name"]: margin for margin in matrix["servers"]}
    assert servers["aioquic"]["efficiency"] is None
    assert (servers["aioquic"]["cells_failed"], servers["aioquic"]["failed"]) == (4, 12)
    noq = [cell["efficiency"] for cell in matrix["cells"] if cell["client"] == "noq" and cell["efficiency"]]
    clients = {margin["name"]: margin for margin in matrix["clients"]}
    assert len(noq) == 3
    assert clients["noq"]["efficiency"] == pytest.approx(sum(noq) / 3)
    assert (matrix["total"]["cells"], matrix["total"]["trials"], matrix["total"]["failed"]) == (16, 48, 15)


def test_success_without_goodput_is_no_error(tmp_path: Path) -> None:
    """A file that comes in one packet has no time between its first and last byte."""
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[0]
    record = fake_run.change(record, goodput_bps=None, efficiency=None, transfer_s=0.0)
    (cell,) = cells([record])
    assert (cell.goodput_mean_bps, cell.goodput_deviation_bps, cell.efficiency_mean) == (None, None, None)
    write_records(tmp_path, [record])
    build(tmp_path)
    total = read_data(tmp_path / "report/data/run.js")["matrices"][0]["total"]
    assert (total["cells_failed"], total["cells_measured"]) == (0, 0)


def test_a_single_goodput_has_no_deviation(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    build(tmp_path)
    cell = read_data(tmp_path / "report/data/run.js")["matrices"][0]["cells"][0]
    assert cell["goodput_mean_bps"] > 0
    assert cell["goodput_deviation_bps"] is None


def test_only_a_success_is_a_median_iteration(run: Path) -> None:
    assert read_data(run / "report/data/cells/satloss--noq--aioquic.js")["median"] is None
    assert read_data(run / "report/data/cells/sat--noq--noq.js")["median"] in (1, 2, 3)


def test_a_cell_without_goodputs_has_the_median_of_completion(tmp_path: Path) -> None:
    """As of a file that fits into one flight: the fastest may have none, where slower ones do."""
    made = [
        fake_run.change(fake_run.record("sat", "noq", "noq", n), completion_s=s, goodput_bps=bps)
        for n, s, bps in ((1, 1.9, 1e6), (2, 1.2, None), (3, 1.5, 2e6))
    ]
    (cell,) = matrices(made)[0].cells
    assert cell.median is not None and cell.median.iteration == 3
    (cell,) = matrices([fake_run.change(one, goodput_bps=None) for one in made])[0].cells
    assert cell.median is not None and cell.median.iteration == 3


def test_a_cell_of_frames_counts_those_that_never_came(tmp_path: Path) -> None:
    """The age that 99 % did not exceed is infinite where more were lost: two of three trials, or one."""
    fake_run.write(tmp_path)
    told: dict[str, Any] = {"workload": "frames:30s:streams:400ms", "goodput_bps": None, "frames": 900}
    ages = {"noq": (0.3, 0.0, None), "quinn": (0.3, None, None)}
    made = [
        fake_run.change(
            fake_run.record("sat", client, "noq", number), **told,
            in_time_share=share, frame_age_p99_s=age, frame_age_median_s=0.3,
        )
        for client, of_client in ages.items()
        for number, share, age in zip((1, 2, 3), (0.9, 0.9, 0.0), of_client, strict=True)
    ]  # fmt: skip
    write_records(tmp_path, made)
    build(tmp_path)
    (matrix,) = read_data(tmp_path / "report/data/run.js")["matrices"]
    one, other = (cell["spreads"] for cell in matrix["cells"])
    assert one["frame_age_p99_s"] == {"min": 0.0, "median": 0.3, "max": None}
    assert other["frame_age_p99_s"] is None
    assert one["in_time_share"] == {"min": 0.0, "median": 0.9, "max": 0.9}
    # Of two that were in time as often, the one with older frames; an age of 0 is one.
    medians = [cell.median for cell in matrices(made)[0].cells]
    assert [median and median.iteration for median in medians] == [1, 2]


def test_an_ideal_sender_sends_headers_too(run: Path) -> None:
    """It starts after two round trips, and ends at the limit."""
    data = read_data(run / "report/data/cells/sat--noq--noq.js")
    assert data["measured_bytes"] == fake_run.SIZE and data["receiver"] == "client"
    assert (data["rate_bps"], data["ideal"][:2]) == (20e6, [[0, 0], [1.2, 0]])
    end, sent = data["ideal"][2]
    assert end == data["limit_s"] and sent == pytest.approx(1.05 * fake_run.SIZE, abs=1)
    assert sent == pytest.approx((end - 1.2) * 20e6 / 8)


@pytest.mark.parametrize(
    ("workload", "bytes", "rate_bps", "begin_s", "after_s"),
    [
        ("upload:1000000", 1_000_000, 2e6, 0.9, 0.3),  # what arrives at the server needs half a round trip
        ("resumption:3x1000000", 2_000_000, 20e6, 1.2, 0.0),  # the first connection's file does not count
        ("zerortt:2x1000000", 1_000_000, 20e6, 0.6, 0.0),
    ],
)
def test_an_ideal_sender_does_what_the_workload_asks_for(
    tmp_path: Path, workload: str, bytes: int, rate_bps: float, begin_s: float, after_s: float
) -> None:
    record = next(r for r in fake_run.write(tmp_path, stacks=("noq",)) if r.scenario == "sat")
    limit_s = begin_s + 8.4 * bytes / rate_bps + after_s  # as the coordinator has it
    write_records(tmp_path, [fake_run.change(record, workload=workload, limit_s=limit_s)])
    build(tmp_path)
    (file,) = (tmp_path / "report/data/cells").iterdir()
    data = read_data(file)
    assert (data["measured_bytes"], data["rate_bps"]) == (bytes, rate_bps)
    assert data["receiver"] == ("server" if workload.startswith("upload") else "client")
    expected = [(0, 0), (begin_s, 0), (limit_s - after_s, 1.05 * bytes)]
    assert [tuple(point) for point in data["ideal"]] == [pytest.approx(point) for point in expected]


def test_without_a_round_trip_time_there_is_no_ideal_sender(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["scenarios"]["sat"]["summary"] = {}
    manifest["scenarios"]["goodput"]["summary"]["rtt_ms"] = 1e6  # of another path than the records' limit
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    build(tmp_path)
    for name in ("sat", "goodput"):
        assert read_data(tmp_path / f"report/data/cells/{name}--noq--noq.js")["ideal"] is None


def test_summaries_of_nothing_are_none() -> None:
    assert spread([None, None]) is None
    assert spread([3.0, None, 1.0, 2.0]) == (1.0, 2.0, 3.0)


def test_matrices_keep_settings_apart(tmp_path: Path) -> None:
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[0]
    other = fake_run.change(record, treatment="quic-pep")
    found = matrices([record, other, record])
    assert [(m.key.treatment, len(m.cells)) for m in found] == [("direct", 1), ("quic-pep", 1)]


WORKLOADS = ("transfer:1000", "transfer:20000", "upload:3000", "transfer:3x100000")


@pytest.fixture
def several_workloads(tmp_path: Path) -> Path:
    """A run in which one pair moves four things over one path; the smallest has no goodput."""
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[1]
    silent = {"goodput_bps": None, "efficiency": None, "completion_s": 1.25}
    made = [
        fake_run.change(record, workload=one, **(silent if one == WORKLOADS[0] else {})) for one in WORKLOADS
    ]
    write_records(tmp_path, made[::-1])
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["options"]["workloads"] = list(WORKLOADS)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    build(tmp_path)
    return tmp_path


def test_workloads_come_in_the_order_of_the_campaign(several_workloads: Path) -> None:
    matrices = read_data(several_workloads / "report/data/run.js")["matrices"]
    assert [matrix["workload"] for matrix in matrices] == list(WORKLOADS)
    assert len({matrix["cells"][0]["slug"] for matrix in matrices}) == 4


# Commands and file names


def one_cell(folder: Path, **values: Any) -> Cell:
    record = fake_run.write(folder, stacks=("noq",), iterations=1)[0]
    return cells([fake_run.change(record, **values)])[0]


def test_command_repeats_the_cell(run: Path) -> None:
    data = read_data(run / "report/data/cells/sat--quinn--noq.js")
    assert data["command"] == (
        "bentpipe run --scenario sat --client quinn --server noq --iterations 3 "
        "--workload transfer:10485760 --seed 7 --draws independent --trace all --out sat-quinn-noq"
    )


def test_command_repeats_the_draws(tmp_path: Path) -> None:
    cell, made = one_cell(tmp_path), fake_run.manifest()  # which names none, as before there was a choice
    made.options = msgspec.structs.replace(made.options, draws="common")
    assert "--draws" not in reproduce(cell, made), "which is the default"


def test_command_sets_what_the_label_says(tmp_path: Path) -> None:
    cell = one_cell(
        tmp_path, scenario="sat,forward.queue=1BDP,forward.loss=a,b", client="quiche:cc=bbr2:iw=100"
    )
    words = shlex.split(reproduce(cell, fake_run.manifest()))
    assert words[words.index("--scenario") + 1] == "sat"
    assert [words[i + 1] for i, word in enumerate(words) if word == "--set"] == [
        "forward.queue=1BDP",
        "forward.loss=a,b",
    ]


def test_command_names_a_scenario_file_by_its_path(tmp_path: Path) -> None:
    cell = one_cell(tmp_path, scenario="mine")
    words = shlex.split(reproduce(cell, fake_run.manifest("sat", "my links/mine.toml", seed=0)))
    assert words[words.index("--scenario") + 1] == "my links/mine.toml"
    assert words[words.index("--seed") + 1] == "0"


def test_command_has_testbed_and_version_of_ip(tmp_path: Path) -> None:
    cell = one_cell(tmp_path, testbed="emu")
    plan = msgspec.structs.replace(fake_run.manifest("sat").plan, ip=6)
    command = reproduce(cell, fake_run.manifest(options=plan))
    assert "--testbed emu" in command and "--ip 6" in command
    assert "--testbed" not in reproduce(one_cell(tmp_path / "b"), fake_run.manifest("sat"))


def test_command_means_the_same_from_every_folder(tmp_path: Path) -> None:
    cell = one_cell(tmp_path, scenario="mine")
    manifest = fake_run.manifest(
        "../links/mine.toml", stack_folders=["my stacks", "/srv/stacks"], cwd="/srv/lab/today"
    )
    words = shlex.split(reproduce(cell, manifest))
    assert words[words.index("--scenario") + 1] == "/srv/lab/links/mine.toml"
    folders = [words[i + 1] for i, word in enumerate(words) if word == "--stacks"]
    assert folders == ["/srv/lab/today/my stacks", "/srv/stacks"]


def test_heading_names_what_ran(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    rename(tmp_path, "run")
    build(tmp_path)
    data = read_data(tmp_path / "report/data/run.js")
    assert data["campaign"] == "noq, quinn over goodput, sat, satloss"
    fake_run.write(tmp_path, stacks=("a", "b", "c", "d", "e"), iterations=1)
    rename(tmp_path, "run")
    build(tmp_path)
    assert read_data(tmp_path / "report/data/run.js")["campaign"] == "5 stacks over goodput, sat, satloss"


def rename(folder: Path, campaign: str) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"campaign": campaign, "title": ""}))


def test_slugs_are_portable_and_unique(tmp_path: Path) -> None:
    names = ["noq", "NOQ", "a/b", "a_b", "..", "x" * 300, HOSTILE, "quiche:cc=bbr2"]
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[0]
    found = assign(fake_run.change(record, client=name).cell_key for name in names)
    assert len(found) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_][a-z0-9._=-]{0,150}", slug) for slug in found)
    assert "goodput--noq--noq" in found


# Files


def test_site_needs_no_network(run: Path) -> None:
    for page in (run / "report").rglob("*.html"):
        for address in re.findall(r'(?:src|href)="([^"]*)"', page.read_text()):
            assert address.startswith("data:image/svg+xml,") or (page.parent / address).is_file(), (
                page,
                address,
            )
    style = (run / "report/assets/report.css").read_text()
    assert "url(" not in style
    assert "@import" not in style


def test_only_files_that_exist_are_linked(run: Path) -> None:
    iterations = read_data(run / "report/data/cells/sat--quinn--noq.js")["iterations"]
    assert [one["files"] for one in iterations] == [
        [],
        [
            {"label": "trace", "href": "../../trials/sat-quinn-noq-2/trace.pcapng"},
            {"label": "events of links", "href": "../../trials/sat-quinn-noq-2/link-events.json"},
        ],
        [],
    ]
    assert all((run / "report/cells" / one["href"]).is_file() for one in iterations[1]["files"])


def test_a_new_report_leaves_no_old_pages(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    build(tmp_path)
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    index = build(tmp_path)
    assert index == tmp_path / "report" / "index.html"
    assert len(list((tmp_path / "report/cells").iterdir())) == 3
    assert not (tmp_path / "report.partial").exists()


def test_an_old_report_survives_a_failure(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    index = build(tmp_path)
    (tmp_path / "records.jsonl").write_text("{not json}\n{}\n")
    with pytest.raises(BentpipeError, match=r"records\.jsonl:1: not a record"):
        build(tmp_path)
    assert index.is_file()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("manifest.json", None, r"is no run: it has no manifest\.json"),
        ("manifest.json", "{", r"manifest\.json: cannot be read"),
        ("manifest.json", "[]", r"manifest\.json: it is no JSON object"),
        ("manifest.json", "{}", r'manifest\.json: the key "campaign" is missing'),
        ("manifest.json", '{"campaign": 3}', r"manifest\.json: campaign: 3 is not valid"),
        (
            "records.jsonl",
            '{"trial": "a"}\n',
            r'records\.jsonl:1: not a record: the key "scenario" is missing',
        ),
        ("records.jsonl", None, r"records\.jsonl: no such file"),
        ("records.jsonl", '{"format": 99}\n', r"records\.jsonl:1: not a record: it is of format 99"),
    ],
)
def test_a_folder_that_is_no_run_is_named(tmp_path: Path, name: str, text: str | None, message: str) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    if text is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(text)
    with pytest.raises(BentpipeError, match=message) as caught:
        build(tmp_path)
    assert caught.value.hint


MEAGRE = msgspec.to_builtins(fake_run.manifest())


def test_a_manifest_may_say_little(tmp_path: Path) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    (tmp_path / "manifest.json").write_text(json.dumps(MEAGRE))
    build(tmp_path)
    assert read_data(tmp_path / "report/data/run.js")["campaign"] == "mine"


def test_a_full_disk_names_the_file_that_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path, _content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as caught:
        build(tmp_path)
    assert Path(caught.value.filename).is_relative_to(tmp_path)


def test_names_from_outside_stay_text(tmp_path: Path) -> None:
    make_hostile(tmp_path)
    for file in (tmp_path / "report").rglob("*"):
        if file.suffix == ".html" or "data" in file.parts[len(tmp_path.parts) :]:
            assert file.is_dir() or "<script>document" not in file.read_text()
            assert file.is_dir() or "<img" not in file.read_text()


def make_hostile(folder: Path) -> None:
    """A run in which every name that comes from outside is an attempt at markup."""
    records = fake_run.write(folder, stacks=("noq", "quinn"), iterations=2)
    bad = [
        fake_run.change(
            r, server=HOSTILE, scenario=HOSTILE, detail=HOSTILE, client_version=HOSTILE, trial="a"
        )
        for r in records
        if r.scenario == "satloss" and r.server == "quinn"
    ]
    write_records(folder, [*records, *bad])
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"campaign": HOSTILE, "title": HOSTILE, "command": HOSTILE, "left_out": {HOSTILE: HOSTILE}}
    manifest["scenarios"][HOSTILE] = {
        "summary": {"title": HOSTILE, HOSTILE: HOSTILE},
        "scenario": {HOSTILE: [{}]},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    build(folder)


# The pages in a browser


@pytest.fixture
def dom(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Opens a page from the file system and returns what the document has become."""
    return lambda page: browser.dump(page.as_uri(), tmp_path_factory.mktemp("profile"))


@pytest.mark.browser
def test_index_shows_every_cell(run: Path, dom: Callable[[Path], str]) -> None:
    page = dom(run / "report/index.html")
    assert "script-error" not in page
    assert len(re.findall(r'<a class="cell measured"', page)) == 48 - 5
    assert len(re.findall(r'<a class="cell failed"', page)) == 4
    assert len(re.findall(r'<a class="cell unsupported"', page)) == 1
    assert page.count("<figure>") == page.count("<svg xmlns=") == 6
    assert page.count('<b>1/3 failed:</b> <span class="reason">crashed') == 1
    assert "Terrestrial, 10/10 Mbit/s" in page
    assert "kwik takes no part: it needs java" in page
    assert "Not applicable: tcp-pep with h3 (QUIC): 3 of 51 combinations." in page


@pytest.mark.browser
def test_cells_over_http3_are_marked(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    records = [one for one in records if one.scenario == "sat"]
    mixed = [
        fake_run.change(one, alpn="h3") if (one.client, one.server) == ("noq", "quinn") else one
        for one in records
    ]
    write_records(tmp_path, mixed)
    build(tmp_path)
    matrix = read_data(tmp_path / "report/data/run.js")["matrices"][0]
    assert [cell["slug"] for cell in matrix["cells"] if cell["h3"]] == ["sat--noq--quinn"]
    assert {one["name"]: one["cells_h3"] for one in matrix["servers"]} == {"noq": 0, "quinn": 1}
    page = dom(tmp_path / "report/index.html")
    assert page.count('<span class="protocol">h3</span>') == 1
    # Of the means: of the client, of the server, and of all.
    assert page.count('<span class="protocol"> with 1 h3</span>') == 3
    assert "cells without this mark are over hq-interop" in page
    assert "with HTTP/3" in dom(tmp_path / "report/cells/sat--noq--quinn.html")


@pytest.mark.browser
def test_workloads_are_told_apart(several_workloads: Path, dom: Callable[[Path], str]) -> None:
    page = dom(several_workloads / "report/index.html").replace("\u202f", " ")
    headings = re.findall(r"<h2>(sat[^<]*)<", page)
    assert headings == [
        f"sat ({what})"
        for what in (
            "transfer of 1000 B",
            "transfer of 20 kB",
            "upload of 3000 B",
            "transfer of 3 files of 100 kB",
        )
    ]
    assert "<b>1.25 s</b>" in page


@pytest.mark.browser
def test_cell_page_shows_iterations_and_command(run: Path, dom: Callable[[Path], str]) -> None:
    page = dom(run / "report/cells/satloss--quic-go--noq.html")
    assert "script-error" not in page
    assert page.count("<svg xmlns=") == 2
    assert len(re.findall(r"<tr class=\"(?:median)?\">", page)) == 3
    assert "ideal sender" in page
    assert "show failed iterations to their end" in page
    assert "bentpipe run --scenario satloss --client quic-go --server noq" in page


@pytest.mark.browser
def test_every_cell_without_a_success_has_a_page(run: Path, dom: Callable[[Path], str]) -> None:
    for slug in ("goodput--quic-go--aioquic", "satloss--noq--aioquic"):
        page = dom(run / f"report/cells/{slug}.html")
        assert "script-error" not in page
        assert "3 of 3" in page


@pytest.mark.browser
def test_hostile_names_do_no_harm(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    make_hostile(tmp_path)
    slug = next(file for file in (tmp_path / "report/cells").iterdir() if "script" in file.name)
    for page in (dom(tmp_path / "report/index.html"), dom(slug)):
        assert "script-error" not in page
        assert "<title>harmed" not in page
        assert "<img" not in page
        assert "&lt;/script&gt;" in page


@pytest.mark.browser
def test_a_sparse_run_can_be_drawn(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    """Nothing in the manifest, a pair that was not run, a trial that never received a byte."""
    records = fake_run.write(tmp_path, stacks=("noq", "quinn"), iterations=1)
    (tmp_path / "manifest.json").write_text(json.dumps(MEAGRE))
    write_records(tmp_path, [fake_run.change(records[0], received_bytes=[]), records[3]])
    page = dom(build(tmp_path))
    assert "script-error" not in page
    assert page.count('class="absent"') == 2
    page = dom(tmp_path / "report/cells/goodput--noq--noq.html")
    assert "script-error" not in page
    assert "ideal sender" not in page  # the manifest gives no round-trip time


@pytest.mark.browser
def test_a_success_without_goodput_is_no_failure(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[0]
    record = fake_run.change(record, goodput_bps=None, efficiency=None, transfer_s=0.0)
    write_records(tmp_path, [record])
    page = dom(build(tmp_path))
    assert '<a class="cell measured"' in page
    assert "None of the 1 trials has an efficiency" in page
    page = dom(tmp_path / "report/cells/goodput--noq--noq.html")
    assert "the file fits into one flight" in page
    assert "The receive rate is left out" in page


@pytest.mark.browser
def test_failures_alone_have_no_distribution(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    record = fake_run.write(tmp_path, stacks=("noq",), iterations=1)[0]
    lost = {"outcome": "handshake_timeout", "goodput_bps": None, "efficiency": None, "completion_s": None}
    write_records(tmp_path, [fake_run.change(record, **lost, received_bytes=[0, 0])])
    page = dom(build(tmp_path))
    assert "All 1 trials failed" in page
    assert "<figure>" not in page
    page = dom(tmp_path / "report/cells/goodput--noq--noq.html")
    assert "No iteration received a byte" in page
    assert 'class="key' not in page


@pytest.mark.browser
def test_an_empty_run_says_so(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    (tmp_path / "records.jsonl").write_text("")
    page = dom(build(tmp_path))
    assert "script-error" not in page
    assert "No trial of this run has finished yet." in page


@pytest.mark.browser
def test_a_page_that_cannot_be_drawn_says_why(tmp_path: Path, dom: Callable[[Path], str]) -> None:
    fake_run.write(tmp_path, stacks=("noq",), iterations=1)
    index = build(tmp_path)
    data = tmp_path / "report/data/run.js"
    data.write_text("window.bentpipeRun={campaign:'x',manifest:{}};")
    assert 'class="script-error"' in dom(index)
    data.unlink()
    assert "data/run.js is missing" in dom(index)


# The bundle


@pytest.mark.skipif(
    shutil.which("node") is None or not (ROOT / "report-ui/node_modules/esbuild").is_dir(),
    reason="the bundle's tools are not installed (cd report-ui && npm ci)",
)
def test_committed_bundle_is_a_fresh_build() -> None:
    done = subprocess.run(
        ["node", "build.mjs", "--check"], cwd=ROOT / "report-ui", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
