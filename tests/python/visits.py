"""Visits put together by hand, as HARs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bentpipe.workload.page import har

HARS = Path(__file__).parent / "hars"
SITE = "https://example.org"


def entry(url: str, at_ms: int = 0, **values: Any) -> dict[str, Any]:
    """As HAR 1.2 has it, and no more: it came within 100 ms, its first byte after 60."""
    response = {"status": values.pop("status", 200), "bodySize": values.pop("size", 1000), "headersSize": 300,
                "content": {"size": 4000, "mimeType": values.pop("mime", "image/png")}}  # fmt: skip
    headers = [{"name": name, "value": value} for name, value in values.pop("headers", {}).items()]
    return {
        "startedDateTime": f"2026-11-24T10:00:{at_ms // 1000:02}.{at_ms % 1000:03}+01:00",
        "time": 100,
        "request": {"method": values.pop("method", "GET"), "url": url, "headers": headers},
        "response": response | values.pop("response", {}),
        "timings": {"blocked": -1, "dns": 10, "connect": 20, "send": 0, "wait": 30, "receive": 40},
    } | values


def document(**values: Any) -> dict[str, Any]:
    return entry(f"{SITE}/", **{"mime": "text/html", **values})


def read(folder: Path, *entries: dict[str, Any], **log: Any) -> har.Imported:
    file = folder / "visit.har"
    file.write_text(json.dumps({"log": {"version": "1.2", "entries": entries, **log}}))
    return har.read(file)
