"""The application protocol of a trial: the one that its workload names, or the first that both ends have."""

from __future__ import annotations

from bentpipe.stacks.model import PROTOCOLS, Stack
from bentpipe.workload import TESTCASES


def common(client: Stack, server: Stack, testcase: str = "transfer", wanted: str | None = None) -> str | None:
    """The protocol that both ends speak in this test case, by its ALPN; None if there is none, or it is not
    the one that is `wanted`.
    """
    for alpn in PROTOCOLS if wanted is None else (wanted,):
        if alpn in client.alpn and alpn in server.alpn and alpn in TESTCASES[testcase].protocols:
            return alpn
    return None
