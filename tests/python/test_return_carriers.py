"""Return carriers of DVB-RCS2, from a scenario to a record."""

from __future__ import annotations

from conftest import Command

NOQ = ("--client", "noq", "--server", "noq", "--iterations", "1", "--no-report", "--json")


def test_a_record_says_what_became_of_requests(bentpipe: Command) -> None:
    (plain,) = bentpipe("run", "--scenario", "sat", "--bytes", "1MB", *NOQ).records()
    assert plain["return_capacity_requests"] is None and plain["return_grant_wait_max_ms"] is None

    # Half of the requests are lost, and a third of the others denied.
    words = (
        "--set", "return.rate.request_loss=50%", "--set", "return.rate.request_denial=33%",
        "--scenario", "rcs2-shared", "--bytes", "1MB", *NOQ,
    )  # fmt: skip
    one, again = (bentpipe("run", *words).records()[0] for _ in range(2))
    assert one["outcome"] == "ok" and one["packet_log_hash"] == again["packet_log_hash"]
    sent, lost, denied, collided = (
        one[f"return_capacity_requests{what}"] for what in ("", "_lost", "_denied", "_collided")
    )
    assert lost > 0 and denied > 0 and sent > lost + denied + collided
    # A request is granted after 550 ms, rounded up to a superframe, or later if none of its slots is there.
    assert 550 <= one["return_grant_wait_mean_ms"] <= one["return_grant_wait_max_ms"]
    assert one["return_losses"] == 0 and one["return_source_packets"] > 0
