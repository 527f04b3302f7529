"""`bentpipe stacks test` finds a stack that lists test cases which it does not know, or does not list some
that it knows.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import STACKS, Command, installed_or_skip

from bentpipe import paths

pytestmark = pytest.mark.virtual_time

ALL = ("transfer", "handshake", "longrtt", "multiplexing", "resumption", "zerortt", "upload")


def listing(folder: Path, name: str, testcases: list[str], without: str = "none") -> Path:
    """A copy of the stack in `folder` that lists `testcases`, without one of its modes. It is installed if
    that one is.
    """
    shutil.copytree(folder, name, ignore=shutil.ignore_patterns("target"))
    file = Path(name, "stack.toml")
    lines = [
        f"testcases = {json.dumps(testcases)}" if line.startswith("testcases") else line
        for line in file.read_text().splitlines()
        if not line.startswith(f"{without} = ")
    ]
    file.write_text("\n".join(lines))
    return file.parent


def failures(bentpipe: Command, name: str, folder: Path) -> list[str]:
    done = bentpipe("stacks", "test", name, "--json", "--stacks", folder)
    return [check["name"] for check in json.loads(done.out)["checks"] if check["passed"] is False]


def test_a_test_case_that_is_listed_must_be_known(bentpipe: Command) -> None:
    found = failures(bentpipe, "toy", listing(STACKS / "toy", "toy", ["transfer", "upload"]))
    assert [name.partition(":")[0] for name in found] == ["upload"]


# Over sockets, who does not refuse waits for a partner as long as it likes to: half a minute.
@pytest.mark.parametrize(
    ("without", "prefixes"),
    [
        ("sockets", [""]),
        pytest.param("none", ["", "sockets, "], marks=[pytest.mark.soak, pytest.mark.real_time]),
    ],
)
def test_a_test_case_that_is_not_listed_must_be_refused(
    bentpipe: Command, without: str, prefixes: list[str]
) -> None:
    installed_or_skip("quinn")
    folder = listing(paths.endpoints() / "quinn", "q", [*ALL[:5], "upload", "frames"], without)
    assert failures(bentpipe, "quinn", folder) == [
        f"{prefix}{role}: a test case that is not listed, zerortt, is refused with exit code 127"
        for prefix in prefixes
        for role in ("client", "server")
    ]


@pytest.mark.real_time
@pytest.mark.parametrize("name", ["quinn"])
def test_every_test_case_is_checked(bentpipe: Command, name: str) -> None:
    installed_or_skip(name)
    checks = json.loads(bentpipe("stacks", "test", name, "--json").out)["checks"]
    assert all(check["passed"] for check in checks)
    titles = [check["name"] for check in checks]
    for case in ALL[1:]:
        assert [
            title for title in titles if title.startswith(f"{case}: every file arrives, and the wire shows")
        ]
        assert f"{case}: the same seed gives the same packets" in titles
