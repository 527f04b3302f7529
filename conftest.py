"""What the tests in tests/python and in the folders of studies share: a way to call the command line, and a
stand-in for the simulator.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

# What tests share, and the modules of a study as `reno.page`.
sys.path[:0] = [str(Path(__file__).parent / place) for place in ("tests/python", "studies")]

import browser  # noqa: E402
import chance  # noqa: E402
import children  # noqa: E402

from bentpipe import paths  # noqa: E402
from bentpipe.cli import invoke  # noqa: E402
from bentpipe.stacks import catalogue  # noqa: E402
from bentpipe.stacks.model import Stack  # noqa: E402
from bentpipe.stacks.needs import what_is_missing  # noqa: E402

ROOT = Path(__file__).parent
HERE = ROOT / "tests" / "python"
STACKS = HERE.parent / "stacks"
SETUP = ("noq", "quinn", "aioquic", "quic-go")  # what `make setup` installs
chance.load_profile()
TOY_RUN = ["run", "--scenario", "sat", "--client", "toy", "--server", "toy", "--bytes", "1000", "--no-report"]
NOQ_RUN = ["run", "--scenario", "sat", "--client", "noq", "--server", "noq", "--bytes", "50kB",
           "--iterations", "1"]  # fmt: skip

KEEPER = pytest.StashKey[children.Keeper]()
# What `tools/test_times.py` calls tests with these marks; the first that a test has counts.
KINDS = {
    "emulated": "real time, behind emulated links",
    "real_time": "real time, over loopback",
    "browser": "browser",
    "virtual_time": "real stacks in virtual time",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", metavar="SEED", help="run the tests in an order drawn from SEED")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test says what kind it is. All workers draw the same order."""
    for item in items:
        kind = next((kind for mark, kind in KINDS.items() if item.get_closest_marker(mark)), "Python alone")
        item.user_properties.append(("kind", kind))
    if (seed := config.getoption("--shuffle")) is not None:
        Random(seed).shuffle(items)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if (seed := chance.soak_seed()) is not None:
        config.option.hypothesis_seed = str(seed)  # as with `--hypothesis-seed`
    if not config.option.collectonly:
        config.stash[KEEPER] = children.Keeper()


def pytest_unconfigure(config: pytest.Config) -> None:
    if KEEPER in config.stash:
        config.stash[KEEPER].end()


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What programs of the tests keep for a while lies below pytest's folder, and they end before it does."""
    scratch = tmp_path_factory.mktemp("t", numbered=False)  # short: sockets of browsers lie in there
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scratch))
        patch.setattr(tempfile, "tempdir", str(scratch))
        yield
    left = children.wait_until_gone(*children.of_run(pytestconfig.stash[KEEPER].token))
    assert [children.command_line(one) for one in left] == []


@pytest.fixture
def public(pytestconfig: pytest.Config) -> Path:
    """A folder that other users can read. It goes when the test run ends."""
    folder = pytestconfig.stash[KEEPER].public
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    return folder


def present(*names: str) -> list[str]:
    """Those of the stacks (the four of `make setup` if none is named) that are installed. Of the four, only
    one whose tools are missing may be absent.
    """
    known, names = catalogue.discover(), names or SETUP
    absent = [name for name in names if known[name].missing("virtual-time")]
    for name in absent:
        why = what_is_missing(known[name])
        assert name not in SETUP or why is not None, f"{known[name].missing('virtual-time')}: make setup"
    return [name for name in names if name not in absent]


def installed_or_skip(name: str) -> Stack:
    """The stack; the test is skipped if it is not installed."""
    stack = catalogue.discover()[name]
    if not present(name):
        pytest.skip(f"{stack.missing('virtual-time')}; {stack.how_to_install}")
    return stack


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Leaves a test out where this user cannot make namespaces, and only there."""
    probe = [str(paths.program("bentpipe-emu")), "probe"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    if "namespaces cannot be made" in done.stdout + done.stderr:
        pytest.skip(f"no real time here: {done.stdout}{done.stderr.strip()}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("browser") and browser.CHROMIUM is None:
        pytest.skip("no Chromium on the PATH")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    def records(self) -> list[dict[str, Any]]:
        """Standard output as records, one JSON object per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Command:
    """Calls the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Done:
        self._capsys.readouterr()
        code = invoke([str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Done(code, out, err)

    def page(self, study: str, *words: str | Path) -> str:
        """Write the page of a study from the runs that these arguments name, and return its text."""
        done = self("study", study, *words, "-o", "out")
        assert done.code == 0, done.err
        files = [Path(line) for line in done.out.splitlines()]
        assert all(file.is_file() for file in files)
        return files[0].read_text()

    def trials(self, *arguments: str) -> list[dict[str, Any]]:
        """The records of a run with one iteration, without traces and report."""
        words = ["--iterations", "1", "--no-report", "--json", "--trace", "none", *arguments]
        done = self("run", *words)
        assert done.code == 0, done.err
        return done.records()


@pytest.fixture
def bentpipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    """The command line, in an empty folder, knowing the stacks of the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENTPIPE_STACKS", str(STACKS))
    return Command(capsys)


@pytest.fixture
def fake_sim(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Puts `fake_sim.py` in the place of bentpipe-sim; the folder of programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "bentpipe-sim"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE / "fake_sim.py"}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("BENTPIPE_BIN", str(folder))
    monkeypatch.delenv("FAKE_SIM", raising=False)
    return folder
