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


def lack(client: Stack, server: Stack, testcase: str = "transfer", wanted: str | None = None) -> str | None:
    """Why there is no common protocol, for a record's `detail`; None if there is one."""
    if common(client, server, testcase, wanted) is not None:
        return None
    if wanted is not None:
        without = next(one for one in (client, server) if wanted not in one.alpn)
        return f"{without.name} does not speak {wanted}, but {' and '.join(without.alpn)}"
    if "h3" in client.alpn and "h3" in server.alpn:
        return f"{client.name} and {server.name} have h3 in common, in which there is no {testcase}"
    client_has, server_has = " and ".join(client.alpn), " and ".join(server.alpn)
    return f"no common protocol: {client.name} speaks {client_has}, {server.name} speaks {server_has}"
