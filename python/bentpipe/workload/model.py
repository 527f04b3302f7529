"""The properties of every kind of workload."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bentpipe.schema.bundle import BundleFrameStream, BundleLiveStream, BundleResource
from bentpipe.workload.testcase import TestCase

AND = " + "  # between a workload and further flows
_BLOCK = 4096  # of a file system: what a small file takes


@dataclass(frozen=True, kw_only=True)
class Workload(abc.ABC):
    """The task of a flow of a trial, and the further flows beside it."""

    flows: tuple[str, ...] = ()  # in canonical form

    def __str__(self) -> str:
        """The canonical form: what records hold and what seeds come from."""
        return AND.join((self.own, *self.flows))

    @property
    def alone(self) -> Workload:
        """The workload without further flows."""
        return dataclasses.replace(self, flows=())

    @property
    def title(self) -> str:
        """In words: `transfer of 10 MiB`, `multiplexing of 2000 files of 32 B`."""
        return f"{self.own_title} beside {AND.join(self.flows)}" if self.flows else self.own_title

    @property
    @abc.abstractmethod
    def own(self) -> str:
        """The canonical form, without further flows."""

    @property
    @abc.abstractmethod
    def own_title(self) -> str:
        """In words, without further flows."""

    @property
    @abc.abstractmethod
    def testcase(self) -> str:
        """The contract's word for what the programs do."""

    @property
    @abc.abstractmethod
    def requests(self) -> tuple[str, ...]:
        """The paths that the client requests, in this order."""

    @property
    @abc.abstractmethod
    def files(self) -> Mapping[str, int]:
        """The files that are served, by name, and their sizes in bytes; none where the testbed makes them."""

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The contents of those files whose bytes are not arbitrary."""
        return {}

    @property
    def misfit(self) -> str | None:
        """The reason why its files cannot lead a browser from one to the next, in words; None if they can."""
        return None

    @property
    @abc.abstractmethod
    def measured_bytes(self) -> int:
        """Bytes that measures are based on; 0 where the number is not known beforehand."""

    def measured_of(self, size_bytes: int) -> int:
        """The same for a record, which says how many bytes all files had."""
        return self.measured_bytes

    @property
    def alpn(self) -> str | None:
        """The application protocol; None: one that both ends have."""
        return None

    @property
    def resources(self) -> tuple[BundleResource, ...]:
        """The initiator of each request of a page; otherwise none."""
        return ()

    @property
    def live(self) -> BundleLiveStream | None:
        """The parameters of its live stream that the client is given; None if it is none."""
        return None

    @property
    def frames(self) -> BundleFrameStream | None:
        """The parameters of its stream of frames that both ends are given; None if it is none."""
        return None

    @property
    def duration_ms(self) -> int | None:
        """The time after which it is stopped; None: it lasts until everything has arrived."""
        return None

    @property
    def least_ms(self) -> int | None:
        """Its minimum duration; None: not known."""
        return self.duration_ms

    @property
    def file_count(self) -> int:
        """The number of files that are served."""
        return len(self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(self.files.values())

    @property
    def disk_bytes(self) -> int:
        """Bytes that the files take on a disk."""
        return sum(on_disk(size) for size in self.files.values())


def on_disk(size: int) -> int:
    """Bytes that a file of `size` bytes takes on a disk."""
    return -(-size // _BLOCK) * _BLOCK


@dataclass(frozen=True)
class Kind:
    """A kind of workload, in the registry of `bentpipe.workload`."""

    # The words before the colon.
    names: tuple[str, ...]
    # From a name, what stands behind its colon, where both were given, and further flows; None if the name is
    # another kind's.
    parse: Callable[[str, str, str, tuple[str, ...]], Workload | None]
    # The test cases of the contract that are its own.
    testcases: Mapping[str, TestCase] = field(default_factory=dict)
