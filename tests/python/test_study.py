"""`bentpipe study`: a study of the user's own, carried out from its runs to its page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import fake_run
import pytest
from conftest import Command

from bentpipe import origin, paths
from bentpipe.cli import exit_code
from bentpipe.cli.run import run

pytestmark = pytest.mark.usefixtures("fake_sim")

STUDY = """name = "mine"
title = "Mine"
question = "Does it go through?"

[[runs]]
campaign = "campaigns/mine.toml"
about = "all there is"

[[runs]]
campaign = "campaigns/mine.toml"
options = ["--seed", "7"]
about = "again"
optional = true
"""
CAMPAIGN = """scenarios = ["sat"]
clients = ["toy"]
servers = ["toy"]
workloads = ["transfer:1000"]
iterations = 2
"""
PAGE = """from .words import SAID


def write(runs, folder):
    folder.mkdir(exist_ok=True)
    page = folder / "mine.md"
    page.write_text("\\n".join(f"{SAID} {len(run.records)} {run.command}" for run in runs))
    return [page]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "studies" / "mine"
    (folder / "campaigns").mkdir(parents=True)
    (folder / "study.toml").write_text(STUDY)
    (folder / "campaigns" / "mine.toml").write_text(CAMPAIGN)
    (folder / "page.py").write_text(PAGE)
    (folder / "words.py").write_text('SAID = "records:"\n')
    monkeypatch.setenv("BENTPIPE_STUDIES", str(folder.parent))
    return folder


def test_a_study_runs_and_writes_its_page(bentpipe: Command, mine: Path) -> None:
    done = bentpipe("study", "mine")
    assert done.code == 0, done.err
    assert (mine / "mine.md").read_text() == "records: 2 bentpipe study mine --run runs/study-mine-1-mine"
    again = bentpipe("study", "mine", "--all", "-o", "out")
    assert again.code == 0 and "0 trials to run" in again.err  # the first goes on where it was left
    assert len(Path("out/mine.md").read_text().splitlines()) == 2
    # What is there stays on the page, and is not run anew.
    later = bentpipe("study", "mine", "-o", "out")
    assert later.code == 0 and len(Path("out/mine.md").read_text().splitlines()) == 2
    with fake_run.changed_manifest(Path("runs/study-mine-2-mine")) as manifest:
        manifest["finished"] = None
    left = bentpipe("study", "mine", "-o", "out")
    assert left.code == 0 and len(Path("out/mine.md").read_text().splitlines()) == 1


def test_a_run_that_is_not_needed_is_carried_out_and_may_be_left_away(bentpipe: Command, mine: Path) -> None:
    file = mine / "study.toml"
    file.write_text(file.read_text().replace("optional = true", "needed = false"))
    done = bentpipe("study", "mine", "-o", "out")
    assert done.code == 0 and len(Path("out/mine.md").read_text().splitlines()) == 2
    alone = bentpipe("study", "mine", "--run", "runs/study-mine-1-mine", "-o", "out")
    assert alone.code == 0 and len(Path("out/mine.md").read_text().splitlines()) == 1
    many = bentpipe("study", "mine", *["--run", "runs/study-mine-1-mine"] * 3, "-o", "out")
    assert many.code == 0 and len(Path("out/mine.md").read_text().splitlines()) == 3


def test_a_study_is_found_by_its_further_names(bentpipe: Command, mine: Path) -> None:
    file = mine / "study.toml"
    file.write_text(STUDY.replace('name = "mine"', 'name = "mine"\nalso = ["ours", "yours"]'))
    helped = bentpipe("study", "ours", "--help")
    assert helped.code == 0 and "Mine. Also called: ours, yours." in " ".join(helped.out.split())
    done = bentpipe("study", "yours")
    assert done.code == 0, done.err
    # The page says how it is made by the study's own name, whichever it was asked for by.
    assert (mine / "mine.md").read_text() == "records: 2 bentpipe study mine --run runs/study-mine-1-mine"
    listed = bentpipe("study", "--help").out
    assert "\n  mine " in listed and "ours" not in listed


@pytest.mark.parametrize("taken", ["mine", "thesis", "pep"])
def test_no_two_studies_share_a_name(bentpipe: Command, mine: Path, taken: str) -> None:
    file = mine / "study.toml"
    file.write_text(STUDY.replace('name = "mine"', f'name = "mine"\nalso = ["{taken}"]'))
    done = bentpipe("study", "mine", "--help")
    assert done.code == 2 and "study.toml: also" in done.err and f"'{taken}'" in done.err
    assert "a name of no study" in done.err


def test_a_further_name_is_written_like_a_name(bentpipe: Command, mine: Path) -> None:
    file = mine / "study.toml"
    file.write_text(STUDY.replace('name = "mine"', 'name = "mine"\nalso = ["Our Own"]'))
    done = bentpipe("study", "mine", "--help")
    assert done.code == 2 and "also" in done.err and "small letters, digits and -" in done.err


def test_a_study_does_not_go_on_with_another_plan(bentpipe: Command, mine: Path) -> None:
    """Else its page would be of runs that its campaign does not describe."""
    assert bentpipe("study", "mine", "-o", "out").code == 0
    campaign = mine / "campaigns" / "mine.toml"
    campaign.write_text(campaign.read_text().replace("iterations = 2", "iterations = 3"))
    done = bentpipe("study", "mine", "-o", "out")
    assert done.code == 2 and "another campaign: iterations: the run has 2, now it is 3" in done.err


def test_no_page_is_written_when_the_testbed_failed(
    bentpipe: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SIM", "broken")
    done = bentpipe("study", "mine", "-o", "out")
    assert done.code == 1 and "2 trials are invalid" in done.err
    assert not Path("out").exists()
    monkeypatch.delenv("FAKE_SIM")
    healed = bentpipe("study", "mine", "-o", "out")
    assert healed.code == 0 and "2 trials to run" in healed.err


def test_trials_in_which_the_testbed_failed_are_repeated_once_the_others_are_done(
    bentpipe: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeated: list[str] = []
    code_of = exit_code.of

    def heal(command: click.Command, words: list[str], name: str) -> int:
        code = code_of(command, words, name)
        repeated.extend(word for word in words if word == "--retry-invalid")
        if command is run:
            monkeypatch.delenv("FAKE_SIM", raising=False)
        return code

    monkeypatch.setenv("FAKE_SIM", "broken")
    monkeypatch.setattr(exit_code, "of", heal)
    done = bentpipe("study", "mine", "-o", "out")
    assert done.code == 0 and repeated == ["--retry-invalid"]


@pytest.fixture
def alone(mine: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a study beside which there is no other."""
    monkeypatch.setattr(paths, "study_folders", lambda: [mine.parent])
    return mine


@pytest.mark.usefixtures("alone")
def test_all_studies_are_carried_out_with_the_runs_that_are_asked_for(bentpipe: Command) -> None:
    needed = bentpipe("study", "all", "-o", "out")
    assert needed.code == 0, needed.err
    assert len(Path("out/mine/mine.md").read_text().splitlines()) == 1
    done = bentpipe("study", "all", "--all", "-o", "out")
    assert done.code == 0, done.err
    assert len(Path("out/mine/mine.md").read_text().splitlines()) == 2
    assert "mine" in done.out and "its page is written" in done.out and "together" in done.out


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("write = None\n", "no function `write`"),
        ("def write(*_):\n    raise IndexError('of its own')\n", "IndexError: of its own"),
    ],
)
def test_a_study_that_fails_leaves_the_others_their_turn(
    bentpipe: Command, alone: Path, code: str, why: str
) -> None:
    broken = alone.parent / "a-broken-one"
    shutil.copytree(alone, broken)
    (broken / "study.toml").write_text(STUDY.replace('"mine"', '"a-broken-one"', 1))
    (broken / "page.py").write_text(code)
    done = bentpipe("study", "all", "-o", "out")
    assert done.code == 1 and Path("out/mine/mine.md").is_file()
    assert "a-broken-one" in done.out and why in done.out
    skipped = bentpipe("study", "all", "--skip", "a-broken-one", "-o", "out")
    assert skipped.code == 0 and "a-broken-one" not in skipped.out


def test_a_page_that_was_written_leaves_the_next_study_its_commit(tmp_path: Path) -> None:
    """Else all pages but the first that `study all` writes would be of no commit."""
    page, code = tmp_path / "studies" / "mine" / "mine.md", tmp_path / "code.py"
    page.parent.mkdir(parents=True)
    who = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    for file in (page, code):
        file.write_text("as it was")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    commit = origin.commit_of(tmp_path)
    page.write_text("written anew")
    assert commit and origin.commit_of(tmp_path) == commit
    code.write_text("changed")
    assert origin.commit_of(tmp_path) == f"{commit}-dirty"


def test_no_study_is_called_all(bentpipe: Command, mine: Path) -> None:
    (mine / "study.toml").write_text(STUDY.replace('"mine"', '"all"', 1))
    done = bentpipe("study", "thesis", "--help")
    assert done.code == 2 and "study.toml: name" in done.err and "another name" in done.err


def test_its_campaigns_have_names_and_replace_none_that_stands_alone(bentpipe: Command, mine: Path) -> None:
    assert bentpipe("run", "mine", "--no-report", "--out", "A").code == 0
    (mine / "campaigns" / "demo.toml").write_text(CAMPAIGN)
    known = paths.campaigns()
    assert known["demo"] == paths.root() / "campaigns" / "demo.toml"
    assert known["mine"] == mine / "campaigns" / "mine.toml"
