"""What a page of a run under way is served, and when it is said to be complete."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from conftest import Command, installed_or_skip

from bentpipe.explore.watch_server import Watched

pytestmark = pytest.mark.virtual_time
TRIALS = 3


def run(bentpipe: Command, folder: str) -> Path:
    """A run that makes no report of itself."""
    words = ["--scenario", "sat", "--client", "noq", "--server", "noq", "--bytes", "50kB", "--no-report"]
    done = bentpipe("run", *words, "--iterations", str(TRIALS), "--trace", "none", "--out", folder)
    assert done.code == 0, done.err
    return Path(folder)


def test_the_last_trials_are_on_the_page_before_it_says_that_the_run_is_complete(
    bentpipe: Command, tmp_path: Path
) -> None:
    installed_or_skip("noq")
    folder = run(bentpipe, "complete")
    records = (folder / "records.jsonl").read_text().splitlines(keepends=True)

    async def watch() -> None:
        watched = Watched(tmp_path / "scratch")
        watched.scratch.mkdir()
        (folder / "records.jsonl").write_text(records[0])
        watched.show(folder)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watched.keep_built)
            while watched.site is None:
                await anyio.sleep(0.01)
            first = (watched.site / "data/run.js").read_bytes()
            (folder / "records.jsonl").write_text("".join(records))
            watched.end()
            assert not watched.finished
        assert watched.finished and watched.site is not None
        assert (watched.site / "data/run.js").read_bytes() != first
        version = watched.version
        watched.end()
        await watched.keep_built()
        assert watched.version == version + 1, "nothing was left to build"

    anyio.run(watch)


def test_a_run_without_a_trial_yet_is_not_shown_as_the_one_before(bentpipe: Command, tmp_path: Path) -> None:
    installed_or_skip("noq")
    folder = run(bentpipe, "before")

    async def watch() -> None:
        watched = Watched(tmp_path)
        watched.show(folder)
        watched.end()
        await watched.keep_built()
        shown = watched.version
        assert watched.site is not None
        watched.show(tmp_path / "next")
        assert watched.site is None and watched.version > shown

    anyio.run(watch)


def test_whoever_reads_a_page_is_waited_for() -> None:
    watched = Watched(Path())
    watched.expect(20)
    until = watched.awaited_until
    watched.expect(3)
    assert watched.awaited_until == until
