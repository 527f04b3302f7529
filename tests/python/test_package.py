"""The installed package: it needs no checkout and no compiler, and behaves as the checkout does.

The wheel is packed from programs that are there already, and installed into an environment of its own.
`make wheel-check` makes it as it is shipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Command, installed_or_skip

import bentpipe as modules
from bentpipe import origin, paths
from bentpipe.cli.commands import cli
from bentpipe.stacks import catalogue

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "wheel"))
from programs import STACKS as SHIPPED  # noqa: E402
from programs import of_stacks  # noqa: E402
from tried import TRIES  # noqa: E402

PACK = ROOT / "tools" / "wheel" / "pack.py"
RUN = ["run", "--scenario", "sat", "--client", "noq,aioquic", "--server", "noq,quinn", "--bytes", "100kB"]
# A program of Bentpipe's own as the package asks for it.
PROGRAM = re.compile(r"""(?:paths\.program\(|program=)"(bentpipe-[\w-]+)""")
ONE_EACH = [*RUN, "--iterations", "1", "--trace", "none"]


@dataclass(frozen=True)
class Package:
    """An environment that the wheel is installed in, for a user who has nothing else."""

    folder: Path  # of the environment
    home: Path

    @property
    def data(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages/bentpipe/data")
        return found

    def __call__(self, *command: str | Path, **environment: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment, without any other on the PATH."""
        empty = {"HOME": str(self.home), "PATH": str(self.home / "nothing")}
        return subprocess.run(
            [self.folder / "bin" / command[0], *command[1:]],
            cwd=self.home,
            env=empty | {name: str(value) for name, value in environment.items()},
            capture_output=True,
            text=True,
            check=False,
        )

    def stack(self, name: str, **environment: str | Path) -> dict[str, Any]:
        """What it says of a stack."""
        done = self("bentpipe", "stacks", "show", name, "--json", **environment)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    place = tmp_path_factory.mktemp("package")
    folders = [installed_or_skip(name).entry.folder / "bin" for name in SHIPPED]
    pack: list[str | Path] = [
        sys.executable,
        PACK,
        place / "dist",
        *folders,
        paths.bin_folder(),
        "--",
        "--compression=stored",
    ]
    subprocess.run(pack, check=True)
    (wheel,) = (place / "dist").iterdir()
    venv = place / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = str(venv / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-compile"]
    subprocess.run([*pip, str(wheel)], check=True)
    # What it requires is here already. Of a folder that is added so no .pth is read: not the checkout's.
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "requires.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    (place / "home").mkdir()
    return Package(venv, place / "home")


def below(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.parametrize(
    "name", ["scenarios", "campaigns", "docs", "middleboxes", "studies", "endpoints/certs"]
)
def test_it_has_what_the_checkout_has(package: Package, name: str) -> None:
    assert below(package.data / name) == below(ROOT / name) != {}


def test_every_stack_has_the_hash_that_it_has_in_the_checkout(package: Package) -> None:
    code = (
        "from bentpipe.stacks import catalogue; "
        "print(*(one.entry.name for one in catalogue.discover().values() if one.build))"
    )
    done = package("python", "-I", "-c", code)
    assert done.stdout.split() == [one.entry.name for one in catalogue.discover().values() if one.build]


def test_it_has_the_notices_of_what_its_programs_are_made_of(package: Package) -> None:
    """Those of other people's crates, with their texts, and not those that only tests need."""
    notices = (package.data / "licenses.txt").read_text()
    for name in ("ring", "quinn-proto", "noq-proto", "parquet"):
        assert f"\n{name} " in notices
    assert "ISC" in notices and "Permission is hereby granted" in notices
    for name in ("bentpipe-sim", "proptest", "criterion"):
        assert f"\n{name} " not in notices


def test_it_has_nothing_that_was_left_lying_about(package: Package) -> None:
    """What begins with a dot or was built does not go into a wheel; programs can be started."""
    names = below(package.data)
    parts = {part for name in names for part in Path(name).parts}
    assert not {part for part in parts if part.startswith(".")} | (parts & {"target", "node_modules"})
    programs = [name for name in names if name.startswith("bin/") or "/bin/" in name]
    asked = {name for file in (ROOT / "python").rglob("*.py") for name in PROGRAM.findall(file.read_text())}
    assert asked and {f"bin/{name}" for name in asked} <= {*programs}
    assert {name.rpartition("/")[2] for name in programs if not name.startswith("bin/")} == {
        one.name for one in of_stacks()
    }
    assert all((package.data / name).stat().st_mode & 0o111 for name in programs)


def test_it_runs_alone_and_gives_the_packets_of_the_checkout(package: Package, bentpipe: Command) -> None:
    before = set(below(package.folder))
    done = package("bentpipe", *ONE_EACH, "--out", "there")
    assert done.returncode == 0, done.stderr
    assert (package.home / "there" / "report" / "index.html").is_file()
    assert set(below(package.folder)) == before  # it may be where nobody can write
    assert bentpipe(*ONE_EACH, "--no-report", "--out", "here").code == 0
    there, here = (records(folder) for folder in (package.home / "there", Path("here")))
    assert there == here and len(here) == 4
    manifest, ours = (
        json.loads((folder / "manifest.json").read_text())
        for folder in (package.home / "there", Path("here"))
    )
    assert manifest["versions"]["commit"] == ours["versions"]["commit"] == origin.commit_of(ROOT)
    assert manifest["versions"]["rustc"]
    for name in (*SHIPPED, "aioquic"):
        told, same = (one["stacks"][name]["installation"] for one in (manifest, ours))
        assert {key: told.get(key) for key in ("inputs_sha256", "programs", "version", "packages")} == {
            key: same.get(key) for key in ("inputs_sha256", "programs", "version", "packages")
        }


def records(run: Path) -> set[tuple[str, ...]]:
    """What was on the wire in each trial."""
    lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
    return {(one["client"], one["server"], one["outcome"], one["packet_log_hash"]) for one in lines}


def test_what_comes_with_it_is_installed_whatever_the_cache_has(package: Package, tmp_path: Path) -> None:
    name = catalogue.load(ROOT / "endpoints" / "noq").entry.name
    assert not (package.home / ".cache").exists()
    assert package.stack("noq")["installed"]
    damaged = tmp_path / "stacks" / name
    damaged.mkdir(parents=True)
    assert package.stack("noq", BENTPIPE_CACHE=tmp_path)["installed"]
    shutil.rmtree(damaged)
    shutil.copytree(package.data / "installed" / name, damaged)
    shown = package.stack("noq", BENTPIPE_CACHE=tmp_path)
    assert shown["installed"]
    done = package("bentpipe", "stacks", "install", "noq")
    assert (done.returncode, "nothing to do" in done.stdout) == (0, True)
    done = package("bentpipe", "stacks", "install", "noq", "--force")
    assert done.returncode == 2 and "noq needs Rust" in done.stdout


def test_a_shipped_program_that_was_changed_is_not_run(package: Package) -> None:
    (program,) = package.data.glob("installed/noq-*/bin/*")
    content = program.read_bytes()
    program.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        shown = package("bentpipe", "stacks", "show", "noq").stdout
        # Lines are folded, and a long path has one of its own.
        assert f"noq is not installed: {program} is gone or was changed" in " ".join(shown.split())
    finally:
        program.write_bytes(content)
    assert package.stack("noq")["installed"]


def test_what_is_built_there_goes_into_the_cache(package: Package, tmp_path: Path) -> None:
    toy = tmp_path / "made"
    shutil.copytree(ROOT / "tests" / "stacks" / "toy", toy, ignore=shutil.ignore_patterns("__pycache__"))
    script = "mkdir -p {work}/stacks/made && touch {work}/stacks/made/x.o && cp *.py {bin}"
    text = (toy / "stack.toml").read_text().replace('"toy"', '"made"', 1).replace("{folder}", "{bin}")
    (toy / "stack.toml").write_text(f'{text}\n[build]\ncommand = ["sh", "-c", {json.dumps(script)}]\n')
    before = set(below(package.folder))
    cache = tmp_path / "cache"
    around: dict[str, str | Path] = {"PATH": "/usr/bin:/bin", "BENTPIPE_CACHE": cache}
    done = package("bentpipe", "stacks", "install", "made", "--stacks", toy, **around)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (cache / "work" / "stacks" / "made" / "x.o").is_file()
    assert [one.name.partition("-")[0] for one in (cache / "stacks").iterdir()] == ["made"]
    assert set(below(package.folder)) == before


def test_hints_are_for_a_package(package: Package, tmp_path: Path) -> None:
    done = package("bentpipe", "scenarios", "show", "sat", BENTPIPE_BIN=tmp_path)
    assert done.returncode == 1
    assert "error: the program bentpipe-sim is missing" in done.stderr
    assert "hint: install the package again" in done.stderr and "make setup" not in done.stderr


def test_commands_find_what_lay_in_the_checkout(package: Package) -> None:
    shown = package("bentpipe", "pep", "--help").stdout
    assert shown == (ROOT / "products" / "pep" / "src" / "program" / "help.txt").read_text()
    code = "from bentpipe import paths; print(paths.bin_folder())"
    assert package("python", "-I", "-c", code).stdout.split() == [str(package.data / "bin")]
    assert "thesis" in package("bentpipe", "study", "--help").stdout


def test_a_checkout_can_be_named_instead(package: Package) -> None:
    shown = package("bentpipe", "stacks", "show", "noq", BENTPIPE_ROOT=ROOT).stdout
    assert f"folder      {ROOT / 'endpoints' / 'noq'}" in shown


@pytest.mark.parametrize("folder", [".", "endpoints/quiche"])
def test_cargo_finds_every_manifest(package: Package, folder: str) -> None:
    """The workspace's, and those of a stack with a workspace of its own."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not on the PATH")
    asked = ["cargo", "metadata", "--format-version", "1", "--offline", "--no-deps"]
    done = subprocess.run(asked, cwd=package.data / folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_is_one_version(package: Package) -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    said = package("bentpipe", "--version").stdout.split()[-1]
    (metadata,) = package.folder.glob("lib/python*/site-packages/bentpipe-*.dist-info")
    assert said == modules.__version__ == metadata.name.removesuffix(".dist-info").split("-")[1]
    manifests = [ROOT / "crates" / "endpoint" / "Cargo.toml", *(ROOT / "endpoints").glob("*/Cargo.toml")]
    own = [tomllib.loads(file.read_text())["package"]["version"] for file in manifests]
    assert {workspace["version"], *(one for one in own if one != {"workspace": True})} == {said}


def test_what_makes_a_wheel_is_locked_with_its_tools() -> None:
    """A wheel is made in an environment of its own: what the package imports there must be in it."""
    code = (
        "import sys; sys.path[:0] = ['tools/wheel', 'python']; import stage\n"
        "there = {name.partition('.')[0] for name, module in sys.modules.items()"
        " if 'site-packages' in (getattr(module, '__file__', None) or '')}\n"
        "print(*(name for name in there if not name.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = (ROOT / "tools/wheel/requirements.txt").read_text().splitlines()
    locked = {re.split(r"[=\s]", line)[0] for line in lines}
    found = {*done.stdout.split()} - {"typing_extensions"}  # which msgspec takes where it is
    assert "msgspec" in found and found <= locked


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[str]:
    """All that can be typed, without what studies are called."""
    for name, command in group.commands.items():
        yield " ".join([*words, name])
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def test_every_command_is_tried_in_an_installed_wheel() -> None:
    """`make wheel-check` tries them, for a user who has no other program."""
    there = {*commands(cli)}
    lines = [re.split(r" (?=[^a-z])", one.line)[0].split() for one in TRIES]
    tried = {" ".join(words[:count]) for words in lines for count in (1, 2)}
    assert there - tried == set()
    assert "objectives derive" in there and "study" in there
