"""Endpoints that misbehave, in the real simulator: each ends with a named outcome, and none stops a campaign.

They are the toy of `tests/stacks/toy`, told to misbehave; the real simulator must be built (`make setup`).
"""

import json
from pathlib import Path

import pytest
from conftest import STACKS, Command

from bentpipe import stacks

OUTCOMES = {
    "toy": ("ok", ""),
    "crash": ("crashed", "exit status: 3; it said: toy: told to crash"),
    "hang": ("crashed", "was silent for 2 s"),
    "rubbish": ("crashed", "broke the contract"),
    "late": ("crashed", "broke the contract"),
    "no-driver": ("crashed", "READY: missing field `driver`"),
    "mute": ("handshake_timeout", "timeout of 60 s passed"),
    "wrong-byte": ("corrupt_file", "byte 4999 is not the one served"),
    "truncate": ("missing_file", "2500 of 5000 bytes"),
    "refuse": ("unsupported", "exited with 127"),
    "careless": ("invalid", "careless as server breaks the contract"),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENTPIPE_SILENCE_S", "2")


def test_every_misbehaviour_has_its_outcome(bentpipe: Command, tmp_path: Path) -> None:
    done = bentpipe(
        "run", "--scenario", "goodput", "--client", "toy", "--server", ",".join(OUTCOMES), "--bytes", "5000",
        "--iterations", "2", "--trace", "none", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    records = done.records()
    assert len(records) == 2 * len(OUTCOMES)
    for record in records:
        outcome, detail = OUTCOMES[record["server"]]
        assert (record["server"], record["outcome"]) == (record["server"], outcome), record["detail"]
        assert detail in record["detail"]
    assert len((tmp_path / "A" / "records.jsonl").read_text().splitlines()) == len(records)


def test_a_client_that_stores_nothing_has_a_missing_file(bentpipe: Command) -> None:
    done = bentpipe(
        "run", "--scenario", "goodput", "--client", "no-file", "--server", "toy", "--bytes", "5000",
        "--iterations", "1", "--trace", "none", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    assert [record["outcome"] for record in done.records()] == ["missing_file"]


def test_an_option_value_that_is_not_known_is_unsupported(bentpipe: Command) -> None:
    done = bentpipe(
        "run", "--scenario", "goodput", "--client", "toy:speed=fast", "--server", "toy", "--bytes", "5000",
        "--iterations", "1", "--trace", "median", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    assert [record["outcome"] for record in done.records()] == ["unsupported"]
    assert not Path("A/trials").exists() or not list(Path("A/trials").glob("*/trace.pcapng"))


def test_a_trace_without_secrets_is_said(bentpipe: Command) -> None:
    run = (
        "run", "--scenario", "goodput", "--client", "no-secrets", "--server", "toy", "--bytes", "5000",
        "--iterations", "1", "--no-report", "--json",
    )  # fmt: skip
    for trace, outcome in (("none", "ok"), ("median", "no_secrets"), ("all", "no_secrets")):
        done = bentpipe(*run, "--trace", trace, "--out", trace)
        assert [record["outcome"] for record in done.records()] == [outcome]


def test_a_failed_trial_leaves_what_its_endpoint_said(bentpipe: Command) -> None:
    done = bentpipe(
        "run", "--scenario", "goodput", "--client", "toy", "--server", "crash", "--bytes", "5000",
        "--iterations", "1", "--trace", "none", "--out", "A", "--no-report", "--json",
    )  # fmt: skip
    (record,) = done.records()
    left = "".join(
        file.read_text(errors="replace")
        for file in Path("A/trials", record["trial"]).iterdir()
        if file.is_file()
    )
    assert "told to crash" in left


def failed_checks(bentpipe: Command, stack: str) -> dict[str, str]:
    done = bentpipe("stacks", "test", stack, "--json")
    answer = json.loads(done.out)
    failed = {check["name"]: check["detail"] for check in answer["checks"] if check["passed"] is False}
    assert answer["passed"] is not bool(failed)
    assert done.code == (1 if failed else 0)
    return failed


def test_the_toy_keeps_the_contract(bentpipe: Command) -> None:
    assert failed_checks(bentpipe, "toy") == {}


@pytest.mark.parametrize(
    ("stack", "check", "detail"),
    [
        ("careless", "server: an unknown test case", "it answered READY"),
        ("no-driver", "client: READY is sane", '"driver" is None'),
        ("late", "client: an empty RUN", "are not within [0, 1000000)"),
        ("crash", "100000 bytes over goodput", "told to crash"),
        ("wrong-byte", "100000 bytes over goodput", "corrupt_file"),
        ("refuse", "client: READY is sane", "it exited with 127"),
        ("no-secrets", "TLS secrets", "no_secrets"),
        ("no-secrets", "qlog is written", "found only"),
    ],
)
def test_the_conformance_test_says_what_is_wrong(
    bentpipe: Command, stack: str, check: str, detail: str
) -> None:
    failed = failed_checks(bentpipe, stack)
    found = [text for name, text in failed.items() if name.startswith(check)]
    assert found, failed
    assert detail in found[0]


def test_every_hostile_stack_is_tried() -> None:
    known = {stacks.load(file.parent).name for file in STACKS.glob("*/stack.toml")}
    assert known == {*OUTCOMES, "no-file", "no-secrets"}
