"""docs/reference/pep.md: what it says of close codes, metrics and options is what the proxy has."""

from __future__ import annotations

import re

from bentpipe import paths

EXAMPLES = paths.root() / "examples"
PAGE = (paths.root() / "docs" / "reference" / "pep.md").read_text()
SOURCES = paths.root() / "crates" / "pep" / "src"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    """What stands in the first column of the tables of a section."""
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_close_code_is_listed() -> None:
    codes = re.findall(
        r"^    \w+ = 0x([0-9a-f_]+),$", (SOURCES / "relay" / "close.rs").read_text(), re.MULTILINE
    )
    assert len(codes) > 10
    assert named(section("Close codes")) == {f"0x{code.replace('_', '')}" for code in codes}


def test_every_metric_is_explained_as_the_program_does() -> None:
    counted = (SOURCES / "events" / "statistics.rs").read_text().rpartition("statistics! {")[2]
    known = {
        (name, kind.lower()): text for text, name, kind in re.findall(r"/// (.+)\n    (\w+): (\w+),", counted)
    }
    own = (SOURCES / "program" / "metrics.rs").read_text()
    known |= {
        (name, kind): text for kind, name, text in re.findall(r'(counter|gauge)\(\s*"(\w+)",\s*"(.+)"', own)
    }
    assert len(known) > 30
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section("Metrics"), re.MULTILINE)
    assert {(name, kind) for name, kind, _ in rows} == set(known)
    for name, kind, text in rows:
        said = known[name, kind].removesuffix(".")
        assert text.partition(";")[0].casefold() == said.casefold(), name


def test_the_options_of_the_whole_proxy_are_listed() -> None:
    words = set(re.findall(r'take(?:_number)?\("(\w+)"', (SOURCES / "config" / "options.rs").read_text()))
    assert {"mode", "auto", "buffer", "version"} <= words
    assert words <= named(section("In an experiment"))


def test_the_examples_let_the_proxy_drain_before_it_is_killed() -> None:
    (drain,) = re.findall(r'^drain = "(\d+) s"', (EXAMPLES / "pep.toml").read_text(), re.MULTILINE)
    for name, pattern in (
        ("bentpipe-pep.service", r"^TimeoutStopSec=(\d+)s$"),
        ("Containerfile", r"--stop-timeout (\d+) "),
    ):
        (patience,) = re.findall(pattern, (EXAMPLES / name).read_text(), re.MULTILINE)
        assert int(patience) > int(drain) + 1, name
