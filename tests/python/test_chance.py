"""The suite itself: what it draws is the same each time, and nowhere does it sleep to be in time."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import chance
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe import paths

HERE = Path(__file__).parent
# Words that make an outcome depend on when it happens, or on what nobody has fixed; and who may have them.
CHANCE = {
    r"\btime\.sleep\(": {"children.py", "fake_sim.py", "test_children.py", "test_plot_command.py"},
    # The clock of test_shell_sim.py is a guest's, which is virtual. test_tcp_pep_command.py asks for a least
    # time, which a busy machine only makes longer. In test_connect_ip_go.py virtual time is the
    # machine's.
    r"\btime\.(monotonic|perf_counter|process_time|time)\(": {
        "children.py",
        "test_connect_ip_go.py",
        "test_shell.py",
        "test_shell_sim.py",
        "test_tcp_pep_command.py",
    },
    r"\bmax_examples\b": {"chance.py"},
    r"default_rng\(\)|\bRandom\(\)|\brandom\.(random|randint|choice|shuffle|randbytes)\(|SystemRandom": set(),
    # A program of test_explore.py puts a fixed token in their place.
    r"\bimport secrets\b": {"children.py", "test_explore.py"},
    # test_explore.py has ports in headers of requests alone.
    r"127\.0\.0\.1:[1-9]\d+|\.bind\(\(\"127\.0\.0\.1\", [1-9]": {"test_explore.py"},
}


@pytest.mark.parametrize("pattern", CHANCE)
def test_no_test_leaves_anything_to_chance(pattern: str) -> None:
    files = [file for file in HERE.glob("*.py") if file.name != Path(__file__).name]
    assert len(files) > 50
    assert {file.name for file in files if re.search(pattern, file.read_text())} <= CHANCE[pattern]


DRAWN: list[list[int]] = []


@given(st.lists(st.integers()))
def draws(values: list[int]) -> None:
    DRAWN.append(values)


def drawn() -> list[list[int]]:
    DRAWN.clear()
    draws()
    return list(DRAWN)


@pytest.mark.skipif(chance.soak_seed() is not None, reason="a soak looks for new ones")
def test_examples_are_the_same_each_time() -> None:
    first, again = drawn(), drawn()
    assert first == again and len(first) > 50


def test_rust_draws_the_same_each_time() -> None:
    environment = tomllib.loads((paths.root() / ".cargo" / "config.toml").read_text())["env"]
    assert environment["PROPTEST_RNG_SEED"]["value"].isdigit()
    assert {one["force"] for one in environment.values()} == {False}, "a soak could not override it"
