"""Stands between the coordinator and an endpoint program, and tells the program something else than asked.

mislead.py CHANGES COMMAND...: COMMAND keeps the contract of virtual time on the file descriptors 3 and 4.
CHANGES is JSON: the test case by the name of each member is told as that member's value; what is asked for on
an earlier visit of a page is then the page's, too. "patient": true keeps back what the program sends, after
its first packets, until something has arrived. In frames "hello" is what it is told otherwise, "stream" the
same of its stream of frames, "requests" how many of its requests it is told. "bye" names what is done to each
of its reports, in LIES. "damage" names the secrets in its key log that become others before its last word.
"""

import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

HELLO, RUN, RAN, BYE = 1, 3, 4, 6


def read_exactly(source: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        chunk = os.read(source, size - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def read_message(source: int) -> tuple[int, bytes]:
    length, kind = struct.unpack("<IB", read_exactly(source, 5))
    return kind, read_exactly(source, length)


def write_message(sink: int, kind: int, body: bytes) -> None:
    rest = struct.pack("<IB", len(body), kind) + body
    while rest:
        rest = rest[os.write(sink, rest) :]


class Patience:
    """What a program that sends nothing twice would have sent."""

    def __init__(self) -> None:
        self.asked = self.heard = False

    def question(self, body: bytes) -> None:
        self.heard |= struct.unpack_from("<QI", body)[1] > 0

    def answer(self, body: bytes) -> bytes:
        wake, done, count = struct.unpack_from("<QBI", body)
        if self.asked and not self.heard:
            return struct.pack("<QBI", wake, done, 0)
        self.asked |= count > 0
        return body


def _make_one_visit(hello: dict[str, Any]) -> None:
    """Lets the page begin with what it does not have of the requests."""
    page = hello.get("page") or []
    missing = len(hello["requests"]) - len(page) if page else 0
    for one in page:
        one["initiator"] = None if one["initiator"] is None else one["initiator"] + missing
    first = {
        "initiator": None, "found_after_bytes": None, "wait_ms": 0, "urgency": 3, "incremental": False,
    }  # fmt: skip
    hello["page"] = [first] * missing + page


def _young(report: dict[str, Any]) -> None:
    """It came when it was made."""
    if report["last_byte_ns"]:
        report["last_byte_ns"] = report["asked_ns"]


def _sooner(report: dict[str, Any]) -> None:
    """It came as soon as the path allows, 300 ms after it was made, and 20 ms is what it takes to send it."""
    if report["last_byte_ns"]:
        report["last_byte_ns"] = min(report["asked_ns"] + 320_000_000, report["last_byte_ns"])


def _later(report: dict[str, Any]) -> None:
    """It was made 10 s later."""
    if "asked_ns" in report:
        report["asked_ns"] += 10**10


def _invented(report: dict[str, Any]) -> None:
    """What never came has come."""
    if not report["last_byte_ns"]:
        report |= {"asked_ns": 10**9, "last_byte_ns": 2 * 10**9, "bytes": 7142}


def _mute(report: dict[str, Any]) -> None:
    """What came has not come."""
    report |= {"bytes": 0, "first_byte_ns": None, "last_byte_ns": None}


def _half(report: dict[str, Any]) -> None:
    """Nobody knows when it was made."""
    report.pop("asked_ns", None)


LIES = {
    "young": _young,
    "sooner": _sooner,
    "later": _later,
    "invented": _invented,
    "mute": _mute,
    "half": _half,
}


def told(hello: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """What the program is told in place of `hello`."""
    hello = hello | {"testcase": changes.get(hello["testcase"], hello["testcase"])}
    if hello["testcase"] == "page":
        _make_one_visit(hello)
    if "frames" not in hello:
        return hello
    hello = hello | changes.get("hello", {}) | {"requests": hello["requests"][: changes.get("requests")]}
    return hello | {"frames": hello["frames"] | changes.get("stream", {})}


def said(bye: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """What is said in place of `bye`."""
    if "bye" in changes:
        for report in bye["requests"]:
            LIES[changes["bye"]](report)
    return bye


def damage(key_log: str, labels: list[str]) -> None:
    """Turns every digit of the secrets with these labels around."""
    lines = [line.split() for line in Path(key_log).read_text().splitlines()]
    turned = str.maketrans("0123456789abcdef", "fedcba9876543210")
    for words in lines:
        if words[0] in labels:
            words[2] = words[2].translate(turned)
    Path(key_log).write_text("".join(f"{' '.join(words)}\n" for words in lines))


def main(changes: dict[str, Any], command: list[str]) -> None:
    patience = Patience() if changes.pop("patient", False) else None
    questions, answers = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.dup2(questions[0], 3)
        os.dup2(answers[1], 4)
        os.closerange(5, 64)
        os.execvp(command[0], command)
    os.close(questions[0])
    os.close(answers[1])
    try:
        kind, hello = 0, {}
        while kind != BYE:
            kind, body = read_message(3)
            if kind == HELLO:
                hello = told(json.loads(body), changes)
                body = json.dumps(hello).encode()
            if patience and kind == RUN:
                patience.question(body)
            write_message(questions[1], kind, body)
            kind, body = read_message(answers[0])
            if patience and kind == RAN:
                body = patience.answer(body)
            if kind == BYE:
                body = json.dumps(said(json.loads(body), changes)).encode()
                if "damage" in changes and hello["keylog"]:
                    damage(hello["keylog"], changes["damage"])
            write_message(4, kind, body)
    except EOFError:
        pass  # one of the two has ended; so does the other
    os.close(questions[1])
    _, status = os.wait()
    sys.exit(os.waitstatus_to_exitcode(status))


main(json.loads(sys.argv[1]), sys.argv[2:])
