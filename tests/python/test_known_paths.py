"""What one connection has learnt of a path serves the next one: through the gateway of `quic-pep`, and by
BDP frames, which the client keeps.

Over `4sat-large`, 250 Mbit/s and 600 ms, a connection that knows the path sends 10 MiB in its first flight,
where one that does not sends at 19 Mbit/s.
"""

from typing import Any

import pytest
from conftest import Command, installed_or_skip

pytestmark = pytest.mark.virtual_time

FAST = ("--scenario", "4sat-large", "--set", "forward.queue=1BDP")
AGAIN = (*FAST, "--workload", "resumption:2x10MiB")
# A frame reaches the client only while the connection lives.
LONGER = (*FAST, "--workload", "resumption:2x60MB")
OWN = "noq:cc=bentpipe"


@pytest.fixture(autouse=True)
def _there() -> None:
    installed_or_skip("noq")


def known(record: dict[str, Any], place: str) -> dict[str, Any]:
    """What the proxy there says of known paths."""
    (one,) = (it for it in record["proxies"] if it["place"] == place)
    return {name: value for name, value in one["statistics"].items() if "resume" in name or "bdp" in name}


@pytest.mark.parametrize("mode", ["parallel", "warm"])
def test_a_gateway_knows_the_path_to_a_terminal_again(mode: str, bentpipe: Command) -> None:
    ends = ("--client", "noq", "--server", "noq")
    chains = [f"quic-pep=terminal:mode={mode},gateway:mode={mode}{more}" for more in ("", ":resume=off")]
    treatments = [word for chain in chains for word in ("--treatment", chain)]
    with_memory, without = bentpipe.trials(*AGAIN, *ends, *treatments)
    assert with_memory["outcome"] == without["outcome"] == "ok"
    if mode == "parallel":  # else the report is that of the connection that waits for a third client
        said = known(with_memory, "gateway")
        assert said["client_side_resume_ended_as"] == "flight"
        assert said["client_side_resume_flight_bytes_per_second"] * 8 > 150e6
        assert "client_side_resume_ended_as" not in known(without, "gateway")
    assert with_memory["completion_s"] < without["completion_s"] - 0.3


def test_a_client_returns_what_its_server_learnt(bentpipe: Command) -> None:
    on, off = f"{OWN}:bdp-frame=on", f"{OWN}:resume=off"
    words = (*LONGER, "--client", "noq,noq:bdp-frame=on", "--server", f"{on},{off}")
    cold, without_client, without_server, both = sorted(
        bentpipe.trials(*words), key=lambda it: ("bdp" in it["client"]) * 2 + ("bdp" in it["server"])
    )
    assert {one["outcome"] for one in (cold, without_client, without_server, both)} == {"ok"}
    said = both["server_statistics"]
    assert said["bdp_frames_sent"] >= 1 == said["bdp_frames_taken"]
    assert said["bdp_frames_refused"] == 0
    assert said["resume_ended_as"] == "flight" and said["resume_flight_bytes_per_second"] * 8 > 150e6
    # A client that takes no frames is sent none, and nothing else is remembered.
    assert without_client["server_statistics"]["bdp_frames_sent"] == 0
    assert "resume_ended_as" not in without_client["server_statistics"]
    assert "resume_ended_as" not in without_server["server_statistics"]


def test_trials_with_frames_repeat(bentpipe: Command) -> None:
    ends = ("--client", "noq:bdp-frame=on", "--server", f"{OWN}:bdp-frame=on")
    words = (*FAST, "--workload", "resumption:2x1MB", *ends)
    (one,), (other,) = (bentpipe.trials(*words) for _ in range(2))
    assert one["packet_log_hash"] == other["packet_log_hash"]


def test_a_terminal_keeps_frames_for_its_gateway(bentpipe: Command) -> None:
    ends = ("--client", "noq", "--server", "noq")
    chain = "quic-pep=terminal:bdp-frame=on,gateway:bdp-frame=on"
    (one,) = bentpipe.trials(*LONGER, *ends, "--treatment", chain)
    assert one["outcome"] == "ok"
    said = known(one, "gateway")
    assert said["client_side_bdp_frames_taken"] == 1 and said["client_side_resume_ended_as"] == "flight"
    assert known(one, "terminal")["server_side_bdp_frames_sent"] == 1


def test_a_frame_is_for_both_ends_of_a_hop(bentpipe: Command) -> None:
    ends = ("--client", "noq", "--server", "noq")
    done = bentpipe("run", *AGAIN, *ends, "--treatment", "quic-pep=terminal,gateway:bdp-frame=on")
    assert done.code == 2 and "bdp-frame" in done.err and "give it to both" in done.err
