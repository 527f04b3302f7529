"""`bentpipe shell`: real programs behind an emulated link."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import wait_until_gone

from bentpipe import paths
from bentpipe.cli import invoke

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("namespaces")]

NOBODY = 65534
TIMEOUT_S = 120
SYSTEM_PYTHON = "/usr/bin/python3"

# A server that answers each datagram, and a client that asks once and prints how long that took.
ECHO = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 7))
while True:
    data, sender = s.recvfrom(2000)
    s.sendto(data, sender)
"""
ASK = """
import socket, sys, time
version = {"4": socket.AF_INET, "6": socket.AF_INET6}[sys.argv[1]]
s = socket.socket(version, socket.SOCK_DGRAM)
s.settimeout(60)
s.connect(("server", 7))
begin = time.monotonic()
s.send(b"hello")
assert s.recv(100) == b"hello"
print(f"{time.monotonic() - begin}\\n", end="")  # in one piece, unbuffered too: two may share a terminal
"""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bentpipe", "shell", *arguments]


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def line(code: str) -> str:
    """A command line that runs Python code: `--server` takes one."""
    return f"exec {sys.executable} -c '{code}'"


SERVER = line(ECHO.replace("'", '"'))


@pytest.mark.parametrize("version", ["4", "6"])
def test_a_round_trip_takes_as_long_as_the_scenario_says(version: str) -> None:
    done = shell("sat", "--server", SERVER, "--", *python(ASK, version))
    assert done.returncode == 0, done.stderr
    # No upper limit: other tests may keep the machine busy.
    assert float(done.stdout) >= 0.600


def test_settings_change_the_link() -> None:
    settings = [f"--set={way}.delay=500 ms" for way in ("forward", "return")]
    done = shell("sat", *settings, "--server", SERVER, "--", *python(ASK, "4"))
    assert float(done.stdout) >= 1.000, "600 ms are the scenario's own"


def test_a_shell_inside_a_shell_goes_on_through_it() -> None:
    inner = command("sat", "--", *python(ASK, "4"))
    done = shell("sat", "--server", SERVER, "--", *inner)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 1.200


def test_two_shells_inside_one_do_not_meet() -> None:
    one = " ".join(f"'{word}'" for word in command("sat", "--", *python(ASK.replace("'", '"'), "6")))
    done = shell("sat", "--server", SERVER, "--", "sh", "-c", f"{one} & {one} & wait")
    assert [float(text) >= 1.200 for text in done.stdout.split()] == [True, True], done.stderr


def test_a_shell_inside_has_no_server_of_its_own() -> None:
    done = shell("sat", "--", *command("sat", "--server", "true", "--", "true"))
    assert done.returncode == 1
    assert "give --server to the outer shell" in done.stderr


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_the_exit_code_is_that_of_the_command(script: str, code: int) -> None:
    assert shell("sat", "--", "sh", "-c", script).returncode == code


def test_standard_input_and_output_are_those_of_the_command() -> None:
    done = subprocess.run(
        command("sat", "--", "cat"), input="hello", capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.stdout, done.stderr) == ("hello", "")


def test_without_a_command_there_is_a_shell() -> None:
    environment = os.environ | {"SHELL": "/bin/sh"}
    done = subprocess.run(
        command("sat"), input="hostname\n", capture_output=True, text=True, env=environment, timeout=TIMEOUT_S
    )
    assert done.stdout == "client\n"
    assert "the far end is called server" in done.stderr


@pytest.mark.parametrize("host", ["client", "terminal", "gateway", "server"])
def test_a_command_can_run_on_any_host(host: str) -> None:
    assert shell("sat", "--on", host, "--", "hostname").stdout == f"{host}\n"


def test_commands_that_are_none_are_named() -> None:
    done = shell("sat", "--", "no-such-command")
    assert done.returncode == 127
    assert done.stderr == "error: no-such-command: command not found\n"
    done = shell("sat", "--", "/etc/hosts")
    assert done.returncode == 126


def test_a_server_that_fails_is_named() -> None:
    done = shell("sat", "--server", "exit 3", "--", "true")
    assert done.returncode == 1
    assert "the server's command ended before it listened, with 3: exit 3" in done.stderr


def test_the_server_is_asked_to_end(tmp_path: Path) -> None:
    said = tmp_path / "said"
    handler = f'import signal\ndef end(*_):\n    open("{said}", "w").close()\n    exit()\n'
    server = handler + "signal.signal(signal.SIGTERM, end)\n" + ECHO
    assert shell("sat", "--server", line(server), "--", "true").returncode == 0
    assert said.exists()


def meters(count: int, *arguments: str) -> list[str]:
    """The first lines of the meters, while a command runs that ends when they have come."""
    process = subprocess.Popen(
        command("sat", "--meters", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(count)]
    _, rest = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, lines
    return lines + rest.splitlines()


def test_meters_show_what_crosses_the_link() -> None:
    first = meters(1, "--server", SERVER, "--", *python(ASK + "\nsys.stdin.read()", "4"))[0]
    assert "forward" in first and "return" in first and "Mbit/s, queue" in first


def test_nothing_crosses_a_link_that_nobody_uses() -> None:
    """Neither neighbours nor routers make themselves known."""
    for one in meters(3, "--", "cat"):
        assert one.count(" 0.000 Mbit/s, queue    0 kB, drops 0, losses 0") == 2


def test_nothing_is_left_after_a_kill() -> None:
    """Not even of a process that has left its group and session."""
    script = "setsid sleep 4242 & echo started; sleep 4242"
    before = namespaces()
    process = subprocess.Popen(
        command("sat", "--server", SERVER, "--", "sh", "-c", script), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    below = descendants(process.pid)
    assert len(below) >= 4 and any(namespaces_of(one) - before for one in below)
    own = set().union(*(namespaces_of(one) for one in below)) - before
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert wait_until_gone(*below) == []
    assert not own & namespaces()


def namespaces_of(process: int) -> set[str]:
    """The network namespace of a process, if it may be seen."""
    try:
        return {str(Path(f"/proc/{process}/ns/net").readlink())}
    except OSError:
        return set()


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def namespaces() -> set[str]:
    return set().union(*map(namespaces_of, processes()))


def descendants(ancestor: int) -> list[int]:
    """All processes below one."""
    parents = {}
    for one in processes():
        try:
            parents[one] = int(Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = {ancestor}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {ancestor})


def test_an_interrupt_is_for_the_command() -> None:
    script = 'trap "echo interrupted; exit 5" INT; echo started; while :; do sleep 0.1; done'
    process = subprocess.Popen(
        command("sat", "--", "sh", "-c", script), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.communicate(timeout=TIMEOUT_S)[0] == "interrupted\n"
    assert process.returncode == 5


def test_an_ordinary_user_can_do_all_that(public: Path) -> None:
    """Program and scenario are copied to where everybody may read: a checkout may be root's alone."""
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user, so all others show it")
    if not os.access(SYSTEM_PYTHON, os.X_OK):
        pytest.skip(f"no {SYSTEM_PYTHON} here, and this Python may be root's alone")
    program = shutil.copy(paths.program("bentpipe-emu"), public)
    scenario = shutil.copy(paths.scenarios() / "sat.toml", public)
    probe = as_nobody(public, program, "probe")
    if "namespaces cannot be made" in probe.stdout + probe.stderr:
        pytest.skip(f"no user namespaces here: {probe.stdout}{probe.stderr.strip()}")
    server = SERVER.replace(sys.executable, SYSTEM_PYTHON)
    outer = [program, "shell", "--scenario", scenario, "--server", server, "--"]
    inner = [program, "shell", "--scenario", scenario, "--"]
    ask = [SYSTEM_PYTHON, "-c", ASK + "\nimport os\nprint(os.getuid())", "6"]
    done = as_nobody(public, *outer, *inner, *ask)
    assert done.returncode == 0, done.stderr
    took, user = done.stdout.split()
    assert float(took) >= 1.200 and user == str(NOBODY)


def as_nobody(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments,
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=folder,
        timeout=TIMEOUT_S,
    )


def test_mistakes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["shell", "satt", "--", "true"]) == 2
    assert 'did you mean "sat"?' in capsys.readouterr().err
    assert invoke(["shell", "sat", "--set", "forward.rate=3", "--", "true"]) == 2
    assert "a rate needs a unit" in capsys.readouterr().err
    assert invoke(["shell", "sat", "--on", "moon", "--", "true"]) == 2
    assert invoke(["shell", "sat", "ping", "-c", "3", "server"]) == 2
    assert "write -- before the command" in capsys.readouterr().err


def test_a_program_that_is_not_built_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bentpipe-sim").symlink_to(paths.program("bentpipe-sim"))
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path))
    assert invoke(["shell", "sat", "--", "true"]) == 1
    assert "bentpipe-emu is not built" in capsys.readouterr().err
