"""`bentpipe shell --testbed sim`: any two programs in virtual time, each in a guest."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import wait_for, wait_until_gone
from conftest import installed_or_skip
from test_guest import working_below

from bentpipe.cli import invoke

pytestmark = [pytest.mark.virtual_time]

TIMEOUT_S = 120
PYTHON = "/usr/bin/python3"  # whose start depends on nothing of this test's environment
SERVER = f"exec {PYTHON} -m http.server --directory served 80"
FETCH = "import urllib.request as r; open('fetched', 'wb').write(r.urlopen('http://server/file').read())"
SUMMARY = re.compile(
    r"^sim: (?P<virtual>[\d.]+) s of virtual time in [\d.]+ s; (?P<client>\d+) packets to the client, "
    r"(?P<server>\d+) to the server, (?P<dropped>\d+) dropped, (?P<lost>\d+) lost; hash (?P<hash>\w{16})$",
    re.MULTILINE,
)
# Datagrams of IP that are larger than a packet, and a server that sends them back.
ECHO = """
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 7))
while True:
    data, sender = s.recvfrom(9000)
    s.sendto(data, sender)
"""
ASK = """
import socket, sys, time
begin = time.time()
address = socket.getaddrinfo("server", 7, type=socket.SOCK_DGRAM)[0]
s = socket.socket(address[0], socket.SOCK_DGRAM)
s.connect(address[4])
s.send(bytes(5000))
assert s.recv(9000) == bytes(5000)
print(time.time() - begin, time.ctime())
"""
# More than fits into buffers and windows, and an end as soon as it is written.
SEND = """
import socket
s = socket.create_connection(("server", 9))
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_000_000)
s.sendall(bytes(1_000_000))
"""
COUNT = """
import socket
s = socket.create_server(("", 9))
c, _ = s.accept()
print(sum(map(len, iter(lambda: c.recv(65536), b""))), "bytes came")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands work, with a file that is served; a test is left out where there are no guests."""
    installed_or_skip("linux")
    scratch, work = tmp_path / "scratch", tmp_path / "a, b"
    scratch.mkdir()
    (work / "served").mkdir(parents=True)
    (work / "served" / "file").write_bytes(bytes(range(256)) * 1000)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.chdir(work)
    return work


def line(code: str) -> str:
    """A command line that runs Python code: `--server` takes one."""
    Path("server.py").write_text(code)
    return f"exec {PYTHON} server.py"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "bentpipe", "shell", "--testbed", "sim", *arguments]


def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=TIMEOUT_S)


def summary(done: subprocess.CompletedProcess[str]) -> re.Match[str]:
    found = SUMMARY.search(done.stderr)
    assert found is not None, done.stderr
    return found


def left() -> list[int]:
    """Processes that still live for the commands of a test."""
    return wait_until_gone(*working_below(Path(os.environ["TMPDIR"])))


def test_a_file_is_whole_and_its_packets_are_the_same_each_time(folder: Path) -> None:
    found = []
    for _ in range(2):
        done = shell("sat", "--server", SERVER, "--", PYTHON, "-c", FETCH)
        assert done.returncode == 0, done.stderr
        assert (folder / "fetched").read_bytes() == (folder / "served" / "file").read_bytes()
        found.append(summary(done))
    first, second = found
    # A handshake and a request, at 600 ms each.
    assert float(first["virtual"]) >= 1.2
    assert int(first["client"]) > 256_000 / 1500 and int(first["server"]) > 10
    assert (first["hash"], first["virtual"]) == (second["hash"], second["virtual"])
    other = summary(shell("sat", "--seed", "2", "--server", SERVER, "--", PYTHON, "-c", FETCH))
    assert other["hash"] != first["hash"]
    assert left() == [] and not any(Path(os.environ["TMPDIR"]).iterdir())


def test_output_and_exit_code_are_the_commands(folder: Path) -> None:
    script = "echo out; echo err >&2; hostname; pwd; echo seen > /dev/stderr; exit 7"
    done = shell("sat", "--server", SERVER, "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (7, f"out\nclient\n{folder}\n")
    assert "err\nseen\n" in done.stderr
    assert shell("sat", "--server", SERVER, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_what_the_server_prints_is_no_output_of_the_command() -> None:
    server = line(COUNT.replace("import socket", "import socket; print('begun', flush=True)"))
    done = shell("sat", "--server", server, "--", PYTHON, "-c", SEND)
    assert (done.returncode, done.stdout) == (0, "")
    # What the command had written when it ended has come, too.
    assert "begun\n" in done.stderr and "1000000 bytes came\n" in done.stderr


@pytest.mark.parametrize("version", ["4", "6"])
def test_datagrams_and_fragments_pass(version: str) -> None:
    script = [PYTHON, "-c", ASK]
    done = shell("sat", "--ip", version, "--trace", "all.pcapng", "--server", line(ECHO), "--", *script)
    assert done.returncode == 0, done.stderr
    took, when = done.stdout.split(" ", 1)
    assert 0.6 <= float(took) < 0.7
    assert when == "Sat Jan  1 00:00:00 2000\n"
    assert summary(done)["client"] == summary(done)["server"] == "4"
    assert Path("all.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


def test_settings_change_the_link() -> None:
    settings = [f"--set={way}.delay=500 ms" for way in ("forward", "return")]
    done = shell("sat", *settings, "--server", line(ECHO), "--", PYTHON, "-c", ASK)
    assert 1.0 <= float(done.stdout.split()[0]) < 1.1


def test_hours_pass_in_a_moment_and_files_land_in_the_folder(folder: Path) -> None:
    done = shell("sat", "--server", SERVER, "--", "sh", "-c", "sleep 7200; echo late > file; rm -r served")
    assert (done.returncode, summary(done)["virtual"]) == (0, "7200.000"), done.stderr
    assert (folder / "file").read_text() == "late\n" and not (folder / "served").exists()
    done = shell("sat", "--server", SERVER.replace("served", "."), "--", "touch", str(folder.parent / "no"))
    assert done.returncode == 1 and not (folder.parent / "no").exists()
    assert "Read-only file system" in done.stderr


def test_names_that_nobody_has_are_unknown_at_once() -> None:
    ask = "import socket\ntry:\n    socket.gethostbyname('elsewhere')\nexcept OSError: print('unknown')"
    done = shell("sat", "--server", SERVER, "--", PYTHON, "-c", ask)
    assert (done.stdout, summary(done)["virtual"]) == ("unknown\n", "0.000")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupt_ends_everything(number: signal.Signals) -> None:
    spins = "echo started; while :; do sleep 1; done"
    process = subprocess.Popen(
        command("sat", "--server", SERVER, "--", "sh", "-c", spins),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    scratch = Path(os.environ["TMPDIR"])
    wait_for("a guest", lambda: len(working_below(scratch)) >= 2)
    process.send_signal(number)
    process.stdout.close()
    assert process.wait(TIMEOUT_S) == (-9 if number == signal.SIGKILL else 130)
    assert left() == []
    assert number == signal.SIGKILL or not any(scratch.iterdir())


def test_commands_that_fail_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    done = shell("sat", "--server", SERVER, "--", "no-such-command")
    assert done.returncode == 127
    assert "error: no-such-command: command not found\nhint: " in done.stderr
    assert shell("sat", "--server", SERVER, "--", "/etc/hosts").returncode == 126
    done = shell("sat", "--server", "exit 3", "--", "true")
    assert done.returncode == 1
    assert "error: server: its command ended before it listened, with 3\nhint: " in done.stderr
    done = shell("sat", "--server", "sleep 100", "--", "true")
    assert "note: the server's command listens on no port yet" in done.stderr
    monkeypatch.setenv("BENTPIPE_SILENCE_S", "2")
    done = shell("sat", "--server", SERVER, "--", "sh", "-c", "while :; do :; done")
    assert done.returncode == 1
    assert "error: client was silent" in done.stderr and "hint: no virtual time passes" in done.stderr
    assert left() == []


def test_mistakes_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["shell", "--testbed", "sim"]
    for arguments, says in [
        (["satt", "--server", "true", "--", "true"], 'did you mean "sat"?'),
        (["sat", "--", "true"], "virtual time needs a command for the server"),
        (["sat", "--server", "true"], "virtual time has no interactive shell"),
        (["sat", "--server", " ", "--", "true"], "--server: it is empty"),
        (["sat", "--server", "true", "--meters", "--", "true"], "--meters is not for --testbed sim"),
        (["sat", "--server", "true", "--on", "server", "--", "true"], "--on is not for --testbed sim"),
    ]:
        assert invoke([*words, *arguments]) == 2
        said = capsys.readouterr().err
        assert says in said and "hint: " in said
    assert invoke(["shell", "sat", "--trace", "x", "--", "true"]) == 2
    assert "--trace is not for --testbed emu" in capsys.readouterr().err
    monkeypatch.setenv("BENTPIPE_CACHE", os.environ["TMPDIR"])
    assert invoke([*words, "sat", "--server", "true", "--", "true"]) == 1
    said = capsys.readouterr().err
    assert "virtual time needs a kernel for guests" in said and "bentpipe stacks install linux" in said
