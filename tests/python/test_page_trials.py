"""Trials that load pages, in virtual time: that all came, in which order of times, and that it repeats."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Command, installed_or_skip

from bentpipe import workload
from bentpipe.errors import UsageError
from bentpipe.workload.page import visit

PAGE = """title = "A document, a style, a font that this leads to, and what a script asks for later"
source = "made up"
resource = [
    { path = "/", type = "document", bytes = 40_000 },
    { path = "/a.css", type = "stylesheet", bytes = 12_000, initiator = "/", found_after = 0.05 },
    { path = "/a.js", type = "script", bytes = 0, initiator = "/", found_after = 0.9 },
    { path = "/a.woff2", type = "font", bytes = 30_000, initiator = "/a.css", wait_ms = 20 },
    { path = "/late?a=1", type = "fetch", bytes = 1, initiator = "/a.js", wait_ms = 3000 },
]
"""


def run(bentpipe: Command, *arguments: str) -> list[dict[str, Any]]:
    return bentpipe.trials(*arguments, "--scenario", "goodput")


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["quinn", "quic-go", "aioquic"])
def test_a_page_is_loaded_over_http3_and_repeats(stack: str, bentpipe: Command) -> None:
    installed_or_skip("noq")
    installed_or_skip(stack)
    pair = ["--client", f"noq,{stack}", "--server", f"noq,{stack}"]
    records = run(bentpipe, "--workload", "page:kosek", *pair, "--out", "A")
    again = run(bentpipe, "--workload", "page:kosek:h3", *pair, "--out", "B")
    assert len(records) == 4
    for one, other in zip(records, again, strict=True):
        assert (one["outcome"], one["detail"], one["alpn"], one["connections"]) == ("ok", "", "h3", 1)
        assert one["ttfb_s"] <= one["rs_s"] <= one["fcp_s"] <= one["dcl_s"] <= one["plt_s"]
        assert one["requests_at_once"] > 6
        assert one["packet_log_hash"] == other["packet_log_hash"]


@pytest.mark.virtual_time
def test_a_page_is_loaded_over_tcp_and_repeats(bentpipe: Command) -> None:
    installed_or_skip("linux")
    words = ["--workload", "page:kosek", "--protocol", "h1,h2"]
    first, second = run(bentpipe, *words, "--out", "A"), run(bentpipe, *words, "--out", "B")
    facts = [(one["outcome"], one["alpn"], one["connections"]) for one in first]
    assert facts == [("ok", "http/1.1", 6), ("ok", "h2", 1)]
    assert first[0]["requests_at_once"] == 6 < first[1]["requests_at_once"]
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in second]
    for one in first:
        assert one["rs_s"] <= one["fcp_s"] <= one["dcl_s"] <= one["plt_s"]
    (clear,) = run(bentpipe, "--workload", "page:api:h1", "--client", "linux:tls=off", "--server",
                   "linux:tls=off", "--out", "C")  # fmt: skip
    assert clear["outcome"] == "ok"
    (refused,) = run(bentpipe, "--workload", "page:api:h2", "--client", "linux:tls=off", "--server",
                     "linux:tls=off", "--out", "D")  # fmt: skip
    assert refused["outcome"] == "unsupported"


@pytest.mark.virtual_time
@pytest.mark.parametrize("server", ["caddy", "nginx"])
def test_web_servers_in_guests_serve_pages_and_repeat(server: str, bentpipe: Command) -> None:
    for name in ("noq", "linux", server):
        installed_or_skip(name)
    words = ["--workload", "page:kosek", "--protocol", "h1,h2,h3", "--client", "noq,linux",
             "--server", server, "--set", "forward.loss=2%", "--ip", "6"]  # fmt: skip
    first, second = run(bentpipe, *words, "--out", "A"), run(bentpipe, *words, "--out", "B")
    assert [one["alpn"] for one in first if one["outcome"] == "ok"] == ["http/1.1", "h2", "h3"]
    assert [one["packet_log_hash"] for one in first] == [one["packet_log_hash"] for one in second]
    assert all(one["forward_losses"] > 0 for one in first)
    pair = ["--client", "linux:tls=off", "--server", f"{server}:tls=off"]
    clear, refused = run(bentpipe, "--workload", "page:api", "--protocol", "h1,h2", *pair, "--out", "C")
    assert (clear["outcome"], refused["outcome"]) == ("ok", "unsupported")


@pytest.mark.virtual_time
@pytest.mark.parametrize("server", ["noq", "quinn", "caddy"])
def test_a_page_is_loaded_again_with_a_ticket_with_early_data_and_from_the_cache(
    server: str, bentpipe: Command
) -> None:
    for name in ("noq", server):
        installed_or_skip(name)
    visits = ("first", "resumed", "early", "early-cached")
    words = ["--workload", ",".join(f"page:api:{visit}" for visit in visits), "--client", "noq",
             "--server", server]  # fmt: skip
    records, again = run(bentpipe, *words, "--out", "A"), run(bentpipe, *words, "--out", "B")
    assert [one["outcome"] for one in records] == ["ok"] * 4, records
    assert [one["packet_log_hash"] for one in records] == [one["packet_log_hash"] for one in again]
    first, resumed, early, cached = records
    assert [one["resumed"] for one in records] == [None, True, True, True]
    assert resumed["rs_s"] == pytest.approx(first["rs_s"], abs=0.005)
    # The path's round trip is 30 ms: one is saved.
    assert early["rs_s"] == pytest.approx(first["rs_s"] - 0.03, abs=0.005)
    assert cached["plt_s"] < early["plt_s"] and cached["size_bytes"] < early["size_bytes"]
    assert first["size_bytes"] == resumed["size_bytes"] - 1000


@pytest.mark.virtual_time
def test_a_page_is_loaded_again_over_tcp_with_a_ticket(bentpipe: Command) -> None:
    installed_or_skip("linux")
    words = ["--workload", "page:api:resumed", "--protocol", "h1,h2"]
    facts = [(one["outcome"], one["resumed"], one["connections"]) for one in run(bentpipe, *words)]
    assert facts == [("ok", True, 7), ("ok", True, 2)]


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "quic-go", "aioquic"])
def test_resources_are_asked_for_when_they_are_found(stack: str, bentpipe: Command) -> None:
    installed_or_skip(stack)
    Path("p.toml").write_text(PAGE)
    pair = ["--client", stack, "--server", stack]
    (record,) = run(bentpipe, "--workload", "page:p.toml", *pair, "--out", "A")
    assert record["outcome"] == "ok" and record["workload"].startswith("page:p.toml#")
    # The last one 3 s after the script, which is a part of the DOM's content.
    assert 3.03 < record["plt_s"] - record["dcl_s"] < 3.2
    # The stylesheet is in the head: one round trip after the document begins.
    assert 0.03 <= record["fcp_s"] - record["rs_s"] < 0.1


@pytest.mark.parametrize(
    ("words", "wrong", "hint"),
    [
        (["--workload", "page:kosek", "--protocol", "h4"], 'unknown version of HTTP "h4"', "h3"),
        (["--protocol", "h3"], "no workload is a page", "--workload page:"),
        (["--workload", "page:kosek,transfer:1MB"], "pages and files are of different stacks", "--client"),
        (["--workload", "page:kosek#12345678"], 'unknown page "kosek#12345678"', "kosek"),
        (["--workload", "page:kepler"], 'unknown page "kepler"', "kosek"),
        (["--workload", "page:kosek:h2:early"], "over HTTP/3 alone", "resumed in place of early"),
        (["--workload", "page:kosek:warm"], '"warm" is neither', "early-cached"),
        (["--workload", "page:kosek:early:resumed"], "more than a page, a version and a visit", "kosek:h3"),
        (["--workload", "page:"], "names no page", "page:"),
        (["--workload", "page:absent.toml"], "there is no such page", "kosek"),
    ],
)  # fmt: skip
def test_mistakes_are_named(words: list[str], wrong: str, hint: str, bentpipe: Command) -> None:
    done = bentpipe("run", *words)
    assert done.code == 2
    assert wrong in done.err and hint in done.err


def test_a_workload_knows_the_file_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(PAGE)
    one = workload.parse("page:p.toml:h2", "w")
    assert isinstance(one, visit.PageVisit)
    assert workload.parse(str(one), "again") == one and one.alpn == "h2"
    assert list(one.files.values()) == [40_000, 12_000, 0, 30_000, 1]
    shown = [(it.initiator, it.found_after_bytes, it.wait_ms, it.urgency) for it in one.resources]
    assert shown == [
        (None, None, 0, 0), (0, 2000, 0, 0), (0, 36_000, 0, 1), (1, None, 20, 0), (2, None, 3000, 1),
    ]  # fmt: skip
    Path("p.toml").write_text(PAGE.replace("3000", "3001"))
    later = workload.parse(str(one), "again")
    assert (later.title, later.measured_of(82_001)) == (one.title, 82_001), "a record can be read"
    with pytest.raises(UsageError, match="not what it was"):
        _ = later.files
    Path("p.toml").unlink()
    with pytest.raises(UsageError, match="No such file"):
        _ = workload.parse(str(one), "again").files


def test_odd_names_of_files_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("my page.toml", "a#b.toml", "x:y.toml", "q?a=1.toml"):
        Path(name).write_text(PAGE)
        for version in ("", ":h1"):
            one = workload.parse(f"page:{name}{version}", "w")
            assert isinstance(one, visit.PageVisit) and one.name == name
            assert one.http == (version[1:] or "h3") and workload.parse(str(one), "again") == one
            assert re.fullmatch(r"/0-40000-[0-9a-f]{6}\.html", one.requests[0]), (
                "what programs are told is plain"
            )


def test_a_campaign_names_pages_from_where_it_is(bentpipe: Command) -> None:
    installed_or_skip("noq")
    Path("deep").mkdir()
    Path("deep/p.toml").write_text(PAGE)
    lines = 'scenarios = ["goodput"]\nclients = ["noq"]\nservers = ["noq"]\nworkloads = ["page:p.toml"]\n'
    Path("deep/mine.toml").write_text(lines)
    words = ["--protocol", "h2,h3", "--iterations", "1", "--bundles", "B"]
    done = bentpipe("run", "deep/mine.toml", *words)
    assert done.code == 0 and "h2" in done.err, "noq does not speak it"
    (file,) = Path("B").glob("*.json")
    assert json.loads(file.read_text())["flows"][0]["alpn"] == "h3"


@pytest.mark.virtual_time
def test_pages_of_one_name_are_not_mixed_up(bentpipe: Command) -> None:
    installed_or_skip("noq")
    for folder, size in (("a", "40_000"), ("b", "50_000")):
        Path(folder).mkdir()
        Path(folder, "p.toml").write_text(PAGE.replace("40_000", size))
    pages = ["--workload", "page:a/p.toml,page:b/p.toml", "--client", "noq", "--server", "noq"]
    first, second = run(bentpipe, *pages, "--out", "A")
    assert (first["outcome"], second["outcome"]) == ("ok", "ok")
    assert second["size_bytes"] - first["size_bytes"] == 10_000
    assert second["forward_bytes"] - first["forward_bytes"] > 9000


@pytest.mark.virtual_time
def test_a_page_that_is_cut_has_no_load_time(bentpipe: Command) -> None:
    installed_or_skip("noq")
    pair = ["--client", "noq", "--server", "noq", "--set", "timeout=2 s"]
    (record,) = run(bentpipe, "--workload", "page:kuhn-a", *pair, "--out", "A")
    assert record["outcome"] == "transfer_timeout"
    assert record["rs_s"] is not None
    assert [record[name] for name in ("plt_s", "completion_s", "share_of_limit", "transfer_s")] == [None] * 4


def test_names_of_protocols_are_in_the_bundle(bentpipe: Command) -> None:
    installed_or_skip("noq")
    pair = ["--client", "noq", "--server", "noq", "--scenario", "goodput"]
    done = bentpipe("run", "--workload", "page:api", *pair, "--iterations", "1", "--bundles", "B")
    assert done.code == 0, done.err
    (file,) = Path("B").glob("*.json")
    (flow,) = json.loads(file.read_text())["flows"]
    assert flow["alpn"] == "h3" and len(flow["page"]) == len(flow["requests"]) == 102


@pytest.mark.virtual_time
def test_a_run_of_pages_ends_with_their_times(bentpipe: Command) -> None:
    installed_or_skip("noq")
    installed_or_skip("linux")
    words = ["--workload", "page:api", "--protocol", "h2,h3", "--treatment", "direct,quic-pep"]
    done = bentpipe("run", "--scenario", "leo-tum", *words, "--iterations", "1", "--no-report", "--out", "A")
    assert done.code == 0, done.err
    (head,) = [line for line in done.out.splitlines() if line.startswith("HTTP")]
    assert "RS FCP DOM PLT at once" in " ".join(head.split())
    rows = [line.split() for line in done.out.splitlines() if line[:2] in ("2 ", "3 ") and "→" in line]
    assert [row[:5] for row in rows] == [
        ["2", "linux", "→", "linux", "direct"],
        ["3", "noq", "→", "noq", "direct"],
        ["3", "noq", "→", "noq", "quic-pep"],
    ], "what cannot be is no line"
    said = [line for line in done.err.splitlines() if "not applicable" in line]
    assert said == [
        "note: not applicable: noq does not speak h2: 2 of 8 combinations",
        "note: not applicable: linux does not speak h3: 2 of 8 combinations",
        "note: not applicable: quic-pep with h2 (TCP): 1 of 8 combinations",
    ]


@pytest.mark.virtual_time
def test_long_treatments_and_flows_beside_pages_can_be_told_apart(bentpipe: Command) -> None:
    installed_or_skip("noq")
    chain = "terminal:cc=newreno:iw=100,gateway:cc=newreno:iw=100"
    words = [
        "--workload",
        "page:kuhn-b",
        "--client",
        "noq",
        "--server",
        "noq",
        "--iterations",
        "1",
        "--no-report",
    ]
    treatments = ["--treatment", "direct", "--treatment", f"quic-pep={chain}"]
    done = bentpipe(
        "run", "--scenario", "leo-tum", *words, *treatments, "--treatment", "quic-pep", "--out", "A"
    )
    assert f"quic-pep (1): quic-pep {chain}" in done.out and "quic-pep (2): " in done.out, done.out
    assert [line.split()[4:6] for line in done.out.splitlines() if line.startswith("3  ")][1:] == [
        ["quic-pep", "(1)"], ["quic-pep", "(2)"],
    ]  # fmt: skip
    beside = bentpipe("run", "--scenario", "leo-tum", *words, "--flow", "start=1s", "--out", "B")
    assert "page kuhn-b beside start=1s" in beside.out, beside.out


@pytest.mark.virtual_time
@pytest.mark.parametrize("stack", ["noq", "quinn"])
def test_a_client_has_no_more_requests_under_way_than_it_is_to(stack: str, bentpipe: Command) -> None:
    """Nor does it wake for what it may not ask for, which would never end."""
    installed_or_skip(stack)
    pair = ["--client", f"{stack}:parallel=3", "--server", stack]
    (record,) = run(bentpipe, "--workload", "page:httparchive-median", *pair, "--out", "A")
    assert (record["outcome"], record["requests_at_once"]) == ("ok", 3)
