"""Workloads: what is transferred, of several kinds, and the test cases of
`endpoints/contract/test-cases.md`.

A workload is written `TESTCASE:SIZE` or `TESTCASE:COUNTxSIZE`, as in `transfer:10MiB` or
`multiplexing:2000x32B`, where SIZE is that of each file, `duration:30s`, `page:NAME:HTTP`, `live:60s:HTTP` or
`frames:30s:streams`. The canonical form, in bytes and with the count unless it is 1, is what records hold and
what seeds come from. Where further flows share the path, they stand behind it (`bentpipe.plan.flows`).

A new kind is a module with a class of `Workload` and its `KIND`, and a word in `_KINDS`; what proves that it
came, a word in `crates/trial/src/verdict/verifiers.rs`.
"""

from __future__ import annotations

from collections.abc import Iterable

from bentpipe.errors import UsageError, one_of
from bentpipe.workload import duration, files, frames, live
from bentpipe.workload.duration import DURATION
from bentpipe.workload.files import FileTransfer
from bentpipe.workload.http import over
from bentpipe.workload.model import AND, Workload
from bentpipe.workload.page import visit
from bentpipe.workload.page.visit import from_folder
from bentpipe.workload.served import check_space, write_files, www_file
from bentpipe.workload.testcase import TestCase
from bentpipe.workload.units import milliseconds, shown_size, shown_time, size

__all__ = [
    "AND", "DURATION", "TESTCASES", "FileTransfer", "TestCase", "Workload", "canonical", "check_space",
    "from_folder", "is_page", "known", "milliseconds", "over", "parse", "shown_size", "shown_time", "size",
    "title", "write_files", "www_file",
]  # fmt: skip

_KINDS = (files.KIND, duration.KIND, visit.KIND, live.KIND, frames.KIND)
TESTCASES = {name: case for kind in _KINDS for name, case in kind.testcases.items()}
_NAMES = tuple(name for kind in _KINDS for name in kind.names)


def parse(text: str, where: str) -> Workload:
    """The workload that `text` names; UsageError that names `where` it was given otherwise."""
    own, *flows = text.split(AND)
    name, _, value = (part.strip() for part in own.partition(":"))
    for kind in _KINDS:
        found = kind.parse(name, value, f'{where}: "{text}"', tuple(flows))
        if found is not None:
            return found
    hint = one_of(name, _NAMES, "test cases") + "; as in transfer:10MiB"
    raise UsageError(f'{where}: "{text}": unknown test case "{name}"', hint)


def canonical(texts: Iterable[str], where: str) -> tuple[str, ...]:
    """Workloads in canonical form, each once. UsageError, naming `where`, for an invalid one."""
    texts = list(texts)
    for text in texts:
        if AND.strip() in text:
            raise UsageError(f'{where}: "{text}" has a + in it', "give further flows by themselves: --flow")
    return tuple(dict.fromkeys(str(parse(text, where)) for text in texts))


def title(text: str) -> str:
    """A record's workload in words; one that this version does not know stays as it is written."""
    found = known(text)
    return found.title if found else text


def is_page(text: str) -> bool:
    """Whether a record's workload is a page."""
    return isinstance(known(text), visit.PageVisit)


def known(text: str) -> Workload | None:
    """A record's workload; None for one that this version does not know."""
    try:
        return parse(text, "workload")
    except UsageError:
        return None
