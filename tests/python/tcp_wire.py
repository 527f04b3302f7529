"""TCP captures, crafted: a bulk transfer over a link that loses segments, as the sender would capture it."""

import heapq
import random
import struct
from dataclasses import dataclass, field
from itertools import count

CLIENT, SERVER = (bytes((192, 0, 2, 1)), 50000), (bytes((198, 51, 100, 1)), 443)
SYN, FIN, ACK = 2, 1, 16
MSS = 1000
ONE_WAY = 0.05  # seconds
SYN_OPTIONS = bytes(
    (2, 4, MSS >> 8, MSS & 255, 1, 3, 3, 5, 4, 2, 1, 1)
)  # MSS, window scale 5, SACK permitted
CLIENT_BEGINS, SERVER_BEGINS = 7_000, 2**32 - 40_000  # the server's numbers wrap soon


@dataclass
class Transfer:
    """A server that sends `segments` segments with a fixed window, a client that acknowledges each."""

    segments: int
    loss: float
    seed: int
    window: int = 20
    capture: list[tuple[float, bytes]] = field(default_factory=list)

    def file(self) -> bytes:
        """The classic pcap file of it, at the server: nanoseconds, raw IP."""
        self.run()
        records = [
            struct.pack("<IIII", int(time), round(time % 1 * 1e9), len(packet), len(packet)) + packet
            for time, packet in self.capture
        ]
        return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 101) + b"".join(records)

    def run(self) -> None:
        rng, order = random.Random(self.seed), count()
        client = CLIENT_BEGINS + 1
        self.client(0, SYN, CLIENT_BEGINS, 0, SYN_OPTIONS)
        self.server(0.001, SYN | ACK, SERVER_BEGINS, client, SYN_OPTIONS)
        self.client(0.101, ACK, client, SERVER_BEGINS + 1)
        answers: list[tuple[float, int, int, list[range]]] = []
        arrived: set[int] = set()
        acked: set[int] = set()
        outstanding: dict[int, float] = {}  # segment → when it is sent again
        now, following = 0.2, 0
        while len(acked) < self.segments:
            late = [segment for segment, again in outstanding.items() if again <= now]
            segment = min(late, default=None)
            if segment is None and following < self.segments and len(outstanding) < self.window:
                segment, following = following, following + 1
            if segment is not None:
                outstanding[segment] = now + 0.3
                self.server(now, ACK, SERVER_BEGINS + 1 + segment * MSS, client, b"", MSS)
                if rng.random() >= self.loss:
                    arrived.add(segment)
                    ack, blocks = report(arrived)
                    if rng.random() >= self.loss:
                        heapq.heappush(answers, (now + 2 * ONE_WAY, next(order), ack, blocks))
            now += 0.004
            while answers and answers[0][0] <= now:
                at, _, ack, blocks = heapq.heappop(answers)
                acked |= {*range(ack), *(it for block in blocks for it in block)}
                for segment in acked & outstanding.keys():
                    del outstanding[segment]
                self.client(at, ACK, client, SERVER_BEGINS + 1 + ack * MSS, sack(blocks))
        self.server(now + 1, FIN | ACK, SERVER_BEGINS + 1 + self.segments * MSS, client)

    def client(self, time: float, flags: int, sequence: int, ack: int, options: bytes = b"") -> None:
        self.capture.append((time, packet(CLIENT, SERVER, flags, sequence, ack, options)))

    def server(
        self, time: float, flags: int, sequence: int, ack: int, options: bytes = b"", length: int = 0
    ) -> None:
        self.capture.append(
            (time, packet(SERVER, CLIENT, flags, sequence, ack, options + bytes(length), length))
        )


def report(arrived: set[int]) -> tuple[int, list[range]]:
    """What a receiver acknowledges: the segments before the first gap, and up to three blocks behind it."""
    first = next(it for it in count() if it not in arrived)
    blocks: list[range] = []
    for segment in sorted(it for it in arrived if it > first):
        if blocks and blocks[-1].stop == segment:
            blocks[-1] = range(blocks[-1].start, segment + 1)
        else:
            blocks.append(range(segment, segment + 1))
    return first, blocks[::-1][:3]


def sack(blocks: list[range]) -> bytes:
    if not blocks:
        return b""
    edges = [
        (SERVER_BEGINS + 1 + edge * MSS) % 2**32 for block in blocks for edge in (block.start, block.stop)
    ]
    return bytes((1, 1, 5, 2 + 8 * len(blocks))) + struct.pack(f">{len(edges)}I", *edges)


def packet(
    source: tuple[bytes, int],
    destination: tuple[bytes, int],
    flags: int,
    sequence: int,
    ack: int,
    rest: bytes = b"",
    payload: int = 0,
) -> bytes:
    """An IPv4 packet; `rest` is options, then `payload` bytes."""
    header = 20 + len(rest) - payload
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + 20 + len(rest), 1, 0x4000, 64, 6, 0)
    tcp = struct.pack(
        ">HHIIBBHHH",
        source[1], destination[1], sequence % 2**32, ack % 2**32, header << 2, flags, 4096, 0, 0,
    )  # fmt: skip
    return ip + source[0] + destination[0] + tcp + rest
