"""`bentpipe explore`: who may speak with its server, what it plays, and that nothing of it stays behind."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import chance
import children
import numpy as np
import pytest
from conftest import Command, installed_or_skip
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from bentpipe.cli.explore import _senders, explore
from bentpipe.execution.process_watchdog import GroupWatchdog
from bentpipe.explore.access import Access
from bentpipe.explore.curves import Curve, TrialCurves, _ranges
from bentpipe.explore.exploration import Exploration, RefusedRequest, read_request
from bentpipe.explore.offer import suggested
from bentpipe.explore.session import Session, Workshop
from bentpipe.plan import scenarios
from bentpipe.schema.explore import ExploredSender, ExploredState, Reply

SEED = 20260401
PATIENCE_S = 60.0


@dataclass
class Server:
    """A server of `bentpipe explore` that runs."""

    process: subprocess.Popen[str]
    address: str
    scratch: Path

    @property
    def host(self) -> str:
        return self.address.split("/")[2]

    def connect(self, **changed: Any) -> ClientConnection:
        given = {"origin": f"http://{self.host}", "max_size": None, **changed}
        made: ClientConnection = connect(f"{self.address.replace('http', 'ws')}live", **given)
        return made

    def end(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(children.PATIENCE_S)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    installed_or_skip("noq")
    yield from started(tmp_path)


# The command, whose tokens are this one: as a server that has come back.
WITH_TOKEN = """import secrets, sys
token = sys.argv.pop(1)
secrets.token_urlsafe = lambda _length: token
from bentpipe.cli import main
main()"""


def started(
    tmp_path: Path, *words: str, token: str = "", opens: bool = False, **environment: str
) -> Iterator[Server]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    program = ["-c", WITH_TOKEN, token] if token else ["-m", "bentpipe"]
    command = [sys.executable, *program, "explore", *([] if opens else ["--no-browser"]), *words]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch), **environment},
    )
    assert process.stdout is not None
    try:
        yield Server(process, process.stdout.readline().split()[1], scratch)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def state(*servers: str, seeds: int = 1, **changed: Any) -> dict[str, Any]:
    senders = [
        {"client": "noq", "server": one, "treatment": "direct", "workload": "transfer:50kB", "protocol": ""}
        for one in servers or ("noq:cc=cubic", "noq:cc=newreno")
    ]
    values = {"scenario": "sat", "settings": [], "senders": senders, "seeds": seeds, "seed": SEED}
    return values | changed


def ask(socket: ClientConnection, number: int, wanted: dict[str, Any]) -> None:
    socket.send(json.dumps({"format": 1, "number": number, "state": wanted}))


def replies(socket: ClientConnection, number: int) -> list[dict[str, Any]]:
    """What the server says to a request, to its end."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["kind"] != "done":
        one = json.loads(socket.recv(timeout=PATIENCE_S))
        found += [one] if one["number"] == number else []
    return found


HOST = "127.0.0.1:8000"


@pytest.mark.parametrize(
    ("kind", "changed", "passes"),
    [
        ("http", {}, True),
        ("http", {"host": "localhost:8000"}, True),
        ("http", {"host": "evil.example:8000"}, False),  # a name that leads here: DNS rebinding
        ("http", {"host": "127.0.0.1:8001"}, False),
        ("http", {"host": None}, False),
        ("http", {"origin": "http://127.0.0.1:8000"}, True),
        ("http", {"origin": "http://127.0.0.1:8001"}, False),  # a server of somebody else's, here
        ("http", {"origin": "null"}, False),
        ("http", {"sec-fetch-site": "cross-site"}, False),
        ("http", {"sec-fetch-site": "same-site"}, False),
        ("websocket", {"origin": "http://127.0.0.1:8000"}, True),
        ("websocket", {}, False),
        ("websocket", {"origin": "https://evil.example"}, False),
    ],
)
def test_only_pages_of_the_server_itself_may_speak_with_it(
    kind: str, changed: dict[str, str | None], passes: bool
) -> None:
    access = Access(token="secret", port=8000)
    headers = {name: value for name, value in {"host": HOST, **changed}.items() if value is not None}
    assert (access.refusal(kind, "/secret/", headers) is None) is passes
    for path in ("/", "/secre/", "/secrets/", "/x/secret/", "/secret\u00e9/"):
        assert access.refusal(kind, path, headers) is not None


def test_the_code_that_a_browser_is_started_with_opens_the_page_once() -> None:
    """`ps` shows it to everybody; after the browser it is worth nothing."""
    access = Access(token="secret", port=8000, code="once")
    assert access.entrance == "http://127.0.0.1:8000/once/"
    here = {"host": HOST}
    for kind, path, headers in (
        ("http", "/once/", {"host": "evil.example:8000"}),
        ("http", "/once/", here | {"origin": "https://evil.example"}),
        ("http", "/once/live", here),
        ("http", "/none/", here),
        ("websocket", "/once/", here | {"origin": f"http://{HOST}"}),
    ):
        assert not access.enters(kind, path, headers)
    assert access.refusal("http", "/once/", here) is not None
    assert access.enters("http", "/once/", here)
    assert not access.enters("http", "/once/", here) and not access.enters("http", "/None/", here)
    assert access.entrance == access.address and "once" not in access.address


BROWSER = """#!/bin/sh
tr '\\0' '\\n' < /proc/$$/cmdline > "$TMPDIR/started"
exec "{python}" -c 'import sys, urllib.request as web
for _ in range(2):
    try:
        print(web.urlopen(sys.argv[1]).url, flush=True)
    except OSError as error:
        print(error, flush=True)
' "$1" > "$TMPDIR/seen"
"""


def test_the_token_is_in_no_command_line(tmp_path: Path) -> None:
    """The browser is led to the page; whoever comes second with what it was started with is not."""
    installed_or_skip("noq")
    program = tmp_path / "browser"
    program.write_text(BROWSER.format(python=sys.executable))
    program.chmod(0o755)
    seen = tmp_path / "scratch" / "seen"
    for server in started(tmp_path, opens=True, BROWSER=f"{program} %s"):
        children.wait_for("both answers", lambda: seen.exists() and len(seen.read_text().splitlines()) == 2)
        first, second = seen.read_text().splitlines()
        token = server.address.split("/")[3]
        assert first == server.address and "403" in second
        assert token not in (server.scratch / "started").read_text()
        assert token not in Path(f"/proc/{server.process.pid}/cmdline").read_text()


def test_browsers_leave_the_port_80_out() -> None:
    address = {"host": "127.0.0.1", "origin": "http://127.0.0.1"}
    for port, passes in ((80, True), (8000, False)):
        refusal = Access(token="secret", port=port).refusal("websocket", "/secret/live", address)
        assert (refusal is None) is passes


def test_a_page_and_its_assets_need_the_token_and_the_host(server: Server) -> None:
    root = f"http://{server.host}/"
    for place in ("", "assets/explore.js"):
        with urllib.request.urlopen(server.address + place) as answer:
            assert (
                answer.status == 200 and "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            )
        for address, headers in (
            (root + place, {}),
            (f"{root}wrong/{place}", {}),
            (server.address + place, {"Host": "evil.example"}),
            (server.address + place, {"Origin": "https://evil.example"}),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(urllib.request.Request(address, headers=headers))
            assert refused.value.code == 403
    with pytest.raises(urllib.error.HTTPError) as refused:  # nothing acts but the WebSocket
        urllib.request.urlopen(server.address, data=b"x")
    assert refused.value.code == 405


def test_the_websocket_needs_token_host_and_origin(server: Server) -> None:
    wrong = server.address.replace(server.address.split("/")[3], "wrong")
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        (wrong, {"origin": f"http://{server.host}"}),
        (server.address, {"origin": "https://evil.example"}),
        (server.address, {"origin": None}),
    )
    for address, options in cases:
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{address.replace('http', 'ws')}live", **options)
        assert refused.value.response.status_code == 403


@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda some: (
                st.lists(some)
                | st.dictionaries(st.sampled_from(["format", "number", "state", "senders", "x"]), some)
            ),
        ).map(json.dumps),
    )
)
def test_whatever_a_page_sends_is_a_request_or_refused_in_words(text: str) -> None:
    try:
        read_request(text)
    except ValueError as error:
        assert str(error)


@pytest.mark.parametrize(
    "changed",
    [{"seeds": 0}, {"seeds": 101}, {"senders": []}, {"seed": -1}, {"settings": ["x=1"] * 65},
     {"scenario": "x" * 16_001}, {"scenario": "a\0b"}],
)  # fmt: skip
def test_a_state_is_bounded(changed: dict[str, Any]) -> None:
    read_request(json.dumps({"format": 1, "number": 1, "state": state()}))
    with pytest.raises(RefusedRequest, match=r"\w") as refused:
        read_request(json.dumps({"format": 1, "number": 7, "state": state(**changed)}))
    assert refused.value.number == 7, "the page is waiting for an answer to this one"


def test_suggestions_are_the_words_of_an_option() -> None:
    meaning = "congestion control: newreno, cubic (default), bbr3 of noq; bentpipe, Bentpipe's own"
    assert suggested(meaning) == ["newreno", "cubic", "bbr3", "bentpipe"]
    assert suggested("initial window in packets (default 10)") == []


def sender(**changed: str) -> ExploredSender:
    values = {
        "client": "noq",
        "server": "noq",
        "treatment": "direct",
        "workload": "transfer:1MB",
        "protocol": "",
    }
    return ExploredSender(**(values | changed))


def explored(*senders: ExploredSender, settings: tuple[str, ...] = ()) -> Exploration:
    return Exploration(
        ExploredState(scenario="sat", settings=list(settings), senders=list(senders), seeds=2, seed=SEED)
    )


def test_senders_that_differ_in_more_than_their_servers_are_two_commands() -> None:
    both = explored(sender(), sender(server="noq:iw=100"))
    assert len(both.commands(both.state.senders)) == 1
    two = explored(sender(), sender(treatment="quic-pep=terminal:iw=100,gateway:iw=100"))
    commands = two.commands(two.state.senders)
    assert len(commands) == 2 and "--treatment" in commands[1]


@pytest.mark.parametrize(
    "senders",
    [
        [sender()],
        [sender(), sender()],
        [sender(), sender(workload="page:kosek", protocol="h3")],
        [sender(workload="page:kosek", protocol="h2"), sender(workload="page:kosek")],
        [sender(server="noq:iw=100"), sender(client="quinn", treatment="quic-pep")],
    ],
)
def test_the_second_command_opens_the_same_state(senders: list[ExploredSender]) -> None:
    command = explored(*senders, settings=("forward.loss=1 %",)).again()
    words = shlex.split(command)[2:]
    assert _senders(explore.make_context("explore", words).params) == senders


def test_no_trial_leaves_the_band_of_all_trials() -> None:
    """Between its times as at them, whatever the curve: steps, lines, and what is known for a while only."""
    drawn = np.random.default_rng(SEED)
    for steps, after in ((True, "hold"), (True, "zero"), (False, "zero"), (False, "nothing")):
        trials = []
        for _ in range(3):
            times = np.sort(drawn.uniform(0.1, drawn.uniform(2, 9), 2000))
            values = drawn.pareto(1.5, len(times)) * 1000  # peaks between the times of the band
            trials.append(TrialCurves(10.0, {"queue": Curve(times, values, steps, after)}))
        (found,) = _ranges(trials)
        for trial in trials:
            curve = trial.curves["queue"]
            for times in (curve.times, drawn.uniform(0, 10, 5000)):
                values = curve.at(times)
                low = np.interp(times, found.times, found.low, left=np.nan, right=np.nan)
                high = np.interp(times, found.times, found.high, left=np.nan, right=np.nan)
                known = ~np.isnan(values)
                # Rounded to tenths of a unit, and to microseconds, in which a bound can be steep.
                slack = 0.1 + 1e-5 * np.max(found.high)
                assert known.any() and np.all(values[known] >= low[known] - slack)
                assert np.all(values[known] <= high[known] + slack)


def test_what_nobody_foresaw_is_said_and_the_next_request_is_played(tmp_path: Path) -> None:
    said: list[Reply] = []

    async def ask_twice() -> None:
        async def say(one: Reply) -> None:
            said.append(one)

        with closing(GroupWatchdog(tmp_path / "watched")) as watchdog:
            session = Session(Workshop(tmp_path / "missing", watchdog, 10, ()), say)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.follow)
                for number in (1, 2):
                    values = {"format": 1, "number": number, "state": state()}
                    session.ask(read_request(json.dumps(values)))
                    while not said or (said[-1].kind, said[-1].number) != ("done", number):
                        await anyio.sleep(0.001)
                tasks.cancel_scope.cancel()

    anyio.run(ask_twice)
    assert [one.kind for one in said] == ["problem", "done"] * 2
    assert said[0].problem is not None and "missing" in said[0].problem.error


@pytest.mark.virtual_time
def test_the_command_of_a_state_runs_the_same_trials(server: Server, bentpipe: Command) -> None:
    """Byte for byte, of every seed and sender; and what is saved as a scenario is the same path."""
    queue = 'forward.queue={aqm="codel", size="30 packets"}'
    with server.connect() as socket:
        ask(socket, 1, state(settings=[queue, "forward.loss=1 %"], seeds=2))
        said = replies(socket, 1)
    (path,) = [one["path"] for one in said if one["kind"] == "path"]
    shown = [one["trial"] for one in said if one["kind"] == "trial"]
    (command,) = path["commands"]
    done = bentpipe(*shlex.split(command)[1:], "--json", "--no-report")
    assert done.code == 0, done.err
    hashes = {record["trial"]: record["packet_log_hash"] for record in done.records()}
    assert len(hashes) == 4 and len(shown) == 2
    assert all(hashes[one["trial"]] == one["packet_log_hash"] for one in shown)
    Path("saved.toml").write_text(path["file"])
    assert tomllib.loads(path["file"])["satellite"]["forward"]["queue"]["aqm"] == "codel"
    saved = scenarios.resolve("saved.toml").scenario
    assert saved | {"name": ""} == path["scenario"] | {"name": ""}
    bands = [one["band"]["trials"] for one in said if one["kind"] == "band"]
    assert sorted(bands) == [1, 1, 2, 2]


@pytest.mark.virtual_time
def test_of_many_changes_the_last_one_wins_and_nothing_is_left(server: Server) -> None:
    with server.connect() as socket:
        for number in range(1, 21):
            ask(socket, number, state(seeds=20, settings=[f"forward.queue={number + 10} packets"]))
        ask(socket, 21, state(settings=["forward.queue=99 packets"]))
        said = replies(socket, 21)
    assert [one["kind"] for one in said].count("trial") == 2
    children.wait_for("the files of trials are gone", lambda: not list(server.scratch.glob("bentpipe-*/*")))
    own = children_of(server.process.pid)
    assert len(own) == 1, "the watchdog alone"
    assert server.end() == 0
    children.wait_for("the watchdog is gone", lambda: not any(children.runs(one) for one in own))
    assert list(server.scratch.iterdir()) == []


def has_trial(server: int) -> bool:
    """Whether a server has a process beside its watchdog."""
    return len(children_of(server)) > 1


def children_of(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(one) for task in tasks for one in task.read_text().split()]


@pytest.mark.virtual_time
def test_a_state_that_cannot_be_played_is_said_in_words(server: Server) -> None:
    with server.connect() as socket:
        ask(socket, 1, state(settings=["forward.queue=many"]))
        problems = [one["problem"] for one in replies(socket, 1) if one["kind"] == "problem"]
        assert problems and all("many" in one["error"] for one in problems)
        ask(socket, 2, state("noq", "nonesuch"))
        said = replies(socket, 2)
        (path,) = [one["path"] for one in said if one["kind"] == "path"]
        assert "nonesuch" not in " ".join(path["commands"]), "only what can be run"
        assert [one["sender"] for one in said if one["kind"] == "problem"] == [1]
        assert [one["sender"] for one in said if one["kind"] == "trial"] == [0]
        socket.send("{}")
        assert "cannot be read" in json.loads(socket.recv(timeout=PATIENCE_S))["problem"]["error"]
        ask(socket, 3, state(seeds=1000))
        assert [one["kind"] for one in replies(socket, 3)] == ["problem", "done"]
        ask(socket, 4, state())
        assert [one["kind"] for one in replies(socket, 4)].count("trial") == 2


@pytest.mark.virtual_time
def test_a_failing_and_a_silent_stack_are_shown_and_ended(tmp_path: Path) -> None:
    """A crash is the sender's outcome; a program that says nothing is ended with the next change."""
    installed_or_skip("noq")
    for name, body in (("crashes", "exit 3"), ("hangs", "exec sleep 1000")):
        folder = tmp_path / "stacks" / name
        folder.mkdir(parents=True)
        (folder / "endpoint.sh").write_text(f"#!/bin/sh\n{body}\n")
        (folder / "stack.toml").write_text(STACK.format(name=name))
    for server in started(tmp_path, "--stacks", str(tmp_path / "stacks")):
        with server.connect() as socket:
            ask(socket, 1, state("crashes", "noq"))
            (failed,) = [one for one in replies(socket, 1) if one["kind"] == "trial" and one["sender"] == 0]
            assert failed["trial"]["outcome"] == "crashed" and failed["trial"]["detail"]
            ask(socket, 2, state("hangs"))
            process = server.process.pid
            children.wait_for("the silent trial", partial(has_trial, process))
            ask(socket, 3, state("noq"))
            assert [one["kind"] for one in replies(socket, 3)].count("trial") == 1
        assert server.end() == 0


STACK = """\
name = "{name}"
title = "{name}"
language = "sh"
home = "https://example.org"
roles = ["client", "server"]
testcases = ["transfer"]
deterministic = true
notes = ""
[commands]
virtual-time = ["sh", "{{folder}}/endpoint.sh"]
"""


@pytest.mark.virtual_time
def test_random_changes_leave_no_process_no_file_and_flat_memory(server: Server) -> None:
    held = change_at_random(server, 60)
    assert held[-1] < held[0] + 80e6


@pytest.mark.soak
def test_thousands_of_random_changes(server: Server) -> None:
    """They take some ten minutes on a quiet machine. Memory may grow by what the kinds of trials need, not by
    how many there are.
    """
    held = change_at_random(server, 3000)
    quarter = len(held) // 4
    second, last = median(held[quarter : 2 * quarter]), median(held[-quarter:])
    print(f"memory: {held[0] / 1e6:.1f} MB at first, {second / 1e6:.1f} in the second quarter, "
          f"{last / 1e6:.1f} in the last, {max(held) / 1e6:.1f} at most")  # fmt: skip
    assert last < second + 20e6


def change_at_random(server: Server, changes: int) -> list[float]:
    """Change path, senders and seeds, cut most of it short, now and then open the page anew, then end all.
    Nothing is left of it; the memory that the server held between changes, in order.
    """
    drawn = random.Random(chance.soak_seed() or 50)
    held: list[float] = []
    number = 0
    while number < changes:
        with server.connect() as socket:
            for _ in range(min(drawn.randint(1, 200), changes - number)):
                number += 1
                ask(socket, number, random_state(drawn))
                if drawn.random() < 0.3:  # the others are cut short by the next one
                    replies(socket, number)
                    held.append(memory(server))
    with server.connect() as socket:
        ask(socket, changes + 1, state())
        replies(socket, changes + 1)
        held.append(memory(server))
        files = open_files(server)
    children.wait_for("the files of trials are gone", lambda: not list(server.scratch.glob("bentpipe-*/*")))
    children.wait_for("the page's own are closed", lambda: open_files(server) < files)
    assert len(children_of(server.process.pid)) == 1 and open_files(server) < MOST_OPEN
    assert server.end() == 0
    assert list(server.scratch.iterdir()) == []
    return held


MOST_OPEN = 40  # files, sockets and pipes of a server that nobody uses


def random_state(drawn: random.Random) -> dict[str, Any]:
    """A state that can be played, or, seldom, one that is refused."""
    servers = ("noq:cc=cubic", "noq:cc=bentpipe", "noq:cc=newreno:iw=100", "nonesuch")
    chosen = drawn.choices(servers, (10, 10, 10, 1), k=drawn.randint(1, 2))
    wanted = state(*chosen, scenario=drawn.choice(("sat", "satloss", "leo-tum", "goodput")),
                   seeds=drawn.randint(1, 5), seed=drawn.randrange(2**32))  # fmt: skip
    if drawn.random() < 0.9:
        wanted["settings"].append(f"forward.queue={drawn.randint(5, 500)} packets")
    if drawn.random() < 0.5:
        wanted["settings"].append(f"forward.loss={drawn.random():.2f} %")
    for sender in wanted["senders"]:
        sender["workload"] = f"transfer:{drawn.choice((10, 50, 300))}kB"
    return wanted


def open_files(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


def memory(server: Server) -> float:
    """Bytes that the server has in memory."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
