"""Frames with deadlines are proved: a trial is refused whose server or client does or says something else,
and the record says why.

The simulator must be built, and the stacks noq and quinn installed (`make setup`).
"""

from dataclasses import dataclass, field
from pathlib import Path

import misled_noq
import pytest
from conftest import Command, installed_or_skip

pytestmark = pytest.mark.virtual_time

SAT = ("--scenario", "sat")
FREE = ("--scenario", "goodput")
# Half of what the frames need.
SLOW = ("--scenario", "goodput", "--set", "forward.rate=1Mbit/s")


@dataclass(frozen=True)
class Lie:
    """Who is misled, or says something else, and what the record says of it."""

    who: str  # "client", "server" or "both"
    changes: dict[str, object]  # of `mislead.py`
    detail: str
    outcome: str = "unproven"
    over: str = "streams"
    path: tuple[str, ...] = field(default=SAT)


LIES = {
    "slower": Lie("server", {"stream": {"interval_us": 100_000}}, "was due 33.333 ms after it", path=FREE),
    "at-once": Lie("server", {"stream": {"interval_us": 1}}, "made 1 us after the first one", path=FREE),
    "clock-ahead": Lie("server", {"hello": {"epoch_unix_s": 946_684_801}}, "came before it was made"),
    "too-few": Lie("server", {"requests": 10}, "before the time of the last of 90 frames was over"),
    "too-few-datagrams": Lie(
        "server", {"requests": 10}, "before the time of the last of 90 frames was over", over="datagrams"
    ),
    "patient": Lie(
        "server", {"stream": {"deadline_ms": 5000}}, "after the time of its frame was over", path=SLOW
    ),
    "hasty": Lie(
        "server", {"stream": {"deadline_ms": 100}}, "300 ms before the time of the last of 90 frames was over"
    ),
    "datagrams-for-streams": Lie(
        "both", {"stream": {"over": "datagrams"}},
        "expected unidirectional streams alone from the server, saw DATAGRAM frames",
    ),
    "streams-for-datagrams": Lie(
        "both", {"stream": {"over": "streams"}},
        "expected DATAGRAM frames alone from the server, saw unidirectional streams",
        over="datagrams",
    ),
    "other-carrier": Lie(
        "server", {"stream": {"over": "datagrams"}}, "a frame came in a DATAGRAM frame, not on a stream",
        outcome="missing_file",
    ),
    "came-at-once": Lie("client", {"bye": "young"}, "came 0 ms after it was made, and the path takes 300 ms"),
    "came-sooner": Lie("client", {"bye": "sooner"}, "bytes had arrived", over="datagrams"),
    "made-later": Lie("client", {"bye": "later"}, "came before it was made"),
    "never-came": Lie(
        "client", {"bye": "invented"}, "the client reports that it came, and nothing was stored",
        outcome="missing_file",
    ),
    "silent": Lie("client", {"bye": "mute"}, "it was stored, and the client does not report that it came"),
    "half-silent": Lie(
        "client", {"bye": "half"}, "came, but the client does not report when it was made", outcome="crashed"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_who_does_or_says_something_else_is_refused(
    bentpipe: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lie = LIES[name]
    misled_noq.write(tmp_path / "stacks", name, lie.changes, ["transfer", "frames"])
    monkeypatch.setenv("BENTPIPE_STACKS", str(tmp_path / "stacks"))
    client, server = (name if lie.who in (role, "both") else "noq" for role in ("client", "server"))
    words = ["--workload", f"frames:3s:{lie.over}", "--client", client, "--server", server]
    (record,) = bentpipe.trials(*lie.path, *words)
    assert record["outcome"] == lie.outcome, record["detail"]
    assert lie.detail in record["detail"]
    assert record["completion_s"] is None


@pytest.mark.parametrize("treatment", ["direct", "quic-pep"])
@pytest.mark.parametrize("over", ["streams", "datagrams"])
def test_who_is_honest_is_believed(bentpipe: Command, over: str, treatment: str) -> None:
    """On paths that are long, lossy and slow, on which much is late or never comes."""
    for stack in ("noq", "quinn"):
        installed_or_skip(stack)
    words = ["--client", "noq,quinn", "--server", "noq,quinn", "--treatment", treatment]
    paths = (SAT, SLOW, ("--scenario", "geo-tum", "--set", "forward.loss=1%"))
    for number, path in enumerate(paths):
        for one in bentpipe.trials(
            *path, *words, "--workload", f"frames:3s:{over}", "--iterations", "3", "--out", str(number)
        ):
            assert (one["outcome"], one["detail"]) == ("ok", ""), one["trial"]


def test_where_nothing_comes_everything_is_lost(bentpipe: Command) -> None:
    """A frame whose time is over when the first of its packets is lost."""
    installed_or_skip("noq")
    words = ["--scenario", "goodput", "--set", "forward.loss=40%", "--client", "noq", "--server", "noq"]
    all_lost = 0
    for one in bentpipe.trials(*words, "--workload", "frames:34ms:streams:1ms", "--iterations", "10"):
        assert (one["outcome"], one["frames"]) == ("ok", 1), one["detail"]
        assert one["in_time_share"] == 0
        if one["lost_frames"]:
            all_lost += 1
            assert (one["frame_age_median_s"], one["frame_age_max_s"]) == (None, None)
    assert all_lost
