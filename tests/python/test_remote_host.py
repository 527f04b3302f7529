"""What runs on a host of a real link, asked directly: it does as it is told, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from children import wait_for

from bentpipe import paths
from bentpipe.remote.session import bundle_hash


class Helper:
    """`bentpipe-remote host`, with a cache of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.cache = folder / "cache"
        environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            [str(paths.program("bentpipe-remote")), "host", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self.count = 0
        self.events: list[
            dict[str, Any]
        ] = []  # that came before an answer: a short program may end that soon

    def ask(self, do: str, data: bytes = b"", **said: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.count += 1
        message = {"id": self.count, "do": do, **said} | ({"bytes": len(data)} if data else {})
        self.process.stdin.write(json.dumps(message).encode() + b"\n" + data)
        self.process.stdin.flush()
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                return answer
            self.events.append(answer)

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        answer["content"] = self.process.stdout.read(answer.get("bytes", 0))
        return answer

    def start(self, *command: str, **said: Any) -> dict[str, Any]:
        program: dict[str, Any] = {"name": "it", "command": list(command), "sha256": None}
        return self.ask("start", program={**program, "environment": {}, "ready": None, **said})

    def event(self, kind: str) -> dict[str, Any]:
        while True:
            found = self.events.pop(0) if self.events else self.read()
            if found.get("event") == kind:
                return found

    def leave(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait()
        self.process.stdout.close()
        return code


def is_alive(word: str) -> bool:
    """Whether there is a process with this word in its command line."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(entry.read_bytes())
        except OSError:
            continue
    return any(word.encode() in line.split(b"\0") for line in lines)


def test_all_that_was_started_ends_with_the_connection(tmp_path: Path) -> None:
    helper = Helper(tmp_path)
    folder = Path(helper.ask("facts")["folder"])
    helper.ask("put", b"content", path="a/b", first=True)
    assert (folder / "a" / "b").read_bytes() == b"content"
    # One that leaves its group, its session and its parent.
    word = f"7{os.getpid()}.5"
    helper.start(
        "sh", "-c", f"setsid sh -c 'sleep {word} & exec sleep {word}' & echo ready; wait", ready="ready"
    )
    helper.event("ready")
    wait_for("its children", lambda: is_alive(word))
    assert helper.leave() == 0
    assert not is_alive(word)
    assert not folder.exists()


def test_a_silent_connection_is_given_up(tmp_path: Path) -> None:
    helper = Helper(tmp_path, "--silence-s", "1")
    folder = Path(helper.ask("facts")["folder"])
    word = f"8{os.getpid()}.5"
    helper.start("sleep", word)
    helper.process.wait()
    assert not is_alive(word)
    assert not folder.exists()
    helper.leave()


def test_what_others_left_is_removed_but_not_of_who_begins(tmp_path: Path) -> None:
    left, begun = tmp_path / "bentpipe-remote-left", tmp_path / "bentpipe-remote-begun"
    for folder, lock in ((left, ".alive"), (begun, ".alive-before")):
        folder.mkdir()
        (folder / lock).touch()
    helper = Helper(tmp_path)
    helper.ask("facts")
    assert not left.exists() and begun.exists()
    assert helper.leave() == 0


def test_what_a_program_came_to_is_told(tmp_path: Path) -> None:
    helper = Helper(tmp_path)
    helper.start("sh", "-c", "echo $TOLD; exit 3", environment={"TOLD": "part"})
    ended = helper.event("ended")
    assert (ended["code"], ended["signal"], ended["said"]) == (3, None, "part\n")
    helper.start("sh", "-c", "exec sleep 1000")
    helper.ask("signal", name="it", signal="TERM")
    assert helper.event("ended")["signal"] == 15
    assert "cannot start /not/there" in helper.start("/not/there")["error"]
    assert "unknown" not in helper.ask("time")
    assert helper.leave() == 0


def test_nothing_is_run_that_is_not_what_was_brought(tmp_path: Path) -> None:
    helper = Helper(tmp_path)
    program = b"#!/bin/sh\necho it runs\n"
    digest = hashlib.sha256(program).hexdigest()
    bundle = bundle_hash({"bin/program": digest})
    file = {"path": "bin/program", "sha256": digest}
    assert helper.ask("absent", bundle=bundle, files=[file])["absent"] == ["bin/program"]
    assert "error" in helper.ask("program", program + b"#", bundle=bundle, executable=True, **file)
    assert helper.ask("absent", bundle=bundle, files=[file])["absent"] == ["bin/program"]
    assert "error" not in helper.ask("program", program, bundle=bundle, executable=True, **file)
    assert helper.ask("absent", bundle=bundle, files=[file])["absent"] == []
    there = Path(helper.ask("facts")["cache"]) / bundle / "bin" / "program"
    helper.start(str(there), sha256=digest)
    assert helper.event("ended")["said"] == "it runs\n"
    there.write_bytes(program + b"echo something else\n")
    assert "it is not run" in helper.start(str(there), sha256=digest)["error"]
    assert helper.ask("absent", bundle=bundle, files=[file])["absent"] == ["bin/program"]
    there.parents[1].chmod(0o777)
    assert "alone" in helper.ask("absent", bundle=bundle, files=[file])["error"]
    assert helper.ask("clean")["removed_bytes"] > 0
    assert not there.exists()
    assert helper.leave() == 0


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a/../../out", "", "."])
def test_no_path_leads_out_of_the_folder(tmp_path: Path, path: str) -> None:
    helper = Helper(tmp_path)
    for do in ("put", "get", "remove", "list", "make"):
        assert "leads out" in helper.ask(do, path=path)["error"], do
    assert helper.leave() == 0


def test_a_name_that_is_no_text_is_told_and_left_out(tmp_path: Path) -> None:
    helper = Helper(tmp_path)
    folder = Path(helper.ask("facts")["folder"])
    helper.ask("put", b"content", path="a/b", first=True)
    (Path(os.fsdecode(os.fsencode(folder / "a") + b"/\xff.qlog"))).write_bytes(b"odd")
    listed = helper.ask("list", path="a")
    assert [file["path"] for file in listed["files"]] == ["b"]
    assert listed["unreadable"] == ["\N{REPLACEMENT CHARACTER}.qlog"]
    assert helper.leave() == 0
    assert not folder.exists()


def test_a_clock_can_be_said_to_be_ahead(tmp_path: Path) -> None:
    plain, ahead = Helper(tmp_path), Helper(tmp_path, "--ahead-ms", "5000")
    first = plain.ask("time")["sent_unix_ns"]
    second = ahead.ask("time")["sent_unix_ns"]
    assert second - first >= 5 * 10**9
    for helper in (plain, ahead):
        assert helper.leave() == 0
