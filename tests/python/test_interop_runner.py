"""Programs of the QUIC interop runner as stacks, unchanged: tests/interop has one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import HERE, Command
from test_emu import trusted

from bentpipe.stacks import catalogue, guest

FOLDER = HERE.parent / "interop"
RUN = ["run", "--stacks", str(FOLDER), "--scenario", "sat", "--bytes", "300kB", "--iterations", "2", "--json"]
SUITE = """
title = "Five minutes"
error = "10 %"
[[objectives]]
name = "down"
scenario = "sat"
workload = "transfer:1MB"
within = { "1 MB" = "8 s" }
"""


def needs_guest() -> None:
    if why := guest.load().not_installed():
        pytest.skip(why)


def test_four_lines_are_a_stack(tmp_path: Path) -> None:
    (tmp_path / "stack.toml").write_text(
        'name = "mine"\nroles = ["server"]\ntestcases = ["transfer"]\ninterop = ["{folder}/run.sh"]\n'
    )
    stack = catalogue.load(tmp_path)
    assert (stack.title, stack.deterministic, stack.carries, stack.logs) == ("mine", False, "ip", ("keylog",))
    assert stack.lives_in_guest("virtual-time") and stack.is_of_the_runner
    assert stack.commands["sockets"] == ("{programs}/bentpipe-interop", "{folder}/run.sh")


@pytest.mark.virtual_time
def test_one_is_checked_in_virtual_time(bentpipe: Command, tmp_path: Path) -> None:
    needs_guest()
    (tmp_path / "mine.toml").write_text(SUITE)
    ends = ["--stacks", str(FOLDER), "--client", "of-the-runner", "--server", "of-the-runner"]
    done = bentpipe("check", "mine.toml", *ends, "--out", "run")
    assert done.code == 0, done.out + done.err
    records = [json.loads(line) for line in Path("run/records.jsonl").read_text().splitlines()]
    assert {one["client_version"].partition(" of sha256 ")[0] for one in records} == {"endpoint.py"}
    assert all(one["measured_from"] == "wire" for one in records), "its secrets are found where they belong"


@pytest.mark.virtual_time
def test_what_it_does_not_know_is_unsupported(bentpipe: Command, tmp_path: Path) -> None:
    needs_guest()
    mine = tmp_path / "mine"
    shutil.copytree(FOLDER, mine)
    text = (mine / "stack.toml").read_text().replace('"transfer"]', '"transfer", "resumption"]')
    (mine / "stack.toml").write_text(text.replace("of-the-runner", "mine"))
    (record,) = bentpipe.trials(
        *["--stacks", str(mine), "--scenario", "sat", "--workload", "resumption:1kB"],
        *["--client", "mine", "--server", "mine"],
    )
    assert record["outcome"] == "unsupported", record["detail"]


@pytest.mark.virtual_time
def test_a_server_that_ends_before_it_listens_is_named(bentpipe: Command, tmp_path: Path) -> None:
    needs_guest()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "stack.toml").write_text(
        'name = "mine"\nroles = ["server"]\ntestcases = ["transfer"]\n'
        'interop = ["/bin/sh", "{folder}/run.sh"]\n'
    )
    (mine / "run.sh").write_text("[ $TESTCASE = transfer ] || exit 127; echo no certificate >&2; exit 3\n")
    (record,) = bentpipe.trials(
        *["--stacks", str(mine), "--scenario", "sat", "--bytes", "1kB", "--client", "noq", "--server", "mine"]
    )
    assert record["outcome"] == "crashed"
    assert "no certificate" in record["detail"] and "port 443" in record["detail"]


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_one_moves_a_file_in_real_time(bentpipe: Command) -> None:
    ends = ["--client", "of-the-runner,noq", "--server", "of-the-runner", "--iterations", "1"]
    done = bentpipe(*RUN, "--testbed", "emu", *ends, "--trace", "none", "--no-report")
    found = trusted(done.records())
    assert [one["outcome"] for one in found] == ["ok", "ok"], [one["detail"] for one in found]
