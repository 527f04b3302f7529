"""Runs every test there is, cheapest first, and says how long each part took.

What a machine lacks is named, and its tests are left out. What a run took is kept in `target/tests/`, from
where `test_times.py` makes a page of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import test_times

ROOT = test_times.ROOT
PYTHON = str(ROOT / ".venv" / "bin" / "python")
WORK = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
RUST = ["cargo", "test", "--workspace", "--release", "--locked"]
# Replaces the C library's clock, so it is a program of its own, with a feature of its own.
CLOCK = [*RUST, "--features", "bentpipe-endpoint/interposed-clock", "--test", "interposed_clock"]
NPM = ["npm", "run", "--silent"]
# As endpoints/caddy/stack.toml has it built: without databases of Caddy's that nothing here uses.
CADDY = ["-tags", "nobadger,nobbolt,nomysql,nopgx,netgo,osusergo"]


@dataclass(frozen=True)
class Part:
    """Some of the tests: commands that run one after the other in a folder."""

    title: str
    kind: str
    commands: list[list[str]]
    folder: str = "."
    needs: tuple[str, ...] = ("cargo", "--version")  # ends well where the part can run
    hint: str = "https://rustup.rs"


def parts(shuffle: str | None) -> Iterator[Part]:
    """All parts in the order in which they run."""
    yield Part(
        "compiling the Rust tests", "building", [[*RUST, "--no-run", "-q"], [*CLOCK, "--no-run", "-q"]]
    )
    yield Part("Rust", "Rust", [[*RUST, "--", "--quiet"], CLOCK])
    vet = ["go", "vet", "./..."]
    # An older Go, which cannot fetch the one that go.mod asks for, cannot even list.
    listing = ("go", "list", "./...")
    for name, commands in (
        ("go-family", [vet, go_test("go-family")]),
        ("quic-go", [vet, go_test("quic-go")]),
        ("x-net", [vet]),
        ("caddy", [[*vet[:2], *CADDY, vet[2]], ["go", "test", *CADDY, "./..."]]),
    ):
        yield Part(f"Go, {name}", "Go", commands, f"endpoints/{name}", listing, "https://go.dev/dl")
    checks = [[*NPM, check] for check in ("check-types", "check-format", "test", "check-bundle")]
    site = [["npm", "ci", "--silent"], *checks]
    yield Part("report site", "report site", site, "report-ui", ("npm", "--version"), "apt install npm")
    side_by_side = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"]
    yield pytest("Python, side by side", "not emulated", side_by_side, shuffle)
    yield pytest("Python, emulated links", "emulated", [], shuffle)


def go_test(name: str) -> list[str]:
    """The tests of a folder of Go, with the library that its program is built with."""
    work = shlex.quote(str(WORK / "stacks" / name))
    return ["sh", "-c", f'overlay=$(sh ../go-family/overlay.sh {work}) && go test -overlay "$overlay" ./...']


def pytest(title: str, marks: str, further: list[str], shuffle: str | None) -> Part:
    """The Python tests with these marks. Soaks and `make smoke` have commands of their own."""
    command = [PYTHON, "-m", "pytest", "--quiet", "-m", f"{marks} and not soak and not smoke", *further,
               f"--junitxml={test_times.FOLDER / title}.xml"]  # fmt: skip
    order = ["--shuffle", shuffle] if shuffle else []
    return Part(title, title, [[*command, *order]], needs=(PYTHON, "--version"), hint="make setup")


def main() -> int:
    """Run what is asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shuffle", metavar="SEED", help="run the Python tests in an order drawn from SEED")
    parser.add_argument("--crate", help="run the Rust tests of one crate, and of those that use it")
    options = parser.parse_args()
    if options.crate:
        return run_crate(options.crate.removeprefix("bentpipe-"))
    return run_all(options.shuffle)


def run_crate(name: str) -> int:
    """Run the tests of a crate and of all that are built with it. Which these are, cargo knows."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    uses = {
        one["name"]: {edge["name"] for edge in one["dependencies"]} for one in json.loads(listed)["packages"]
    }
    if f"bentpipe-{name}" not in uses:
        known = ", ".join(sorted(one.removeprefix("bentpipe-") for one in uses))
        print(f'error: CRATE: there is no crate "{name}"\nhint: one of {known}', file=sys.stderr)
        return 2
    found = {f"bentpipe-{name}"}
    while more := {one for one, edges in uses.items() if edges & found} - found:
        found |= more
    print(f"test: {', '.join(sorted(found))}", flush=True)
    chosen = [word for one in sorted(found) for word in ("-p", one)]
    return subprocess.run(
        ["cargo", "test", "--release", "--locked", *chosen, "--", "--quiet"], cwd=ROOT
    ).returncode


def run_all(shuffle: str | None) -> int:
    """Run all parts, whatever becomes of them; 1 if one failed."""
    shutil.rmtree(test_times.FOLDER, ignore_errors=True)
    test_times.FOLDER.mkdir(parents=True)
    name_absent_stacks()
    took: list[dict[str, object]] = []
    failed = []
    for part in parts(shuffle):
        if not ends_well(part):
            print(f"test: {part.title} left out: {' '.join(part.needs)} does not run (hint: {part.hint})")
            continue
        print(f"test: {part.title}", flush=True)
        begin = time.monotonic()
        well = [run(command, part) for command in part.commands]  # all, whatever becomes of one
        seconds = round(time.monotonic() - begin, 1)
        took.append({"part": part.title, "kind": part.kind, "seconds": seconds})
        test_times.PARTS.write_text(json.dumps(took, indent=1) + "\n")
        failed += [] if all(well) else [part.title]
    print(test_times.parts_table(took))
    if failed:
        print(f"test: failed: {', '.join(failed)}")
    return 1 if failed else 0


def ends_well(part: Part) -> bool:
    """Whether this machine has what the part needs."""
    if shutil.which(part.needs[0]) is None:
        return False
    return subprocess.run(part.needs, cwd=ROOT / part.folder, capture_output=True).returncode == 0


def run(command: list[str], part: Part) -> bool:
    """Run a command, showing and keeping what it prints; whether it ended well."""
    log = test_times.FOLDER / f"{part.title}.log"
    with (
        log.open("a") as kept,
        subprocess.Popen(
            command,
            cwd=ROOT / part.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            kept.write(line)
    if process.returncode != 0:
        print(f"test: {part.title}: {' '.join(command)} ended with {process.returncode}", flush=True)
    return process.returncode == 0


def name_absent_stacks() -> None:
    command = [str(ROOT / ".venv" / "bin" / "bentpipe"), "stacks", "--json"]
    listed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    absent = [stack["name"] for stack in listed if not stack["installed"]]
    if absent:
        hint = "bentpipe stacks install --all"
        print(f"test: not installed, so that their tests are left out: {', '.join(absent)} (hint: {hint})")


if __name__ == "__main__":
    sys.exit(main())
