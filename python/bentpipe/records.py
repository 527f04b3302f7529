"""Records: the one-line result of a trial, and the files of a run that hold them.

`records.jsonl` gets one line per finished trial, in the order in which they end; it is what a run resumes
from. `records.parquet` is sealed from it at the end, with the same columns, but for what endpoints say of
themselves: there every name has a column of its own. Every column carries its unit in
its name; a value that could not be measured is null. Times are taken at the client and count from its first
packet.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

OUTCOMES = (
    "ok",
    "unsupported",
    "handshake_timeout",
    "transfer_timeout",
    "missing_file",
    "corrupt_file",
    "crashed",
    "no_secrets",
    "unproven",
    "invalid",
    "interrupted",
)


@dataclass(frozen=True, slots=True)
class Record:
    """One trial: which it was, how it ended, what was measured."""

    trial: str  # the name of its folder under trials/
    scenario: str
    workload: str
    size_bytes: int
    client: str
    server: str
    treatment: str
    testbed: str
    iteration: int
    seed: str  # 64 bits in hexadecimal
    outcome: str  # one of OUTCOMES
    detail: str
    alpn: (
        str  # the application protocol: "hq-interop", in real time perhaps "h3"; "" where nothing was started
    )
    measured_from: str  # "wire", or "client" where it could not be decoded: what times and rates come from
    handshake_s: float | None  # until the client's handshake is complete
    ttfb_s: float | None  # until the first stream byte
    completion_s: float | None  # until the last stream byte
    transfer_s: float | None  # from the first packet of the reply to the last stream byte
    goodput_bps: float | None  # 8 * size / transfer_s; null where that exceeds the rate
    efficiency: float | None  # goodput / forward rate, of an upload return rate
    limit_s: float | None  # completion time of an ideal sender on this path
    share_of_limit: float | None  # limit_s / completion_s
    connections: int | None  # that completed a handshake; null where none could be made out
    resumed: bool | None  # whether the second connection was; null where there is none
    zero_rtt_bytes: int | None  # stream data in the 0-RTT packets of the connection that is measured
    virtual_s: (
        float  # the trial's time when both sides were done; in virtual time, at the end of the last epoch
    )
    wall_s: float
    cpu_client_s: float
    cpu_server_s: float
    cpu_sim_s: float  # the testbed's own
    memory_client_bytes: int  # the most that its process had at once, in RAM
    memory_server_bytes: int
    epochs: int  # rounds of the coordinator of virtual time; 0 in real time
    forward_packets: int  # sent by the server
    forward_bytes: int  # of IP packets
    forward_queue_drops: int
    forward_losses: int
    return_packets: int
    return_bytes: int
    return_queue_drops: int
    return_losses: int
    # As far as in_flight_max_bytes, null unless measured on the wire.
    retransmitted_share: float | None  # of the stream bytes that the server sent
    acks_per_data_packet: (
        float | None
    )  # packets with ACK from the client per packet with data from the server
    mean_packet_bytes: float | None  # IP packets from the server
    largest_packet_bytes: int | None
    return_rate_bps: float | None  # IP bytes from the client during the transfer, as a rate
    rtt_min_ms: float | None  # samples of the server
    rtt_median_ms: float | None
    rtt_max_ms: float | None
    in_flight_max_bytes: int | None  # of the server
    findings: list[str]  # rules that found something wrong, see docs/findings.md
    client_version: str
    server_version: str
    client_driver: str  # how the endpoint program batches and polls
    server_driver: str
    # What the endpoints say of themselves at the end, by name: numbers, texts or null (CONTRACT.md, BYE).
    client_statistics: dict[str, Any]
    server_statistics: dict[str, Any]
    # received_bytes[k]: UDP payload that reached the client (in an upload, the server) by (k + 1) steps
    received_step_s: float
    received_bytes: list[int]
    jain_index: float | None  # of the flows' goodputs; null where there is one flow
    flows: list[
        dict[str, Any]
    ]  # all of them, the one that is measured first; empty where that is the only one
    proxies: list[dict[str, Any]]  # of the flow that is measured, from client to server; empty without
    hops: list[dict[str, Any]]  # between client, proxies and server; empty without proxies
    packet_log_sha256: str | None
    # Of real time, null elsewhere: how well the links kept to the model.
    release_error_p50_ms: float | None  # by how much packets came out later than the model says
    release_error_p99_ms: float | None
    release_error_p999_ms: float | None
    release_error_max_ms: float | None
    release_error_limit_ms: float | None  # what 99.9 % of the packets must not exceed
    kernel_drops: int | None  # packets that the kernel dropped on the way to the emulator or from it
    cpu_pressure: (
        float | None
    )  # share of the time in which some task waited for a processor; null with --awake

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def failed(self) -> bool:
        """Whether it went wrong. What a stack does not offer is no failure."""
        return self.outcome not in ("ok", "unsupported")

    @property
    def in_a_line(self) -> str:
        """What the trial came to, for people: `sat noq → quinn 9.15 Mbit/s`."""
        came_to = self.outcome.replace("_", " ")
        if self.ok and self.goodput_bps is not None:
            came_to = f"{self.goodput_bps / 1e6:.2f} Mbit/s"
        elif self.ok and self.completion_s is not None:
            came_to = f"{self.completion_s:.2f} s"
        return f"{self.scenario} {self.client} → {self.server} {came_to}"

    def to_json(self) -> str:
        """The record as one line of JSON, without the line's end."""
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    @classmethod
    def from_mapping(cls, values: dict[str, Any]) -> Record:
        """A record from a JSON object; unknown or missing columns raise TypeError."""
        return cls(**values)


def read_jsonl(path: Path) -> Iterator[Record]:
    """The records of a `records.jsonl`. A last line that was cut off while it was written is passed over."""
    lines = path.read_text().split("\n")
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            values = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):  # no newline behind it: the writer was interrupted here
                return
            raise ValueError(f"{path}:{number}: not a record: {error}") from error
        yield Record.from_mapping(values)


def _counts() -> list[tuple[str, pa.DataType]]:
    """What the links of a hop did."""
    ways, what = ("forward", "return"), ("packets", "bytes", "queue_drops", "losses")
    return [(f"{way}_{name}", pa.int64()) for way in ways for name in what]


# Columns that are lists of objects.
_STRUCTS: dict[str, pa.DataType] = {
    "proxies": pa.struct(
        [
            ("place", pa.string()),
            ("name", pa.string()),
            ("version", pa.string()),
            ("driver", pa.string()),
            ("cpu_s", pa.float64()),
            ("memory_bytes", pa.int64()),
            ("statistics", pa.string()),  # JSON: each program has names of its own
        ]
    ),
    "hops": pa.struct(
        [
            ("from", pa.string()),
            ("to", pa.string()),
            *_counts(),
            ("connections", pa.int64()),
            ("rtt_min_ms", pa.float64()),
            ("rtt_median_ms", pa.float64()),
            ("retransmitted_share", pa.float64()),
            ("findings", pa.list_(pa.string())),
        ]
    ),
    "flows": pa.struct(
        [
            ("client", pa.string()),
            ("server", pa.string()),
            ("start_s", pa.float64()),
            ("end_s", pa.float64()),
            ("outcome", pa.string()),
            ("detail", pa.string()),
            ("goodput_bps", pa.float64()),
            *((name, kind) for name, kind in _counts() if not name.endswith("_bytes")),
            ("received_bytes", pa.list_(pa.int64())),
        ]
    ),
}

_ARROW_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "float | None": pa.float64(),
    "str | None": pa.string(),
    "int | None": pa.int64(),
    "bool | None": pa.bool_(),
    "list[int]": pa.list_(pa.int64()),
    "list[str]": pa.list_(pa.string()),
}


def to_arrow(records: list[Record]) -> pa.Table:
    """The table of `records.parquet`: a column per field of Record, in their order, and a column per name in
    place of a field that is a dictionary.
    """
    columns: dict[str, pa.Array[Any]] = {}
    for field in dataclasses.fields(Record):
        values = [getattr(record, field.name) for record in records]
        if str(field.type) == "dict[str, Any]":
            for name in sorted({name for value in values for name in value}):
                columns[f"{field.name}.{name}"] = _said([value.get(name) for value in values])
        elif field.name in _STRUCTS:
            rows = [[_row(entry) for entry in value] for value in values]
            columns[field.name] = pa.array(rows, pa.list_(_STRUCTS[field.name]))
        else:
            columns[field.name] = pa.array(values, _ARROW_TYPES[str(field.type)])
    return pa.table(columns)


def _row(entry: dict[str, Any]) -> dict[str, Any]:
    """An object of a list, with what it has of objects as JSON."""
    return {name: json.dumps(it) if isinstance(it, dict) else it for name, it in entry.items()}


def _said(values: list[Any]) -> pa.Array[Any]:
    """Numbers, or texts if one of them is a text."""
    if any(isinstance(value, str) for value in values):
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())


def write_parquet(records: list[Record], path: Path) -> None:
    """Write `records` to `path`, replacing it only once it is complete."""
    table = to_arrow(records)
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial)
    partial.replace(path)
