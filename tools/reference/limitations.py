"""The sections "Limits" of all pages, gathered. Each limit stands beside what is limited, and only there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

HEADING = "\n## Limits\n"
# Pages in the order of this one, by the heading that they come under; the rest is of stacks.
GROUPS = {
    "Testbeds": (
        "docs/design/virtual-time.md",
        "docs/design/guests.md",
        "docs/design/queue-disciplines.md",
        "docs/how-to/run-any-program-in-virtual-time.md",
        "docs/design/real-time.md",
        "docs/how-to/measure-real-links.md",
    ),
    "In the browser": ("docs/how-to/explore.md",),
    "Many trials": ("docs/how-to/run-on-many-machines.md", "docs/design/scale.md"),
    "Paths and workloads": (
        "docs/how-to/write-a-scenario.md",
        "docs/design/multipath.md",
        "docs/how-to/import-measurements.md",
        "docs/reference/campaigns.md",
        "docs/reference/pages.md",
        "docs/reference/live-streams.md",
        "docs/reference/frames.md",
    ),
    "Measurements, traces, objectives": (
        "docs/design/traces.md",
        "docs/how-to/losses-from-captures.md",
        "docs/how-to/check-a-stack.md",
        "docs/how-to/publish-many-runs.md",
        "docs/how-to/carry-out-a-study.md",
        "docs/how-to/use-with-the-interop-runner.md",
        "docs/reference/files.md",
    ),
    "Congestion control": (
        "docs/how-to/choose-congestion-control.md",
        "docs/design/sender.md",
        "docs/design/sender-constants.md",
        "docs/design/packet-trains.md",
        "docs/design/careful-resume.md",
    ),
    "Proxies and tunnels": (
        "docs/design/proxies.md",
        "docs/design/tcp-pep.md",
        "docs/reference/tcp-pep.md",
        "docs/design/vpn.md",
        "docs/design/fec.md",
        "docs/design/masque.md",
        "docs/reference/masque.md",
    ),
    "Installation": ("docs/how-to/install.md",),
}
STACKS = "endpoints/*/README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def write(root: Path) -> str:
    """A heading for each group, and under it one for each page, with its limits."""
    with_limits = {page for page in _pages(root) if HEADING in page.read_text()}
    stacks = tuple(str(page.relative_to(root)) for page in sorted(root.glob(STACKS)) if page in with_limits)
    groups = {**GROUPS, "Stacks": stacks}
    left = with_limits - {root / page for pages in groups.values() for page in pages}
    if left:
        raise SystemExit(
            f"error: {', '.join(map(str, left))}: say in tools/reference where its limits belong"
        )
    return "\n\n".join(part for group, pages in groups.items() for part in _group(root, group, pages))


def _pages(root: Path) -> Iterator[Path]:
    yield from (root / "docs").rglob("*.md")
    yield from root.glob(STACKS)


def _group(root: Path, name: str, pages: tuple[str, ...]) -> Iterator[str]:
    yield f"## {name}"
    for page in pages:
        text = (root / page).read_text()
        title = text.partition("\n")[0].removeprefix("# ")
        yield f"### [{title}]({page}#limits)\n\n{_limits(text, page)}"


def _limits(text: str, page: str) -> str:
    """The section of a page, its links as from the root."""
    section = text.partition(HEADING)[2].partition("\n## ")[0].strip()
    folder = Path(page).parent

    def from_root(link: re.Match[str]) -> str:
        if "://" in link[1]:
            return link[0]
        if link[1].startswith("#"):
            return f"]({page}{link[1]})"
        return f"]({os.path.normpath(folder / link[1])})"

    return LINK.sub(from_root, section)
