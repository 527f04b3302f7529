"""The cost of a cluster of Dask beside this machine alone, and its results when workers are killed.

    benches/scale/cluster.py overhead [--trials 2000] [--trial-s 0.3]
    benches/scale/cluster.py memory [--trials 20000]
    benches/scale/cluster.py deaths [--trials 2000] [--every-s 20]
    benches/scale/cluster.py results [--trials 50]
    benches/scale/cluster.py programs

Each with `--smallest`, too.

`overhead` runs the same trials on this machine, two at a time, and with two workers, in turns,
and prints the ratio of their wall times without start and end, and what both took of the processors.
`memory` prints the resident memory of the client at each quarter of a run. Their trials are those of a
stand-in (`quick-sim`) that sleeps, so that what else the machine does counts little. `deaths` runs real
trials, kills a worker every so often, and holds the records against an undisturbed run. `results` prints what
a megabyte costs that trials leave. `programs` has a worker that has none, over loopback, run trials of four
stacks twice: when the first record is there, what came to the worker, and that packets are those of here.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).resolve().parents[1]))
import settings

from bentpipe import paths

HERE = Path(__file__).parent
PLAN = ["run", "--scenario", "sat", "--client", "noq", "--server", "noq", "--no-report"]
LOCAL, DASK = ["--jobs", "2"], ["--executor", "dask", "--workers", "2"]
QUARTERS = 4
FEW = 4  # trials of a run that shows what a start takes
GOAL = 1.05
TICK_S = 0.05


@dataclass(frozen=True)
class Spent:
    """The times of a run: from its first record to its last one, and of the processors in all."""

    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["overhead", "memory", "deaths", "results", "programs"])
    parser.add_argument("--trials", type=int, metavar="N")
    parser.add_argument("--trial-s", type=float, default=0.3, metavar="S")
    parser.add_argument("--every-s", type=float, default=20, metavar="S")
    parser.add_argument("--turns", type=int, default=4, metavar="N", help="of overhead (default 4)")
    asked = settings.read(parser, trials=4 * FEW, trial_s=0.05, every_s=1, turns=1)
    with tempfile.TemporaryDirectory(prefix="bentpipe-bench-") as name:
        folder = Path(name)
        if asked.what == "overhead":
            overhead(folder, asked.trials or 2000, asked.trial_s, asked.turns)
        elif asked.what == "memory":
            memory(folder, asked.trials or 20_000)
        elif asked.what == "deaths":
            deaths(folder, asked.trials or 2000, asked.every_s)
        elif asked.what == "results":
            results(folder, asked.trials or 50)
        else:
            programs(folder)


def overhead(folder: Path, trials: int, trial_s: float, turns: int) -> None:
    environment = stand_in(folder, trial_s)
    walls: dict[str, float] = {"local": 0.0, "dask": 0.0}
    cpus, starts = dict(walls), dict(walls)
    for name, words in (("local", LOCAL), ("dask", DASK)):
        starts[name] = timed(folder / f"{name}-start", words, FEW, environment).cpu_s
    for turn in range(turns):
        for name, words in (("local", LOCAL), ("dask", DASK)):
            spent = timed(folder / f"{name}-{turn}", words, trials // turns, environment)
            walls[name] += spent.wall_s
            cpus[name] += spent.cpu_s
            print(f"turn {turn + 1}: {name}: {spent.wall_s:.1f} s, CPU {spent.cpu_s:.1f} s", flush=True)
    ratio = walls["dask"] / walls["local"]
    print(f"{trials} trials of {trial_s} s: wall time dask / local {ratio:.3f} (goal: at most {GOAL})")
    each_ms = {name: 1e3 * (cpus[name] - turns * starts[name]) / (trials - turns * FEW) for name in cpus}
    print(f"CPU of a start: local {starts['local']:.1f} s, dask {starts['dask']:.1f} s")
    print(f"CPU per trial beyond that: local {each_ms['local']:.1f} ms, dask {each_ms['dask']:.1f} ms")


def memory(folder: Path, trials: int) -> None:
    run = folder / "run"
    process = start(run, DASK, trials, stand_in(folder, 0))
    for quarter in range(1, QUARTERS + 1):
        wait_for_records(run, process, quarter * trials // QUARTERS)
        used = Path(f"/proc/{process.pid}/statm").read_text().split()
        size = int(used[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        print(f"{records(run)} records: the client has {size:.0f} MB", flush=True)
    process.wait()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"at its end, with tables and records.parquet: at most {peak:.0f} MB; exit {process.returncode}")


def deaths(folder: Path, trials: int, every_s: float) -> None:
    words, draw = ["--bytes", "100kB", "--trace", "none"], Random(1)
    calm, shaken = folder / "calm", folder / "shaken"
    assert start(calm, [*LOCAL, *words], trials, {}).wait() == 0
    process, killed = start(shaken, [*DASK, *words], trials, {}), 0
    wait_for_records(shaken, process, 1)
    latest = time.monotonic()
    while process.poll() is None:
        if time.monotonic() - latest >= every_s and (workers := workers_of(process.pid)):
            os.kill(draw.choice(workers), signal.SIGKILL)
            killed, latest = killed + 1, time.monotonic()
        time.sleep(TICK_S)
    found, wanted = packets(shaken), packets(calm)
    same = sum(found.get(trial) == hashed for trial, hashed in wanted.items())
    print(
        f"{killed} workers killed; {records(shaken)} records of {trials} trials, {same} with the packets of"
    )
    print(f"the undisturbed run; exit {process.returncode}")
    assert process.returncode == 0 and records(shaken) == len(wanted) == same == trials


def results(folder: Path, trials: int) -> None:
    spent = {}
    for trace in ("none", "all"):
        words = ["--bytes", "10MB", "--trace", trace]
        for name, where in (("local", LOCAL), ("dask", DASK)):
            run = folder / f"{name}-{trace}"
            spent[name, trace] = timed(run, [*where, *words], trials, {})
            size = sum(one.stat().st_size for one in run.rglob("*.pcapng")) / 1e6
            shutil.rmtree(run / "trials", ignore_errors=True)
    more = [spent[name, "all"].cpu_s - spent[name, "none"].cpu_s for name in ("local", "dask")]
    print(f"{trials} traces of {size / trials:.1f} MB: CPU with traces, beside the same without, local")
    print(f"{more[0]:.1f} s, dask {more[1]:.1f} s: {1e3 * (more[1] - more[0]) / size:.1f} ms per MB")


def programs(folder: Path) -> None:
    four = ["--client", "quinn,quic-go,picoquic", "--bytes", "100kB"]
    assert start(folder / "here", [*LOCAL, *four], 1, {}).wait() == 0
    bare = {**os.environ, "BENTPIPE_BIN": str(folder / "none"), "BENTPIPE_CACHE": str(folder / "cache")}
    file = folder / "scheduler.json"
    common = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--no-dashboard"]
    dask, quiet = [sys.executable, "-m"], subprocess.DEVNULL
    words = [*dask, "distributed.cli.dask_scheduler", *common, "--port", "0"]
    scheduler = subprocess.Popen(words, stderr=quiet)
    words = [*dask, "distributed.cli.dask_worker", *common, "--no-nanny"]
    worker = subprocess.Popen(words, env=bare, stderr=quiet)
    try:
        while not file.exists():
            time.sleep(TICK_S)
        for run in (folder / "first", folder / "second"):
            begin = time.monotonic()
            process = start(run, ["--executor", "dask", "--scheduler", str(file), *four], 1, {})
            wait_for_records(run, process, 1)
            print(f"{run.name} run: a record after {time.monotonic() - begin:.1f} s", flush=True)
            assert process.wait() == 0 and packets(run) == packets(folder / "here")
            said = run.with_suffix(".log").read_text().splitlines()
            print("\n".join(line for line in said if "brought" in line) or "nothing was brought")
    finally:
        for started in (worker, scheduler):
            started.terminate()
            started.wait()


def stand_in(folder: Path, trial_s: float) -> dict[str, str]:
    """An environment in which trials are those of `quick-sim`, with the answer of a real one."""
    example = folder / "example"
    assert start(example, ["--bytes", "100kB", "--trace", "none"], 1, {}).wait() == 0
    bundles = folder / "bundles"
    command = [*PLAN[:-1], "--bytes", "100kB", "--trace", "none", "--iterations", "1"]
    subprocess.run([*bentpipe(), *command, "--bundles", bundles], check=True, stdout=subprocess.DEVNULL)
    (bundle,) = bundles.iterdir()
    done = subprocess.run([*bentpipe(), "worker", bundle], check=True, stdout=subprocess.PIPE)
    values = json.loads(done.stdout)["values"] | {"packet_log_hash": "PACKETS"}
    (folder / "answer.json").write_text(json.dumps(values))
    programs = folder / "bin"
    programs.mkdir()
    for program in paths.bin_folder().glob("bentpipe-*"):
        if os.access(program, os.X_OK):
            (programs / program.name).symlink_to(program)
    (programs / "bentpipe-sim").unlink()
    shutil.copy(HERE / "quick-sim", programs / "bentpipe-sim")
    return {
        "BENTPIPE_BIN": str(programs),
        "QUICK_SIM_S": f"{trial_s:g}",
        "QUICK_SIM_ANSWER": str(folder / "answer.json"),
        "QUICK_SIM_REAL": str(paths.program("bentpipe-sim")),
    }


def bentpipe() -> list[str]:
    return [sys.executable, "-m", "bentpipe"]


def start(run: Path, words: list[str], trials: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    size = [] if "--bytes" in words else ["--bytes", "100kB", "--trace", "none"]
    command = [*bentpipe(), *PLAN, *size, "--iterations", str(trials), "--out", str(run), *words]
    log = run.with_suffix(".log").open("wb")
    return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})


def timed(run: Path, words: list[str], trials: int, environment: dict[str, str]) -> Spent:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = start(run, words, trials, environment)
    wait_for_records(run, process, 1)
    begin = time.monotonic()
    wait_for_records(run, process, trials)
    wall_s = time.monotonic() - begin
    assert process.wait() == 0, run.with_suffix(".log").read_text()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def wait_for_records(run: Path, process: subprocess.Popen[bytes], least: int) -> None:
    while records(run) < least:
        assert process.poll() is None, run.with_suffix(".log").read_text()
        time.sleep(TICK_S)


_COUNTED: dict[Path, tuple[int, int]] = {}  # run → bytes of its records, and lines in them


def records(run: Path) -> int:
    """How many records a run has; what was counted is not read again."""
    place, (begin, lines) = run / "records.jsonl", _COUNTED.get(run, (0, 0))
    if place.exists():
        with place.open("rb") as file:
            file.seek(begin)
            new = file.read()
        _COUNTED[run] = begin + len(new), lines + new.count(b"\n")
    return _COUNTED.get(run, (0, 0))[1]


def workers_of(client: int) -> list[int]:
    """The worker processes that a client has started."""
    found = subprocess.run(
        ["pgrep", "-P", str(client), "-f", "spawn_main"], stdout=subprocess.PIPE, text=True
    )
    return [int(line) for line in found.stdout.split()]


def packets(run: Path) -> dict[str, str]:
    lines = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    return {one["trial"]: one["packet_log_hash"] for one in lines}


if __name__ == "__main__":
    main()
