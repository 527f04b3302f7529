"""Further flows: those that share the path with the flow that a trial measures.

A flow is written as `server=noq:cc=cubic,start=1s`, with any of the keys `client`, `server`, `workload`,
`start` and `middlebox`; what is left out is as in the trial's own flow, which starts at 0. `middlebox` has
options that the treatment's middleboxes have for this flow, as in `middlebox=rate=0%:hold_ms=0`. Several are
joined by ` + `. The canonical form, with the keys in this order, is what workloads, records and seeds have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bentpipe import workload
from bentpipe.errors import UsageError, one_of
from bentpipe.stacks import protocol
from bentpipe.stacks.model import TRANSPORTS, Transport, Variant
from bentpipe.workload import Workload

KEYS = ("client", "server", "workload", "start", "middlebox")
MOST = 63  # further flows: each has its own address
AND = workload.AND


@dataclass(frozen=True)
class FurtherFlow:
    """A flow that shares the path with the one that is measured. None: as in that one."""

    client: str | None = None
    server: str | None = None
    workload: Workload | None = None
    start_ms: int = 0
    middlebox: str | None = None  # options, as in `rate=0%:hold_ms=0`

    def __str__(self) -> str:
        """The canonical form."""
        start = workload.shown_time(self.start_ms)
        values = (self.client, self.server, self.workload, start, self.middlebox)
        return ",".join(f"{key}={value}" for key, value in zip(KEYS, values, strict=True) if value)

    @property
    def variants(self) -> dict[str, str]:
        """The variants that it names, by role."""
        named = {"client": self.client, "server": self.server}
        return {role: label for role, label in named.items() if label is not None}

    @property
    def middlebox_options(self) -> dict[str, str]:
        """The options of its middleboxes, by name."""
        settings = self.middlebox.split(":") if self.middlebox else []
        return {key: value for key, _, value in (one.partition("=") for one in settings)}


@dataclass(frozen=True)
class PlannedFlow:
    """A flow of a trial: its ends, its workload, and its start."""

    client: Variant
    server: Variant
    workload: Workload
    start_ms: int
    middlebox: Mapping[str, str]  # options of its own middleboxes

    @property
    def protocol(self) -> str | None:
        """The application protocol, by its ALPN; None if its ends have none in common."""
        moved = self.workload
        return protocol.common(self.client.stack, self.server.stack, moved.testcase, moved.alpn)

    @property
    def transport(self) -> Transport | None:
        """The transport of that protocol."""
        return TRANSPORTS[self.protocol] if self.protocol else None


def of(trial_workload: Workload) -> list[FurtherFlow]:
    """The further flows of a workload."""
    return [parse(text, str(trial_workload)) for text in trial_workload.flows]


def every(workloads: Iterable[Workload]) -> list[FurtherFlow]:
    """The further flows of some workloads, each once."""
    return list(dict.fromkeys(flow for one in workloads for flow in of(one)))


def parse(text: str, where: str) -> FurtherFlow:
    """The flow that `text` names; otherwise a UsageError that names `where` it was given."""
    values: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise UsageError(f'{where}: "{text}": "{part.strip()}" is not KEY=VALUE', f"as in {EXAMPLE}")
        if key in values:
            raise UsageError(f'{where}: "{text}" has {key} twice', "leave one of them out")
        values[key] = value
    return from_mapping(values, where)


def from_mapping(values: Mapping[str, object], where: str) -> FurtherFlow:
    """The flow of a table with these keys."""
    for key, value in values.items():
        if key not in KEYS:
            raise UsageError(f'{where}: unknown key "{key}"', one_of(key, KEYS, "keys"))
        if not isinstance(value, str) or not value.strip():
            raise UsageError(f"{where}: {key}: {value!r} is not valid", "write a text in quotes")
        if "," in value or AND.strip() in value:
            raise UsageError(f'{where}: {key}: "{value}" has a comma or a + in it', f"as in {EXAMPLE}")
    texts = {key: str(value).strip() for key, value in values.items()}
    start, moved = texts.get("start", "0s"), texts.get("workload")
    return FurtherFlow(
        client=texts.get("client"),
        server=texts.get("server"),
        workload=None if moved is None else workload.parse(moved, f"{where}: workload"),
        start_ms=workload.milliseconds(start, f"{where}: start"),
        middlebox=_middlebox(texts.get("middlebox"), f"{where}: middlebox"),
    )


def _middlebox(text: str | None, where: str) -> str | None:
    """The options that `text` has, in order of name. UsageError that names `where` if it has others."""
    if text is None:
        return None
    settings = dict(setting.partition("=")[::2] for setting in text.split(":"))
    if len(settings) < text.count(":") + 1:
        raise UsageError(f'{where}: "{text}": an option is given twice', "give each once")
    for key, value in settings.items():
        if not key or not value or re.search(r"\s", key + value):
            raise UsageError(f'{where}: "{text}": "{key}" has no value', "as in rate=0%:hold_ms=0")
    return ":".join(f"{key}={value}" for key, value in sorted(settings.items()))


def canonical(flows: Iterable[FurtherFlow], where: str) -> str:
    """The canonical form of a set of flows."""
    texts = [str(flow) for flow in flows]
    if len(texts) > MOST:
        raise UsageError(f"{where}: {len(texts)} flows are too many", f"give up to {MOST}")
    return AND.join(texts)


def from_table(value: object, where: str) -> tuple[str, ...]:
    """The flows of a campaign file: a list of tables, or, for several such sets, a list of lists of them."""
    if not isinstance(value, list):
        raise UsageError(f"{where}: {value!r} is not valid", f"write {TABLE}")
    sets = value if value and all(isinstance(one, list) for one in value) else [value]
    found = []
    for one in sets:
        for table in one:
            if not isinstance(table, dict):
                raise UsageError(f"{where}: {table!r} is not valid", f"write {TABLE}")
        found.append(canonical((from_mapping(table, where) for table in one), where))
    return tuple(dict.fromkeys(found))


EXAMPLE = "server=noq:cc=cubic,start=1s"
TABLE = 'a list of tables: [{ server = "noq:cc=cubic", start = "1 s" }]'
