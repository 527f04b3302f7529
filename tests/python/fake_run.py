"""A run folder as `bentpipe run` leaves it, with made-up results: courses follow slow start, a line rate and
losses.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from bentpipe.plan.campaign import Plan
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.records import Record
from bentpipe.schema.record import Outcome

SIZE = 10 * 2**20
STEP_S = 0.05
STACKS = ("aioquic", "noq", "quic-go", "quinn")


@dataclass(frozen=True)
class Link:
    """What the made-up results depend on."""

    title: str
    rtt_s: float
    forward_bps: float
    return_bps: float
    timeout_s: float
    loss: float

    @property
    def summary(self) -> dict[str, Any]:
        loss = f"uniform, ratio {self.loss}" if self.loss else "none"
        return {
            "name": "made-up",
            "title": self.title,
            "source": "S. Endres, Evaluation and Optimization of the IETF QUIC Protocol for Satellite "
            "Networks, master's thesis, FAU Erlangen-Nürnberg, 2022, table 4.3",
            "notes": "",
            "rtt_ms": self.rtt_s * 1e3,
            "timeout_s": self.timeout_s,
            "forward_rate_bps": self.forward_bps,
            "return_rate_bps": self.return_bps,
            "forward_queue": "25 packets",
            "return_queue": "25 packets",
            "forward_loss": loss,
            "return_loss": loss,
        }


LINKS = {
    "goodput": Link("Terrestrial, 10/10 Mbit/s", 0.03, 10e6, 10e6, 60, 0),
    "sat": Link("GEO, 20/2 Mbit/s", 0.6, 20e6, 2e6, 120, 0),
    "satloss": Link("GEO, 20/2 Mbit/s, 1 % loss", 0.6, 20e6, 2e6, 120, 0.01),
}
USUAL = tuple(LINKS)
OF_2021 = ("goodput", "sat-2021", "satloss-2021")  # as those, by the names that stand for the thesis's
LINKS |= {name: LINKS[name.removesuffix("-2021")] for name in OF_2021}

# What goes wrong: (scenario, client, server, iteration) → outcome and detail; None stands for any.
FAILURES: list[tuple[tuple[str | None, str | None, str | None, int | None], Outcome, str]] = [
    (("satloss", None, "aioquic", None), "transfer_timeout", "7340032 of 10485760 bytes after 120 s"),
    (("satloss", "quic-go", "noq", 2), "transfer_timeout", "9961472 of 10485760 bytes after 120 s"),
    (("sat", "aioquic", "quinn", 3), "crashed", "server: exit code 134: assertion failed"),
    (("satloss", "noq", "quic-go", 1), "handshake_timeout", "no handshake after 30 s"),
    (("satloss", "noq", "quic-go", 2), "crashed", "client: killed by signal 11"),
    (("goodput", "quic-go", "aioquic", None), "unsupported", "server: test case transfer (exit code 127)"),
]


def write(
    folder: Path,
    *,
    stacks: tuple[str, ...] = STACKS,
    iterations: int = 3,
    links: tuple[str, ...] = USUAL,
) -> list[Record]:
    """Write a run of `stacks` over three links to `folder` and return its records."""
    records = [
        _record(label, LINKS[label], (client, server), iteration)
        for label in links
        for client in stacks
        for server in stacks
        for iteration in range(1, iterations + 1)
    ]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "records.jsonl").write_text("".join(f"{record.to_json()}\n" for record in records))
    (folder / "manifest.json").write_text(json.dumps(_manifest(stacks, iterations, links), indent=1))
    return records


def write_campaign(name: str, records: Sequence[Record], links: tuple[str, ...] = USUAL) -> list[str]:
    """Write a run of a campaign with these records to a folder of its name; words for a study."""
    write(Path(name), links=links)
    with changed_manifest(Path(name)) as manifest:
        manifest["campaign"] = name
    write_records(Path(name), records)
    return named([name])


def named(runs: Iterable[Path | str]) -> list[str]:
    """The arguments of `bentpipe study` for these runs."""
    return [word for run in runs for word in ("--run", str(run))]


def write_records(folder: Path, records: Iterable[Record]) -> None:
    """Replace the records of a run."""
    (folder / "records.jsonl").write_text("".join(f"{one.to_json()}\n" for one in records))


@contextmanager
def changed_manifest(folder: Path) -> Iterator[dict[str, Any]]:
    """The manifest of a run, to be changed in the block and then written back."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    yield manifest
    file.write_text(json.dumps(manifest))


def record(scenario: str, client: str, server: str, iteration: int) -> Record:
    """One made-up result."""
    return _record(scenario, LINKS[scenario], (client, server), iteration)


def change(record: Record, **values: Any) -> Record:
    """The record with these values. Another iteration of a cell is another trial."""
    if "iteration" in values:
        values = {"trial": f"{record.trial}-{values['iteration']}", **values}
    return msgspec.structs.replace(record, **values)


def manifest(*scenarios: str, seed: int = 1, **values: Any) -> Manifest:
    """That of a run with nothing in it but what is given."""
    plan = Plan(name="mine", scenarios=scenarios, clients=(), servers=(), seed=seed)
    blank: dict[str, Any] = dict.fromkeys(("title", "command", "started"), "")
    empty: dict[str, Any] = {key: {} for key in ("versions", "host", "scenarios", "stacks", "left_out")}
    given: dict[str, Any] = {"campaign": "mine", "options": plan} | blank | empty | values
    return Manifest(**given)


def _manifest(stacks: tuple[str, ...], iterations: int, links: tuple[str, ...]) -> dict[str, Any]:
    return {
        "campaign": "demo",
        "title": "Four stacks over three links",
        "options": {
            "name": "demo",
            "scenarios": list(links),
            "clients": list(stacks),
            "servers": list(stacks),
            "seed": 7,
            "iterations": iterations,
            "workloads": [f"transfer:{SIZE}"],
            "trace": "median",
            "set": [],
            "sweep": {},
        },
        "command": "bentpipe run --seed 7",
        "started": "2026-03-01T10:20:30Z",
        "finished": "2026-03-01T10:21:17Z",
        "versions": {
            "bentpipe": "0.1.0",
            "python": "3.11.9",
            "rustc": "1.90.0",
            "stacks": dict.fromkeys(stacks, "1.2.3"),
        },
        "host": {"system": "Linux", "kernel": "6.18.0", "machine": "x86_64", "cpu": "Some CPU", "cores": 2},
        "scenarios": {
            label: {
                "scenario": {
                    "name": "sat",
                    "title": "made up",
                    "source": "made up",
                    "satellite": {
                        "forward": {"rate": "20 Mbit/s", "queue": "25 packets", "delay": "300 ms"},
                        "return": {"rate": "2 Mbit/s", "queue": "25 packets", "delay": "300 ms"},
                    },
                    "timeout": "120 s",
                },
                "summary": LINKS[label].summary,
            }
            for label in links
        },
        "stacks": {s: {"title": s.title(), "deterministic": s != "quic-go", "notes": ""} for s in stacks},
        "left_out": {"kwik": "it needs java, which is not on the PATH"},
        "not_applicable": [
            {"reason": "tcp-pep with h3 (QUIC)", "combinations": 3, "of": 51, "cells": []},
        ],
        "contract_breaches": {},
    }


def _outcome(coordinates: tuple[str, str, str, int]) -> tuple[Outcome, str]:
    coordinates = (coordinates[0].removesuffix("-2021"), *coordinates[1:])
    for pattern, outcome, detail in FAILURES:
        if all(want is None or want == have for want, have in zip(pattern, coordinates, strict=True)):
            return outcome, detail
    return "ok", ""


def _course(link: Link, speed: float, draw: random.Random) -> list[int]:
    """Bytes received by each step: a window that doubles each round trip, then losses that cut it."""
    line = link.forward_bps / 8 * STEP_S
    total, rate = 0.0, 13_500 * STEP_S / link.rtt_s
    course: list[int] = []
    for step in range(int(link.timeout_s / STEP_S)):
        now = (step + 1) * STEP_S
        if now > 2 * link.rtt_s:
            full = rate >= line * speed
            rate = min(
                line * speed, rate * (1 + 0.004 / link.rtt_s) if full else rate * 2 ** (STEP_S / link.rtt_s)
            )
            if draw.random() < link.loss * 3:
                rate *= 0.6
            total += min(rate, line)
        course.append(min(int(total * draw.uniform(0.999, 1.0)), int(SIZE * 1.05)) if course else int(total))
        course[-1] = max(course[-1], course[-2] if len(course) > 1 else 0)
        if course[-1] >= SIZE * 1.04:
            break
    return course


def _record(label: str, link: Link, pair: tuple[str, str], iteration: int) -> Record:
    client, server = pair
    draw = random.Random(f"{label.removesuffix('-2021')} {client} {server} {iteration}")
    base = {"aioquic": 0.28, "noq": 0.93, "quic-go": 0.72, "quinn": 0.86}
    speed = base.get(server, 0.6) * (0.7 + 0.3 * base.get(client, 0.6)) * draw.uniform(0.9, 1.05)
    outcome, detail = _outcome((label, client, server, iteration))
    course = _course(link, speed, draw)
    ok = outcome == "ok"
    if outcome in ("unsupported", "handshake_timeout"):
        course = [0] * (600 if outcome == "handshake_timeout" else 0)
    elif outcome == "crashed":
        course = course[: len(course) // 3]
    elif not ok:
        reach = int(SIZE * draw.uniform(0.7, 0.95))
        course = [min(count // 2, reach) for count in course]
        course += [course[-1]] * (int(link.timeout_s / STEP_S) - len(course))
    completion = len(course) * STEP_S
    transfer = max(completion - 2 * link.rtt_s, STEP_S)
    limit = 2 * link.rtt_s + SIZE * 1.05 * 8 / link.forward_bps
    goodput = 8 * SIZE / transfer
    packets = (course[-1] if course else 0) // 1350
    return Record(
        trial=f"{label}-{client}-{server}-{iteration}".replace("/", "_"),
        scenario=label,
        workload=f"transfer:{SIZE}",
        size_bytes=SIZE,
        client=client,
        server=server,
        treatment="direct",
        testbed="sim",
        iteration=iteration,
        seed=f"{draw.getrandbits(64):016x}",
        outcome=outcome,
        detail=detail,
        alpn="hq-interop",
        measured_from="wire",
        handshake_s=link.rtt_s * 1.01 if course and outcome != "handshake_timeout" else None,
        ttfb_s=link.rtt_s * 2.02 if course and outcome != "handshake_timeout" else None,
        completion_s=completion if ok else None,
        transfer_s=transfer if ok else None,
        runner_transfer_s=transfer + link.rtt_s if ok else None,
        goodput_bps=goodput if ok else None,
        efficiency=goodput / link.forward_bps if ok else None,
        limit_s=limit,
        share_of_limit=limit / completion if ok else None,
        connections=1 if course else 0,
        resumed=None,
        zero_rtt_bytes=None,
        virtual_s=completion + link.rtt_s,
        wall_s=completion / 120,
        cpu_client_s=completion / 400,
        cpu_server_s=completion / 300,
        cpu_sim_s=completion / 500,
        memory_client_bytes=20_000_000,
        memory_server_bytes=20_000_000,
        epochs=int(completion / link.rtt_s * 2),
        forward_packets=packets,
        forward_bytes=packets * 1378,
        forward_queue_drops=draw.randrange(120),
        forward_losses=int(packets * link.loss),
        return_packets=packets // 3,
        return_bytes=packets * 20,
        return_queue_drops=0,
        return_losses=int(packets / 3 * link.loss),
        retransmitted_share=0.01 if ok else None,
        acks_per_data_packet=0.5 if ok else None,
        mean_packet_bytes=1378.0 if ok else None,
        largest_packet_bytes=1480 if ok else None,
        return_rate_bps=1e5 if ok else None,
        rtt_min_ms=link.rtt_s * 1e3 if ok else None,
        rtt_median_ms=link.rtt_s * 1010 if ok else None,
        rtt_max_ms=link.rtt_s * 1100 if ok else None,
        in_flight_max_bytes=10**6 if ok else None,
        findings=[],
        client_version="1.2.3",
        server_version="1.2.3",
        client_driver="poll after each instant, 10 datagrams a poll",
        server_driver="poll after each instant, 10 datagrams a poll",
        client_statistics={},
        server_statistics={},
        received_step_s=STEP_S,
        received_bytes=course,
        jain_index=None,
        flows=[],
        proxies=[],
        hops=[],
        tunnel=None,
        packet_log_hash=f"{draw.getrandbits(256):064x}" if course else None,
        release_error_p50_ms=None,
        release_error_p99_ms=None,
        release_error_p999_ms=None,
        release_error_max_ms=None,
        release_error_limit_ms=None,
        kernel_drops=None,
        cpu_pressure=None,
    )
