"""Test cases of the contract (`endpoints/contract/test-cases.md`), as far as measures depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.schema.job import TestCaseFacts


@dataclass(frozen=True)
class TestCase:
    """A test case: how many files it takes, who sends them, and over how many connections."""

    least: int = 1  # files
    default: int | None = 1  # files; None: it must be given
    sender: str = "server"
    connections: int = 1  # 2: the first file has one of its own, and the second is measured
    # Round trips of the ideal sender before the first byte of files arrives, and after the last one: half of
    # one for the answer to what was sent to the server.
    before: float = 2.0
    after: float = 0.0
    # The application protocols that have it, by their ALPN.
    protocols: tuple[str, ...] = ("hq-interop", "http/0.9")

    def before_first(self, transport: str, saved: int = 0) -> float:
        """Round trips before the first byte; TCP needs one more, for its own handshake before that of TLS.
        `saved` are those that a stack's options save.
        """
        return self.before + (transport == "tcp") - saved

    def facts(self, transport: str = "quic", saved: int = 0) -> TestCaseFacts:
        """The properties of the test case that a job has."""
        round_trips = self.before_first(transport, saved) + self.after
        assert round_trips.is_integer(), "an ideal sender's last byte comes with an answer"
        return TestCaseFacts(
            sender=self.sender,
            connections=self.connections,
            round_trips=int(round_trips),
            saved_round_trips=saved,
        )
