"""Both sides of many TCP connections at once, for what stands between them.

    tcp_load.py server ADDRESS PORT      until its standard input has ended, and all connections
    tcp_load.py client ADDRESS PORT COUNT BYTES

A client asks for so many bytes on each connection and reads to the end. With 0 bytes it asks for as many as
go through: it prints `under way` when some have come on all. Both print at their end, as JSON, how many of
their connections ended how, and a server from which addresses they came.
"""

from __future__ import annotations

import asyncio
import collections
import json
import socket
import sys

ENDLESS = b"x" * 65_536


def keep_asking(writer: asyncio.StreamWriter) -> None:
    """Notice a peer that is gone even if its reset never counted.

    A kernel that is short of memory drops segments. A reset behind them is out of sequence, and its challenge
    (RFC 5961) is left out if there was another within half a second: who only reads then waits for ever.
    """
    its = writer.get_extra_info("socket")
    its.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
        its.setsockopt(socket.IPPROTO_TCP, option, 1)


async def serve(address: str, port: int) -> None:
    ends: collections.Counter[str] = collections.Counter()
    peers: set[str] = set()
    under_way: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        under_way.add(task)
        keep_asking(writer)
        peers.add(writer.get_extra_info("peername")[0])
        try:
            size = int.from_bytes(await reader.readexactly(8))
            while size == 0:
                writer.write(ENDLESS)
                await writer.drain()
            writer.write(b"x" * size)
            writer.write_eof()
            rest = await reader.read()
            ends["done" if not rest else "odd"] += 1
        except asyncio.IncompleteReadError:
            ends["nothing asked"] += 1
        except ConnectionError as error:
            ends[type(error).__name__] += 1
        finally:
            writer.close()
            under_way.discard(task)

    async with await asyncio.start_server(answer, address, port, backlog=4096) as server:
        print("port", server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        server.close()
        while under_way:
            await asyncio.wait(under_way)
        print(json.dumps({"ends": ends, "peers": sorted(peers)}), flush=True)


async def ask(address: str, port: int, count: int, size: int) -> None:
    left = count

    async def one() -> str:
        nonlocal left
        try:
            reader, writer = await asyncio.open_connection(address, port)
            keep_asking(writer)
            writer.write(size.to_bytes(8))
            got = 0
            while some := await reader.read(65_536):
                if got == 0:
                    left -= 1
                    if left == 0:
                        print("under way", flush=True)
                got += len(some)
            writer.close()
            return "done" if got == size else f"ended after {got} bytes"
        except ConnectionError as error:
            return type(error).__name__

    ends = collections.Counter(await asyncio.gather(*(one() for _ in range(count))))
    print(json.dumps(ends), flush=True)


if __name__ == "__main__":
    side, *words = sys.argv[1:]
    if side == "server":
        asyncio.run(serve(words[0], int(words[1])))
    else:
        asyncio.run(ask(words[0], int(words[1]), int(words[2]), int(words[3])))
