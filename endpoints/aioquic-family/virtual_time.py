"""Virtual time over file descriptors 3 and 4: HELLO to BYE (`endpoints/CONTRACT.md`)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import determinism
import dialect
import messages
import stack
from job import Job, address_of, from_hello
from nodes import ClientNode, Node, ServerNode, Setting
from wall_clock import WallClock

DRIVER = f"send and timer after every datagram and every timer, as {dialect.NAME}'s asyncio driver"

_KEYS = {
    "contract": int,
    "role": str,
    "testcase": str,
    "requests": list,
    "options": dict,
    "seed": str,
    "epoch_unix_s": int,
    "remote": str,
    "certs": str,
}


def main() -> int:
    """The exit code: 0 after FINISH, 1 if the coordinator goes away."""
    try:
        _trial()
    except messages.CoordinatorGone:
        return 1
    return 0


def _trial() -> None:
    """HELLO to BYE."""
    kind, body = messages.read()
    if kind != messages.HELLO:
        raise messages.ContractBroken(f"a message of type {kind} where HELLO is due")
    hello = _parse(body)
    job = from_hello(hello)
    # Log messages are formatted even if nobody reads it; a trial's log is its qlog.
    logging.disable(logging.CRITICAL)
    node = _create(job, hello)
    ready = {
        "stack": dialect.NAME,
        "version": f"{dialect.NAME} {dialect.VERSION}",
        "driver": DRIVER,
        "next_wake": 0 if job.role == "client" else None,
        "paths": job.follows_paths,
    }
    messages.write_json(messages.READY, ready)
    _serve(node)
    _finish(node)


def _parse(body: bytes) -> Mapping[str, object]:
    """HELLO with every key that is needed, each of its type."""
    try:
        hello = json.loads(body)
    except ValueError as error:
        raise messages.ContractBroken(f"HELLO is no JSON: {error}") from error
    if not isinstance(hello, dict):
        raise messages.ContractBroken("HELLO is no JSON object")
    for key, kind in _KEYS.items():
        if not isinstance(hello.get(key), kind):
            raise messages.ContractBroken(
                f'HELLO: "{key}" is {json.dumps(hello.get(key))}, which is not valid'
            )
    return hello


def _create(job: Job, hello: Mapping[str, object]) -> Node:
    clock = WallClock(int(str(hello["epoch_unix_s"])))
    determinism.replace_clocks(clock)
    determinism.replace_randomness(str(hello["seed"]), job.role)
    remotes = [path.remote for path in job.paths] if job.follows_paths else [address_of(str(hello["remote"]))]
    setting = Setting(stack.configure(job), clock, remotes)
    return ClientNode(setting, job) if job.role == "client" else ServerNode(setting, job)


def _serve(node: Node) -> None:
    """Answers RUN with RAN until FINISH."""
    now_ns = 0
    while True:
        kind, body = messages.read()
        if kind == messages.FINISH:
            return
        if kind != messages.RUN:
            raise messages.ContractBroken(f"a message of type {kind} where RUN or FINISH is due")
        now_ns = node.run(now_ns, body)
        messages.write_ran(node.next_wake, node.done, node.departures)
        node.departures.clear()


def _finish(node: Node) -> None:
    stack.finish_logs(node.setting.configuration)
    node.close_files()
    handshake_ns, requests = None, []
    if isinstance(node, ClientNode):
        handshake_ns = node.client.handshake_ns
        requests = [request.report() for request in node.client.requests]
    messages.write_json(
        messages.BYE, {"handshake_ns": handshake_ns, "requests": requests, "error": node.error}
    )
