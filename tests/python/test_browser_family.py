"""What browsers share: what the environment asks for, and when a page is over. No browser is started."""

from __future__ import annotations

import io
import json
import math
import socket
import sys
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "endpoints" / "browser-family"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "endpoints" / "chromium"))

from connected_sockets import connected_sockets
from film import MOST, Film, FilmFrame
from page_job import Refusal, read
from page_load import QUIET_S, PageLoad

FOUR = {"/0.html": None, "/1.css": 0, "/2.js": 0, "/3.json": 2}


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a page of four resources, one of which a script asks for half a second later."""
    page = [
        {"initiator": initiator, "found_after_bytes": None, "wait_ms": 500 if initiator == 2 else 0}
        for initiator in FOUR.values()
    ]
    (tmp_path / "page.json").write_text(json.dumps(page))
    for name, value in {
        "ROLE": "client",
        "TESTCASE": "page",
        "BENTPIPE_ALPN": "h3",
        "REQUESTS": " ".join(f"https://[2001:db8::1]:443{path}" for path in FOUR),
        "DOWNLOADS": str(tmp_path),
        "CERTS": str(tmp_path),
        "PAGE": str(tmp_path / "page.json"),
        "REPORT": str(tmp_path / "report.json"),
    }.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_urls_name_the_server_and_its_resources(asked: pytest.MonkeyPatch) -> None:
    job = read()
    assert (job.address, job.port, job.url(0)) == ("2001:db8::1", 443, "https://server/0.html")
    numbers = ["https://server/1.css", "https://server:443/3.json", "https://server/favicon.ico"]
    assert [job.number_of(url) for url in numbers] == [1, 3, None]
    assert job.number_of("https://example.org/1.css") is None
    asked.setenv("BENTPIPE_ALPN", "http/1.1")
    asked.setenv("BENTPIPE_OPTIONS", "tls=off")
    assert read().url(0) == "http://server:443/0.html"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("ROLE", "server", "a browser is a client"),
        ("TESTCASE", "transfer", "a browser loads pages alone"),
        ("BENTPIPE_ALPN", "hq-interop", "want one of http/1.1, h2, h3"),
        ("BENTPIPE_OPTIONS", "cc=cubic", "want tls=on|off"),
        ("BENTPIPE_OPTIONS", "tls=off", "there is h3 over TLS alone"),
        ("REQUESTS", "", "REQUESTS is not set"),
        ("TESTCASE BENTPIPE_ALPN", "page-zerortt h2", "browsers have early data over h3 alone"),
        (
            "TESTCASE BENTPIPE_ALPN BENTPIPE_OPTIONS",
            "page-resumption http/1.1 tls=off",
            "no tickets without TLS",
        ),
    ],
)
def test_what_there_is_not_is_refused(asked: pytest.MonkeyPatch, name: str, value: str, why: str) -> None:
    for one, its in zip(name.split(), value.split() or [""], strict=True):
        asked.setenv(one, its)
    with pytest.raises(Refusal, match=why.replace("|", r"\|")):
        read()


def load(*paths: str) -> PageLoad:
    """A page of which these resources have been asked for."""
    found = PageLoad(read())
    for path in paths:
        assert found.begin(path, f"https://server{path}")
    return found


@pytest.mark.usefixtures("asked")
def test_a_page_is_over_when_all_has_come() -> None:
    page = load("/0.html", "/1.css", "/2.js")
    assert page.patience_s() == math.inf
    page.loaded()
    for path in ("/0.html", "/1.css", "/2.js"):
        assert page.patience_s() == math.inf, "something is under way"
        page.finish(path, 1000)
    assert page.patience_s() == QUIET_S + 0.5, "a script may be about to ask for the last"
    assert page.begin("/3.json", "https://server/3.json")
    assert page.patience_s() == math.inf, "it asked, and that may take its time"
    page.finish("/3.json", 2000)
    assert page.patience_s() == 0 and page.visit.flaw == ""
    assert [name for name, _ in page.came()] == list(FOUR)


def test_a_later_visit_is_of_all_but_the_first_request(asked: pytest.MonkeyPatch) -> None:
    asked.setenv("TESTCASE", "page-resumption")
    job = read()
    earlier, own = job.visits
    assert (list(earlier), list(own), job.url(own[0])) == ([0], [1, 2, 3], "https://server/1.css")
    page = load("/0.html")
    page.loaded()
    page.finish("/0.html", 1000)
    assert page.patience_s() == 0, "the earlier visit is over"
    page.turn_to(own)
    page.loaded()
    assert page.patience_s() == math.inf, "what was loaded is still the document before"


@pytest.mark.usefixtures("asked")
def test_the_empty_page_before_it_is_another() -> None:
    page = PageLoad(read())
    page.loaded()
    page.begin("a", "https://server/0.html")
    page.finish("a", 1000)
    assert page.patience_s() == math.inf


@pytest.mark.usefixtures("asked")
def test_the_first_request_for_a_resource_counts() -> None:
    page = load("/0.html")
    assert not page.begin("again", "https://server/0.html")
    assert not page.begin("other", "https://server/favicon.ico")
    page.fail("again", "cancelled")
    page.finish("/0.html", 1000)
    assert page.visit.resources[0].last_byte_ns == 1000 and not page.visit.resources[0].error


@pytest.mark.usefixtures("asked")
def test_what_failed_has_not_come(tmp_path: Path) -> None:
    page = load("/0.html", "/1.css")
    page.finish("/0.html", 1000)
    page.visit.resources[0].body = b"markup"
    page.visit.resources[0].first_byte_ns = 900
    page.fail("/1.css", "connection reset")
    page.finish("/1.css", 2000)
    assert page.visit.flaw == "/1.css: connection reset"
    page.visit.take_moments('{"first_paint_ns": 1795603730660.5, "largest_paint_ns": null}')
    page.visit.leave()
    said = json.loads((tmp_path / "report.json").read_text())
    assert [one["bytes"] for one in said["requests"]] == [6, 0, 0, 0]
    assert said["requests"][1]["last_byte_ns"] is None
    assert said["moments"] == {"first_paint_ns": pytest.approx(1795603730660500000, abs=1000)}
    assert (tmp_path / "0.html").read_bytes() == b"markup" and not (tmp_path / "1.css").exists()


@pytest.mark.usefixtures("asked")
def test_a_document_that_fails_is_the_end() -> None:
    page = load("/0.html")
    page.fail("/0.html", "net::ERR_CONNECTION_REFUSED")
    assert page.patience_s() == 0


def frame(at_s: float, drawn: float) -> FilmFrame:
    """A white picture, of which so great a share is black."""
    picture = Image.new("RGB", (100, 100), "white")
    picture.paste("black", (0, 0, 100, round(100 * drawn)))
    out = io.BytesIO()
    picture.save(out, "jpeg", quality=95)
    return FilmFrame(round(at_s * 1e9), out.getvalue())


def test_the_speed_index_is_the_mean_of_when_parts_were_drawn() -> None:
    film = Film([frame(10, 0), frame(11, 0.25), frame(12, 0.25), frame(15, 1)])
    index_ns = film.speed_index_ns()
    assert index_ns is not None
    assert index_ns / 1e9 == pytest.approx(0.25 * 11 + 0.75 * 15, abs=0.05)  # JPEG blurs edges
    assert Film([frame(10, 0)]).speed_index_ns() is None
    assert Film([frame(10, 0.5), frame(11, 0.5)]).speed_index_ns() is None, "nothing was drawn"
    assert Film(film.frames, has_beginning=False).speed_index_ns() is None


def test_what_is_drawn_for_a_while_makes_no_page_less_than_empty() -> None:
    """A page that is grey for a second, and then white with some text."""
    picture = io.BytesIO()
    Image.new("RGB", (100, 100), (238, 238, 238)).save(picture, "jpeg", quality=95)
    film = Film([frame(10, 0), FilmFrame(11_000_000_000, picture.getvalue()), frame(12, 0.1)])
    index_ns = film.speed_index_ns()
    assert index_ns is not None and 11 <= index_ns / 1e9 <= 12


@pytest.mark.usefixtures("asked")
def test_a_page_that_is_not_whole_has_no_speed_index(tmp_path: Path) -> None:
    page = load("/0.html")
    page.visit.film = Film([frame(10, 0), frame(11, 1)])
    page.visit.moments = {"first_paint_ns": 5}
    page.visit.leave()
    said = json.loads((tmp_path / "report.json").read_text())
    assert said["moments"] == {}, "the document has not begun to come"
    for one in page.visit.resources:
        one.first_byte_ns, one.last_byte_ns = 1000, 2000
    page.visit.moments = {"first_paint_ns": 5}
    page.visit.leave()
    said = json.loads((tmp_path / "report.json").read_text())
    assert said["moments"].keys() == {"first_paint_ns", "speed_index_ns"}


def test_of_a_long_film_pictures_from_all_of_its_time_are_left() -> None:
    film = Film([FilmFrame(round(number * 1e7), b"") for number in range(500)])
    moments = [cast(int, one["at_ns"]) for one in film.report()]
    assert len(moments) <= MOST and (moments[0], moments[-1]) == (0, 4_990_000_000)
    steps = [later - earlier for earlier, later in pairwise(moments[1:])]
    assert max(steps) < 2 * min(steps)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_sockets_that_are_connected_to_a_server_are_counted(address: str, kind: socket.SocketKind) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as server, socket.socket(family, kind) as client:
        try:
            server.bind((address, 0))
        except OSError:
            pytest.skip(f"there is no {address} here")
        port = server.getsockname()[1]
        if kind == socket.SOCK_STREAM:
            server.listen()
        assert connected_sockets(address, port) == 0
        client.connect((address, port))
        assert connected_sockets(address, port) == 1
        assert connected_sockets("192.0.2.1", port) == 0
