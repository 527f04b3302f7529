"""Endpoints that misbehave, in the real simulator: each ends with a named outcome, and none stops a campaign.

They are the toys of `tests/stacks/hostile`; the real simulator must be built (`make setup`).
"""

import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from children import wait_until_gone
from conftest import STACKS, Command

pytestmark = pytest.mark.virtual_time

HOSTILE = STACKS / "hostile" / "endpoint.py"
KINDS: list[str] = list(runpy.run_path(str(HOSTILE))["KINDS"])

# Toy as a server → outcome and detail.
SERVERS = {
    "toy": ("ok", ""),
    "crash": ("crashed", "exit status: 3; it said: toy: told to crash"),
    "rubbish": ("crashed", "broke the contract"),
    "chatty": ("crashed", "server broke the contract"),
    "huge": ("crashed", "huge as server broke the contract: a message of 4294967295 bytes"),
    "short": ("crashed", "short as server broke the contract"),
    "late": ("crashed", "late as server broke the contract: RAN until"),
    "early": ("crashed", "early as server broke the contract: RAN until"),
    "astray": ("crashed", "astray as server broke the contract: a datagram on path 1, of 1 (hint: HELLO"),
    "odd-bits": ("crashed", "odd-bits as server broke the contract: ecn is 0x44; of its bits"),
    "wake-early": ("crashed", "wake-early as server broke the contract: RAN until"),
    "jumbo": ("crashed", "jumbo as server broke the contract: a datagram of 65535 bytes"),
    "no-driver": ("crashed", "READY: missing field `driver`"),
    "fails-late": ("crashed", "exit status: 3; it said: toy: failed after its last word"),
    "bye-rubbish": ("crashed", "bye-rubbish as server broke the contract: BYE"),
    "tells-nan": ("crashed", "tells-nan as server broke the contract: BYE: expected value"),
    "tells-nested": ("crashed", """BYE: statistics: "left" is {"s":1.5}, where a number"""),
    "tells-much": ("crashed", "BYE: statistics has 65 entries, where 64 may be"),
    "mute": ("handshake_timeout", "timeout of 60 s passed"),
    "wrong-byte": ("corrupt_file", "byte 4999 is not the one served"),
    "truncate": ("missing_file", "2500 of 5000 bytes"),
    "refuse": ("unsupported", "exited with 127"),
    "careless": ("invalid", "careless as server breaks the contract"),
    "sharing": ("ok", ""),
    "sharing-unasked": ("crashed", "a message of type 132, where RAN is due"),
    "sharing-too-much": ("crashed", "a message of 4194305 bytes in shared memory"),
    "sharing-less": ("crashed", "the message ends within count"),
    "sharing-and-cutting": ("ok", ""),
    "sharing-and-crashing": ("crashed", "as server ended by itself: signal: 9 (SIGKILL)"),
    "never-done": ("ok", ""),
    "leaves-child": ("ok", ""),
}
# Those that are waited for in wall time.
SILENT_SERVERS = ("hang", "dribble", "hang-early", "dies-with-child", "sharing-and-hanging")
# So many seconds; and once more with more, where a program that keeps the contract was given up too: a busy
# machine may need them to start it.
PATIENCE_S = (1, 3, 10, 30, 90)
CLIENTS = {
    "no-file": ("missing_file", "nothing was stored"),
    "fifo": ("missing_file", "what was stored is not a file"),
    "folder": ("missing_file", "what was stored is not a file"),
    "early": ("crashed", "early as client broke the contract"),
    "bye-rubbish": ("crashed", "bye-rubbish as client broke the contract: BYE"),
}
# Tried below on their own, or by `stacks test` alone.
OTHERS = ("spin", "stays", "tells", "no-secrets", "patient", "sleepy", "open", "ignorant", "one-file")


@pytest.fixture(autouse=True)
def hostile(bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack.toml for every kind of toy; a file for the child that one leaves behind."""
    text = (STACKS / "toy" / "stack.toml").read_text()
    for kind in KINDS:
        folder = tmp_path / "stacks" / kind
        folder.mkdir(parents=True)
        own = text.replace('name = "toy"', f'name = "{kind}"')
        own = own.replace('"{folder}/endpoint.py"', json.dumps(str(HOSTILE)) + f', "{kind}"')
        (folder / "stack.toml").write_text(own)
    monkeypatch.setenv("BENTPIPE_STACKS", f"{STACKS}:{tmp_path / 'stacks'}")
    monkeypatch.setenv("TOY_CHILD", str(tmp_path / "child"))


def trials(
    bentpipe: Command, client: str, server: str, trace: str = "none", out: str = "A"
) -> list[dict[str, Any]]:
    done = bentpipe(
        "run", "--scenario", "goodput", "--client", client, "--server", server, "--bytes", "5000",
        "--iterations", "1", "--trace", trace, "--out", out, "--no-report", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    return done.records()


def given_up(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, client: str, server: str, who: str
) -> tuple[str, int]:
    """What is said of `who`, which is waited for in vain in the first trial; and how long. Others are ok."""
    for patience_s in PATIENCE_S:
        monkeypatch.setenv("BENTPIPE_SILENCE_S", str(patience_s))
        first, *others = trials(bentpipe, client, server, out=f"waited-{patience_s}")
        if first["detail"].startswith(who) and all(one["outcome"] == "ok" for one in others):
            break
    assert [first["outcome"], *(one["outcome"] for one in others)] == ["crashed", *["ok"] * len(others)]
    return str(first["detail"]), patience_s


def child_is_gone() -> bool:
    """Whether the child that a toy left behind ends."""
    return wait_until_gone(int(Path(os.environ["TOY_CHILD"]).read_text())) == []


@pytest.mark.parametrize("trace", ["none", "all"])
def test_every_misbehaviour_of_a_server_has_its_outcome(bentpipe: Command, trace: str) -> None:
    records = trials(bentpipe, "toy", ",".join(SERVERS), trace)
    assert {record["server"] for record in records} == set(SERVERS)
    for record in records:
        outcome, detail = SERVERS[record["server"]]
        assert (record["server"], record["outcome"]) == (record["server"], outcome), record["detail"]
        assert detail in record["detail"]
    assert len(Path("A", "records.jsonl").read_text().splitlines()) == len(records)
    assert child_is_gone()


def test_every_misbehaviour_of_a_client_has_its_outcome(bentpipe: Command) -> None:
    records = trials(bentpipe, ",".join(CLIENTS), "toy")
    assert {record["client"] for record in records} == set(CLIENTS)
    for record in records:
        outcome, detail = CLIENTS[record["client"]]
        assert (record["client"], record["outcome"]) == (record["client"], outcome), record["detail"]
        assert detail in record["detail"]


@pytest.mark.parametrize("server", SILENT_SERVERS)
def test_a_program_that_says_nothing_is_given_up(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    who = f"{server} as server was silent"
    detail, patience_s = given_up(bentpipe, monkeypatch, "toy", server, who)
    assert detail.startswith(f"{who}, or within one message, for {patience_s} s")
    assert server != "dies-with-child" or child_is_gone()


@pytest.mark.parametrize("role", ["client", "server"])
def test_a_program_that_does_not_exit_is_given_up(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    ends = ("stays", "toy") if role == "client" else ("toy", "stays")
    who = f"stays as {role} broke the contract"
    detail, patience_s = given_up(bentpipe, monkeypatch, *ends, who)
    assert detail.startswith(f"{who}: it did not exit within {patience_s} s of BYE")


def test_a_program_that_answers_but_spins_costs_its_own_trial(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers in time each time, and not in twenty times that in all: the other trials go on meanwhile."""
    who = "spin as server was slow"
    detail, patience_s = given_up(bentpipe, monkeypatch, "toy", "spin,toy", who)
    assert detail.startswith(f"{who}: it was waited for {20 * patience_s} s in all")


@pytest.mark.parametrize(
    ("server", "outcome"), [("sleepy", "handshake_timeout"), ("patient", "transfer_timeout")]
)
def test_two_sides_that_wait_for_ever_are_a_deadlock(bentpipe: Command, server: str, outcome: str) -> None:
    (record,) = trials(bentpipe, "patient", server)
    assert record["outcome"] == outcome
    assert "deadlock" in record["detail"]
    assert record["virtual_s"] < 1


def test_a_server_that_is_never_done_gets_ten_round_trips(bentpipe: Command) -> None:
    done, never = trials(bentpipe, "toy", "toy,never-done")
    assert (done["server"], never["server"]) == ("toy", "never-done")
    assert (done["outcome"], never["outcome"]) == ("ok", "ok")
    assert never["completion_s"] == done["completion_s"]
    assert 0.25 <= never["virtual_s"] - never["completion_s"] <= 0.35


def test_what_endpoints_say_of_themselves_is_in_records_and_columns(bentpipe: Command) -> None:
    silent, told = trials(bentpipe, "toy", "toy,tells")
    said = {"left_s": 1.5, "left_by": "loss", "cwnd_bytes": 12345, "ssthresh_bytes": None}
    assert (silent["client_statistics"], silent["server_statistics"]) == ({}, {})
    assert (told["client_statistics"], told["server_statistics"]) == ({}, said)
    table = pq.read_table("A/records.parquet").to_pydict()
    assert table["server_statistics.left_s"] == [None, 1.5]
    assert table["server_statistics.left_by"] == [None, "loss"]
    assert table["server_statistics.cwnd_bytes"] == [None, 12345.0]
    assert table["server_statistics.ssthresh_bytes"] == [None, None]
    assert not [name for name in table if name.startswith("client_statistics")]


def test_an_option_value_that_is_not_known_is_unsupported(bentpipe: Command) -> None:
    (record,) = trials(bentpipe, "toy:speed=fast", "toy", "median")
    assert record["outcome"] == "unsupported"
    assert not list(Path("A/trials").glob("*/trace.pcapng"))


@pytest.mark.parametrize(
    ("trace", "outcome"), [("none", "ok"), ("median", "no_secrets"), ("all", "no_secrets")]
)
def test_a_trace_without_secrets_is_said(bentpipe: Command, trace: str, outcome: str) -> None:
    (record,) = trials(bentpipe, "no-secrets", "toy", trace)
    assert record["outcome"] == outcome


def test_a_failed_trial_leaves_what_its_endpoint_said(bentpipe: Command) -> None:
    (record,) = trials(bentpipe, "toy", "crash")
    folder = Path("A/trials", record["trial"])
    assert "told to crash" in (folder / "server.log").read_text()
    assert (folder / "server.frames").stat().st_size > 0
    assert not (folder / "client.frames").exists()


def checks(bentpipe: Command, stack: str) -> list[dict[str, Any]]:
    """What `stacks test` says of a stack."""
    done = bentpipe("stacks", "test", stack, "--json")
    answer = json.loads(done.out)
    failed = [check for check in answer["checks"] if check["passed"] is False]
    assert answer["passed"] is not bool(failed)
    assert done.code == (1 if failed else 0)
    for check in answer["checks"]:
        assert ("hint" in check) is (check["passed"] is False), check
    found: list[dict[str, Any]] = answer["checks"]
    return found


def test_the_toy_keeps_the_contract(bentpipe: Command) -> None:
    found = checks(bentpipe, "toy")
    assert [check for check in found if check["passed"] is False] == []
    skipped = [check["name"] for check in found if check["passed"] is None]
    assert skipped == ["sockets: the program is there"]


@pytest.mark.parametrize(
    ("stack", "check", "detail"),
    [
        ("careless", "server: an unknown test case", "it answered READY"),
        ("no-driver", "client: READY is sane", '"driver" is missing'),
        ("late", "client: an empty RUN", "are not within [0, 1000000)"),
        ("short", "client: an empty RUN", "too few for the datagrams that it announces"),
        ("wake-early", "client: an empty RUN", "is before the end of the run"),
        ("bye-rubbish", "server: FINISH", "BYE is no JSON; it begins with: goodbye"),
        ("fails-late", "client: FINISH", "it exited with 3 after BYE"),
        ("wrong-byte", "100000 bytes arrive whole over goodput (10/10 Mbit/s", "corrupt_file"),
        (
            "mute",
            "100000 bytes arrive whole over goodput",
            "60 packets sent to the server, 0 of them dropped",
        ),
        ("patient", "100000 bytes arrive whole over goodput", "deadlock"),
        ("one-file", "3 files asked for at once", "/30000: nothing was stored"),
        ("ignorant", "a file that is absent is refused", "transfer_timeout"),
        ("open", "a path that leads out of www is refused", "/../2000 was served"),
        ("no-secrets", "TLS secrets", "no_secrets"),
        ("no-secrets", "client: qlog is written", "is empty after BYE"),
        ("no-secrets", "server: qlog is written", "is empty after BYE"),
    ],
)
def test_the_conformance_test_says_what_is_wrong(
    bentpipe: Command, stack: str, check: str, detail: str
) -> None:
    failed = {each["name"]: each["detail"] for each in checks(bentpipe, stack) if each["passed"] is False}
    found = [text for name, text in failed.items() if name.startswith(check)]
    assert found, failed
    assert detail in found[0]


def test_the_conformance_test_gives_up_what_does_not_exit(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patience_s in PATIENCE_S:
        monkeypatch.setenv("BENTPIPE_SILENCE_S", str(patience_s))
        failed = {each["name"]: each["detail"] for each in checks(bentpipe, "stays") if not each["passed"]}
        if not any("said nothing" in detail for detail in failed.values()):
            break
    for role in ("client", "server"):
        (found,) = (text for name, text in failed.items() if name.startswith(f"{role}: FINISH"))
        assert "it did not exit after BYE" in found


def test_a_stack_that_refuses_everything_is_told_so_once(bentpipe: Command) -> None:
    *_, failed, skipped = checks(bentpipe, "refuse")
    assert failed["passed"] is False
    assert "refuses even a plain transfer without options" in failed["detail"]
    assert (skipped["passed"], skipped["name"]) == (None, "virtual-time: everything else")


def test_a_crash_comes_with_what_it_takes_to_replay_it(bentpipe: Command) -> None:
    (crash,) = (check for check in checks(bentpipe, "crash") if check["passed"] is False)
    assert crash["output"] == ["toy: told to crash"]
    name, *words = shlex.split(crash["replay"])
    assert name == "bentpipe"
    command = [sys.executable, "-m", "bentpipe", *words]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 2
    assert "exit status: 3" in again.stderr
    assert "verdict: it failed at message " in again.stdout


def test_every_kind_of_toy_is_tried() -> None:
    assert set(KINDS) == {*SERVERS, *CLIENTS, *SILENT_SERVERS, *OTHERS} - {"toy"}
