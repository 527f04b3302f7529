"""Toys that break the endpoint contract, each in one way: `endpoint.py wrong-byte` is the class WrongByte."""

from __future__ import annotations

import json
import mmap
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[1] / "toy"))

from toy import BYE, CHUNK, NEVER, RAN, Client, Ran, Server, Toy, message, write


def sleep_for_ever() -> None:
    time.sleep(3600)


class Careless(Toy):
    """Takes test cases that it does not know."""

    def supports(self, hello: dict[str, Any]) -> bool:
        return super().supports(hello | {"testcase": "transfer"})


class Refuse(Toy):
    def supports(self, hello: dict[str, Any]) -> bool:
        return False


class NoDriver(Toy):
    def ready(self) -> dict[str, Any]:
        ready = super().ready()
        del ready["driver"]
        return ready


class HangEarly(Toy):
    def greet(self, ready: dict[str, Any]) -> None:
        sleep_for_ever()


class Chatty(Toy):
    """Says a second READY, which nobody has asked for."""

    def greet(self, ready: dict[str, Any]) -> None:
        super().greet(ready)
        super().greet(ready)


# What happens in a run with arrivals.


class Crash(Toy):
    def answer(self, ran: Ran) -> None:
        if ran.arrived:
            print("toy: told to crash", file=sys.stderr, flush=True)
            os._exit(3)
        super().answer(ran)


class Hang(Toy):
    def answer(self, ran: Ran) -> None:
        if ran.arrived:
            sleep_for_ever()
        super().answer(ran)


class Spin(Toy):
    """Answers each time, wants to go on at once, takes its time for everything, and nothing comes of it."""

    def answer(self, ran: Ran) -> None:
        time.sleep(0.1)
        ran.done, ran.next_wake, ran.departures = False, ran.until, []
        super().answer(ran)


class Rubbish(Toy):
    def answer(self, ran: Ran) -> None:
        write(b"this is no message at all")
        sleep_for_ever()


class Huge(Toy):
    """Announces a message of 4 GiB."""

    def answer(self, ran: Ran) -> None:
        write(struct.pack("<IB", 2**32 - 1, RAN))
        sleep_for_ever()


class Dribble(Toy):
    """Writes a byte a second."""

    def answer(self, ran: Ran) -> None:
        for byte in ran.encode():
            write(bytes([byte]))
            time.sleep(1)


class Short(Toy):
    """Announces more datagrams than it sends."""

    def answer(self, ran: Ran) -> None:
        write(message(RAN, struct.pack("<QBI", ran.next_wake, ran.done, 7)))


class Late(Toy):
    """Sends at the end of its run, which is exclusive."""

    def answer(self, ran: Ran) -> None:
        ran.departures = [(ran.until, data) for _, data in ran.departures]
        super().answer(ran)


class Early(Toy):
    """Sends before the event that it was woken for."""

    def answer(self, ran: Ran) -> None:
        ran.departures = [(0, data) for _, data in ran.departures]
        super().answer(ran)


def answer_with_ecn(ran: Ran, ecn: int) -> None:
    body = struct.pack("<QBI", ran.next_wake, ran.done, len(ran.departures))
    for at, data in ran.departures:
        body += struct.pack("<QBH", at, ecn, len(data)) + data
    write(message(RAN, body))


class Astray(Toy):
    """Sends over a path that nobody told it of."""

    def answer(self, ran: Ran) -> None:
        answer_with_ecn(ran, 0x10)


class OddBits(Toy):
    """Sets a bit beside ECN that has no meaning."""

    def answer(self, ran: Ran) -> None:
        answer_with_ecn(ran, 0x44)


class WakeEarly(Toy):
    def answer(self, ran: Ran) -> None:
        ran.next_wake = ran.until - 1
        super().answer(ran)


class Jumbo(Toy):
    """Sends a datagram that is larger than IPv4 carries."""

    def answer(self, ran: Ran) -> None:
        ran.departures = [(at, bytes(65_535)) for at, _ in ran.departures]
        super().answer(ran)


class NeverDone(Toy):
    """Says that it has more to do, and wakes again and again."""

    def answer(self, ran: Ran) -> None:
        ran.done, ran.next_wake = False, ran.until
        super().answer(ran)


# Those that share memory with the coordinator.


class Sharing(Toy):
    """Keeps the contract, as a server: what it is sent is short, and comes through the pipe."""

    announced: ClassVar[int | None] = None  # the length of a body; None: that which it has

    def ready(self) -> dict[str, Any]:
        assert self.offer is not None
        self.memory = mmap.mmap(self.offer["fd"], self.offer["bytes"])
        return super().ready() | {"shared_memory": True}

    def answer(self, ran: Ran) -> None:
        body = ran.encode()[5:]
        half = len(self.memory) // 2
        self.memory[half : half + len(body)] = body
        write(struct.pack("<IB", self.announced or len(body), RAN | 0x80))


class SharingUnasked(Sharing):
    """Has not said that it maps the memory."""

    def ready(self) -> dict[str, Any]:
        return super().ready() | {"shared_memory": False}


class SharingTooMuch(Sharing):
    """Announces a body that ends behind the memory."""

    announced = 2**22 + 1


class SharingLess(Sharing):
    """Announces less than a RAN has."""

    announced = 12


class SharingAndCutting(Sharing):
    """Tries to take the memory away from under the coordinator; if it cannot, it keeps the contract."""

    def answer(self, ran: Ran) -> None:
        assert self.offer is not None
        try:
            os.ftruncate(self.offer["fd"], 0)
        except PermissionError:
            super().answer(ran)


class SharingAndCrashing(Sharing):
    def answer(self, ran: Ran) -> None:
        super().answer(ran)
        if ran.arrived:
            os.kill(os.getpid(), signal.SIGKILL)


class SharingAndHanging(Sharing):
    def answer(self, ran: Ran) -> None:
        if ran.arrived:
            sleep_for_ever()
        super().answer(ran)


# What happens at the end.


class Stays(Toy):
    """Does not exit after BYE."""

    def leave(self) -> int:
        sleep_for_ever()
        return 0


class FailsLate(Toy):
    def leave(self) -> int:
        print("toy: failed after its last word", file=sys.stderr)
        return 3


class ByeRubbish(Toy):
    def part(self) -> None:
        write(message(BYE, b"goodbye"))


class Tells(Toy):
    """Keeps the contract, and says something of itself."""

    said: Mapping[str, Any] = {"left_s": 1.5, "left_by": "loss", "cwnd_bytes": 12345, "ssthresh_bytes": None}

    def part(self) -> None:
        write(message(BYE, json.dumps(self.end.bye() | {"statistics": self.said}).encode()))


class TellsNan(Tells):
    said: ClassVar = {"left_s": float("nan")}


class TellsNested(Tells):
    said: ClassVar = {"left": {"s": 1.5}}


class TellsMuch(Tells):
    said: ClassVar = {f"s{number}": number for number in range(65)}


# What is served and stored.


class Mute(Toy):
    class server(Server):
        def receive(self, now: int, data: bytes) -> list[bytes]:
            super().receive(now, data)
            return []


class WrongByte(Toy):
    class server(Server):
        def read(self, path: str) -> bytes | None:
            body = super().read(path)
            return body and body[:-1] + bytes([body[-1] ^ 1])


class Truncate(Toy):
    class server(Server):
        def read(self, path: str) -> bytes | None:
            body = super().read(path)
            return body and body[: len(body) // 2]


class Open(Toy):
    """Serves what lies outside www."""

    class server(Server):
        def read(self, path: str) -> bytes | None:
            file = self.www / path.lstrip("/")
            return file.read_bytes() if file.is_file() else None


class Ignorant(Toy):
    """Says nothing about a file that is not there."""

    class server(Server):
        def receive(self, now: int, data: bytes) -> list[bytes]:
            return [reply for reply in super().receive(now, data) if reply[:1] != b"N"]


class OneFile(Toy):
    """Fetches the first file only."""

    class client(Client):
        def receive(self, now: int, data: bytes) -> list[bytes]:
            sent = super().receive(now, data)
            if self.fetches[0].complete and not self.done:
                self.done, self.next_wake = True, NEVER
                return [b"C"]
            return sent


class NoFile(Toy):
    class client(Client):
        def store(self) -> None:
            pass


class Fifo(Toy):
    class client(Client):
        def store(self) -> None:
            os.mkfifo(self.downloads / self.fetches[0].path.lstrip("/"))


class Folder(Toy):
    class client(Client):
        def store(self) -> None:
            (self.downloads / self.fetches[0].path.lstrip("/")).mkdir()


class NoSecrets(Toy):
    def store(self, hello: dict[str, Any]) -> None:
        super().store(hello | {"keylog": None, "qlog": None})


# Those that wait for ever: no timer is ever set.


class Patient(Toy):
    """As a client it asks once; as a server it answers the first request for every file."""

    class client(Client):
        def ask(self, now: int) -> list[bytes]:
            sent = super().ask(now)
            self.next_wake = NEVER
            return sent

    class server(Server):
        def receive(self, now: int, data: bytes) -> list[bytes]:
            first, sent = self.handshake is None, super().receive(now, data)
            self.next_wake = NEVER
            return [reply[: -CHUNK // 2] for reply in sent] if first else []


class Sleepy(Toy):
    class server(Server):
        def receive(self, now: int, data: bytes) -> list[bytes]:
            return []


# Those that leave a child of their own behind, which holds their pipes.


def leave_child() -> None:
    if os.fork() == 0:
        Path(os.environ["TOY_CHILD"]).write_text(str(os.getpid()))
        sleep_for_ever()


class LeavesChild(Toy):
    def leave(self) -> int:
        leave_child()
        return 0


class DiesWithChild(Toy):
    def answer(self, ran: Ran) -> None:
        leave_child()
        os._exit(3)


def name(kind: type[Toy]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


FAMILIES = (Toy, Tells, Sharing)
KINDS = {name(kind): kind for family in FAMILIES for kind in family.__subclasses__()}

if __name__ == "__main__":
    sys.exit(KINDS[sys.argv[1]]().main())
