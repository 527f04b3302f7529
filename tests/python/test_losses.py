"""`bentpipe losses`: what is fitted from a trial's trace is what its scenario says, within its interval."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from captured_sides import begun_midway, secrets_of, sides_of
from conftest import Command

from bentpipe.plan import scenarios

pytestmark = pytest.mark.virtual_time

WIFI = '{ model = "gilbert-elliott", p_bad_given_good = "1.8 %", p_bad_given_bad = "35.5 %" }'
HIDDEN = (
    '{ model = "gilbert-elliott", p_bad_given_good = "1 %", p_bad_given_bad = "90 %",'
    ' loss_in_good = "0.5 %", loss_in_bad = "50 %" }'
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


# A round trip of 30 ms, so that many packets pass in spite of losses, and no drops by the queue.
SHORT = ("--set", "forward.queue=36MB", "--set", "timeout=3600s")


def run(bentpipe: Command, name: str, *arguments: str, size: str = "1MB", scenario: str = "satloss") -> Path:
    """The trace of a trial."""
    done = bentpipe(
        "run", "--scenario", scenario, "--client", "noq", "--server", "noq", "--bytes", size, "--iterations",
        "1", "--trace", "all", "--no-report", "--out", name, "--json", *arguments,
    )  # fmt: skip
    (record,) = done.records()
    assert record["outcome"] == "ok"
    return Path(name) / "trials" / str(record["trial"]) / "trace.pcapng"


def fitted(bentpipe: Command, *files: Path) -> dict[str, Any]:
    done = bentpipe("losses", *files, "--json")
    assert (done.code, done.err) == (0, "")
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def holds(estimate: dict[str, float], value: float) -> bool:
    return estimate["low"] <= value <= estimate["high"]


def test_uniform_losses_round_trip(bentpipe: Command) -> None:
    trace = run(bentpipe, "run", size="20MB")
    answer = fitted(bentpipe, trace)
    record = json.loads(Path("run/records.jsonl").read_text())
    for direction in ("forward", "return"):
        one = answer[direction]
        assert holds(one["rate"], 0.01) and one["preferred"] == "uniform"
        counted = one["packets"] + one["queue_drops"] + one["undecided"]
        assert counted == record[f"{direction}_packets"]
        assert one["unexplained"] == 0, "the trace says what a queue dropped"
        assert one["periodicity"]["period_s"] is None

    done = bentpipe("losses", trace.parent, "--scenario-out", "fitted.toml")
    assert (done.code, done.err) == (0, "") and done.out.endswith("fitted.toml\n")
    assert max(map(len, done.out.splitlines())) <= 100
    found = scenarios.resolve("fitted.toml").scenario
    assert found["satellite"]["forward"]["rate"] == "20 Mbit/s"
    rate = answer["forward"]["rate"]["value"]
    assert float(found["satellite"]["forward"]["loss"].removesuffix(" %")) == pytest.approx(rate * 100, 1e-4)
    assert run(bentpipe, "again", scenario="fitted.toml").is_file()


def test_gilbert_round_trips(bentpipe: Command) -> None:
    """Kuhn's Wi-Fi forward: P(b|g) 1.8 %, P(g|b) 64.5 %."""
    words = ("--set", f"forward.loss={WIFI}", *SHORT)
    trace = run(bentpipe, "run", *words, scenario="goodput", size="20MB")
    one = fitted(bentpipe, trace)["forward"]
    fit = one["simplified_gilbert"]
    assert one["preferred"] == "simplified_gilbert"
    assert holds(fit["p_bad_given_good"], 0.018) and holds(fit["p_good_given_bad"], 0.645)
    assert holds(fit["mean_burst"], 1 / 0.645) and holds(one["rate_in_bursts"], 0.018 / (0.018 + 0.645))
    assert one["tests"]["independent"] == "no" and one["tests"]["markov"] == "yes"

    bentpipe("losses", trace, "--scenario-out", "fitted.toml")
    again = run(bentpipe, "again", scenario="fitted.toml", size="20MB")
    second = fitted(bentpipe, again)["forward"]["simplified_gilbert"]
    assert holds(second["p_bad_given_good"], fit["p_bad_given_good"]["value"])
    assert holds(second["p_good_given_bad"], fit["p_good_given_bad"]["value"])


def test_gilbert_elliott_round_trips(bentpipe: Command) -> None:
    words = ("--set", f"forward.loss={HIDDEN}", *SHORT)
    trace = run(bentpipe, "run", *words, scenario="goodput", size="20MB")
    one = fitted(bentpipe, trace)["forward"]
    fit = one["gilbert_elliott"]
    assert one["preferred"] == "gilbert_elliott" and one["tests"]["markov"] == "no"
    assert holds(fit["p_bad_given_good"], 0.01) and holds(fit["p_good_given_bad"], 0.1)
    assert holds(fit["loss_in_good"], 0.005) and holds(fit["loss_in_bad"], 0.5)

    bentpipe("losses", trace, "--direction", "forward", "--scenario-out", "fitted.toml")
    found = scenarios.resolve("fitted.toml").scenario["satellite"]
    assert found["forward"]["loss"]["model"] == "gilbert-elliott"
    assert found["return"]["loss"] == "none", "that direction was not asked for"


def test_two_captures_say_what_the_trace_says(bentpipe: Command) -> None:
    """But for what a queue dropped, which nothing tells in them, and secrets, which nothing needs."""
    trace = run(bentpipe, "run", "--set", "forward.queue=36MB", size="5MB")
    client, server = sides_of(trace, Path())
    whole, two = fitted(bentpipe, trace), fitted(bentpipe, server, client)
    for direction in ("forward", "return"):
        assert whole[direction]["queue_drops"] == 0
        for key in ("packets", "losses", "simplified_gilbert", "bursts", "gaps", "tests"):
            assert two[direction][key] == whole[direction][key]
        assert two[direction]["unexplained"] == two[direction]["losses"]
    done = bentpipe("losses", client, server, "--scenario-out", "fitted.toml", "--return-rate", "2 Mbit/s")
    assert done.code == 0
    assert "the capture does not tell losses from drops by a queue" in done.out
    found = scenarios.resolve("fitted.toml")
    assert found.scenario["satellite"]["return"]["rate"] == "2 Mbit/s"
    assert found.summary["rtt_ms"] == pytest.approx(600, abs=5)
    assert 5e5 < found.summary["forward_rate_bps"] <= 20.1e6, "what arrived, which is less than there is"
    assert "the path has at least that" in found.summary["notes"]


def test_secrets_find_a_connection_whose_beginning_was_not_captured(bentpipe: Command) -> None:
    trace = run(bentpipe, "run", size="3MB")
    whole = sides_of(trace, Path())
    midway = [begun_midway(side, 60, 4433) for side in whole]
    done = bentpipe("losses", *midway)
    assert done.code == 2
    assert "nor QUIC on port 443\nhint: --keylog KEYS finds one on another port" in done.err
    Path("keys.log").write_bytes(secrets_of(trace))
    found = json.loads(bentpipe("losses", *midway, "--keylog", "keys.log", "--json").out)
    expected = fitted(bentpipe, *whole)
    for direction in ("forward", "return"):
        missing = expected[direction]["packets"] - found[direction]["packets"]
        assert 0 < missing <= 120, "no more than what was cut off at either side"
        assert found[direction]["packets"] > 0
    done = bentpipe("losses", *midway, "--keylog", "no.log")
    assert done.code == 2 and "--keylog: no.log: there is no such file" in done.err


def test_no_losses_are_no_numbers(bentpipe: Command) -> None:
    trace = run(bentpipe, "run", scenario="4sat-small")
    answer = fitted(bentpipe, trace)
    for direction in ("forward", "return"):
        one = answer[direction]
        assert one["losses"] == 0 and one["gilbert_elliott"] is None and one["tests"] is None
    done = bentpipe("losses", trace, "-o", "none.svg", "--scenario-out", "fitted.toml")
    assert (
        done.code == 0 and "no losses: there is nothing to fit" in done.out and "nan" not in done.out.lower()
    )
    assert Path("none.svg").stat().st_size > 1000
    assert scenarios.resolve("fitted.toml").scenario["satellite"]["forward"]["loss"] == "none"


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_it_is_drawn(bentpipe: Command, ending: str) -> None:
    trace = run(bentpipe, "run")
    done = bentpipe("losses", trace, "-o", f"losses.{ending}")
    assert (done.code, done.err) == (0, "")
    first = Path(f"losses.{ending}").read_bytes()
    bentpipe("losses", trace, "-o", f"losses.{ending}")
    assert Path(f"losses.{ending}").read_bytes() == first, "the same losses, the same bytes"


def test_mistakes_are_named(bentpipe: Command) -> None:
    trace = run(bentpipe, "run")
    other = run(bentpipe, "other", "--seed", "7")
    client, server = sides_of(trace, Path())
    Path("elsewhere").mkdir()
    _, stranger = sides_of(other, Path("elsewhere"))
    Path("text.pcap").write_text("this is no capture, but a text")
    Path("there.toml").write_text("")
    for arguments, error in (
        (["missing.pcap"], "missing.pcap: there is no such file or folder"),
        (["text.pcap", server], "text.pcap: "),
        (
            [client],
            "client.pcapng: its connections were captured at one place, which does not see what is lost",
        ),
        ([client, client], "client.pcapng and client.pcapng are the same capture\nhint: "),
        ([client, stranger], "client.pcapng, server.pcapng: no connection is in both of them\nhint: "),
        ([client, server, trace], "3 files: a path has two sides\nhint: "),
        (["run"], "run: there is no trace.pcapng in it\nhint: "),
        ([trace, "-o", "losses.txt"], '-o: losses.txt: unknown ending ".txt"\nhint: '),
        ([trace, "--scenario-out", "fitted"], '--scenario-out: fitted: unknown ending ""\nhint: '),
        ([trace, "--scenario-out", "there.toml"], "--scenario-out: there.toml is there already\nhint: "),
        ([trace, "--force"], "--force are for a scenario\nhint: "),
        (
            [trace, "--scenario-out", "new.toml", "--forward-rate", "1 Mbit/s"],
            "whose run knows its path\nhint: ",
        ),
    ):
        done = bentpipe("losses", *arguments)
        assert done.code == 2, done.err
        assert done.err.startswith("error: ") and error in done.err
    done = bentpipe("losses", trace, "--scenario-out", "there.toml", "--force")
    assert done.code == 0 and scenarios.resolve("there.toml")


def test_a_figure_alone_loads_what_draws() -> None:
    code = "import sys, bentpipe.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.virtual_time
def test_with_proxies_each_hop_has_its_own_losses(bentpipe: Command) -> None:
    """The loss is beside the satellite: in the client's hop, and the satellite stays as it was."""
    words = ["--scenario", "cnes-250-3-loss1", "--client", "noq", "--server", "noq", "--bytes", "2MB"]
    words += ["--treatment", "quic-pep", "--iterations", "1", "--trace", "all", "--no-report", "--out", "run"]
    assert bentpipe("run", *words).code == 0
    (trial,) = Path("run/trials").iterdir()
    assert bentpipe("losses", trial, "--scenario-out", "client.toml").code == 0
    client = tomllib.loads(Path("client.toml").read_text())
    assert client["access"]["forward"]["loss"] not in ("none", "1 %")
    assert client["satellite"]["forward"]["loss"] == "none"
    hop = trial / "trace-terminal-gateway.pcapng"
    assert bentpipe("losses", hop, "--scenario-out", "hop.toml").code == 0
    satellite = tomllib.loads(Path("hop.toml").read_text())
    assert satellite["access"]["forward"]["loss"] == "1 %", "another hop's"
    assert satellite["satellite"]["forward"]["rate"] == "250 Mbit/s"
    assert "none of" in satellite["notes"]
    both = bentpipe("losses", trial / "trace.pcapng", hop)
    assert both.code == 2 and "both sides of its path already" in both.err
    rate = bentpipe("losses", hop, "--scenario-out", "x.toml", "--forward-rate", "garbage")
    assert rate.code == 2 and "whose run knows its path" in rate.err
