"""Captures, key logs, qlogs and traces of links that are packed: as their unpacked twins."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from aioquic.quic.connection import QuicConnection
from aioquic.quic.logger import QuicLogger
from conftest import Command
from quic_wire import SERVER, Wire, configuration

from bentpipe import paths

SCENARIO = """
title = "a trace"
source = "a test"
timeout = "60 s"

[satellite]
forward = { rate = { trace = "rate.trace" }, delay = { trace = "delay.csv" } }
return = { delay = "20 ms" }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def zstd(content: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        pytest.skip("zstd is not installed (apt install zstd)")
    return subprocess.run([program, "-q", "-c"], input=content, capture_output=True, check=True).stdout


def trace(*words: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [paths.program("bentpipe-trace"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def connection() -> None:
    """A capture, its secrets and a log, each packed by its name's ending."""
    client = QuicConnection(configuration=configuration(is_client=True))
    client.connect(SERVER, now=0.0)
    client.send_stream_data(0, b"x" * 20_000, end_stream=True)
    wire = Wire(client, configuration(is_client=False))
    wire.run()
    wire.write(Path("a.pcap"), Path("a.keys"))
    logger = wire.client.configuration.quic_logger
    assert isinstance(logger, QuicLogger)
    Path("a.qlog").write_text(json.dumps(logger.to_dict()))
    for name in ("a.pcap", "a.keys", "a.qlog"):
        content = Path(name).read_bytes()
        Path(f"{name}.gz").write_bytes(gzip.compress(content))
        Path(f"{name}.zst").write_bytes(zstd(content))


@pytest.mark.usefixtures("connection")
@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_what_is_packed_is_read_as_its_twin(ending: str) -> None:
    plain = trace("packets", "a.pcap", "--keylog", "a.keys")
    assert plain.returncode == 0 and plain.stdout
    packed = trace("packets", f"a.pcap.{ending}", "--keylog", f"a.keys.{ending}")
    assert packed.stdout == plain.stdout
    Path("renamed.pcap").write_bytes(Path(f"a.pcap.{ending}").read_bytes())
    assert trace("packets", "renamed.pcap", "--keylog", "a.keys").stdout == plain.stdout

    analyze = ("--link", f"link.{ending}", "--qlog", f"a.qlog.{ending}", "-o", "out")
    Path(f"link.{ending}").write_bytes(gzip.compress(b'{"forward_rate_bps": 20000000}'))
    done = trace("analyze", f"a.pcap.{ending}", "--keylog", f"a.keys.{ending}", *analyze)
    assert done.returncode == 0, done.stderr

    logged = [json.loads(trace("qlog", name, "--json").stdout) for name in ("a.qlog", f"a.qlog.{ending}")]
    assert logged[0]["traces"] and logged[0]["traces"] == logged[1]["traces"]


@pytest.mark.usefixtures("connection")
def test_what_is_packed_and_cut_short_is_read_so_far_and_said() -> None:
    whole = Path("a.pcap.gz").read_bytes()
    Path("cut.gz").write_bytes(whole[: len(whole) * 3 // 4])
    done = trace("packets", "cut.gz", "--keylog", "a.keys")
    assert done.returncode == 2 and done.stdout
    assert f"cut.gz: the gzip file is cut short: it ends at byte {len(whole) * 3 // 4}" in done.stderr

    log = Path("a.qlog.gz").read_bytes()
    Path("cut.qlog").write_bytes(log[: len(log) * 3 // 4])
    done = trace("qlog", "cut.qlog", "--json")
    assert done.returncode == 1 and "the gzip file is cut short" in json.loads(done.stdout)["problems"][0]

    Path("a.xz").write_bytes(b"\xfd7zXZ\0\0")
    for words in (("analyze", "a.xz", "-o", "out"), ("qlog", "a.xz")):
        done = trace(*words)
        assert done.returncode == 2
        assert "a.xz: xz files are not read, gzip and zstd are (hint: xz -d FILE)" in done.stderr


def test_traces_of_links_may_be_packed(bentpipe: Command) -> None:
    files = {"rate.trace": b"1\n2\n2\n1000\n", "delay.csv": b"time_s,delay_ms\n0,20\n15,30\n"}
    Path("twin.toml").write_text(SCENARIO)
    shown = []
    for pack in (bytes, gzip.compress, zstd):
        for name, content in files.items():
            Path(name).write_bytes(pack(content))
        shown.append(bentpipe("scenarios", "show", "twin.toml", "--json").out)
    assert shown[0] and shown == [shown[0]] * 3
