"""Tries every command of an installed wheel, for a user who has no cargo, go, cc or other program:

    python tools/wheel/tried.py VENV FOLDER

Each works, or says in a sentence what it wants: never a traceback. `TRIES` has them in the order in which
they are tried, each in FOLDER, where earlier ones leave what later ones read. `test_package.py` finds what
`bentpipe --help` has and this list has not.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOR_EVER_S = 300
SAT = "--scenario sat --client noq --server noq --bytes 100kB --iterations 1"
# Additions of a user: a study, a suite, and a stack that crashes at once.
BROUGHT = {
    "studies/own/study.toml": """\
name = "own"
title = "A study of the user's own"
question = "Does a wheel have all that a study needs?"
[[runs]]
campaign = "campaigns/own.toml"
about = "with proxies and without"
""",
    "studies/own/campaigns/own.toml": """\
scenarios = ["sat"]
clients = ["noq"]
servers = ["noq"]
workloads = ["transfer:100kB"]
treatments = ["direct", "quic-pep"]
iterations = 1
""",
    "studies/own/page.py": """\
def write(runs, folder):
    told = [f"{one.treatment}: {one.outcome}" for one in runs[0].in_order]
    assert told == ["direct: ok", "quic-pep terminal,gateway: ok"], told
    page = folder / "own.md"
    page.write_text("\\n".join(told))
    return [page]
""",
    "ping.txt": """\
[1790000000.2] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=55 time=29.1 ms
[1790000000.4] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=55 time=34.8 ms
""",
    "own.toml": """\
title = "What we promise"
[[objectives]]
name = "download"
scenario = "sat"
workload = "transfer:1MB"
within = { "1 MB" = "20 s" }
""",
    "broken/stack.toml": """\
name = "broken"
title = "A stack that crashes at once"
language = "Python"
home = "https://example.org/broken"
roles = ["client", "server"]
testcases = ["transfer"]
deterministic = true
[commands]
virtual-time = ["{python}", "-c", "raise SystemExit(3)"]
""",
}


@dataclass(frozen=True)
class Try:
    """A command line, without `bentpipe`, and how it is to end."""

    line: str
    wants: str = ""  # a pattern of what it says that it wants; empty: it works
    code: int | None = None  # default: 0 where it works, else 1 or 2
    or_wants: str = ""  # where this machine lacks it: the pattern of what it then says
    about: str = ""  # a pattern of what it prints


TRIES = (
    Try(f"run {SAT} --qlog --trace all --out run", about=r"1 of 1|ok"),
    Try(f"run {SAT} --bundles bundles"),
    Try("explore --server noq --server noq --server noq", wants="the page has two senders"),
    Try(
        "run --scenario sat --workload page:kosek:h3 --client noq --server noq --iterations 1 --out page-run"
    ),
    Try(
        "run --scenario sat --client broken --server noq --iterations 1 --stacks broken --out broken-run",
        about="1 invalid",
    ),
    Try("completion bash", about="_BENTPIPE_COMPLETE"),
    Try("run --scenario sat --client quic-go --server quic-go", wants="quic-go is not installed"),
    Try("worker bundles/*", about='"outcome"'),
    Try("report run", about="index.html"),
    Try("site run page-run", about="index.html"),
    Try("compare run run"),
    Try("trace run/trials/*", about="handshake"),
    Try("plot run/trials/* --kind all"),
    Try("losses run/trials/*/trace.pcapng"),
    Try("qlog run/trials/*/qlog/*/* -o both.qlog"),
    Try("replay broken-run/trials/* --stacks broken", code=2),
    Try("page"),
    Try("page show kosek"),
    Try("page har page-run/trials/* -o out.har"),
    Try("page import out.har -o visit.toml"),
    Try("scenarios"),
    Try("scenarios show sat"),
    Try(
        "scenarios orbit --shell 1584/72/550km/53deg --terminal 49.6,11.0 --gateway 50.3,8.5 --minutes 2 "
        "-o orbit.toml",
        about="handovers",
    ),
    Try("scenarios rain --station 48.1,11.6 --satellite 13 -o rain.csv", wants="itur"),
    Try("scenarios import ping.txt --rate 100/20Mbit/s -o measured.toml", about="2 values"),
    Try("stacks"),
    Try("stacks show noq"),
    Try("stacks test noq"),
    Try("stacks install quiche", wants="quiche needs Rust"),
    Try("stacks install quic-go", wants="quic-go needs Go"),
    Try("stacks install linux", wants="linux needs"),
    Try("stacks prune"),
    Try("check own.toml --out check-run", about="pass"),
    Try("objectives"),
    Try("objectives show own.toml"),
    Try("objectives derive --scenario cnes-50-10 --bytes 2MB --iterations 1", wants="linux is not installed"),
    Try("study own"),
    Try("study all --help"),
    Try("runner export run -o result.json"),
    Try("runner import result.json -o back"),
    Try("shell sat -- /bin/true", or_wants="namespaces"),
    Try("shell --testbed sim sat --server /bin/true -- /bin/true", wants="linux|kernel"),
    Try("doctor", or_wants="namespaces"),
    Try("lab -- /bin/true", wants="there is no (sshd|ssh-keygen) here"),
    Try("perf client 127.0.0.1 --port 9 --bytes 1kB", wants="nobody listens there"),
    Try("pep --listen 127.0.0.1:0 --next-hop 127.0.0.1:9 --no-verify --check"),
    Try("tcp-pep --listen 127.0.0.1:0 --next-hop 127.0.0.1:9 --check"),
    Try("masque proxy --anybody --listen 127.0.0.1:0 --check", about="public"),
    Try("masque client --target 127.0.0.1:9 --proxy 127.0.0.1:9 --no-verify --check", about="target"),
)


def main() -> int:
    """Try all; 1 if one did not end as it should."""
    environment, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    for name, text in BROUGHT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "nothing").mkdir(exist_ok=True)
    failed = 0
    for one in TRIES:
        done = run(environment, folder, one)
        why = fault(one, done)
        failed += why is not None
        told = f"FAILED: {why}" if why else "works" if done.returncode == (one.code or 0) else said(done)
        print(f"tried: bentpipe {one.line}: {told}", flush=True)
    print(f"tried: {len(TRIES)} commands where no other program is: {failed} failed")
    return 1 if failed else 0


def run(environment: Path, folder: Path, one: Try) -> subprocess.CompletedProcess[str]:
    """Type it, in an environment that has nothing but a home."""
    words = [word for text in shlex.split(one.line) for word in expanded(folder, text)]
    return subprocess.run(
        [environment / "bin" / "bentpipe", *words],
        cwd=folder,
        env={
            "HOME": str(folder),
            "PATH": str(folder / "nothing"),
            "BENTPIPE_STUDIES": str(folder / "studies"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=FOR_EVER_S,
    )


def expanded(folder: Path, word: str) -> list[str]:
    """The files that a word with * names, as a shell has it."""
    found = sorted(str(file.relative_to(folder)) for file in folder.glob(word)) if "*" in word else []
    return found or [word]


def fault(one: Try, done: subprocess.CompletedProcess[str]) -> str | None:
    """The fault in how a command ended; None if there is none."""
    text = done.stdout + done.stderr
    if "Traceback (most recent call last)" in text:
        return f"a traceback\n{text}"
    wants = one.wants or (one.or_wants if done.returncode else "")
    if wants:
        good = done.returncode in (1, 2) and re.search(wants, text) is not None
    else:
        good = done.returncode == (one.code or 0) and re.search(one.about, text) is not None
    return None if good else f"exit code {done.returncode}\n{text}"


def said(done: subprocess.CompletedProcess[str]) -> str:
    """The sentence by which a command says what it wants."""
    lines = (done.stderr or done.stdout).strip().splitlines()
    return next((line for line in lines if line.startswith("error:")), lines[-1] if lines else "nothing")


if __name__ == "__main__":
    sys.exit(main())
