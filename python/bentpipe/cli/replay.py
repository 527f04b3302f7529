"""`bentpipe replay`: one endpoint program alone, given the messages of a trial that failed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from bentpipe import paths
from bentpipe.errors import UsageError, one_of
from bentpipe.runs import records
from bentpipe.stacks import catalogue

_ENDS = ".frames"


@click.command()
@click.argument("place", type=click.Path(path_type=Path), metavar="TRIAL")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--stack", metavar="NAME", help="The stack whose program to start, in place of COMMAND.")
@click.option(
    "--stacks", "extra", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
    help="A further folder of stacks; can be repeated.",
)  # fmt: skip
def replay(place: Path, command: tuple[str, ...], stack: str | None, extra: tuple[Path, ...]) -> None:
    """Run one endpoint program alone, on the messages that it received in a trial in which it failed.

    TRIAL is the folder of the trial, RUN/trials/ID or the one that `bentpipe stacks test` names, or the
    .frames file in it. There is no partner, no link and no clock, so it fails in the same way each time.
    Without --stack and COMMAND the program is that of the trial's record. COMMAND may be a debugger that
    starts the program. Each message is printed with its times, then the times of the client's BYE and
    a verdict. Exit code 2: the program failed.

    \b
    Examples:
      bentpipe replay runs/demo/trials/sat_mine_noq_1-a5c2118e --stacks mine
      bentpipe replay FOLDER/client.frames --stack mine --stacks mine
      bentpipe replay FOLDER/client.frames -- gdb --args ./endpoint --virtual-time
    """
    messages = _messages(place)
    if command and stack:
        raise UsageError("--stack and a command are both given", "leave one of them out")
    words = list(command) or _command_of(messages, stack, extra)
    program = paths.program("bentpipe-sim")
    sys.stdout.flush()
    os.execv(
        program, [str(program), "replay", str(messages), "--", shutil.which(words[0]) or words[0], *words[1:]]
    )


def _messages(place: Path) -> Path:
    """The file of messages that `place` is, or the one in it."""
    if place.is_file():
        return place
    if not place.is_dir():
        raise UsageError(f"{place}: there is no such file or folder", "give the folder of a trial")
    found = sorted(place.glob(f"*{_ENDS}"))
    if not found:
        raise UsageError(
            f"{place}: no {_ENDS} file in it",
            "a trial in virtual time leaves one if a program crashed, broke the contract or hung",
        )
    if len(found) > 1:
        raise UsageError(f"{place}: several {_ENDS} files in it", one_of("", map(str, found), "files"))
    return found[0]


def _command_of(messages: Path, stack: str | None, extra: tuple[Path, ...]) -> list[str]:
    """The command in virtual time of the stack that is named, or that played the part in the trial."""
    name = stack or _played(messages)
    known = catalogue.discover() | (catalogue.discover(extra) if extra else {})
    return list(catalogue.find(name, known).command("virtual-time"))


def _played(messages: Path) -> str:
    """The stack that was sent `messages`, by the record of the trial, whose outcome is printed."""
    trial, role = messages.resolve().parent, messages.name.removesuffix(_ENDS)
    file = trial.parent.parent / "records.jsonl"
    every = records.read_jsonl(file) if file.is_file() else ()
    record = next((one for one in every if one.trial == trial.name), None)
    if record is None or role not in ("client", "server"):
        raise UsageError(
            f"{messages}: no record says which program this was", "name it: --stack NAME, or -- COMMAND"
        )
    click.echo(f"{record.trial}: {record.outcome}: {record.detail}")
    return (record.cell_key.client_label if role == "client" else record.cell_key.server_label).stack
