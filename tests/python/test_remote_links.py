"""Files of links, clocks, allowances: what is known of real links before and beside trials."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.errors import BentpipeError, UsageError
from bentpipe.execution.link_plan import over_links
from bentpipe.execution.remote_executor import RemoteTrials
from bentpipe.execution.remote_results import LeftFiles
from bentpipe.plan.campaign import Plan
from bentpipe.remote import lab
from bentpipe.remote.clock import Exchange, between, offset
from bentpipe.remote.host import HostConnection
from bentpipe.remote.link_notes import by_name
from bentpipe.remote.links import LinkHost, Links
from bentpipe.remote.session import LinkSession
from bentpipe.remote.ssh import HostGone
from bentpipe.remote.traffic import TrafficCount
from bentpipe.runs.trial_files import within

MS = 10**6  # nanoseconds
ROOT = Path(__file__).resolve().parents[2]
LINK = """
[links.geo]
orbit = "GEO"
timeout = "100 s"
[links.geo.client]
host = "one"
[links.geo.server]
host = "two"
ipv4 = "198.51.100.1"
[links.geo.nominal]
delay = "280 ms"
"""


def links(folder: Path, text: str = LINK) -> Links:
    file = folder / "links.toml"
    file.write_text(text)
    return Links(file)


def test_the_example_is_the_laboratory() -> None:
    found = Links(ROOT / "examples" / "links.toml")
    scenario = found.scenario("laboratory")
    assert scenario.label == "laboratory" and scenario.scenario["name"] == "laboratory"
    assert (scenario.summary["forward_rate_bps"], scenario.summary["rtt_ms"]) == (20_000_000, 600.0)
    assert scenario.summary["link"] == {"operator": "bentpipe lab", "orbit": "GEO", "laboratory": True}


def test_hosts_of_the_laboratory_are_found_where_its_cache_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENTPIPE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    link = Links(ROOT / "examples" / "links.toml").named("laboratory")
    config = str(lab.folder() / "ssh_config")
    assert (link.client.ssh_config, link.server.ssh_config) == (config, config)
    assert config.startswith(str(tmp_path))
    assert links(tmp_path).named("geo").client.ssh_config is None
    own = LINK.replace('host = "one"', 'host = "bentpipe-lab-client"\nssh_config = "mine"')
    assert links(tmp_path, own).named("geo").client.ssh_config == "mine"


def test_what_is_not_known_is_not_made_up(tmp_path: Path) -> None:
    summary = links(tmp_path).scenario("geo").summary
    assert (summary["forward_rate_bps"], summary["rtt_ms"], summary["timeout_s"]) == (None, 560.0, 100.0)


@pytest.mark.parametrize(
    ("old", "new", "said", "hint"),
    [
        ('orbit = "GEO"', 'orbit = "geo"', 'links.geo.orbit: "geo" is not valid', "GEO"),
        ('host = "one"', "", 'the key "links.geo.client.host" is missing', "add it"),
        ('host = "one"', 'host = "-oProxyCommand=x"', "links.geo.client.host", "a name without blanks"),
        ('host = "one"', 'host = "one"\nfoot = 1', 'unknown key "links.geo.client.foot"', "keys: host"),
        ('ipv4 = "198.51.100.1"', "", 'the key "links.geo.server.ipv4" is missing', "ipv6"),
        ('host = "one"', 'host = "one"\nport = 70000', "links.geo.client.port: 70000", "a port"),
        (
            'host = "one"',
            'host = "one"\ncontrol_asymmetry_ms = nan',
            "links.geo.client.control_asymmetry_ms: nan is not valid",
            "a number",
        ),
        (
            'host = "two"',
            'host = "two"\ncontrol_asymmetry_ms = -inf',
            "links.geo.server.control_asymmetry_ms: -inf is not valid",
            "a number",
        ),
        ("[links.geo.client]", "[links.geo.weather]\n[links.geo.client]", "links.geo.weather", "one of them"),
        (
            "[links.geo.client]",
            '[links.geo.traffic]\nallowance = "much"\n[links.geo.client]',
            "links.geo.traffic.allowance",
            "",
        ),
        ("links.geo", 'links."a b"', "'a b' is not valid", "letters"),
        ('"198.51.100.1"', '"198.51.100"', "links.geo.server.ipv4: '198.51.100' is not valid", "IPv4"),
        ('"198.51.100.1"', '"2001:db8::1"', "links.geo.server.ipv4: '2001:db8::1' is not valid", "IPv4"),
        ('"198.51.100.1"', '"198.51.100.1"\nlisten = "all"', "server.listen: 'all' is not valid", "an IP"),
    ],
)
def test_what_cannot_be_meant_is_named(tmp_path: Path, old: str, new: str, said: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        links(tmp_path, LINK.replace(old, new))
    assert str(tmp_path / "links.toml") in str(error.value)
    assert said in str(error.value)
    assert hint in error.value.hint


def test_a_nominal_figure_that_is_none_is_named(tmp_path: Path) -> None:
    found = links(tmp_path, LINK + 'forward_rate = "20 furlongs"\n')
    with pytest.raises(UsageError, match=r"links\.geo\.nominal.*20 furlongs"):
        found.scenario("geo")


def test_plans_over_links_have_what_can_be_done_there(tmp_path: Path) -> None:
    file = str(links(tmp_path).file)
    plan = Plan(
        name="p", scenarios=("sat",), clients=("quinn",), servers=("noq",), testbed="remote", link=file
    )
    assert over_links(plan, are_named=False).scenarios == ("geo",)
    for change, said in (
        ({"testbed": "sim"}, "--link"),
        ({"link": ""}, "there is no link"),
        ({"set": ("forward.loss=1%",)}, "--set"),
        ({"treatments": ("quic-pep=terminal,gateway",)}, "nothing stands between"),
        ({"workloads": ("duration:30s",)}, "files alone"),
        ({"ip": 6}, "no ipv6"),
    ):
        values = {name: getattr(plan, name) for name in plan.__struct_fields__} | change
        with pytest.raises(UsageError, match=said):
            over_links(Plan(**values), are_named=False)
    with pytest.raises(UsageError, match='no link "sat"'):
        over_links(plan, are_named=True)
    links(tmp_path, LINK + '[links.geo.weather]\nfile = "weather.json"\n')
    with pytest.raises(UsageError, match=r"weather\.file: there is no file"):
        over_links(plan, are_named=False)
    (tmp_path / "weather.json").write_text("{}")
    over_links(plan, are_named=False)


def test_who_asks_for_the_laboratory_is_told_to_start_it(tmp_path: Path) -> None:
    server = 'host = "two"\nssh_config = "lab/ssh_config"'
    text = LINK.replace("[links.geo]", "[links.geo]\nlaboratory = true").replace('host = "two"', server)
    found = links(tmp_path, text.replace('host = "one"', 'host = "one"\nssh_config = "lab/ssh_config"'))
    with pytest.raises(HostGone, match="cannot be reached") as gone:
        LinkSession(found, "geo")
    assert gone.value.hint.endswith("bentpipe lab")


def host_that_says(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> HostConnection:
    """A connection to a host that answers the greeting, and then says this."""
    fake = folder / "ssh"
    fake.write_text(f"#!/bin/sh\nread -r line\necho '{{}}'\nread -r line\necho '{text}'\nexec sleep 30\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return HostConnection("client", LinkHost(host="one"), folder)


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"id": 99}', '{"event": "ready"}', '{"bytes": "1"}'])
def test_a_host_that_answers_nonsense_is_left(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = host_that_says(text, tmp_path, monkeypatch)
    with pytest.raises(HostGone, match="answers nonsense"):
        connection.ask("facts")
    connection.close()


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../out", "", ".", "a\0b"])
def test_no_name_leads_out_of_a_trials_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(BentpipeError, match="leads out"):
        within(tmp_path, name)
    assert within(tmp_path, "qlog/client/..x") == tmp_path / "qlog" / "client" / "..x"


def exchanges(
    ahead_ns: float, drift: float, seconds: int, ways_ns: tuple[int, int] = (100_000, 100_000), seed: int = 1
) -> list[Exchange]:
    """One each second, over ways there and back that are each held up by up to 3 ms."""
    draw = Random(seed)
    there_ns, back_ns = ways_ns
    found = []
    for second in range(seconds):
        asked = second * 10**9
        there = asked + there_ns + draw.randrange(3_000_000)
        back = there + 20_000 + back_ns + draw.randrange(3_000_000)
        ahead = ahead_ns + drift * asked
        found.append(Exchange(asked, round(there + ahead), round(there + 20_000 + ahead), back))
    return found


def test_offsets_are_those_of_the_fastest_exchanges() -> None:
    found = offset(exchanges(50e6, 0.0, 60))
    assert abs(found.offset_ns - 50e6) < 1e6
    assert abs(found.at(30 * 10**9) - 50e6) <= found.error_ns


def test_an_offset_is_not_further_off_than_it_says() -> None:
    """Only one exchange is fast, and all that held up the others was on the way back."""
    slow = [Exchange(at, at + 1000, at + 1000, at + 9_001_000) for at in range(0, 40_000_000, 10_000_000)]
    found = offset([Exchange(50_000_000, 50_001_000, 50_001_000, 50_002_000), *slow])
    assert 0 < abs(found.offset_ns) <= found.error_ns


def test_clocks_that_drift_are_followed() -> None:
    found = offset(exchanges(-3e6, 20e-6, 600))
    assert abs(found.at(0) + 3e6) < 1e6
    assert abs(found.at(600 * 10**9) - (-3e6 + 12e6)) < 1e6


@given(
    ahead_ms=st.integers(-1000, 1000),
    least_ms=st.integers(0, 300),
    asymmetry_ms=st.integers(-300, 300),
    wrong=st.floats(-0.1, 0.1),
    seed=st.integers(0, 1000),
)
def test_unequal_ways_are_accounted_for_where_they_are_told(
    ahead_ms: int, least_ms: int, asymmetry_ms: int, wrong: float, seed: int
) -> None:
    """Within 1 ms and one tenth of what was told, which may be wrong by as much; the bound holds."""
    ways_ns = ((least_ms + max(asymmetry_ms, 0)) * MS, (least_ms + max(-asymmetry_ms, 0)) * MS)
    told_ns = asymmetry_ms / (1 + wrong) * MS
    found = offset(exchanges(ahead_ms * MS, 0.0, 100, ways_ns, seed), told_ns)
    off_ns = abs(found.offset_ns - ahead_ms * MS)
    assert off_ns <= MS + abs(told_ns) / 10
    assert off_ns <= found.error_ns


def test_ways_cannot_differ_by_more_than_both_take(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"an exchange took .* ms, there and back"):
        offset(exchanges(0.0, 0.0, 60), 20.0 * MS)
    found = links(tmp_path, LINK.replace('host = "two"', 'host = "two"\ncontrol_asymmetry_ms = -20'))
    session = LinkSession.__new__(LinkSession)
    session.name, session.links, session.link = "geo", found, found.named("geo")
    host: Any = SimpleNamespace(connection=SimpleNamespace(exchanges=exchanges(0.0, 0.0, 60)))
    session.places = {"client": host, "server": host}
    with pytest.raises(BentpipeError, match=r"links\.geo\.server\.control_asymmetry_ms: -20 cannot be"):
        session.clock()


def test_two_clocks_are_compared_by_a_third() -> None:
    client, server = offset(exchanges(10e6, 0.0, 30)), offset(exchanges(60e6, 0.0, 30))
    found = between(client, server)
    assert abs(found.offset_ns - 50e6) < 1e6
    assert found.error_ns == client.error_ns + server.error_ns


def test_a_hosts_files_stay_in_the_trials_folder(tmp_path: Path) -> None:
    """A host names the files that it has, and may name what it likes."""
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "1MB").write_text("served")
    host = SimpleNamespace(
        ask=lambda _do, path: {"files": [{"path": "../../../out", "sha256": "0"}]}, get=lambda _path: b"x"
    )
    session: Any = SimpleNamespace(on=lambda _role: host)
    flow = SimpleNamespace(testcase="transfer", requests=("/1MB",))
    trial: Any = SimpleNamespace(flows=(flow,), www=tmp_path / "www", qlog=False)
    left = LeftFiles(session, trial, tmp_path / "a" / "b")
    with pytest.raises(BentpipeError, match="leads out"):
        left.fetch(captures=False)
    assert not (tmp_path / "a" / "out").exists() and not (tmp_path / "out").exists()


def test_files_whose_names_are_no_text_are_told(tmp_path: Path) -> None:
    """They are none that were asked for: a trial does without them."""
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "1MB").write_text("served")
    (tmp_path / "scratch" / "0").mkdir(parents=True)
    file = {"path": "downloads/1MB", "sha256": hashlib.sha256(b"served").hexdigest()}
    here = {"trial/downloads": [{**file, "path": "1MB"}], "trial": [file]}
    names = [f"qlog/{number}\n\ufffd" for number in range(5)]
    host = SimpleNamespace(ask=lambda _do, path: {"files": here[path], "unreadable": names})
    session: Any = SimpleNamespace(on=lambda _role: host)
    flow = SimpleNamespace(testcase="transfer", requests=("/1MB",))
    trial: Any = SimpleNamespace(flows=(flow,), www=tmp_path / "www", qlog=False, folder=tmp_path)
    left = LeftFiles(session, trial, tmp_path / "scratch")
    left.fetch(captures=False)
    assert (tmp_path / "scratch" / "0" / "downloads" / "1MB").read_text() == "served"
    first = ", ".join(f"'qlog/{number}\\n\ufffd'" for number in range(3))
    told = f"5 files of the {{}} were left there, whose names are no text: {first}, …"
    assert left.details == [told.format("client"), told.format("server")]


class CutTrials(RemoteTrials):
    """Trials of which each breaks its connection."""

    tries = 0

    def _session(self, _name: str) -> Any:
        return SimpleNamespace()

    def _try(self, _session: Any, _trial: Any, number: int) -> dict[str, Any]:
        self.tries = number
        raise HostGone("the client's host one is gone: nothing came for 12 s")


def test_a_trial_that_is_cut_in_every_try_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "1MB").write_bytes(b"x" * 10**6)
    found, noted = links(tmp_path), list[str]()
    trials = CutTrials(found, tmp_path, noted.append)
    flow = SimpleNamespace(requests=("/1MB",))
    trial: Any = SimpleNamespace(scenario={"name": "geo"}, flows=(flow,), www=tmp_path)
    answer = trials.run(trial)
    assert (trials.tries, answer.values, answer.killed) == (3, None, False)
    lost = "the client's host one is gone: nothing came for 12 s"
    assert answer.failure == f"the connection broke 3 times; at last: {lost}"
    assert [note.rpartition(": ")[2] for note in noted] == ["the trial runs again"] * 2 + ["enough"]
    assert TrafficCount(found, "geo").used_bytes == 3 * 1_150_000  # what went over nobody counted


def test_traffic_is_counted_over_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    found = links(tmp_path, LINK + '[links.geo.traffic]\nallowance = "10 MB"\n')
    TrafficCount(found, "geo").add(6_000_000)
    count = TrafficCount(found, "geo")
    assert count.used_bytes == 6_000_000
    assert count.lacks(5_000_000) and not count.lacks(3_000_000)
    for nonsense in ("", "[]", '{"ever": null}'):
        count.file.write_text(nonsense)
        with pytest.raises(UsageError, match="how many bytes"):
            count.lacks(0)


def test_statistics_become_columns_by_name() -> None:
    said = {"snr_db": 11.5, "modem": {"locked": True, "modcod": "8psk"}, "list": [1], "none": None}
    assert by_name(said) == {"snr_db": 11.5, "modem.locked": 1, "modem.modcod": "8psk", "none": None}
    assert by_name("no JSON") == {}
