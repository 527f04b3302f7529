"""docs/reference of the proxies: what pages say of metrics and options is what the programs have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bentpipe import paths

EXAMPLES = paths.root() / "examples"
REFERENCE = paths.root() / "docs" / "reference"
PAGE, TCP_PAGE, MASQUE_PAGE = (
    (REFERENCE / f"{name}.md").read_text() for name in ("pep", "tcp-pep", "masque")
)
PRODUCTS = paths.root() / "products"
SOURCES = PRODUCTS / "pep" / "src"
MASQUE = PRODUCTS / "masque" / "src"


def section(title: str, page: str = PAGE) -> str:
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


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


@pytest.mark.parametrize(
    ("page", "statistics", "programs"),
    [
        (PAGE, SOURCES / "events" / "statistics.rs", [SOURCES / "program" / "metrics.rs"]),
        (TCP_PAGE, PRODUCTS / "tcp-pep" / "src" / "statistics.rs", []),
        (
            MASQUE_PAGE,
            MASQUE / "counts.rs",
            [MASQUE / "program" / "proxy" / "metrics.rs", MASQUE / "program" / "client" / "mod.rs"],
        ),
    ],
)
def test_every_metric_is_explained_as_the_program_does(
    page: str, statistics: Path, programs: list[Path]
) -> None:
    counted = statistics.read_text().rpartition("statistics! {")[2]
    known = {
        (name, kind.lower()): text for text, name, kind in re.findall(r"/// (.+)\n    (\w+): (\w+),", counted)
    }
    own = "".join(file.read_text() for file in (PRODUCTS / "service" / "src" / "metrics.rs", *programs))
    known |= {
        (name, kind): text for kind, name, text in re.findall(r'(counter|gauge)\(\s*"(\w+)",\s*"(.+)"', own)
    }
    assert len(known) > 20
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section("Metrics", page), re.MULTILINE)
    assert {(name, kind) for name, kind, _ in rows} == set(known)
    for name, kind, text in rows:
        said = known[name, kind].removesuffix(".")
        assert text.partition(";")[0].casefold() == said.casefold(), name


def test_the_options_of_the_whole_proxy_are_listed() -> None:
    words = set(re.findall(r'take\w*\("(\w+)"', (SOURCES / "config" / "options.rs").read_text()))
    assert {"mode", "auto", "buffer", "version"} <= words
    assert words <= named(section("In an experiment"))


def test_the_options_of_the_tcp_proxy_are_listed() -> None:
    options = (PRODUCTS / "tcp-pep" / "src" / "options.rs").read_text()
    words = set(re.findall(r'take\w*\("(\w+)"', options))
    assert {"config", "window", "buffer", "accept", "pool"} <= words
    design = (paths.root() / "docs" / "design" / "tcp-pep.md").read_text()
    assert words <= named(design)


def test_the_examples_let_the_proxy_drain_before_it_is_killed() -> None:
    for name, pattern, config in (
        ("bentpipe-pep.service", r"^TimeoutStopSec=(\d+)s$", "pep.toml"),
        ("bentpipe-tcp-pep.service", r"^TimeoutStopSec=(\d+)s$", "tcp-pep.toml"),
        ("bentpipe-masque.service", r"^TimeoutStopSec=(\d+)s$", "masque.toml"),
        ("Containerfile", r"--stop-timeout (\d+) ", "pep.toml"),
    ):
        (drain,) = re.findall(r'^drain = "(\d+) s"', (EXAMPLES / config).read_text(), re.MULTILINE)
        (patience,) = re.findall(pattern, (EXAMPLES / name).read_text(), re.MULTILINE)
        assert int(patience) > int(drain) + 1, name
