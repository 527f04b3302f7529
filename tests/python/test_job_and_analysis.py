"""Job and analysis, which one language writes and the other reads: that what is written, and what is read,
has the keys of `schemas/job.toml` and `schemas/analysis.toml`, all of them and no others.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import against_schema
import msgspec
import pytest
from conftest import Command, installed_or_skip

from bentpipe import paths, workload
from bentpipe.analysis import traces
from bentpipe.errors import BentpipeError
from bentpipe.execution.jobs import LocalFlow, LocalTrial
from bentpipe.plan import scenarios, treatments
from bentpipe.schema import analysis, job
from bentpipe.stacks import catalogue, middleboxes

SECRETS = 0x0A  # the block of pcapng that holds them
TCP = "crates/analysis/tests/captures-tcp/client.pcap"


def schema(name: str) -> dict[str, Any]:
    return dict(json.loads((paths.root() / "schemas" / f"{name}.schema.json").read_text()))


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A job with everything in it, as it is written."""
    monkeypatch.setattr(middleboxes.Middlebox, "command", lambda *_: ["tunnel"])
    monkeypatch.setattr(middleboxes.Middlebox, "version", "tunnel 1")
    noq = catalogue.variant("noq", catalogue.discover())
    page = workload.parse("page:kuhn-b", "here").resources
    live, frames = (workload.parse(one, "here") for one in ("live:4s", "frames:1s:streams"))
    flow = LocalFlow("transfer", ("/1",), noq, noq, duration_ns=10**9, versions=("noq 1", None), page=page,
                     live=live.live, frames=frames.frames)  # fmt: skip
    trial = LocalTrial(
        scenario=scenarios.resolve("sat").scenario,
        flows=(flow,),
        www=tmp_path,
        seed="0" * 16,
        folder=tmp_path / "trial",
        treatment=treatments.parse("vpn server:kind=wireguard+quic-pep terminal:mode=warm,gateway", "here"),
    )
    return dict(msgspec.to_builtins(trial.job()))


def test_python_writes_jobs_as_they_are_defined(told: dict[str, Any]) -> None:
    defined = schema("job")
    assert list(against_schema.faults(told, defined, defined)) == []
    assert set(against_schema.keys(told, defined, defined)) == against_schema.defined(defined)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("", lambda job: job),
        ("JobFlow", lambda job: job["flows"][0]),
        ("PageResource", lambda job: job["flows"][0]["page"][0]),
        ("LiveStream", lambda job: job["flows"][0]["live"]),
        ("FrameStream", lambda job: job["flows"][0]["frames"]),
        ("Program", lambda job: job["flows"][0]["server"]),
        ("JobProxy", lambda job: job["proxies"][1]),
        ("JobTunnel", lambda job: job["tunnel"]),
    ],
)
def test_programs_read_jobs_as_they_are_defined(
    told: dict[str, Any], name: str, place: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """A key that is in no job makes them name those that are."""
    place(told)["surplus"] = 1
    known = set(re.findall("`([a-z_]+)`", start(told).partition("unknown field `surplus`")[2]))
    assert {(name, key) for key in known} == {
        (of, key) for of, key in against_schema.defined(schema("job")) if of == name
    }


def test_a_job_of_another_format_is_refused(told: dict[str, Any]) -> None:
    other = job.FORMAT + 1
    said = start(told | {"format": other})
    assert f"the job is of format {other}, and this program reads format {job.FORMAT}" in said


def start(told: dict[str, Any]) -> str:
    """What the program says of a job that it does not take."""
    done = subprocess.run([paths.program("bentpipe-sim"), "trial"], input=json.dumps(told),
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode != 0
    return done.stderr


@pytest.mark.virtual_time
def test_analyses_are_as_they_are_defined(bentpipe: Command) -> None:
    """Of QUIC with and without its secrets, and of TCP: together they have every key."""
    installed_or_skip("noq")
    done = bentpipe("run", "--scenario", "sat", "--client", "noq", "--server", "noq", "--bytes", "1MB",
                    "--iterations", "1", "--trace", "all", "--qlog", "--no-report",
                    "--out", "run")  # fmt: skip
    assert done.code == 0, done.err
    (trace,) = Path("run/trials").glob("*/trace.pcapng")
    sealed = Path("sealed.pcapng")
    sealed.write_bytes(without_secrets(trace.read_bytes()))
    qlogs = [path for path in trace.parent.glob("qlog/**/*") if path.is_file()]
    traces.analyse([trace], Path("whole"), qlogs=qlogs, link=traces.of_trial(trace.parent).link)
    traces.analyse([sealed], Path("sealed"))
    traces.analyse([paths.root() / TCP], Path("tcp"))

    defined, found = schema("analysis"), set()
    for folder in ("whole", "sealed", "tcp"):
        values = json.loads(Path(folder, "analysis.json").read_text())
        assert list(against_schema.faults(values, defined, defined)) == []
        assert values["format"] == analysis.FORMAT
        found |= set(against_schema.keys(values, defined, defined))
    # Loss bits and another address are of other captures: test_passive.py.
    rare = {key for key in against_schema.defined(defined) if key[0] in ("LossBits", "AddressChange")}
    assert found | rare == against_schema.defined(defined)


def without_secrets(capture: bytes) -> bytes:
    """A pcapng file (little-endian) without the blocks of TLS secrets."""
    kept, at = b"", 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        kept += b"" if kind == SECRETS else capture[at : at + length]
        at += length
    return kept


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 9}, "it is of format 9"),
        ({"sides": "above"}, "sides: 'above' is not valid"),
        ({"surplus": 1}, 'unknown key "surplus"'),
        ({"errors": None}, "errors: None is not valid"),
    ],
)
def test_what_is_no_analysis_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    whole = {"format": 1, "files": [], "sides": "both", "undecoded": [], "errors": [], "connections": []}
    (tmp_path / "analysis.json").write_text(json.dumps(whole | change))
    with pytest.raises(BentpipeError, match=said) as caught:
        traces.of_folder(tmp_path)
    assert "analysis.json" in str(caught.value) and "bentpipe trace FILE -o DIR" in caught.value.hint
