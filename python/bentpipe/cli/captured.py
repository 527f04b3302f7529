"""The captures that `bentpipe trace` and `bentpipe plot` look at: files, a trial's folder, an analysis."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bentpipe.analysis import traces
from bentpipe.analysis.link_facts import LinkFacts
from bentpipe.analysis.traces import Analysis
from bentpipe.cli import reading_progress
from bentpipe.errors import UsageError, one_of
from bentpipe.runs import manifest, trial_files

_PATH = click.Path(path_type=Path)
_EXAMPLES = 3  # trials that a hint names
_QLOG = (b"{", b"\x1e")  # JSON and JSON-SEQ
_ENDS = ("client", "server")
_LINK_KEYS = [field.name for field in dataclasses.fields(LinkFacts)]
_YES_OR_NO = ("forward_marks", "return_marks")

_OPTIONS = (
    click.argument("files", type=_PATH, nargs=-1, required=True, metavar="FILE…"),
    click.option(
        "--keylog", type=_PATH, metavar="KEYS", help="TLS secrets (SSLKEYLOGFILE), besides those in captures."
    ),
    click.option(
        "--qlog", "qlogs", type=_PATH, multiple=True, metavar="FILE", help="An endpoint's qlog; repeatable."
    ),
    click.option(
        "--link",
        metavar="JSON",
        help='What is known of the path, as in \'{"forward_rate_bps": 20000000, "rtt_ms": 600}\', or a file '
        f"with that. Any of: {', '.join(_LINK_KEYS)}. A trial's run knows it.",
    ),
)


@dataclass(frozen=True)
class CaptureArguments:
    """The captures to look at, and what belongs to them, as the user named them."""

    files: Sequence[Path]
    keylog: Path | None
    qlogs: Sequence[Path]
    link: str | None


def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments that name the captures; the command gets them as `named`."""

    @functools.wraps(function)
    def command(
        files: tuple[Path, ...], keylog: Path | None, qlogs: tuple[Path, ...], link: str | None, **rest: Any
    ) -> Any:
        return function(CaptureArguments(files, keylog, qlogs, link), **rest)

    decorated: Callable[..., Any] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def find(named: CaptureArguments, out: Path | None = None) -> Analysis:
    """The analysis of the captures that are named, made anew in `out` if that is given. UsageError if they
    are no captures; other errors are those of `traces`.
    """
    with reading_progress.shown():
        return _find(named, out)


def _find(named: CaptureArguments, out: Path | None) -> Analysis:
    for file in named.files:
        check_capture(file)
    for qlog in named.qlogs:
        check_file("--qlog", qlog)
    if named.keylog:
        check_file("--keylog", named.keylog)
    link = None if named.link is None else _link(named.link)
    if _is_trials_own(named):
        return _of_folder(named.files[0].parent, link, out)
    folders = [file for file in named.files if file.is_dir()]
    if not folders:
        return traces.analyse(named.files, _place(out), named.keylog, named.qlogs, link)
    if len(named.files) > 1:
        raise UsageError(f"{folders[0]} is a folder", "give several captures, or one folder alone")
    if named.keylog or named.qlogs:
        raise UsageError(
            f"--keylog and --qlog: {folders[0]} is a folder",
            "they go with captures; a trial's trace has its secrets in it, and its qlogs beside it",
        )
    return _of_folder(folders[0], link, out)


def _is_trials_own(named: CaptureArguments) -> bool:
    """Whether the trace of a trial is named and nothing else: then its run knows the path."""
    alone = len(named.files) == 1 and not (named.keylog or named.qlogs or named.link)
    return alone and named.files[0].name == trial_files.TRACE and is_trial(named.files[0].parent)


def _of_folder(folder: Path, link: LinkFacts | None, out: Path | None) -> Analysis:
    if trial_files.has_capture(folder) or is_trial(folder):
        if link is not None:
            raise UsageError(f"--link: {folder} is a trial", "its run knows its path; leave --link out")
        return traces.of_trial(folder, out=_place(out) if out else None)
    if (folder / trial_files.SUMMARY).is_file():
        if out is not None:
            raise UsageError(
                f"--out: {folder} is an analysis already", "give the captures that it was made of"
            )
        return traces.of_folder(folder, link)
    raise UsageError(f"{folder}: there is neither a trace nor an analysis in it", _hint(folder))


def _link(given: str) -> LinkFacts:
    """Facts of the path from JSON, or from a file with it."""
    name, text = "--link", given
    if not given.lstrip().startswith("{"):
        name = f"--link: {given}"
        check_file("--link", Path(given))
        text = Path(given).read_text(errors="replace")
    try:
        values = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name}: not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageError(f"{name}: no JSON object", f"write one with any of: {', '.join(_LINK_KEYS)}")
    for key, value in values.items():
        if key not in _LINK_KEYS:
            raise UsageError(f'{name}: unknown key "{key}"', one_of(key, _LINK_KEYS, "keys"))
        if key == "sender":
            if value not in _ENDS:
                raise UsageError(f"{name}: {key}: {value!r} is not valid", f"write {' or '.join(_ENDS)}")
            continue
        if key in _YES_OR_NO:
            if not isinstance(value, bool):
                raise UsageError(f"{name}: {key}: {value!r} is not valid", "write true or false")
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise UsageError(f"{name}: {key}: {value!r} is not valid", "write a number above 0")
    # 2e7 is a whole number too.
    numbers = {key: one for key, one in values.items() if key != "sender" and key not in _YES_OR_NO}
    whole = {key: int(one) if float(one).is_integer() else one for key, one in numbers.items()}
    return LinkFacts(**{**values, **whole})


def check_capture(file: Path) -> None:
    """UsageError if this is neither a folder nor a file that may be a capture."""
    if str(file) == "-" or file.is_fifo():
        what = "standard input" if str(file) == "-" else "a pipe"
        raise UsageError(f"{file}: captures are read from files, not from {what}", "write it to a file first")
    if file.is_dir():
        return
    if not file.exists():
        if is_trial(file):
            raise traces.no_trace(file)
        if file.name == trial_files.TRACE and trial_files.is_traced(file.parent):
            said = f"{file}: only the analysis of this trial was kept: give its folder"
            raise UsageError(said, f"the capture: {traces.ANALYSIS_ALONE}")
        if trial_files.is_of_trace(file.name) and trial_files.TracePlace.of(file.parent) is not None:
            raise traces.no_trace(file.parent)
        raise UsageError(f"{file}: there is no such file or folder")
    with file.open("rb") as content:
        begins = content.read(max(map(len, _QLOG)))
    if begins.startswith(_QLOG):
        hint = "beside a capture: --qlog FILE; alone: bentpipe qlog FILE"
        raise UsageError(f"{file}: not a capture: it begins like a qlog", hint)


def check_file(option: str, file: Path) -> None:
    """UsageError if the value of an option is no file."""
    if not file.exists():
        raise UsageError(f"{option}: {file}: there is no such file")
    if not file.is_file():
        what = "a folder" if file.is_dir() else "not a regular file"
        raise UsageError(f"{option}: {file} is {what}", "give a file")


def is_trial(folder: Path) -> bool:
    """Whether this is, or would be, a trial's folder in a run."""
    parent = folder.resolve().parent
    return parent.name == "trials" and (parent.parent / manifest.FILE).is_file()


def _hint(folder: Path) -> str:
    found = sorted(path for path in folder.glob("trials/*") if trial_files.is_traced(path))
    if found:
        more = ", …" if len(found) > _EXAMPLES else ""
        return f"give a trial of the run: {', '.join(map(str, found[:_EXAMPLES]))}{more}"
    if (folder / manifest.FILE).is_file():
        if next(folder.glob(f"trials/*/{trial_files.ELSEWHERE}"), None) is not None:
            return "its traces stay on the hosts that ran its trials; give a trial, to be told where"
        return "none of the run's trials has a trace; run it again with --trace all"
    return "give a capture, the folder of a trial, or what bentpipe trace -o made"


def _place(out: Path | None) -> Path:
    if out is None:
        return traces.temporary()
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is not a folder", "choose another --out")
    return out
