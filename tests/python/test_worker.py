"""Trial bundles: what `bentpipe run --bundles` writes, `bentpipe worker` runs as the run would have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import NOQ_RUN, Command, installed_or_skip

SEVERAL = [*NOQ_RUN, "--treatment", "direct,quic-pep", "--flow", "start=100ms", "--trace", "all"]


@pytest.fixture
def bundles(bentpipe: Command) -> list[Path]:
    installed_or_skip("noq")
    done = bentpipe(*SEVERAL, "--bundles", "bundles")
    assert done.code == 0 and "2 trials in bundles" in done.out, done.err
    assert not Path("runs").exists()
    return sorted(Path("bundles").iterdir())


def changed(bundle: Path, **values: Any) -> Path:
    file = Path("changed.json")
    file.write_text(json.dumps(json.loads(bundle.read_text()) | values))
    return file


def test_a_worker_gives_the_packets_of_the_run(bentpipe: Command, bundles: list[Path]) -> None:
    done = bentpipe(*SEVERAL, "--no-report", "--out", "A", "--json")
    records = {record["trial"]: record for record in done.records()}
    assert len(records) == len(bundles) == 2
    for bundle in bundles:
        answer = json.loads(bentpipe("worker", bundle, "--out", f"left-{bundle.stem}").out)
        record = records[answer["trial"]]
        assert answer["seed"] == record["seed"] and answer["failure"] == ""
        for column in ("outcome", "packet_log_hash", "completion_s", "received_bytes", "findings"):
            assert answer["values"][column] == record[column]
        assert Path(f"left-{bundle.stem}", "trace.pcapng").is_file()


def test_a_bundle_has_no_path_of_this_machine(bundles: list[Path]) -> None:
    for bundle in bundles:
        paths = re.findall(r'"(/[^"]*)"', bundle.read_text())
        assert set(paths) == {"/50000"}  # what the client asks for


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": 9}, "it is of format 9"),
        ({"format": None}, "it is of format None"),
        ({"surplus": 1}, 'unknown key "surplus"'),
        ({"seed": 7}, "seed: 7 is not valid"),
        ({"seed": "xyz"}, 'seed: "xyz" is not valid'),
        ({"ip": 5}, "ip: 5 is not valid"),
        ({"silence_s": 0}, "silence_s: 0 is not valid"),
        ({"files": {"/elsewhere": 1}}, 'files: "/elsewhere" is not valid'),
        ({"files": {"../elsewhere": 1}}, 'files: "../elsewhere" is not valid'),
        ({"files": {"1MB": -1}}, "files: 1MB: -1 is not valid"),
        ({"a\nb": 1}, "a\nb"),
        ({"testbed": "moon"}, 'testbed: "moon" is not valid'),
        ({"bentpipe": "0.0.1"}, "the bundle is of Bentpipe 0.0.1, and this is "),
    ],
)
def test_what_is_no_bundle_is_said(
    bentpipe: Command, bundles: list[Path], values: dict[str, Any], message: str
) -> None:
    done = bentpipe("worker", changed(bundles[0], **values))
    assert done.code != 0 and message in done.err and "hint: " in done.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs_sha256": "0" * 64}, "noq is not the one of the bundle"),
        ({"stack": "nobody"}, "there is no stack nobody here"),
        ({"packages": {"aioquic": "0.1"}}, "its package aioquic is of version None, there 0.1"),
    ],
)
def test_a_stack_that_is_another_is_refused(
    bentpipe: Command, bundles: list[Path], change: dict[str, str], message: str
) -> None:
    flows = json.loads(bundles[0].read_text())["flows"]
    flows[0]["server"] |= change
    done = bentpipe("worker", changed(bundles[0], flows=flows))
    assert done.code == 1 and message in done.err and "hint: " in done.err


def test_a_bundle_of_an_older_format_is_run(bentpipe: Command, bundles: list[Path]) -> None:
    values = json.loads(bundles[0].read_text()) | {"format": 1}
    del values["bentpipe"]
    for flow in values["flows"]:
        del flow["client"]["packages"], flow["server"]["packages"]
    Path("older.json").write_text(json.dumps(values))
    assert json.loads(bentpipe("worker", "older.json").out)["failure"] == ""


def test_bundles_are_instead_of_a_run(bentpipe: Command) -> None:
    done = bentpipe(*NOQ_RUN, "--bundles", "bundles", "--out", "A")
    assert done.code == 2 and "--bundles: nothing is run" in done.err
