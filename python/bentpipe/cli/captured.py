"""What `bentpipe trace` and `bentpipe plot` are told to look at: captures, a trial's folder, an analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from bentpipe import manifest, traces
from bentpipe.errors import UsageError
from bentpipe.traces import Analysis

_PATH = click.Path(path_type=Path)
_EXAMPLES = 3  # trials that a hint names


def captured(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments that say what to look at."""
    qlog = click.option(
        "--qlog",
        "qlogs",
        type=_PATH,
        multiple=True,
        metavar="FILE",
        help="A qlog of an endpoint; repeatable.",
    )
    keylog = click.option(
        "--keylog", type=_PATH, metavar="KEYS", help="TLS secrets (SSLKEYLOGFILE), beside those in captures."
    )
    files = click.argument("files", type=_PATH, nargs=-1, required=True, metavar="FILE…")
    return files(keylog(qlog(function)))


def find(
    files: Sequence[Path], keylog: Path | None = None, qlogs: Sequence[Path] = (), out: Path | None = None
) -> Analysis:
    """The analysis of `files`, made anew in `out` if that is given. UsageError if they are nothing that can
    be looked at; else errors are those of `traces`.
    """
    for file in (*files, *qlogs, *([keylog] if keylog else [])):
        _exists(file)
    folders = [file for file in files if file.is_dir()]
    if not folders:
        return traces.analyse(files, _place(out), keylog, qlogs)
    if len(files) > 1:
        raise UsageError(f"{folders[0]} is a folder", "give several captures, or one folder alone")
    if keylog or qlogs:
        raise UsageError(
            f"--keylog and --qlog: {folders[0]} is a folder",
            "they go with captures; a trial's trace has its secrets in it, and its qlogs beside it",
        )
    return _of_folder(folders[0], out)


def _of_folder(folder: Path, out: Path | None) -> Analysis:
    if (folder / traces.TRACE).is_file() or _is_trial(folder):
        return traces.of_trial(folder, out=_place(out) if out else None)
    if (folder / traces.SUMMARY).is_file():
        if out is not None:
            raise UsageError(
                f"--out: {folder} is an analysis already", "give the captures that it was made of"
            )
        return traces.of_folder(folder)
    raise UsageError(f"{folder}: there is neither a trace nor an analysis in it", _hint(folder))


def _exists(file: Path) -> None:
    if file.exists():
        return
    if _is_trial(file):
        raise traces.no_trace(file)
    raise UsageError(f"{file}: there is no such file or folder")


def _is_trial(folder: Path) -> bool:
    """Whether this is, or would be, a trial's folder in a run."""
    parent = folder.resolve().parent
    return parent.name == "trials" and (parent.parent / manifest.FILE).is_file()


def _hint(folder: Path) -> str:
    found = sorted(path.parent for path in folder.glob(f"trials/*/{traces.TRACE}"))
    if found:
        more = ", …" if len(found) > _EXAMPLES else ""
        return f"give a trial of the run: {', '.join(map(str, found[:_EXAMPLES]))}{more}"
    if (folder / manifest.FILE).is_file():
        return "none of the run's trials has a trace; run it again with --trace all"
    return "give a capture, the folder of a trial, or what bentpipe trace -o made"


def _place(out: Path | None) -> Path:
    if out is None:
        return traces.temporary()
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {out} is not a folder", "choose another --out")
    return out
