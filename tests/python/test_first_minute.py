"""What somebody meets who has just installed it: `bentpipe` alone, and a shell that completes names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from conftest import Command

from bentpipe.cli import completing
from bentpipe.cli.commands import PLACES, cli
from bentpipe.cli.completion import SHELLS
from bentpipe.errors import UsageError

BIN = Path(sys.executable).parent


def test_without_arguments_it_says_in_five_lines_what_to_do_next(bentpipe: Command) -> None:
    done = bentpipe()
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 5 and max(map(len, done.out.splitlines())) <= 100
    named = re.findall(r"bentpipe ([a-z]\w*)", done.out)
    assert named[:2] == ["explore", "run"] and set(named) <= PLACES.keys()
    assert bentpipe("--help").out.splitlines()[0].startswith("Usage: bentpipe")


def completed(*words: str) -> list[str]:
    """What a shell offers for the last of these words."""
    shell = ShellComplete(cli, {}, "bentpipe", "_BENTPIPE_COMPLETE")
    return [item.value for item in shell.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["exp"], ["explore"]),
        (["run", "--scenario", "satl"], ["satloss", "satloss-2021"]),
        (["run", "--scenario", "goodput,leo-te"], ["goodput,leo-terrestrial"]),
        (["run", "--client", "noq,qui"], ["noq,quic-go", "noq,quiche", "noq,quinn"]),
        (["run", "--server", "quin"], ["quinn"]),
        (["run", "--treatment", "direct,quic"], ["direct,quic-pep"]),
        (["run", "dem"], ["demo"]),
        (["run", "--testbed", "e"], ["emu"]),
        (["explore", "--scenario", "satl"], ["satloss", "satloss-2021"]),
        (["explore", "--server", "pico"], ["picoquic"]),
        (["explore", "--treatment", "tcp"], ["tcp-pep"]),
        (["check", "quic"], ["quic-4-sat"]),
        (["check", "--server", "pico"], ["picoquic"]),
        (["objectives", "show", "kuhn"], ["kuhn-2020"]),
        (["scenarios", "show", "satl"], ["satloss", "satloss-2021"]),
        (["stacks", "install", "noq", "pico"], ["picoquic"]),
        (["stacks", "test", "pico"], ["picoquic"]),
        (["shell", "satl"], ["satloss", "satloss-2021"]),
        (["study", "slow"], ["slow-start"]),
        (["completion", "f"], ["fish"]),
        (["run", "--scenario", "no-such"], ["no-such"]),  # a file, of which the shell knows
    ],
    ids=" ".join,
)
def test_names_are_completed(words: list[str], offered: list[str]) -> None:
    assert completed(*words) == offered


def test_a_broken_file_disturbs_nobody_who_types(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENTPIPE_STACKS", str(tmp_path / "missing"))
    with pytest.raises(UsageError):
        list(completing._stacks())
    assert completed("run", "--server", "qui") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_shell_is_given_is_of_its_language(bentpipe: Command, shell: str) -> None:
    done = bentpipe("completion", shell)
    assert done.code == 0 and f"_BENTPIPE_COMPLETE={shell}_complete" in done.out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} on the PATH")
    subprocess.run([program, "-n"], input=done.out, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on the PATH")
def test_bash_completes_a_name() -> None:
    """By the function that it is given, and by the program that it finds."""
    script = """
eval "$(bentpipe completion bash)"
COMP_WORDS=(bentpipe run --scenario goodput,leo-te) COMP_CWORD=3
_bentpipe_completion bentpipe
printf '%s\\n' "${COMPREPLY[@]}"
"""
    path = f"{BIN}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "goodput,leo-terrestrial\n" and done.stderr == ""


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on the PATH")
def test_fish_completes_a_list_with_commas(tmp_path: Path) -> None:
    script = 'bentpipe completion fish | source; complete -C "bentpipe run --scenario goodput,leo-te"'
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["goodput,leo-terrestrial"]
