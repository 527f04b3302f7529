"""A proxy as operators run it, which logs JSON and has a page of metrics."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from typing import Any

PATIENCE_S = 120  # what takes longer hangs


class RunningProxy:
    """A proxy that has started, and the lines of its log."""

    def __init__(self, process: subprocess.Popen[str], prefix: str) -> None:
        """`prefix` is what stands before the names of its metrics."""
        self.process = process
        self.prefix = prefix
        self.lines: list[dict[str, Any]] = []
        started = self.wait_for("started")
        self.port = started["listen"][0].rpartition(":")[2]
        self.metrics_url = f"http://{started['metrics']}" if started.get("metrics") else None

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The first line, from those read so far on, about such an event."""
        for known in self.lines:
            if matches(known, event, fields):
                return known
        assert self.process.stderr is not None
        for text in self.process.stderr:
            line: dict[str, Any] = json.loads(text)
            self.lines.append(line)
            if matches(line, event, fields):
                return line
        raise AssertionError(f"no line {event} {fields} in {self.lines}")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Its exit code, once it has ended by itself or by a signal before."""
        assert self.process.stderr is not None
        self.lines += [json.loads(text) for text in self.process.stderr]
        return self.process.wait(timeout=PATIENCE_S)

    def metrics(self) -> dict[str, float]:
        text = self.ask("/metrics")[1]
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        said = re.findall(r"^# HELP (\w+) [A-Z0-9].+\n# TYPE \1 (?:counter|gauge)\n\1 ", text, re.MULTILINE)
        assert said == [name for name, _ in lines], text
        return {name.removeprefix(self.prefix): float(value) for name, value in lines}

    def ask(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{self.metrics_url}{path}", timeout=PATIENCE_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def matches(line: dict[str, Any], event: str, fields: dict[str, Any]) -> bool:
    return line["event"] == event and all(line.get(name) == value for name, value in fields.items())
