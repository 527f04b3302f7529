"""Pages in browsers, in real time. Left out where a browser, or what serves it, is missing."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import Command
from test_emu import RUN, trusted

from bentpipe.stacks import catalogue

BROWSERS = ("chromium", "firefox")
TSHARK = shutil.which("tshark")
emulated = [pytest.mark.emulated, pytest.mark.usefixtures("namespaces")]


def load(bentpipe: Command, browser: str, *arguments: str) -> list[dict[str, Any]]:
    known = catalogue.discover()
    for stack in (known[browser], known["caddy"]):
        if why := stack.missing("sockets"):
            pytest.skip(f"{why}; {stack.how_to_install}")
    words = ["--iterations", "1", "--trace", "all", "--out", "A", *arguments]
    return trusted(bentpipe(*RUN, *words).records())


def names_asked_for(trace: Path) -> set[str]:
    """The servers' names in the ClientHellos of a trace, as tshark reads them; without it, `server`."""
    if TSHARK is None:
        return {"server"}
    name = "tls.handshake.extensions_server_name"
    command = [TSHARK, "-r", str(trace), "-Y", name, "-T", "fields", "-e", name]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("browser", BROWSERS)
class TestBrowser:
    pytestmark = emulated

    def test_a_page_comes_whole_over_each_version_of_http(self, bentpipe: Command, browser: str) -> None:
        words = ["--scenario", "leo-tum", "--workload", "page:kosek", "--protocol", "h1,h2,h3"]
        records = load(bentpipe, browser, *words, "--client", browser, "--server", "caddy")
        assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 3
        assert [one["alpn"] for one in records] == ["http/1.1", "h2", "h3"]
        first, second, third = (one["requests_at_once"] for one in records)
        assert first <= 6 < min(second, third)
        assert records[0]["connections"] <= 6
        for one in records:
            trace = Path("A/trials") / one["trial"] / "trace.pcapng"
            assert one["stray_packets"] == 0 and names_asked_for(trace) == {"server"}, "its own business"
            assert one["rs_s"] < one["fcp_s"] <= one["lcp_s"] and one["fcp_s"] < one["plt_s"]
            assert one["rs_s"] < one["dcl_s"]
            asked = json.loads((Path("A/trials") / one["trial"] / "requests.json").read_text())
            assert len(asked["requests"]) == 75
            if browser == "chromium":  # Firefox tells no pictures
                assert one["rs_s"] < one["speed_index_s"]
                assert 2 <= len(asked["film"]) <= 24

    def test_a_page_goes_over_to_http3_when_it_is_told_of_it(self, bentpipe: Command, browser: str) -> None:
        words = ["--scenario", "leo-tum", "--workload", "page:kosek", "--protocol", "h2-h3"]
        (record,) = load(bentpipe, browser, *words, "--client", browser, "--server", "caddy")
        assert (record["outcome"], record["detail"], record["stray_packets"]) == ("ok", "", 0)
        asked = json.loads((Path("A/trials") / record["trial"] / "requests.json").read_text())
        over = [one["protocol"] for one in sorted(asked["requests"], key=lambda one: one["asked_s"])]
        assert over[0] == "h2" and over[-1] == "h3" and set(over) == {"h2", "h3"}

    def test_a_page_comes_in_the_clear(self, bentpipe: Command, browser: str) -> None:
        pair = ["--client", f"{browser}:tls=off", "--server", "caddy:tls=off"]
        words = ["--scenario", "goodput", "--workload", "page:api:h1"]
        (record,) = load(bentpipe, browser, *words, *pair)
        assert (record["outcome"], record["detail"]) == ("ok", "")

    def test_later_visits_take_up_the_ticket_of_the_first(self, bentpipe: Command, browser: str) -> None:
        visits = ["h1:resumed", "h2:resumed", "h3:early"]
        words = [word for visit in visits for word in ("--workload", f"page:kuhn-b:{visit}")]
        pair = ["--client", browser, "--server", "caddy"]
        records = load(bentpipe, browser, "--scenario", "leo-tum", *words, *pair)
        assert [(one["outcome"], one["detail"]) for one in records] == [("ok", "")] * 3
        assert all(one["resumed"] and one["stray_packets"] == 0 for one in records)
        assert [one["zero_rtt_bytes"] > 0 for one in records] == [False, False, True]

    def test_what_is_seen_of_a_page_that_does_not_come_is_kept(self, bentpipe: Command, browser: str) -> None:
        # What is said in the clear a server of TLS refuses: soon, however busy the machine is.
        words = ["--scenario", "goodput", "--workload", "page:kuhn-b:h1"]
        (record,) = load(bentpipe, browser, *words, "--client", f"{browser}:tls=off", "--server", "caddy")
        assert record["outcome"] == "missing_file" and "status 400" in record["detail"]
        picture = Path("A/trials") / record["trial"] / "page.png"
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.emulated
@pytest.mark.usefixtures("namespaces")
def test_a_ticket_without_early_data_over_quic_is_chromiums_alone(bentpipe: Command) -> None:
    words = ["--workload", "page:kuhn-b:h3:resumed", "--client", ",".join(BROWSERS), "--server", "caddy"]
    one, other = load(bentpipe, "firefox", "--scenario", "leo-tum", *words)
    assert (one["outcome"], one["resumed"], one["zero_rtt_bytes"]) == ("ok", True, 0), one["detail"]
    assert other["outcome"] == "unsupported"
    assert "over h3 Firefox takes up tickets with early data alone" in other["detail"]


def test_what_no_browser_can_follow_is_not_started(bentpipe: Command) -> None:
    Path("p.toml").write_text(
        'title = "A document with no room"\nsource = "made up"\nresource = [\n'
        '    { path = "/", type = "document", bytes = 10 },\n'
        '    { path = "/a.png", type = "image", bytes = 500, initiator = "/" },\n]\n'
    )
    words = ["--workload", "page:p.toml", "--client", "chromium", "--server", "quic-go", "--out", "A"]
    done = bentpipe(*RUN, "--scenario", "goodput", *words, "--iterations", "1")
    why = "resource 1, a document of 10 bytes, is too small to name the 1 that it leads to"
    assert done.code == 2 and why in done.err
