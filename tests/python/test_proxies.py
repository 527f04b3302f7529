"""Kinds of proxies: how they are found and described, and that one of the user's own takes part in trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import NOQ_RUN, Command, installed_or_skip

from bentpipe.errors import UsageError
from bentpipe.plan import treatments
from bentpipe.stacks import proxies

OWN = Path(__file__).resolve().parents[2] / "proxies" / "quic-pep"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project's own proxy under another name, which can only stand at the gateway."""
    folder = tmp_path / "kinds" / "mine"
    folder.mkdir(parents=True)
    text = (OWN / "proxy.toml").read_text()
    for old, new in (
        ('name = "quic-pep"', 'name = "mine"'),
        ('places = ["terminal", "gateway"]', 'places = ["gateway"]'),
        ("seconds = 5", "seconds = 0.5"),
    ):
        assert old in text
        text = text.replace(old, new)
    (folder / "proxy.toml").write_text(text)
    monkeypatch.setenv("BENTPIPE_PROXIES", str(folder.parent))
    proxies.discover.cache_clear()
    yield folder
    monkeypatch.undo()
    proxies.discover.cache_clear()


def test_a_kind_of_the_users_own_takes_part(bentpipe: Command, mine: Path) -> None:
    installed_or_skip("noq")
    done = bentpipe(
        *NOQ_RUN, "--treatment", "direct,mine", "--treatment", "mine=gateway:iw=99", "--json", "--no-report"
    )
    assert [record["treatment"] for record in done.records()] == [
        "direct",
        "mine gateway",
        "mine gateway:iw=99",
    ]
    assert {record["outcome"] for record in done.records()} == {"ok"}, done.err
    assert [len(record["proxies"]) for record in done.records()] == [0, 1, 1]


def test_a_run_is_not_resumed_without_its_kind(
    bentpipe: Command, mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trials would be left out, and their records lost."""
    installed_or_skip("noq")
    assert bentpipe(*NOQ_RUN, "--treatment", "direct,mine", "--out", "A").code == 0
    before = Path("A/records.jsonl").read_text()
    monkeypatch.delenv("BENTPIPE_PROXIES")
    proxies.discover.cache_clear()
    done = bentpipe("run", "--resume", "A", "--retry-failed")
    assert done.code == 2 and "there is no kind of proxies mine here" in done.err
    assert "BENTPIPE_PROXIES" in done.err and Path("A/records.jsonl").read_text() == before


def test_a_run_keeps_the_chain_that_was_meant(bentpipe: Command, mine: Path) -> None:
    """Where a kind can stand may change; a run that began goes on as it was."""
    installed_or_skip("noq")
    assert bentpipe(*NOQ_RUN, "--treatment", "direct,mine", "--out", "A", "--no-report").code == 0
    file = mine / "proxy.toml"
    file.write_text(file.read_text().replace('places = ["gateway"]', 'places = ["terminal", "gateway"]'))
    proxies.discover.cache_clear()
    done = bentpipe("run", "--resume", "A", "--no-report", "--json")
    assert done.code == 0 and "0 trials to run" in done.err, done.err
    assert [record["treatment"] for record in done.records()] == ["direct", "mine gateway"]


def test_what_a_kind_says_of_itself_counts(mine: Path) -> None:
    kind = proxies.discover()["mine"]
    assert kind.default == "gateway" and kind.lead({"mode": "warm"}) == 0.5 and kind.lead({"iw": "9"}) == 0
    assert treatments.labels(["direct", "mine", "quic-pep"], []) == [
        "direct",
        "mine gateway",
        "quic-pep terminal,gateway",
    ]
    with pytest.raises(UsageError, match='unknown place "terminal"'):
        treatments.named(["mine=terminal"], "--treatment")
    with pytest.raises(UsageError, match='unknown treatment "main"') as caught:
        treatments.named(["main"], "--treatment")
    assert 'did you mean "mine"?' in caught.value.hint


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "mine"', 'name = "direct"', "name: 'direct' is not valid"),
        ('transport = "quic"', 'transport = "smoke"', "transport: 'smoke' is not valid"),
        ('places = ["gateway"]', 'places = ["gateway", "terminal"]', "places: "),
        ('title = "QUIC', 'titel = "QUIC', 'unknown key "titel"'),
        ("[commands]", "[commands]\nmoon = []", 'unknown key "commands.moon"'),
        ("seconds = 0.5", "seconds = -1", "lead.seconds: -1 is not valid"),
    ],
)
def test_what_is_wrong_with_a_kind_is_said(mine: Path, old: str, new: str, message: str) -> None:
    text = (mine / "proxy.toml").read_text()
    assert old in text
    (mine / "proxy.toml").write_text(text.replace(old, new))
    with pytest.raises(UsageError) as caught:
        proxies.discover()
    assert message in str(caught.value) and caught.value.hint


def test_a_folder_without_any_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENTPIPE_PROXIES", str(tmp_path))
    proxies.discover.cache_clear()
    with pytest.raises(UsageError, match=r"no proxy\.toml"):
        proxies.discover()
    monkeypatch.undo()
    proxies.discover.cache_clear()
