"""The test cases of the contract (`endpoints/CONTRACT.md`, section 2)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FileCount:
    """How many files a test case takes."""

    least: int = 1
    default: int | None = 1  # None: it must be given


TESTCASES = {
    "transfer": FileCount(),
    "handshake": FileCount(),
    "longrtt": FileCount(),
    "multiplexing": FileCount(least=2, default=None),
    "resumption": FileCount(least=2, default=2),  # a file for each of its connections, at least
    "zerortt": FileCount(least=2, default=2),
    "upload": FileCount(),
}
