"""`bentpipe runner`: the QUIC interop runner's result.json, written and read.

`tests/runner` has two files, put together by hand: interop.json is as the QUIC interop runner writes one,
with means alone, satellite.json as its fork for satellites does, with values.
"""

from __future__ import annotations

import copy
import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_run
import msgspec
import pytest
from conftest import HERE, Command
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.analysis.runner import exporting, reader
from bentpipe.analysis.runner.exporting import Chosen
from bentpipe.analysis.runner.importing import ImportedRun
from bentpipe.errors import BentpipeError
from bentpipe.packed import zstd
from bentpipe.runs import run_folder
from bentpipe.runs.records import Record
from bentpipe.schema.manifest import NotApplicable, NotApplicableCell

FILES = HERE.parent / "runner"
INTEROP, SATELLITE = FILES / "interop.json", FILES / "satellite.json"


def written(path: Path, values: Any) -> Path:
    path.write_text(json.dumps(values))
    return path


def exported(records: list[Record], folder: Path, **chosen: tuple[str, ...]) -> dict[str, Any]:
    """What a run of these is in a file, which is written to `folder`."""
    labels = dict.fromkeys(record.scenario for record in records)
    made = exporting.export(fake_run.manifest(*labels), records, "logs", {}, Chosen(**chosen))
    (folder / "result.json").write_text(made.file.text())
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def trial(iteration: int = 1, **values: Any) -> Record:
    return fake_run.change(fake_run.record("sat", "noq", "quinn", iteration), **values)


def failed(iteration: int, outcome: str) -> Record:
    return trial(iteration, outcome=outcome, goodput_bps=None, efficiency=None)


# Writing.


def test_a_run_becomes_a_matrix_and_comes_back(bentpipe: Command, tmp_path: Path) -> None:
    """Every outcome and goodput is what it was, in the same cell."""
    records = fake_run.write(Path("mine"))
    done = bentpipe("runner", "export", "mine", "-o", "result.json")
    assert done.code == 0, done.err
    assert "measurement  SATL  satloss  satloss, transfer of 10 MiB" in done.out
    done = bentpipe("runner", "import", "result.json", "-o", "back")
    assert done.code == 0, done.err
    _, back = run_folder.read(Path("back"))
    assert {identity(one) for one in back} == {identity(one) for one in records}
    assert {one.testbed for one in back} == {"runner"} and len({one.trial for one in back}) == len(records)
    done = bentpipe("compare", "mine", "back")
    assert "48 cells in both, 0 differ" in done.out and "!:" not in done.out
    assert "what the paths of B were is not known" in done.out + done.err
    assert bentpipe("report", "back").code == 0 and Path("back/report/index.html").is_file()


def identity(one: Record) -> tuple[Any, ...]:
    ends = (one.scenario, one.workload, one.treatment, one.client, one.server, one.iteration)
    return (*ends, one.outcome, one.goodput_bps, one.client_version)


def test_the_rate_of_one_of_several_paths_is_no_maximum(bentpipe: Command) -> None:
    fake_run.write(Path("mine"))
    manifest = json.loads(Path("mine/manifest.json").read_text())
    manifest["scenarios"]["sat"]["summary"]["paths"] = [{"name": "geo"}, {"name": "leo"}]
    Path("mine/manifest.json").write_text(json.dumps(manifest))
    tests = json.loads(bentpipe("runner", "export", "mine").out)["tests"]
    assert tests["SAT"].get("theoretical_max_value") is None
    assert tests["G"]["theoretical_max_value"] == 10_000


def test_the_pages_of_the_runner_find_what_they_read(bentpipe: Command) -> None:
    """Each key that its script and the fork's reader take, with the types that they expect."""
    fake_run.write(Path("mine"))
    done = bentpipe("runner", "export", "mine")
    assert done.code == 0 and "measurement" in done.err
    values = json.loads(done.out)
    assert values["end_time"] - values["start_time"] == 47 and values["log_dir"] == "mine"
    assert values["clients"] == values["servers"] == sorted(fake_run.STACKS)
    assert int(values["quic_version"], 16) == 1 and values["quic_draft"] == 34
    assert len(values["results"]) == len(values["measurements"]) == 16
    for name in values["servers"]:
        assert values["urls"][name] and values["images"][name]["versions"] == ["1.2.3"]
    sat = values["tests"]["SAT"]
    assert (sat["name"], sat["theoretical_max_value"], sat["repetitions"], sat["timeout"]) == (
        "sat",
        20000,
        3,
        120,
    )
    noq_to_quinn = values["measurements"][
        values["clients"].index("noq") * 4 + values["servers"].index("quinn")
    ]
    entry = next(one for one in noq_to_quinn if one["abbr"] == "SAT")
    seconds = [fake_run.record("sat", "noq", "quinn", n).runner_transfer_s for n in (1, 2, 3)]
    assert entry["values"] == [
        8 * fake_run.SIZE / one / 1e3 for one in seconds if one
    ]  # as the runner has it
    mean = sum(entry["values"]) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in entry["values"]) / 2)
    assert entry["details"] == f"{mean:.0f} (± {deviation:.0f}) kbps"
    assert (entry["name"], entry["result"], entry["error_code"]) == ("sat", "succeeded", None)


def test_what_is_not_applicable_is_unsupported_and_has_no_trials() -> None:
    cell = NotApplicableCell(
        workload=f"transfer:{fake_run.SIZE}", treatment="direct", client="noq", server="x"
    )
    reason = NotApplicable(reason="x does not speak hq-interop", combinations=1, of=3, cells=[cell])
    records = [fake_run.record("sat", "noq", "quinn", 1)]
    records.append(fake_run.change(fake_run.record("sat", "quinn", "quinn", 1), server="x"))
    made = exporting.export(fake_run.manifest("sat", not_applicable=[reason]), records, "logs", {}, Chosen())
    file = made.file
    (entry,) = file.measurements[file.clients.index("noq") * len(file.servers) + file.servers.index("x")]
    assert (entry.result, entry.error_code, entry.trials) == ("unsupported", "UNSUPPORTED_TEST_CASE", [])


@pytest.mark.parametrize(
    ("outcomes", "result", "code"),
    [
        (["ok", "ok"], "succeeded", None),
        (["ok", "transfer_timeout"], "failed", "TIMEOUT"),
        (["handshake_timeout", "crashed", "crashed"], "failed", "UNKNOWN_ERROR"),
        (["corrupt_file"], "failed", "DOWNLOADED_FILE_CONTENT_MISSMATCH"),
        (["missing_file", "unsupported"], "failed", "MISSING_DOWNLOADED_FILES"),
        (["ok", "unsupported"], "unsupported", "UNSUPPORTED_TEST_CASE"),
    ],
)
def test_one_word_stands_for_all_iterations(
    tmp_path: Path, outcomes: list[str], result: str, code: str | None
) -> None:
    records = [trial(n) if one == "ok" else failed(n, one) for n, one in enumerate(outcomes, start=1)]
    ((entry,),) = exported(records, tmp_path)["measurements"]
    assert (entry["result"], entry["error_code"]) == (result, code)
    assert bool(entry["details"]) == (result == "succeeded")
    assert len(entry["values"]) == outcomes.count("ok")


def test_without_the_runner_s_time_goodput_is_that_of_records_and_that_is_said() -> None:
    records = [trial(1), trial(2, runner_transfer_s=None)]
    made = exporting.export(fake_run.manifest("sat"), records, "logs", {}, Chosen())
    ((entry,),) = made.file.measurements
    assert entry.values == [(one.goodput_bps or 0) / 1e3 for one in records]
    assert made.notes[-1].startswith("SAT: goodput from the first data on")


def test_a_success_without_goodput_has_no_value_to_show(tmp_path: Path) -> None:
    """Of a file that fits into one flight: the fork calls that no time difference."""
    records = [trial(1), trial(2, goodput_bps=None, efficiency=None)]
    ((entry,),) = exported(records, tmp_path)["measurements"]
    assert (entry["result"], entry["error_code"]) == ("failed", "NO_TIME_DIFFERENCE")
    back = ImportedRun.read(tmp_path / "result.json").records
    assert [(one.outcome, one.goodput_bps) for one in back] == [("ok", records[0].goodput_bps), ("ok", None)]


def test_settings_have_names_of_their_own(tmp_path: Path) -> None:
    """Those that the runner has keep its names, also where others come before them."""
    records = [
        trial(workload="transfer:2000000"),
        trial(treatment="quic-pep terminal,gateway"),
        trial(treatment="quic-pep gateway:iw=100"),
        trial(workload="upload:10485760"),
        trial(),
        trial(scenario="sat,forward.queue=1BDP"),
        trial(workload="handshake:1000"),
        trial(scenario="goodput", workload="handshake:1000"),
    ]
    values = exported(records, tmp_path)
    assert {abbr: text["name"] for abbr, text in values["tests"].items()} == {
        "SAT2MB": "sat-2mb",
        "SATQUICPEP": "sat-quic-pep",
        "SATQUICPEPN2": "sat-quic-pep-2",
        "UPLOADSAT10MIB": "upload-sat-10mib",
        "SAT": "sat",
        "SATFORWA": "sat-forward-queue-1bdp",
        "H": "handshake",
        "HANDSHAKGOODPUT": "handshake-goodput",
    }
    ((first, second),) = values["results"]
    assert (first["abbr"], second["abbr"], first["result"]) == ("H", "HANDSHAKGOODPUT", "succeeded")
    back = ImportedRun.read(tmp_path / "result.json").records
    assert {identity(one) for one in back} == {identity(one) for one in records}


def test_names_can_be_selected_by(tmp_path: Path) -> None:
    """The pages make classes of them, in small letters."""
    variants = ("noq:cc=bbr3", "noq:cc:bbr3", "Noq")
    values = exported([trial(client=one) for one in variants], tmp_path)
    assert values["clients"] == ["noq", "noq-cc-bbr3", "noq-cc-bbr3-2"]
    back = ImportedRun.read(tmp_path / "result.json").records
    assert sorted(one.client for one in back) == sorted(variants)


def test_texts_are_no_markup(tmp_path: Path) -> None:
    values = exported([trial(scenario="<b>&")], tmp_path)
    (text,) = values["tests"].values()
    assert text["desc"].startswith("&lt;b&gt;&amp;,")


def test_what_has_no_place_is_named(bentpipe: Command) -> None:
    records = [trial(), trial(workload="page:kosek:h3", goodput_bps=None)]
    fake_run.write_campaign("mine", records)
    done = bentpipe("runner", "export", "mine", "-o", "result.json")
    assert done.code == 0 and "left out: sat, page kosek over HTTP/3: the runner has no such" in done.out
    done = bentpipe("runner", "export", "mine", "-o", "result.json")
    assert done.code == 2 and "result.json is there already" in done.err
    done = bentpipe("runner", "export", "mine", "--scenario", "satt")
    assert done.code == 2 and 'did you mean "sat"?' in done.err
    done = bentpipe("runner", "export", "mine", "--workload", "page:kosek")
    assert done.code == 2 and "nothing of this run can stand in a result.json" in done.err
    done = bentpipe("runner", "export", "mine", "--scenario", "sat", "--workload", "transfer:10MiB")
    assert done.code == 0 and "left out" not in done.err


# Reading.


def test_means_of_the_runner_are_a_record_each() -> None:
    run = ImportedRun.read(INTEROP)
    of = {(one.scenario, one.client, one.server): one for one in run.records}
    goodput = of["goodput", "quic-go", "picoquic"]
    assert (goodput.workload, goodput.size_bytes) == ("transfer:10485760", 10485760)
    assert (goodput.outcome, goodput.goodput_bps, goodput.detail) == ("ok", 9_011_000, "a mean, ± 160 kbit/s")
    assert of["longrtt", "ngtcp2", "quiche"].outcome == "unproven"
    assert of["retry", "quic-go", "quiche"].outcome == "unsupported"
    assert ("zerortt", "quic-go", "picoquic") not in of, "it was not run"
    assert len(of) == len(run.records) == 27
    assert run.manifest().started == "2026-01-01T00:02:03Z"


def test_values_of_the_fork_are_a_record_each() -> None:
    run = ImportedRun.read(SATELLITE)
    cells: dict[tuple[str, str, str], list[Record]] = {}
    for one in run.records:
        cells.setdefault((one.scenario, one.client, one.server), []).append(one)
    sat = cells["sat", "aioquic", "quiche"]
    assert [one.goodput_bps for one in sat] == [8_643_000, 8_501_500, 8_790_250]
    assert [one.iteration for one in sat] == [1, 2, 3] and sat[0].efficiency == 8643 / 20000
    lossy = cells["satloss", "aioquic", "aioquic"]
    assert [(one.outcome, one.detail) for one in lossy] == [("ok", ""), ("transfer_timeout", "TIMEOUT")]
    assert cells["sat", "quic-go", "quiche"][0].outcome == "corrupt_file"
    assert cells["satloss", "aioquic", "quiche"][0].detail == "the runner does not say why"
    manifest = run.manifest()
    assert manifest.contract_breaches == {"quiche as client or server": "not compliant, says the runner"}
    assert manifest.scenarios["eutelsat"].summary["forward_rate_bps"] == 50e6
    assert manifest.versions["imported"]["file"] == "satellite.json"


def test_a_history_is_a_run_for_each_file(bentpipe: Command) -> None:
    done = bentpipe("runner", "import", INTEROP, SATELLITE, SATELLITE, "-o", "history", "--json")
    assert done.code == 0, done.err
    assert [one["started"][:4] for one in json.loads(done.out)] == ["2026", "2022", "2022"]
    folders = sorted(Path("history").iterdir())
    assert [one.name for one in folders] == ["20220301T102000Z", "20220301T102000Z-2", "20260101T000203Z"]
    for folder in folders:
        assert bentpipe("report", folder).code == 0
    assert bentpipe("compare", *folders[:2]).code == 0
    again = bentpipe("runner", "import", INTEROP, SATELLITE, "-o", "history")
    assert again.code == 2 and "history/2026" in again.err
    resumed = bentpipe("run", "--resume", folders[0])
    assert resumed.code == 2 and "it was imported" in resumed.err


def test_without_a_folder_a_table_is_printed(bentpipe: Command) -> None:
    done = bentpipe("runner", "import", SATELLITE)
    assert done.code == 0 and "22 trials: 17 ok, 4 failed, 1 unsupported" in " ".join(done.out.split())
    assert "\naioquic → quiche\n    handshake failed, sat 8.64 ±0.14, satloss " in done.out
    assert max(map(len, done.out.splitlines()[2:])) <= 80
    assert "0.51 (1!)" in done.out and not list(Path().iterdir())
    done = bentpipe("runner", "import", INTEROP, SATELLITE)
    assert [line.split(":")[0] for line in done.out.splitlines() if line[0] != " "] == [
        str(SATELLITE),
        str(INTEROP),
    ]


def at(*place: str | int, value: Any = None) -> Callable[[dict[str, Any]], None]:
    """Puts `value` at a place; takes the key away if there is none."""

    def change(values: dict[str, Any]) -> None:
        *way, last = place
        inner: Any = values
        for step in way:
            inner = inner[step]
        if value is None:
            del inner[last]
        else:
            inner[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (at("clients"), 'the key "clients" is missing'),
        (at("start_time", value="now"), "start_time: 'now' is not valid: expected `float`"),
        (at("start_time", value=1e20), "start_time: 1e+20 is no time"),
        (at("end_time", value=1), "end_time: 1.0 is before start_time"),
        (at("measurements", 3), "measurements: it has 3 entries, and 2 clients and 2 servers make 4"),
        (at("results", value={"a": 1}), "results: {'a': 1} is no list"),
        (at("servers", value=["a", "a"]), 'servers: "a" stands there 2 times'),
        (at("servers", value=["a", "\x1b[2J"]), "servers: '\\x1b[2J' is no name"),
        (at("tests", value=[1]), "tests: [1] is not valid: expected `object`"),
    ],
)
def test_what_is_wrong_with_all_of_it_is_said_with_its_place(
    bentpipe: Command, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    values = json.loads(SATELLITE.read_text())
    change(values)
    written(Path("bad.json"), values)
    done = bentpipe("runner", "import", "bad.json", "-o", "runs")
    assert done.code == 1 and not Path("runs").exists()
    assert f"error: bad.json: {said}" in done.err and "hint: " in done.err


@pytest.mark.parametrize(
    ("change", "said", "lost"),
    [
        (at("results", 1, 0, "result", value="won"), "results[1][0] (aioquic with quiche): result: 'won'", 1),
        (
            at("results", 1, 0, "abbr", value="XX"),
            "results[1][0] (aioquic with quiche): abbr: 'XX' is unk",
            1,
        ),
        (at("results", 1, 0, value=7), "results[1][0] (aioquic with quiche): 7 is no JSON object", 1),
        (at("results", 1, value="x"), "results[1] (aioquic with quiche): 'x' is no list", 1),
        (at("measurements", 0, 0, "values", 1, value=-1), "values: -1.0 is no number", 3),
        (at("measurements", 0, 0, "values", 1, value=1e306), "values: 1e+306 is no number", 3),
        (at("measurements", 0, 0, "values", 1, value="fast"), 'values: "fast" is not of the form', 3),
        (at("measurements", 0, 0, "values", value={"a": 1}), "values: {'a': 1} is not valid: 8643 (±", 3),
        (at("measurements", 0, 0, "details", value="9 MB/s"), 'details: "9 MB/s" is not of the form', 3),
        (at("measurements", 0, 0, "abbr", value="H"), "abbr: H stands there already", 3),
        (at("tests", "SAT", "theoretical_max_value", value=-2), "tests.SAT: theoretical_max_value: -2.0", 0),
        (at("tests", "SAT", "desc", value=[]), "tests.SAT: desc: [] is not valid", 0),
        (at("tests", "H", "name", value=""), "tests.H: name: '' is no name", 3),
        (at("images", "quiche", "versions", value=5), "images.quiche: versions: 5 is not valid", 0),
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_costs_no_other(
    bentpipe: Command, change: Callable[[dict[str, Any]], None], said: str, lost: int
) -> None:
    values = json.loads(SATELLITE.read_text())
    change(values)
    done = bentpipe("runner", "import", written(Path("some.json"), values), "-o", "run")
    assert done.code == 0 and f"{22 - lost} trials" in done.out
    assert done.err.startswith("some.json: cannot be read: ") and said in done.err
    assert "not run" not in done.err
    manifest, records = run_folder.read(Path("run"))
    assert len(records) == 22 - lost and said in manifest.versions["imported"]["not_read"][0]


def test_where_nothing_can_be_read_the_file_is_refused(bentpipe: Command) -> None:
    values = json.loads(INTEROP.read_text()) | {"results": [["x"]] * 4, "measurements": [[]] * 4}
    done = bentpipe("runner", "import", written(Path("bad.json"), values))
    assert done.code == 1 and "bad.json: results[0][0] (ngtcp2 with picoquic): 'x' is no JSON" in done.err


@pytest.mark.parametrize(
    ("values", "goodputs", "detail"),
    [
        ({"details": "9287 kbps"}, [9_287_000], ""),
        ({"details": "9.287 Mbps"}, [9_287_000], ""),
        ({"details": "9.3 (± 0.1) Mbps"}, [9_300_000], "a mean, ± 100 kbit/s"),
        ({"details": "9287(+/- 12)Kbps"}, [9_287_000], "a mean, ± 12 kbit/s"),
        ({"details": "9287000 bit/s"}, [9_287_000], ""),
        ({"details": "0.009287 Gbps"}, [9_287_000], ""),
        ({"details": "9.3 (± 0.1) Mbps", "values": [9.2, 9.4]}, [9_200_000, 9_400_000], ""),
        ({"details": "", "values": [9200, 9400.5]}, [9_200_000, 9_400_500], ""),
        ({"details": None, "values": ["9.2 Mbps", "9400 kbps"]}, [9_200_000, 9_400_000], ""),
        ({"details": [9200, "9.4 Mbps"]}, [9_200_000, 9_400_000], ""),
    ],
)
def test_goodputs_are_in_the_unit_that_is_said(
    tmp_path: Path, values: dict[str, Any], goodputs: list[float], detail: str
) -> None:
    file = json.loads(INTEROP.read_text())
    file["measurements"][0][0] = {"abbr": "G", "name": "goodput", "result": "succeeded"} | values
    run = ImportedRun.read(written(tmp_path / "result.json", file))
    found = [one for one in run.records if (one.scenario, one.client, one.server) == ("goodput", *PAIR)]
    assert not run.unread and [one.goodput_bps for one in found] == goodputs
    assert {one.detail for one in found} == {detail}


PAIR = ("ngtcp2", "picoquic")


def test_the_unit_of_a_measurement_holds_where_none_is_said(tmp_path: Path) -> None:
    """Of values of a cell that failed, and of what the fork says is the most."""
    file = json.loads(INTEROP.read_text())
    file["tests"]["G"]["theoretical_max_value"] = 10
    file["measurements"][1][0] |= {"details": "9.3 (± 0.1) Mbps"}
    file["measurements"][0][0] |= {"result": "failed", "details": "", "values": [5]}
    run = ImportedRun.read(written(tmp_path / "result.json", file))
    found = [one for one in run.records if (one.scenario, one.client, one.server) == ("goodput", *PAIR)]
    assert [(one.goodput_bps, one.efficiency) for one in found] == [(5e6, 0.5), (None, None)]
    assert run.manifest().scenarios["goodput"].summary["forward_rate_bps"] == 10e6


@pytest.mark.parametrize("cell", [None, [], [None], [{"abbr": "H", "name": "handshake"}]])
def test_pairs_that_were_skipped_are_said_and_have_no_trial(bentpipe: Command, cell: Any) -> None:
    """As the runner writes results of pairs that are not compliant, and its aggregate.py those without a
    file.
    """
    values = json.loads(INTEROP.read_text())
    del values["end_time"]
    values["results"][1], values["measurements"][1] = cell, []
    done = bentpipe("runner", "import", written(Path("result.json"), values), "-o", "run")
    assert done.code == 0 and done.err == "result.json: not run: ngtcp2 with quiche\n"
    manifest, records = run_folder.read(Path("run"))
    assert not [one for one in records if (one.client, one.server) == ("ngtcp2", "quiche")]
    assert manifest.versions["imported"]["not_run"] == ["ngtcp2 with quiche"]
    listed = json.loads(bentpipe("runner", "import", "result.json", "--json").out)
    assert listed[0]["not_run"] == [{"client": "ngtcp2", "server": "quiche"}]


@pytest.mark.parametrize("key", ["results", "measurements"])
def test_a_file_of_one_kind_alone_is_read(tmp_path: Path, key: str) -> None:
    """The runner for WebTransport has no measurements, and its page reads files without them."""
    values = json.loads(INTEROP.read_text())
    del values[key]
    assert {one.goodput_bps is None for one in ImportedRun.read(written(tmp_path / "a", values)).records}


def test_a_file_of_the_runner_comes_back_as_it_was(bentpipe: Command) -> None:
    """Also an implementation of which nothing was run."""
    values = json.loads(INTEROP.read_text())
    values["clients"].append("skipped")
    values["results"] += [[], []]
    values["measurements"] += [[], []]
    values["measurements"][0][0]["details"] = "9287 kbps"
    written(Path("result.json"), values)
    assert bentpipe("runner", "import", "result.json", "-o", "run").code == 0
    done = bentpipe("runner", "export", "run", "-o", "again.json")
    assert done.code == 0 and "note:" not in done.out and "left out" not in done.out
    again = json.loads(Path("again.json").read_text())
    assert again["clients"] == values["clients"] and again["servers"] == values["servers"]
    assert set(again["tests"]) == set(values["tests"])
    for key, told in (("results", ("abbr", "result")), ("measurements", ("abbr", "result", "details"))):
        for before, after in zip(values[key], again[key], strict=True):
            was = {tuple(one[name] for name in told) for one in before if one["result"]}
            assert {tuple(one[name] for name in told) for one in after} == was
    assert bentpipe("runner", "import", "again.json", "-o", "back").code == 0
    first, second = (run_folder.read(Path(name))[1] for name in ("run", "back"))
    assert {(*identity(one), one.detail) for one in second if one.outcome == "ok"} == {
        (*identity(one), one.detail) for one in first if one.outcome == "ok"
    }


@pytest.mark.parametrize("pack", [lambda data: gzip.compress(data, mtime=0), zstd.compress])
def test_a_packed_file_is_read(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / "result.json").write_bytes(pack(SATELLITE.read_bytes()))
    assert ImportedRun.read(tmp_path / "result.json").records == ImportedRun.read(SATELLITE).records


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "bad.json: "),
        (b"[1]", "bad.json: it is no JSON object"),
        (b'{"a": NaN}', "bad.json: "),
        (b"\xff\xfe{}", "bad.json: "),
        (b"[" * 200_000, "bad.json: it is nested too deeply"),
        (b'{"tests": ' + b'{"a":' * 200_000, "bad.json: it is nested too deeply"),
        (
            b" " * (reader.LARGEST_BYTES + 1),
            "bad.json: has more than 67108864 bytes",
        ),
    ],
    ids=["empty", "list", "nan", "utf-16", "deep list", "deep object", "large"],
)
def test_what_is_no_result_is_refused(bentpipe: Command, text: bytes, said: str) -> None:
    Path("bad.json").write_bytes(text)
    done = bentpipe("runner", "import", "bad.json")
    assert done.code == 1 and said in done.err and done.err.count("error:") == 1


def test_what_is_no_file_is_refused(bentpipe: Command) -> None:
    assert "there is no such file" in bentpipe("runner", "import", "none.json").err
    assert "is a folder" in bentpipe("runner", "import", ".").err


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(values: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a JSON value."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(values, dict):
        inner = list(values.items())
    elif isinstance(values, list):
        inner = list(enumerate(values))
    return [one for step, value in inner for one in [(*at, step), *places(value, (*at, step))]]


def our_own() -> Any:
    records = [trial(), failed(2, "crashed"), trial(client="noq:cc=bbr3"), trial(workload="handshake:1000")]
    made = exporting.export(fake_run.manifest("sat"), records, "logs", {}, Chosen())
    return json.loads(made.file.text())


WHOLE = [*(json.loads(path.read_text()) for path in (INTEROP, SATELLITE)), our_own()]


@given(st.sampled_from(WHOLE), st.data())
def test_nothing_crashes_on_a_damaged_file(
    tmp_path_factory: pytest.TempPathFactory, whole: dict[str, Any], data: st.DataObject
) -> None:
    """It is refused in words, or it is read, and then what is read can be written, and is read again."""
    values = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 2))):
        way = data.draw(st.sampled_from(places(values)))
        inner: Any = values
        for step in way[:-1]:
            inner = inner[step]
        if data.draw(st.booleans()):
            inner[way[-1]] = data.draw(JSON)
        else:
            del inner[way[-1]]
    folder = tmp_path_factory.mktemp("damaged")
    try:
        run = ImportedRun.read(written(folder / "result.json", values))
    except BentpipeError as error:
        assert str(folder / "result.json") in str(error)
        return
    run.write(folder / "run")
    assert len({one.trial for one in run.records}) == len(run.records)
    _, back = run_folder.read_unfinished(folder / "run")
    assert msgspec.to_builtins(back) == msgspec.to_builtins(run.records)
    assert all((folder / "trials" / one.trial).resolve().parent == folder / "trials" for one in back)


@given(st.binary(max_size=60))
def test_nothing_crashes_on_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("bytes") / "result.json"
    path.write_bytes(content)
    with pytest.raises(BentpipeError, match=r"result\.json"):
        ImportedRun.read(path)


@given(st.sampled_from(WHOLE), st.data())
def test_damage_ends_in_a_run_or_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, whole: dict[str, Any], data: st.DataObject
) -> None:
    """A prefix of a good file, or one with a byte changed."""
    content = bytearray(json.dumps(whole, ensure_ascii=False).encode())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[place:]
    else:
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "result.json"
    path.write_bytes(content)
    try:
        run = ImportedRun.read(path)
    except BentpipeError as error:
        assert str(path) in str(error) and error.hint
        return
    assert run.manifest() and len({one.trial for one in run.records}) == len(run.records)
