"""`bentpipe doctor`: what it says of this machine, and of machines that lack something."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bentpipe import paths
from bentpipe.cli import invoke
from bentpipe.execution import doctor

QUIET = {"p50_ms": 0.01, "p99_ms": 0.05, "p999_ms": 0.1, "max_ms": 0.2, "packets": 990}


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for bentpipe-emu; tests write what it does."""
    monkeypatch.setenv("BENTPIPE_BIN", str(tmp_path))
    return tmp_path / "bentpipe-emu"


def write(program: Path, code: str) -> None:
    program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
    program.chmod(0o755)


def answer(program: Path, checks: dict[str, str | None], timer: dict[str, float]) -> None:
    listed = [{"name": name, "error": error} for name, error in checks.items()]
    write(program, f"print({json.dumps({'checks': listed, 'timer': timer})!r})")


def found(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}


@pytest.mark.emulated
def test_this_machine_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    paths.program("bentpipe-emu")
    code = invoke(["doctor", "--json"])
    checks = found(capsys)
    assert code == int(any(check["status"] == "fail" for check in checks.values()))
    assert {"kernel", "privileges", "namespaces", "processors", "CPU pressure", "rmem_max"} <= checks.keys()
    assert set(doctor.TOOLS) <= checks.keys()
    if code == 0:
        assert "timer noise" in checks


def test_a_machine_that_has_all_passes(emulator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(emulator, {"namespaces": None, "packet sockets": None}, QUIET)
    assert invoke(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "ok    namespaces: can be made\n" in text
    assert "ok    timer noise: p50 0.01 ms, p99 0.05 ms, p99.9 0.1 ms, most 0.2 ms\n" in text
    assert text.endswith("real time works here\n")


def test_without_namespaces_it_fails_and_says_what_to_do(
    emulator: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(emulator, "sys.exit('error: namespaces cannot be made: no\\nhint: run as root')")
    assert invoke(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "fail  namespaces: namespaces cannot be made: no\n      hint: run as root\n" in text
    assert text.endswith("real time does not work here; virtual time does\n")


def test_a_part_that_fails_is_named(emulator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(emulator, {"namespaces": None, "packet sockets": "opening a socket: no"}, QUIET)
    assert invoke(["doctor", "--json"]) == 1
    assert found(capsys)["packet sockets"]["found"] == "opening a socket: no"


def test_late_timers_are_a_warning(emulator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(emulator, {"namespaces": None}, QUIET | {"p999_ms": 3.0})
    assert invoke(["doctor", "--json"]) == 0
    assert found(capsys)["timer noise"]["status"] == "warn"


def test_a_program_that_is_not_built_is_a_failure(emulator: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not emulator.exists()
    assert invoke(["doctor", "--json"]) == 1
    check = found(capsys)["emulator"]
    assert check["status"] == "fail" and check["hint"] == "run `make setup`"


def test_missing_tools_are_a_warning(
    emulator: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(emulator, {"namespaces": None}, QUIET)
    monkeypatch.setenv("PATH", str(emulator.parent))
    assert invoke(["doctor", "--json"]) == 0
    check = found(capsys)["ping"]
    assert (check["status"], check["hint"]) == ("warn", "apt install iputils-ping")
