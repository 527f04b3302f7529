"""`bentpipe stacks install`: what is built, when, where to, and what becomes of it when it goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import PATIENCE_S, wait_for, wait_until_gone
from conftest import STACKS, Command

from bentpipe import paths
from bentpipe.errors import UsageError
from bentpipe.stacks import catalogue

TOY = (STACKS / "toy" / "stack.toml").read_text()
# A program that is the toy, made by a script of the stack's folder. `made` counts how often.
SCRIPT = """\
echo making
echo once >> made.log
cp "$1"/*.py "$2"
"""


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    place = tmp_path / "cache of mine"
    monkeypatch.setenv("BENTPIPE_CACHE", str(place))
    return place


def stack(folder: Path, name: str, script: str = SCRIPT, build: str = "") -> Path:
    """A stack that is built by `script`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = TOY.replace('"toy"', f'"{name}"', 1).replace("{folder}", "{bin}")
    command = json.dumps(["sh", "build.sh", str(STACKS / "toy"), "{bin}"])
    (folder / "stack.toml").write_text(f"{text}\n[build]\ncommand = {command}\n{build}\n")
    (folder / "build.sh").write_text(script)
    return folder


def made(folder: Path) -> int:
    """How often the stack in `folder` was built."""
    log = folder / "made.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return stack(tmp_path / "s" / "made", "made", SCRIPT.replace("made.log", "../made.log"))


def state(bentpipe: Command, name: str, folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(bentpipe("stacks", "show", name, "--json", "--stacks", folder).out)
    return found


def test_it_is_built_once_and_described(bentpipe: Command, cache: Path, toy: Path) -> None:
    before = state(bentpipe, "made", toy)
    assert (before["installed"], before["why_not_installed"]) == (False, "it has not been built yet")
    first = bentpipe("stacks", "install", "made", "--stacks", toy)
    again = bentpipe("stacks", "install", "made", "--stacks", toy)
    assert (first.code, again.code) == (0, 0)
    assert "made: installed in" in first.out and "nothing to do" in again.out
    assert made(toy.parent) == 1
    after = state(bentpipe, "made", toy)
    assert (after["installed"], after["version"]) == (True, "toy 1")
    (entry,) = (cache / "stacks").iterdir()
    assert entry == catalogue.load(toy).entry.folder
    found = json.loads((entry / "installed.json").read_text())
    assert found["programs"].keys() == {"endpoint.py"}
    assert found["inputs_sha256"].startswith(entry.name.removeprefix("made-"))
    assert bentpipe("stacks", "install", "made", "--force", "--stacks", toy).code == 0
    assert made(toy.parent) == 2


def test_only_sources_ask_for_a_new_build(bentpipe: Command, cache: Path, toy: Path, tmp_path: Path) -> None:
    bentpipe("stacks", "install", "made", "--stacks", toy)
    name = catalogue.load(toy).entry.name
    (toy / "README.md").write_text("words")
    (toy / "tests").mkdir()
    (toy / "tests" / "test_it.py").write_text("assert True")
    (toy / "target").mkdir()
    (toy / "target" / "x.o").write_text("x")
    (toy / "stack.toml").write_text((toy / "stack.toml").read_text().replace("A toy", "One toy"))
    assert catalogue.load(toy).entry.name == name
    shutil.copytree(toy, tmp_path / "elsewhere")
    assert catalogue.load(tmp_path / "elsewhere").entry.name == name
    (toy / "more.txt").write_text("a source")
    assert catalogue.load(toy).entry.name != name
    assert "sources have changed" in str(state(bentpipe, "made", toy)["why_not_installed"])
    done = bentpipe("run", "--client", "made", "--server", "toy", "--scenario", "sat", "--stacks", toy)
    assert done.code == 2
    assert "made is not installed: its sources have changed since it was installed" in done.err
    assert "hint: install it with `bentpipe stacks install made`" in done.err


def test_what_lies_elsewhere_counts_if_it_is_named(tmp_path: Path) -> None:
    folder, other = tmp_path / "it", tmp_path / "other"
    other.mkdir()
    (other / "a.c").write_text("1")
    first = catalogue.load(stack(folder, "made", build='inputs = ["{folder}/../other"]')).entry.name
    (other / "a.c").write_text("2")
    assert catalogue.load(folder).entry.name != first
    shutil.rmtree(other)
    assert "other cannot be read" in str(catalogue.load(folder).missing("virtual-time"))


def test_hashing_the_sources_of_all_stacks_reads_nothing_else() -> None:
    before = bytes_read()
    names = [one.entry.name for one in catalogue.discover().values() if one.build is not None]
    assert len(names) == len(set(names)) >= 6
    # Ten times what they have; what is built of them has thousands of times as much.
    assert bytes_read() - before < 20_000_000


def bytes_read() -> int:
    """By this process until now."""
    return int(re.findall(r"rchar: (\d+)", Path("/proc/self/io").read_text())[0])


def test_a_program_that_was_changed_is_not_run(bentpipe: Command, cache: Path, toy: Path) -> None:
    bentpipe("stacks", "install", "made", "--stacks", toy)
    program = catalogue.load(toy).entry.folder / "toy.py"
    program.touch()
    assert catalogue.load(toy).missing("virtual-time") is None
    program.write_text(program.read_text() + "\n")
    assert f"{program} is gone or was changed" in str(catalogue.load(toy).missing("virtual-time"))
    assert bentpipe("stacks", "install", "made", "--stacks", toy).code == 0
    assert catalogue.load(toy).missing("virtual-time") is None
    program.unlink()
    assert f"{program} is gone or was changed" in str(catalogue.load(toy).missing("virtual-time"))
    assert bentpipe("stacks", "install", "made", "--stacks", toy).code == 0
    assert catalogue.load(toy).missing("virtual-time") is None


@pytest.mark.parametrize("damage", ["{", "[]", {"files": []}, {"files": {"toy.py": None}}, {"tools": None}])
def test_a_damaged_description_is_not_installed(
    bentpipe: Command, cache: Path, toy: Path, damage: str | dict[str, object]
) -> None:
    bentpipe("stacks", "install", "made", "--stacks", toy)
    file = catalogue.load(toy).entry.folder / "installed.json"
    file.write_text(damage if isinstance(damage, str) else json.dumps(json.loads(file.read_text()) | damage))
    assert "installed.json is damaged" in str(catalogue.load(toy).missing("virtual-time"))
    assert bentpipe("stacks", "install", "made", "--stacks", toy).code == 0
    assert catalogue.load(toy).missing("virtual-time") is None


@pytest.mark.parametrize(
    ("script", "why", "shown"),
    [
        ("echo the compiler is cross; exit 3", "sh ended with 3", "  | the compiler is cross"),
        ("exit 3", "sh ended with 3", "it printed nothing"),
        ("kill -9 $$", "sh was ended by signal 9", "it printed nothing"),
        ("true", "the build ended well, but there is no {bin}/endpoint.py", "it printed nothing"),
        (SCRIPT.replace("made.log", "made.txt"), "its sources were changed while it was built", "| making"),
    ],
)
def test_a_build_that_fails_costs_only_itself(
    bentpipe: Command, cache: Path, toy: Path, script: str, why: str, shown: str
) -> None:
    stack(toy.parent / "broken", "broken", script)
    done = bentpipe("stacks", "install", "broken", "made", "--stacks", toy.parent)
    assert done.code == 1
    assert f"error: broken was not installed: {why}" in done.out
    assert shown in done.out
    assert "the whole log: " in done.out
    assert "made: installed in" in done.out
    assert [one.name.partition("-")[0] for one in (cache / "stacks").iterdir()] == ["made"]


def test_a_program_that_gives_no_version_can_be_tested(
    bentpipe: Command, cache: Path, tmp_path: Path
) -> None:
    folder = stack(tmp_path / "mute", "mute", 'echo "raise SystemExit(5)" > "$2"/endpoint.py')
    done = bentpipe("stacks", "install", "mute", "--stacks", folder)
    assert done.code == 0
    assert "mute: it gives no version: it exited with 5" in done.out
    assert bentpipe("stacks", "test", "mute", "--stacks", folder).code == 1


def test_without_a_name_the_stacks_of_a_folder_are_built_and_tested(
    bentpipe: Command, cache: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        stack(tmp_path / "s" / name, name, 'echo "raise SystemExit(5)" > "$2"/endpoint.py')
    done = bentpipe("stacks", "test", "--json", "--stacks", tmp_path / "s")
    assert [(one["stack"], one["passed"]) for one in json.loads(done.out)] == [("one", False), ("two", False)]
    assert (done.code, "one: installed in" in done.err) == (1, True)
    stack(tmp_path / "s" / "broken", "broken", "exit 1")
    done = bentpipe("stacks", "test", "--stacks", tmp_path / "s")
    assert (done.code, done.out.count("checks,")) == (1, 2), "one that is not built costs no other"
    assert "error: broken was not installed" in done.out
    assert "broken:\nnot tested, since it was not built: " in done.out
    done = bentpipe("stacks", "test", "--json", "--stacks", tmp_path / "s")
    broken = {one["stack"]: one for one in json.loads(done.out)}["broken"]
    assert (broken["passed"], broken["checks"]) == (False, []) and broken["why"]
    assert "name a stack, give its folder, or give --all" in bentpipe("stacks", "test").err


def test_what_became_of_each_is_told_as_json(bentpipe: Command, cache: Path, toy: Path) -> None:
    stack(toy.parent / "broken", "broken", "echo no; exit 1")
    stack(toy.parent / "needy", "needy", build='needs = ["no-such-tool"]')
    done = bentpipe("stacks", "install", "--json", "broken", "needy", "toy", "made", "--stacks", toy.parent)
    found = {one["name"]: one for one in json.loads(done.out)}
    assert {name: one["state"] for name, one in found.items()} == {
        "broken": "failed", "needy": "left out", "toy": "installed", "made": "installed"
    }  # fmt: skip
    assert found["broken"]["output"] == ["no"]
    assert Path(found["broken"]["log"]).read_text() == "no\n"
    assert found["needy"]["why"] == "needy needs no-such-tool; install no-such-tool"


def test_what_is_to_be_installed_must_be_said(bentpipe: Command, cache: Path) -> None:
    for words in ((), ("--all", "toy")):
        done = bentpipe("stacks", "install", *words)
        assert done.code == 2 and "name the stacks to install, or give --all" in done.err
    done = bentpipe("stacks", "install", "quin")
    assert done.code == 2 and 'did you mean "quinn"?' in done.err


def test_a_cache_that_cannot_be_written_is_named(
    bentpipe: Command, toy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "file"))
    done = bentpipe("stacks", "install", "made", "--stacks", toy)
    assert done.code == 1
    assert f"{tmp_path / 'file' / 'stacks'}: cannot be written: Not a directory" in done.err
    assert "BENTPIPE_CACHE" in done.err


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("BENTPIPE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert paths.cache() == tmp_path / ".cache" / "bentpipe"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert paths.cache() == tmp_path / ".cache" / "bentpipe"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert paths.cache() == tmp_path / "xdg" / "bentpipe"
    monkeypatch.setenv("BENTPIPE_CACHE", str(tmp_path / "own"))
    assert paths.cache() == tmp_path / "own"


def start(folder: Path, *names: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bentpipe", "stacks", "install", *names, "--stacks", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_an_interrupted_build_leaves_nothing_half_made(cache: Path, toy: Path) -> None:
    script = 'cd "$2"/../../..; sleep 600 & echo $$ $! > at-work.part; mv at-work.part at-work; wait'
    stack(toy.parent / "slow", "slow", script)
    process = start(toy.parent, "made", "slow")
    assert process.stdout is not None
    begun = iter(process.stdout.readline, "")
    assert any("made: installed in" in line for line in begun)
    wait_for("the build", (cache / "at-work").exists)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "hint: what is finished stays" in out
    assert wait_until_gone(*map(int, (cache / "at-work").read_text().split())) == []
    assert [one.name.partition("-")[0] for one in (cache / "stacks").iterdir()] == ["made"]


def test_two_commands_build_the_same_once(cache: Path, tmp_path: Path) -> None:
    """The first one builds until the second has come to the lock."""
    script = "touch ../at-work; while [ ! -e ../both ]; do sleep 0.05; done; "
    folder = stack(tmp_path / "s" / "made", "made", script + SCRIPT.replace("made.log", "../made.log"))
    first = start(folder, "made")
    wait_for("the build", (folder.parent / "at-work").exists)
    second = start(folder, "made")
    wait_for("the second command", lambda: has_open(second.pid, catalogue.load(folder).entry.lock))
    (folder.parent / "both").touch()
    assert [process.wait(PATIENCE_S) for process in (first, second)] == [0, 0]
    assert made(folder.parent) == 1


def has_open(process: int, file: Path) -> bool:
    """Whether a process has the file open."""
    try:
        return any(one.resolve() == file.resolve() for one in Path(f"/proc/{process}/fd").iterdir())
    except FileNotFoundError:
        return False  # it closed one meanwhile


def test_what_a_killed_command_left_is_swept_away(bentpipe: Command, cache: Path, toy: Path) -> None:
    left = cache / "stacks" / f".{catalogue.load(toy).entry.name}.abc" / "bin"
    left.mkdir(parents=True)
    assert bentpipe("stacks", "install", "made", "--stacks", toy).code == 0
    assert not left.exists()


def test_prune_removes_what_no_stack_is_of(bentpipe: Command, cache: Path, toy: Path) -> None:
    bentpipe("stacks", "install", "made", "--stacks", toy)
    old = catalogue.load(toy).entry
    (toy / "more.txt").write_text("a source")
    bentpipe("stacks", "install", "made", "--stacks", toy)
    done = bentpipe("stacks", "prune", "--stacks", toy)
    assert "removed 1 installation that no stack here is of" in done.out
    assert not old.folder.exists() and not old.log.exists()
    assert catalogue.load(toy).missing("virtual-time") is None


@pytest.mark.parametrize(
    ("needs", "wanted"),
    [
        ("go >= 99.1", "needy needs Go 99.1 or newer, and go is 1.26.8; get it from https://go.dev/dl"),
        ("go >= 1.26.9", "needy needs Go 1.26.9 or newer, and go is 1.26.8"),
        ("go >= 1.26.8", None),
        ("go >= 1.3", None),
        ("go", None),
        ("no-such-tool", "left out: needy needs no-such-tool; install no-such-tool"),
    ],
)
def test_what_needs_a_newer_tool_is_left_out(
    bentpipe: Command,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    needs: str,
    wanted: str | None,
) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text('#!/bin/sh\n[ "$1" = version ] && echo "go version go1.26.8 linux/amd64"\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    folder = stack(
        tmp_path / "stack", "needy", SCRIPT.replace("made.log", "../made.log"), f'needs = ["{needs}"]'
    )
    done = bentpipe("stacks", "--stacks", folder, "install", "needy")
    assert done.code == (0 if wanted is None else 2)
    assert made(tmp_path) == (wanted is None)
    assert wanted is None or wanted in done.out
    if wanted is None:
        assert state(bentpipe, "needy", folder)["installation"]["tools"] == {"go": "1.26.8"}  # type: ignore[index]


@pytest.mark.parametrize(
    ("libraries", "wanted"),
    [
        ("no-such-library", "needy needs the library no-such-library; install no-such-library"),
        ("known >= 1.3", "needy needs the library known 1.3 or newer, and known is 1.2.10; install known"),
        ("known >= 1.2.9", None),
        ("known", None),
    ],
)
def test_what_needs_a_missing_library_is_left_out(
    bentpipe: Command,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    libraries: str,
    wanted: str | None,
) -> None:
    pkg_config = tmp_path / "bin" / "pkg-config"
    pkg_config.parent.mkdir()
    pkg_config.write_text('#!/bin/sh\n[ "$*" = "--modversion known" ] && echo 1.2.10\n')
    pkg_config.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pkg_config.parent}:{os.environ['PATH']}")
    script = SCRIPT.replace("made.log", "../made.log")
    folder = stack(tmp_path / "stack", "needy", script, f'libraries = ["{libraries}"]')
    done = bentpipe("stacks", "--stacks", folder, "install", "needy")
    assert done.code == (0 if wanted is None else 2)
    assert made(tmp_path) == (wanted is None)
    assert wanted is None or wanted in done.out


def test_only_what_can_be_built_is_proposed_to_be_installed(
    bentpipe: Command, cache: Path, tmp_path: Path
) -> None:
    text = TOY.replace("{folder}/endpoint.py", "{folder}/nothing").replace("toy", "gone", 1)
    for name, build, proposed in (("a", "", False), ("b", '\n[build]\ncommand = ["true"]\n', True)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stack.toml").write_text(text + build)
        done = bentpipe("stacks", "test", "gone", "--stacks", tmp_path / name)
        assert done.code == 1
        assert ("bentpipe stacks install gone" in done.out) is proposed


def test_a_package_of_python_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "stack.toml").write_text(
        TOY.replace("\n[options]", 'packages = ["no-such-package"]\n[options]', 1)
    )
    stack_of_it = catalogue.load(tmp_path)
    assert (
        stack_of_it.missing("virtual-time")
        == "toy is not installed: the Python package no-such-package is missing"
    )
    assert stack_of_it.how_to_install == "run `make setup`"


def test_bin_needs_a_build(tmp_path: Path) -> None:
    (tmp_path / "stack.toml").write_text(TOY.replace("{folder}/endpoint.py", "{bin}/toy"))
    with pytest.raises(UsageError, match=r"\{bin\} is of stacks that are built"):
        catalogue.load(tmp_path)


def test_a_manifest_says_what_the_stacks_were_made_of(
    bentpipe: Command, cache: Path, toy: Path, tmp_path: Path
) -> None:
    bentpipe("stacks", "install", "made", "--stacks", toy)
    run = ["run", "--client", "made", "--server", "aioquic", "--scenario", "sat", "--iterations", "1"]
    done = bentpipe(*run, "--bytes", "1kB", "--no-report", "--out", "A", "--stacks", toy)
    assert done.code == 0
    manifest = json.loads(Path("A/manifest.json").read_text())
    installation = manifest["stacks"]["made"]["installation"]
    entry = catalogue.load(toy).entry
    assert installation["inputs_sha256"] == entry.inputs_sha256
    known = json.loads((entry.folder / "installed.json").read_text())
    assert installation["programs"] == known["programs"]
    assert installation["version"] == "toy 1"
    assert {"aioquic", "cryptography"} <= manifest["stacks"]["aioquic"]["installation"]["packages"].keys()
    resume = ["run", "--resume", "A", "--retry-failed", "--no-report"]
    assert "is not what it was" not in bentpipe(*resume).err
    (toy / "more.txt").write_text("a source")
    bentpipe("stacks", "install", "made", "--stacks", toy)
    assert "made is not what it was when the run began" in bentpipe(*resume).err
    later = json.loads(Path("A/manifest.json").read_text())["stacks"]["made"]["resumed_with"]
    assert [one["inputs_sha256"] for one in later] == [catalogue.load(toy).entry.inputs_sha256]
    for stack_of_it in (manifest := json.loads(Path("A/manifest.json").read_text()))["stacks"].values():
        del stack_of_it["installation"]  # as an older version wrote it
    Path("A/manifest.json").write_text(json.dumps(manifest))
    assert bentpipe(*resume).code == 0
    assert bentpipe("report", "A").code == 0


# What a source file says of another one: a path that goes up, or one below the root of the checkout.
REACHES = re.compile(r"""["'`<(](?:\{root\}/)?((?:\.\./)+[\w./-]+)|"(aioquic-family)\"""")


@pytest.mark.parametrize(
    "name", [name for name, one in catalogue.discover().items() if one.build is not None]
)
def test_inputs_name_all_that_a_stack_is_built_from(name: str) -> None:
    """No file of the stack, or of its inputs, reaches out to what is neither; crates of the workspace that a
    crate uses count too.
    """
    one = catalogue.discover()[name]
    assert one.build is not None
    places = [one.folder, *(Path(place).resolve() for place in one.fill(one.build.inputs)), paths.certs()]
    for place in places[:-1]:
        for file in place.rglob("*") if place.is_dir() else ():
            if file.suffix in (".rs", ".toml", ".py", ".c", ".h", ".sh", ".go") and "tests" not in file.parts:
                for reached in reached_from(file, one.folder):
                    # A crate that is used is its sources: its own tests do not go into what is built.
                    crate = (reached / "Cargo.toml").exists()
                    parts = [reached / "Cargo.toml", reached / "src"] if crate else [reached]
                    for part in parts:
                        assert any(part.is_relative_to(known) for known in places), f"{file} reads {part}"


def reached_from(file: Path, folder: Path) -> Iterator[Path]:
    text = file.read_text()
    for going_up, family in REACHES.findall(text):
        reached = (file.parent / going_up).resolve() if going_up else folder.parent / family
        if reached.exists():  # else it is a path in the text of a test
            yield reached
    if file.name == "Cargo.toml":
        # What tests alone depend on is no part of what is built.
        text = re.sub(r"^\[dev-dependencies\]$.*?(?=^\[|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
        used = [*re.findall(r"^(bentpipe-[\w-]+)(?:\.workspace| = \{ workspace)", text, re.MULTILINE)]
        yield from (paths.root() / "crates" / crate.removeprefix("bentpipe-") for crate in used)
        if ".workspace = true" in text or "workspace = true" in text:
            yield paths.root() / "Cargo.toml"
            if not (folder / "Cargo.lock").exists():  # then it is of the workspace
                yield paths.root() / "Cargo.lock"
