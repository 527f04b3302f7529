"""What every kind of workload has."""

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
    """What a flow of a trial is to do, and beside which further flows."""

    flows: tuple[str, ...] = ()  # in canonical form

    def __str__(self) -> str:
        """The canonical form: what records hold and what seeds come from."""
        return AND.join((self.own, *self.flows))

    @property
    def alone(self) -> Workload:
        """Without further flows."""
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
        """What the client asks for, in this order: paths."""

    @property
    @abc.abstractmethod
    def files(self) -> Mapping[str, int]:
        """The files that are served, by their names, and their bytes; none where the testbed makes them."""

    @property
    def contents(self) -> Mapping[str, bytes]:
        """What is in those of its files that have a content of their own."""
        return {}

    @property
    def misfit(self) -> str | None:
        """Why what is in its files cannot lead a browser from one to the next, in words; None if it can."""
        return None

    @property
    @abc.abstractmethod
    def measured_bytes(self) -> int:
        """Bytes of what measures are of; 0 where nobody knows them beforehand."""

    def measured_of(self, size_bytes: int) -> int:
        """The same of a record, which says how many bytes all files had."""
        return self.measured_bytes

    @property
    def alpn(self) -> str | None:
        """The application protocol; None: one that both ends have."""
        return None

    @property
    def resources(self) -> tuple[BundleResource, ...]:
        """For each request of a page, what leads to it; else none."""
        return ()

    @property
    def live(self) -> BundleLiveStream | None:
        """What a client is told of the live stream that it is; None if it is none."""
        return None

    @property
    def frames(self) -> BundleFrameStream | None:
        """What both ends are told of the stream of frames that it is; None if it is none."""
        return None

    @property
    def duration_ms(self) -> int | None:
        """When it is cut; None: it lasts until all has come."""
        return None

    @property
    def least_ms(self) -> int | None:
        """How long it lasts at least; None: nobody knows."""
        return self.duration_ms

    @property
    def file_count(self) -> int:
        """How many files are served."""
        return len(self.files)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(self.files.values())

    @property
    def room(self) -> int:
        """Bytes that the files take on a disk."""
        return sum(on_disk(size) for size in self.files.values())


def on_disk(size: int) -> int:
    """Bytes that a file of so many takes on a disk."""
    return -(-size // _BLOCK) * _BLOCK


@dataclass(frozen=True)
class Kind:
    """A kind of workload, in the registry of `bentpipe.workload`."""

    # What may stand before the colon.
    names: tuple[str, ...]
    # From a name, what stands behind its colon, where both were given, and further flows; None if the name is
    # another kind's.
    parse: Callable[[str, str, str, tuple[str, ...]], Workload | None]
    # The test cases of the contract that are its own.
    testcases: Mapping[str, TestCase] = field(default_factory=dict)
