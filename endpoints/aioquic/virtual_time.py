"""Virtual time over file descriptors 3 and 4: HELLO to BYE (`endpoints/CONTRACT.md`, section 4)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import frames
import stack
from determinism import RandomStream, WallClock, replace_clocks, replace_randomness
from job import Job, from_hello
from nodes import ClientNode, Node, ServerNode, Setting

DRIVER = "send and timer after every datagram and every timer, as aioquic's asyncio driver"


def main(shortcut: bool) -> int:
    """The exit code: 0 after FINISH, 1 if the coordinator goes away; or Unsupported."""
    try:
        _trial(shortcut)
    except frames.CoordinatorGone:
        return 1
    return 0


def _trial(shortcut: bool) -> None:
    """HELLO to BYE."""
    kind, body = frames.read()
    if kind != frames.HELLO:
        raise ValueError(f"frame type {kind} where HELLO should be")
    hello = json.loads(body)
    job = from_hello(hello)
    # What is logged is formatted even if nobody reads it; a trial's log is its qlog.
    logging.disable(logging.CRITICAL)
    node = _create(job, hello, shortcut)
    next_wake = 0 if job.role == "client" else None
    ready = {"stack": "aioquic", "version": stack.version(), "driver": DRIVER, "next_wake": next_wake}
    frames.write_json(frames.READY, ready)
    _serve(node)
    _finish(node)


def _create(job: Job, hello: Mapping[str, object], shortcut: bool) -> Node:
    clock = WallClock(int(str(hello["epoch_unix_s"])))
    replace_clocks(clock)
    replace_randomness(RandomStream(str(hello["seed"]), job.role))
    host, _, port = str(hello["remote"]).rpartition(":")
    setting = Setting(stack.configure(job), clock, (host, int(port)), shortcut)
    return ClientNode(setting, job) if job.role == "client" else ServerNode(setting, job)


def _serve(node: Node) -> None:
    """Answers RUN with RAN until FINISH."""
    now_ns = 0
    while True:
        kind, body = frames.read()
        if kind == frames.FINISH:
            return
        if kind != frames.RUN:
            raise ValueError(f"frame type {kind} where RUN or FINISH should be")
        now_ns = node.run(now_ns, body)
        frames.write_ran(node.next_wake, node.done, node.departures)
        node.departures.clear()


def _finish(node: Node) -> None:
    stack.finish_logs(node.setting.configuration)
    handshake_ns, requests = None, []
    if isinstance(node, ClientNode):
        node.session.close_files()
        handshake_ns, requests = node.session.handshake_ns, [r.report() for r in node.session.requests]
    frames.write_json(frames.BYE, {"handshake_ns": handshake_ns, "requests": requests, "error": node.error})
