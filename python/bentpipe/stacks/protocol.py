"""The application protocol of a trial in socket mode: `hq-interop` where both ends have it, else HTTP/3."""

from __future__ import annotations

from bentpipe.stacks.model import PROTOCOLS, Stack
from bentpipe.workload import TESTCASES


def common(client: Stack, server: Stack, testcase: str = "transfer") -> str | None:
    """The protocol that both ends speak in this test case, by its ALPN; None if there is none."""
    for alpn in PROTOCOLS:
        if alpn in client.alpn and alpn in server.alpn and (alpn != "h3" or TESTCASES[testcase].in_h3):
            return alpn
    return None


def lack(client: Stack, server: Stack, testcase: str = "transfer") -> str | None:
    """Why there is no common protocol, for a record's `detail`; None if there is one."""
    if common(client, server, testcase) is not None:
        return None
    if "h3" in client.alpn and "h3" in server.alpn:
        return f"{client.name} and {server.name} have h3 in common, in which there is no {testcase}"
    client_has, server_has = " and ".join(client.alpn), " and ".join(server.alpn)
    return f"no common protocol: {client.name} speaks {client_has}, {server.name} speaks {server_has}"
