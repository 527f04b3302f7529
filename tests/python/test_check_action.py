"""`examples/check-action`: the action for `bentpipe check`, and the workflow that uses it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from conftest import STACKS, installed_or_skip

ROOT = Path(__file__).resolve().parents[2]
ACTION = ROOT / "examples" / "check-action" / "action.yml"
WORKFLOW = ROOT / "examples" / "check.yml"
SUITE = """\
title = "A small one"
[[objectives]]
name = "download"
scenario = "sat"
workload = "transfer:10kB"
measure = "completion_s"
at_most = "%d s"
"""


@pytest.fixture
def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(ACTION.read_text())
    return found


def test_the_workflow_gives_the_action_what_it_asks_for(action: dict[str, Any]) -> None:
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"]
    (used,) = [step for step in steps if step.get("uses", "").startswith("./")]
    inputs = action["inputs"]
    assert used["with"].keys() <= inputs.keys()
    assert {name for name, one in inputs.items() if one.get("required")} <= used["with"].keys()
    assert all(one["description"] for one in inputs.values())


def test_the_action_hands_its_inputs_on_by_the_environment(action: dict[str, Any]) -> None:
    """What a caller writes never becomes a part of a script."""
    handed = re.findall(r"inputs\.(\w+)", ACTION.read_text())
    assert sorted(handed) == sorted(action["inputs"])
    assert all("${{" not in step["run"] for step in action["runs"]["steps"])


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("stack", "seconds", "code"), [("noq", 10, 0), ("noq", 1, 1), ("toy", 10, 0)], ids=str
)
def test_the_action_checks(
    action: dict[str, Any], tmp_path: Path, stack: str, seconds: int, code: int
) -> None:
    """Its second step, as a runner runs it, where its first one has installed the wheel."""
    own = stack == "toy"
    if not own:
        installed_or_skip(stack)
    programs = tmp_path / "runner" / "bentpipe" / "bin"
    programs.mkdir(parents=True)
    (programs / "bentpipe").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bentpipe "$@"\n')
    (programs / "bentpipe").chmod(0o755)
    (tmp_path / "suite.toml").write_text(SUITE % seconds)
    given = {"WHEEL": "", "SUITE": "suite.toml", "CLIENT": stack, "SERVER": stack, "OPTIONS": "--most 14",
             "STACKS": str(STACKS / "toy") if own else "",
             "AGAINST": str(STACKS / "toy") if own else "missing"}  # fmt: skip
    assert action["runs"]["steps"][1]["env"].keys() <= given.keys()
    runner = {"RUNNER_TEMP": "runner", "GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary.md"}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", action["runs"]["steps"][1]["run"]],
        cwd=tmp_path,
        env=os.environ | given | runner,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == f"code={code}\n"
    assert (tmp_path / "summary.md").read_text() == (tmp_path / "comment.md").read_text()
    assert all((tmp_path / name).is_file() for name in ("junit.xml", "badge.svg", "check/verdicts.json"))
    assert (tmp_path / "check-base").is_dir() is own


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="no actionlint on the PATH")
def test_the_workflow_and_its_action_are_valid(tmp_path: Path) -> None:
    for source, place in ((WORKFLOW, ".github/workflows/check.yml"),
                          (ACTION, "new/.github/actions/check/action.yml")):  # fmt: skip
        (tmp_path / place).parent.mkdir(parents=True)
        shutil.copyfile(source, tmp_path / place)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    done = subprocess.run(["actionlint"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
