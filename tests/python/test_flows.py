"""Several flows through the links of one trial: real stacks where what they do to each other counts, else
toys.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import fake_run
import msgspec
import pyarrow.parquet as pq
import pytest
from conftest import STACKS, Command, Done, installed_or_skip

from bentpipe import workload
from bentpipe.analysis.cells import cells
from bentpipe.errors import UsageError
from bentpipe.plan import campaign, flows
from bentpipe.report.command import reproduce
from bentpipe.runs.records import read_jsonl

pytestmark = pytest.mark.virtual_time

WAYS = [f"{way}_{what}" for way in ("forward", "return") for what in ("packets", "queue_drops", "losses")]


def run(bentpipe: Command, out: str, *arguments: str) -> Done:
    return bentpipe(
        "run", "--scenario", "sat", "--iterations", "1", "--no-report", "--json", "--out", out, *arguments
    )  # fmt: skip


def record(bentpipe: Command, out: str, *arguments: str) -> dict[str, Any]:
    done = run(bentpipe, out, *arguments)
    assert done.code == 0, done.err
    (only,) = done.records()
    return only


@pytest.fixture
def noq() -> tuple[str, ...]:
    installed_or_skip("noq")
    return ("--client", "noq", "--server", "noq:cc=cubic:ss=trains", "--set", "forward.queue=1BDP")


def test_two_equal_flows_share_a_link(bentpipe: Command, noq: tuple[str, ...]) -> None:
    arguments = (*noq, "--workload", "duration:30s", "--flow", "start=1s")
    one, two = (record(bentpipe, out, *arguments) for out in "AB")
    assert one["outcome"] == "ok", one["detail"]
    assert one["jain_index"] >= 0.9
    first, second = one["flows"]
    assert [(it["start_s"], it["end_s"]) for it in (first, second)] == [(0.0, 30.0), (1.0, 31.0)]
    assert first["received_bytes"] == one["received_bytes"]
    # Together they fill most of the link, and never more than all of it.
    assert 10e6 < first["goodput_bps"] + second["goodput_bps"] < 20e6
    for column in WAYS:
        assert one[column] == first[column] + second[column], column
    assert one["packet_log_hash"] == two["packet_log_hash"]
    assert one["flows"] == two["flows"]
    table = pq.read_table("A/records.parquet").to_pydict()
    assert [it["goodput_bps"] for it in table["flows"][0]] == [it["goodput_bps"] for it in one["flows"]]


def test_six_of_bentpipes_sender_come_to_equal_shares(bentpipe: Command) -> None:
    """They start while the queue is full: none keeps what its start has got, and none is left out."""
    installed_or_skip("noq")
    flows = [word for start in range(1, 6) for word in ("--flow", f"start={start}s")]
    short = ("--set", "forward.queue=0.25BDP", "--workload", "duration:70s")
    one = record(bentpipe, "A", "--client", "noq", "--server", "noq:cc=bentpipe", *short, *flows)
    late = [flow["received_bytes"][-1] - flow["received_bytes"][66] for flow in one["flows"]]  # after 40 s
    jain = sum(late) ** 2 / len(late) / sum(share**2 for share in late)
    assert len(late) == 6 and jain >= 0.9, late


def test_a_duration_is_cut_when_its_time_is_over(bentpipe: Command, noq: tuple[str, ...]) -> None:
    cut = record(bentpipe, "A", *noq, "--workload", "duration:5s")
    assert (cut["outcome"], cut["virtual_s"], cut["size_bytes"]) == ("ok", 5.0, 0)
    assert cut["completion_s"] is cut["limit_s"] is cut["share_of_limit"] is None
    assert cut["ttfb_s"] + cut["transfer_s"] == pytest.approx(5, abs=0.001)
    stream_bytes = cut["goodput_bps"] * cut["transfer_s"] / 8
    assert 0.9 * cut["received_bytes"][-1] < stream_bytes < cut["received_bytes"][-1]
    assert (cut["flows"], cut["jain_index"]) == ([], None)


def test_a_flow_is_over_with_its_last_byte(bentpipe: Command, noq: tuple[str, ...]) -> None:
    """The flow that is measured has the path for itself before and after: the second one is short."""
    alone = record(bentpipe, "A", *noq, "--bytes", "100kB")
    both = record(bentpipe, "B", *noq, "--bytes", "100kB", "--flow", "workload=transfer:10kB,start=30s")
    assert both["outcome"] == "ok", both["detail"]
    assert both["completion_s"] == pytest.approx(alone["completion_s"], rel=0.2)
    assert both["flows"][0]["end_s"] < 10 < 30 < both["flows"][1]["end_s"]
    assert both["jain_index"] is None and both["flows"][1]["goodput_bps"] is None


def test_a_trace_tells_the_flows_apart(bentpipe: Command, noq: tuple[str, ...]) -> None:
    both = record(bentpipe, "A", *noq, "--bytes", "100kB", "--flow", "start=1s", "--trace", "all")
    assert both["outcome"] == "ok", both["detail"]
    assert both["connections"] == 1
    (trace,) = Path("A/trials").glob("*/trace.pcapng")
    done = bentpipe("trace", trace, "--json")
    assert done.code == 0, done.err
    connections = json.loads(done.out)["connections"]
    ends = {(it["client"], it["server"]) for it in connections}
    assert ends == {(f"192.0.2.{n}:50000", f"198.51.100.{n}:443") for n in (1, 2)}
    own = next(it for it in connections if it["client"] == "192.0.2.1:50000")
    assert own["metrics"]["completion_s"] == pytest.approx(both["completion_s"])


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stack whose server crashes when a datagram arrives."""
    folder = tmp_path / "stacks" / "crash"
    folder.mkdir(parents=True)
    text = (STACKS / "toy" / "stack.toml").read_text().replace('name = "toy"', 'name = "crash"')
    program = str(STACKS / "hostile" / "endpoint.py")
    (folder / "stack.toml").write_text(text.replace('"{folder}/endpoint.py"', f'"{program}", "crash"'))
    shutil.copy(STACKS / "toy" / "endpoint.py", folder)
    monkeypatch.setenv("BENTPIPE_STACKS", f"{STACKS}:{tmp_path / 'stacks'}")


TOYS = ("--client", "toy", "--server", "toy", "--bytes", "20kB")


def test_a_crash_of_a_further_flow_is_said(bentpipe: Command, crash: None) -> None:
    failed = record(bentpipe, "A", *TOYS, "--flow", "server=crash,start=1s", "--flow", "start=2s")
    assert failed["outcome"] == "crashed"
    why = "flow 2 (crash): crashed: crash as server ended by itself: exit status: 3"
    assert failed["detail"].startswith(why)
    assert [it["outcome"] for it in failed["flows"]] == ["ok", "crashed", "ok"]
    assert failed["jain_index"] is None
    (folder,) = Path("A/trials").iterdir()
    assert {file.name for file in folder.iterdir()} >= {"flow2-server.log", "flow2-server.frames"}


def test_later_flows_change_nothing_before_they_begin(bentpipe: Command) -> None:
    alone = record(bentpipe, "A", *TOYS, "--seed", "3")
    beside = record(bentpipe, "B", *TOYS, "--seed", "3", "--flow", "start=100s")
    assert beside["completion_s"] == alone["completion_s"]
    assert beside["received_bytes"] == alone["received_bytes"]


@pytest.mark.parametrize(
    ("flow", "message"),
    [
        ("start=200s", '--flow: "start=200s" begins after sat\'s timeout of 120 s'),
        ("sever=toy", '--flow: unknown key "sever"'),
        ("server", '--flow: "server": "server" is not KEY=VALUE'),
        ("start=soon", '--flow: start: "soon" is no time'),
        ("workload=transfer", '--flow: workload: "transfer" has no size'),
        ("server=nonesuch", 'unknown stack "nonesuch"'),
        ("start=1s,start=2s", "has start twice"),
        ("middlebox=rate=0%:rate=1%", '--flow: middlebox: "rate=0%:rate=1%": an option is given twice'),
        ("middlebox=rate", '--flow: middlebox: "rate": "rate" has no value'),
    ],
)
def test_mistakes_are_named(bentpipe: Command, flow: str, message: str) -> None:
    done = run(bentpipe, "A", *TOYS, "--flow", flow)
    assert done.code == 2
    assert message in done.err and "hint: " in done.err
    assert not Path("A").exists()


def test_a_timeout_lets_transfers_of_a_given_duration_end(bentpipe: Command) -> None:
    later = ("--flow", "workload=duration:2s,start=127s")
    done = run(bentpipe, "A", *TOYS, *later)
    assert done.code == 0, done.err
    assert "the timeout is 129 s" in done.err
    (one,) = done.records()
    assert one["scenario"].endswith("timeout=129s")
    done = run(bentpipe, "B", *TOYS, *later, "--set", "timeout=120s")
    assert done.code == 2 and "ends after" in done.err and "hint: " in done.err


PLAN = 'scenarios = ["sat"]\nclients = ["toy"]\nservers = ["toy"]\nworkloads = ["duration:1500ms"]\n'


def test_a_campaign_file_names_sets_of_flows(tmp_path: Path) -> None:
    file = tmp_path / "test.toml"
    file.write_text(PLAN + 'flows = [[], [{ start = "1 s" }, { workload = "transfer:1kB", server = "toy" }]]')
    plan = campaign.load(str(file))
    texts = [str(one) for one in plan.parsed_workloads]
    both = "start=1s + server=toy,workload=transfer:1000,start=0s"
    assert texts == ["duration:1500ms", f"duration:1500ms + {both}"]
    assert msgspec.convert(msgspec.to_builtins(plan), campaign.Plan) == plan
    assert [str(workload.parse(text, "")) for text in texts] == texts
    assert [flow.start_ms for flow in flows.of(plan.parsed_workloads[1])] == [1000, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{ start = 1 }", "flows: start: 1 is not valid"),
        ('{ begin = "1 s" }', 'flows: unknown key "begin"'),
        ('"start=1s"', "flows: 'start=1s' is not valid"),
        ('{ server = "toy + toy" }', "has a comma or a + in it"),
    ],
)
def test_a_campaign_file_with_a_mistake_is_refused(tmp_path: Path, wrong: str, message: str) -> None:
    file = tmp_path / "test.toml"
    file.write_text(f"{PLAN}flows = [{wrong}]")
    with pytest.raises(UsageError) as error:
        campaign.load(str(file))
    assert message in str(error.value) and "test.toml" in str(error.value)


def test_the_command_of_a_cell_has_its_flows(bentpipe: Command) -> None:
    done = run(bentpipe, "A", *TOYS, "--flow", "start=1s")
    (cell,) = cells(read_jsonl(Path("A/records.jsonl")))
    command = reproduce(cell, fake_run.manifest())
    assert done.code == 0 and "--workload transfer:20000 --flow start=1s" in command
