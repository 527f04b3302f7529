"""`--pause-between`: hours in which no trial starts."""

from datetime import datetime
from pathlib import Path

import pytest
from conftest import TOY_RUN, Command

from bentpipe.errors import UsageError
from bentpipe.execution import scheduler
from bentpipe.execution.pause import Pause

pytestmark = pytest.mark.usefixtures("fake_sim")


@pytest.mark.parametrize(
    ("text", "at", "inside"),
    [
        ("08:00-18:00", "07:59", False),
        ("08:00-18:00", "08:00", True),
        ("08:00-18:00", "17:59", True),
        ("08:00-18:00", "18:00", False),
        ("22:00-06:00", "23:00", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
        ("22:00-06:00", "12:00", False),
    ],
)
def test_a_pause_holds_from_its_start_to_before_its_end(text: str, at: str, inside: bool) -> None:
    moment = datetime.strptime(f"2026-01-01 {at}", "%Y-%m-%d %H:%M")
    assert Pause.parse(text).holds(moment) is inside


@pytest.mark.parametrize("text", ["", "08:00", "8-18", "08:00-08:00", "08:00-24:00", "08:00-09:00-10:00"])
def test_what_is_no_pause(text: str) -> None:
    with pytest.raises(UsageError, match="--pause-between"):
        Pause.parse(text)


def test_no_trial_starts_in_a_pause(
    bentpipe: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The clock jumps over the pause after a while; until then no trial has started."""
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_SIM", "log")
    monkeypatch.setenv("FAKE_SIM_LOG", str(log))
    asked: list[bool] = []

    class Clock:
        @staticmethod
        def now() -> datetime:
            asked.append(log.exists())
            return datetime(2026, 1, 1, 9 if len(asked) < 4 else 20)

    monkeypatch.setattr(scheduler, "datetime", Clock)
    done = bentpipe(*TOY_RUN, "--iterations", "2", "--trace", "none", "--pause-between", "08:00-18:00")
    assert done.code == 0, done.err
    assert asked[:4] == [False] * 4
    assert done.err.count("paused until 18:00") == 1
    assert len(log.read_text().splitlines()) == 2
