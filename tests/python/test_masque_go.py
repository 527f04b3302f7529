"""Our client and proxy of `masque` with those of masque-go, each in both roles, over loopback."""

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import children
import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "target" / "release" / "bentpipe-masque"
CERTS = ROOT / "endpoints" / "certs"
SOURCES = Path(__file__).parent / "masque_go"


@pytest.fixture(scope="module")
def masque_go(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their program, built."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go to build masque-go with")
    program = tmp_path_factory.mktemp("masque-go") / "masque-go"
    done = subprocess.run(
        [go, "build", "-o", program, "."],
        cwd=SOURCES,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"masque-go cannot be built here: {done.stderr.strip()[-300:]}")
    return program


@contextmanager
def echo() -> Iterator[int]:
    """A target that sends back what comes; its port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
        target.bind(("127.0.0.1", 0))
        target.settimeout(0.1)
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    data, sender = target.recvfrom(2000)
                except TimeoutError:
                    continue
                target.sendto(b"echo of " + data, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        yield target.getsockname()[1]
        ended.set()
        thread.join()


def echoes(client: socket.socket, data: bytes) -> bool:
    """Sends a datagram; whether its echo comes. As all datagrams it may be lost: the first one comes with its
    request, and theirs may not know of that yet.
    """
    client.send(data)
    try:
        return client.recv(2000) == b"echo of " + data
    except TimeoutError:
        return False


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def ours(place: str, listen: int, next_hop: int, said: dict[str, Any]) -> Iterator[None]:
    """Our client (terminal) or proxy (gateway); `said` has its BYE in the end."""
    hello = {
        "contract": 1,
        "role": "proxy",
        "place": place,
        "options": {},
        "seed": "00",
        "epoch_unix_s": 0,
        "previous_hop": None,
        "listen": f"127.0.0.1:{listen}",
        "local": "127.0.0.1:0",
        "next_hop": f"127.0.0.1:{next_hop}",
        "server_name": "server",
        "alpn": ["h3"],
        "certs": str(CERTS),
        "keylog": None,
        "qlog": None,
    }
    with subprocess.Popen(
        [PROGRAM, "trial"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin and program.stdout
        program.stdin.write(json.dumps(hello))
        program.stdin.close()
        assert program.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            program.terminate()
            said.update(json.loads(program.stdout.read()))


def test_their_client_has_our_proxy_send_datagrams_on(masque_go: Path) -> None:
    said: dict[str, Any] = {}
    listen = free_port()
    with echo() as target, ours("gateway", listen, target, said):
        for asked, answer in [("server", "200\necho of ping\n"), ("other", "server responded with 403\n")]:
            words = [
                str(masque_go),
                "client",
                str(CERTS / "ca.pem"),
                f"127.0.0.1:{listen}",
                f"{asked}:{target}",
            ]
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert (done.stdout or done.stderr.removeprefix("masque: ")) == answer
    counts = said["statistics"]
    assert (counts["received_datagrams_total"], counts["sent_datagrams_total"]) == (1, 1)
    assert (counts["requests_total"], counts["refused_requests_total"]) == (2, 1)


def test_our_client_has_their_proxy_send_datagrams_on(masque_go: Path) -> None:
    said: dict[str, Any] = {}
    listen = free_port()
    with (
        echo() as target,
        subprocess.Popen(
            [masque_go, "proxy", CERTS, f"127.0.0.1:{target}"], stdout=subprocess.PIPE, text=True
        ) as theirs,
    ):
        assert theirs.stdout
        port = int(theirs.stdout.readline().rpartition(":")[2])
        try:
            with (
                ours("terminal", listen, port, said),
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
            ):
                client.connect(("127.0.0.1", listen))
                client.settimeout(1)
                for size in (4, 1200):
                    children.wait_for(f"the echo of {size} bytes", partial(echoes, client, b"x" * size))
        finally:
            theirs.terminate()
    assert said["error"] is None
    counts = said["statistics"]
    assert counts["sent_datagrams_total"] >= counts["received_datagrams_total"] >= 2
