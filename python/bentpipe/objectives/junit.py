"""Verdicts as JUnit XML, which CI systems show: a test suite for each client and server."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as xml

from bentpipe.schema.verdicts import MeasuredChange, ObjectiveVerdict, Verdicts


def write(found: Verdicts, path: Path) -> None:
    """Write the verdicts to `path`. A failed objective and a change for the worse are failures, an undecided
    objective is an error, a skipped one is skipped.
    """
    root = xml.Element("testsuites", name=f"bentpipe check {found.suite}")
    for (client, server), verdicts in groupby(found.verdicts, lambda one: (one.client, one.server)):
        suite = xml.SubElement(root, "testsuite", name=_legal(f"{found.suite} {client} → {server}"))
        for one in verdicts:
            _objective(suite, one)
        _count(suite)
    if found.changes or found.left_out:
        suite = xml.SubElement(root, "testsuite", name=f"{found.suite} against {found.against}")
        for change in found.changes:
            _change(suite, change)
        for line in found.left_out:
            case = xml.SubElement(suite, "testcase", classname="not compared", name=_legal(line))
            _outcome(case, "skipped", line)
        _count(suite)
    _count(root)
    xml.indent(root)
    path.write_bytes(xml.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _objective(suite: xml.Element, one: ObjectiveVerdict) -> None:
    name = _legal(f"{one.objective}: {one.asked}")
    case = xml.SubElement(suite, "testcase", classname=_legal(f"{one.scenario}.{one.treatment}"), name=name)
    _outcome(case, {"fail": "failure", "undecided": "error", "skipped": "skipped"}.get(one.outcome), one.why)


def _change(suite: xml.Element, one: MeasuredChange) -> None:
    name = f"{one.measure}, {one.client} → {one.server}, {one.workload}"
    kind = _legal(f"{one.scenario}.{one.treatment}")
    case = xml.SubElement(suite, "testcase", classname=kind, name=_legal(name))
    _outcome(case, {"worse": "failure"}.get(one.outcome), one.why)


def _outcome(case: xml.Element, kind: str | None, why: str) -> None:
    if kind is not None:
        xml.SubElement(case, kind, message=_legal(why))


def _legal(text: str) -> str:
    """Without characters that XML 1.0 (section 2.2) has not: programs and users may write anything."""
    return "".join(one if _is_legal(ord(one)) else "?" for one in text)


def _is_legal(code: int) -> bool:
    if code in (0x9, 0xA, 0xD):
        return True
    return 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code >= 0x10000


def _count(suite: xml.Element) -> None:
    suite.set("tests", str(len(list(suite.iter("testcase")))))
    for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        suite.set(name, str(len(list(suite.iter(kind)))))
