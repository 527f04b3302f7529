"""Test cases are proved by what was on the wire: real stacks pass, those that do something else do not.

The simulator must be built, and the stacks noq and quinn installed (`make setup`).
"""

from pathlib import Path
from typing import Any

import misled_noq
import pytest
from conftest import Command

pytestmark = pytest.mark.virtual_time

REAL = ("noq", "quinn")
WORKLOADS = {
    "transfer": "transfer:100kB",
    "handshake": "handshake:1kB",
    "longrtt": "longrtt:1kB",
    "multiplexing": "multiplexing:300x32B",
    "resumption": "resumption:3x50kB",
    "zerortt": "zerortt:3x50kB",
    "upload": "upload:2x50kB",
    "page-resumption": "page:api:resumed",
    "page-zerortt": "page:api:early",
}
ALL = tuple(WORKLOADS)
# Who is misled, how, in which test case, on which path; and what is said of it.
MISLED: dict[str, tuple[str, dict[str, object], str, str, str]] = {
    "one-connection": (
        "client", {"resumption": "transfer"}, "resumption", "sat", "expected two connections, saw 1",
    ),
    "two-connections": (
        "client", {"multiplexing": "resumption"}, "multiplexing", "sat", "expected one connection, saw 2",
    ),
    "no-early-data": (
        "client", {"zerortt": "resumption"}, "zerortt", "sat", "saw a resumed connection without any",
    ),
    "one-hello": (
        "client", {"patient": True}, "longrtt", "longrtt",
        "expected two ClientHellos or more, as the round trip takes 1.5 s; saw 1",
    ),
    "one-visit": (
        "client", {"page-resumption": "page"}, "page-resumption", "sat",
        "expected an earlier visit and one with its ticket; saw 1 connection begin",
    ),
    "no-early-request": (
        "client", {"page-zerortt": "page-resumption"}, "page-zerortt", "sat",
        "saw a resumed connection without any",
    ),
    "early-request": (
        "client", {"page-resumption": "page-zerortt"}, "page-resumption", "sat",
        "expected a ticket and no early data; saw a request in it",
    ),
    # The same flaw where the test case does not ask for a second ClientHello.
    "one-hello-suffices": ("client", {"patient": True}, "handshake", "longrtt", ""),
}  # fmt: skip


def test_a_second_connection_may_begin_when_the_first_byte_comes(bentpipe: Command) -> None:
    """A reply that is one packet has come at the moment at which its client connects again."""
    words = ["--scenario", "sat", "--workload", "resumption:2x100B", "--client", "noq,quinn"]
    done = bentpipe("run", *words, "--server", "noq", "--iterations", "1", "--json", "--out", "A")
    for record in done.records():
        assert (record["outcome"], record["resumed"]) == ("ok", True), record["detail"]
        assert record["completion_s"] > record["handshake_s"] > 0


def run(
    bentpipe: Command, workload: str, scenario: str, client: str, server: str, trace: str = "none"
) -> list[dict[str, Any]]:
    done = bentpipe(
        "run", "--scenario", scenario, "--workload", WORKLOADS[workload],
        "--client", client, "--server", server, "--iterations", "1", "--trace", trace,
        "--no-report", "--json", "--out", f"{workload}-{scenario}",
    )  # fmt: skip
    assert done.code == 0, done.err
    return done.records()


@pytest.mark.parametrize("scenario", ["sat", "satloss", "longrtt"])
@pytest.mark.parametrize("workload", ALL)
def test_real_stacks_prove_every_test_case(bentpipe: Command, workload: str, scenario: str) -> None:
    for record in run(bentpipe, workload, scenario, ",".join(REAL), ",".join(REAL)):
        assert record["outcome"] == "ok", record["detail"]
        two = workload.endswith(("resumption", "zerortt"))
        assert record["connections"] == (2 if two else 1)
        assert record["resumed"] is (True if two else None)
        assert (record["zero_rtt_bytes"] > 0) is workload.endswith("zerortt")
        assert record["completion_s"] > record["handshake_s"]
        assert (record["ttfb_s"] is None) is (workload == "upload")


@pytest.fixture
def misled(bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stack for every way to mislead noq."""
    for name, (_, changes, *_rest) in MISLED.items():
        misled_noq.write(tmp_path / "stacks", name, changes, ALL)
    monkeypatch.setenv("BENTPIPE_STACKS", str(tmp_path / "stacks"))


@pytest.mark.parametrize("trace", ["none", "all"])
@pytest.mark.parametrize("name", MISLED)
@pytest.mark.usefixtures("misled")
def test_a_stack_that_does_something_else_proves_nothing(bentpipe: Command, name: str, trace: str) -> None:
    role, _, workload, scenario, said = MISLED[name]
    client, server = (name, "noq") if role == "client" else ("noq", name)
    [record] = run(bentpipe, workload, scenario, client, server, trace)
    if not said:  # misled in what this test case does not ask for
        assert record["outcome"] == "ok", record["detail"]
        return
    assert record["outcome"] == "unproven", record["detail"]
    assert said in record["detail"]
    assert record["completion_s"] is None
