"""The options of `bentpipe run`: those that change a campaign's plan, and those of its execution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from bentpipe import paths, workload
from bentpipe.cli import completing
from bentpipe.errors import UsageError
from bentpipe.execution.dask_cluster import DaskSettings
from bentpipe.plan import campaign, flows, treatments
from bentpipe.plan.trial import IP_VERSIONS
from bentpipe.schema.manifest import DRAWS, PAIRS, TRACES
from bentpipe.testbed import TESTBEDS
from bentpipe.workload import FileTransfer

EXECUTORS = ("local", "dask")
LISTS = {"scenario": "scenarios", "client": "clients", "server": "servers"}


def split(_context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Comma-separated and repeated values as one list, each once."""
    option = parameter.opts[0]
    for value in values:
        if "," in value and paths.is_file(value):
            raise UsageError(f'{option}: the path "{value}" has a comma in it', "commas separate: rename it")
        if not all(part.strip() for part in value.split(",")):
            raise UsageError(f'{option}: "{value}" has an empty name in it', "write NAME,NAME")
    return campaign.unique([part.strip() for value in values for part in value.split(",")])


def split_treatments(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """As `split`, but for those with a chain, in which commas stand between places."""
    return tuple(
        one for value in values for one in ([value] if "=" in value else split(context, parameter, (value,)))
    )


class Folder(click.Path):
    """A path that is not empty."""

    name = "folder"

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", parameter, context)
        return super().convert(value, parameter, context)


def _options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def apply(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return apply


PLAN = _options(
    click.option(
        "--scenario",
        multiple=True,
        callback=split,
        shell_complete=completing.scenario,
        metavar="NAME,…",
        help="Names, or paths to .toml files; comma-separated, can be repeated.",
    ),
    click.option(
        "--client",
        multiple=True,
        callback=split,
        shell_complete=completing.stack,
        metavar="STACK,…",
        help="Stacks, as in quinn:cc=bbr:iw=32; comma-separated, can be repeated.",
    ),
    click.option(
        "--server",
        multiple=True,
        callback=split,
        shell_complete=completing.stack,
        metavar="STACK,…",
        help="Stacks, as for --client; comma-separated, can be repeated.",
    ),
    click.option(
        "--pairs",
        type=click.Choice(PAIRS),
        help="all: every client with every server (default). self: each stack with itself.",
    ),
    click.option("--iterations", type=click.IntRange(1), metavar="N", help="Trials of each cell."),
    click.option(
        "--workload",
        multiple=True,
        callback=split,
        metavar="WHAT,…",
        help="TESTCASE:SIZE or TESTCASE:COUNTxSIZE, as in transfer:10MiB, upload:1MiB or "
        "multiplexing:2000x32B, duration:TIME, as in duration:30s, page:NAME or page:FILE.toml, as in "
        "page:kosek (bentpipe page lists them), on a later visit page:NAME:resumed, early, resumed-cached "
        "or early-cached, live:TIME, as in live:60s, or frames:TIME:CARRIER, as in "
        "frames:30s:streams or frames:30s:datagrams; comma-separated, can be repeated.",
    ),
    click.option(
        "--protocol",
        multiple=True,
        callback=split,
        metavar="HTTP,…",
        help="Versions of HTTP for pages and live streams: h1, h2, h3 (default); comma-separated.",
    ),
    click.option(
        "--flow",
        "flow",
        multiple=True,
        metavar="KEY=VALUE,…",
        help="A further flow through the same links, as in server=noq:cc=cubic,start=1s; what it leaves out "
        "of client, server, workload and start is as in the trial's own flow; middlebox=rate=0% gives its "
        "middleboxes other options. Can be repeated.",
    ),
    click.option(
        "--treatment",
        multiple=True,
        callback=split_treatments,
        shell_complete=completing.treatment,
        metavar="WHAT,…",
        help="What is between the ends: direct (default: nothing), or a middlebox, such as quic-pep, a "
        "proxy (bentpipe stacks lists them), or, in real time, vpn, a tunnel, which may lead through "
        "proxies (vpn+tcp-pep); comma-separated, can be repeated. Each with a chain needs an option to "
        "itself: --treatment quic-pep=terminal:iw=100,gateway, --treatment vpn=gateway:kind=openvpn-udp.",
    ),
    click.option(
        "--pep",
        multiple=True,
        metavar="PROXIES",
        help="The chain of --treatment quic-pep, as in terminal:iw=100:cc=newreno,gateway:iw=100:cc=newreno "
        "(default: terminal,gateway; docs/reference/pep.md has their options). Repeated: each is a separate "
        "treatment.",
    ),
    click.option("--bytes", "size", metavar="SIZE", help="Short for --workload transfer:SIZE."),
    click.option(
        "--set",
        "set_",
        multiple=True,
        metavar="KEY=VALUE",
        help="Change the scenarios, as in forward.queue=1BDP; can be repeated.",
    ),
    click.option("--seed", type=click.IntRange(0), metavar="N", help="The seed of all randomness."),
    click.option(
        "--draws",
        type=click.Choice(DRAWS),
        help="common: iteration N has the same losses, jitter and weather in every cell (default); so cells "
        "differ by less chance. independent: each trial has its own.",
    ),
    click.option(
        "--testbed",
        type=click.Choice(list(TESTBEDS)),
        help="sim: virtual time (default). emu: real processes and sockets behind emulated links. remote: a "
        "real link between two other hosts, which --link names.",
    ),
    click.option(
        "--link",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --testbed remote: the file of real links (docs/reference/links.md). --scenario names some "
        "of them; default: all.",
    ),
    click.option(
        "--ip",
        type=click.Choice([str(version) for version in IP_VERSIONS]),
        callback=lambda _context, _option, given: None if given is None else int(given),
        help="The version of IP that programs speak (default: 4).",
    ),
    click.option(
        "--trace",
        type=click.Choice(TRACES),
        help="Which trials keep a trace: the median of each cell, all, or none. "
        "analysis: that of the median, without its capture.",
    ),
    click.option(
        "--qlog",
        is_flag=True,
        default=None,
        help="With a trace: also the endpoints' qlogs (slower).",
    ),
)
EXECUTION = _options(
    click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Trials at a time (default: cores + 1; in real time at most this many, default 8 per core; on a "
        "cluster as many as it takes).",
    ),
    click.option(
        "--executor",
        type=click.Choice(EXECUTORS),
        help="local: this machine (default). dask: a cluster of Dask, which --workers starts or --scheduler "
        "names (docs/how-to/run-on-many-machines.md).",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="With --executor dask: start N worker processes on this machine, for one trial each at a time.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="With --executor dask: the address of a running Dask scheduler, as tls://HOST:8786 or "
        "tcp://127.0.0.1:8786, or the file that it wrote.",
    ),
    click.option(
        "--tls-ca", metavar="FILE", help="With --scheduler tls://…: the certificate authority, in PEM."
    ),
    click.option(
        "--tls-cert", metavar="FILE", help="With --scheduler tls://…: the client's certificate, in PEM."
    ),
    click.option(
        "--tls-key", metavar="FILE", help="With --scheduler tls://…: the key of that certificate, in PEM."
    ),
    click.option(
        "--traces-stay",
        type=Folder(),
        metavar="DIR",
        help="With --executor dask and --trace all: keep traces and qlogs in this folder of the host "
        "that ran the trial; the run names the place.",
    ),
    click.option(
        "--awake/--no-awake",
        "awake",
        default=None,
        help="In real time: keep idle processors from sleeping, so that packets leave in time. It takes "
        "all spare processor time (default: in virtual machines).",
    ),
    click.option("--shuffle", is_flag=True, help="Run trials in random order. Results are the same."),
    click.option(
        "--pause-between", "pause", metavar="HH:MM-HH:MM", help="Start no trial in this local time."
    ),
    click.option("-o", "--out", type=Folder(), metavar="DIR", help="Folder (default: runs/CAMPAIGN-TIME)."),
    click.option(
        "--bundles",
        type=Folder(),
        metavar="DIR",
        help="Run nothing: write each trial as a bundle to DIR, for `bentpipe worker`.",
    ),
    click.option("--resume", type=Folder(), metavar="DIR", help="Continue the run in DIR."),
    click.option(
        "--retry-failed",
        is_flag=True,
        help="With --resume: run failed trials again; those that are ok or unsupported are kept.",
    ),
    click.option(
        "--retry-invalid",
        is_flag=True,
        help="With --resume: run invalid trials again, which say nothing about the stacks.",
    ),
    click.option(
        "--stacks",
        "extra",
        multiple=True,
        type=Folder(),
        metavar="DIR",
        help="A further folder of stacks; can be repeated. A resumed run remembers its folders.",
    ),
    click.option("--no-report", is_flag=True, help="Do not make a report at the end."),
    click.option("--json", "as_json", is_flag=True, help="Print the records, one JSON object per line."),
)


def cluster(given: dict[str, Any]) -> DaskSettings | None:
    """The cluster that the command line names, and takes out of `given`; None for this machine."""
    executor, workers, scheduler = (given.pop(key) for key in ("executor", "workers", "scheduler"))
    stay: Path | None = given.pop("traces_stay")
    tls = {part: given.pop(f"tls_{part}") for part in ("ca", "cert", "key")}
    some = [f"--tls-{part}" for part, file in tls.items() if file is not None]
    said = [*(["--workers"] if workers else []), *(["--scheduler"] if scheduler else []), *some]
    said += ["--traces-stay"] if stay else []
    if executor != "dask":
        if said:
            raise UsageError(f"{said[0]} is of clusters", "add --executor dask")
        return None
    if bool(workers) == bool(scheduler):
        how = "both are given" if workers else "no cluster is named"
        raise UsageError(f"--executor dask: {how}", "add either --workers N or --scheduler ADDRESS")
    if some and (workers or len(some) < len(tls)):
        raise UsageError(
            f"{some[0]} stands alone", "TLS needs --scheduler, --tls-ca, --tls-cert and --tls-key"
        )
    if stay is not None and not stay.is_absolute():
        raise UsageError(
            f"--traces-stay {stay}: workers have folders of their own", "write it from / on: /var/tmp/traces"
        )
    return DaskSettings(workers or 0, scheduler or "", tls if some else None, stay)


def changed_keys(given: dict[str, Any]) -> dict[str, Any]:
    """The keys of a plan that the command line gives."""
    changes: dict[str, Any] = {LISTS[key]: given[key] for key in LISTS if given[key]}
    changes |= {
        key: given[key]
        for key in ("pairs", "iterations", "seed", "draws", "testbed", "ip", "trace", "qlog")
        if given[key] is not None
    }
    if given["link"] is not None:
        changes["link"] = str(given["link"].resolve())
    if given["workload"] and given["size"] is not None:
        raise UsageError(
            "--workload and --bytes cannot both be given",
            "--bytes SIZE is short for --workload transfer:SIZE",
        )
    if given["workload"]:
        changes["workloads"] = workload.canonical(given["workload"], "--workload")
    if given["size"] is not None:
        changes["workloads"] = (str(FileTransfer("transfer", 1, workload.size(given["size"], "--bytes"))),)
    if given["flow"]:
        own = [flows.parse(text, "--flow") for text in given["flow"]]
        changes["flows"] = (flows.canonical(own, "--flow"),)
    if given["treatment"]:
        changes["treatments"] = treatments.named(given["treatment"], "--treatment")
    if given["pep"]:
        changes["pep"] = treatments.specs(given["pep"], "--pep")
    if given["set_"]:
        changes["set"] = given["set_"]
    return changes
